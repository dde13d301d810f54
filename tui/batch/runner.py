"""The runner: task after task until the file is done, something stops it, or it cannot go on.

How one task is worked on stands in `task_run`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tui.agent.agent import Agent
from tui.agent.events import Event, Notice
from tui.batch import prompts
from tui.batch.attempt import TaskAttempt, attempt
from tui.batch.events import BatchEvent, RunFinished, RunStarted
from tui.batch.isolation import Isolation
from tui.batch.run_policy import ModelPair, RunLimits
from tui.batch.run_store import RunStore
from tui.batch.state import RunFolder, RunState, total_usage
from tui.batch.task_run import TaskRun
from tui.core.clock import Clock
from tui.core.config import Batch
from tui.core.errors import HoldfastError
from tui.core.paths import Folders, folders
from tui.provider.base import ModelInfo
from tui.provider.task_error_class import classify_error
from tui.session.records import Record


@dataclass(slots=True)
class GroupSession:
    """Holds the agent of the running group, which `section` counts.

    `cumulative` is the sum of the tokens of each task's last request so far.
    """

    run: Runner
    agent: Agent | None = None
    section: int | None = None
    cumulative: int = 0
    _opened: list[Event] = field(default_factory=list[Event])

    async def enter(self, section: int) -> Agent:
        """The agent to go on with; a fresh session where there is none."""
        if self.agent is None:
            self.agent = await self.run.setup.open_agent(self.run.models.current)
            self.section, self.cumulative = section, 0
            self._opened = await self.agent.start()
        return self.agent

    def news(self) -> list[Event]:
        """The events of a session that was just opened, once."""
        events, self._opened = self._opened, []
        return events

    async def leave(self) -> None:
        """Let go of the agent. What could not be saved is said, never raised."""
        agent, self.agent = self.agent, None
        if agent is not None:
            try:
                await agent.close()
            except HoldfastError as error:
                self.run.say(str(error))

    async def attempt(
        self, prompt: str, *, log: Path, publish: Callable[[Event], None]
    ) -> TaskAttempt:
        """Send a prompt on the session, "" to continue where its last attempt failed.

        Nothing is raised: a failure is the attempt's.
        """
        assert self.agent is not None
        try:
            return await attempt(
                self.agent, prompt, log=log, publish=publish, stopping=lambda: self.run.stopping
            )
        except HoldfastError as error:
            self.run.say(f"  {error}")
            return TaskAttempt("failed", classify_error(error), str(error))

    async def summarise(
        self, *, log: Path, publish: Callable[[Event], None]
    ) -> tuple[str, TaskAttempt]:
        """The session's summary of its work, and what it cost; the session is then closed.

        Without an answer the summary says so.
        """
        made = TaskAttempt("failed")
        if self.agent is not None:
            made = await self.attempt(prompts.SUMMARY, log=log, publish=publish)
        await self.leave()
        told = made.answer.strip() if made.outcome == "done" else ""
        return told or prompts.NO_SUMMARY, made


def first_record_of(records: Sequence[Record], index: int) -> str:
    """The id of the record with which a task's last attempt begins; "" if it is not there."""
    marked = (
        after.id
        for mark, after in pairwise(records)
        if mark.type == "task" and mark.data.get("index") == index
    )
    return next(iter([*marked][::-1]), "")


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What a run is made of. `task_file` and `target` are real paths.

    `open_agent` makes an agent on a new session that asks the named model; `ask` puts one
    question to the small model and returns its answer with what it cost, or raises HoldfastError.
    """

    task_file: Path
    target: Path
    isolation: Isolation
    open_agent: Callable[[str], Awaitable[Agent]]
    ask: Callable[[str], Awaitable[TaskAttempt]]
    model_info: Callable[[str], ModelInfo]
    models: ModelPair
    clock: Clock
    publish: Callable[[BatchEvent], None]
    batch: Batch = field(default_factory=Batch)
    threshold: float = 0.8
    stops: RunLimits = field(default_factory=RunLimits)
    boot: str = ""
    rng: random.Random = field(default_factory=random.Random)
    folders: Folders = field(default_factory=folders)


_NO_ISOLATION = "Neither jj nor git isolates tasks here: changes made by failed tasks stay."


class Runner:
    """Runs one task file. `stop`, `pause`, `skip`, `redo` and `edit` may be called meanwhile.

    `running` is the task that is being worked on; `pausing`: the run ends after it.

    Carried from one task to the next: `group` and `models`; `summary` of the group's last session,
    for the next prompt; `failures`, those in a row; `fatal`, why the run cannot go on, and
    `fatal_class`, the class of that error.
    """

    def __init__(self, setup: RunSetup) -> None:
        self.setup = setup
        self.models = setup.models
        self.group = GroupSession(self)
        self.summary: str | None = None
        self.failures = 0
        self.fatal = ""
        self.fatal_class: str | None = None
        self._began = setup.clock.monotonic()
        self._stop = asyncio.Event()
        self._book: RunStore | None = None
        self.running: int | None = None
        self.pausing = False
        self._skipped: set[int] = set()
        self._again = False

    async def run(self) -> RunState:
        """Work through the file; returns how every task stands. Continues with an earlier run.

        Raises UsageError where it cannot begin (another runner, a changed file, a dirty tree),
        StorageError where its state cannot be saved.
        """
        setup, folder = self.setup, RunFolder(self.setup.target)
        self._began = setup.clock.monotonic()
        with folder.locked():
            self._book = book = await RunStore.opened(
                setup.task_file,
                folder,
                setup.isolation,
                clock=setup.clock,
                say=self.say,
                opened=self._announce,
                folders=setup.folders,
            )
            if self._again:
                await book.take_up_failed()
            if setup.isolation.name == "none":
                self.say(_NO_ISOLATION)
            try:
                await self._work(book)
            finally:
                await self.group.leave()
        setup.publish(
            RunFinished(
                book.state.counts(),
                setup.clock.monotonic() - self._began,
                self._why_stop(book),
                total_usage(book.state.tasks).to_json(),
                book.spent_usd,
                book.state.tasks,
            )
        )
        return book.state

    def stop(self) -> None:
        """End the run now: the running task becomes interrupted. Again it changes nothing."""
        self._stop.set()
        if self.group.agent is not None:
            self.group.agent.cancel()

    def pause(self, wanted: bool = True) -> None:
        """End the run after the task that is running; not `wanted` takes that back."""
        self.pausing = wanted

    def skip(self, index: int) -> None:
        """Leave out a task that has not begun; it stays pending for the next run."""
        self._skipped.add(index)

    def take_up_failed(self) -> None:
        """Run the failed tasks of the earlier run again. To be said before `run`."""
        self._again = True

    async def redo(self, index: int) -> None:
        """Take a failed or left out task up again: it is run when its turn comes."""
        self._skipped.discard(index)
        if self._book:
            await self._book.take_up_failed(index)

    async def edit(self, data: bytes) -> None:
        """Take over a task file that was edited on the screen; see `RunStore.edit`."""
        if self._book:
            await self._book.edit(data, running=self.running)

    @property
    def state(self) -> RunState | None:
        """How every task stands; None before the run has begun."""
        return self._book.state if self._book else None

    @property
    def skipped(self) -> frozenset[int]:
        """The tasks that are left out of this run."""
        return frozenset(self._skipped)

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    @property
    def reason(self) -> str:
        """Why the run ended before all was done; "" where it did not."""
        return self._why_stop(self._book) if self._book else ""

    @property
    def spent_usd(self) -> float:
        """What the run has cost so far, as far as it is known."""
        tasks = self._book.state.tasks if self._book else ()
        return sum(task.cost_usd or 0.0 for task in tasks)

    def say(self, text: str) -> None:
        """A line for the person."""
        self.setup.publish(Notice(text))

    def reached_limit(self, book: RunStore) -> str:
        """Which of the person's limits is reached; "" for none."""
        return self.setup.stops.reached(
            spent_usd=book.spent_usd,
            failures=self.failures,
            elapsed_s=self.setup.clock.monotonic() - self._began,
        )

    async def or_stopped(self, work: asyncio.Future[Any]) -> None:
        """Wait for something, or until the run is stopped; it is then cancelled."""
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})

    def _announce(self, state: RunState) -> None:
        setup, done = self.setup, state.counts().get("completed", 0)
        file, count = str(setup.task_file), len(state.tasks)
        setup.publish(RunStarted(file, count, done, setup.boot, setup.isolation.name))

    async def _work(self, book: RunStore) -> None:
        """Run what is to be run, in the order of the file."""
        while not self._why_stop(book):
            await book.take_up_added()
            index = book.next_index(self._skipped)
            if index is None:
                return
            self.running = index
            try:
                await TaskRun(self, book, book.task(index)).run()
            finally:
                self.running = None

    def _why_stop(self, book: RunStore) -> str:
        """Why the run goes no further now; "" where it does, or nothing is left."""
        if self.stopping:
            return "interrupted"
        if book.next_index(()) is None:
            return ""
        if self.fatal:
            return self.fatal
        if book.next_index(self._skipped) is None:
            return "skipped the remaining tasks"
        return "paused" if self.pausing else self.reached_limit(book)
