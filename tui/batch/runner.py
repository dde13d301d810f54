"""The runner: task after task until the file is done, something stops it, or it cannot go on.

Every transition is saved before it is announced. A failure is answered by its class:

    rate_limit, network   wait, then go on in the same session: the work so far stands
    timeout               the same, once
    context_overflow      a fresh session with a summary of the work, once
    auth                  the task fails, as every other would: the run stops
    unknown               a small model says whether another attempt, begun afresh, is worth it

A task that ends as failed or interrupted leaves the files as they were; its attempt is kept.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from tui.agent.agent import Agent
from tui.agent.events import Event
from tui.batch import prompts
from tui.batch.attempt import Attempt
from tui.batch.backoff import Models, switch_line, wait_line, wait_s
from tui.batch.book import Book
from tui.batch.events import (
    BatchEvent,
    FromAgent,
    RunFinished,
    RunStarted,
    Said,
    TaskFinished,
    TaskStarted,
    Waiting,
)
from tui.batch.group import GroupSession
from tui.batch.isolation import Isolation, IsolationError
from tui.batch.state import RunFolder, RunState, TaskState, partial
from tui.clock import Clock, timestamp
from tui.config import Batch
from tui.errors import ErrorClass, HoldfastError
from tui.messages import Usage
from tui.provider.base import ModelInfo
from tui.provider.classes import TASK_CLASS, TaskClass

log = logging.getLogger(__name__)

_SUBJECT_MAX = 72


@dataclass(frozen=True, slots=True)
class Stops:
    """What ends a run early; None is no bound."""

    cost_usd: float | None = None
    failures_in_a_row: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run is made of. `task_file` and `target` are real paths.

    `open_agent` makes an agent on a new session that asks the named model; `ask` puts one
    question to the small model and returns its answer, or raises HoldfastError.
    """

    task_file: Path
    target: Path
    isolation: Isolation
    open_agent: Callable[[str], Awaitable[Agent]]
    ask: Callable[[str], Awaitable[str]]
    model_info: Callable[[str], ModelInfo]
    models: Models
    clock: Clock
    publish: Callable[[BatchEvent], None]
    batch: Batch = field(default_factory=Batch)
    threshold: float = 0.8
    stops: Stops = field(default_factory=Stops)
    boot: str = ""
    rng: random.Random = field(default_factory=random.Random)


class Runner:
    """Runs one task file. `stop`, `pause`, `skip`, `redo` and `edit` may be called meanwhile."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._folder = RunFolder(setup.target)
        self._book: Book | None = None
        self._models = setup.models
        self._group = GroupSession(lambda: setup.open_agent(self._models.current), self._say)
        self._summary: str | None = None
        self._running: int | None = None
        self._stopping = asyncio.Event()
        self._pausing = False
        self._skipped: set[int] = set()
        self._failures = 0
        self._fatal = ""
        self._began = 0.0

    async def run(self) -> RunState:
        """Work through the file; returns how every task stands. Goes on with an earlier run.

        Raises UsageError where it cannot begin (another runner, a changed file, a dirty tree),
        StorageError where its state cannot be saved.
        """
        setup = self._setup
        self._began = setup.clock.monotonic()
        with self._folder.locked():
            self._book = book = await Book.opened(
                setup.task_file, self._folder, setup.isolation, clock=setup.clock, say=self._say
            )
            done = book.state.counts().get("completed", 0)
            setup.publish(
                RunStarted(
                    str(setup.task_file),
                    len(book.state.tasks),
                    done,
                    setup.boot,
                    setup.isolation.name,
                )
            )
            if setup.isolation.name == "none":
                self._say(
                    "Neither jj nor git keeps the tasks apart here: failed ones leave traces."
                )
            try:
                await self._work(book)
            finally:
                await self._group.leave()
        usage = sum((Usage.from_json(task.usage) for task in book.state.tasks), Usage())
        setup.publish(
            RunFinished(
                book.state.counts(),
                setup.clock.monotonic() - self._began,
                self._why_stop(book),
                usage.to_json(),
                book.spent_usd,
            )
        )
        return book.state

    @property
    def state(self) -> RunState | None:
        """How every task stands; None before the run has begun."""
        return self._book.state if self._book else None

    def stop(self) -> None:
        """End the run now: the running task becomes interrupted. Again it changes nothing."""
        self._stopping.set()
        if self._group.agent is not None:
            self._group.agent.cancel()

    def pause(self) -> None:
        """End the run after the task that is running."""
        self._pausing = True

    def skip(self, index: int) -> None:
        """Leave out a task that has not begun; it stays pending for the next run."""
        self._skipped.add(index)

    async def redo(self, index: int) -> None:
        """Make a failed task pending: it is run when its turn comes, in this run or the next."""
        if self._book and self._book.task(index).status == "failed":
            await self._book.rest(replace(self._book.task(index), status="pending", attempts=0))

    async def edit(self, data: bytes) -> None:
        """Take over a task file that was edited on the screen; see `Book.edit`."""
        if self._book:
            await self._book.edit(data, running=self._running)

    async def _work(self, book: Book) -> None:
        """Run what is to be run, in the order of the file."""
        index = 0
        while index < len(book.state.tasks) and not self._why_stop(book):
            if book.task(index).status in {"pending", "interrupted"} and index not in self._skipped:
                self._running = index
                await self._task(book, book.task(index))
                self._running = None
            index += 1

    def _why_stop(self, book: Book) -> str:
        """Why the run goes no further now; "" where it does, or nothing is left."""
        stops, elapsed = self._setup.stops, self._setup.clock.monotonic() - self._began
        if self._stopping.is_set():
            return "interrupted"
        if self._fatal or not book.left:
            return self._fatal
        if self._pausing:
            return "paused"
        if stops.cost_usd is not None and (book.spent_usd or 0.0) >= stops.cost_usd:
            return f"the limit of ${stops.cost_usd:.2f} is reached"
        if stops.failures_in_a_row is not None and self._failures >= stops.failures_in_a_row:
            return f"{self._failures} tasks failed in a row"
        if stops.seconds is not None and elapsed >= stops.seconds:
            return f"the limit of {stops.seconds / 60:.0f} minutes is reached"
        return ""

    async def _task(self, book: Book, task: TaskState) -> None:
        """Attempt one task until it is done, given up or interrupted."""
        began = self._setup.clock.monotonic()
        stopped_before = task.status == "interrupted"
        if self._group.group != task.group or stopped_before:
            await self._group.leave()
            self._summary = None  # it was of another group's work (A37)
        note = (task.partial_context or "") if stopped_before else ""
        prompt = prompts.first(task.task, partial=note, summary=self._summary)
        self._summary = None
        task = replace(task, attempts=0, usage={}, cost_usd=0.0, error_class=None, change=None)
        await asyncio.to_thread(self._setup.isolation.begin)
        seen: set[TaskClass] = set()
        while True:
            task = await self._begin_attempt(book, task)
            made = await self._send(task, prompt)
            task = book.note(_counted(task, made))
            if made.outcome == "done":
                return await self._completed(book, task, made, began)
            if self._stopping.is_set():
                return await self._interrupted(book, task, made, began)
            again = await self._next_prompt(book, task, made, seen)
            if again is None:
                return await self._failed(book, task, made.message, began)
            prompt, task = again, book.task(task.index)
            if not await self._wait(task, made):
                return await self._interrupted(book, task, made, began)

    async def _begin_attempt(self, book: Book, task: TaskState) -> TaskState:
        """Save that an attempt runs, on the group's session."""
        agent = await self._group.enter(task.group)
        if agent.model != self._models.current:
            agent.use_model(self._setup.model_info(self._models.current))
        number = task.attempts + 1
        path = self._folder.log_of(task.index, number)
        agent.session.append("task", index=task.index, group=task.group, text=task.task)
        task = await book.save(
            replace(
                task,
                status="running",
                attempts=number,
                session_id=agent.session.id,
                log=str(path.relative_to(self._setup.target)),
            )
        )
        self._setup.publish(
            TaskStarted(task.index, task.group, task.task, number, agent.session.id)
        )
        for event in self._group.news():
            self._setup.publish(FromAgent(task.index, event))
        return task

    async def _send(self, task: TaskState, prompt: str) -> Attempt:
        if self._stopping.is_set():
            return Attempt("interrupted")
        path = self._setup.target / (task.log or "")
        return await self._group.attempt(prompt, log=path, publish=self._publisher(task))

    async def _next_prompt(
        self, book: Book, task: TaskState, made: Attempt, seen: set[TaskClass]
    ) -> str | None:
        """What the next attempt is told; None when there is none. `seen`: classes met before."""
        kind = TASK_CLASS.get(cast("ErrorClass", made.error_class), "unknown")
        known, reason = kind in seen, made.message or f"the turn ended as {made.outcome}"
        seen.add(kind)
        if kind == "auth":
            self._fatal = reason
        spent = task.attempts >= self._setup.batch.attempts or made.outcome == "limit"
        if kind == "auth" or spent or (known and kind in {"timeout", "context_overflow"}):
            return None
        self._swap(made.error_class or "")
        if kind == "context_overflow":
            summary = await self._summarise(book, task)
            note = f"{summary}\n\nNOTE: {prompts.OVERFLOWED}"
            return prompts.first(task.task, summary=note)
        if kind == "unknown":
            return await self._begun_afresh(book, task, made, reason)
        return prompts.GO_ON.format(reason=reason)

    async def _begun_afresh(
        self, book: Book, task: TaskState, made: Attempt, reason: str
    ) -> str | None:
        """After a failure that nobody knows: ask whether it is worth it, and undo what was done."""
        try:
            answer = await self._setup.ask(prompts.question(task.task, reason, made.output))
            found = prompts.read_analysis(answer)
        except HoldfastError as error:
            log.warning("the failure of task %d was not analysed: %s", task.index + 1, error)
            return None
        if not found.retry:
            return None
        await self._undo(book, task)
        await self._group.leave()
        await asyncio.to_thread(self._setup.isolation.begin)
        return prompts.HINT.format(
            reason=found.reason or reason, hint=found.hint or "none", task=task.task
        )

    def _swap(self, error_class: str) -> None:
        """The other model takes the next attempt, where that may help (A26 to A28)."""
        after = self._models.after(error_class, last=False)
        if after != self._models:
            self._say(switch_line(self._models.current, after.current))
            self._models = after

    async def _wait(self, task: TaskState, made: Attempt) -> bool:
        """Wait before the next attempt. False if the run was stopped meanwhile (A24)."""
        seconds = wait_s(task.attempts, made.error_class or "unknown", self._setup.rng)
        self._say(wait_line(seconds))
        self._setup.publish(Waiting(task.index, seconds, made.message))
        sleeping = asyncio.ensure_future(self._setup.clock.sleep(seconds))
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({sleeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for waiting in (sleeping, stopping):
            waiting.cancel()
        return not self._stopping.is_set()

    async def _completed(self, book: Book, task: TaskState, made: Attempt, began: float) -> None:
        try:
            change = await asyncio.to_thread(self._setup.isolation.keep, _commit_message(task))
        except IsolationError as error:
            self._fatal = str(error)
            task = replace(task, status="failed", error_class="unknown")
            await self._rest(book, task, str(error), began)
            return
        self._failures = 0
        self._models = self._models.restored()
        await self._rest(book, replace(task, status="completed", change=change or None), "", began)
        self._group.cumulative += made.context
        basis = self._setup.batch.compaction_basis
        used = self._group.cumulative if basis == "cumulative" else made.context
        window = self._group.agent.window if self._group.agent else 0
        if used > self._setup.threshold * window and book.more_in_group(task):
            share = used * 100 // window
            self._say(f"  compaction: context at {share}%, starting fresh session with summary")
            self._summary = await self._summarise(book, task)

    async def _failed(self, book: Book, task: TaskState, message: str, began: float) -> None:
        self._failures += 1
        self._models = self._models.restored()
        change = await self._undo(book, task)
        await self._rest(book, replace(task, status="failed", change=change), message, began)
        await self._group.leave()

    async def _interrupted(self, book: Book, task: TaskState, made: Attempt, began: float) -> None:
        """The person stopped the run: what was there is kept for the next one (A39 to A42)."""
        change = await self._undo(book, task)
        task = replace(
            task,
            status="interrupted",
            interrupted_at=timestamp(self._setup.clock.now()),
            partial_context=partial(made.output),
            error_class=None,
            change=change,
        )
        await self._rest(book, task, "interrupted", began)
        await self._group.leave()

    async def _rest(self, book: Book, task: TaskState, message: str, began: float) -> None:
        """Save how a task came to rest, then announce it."""
        await book.rest(task)
        self._setup.publish(
            TaskFinished(
                task.index,
                task.status,
                task.change,
                task.attempts,
                task.error_class,
                message,
                self._setup.clock.monotonic() - began,
                task.usage,
                task.cost_usd,
            )
        )

    async def _undo(self, book: Book, task: TaskState) -> str | None:
        try:
            return await asyncio.to_thread(self._setup.isolation.undo, book.label(task)) or None
        except IsolationError as error:
            self._fatal = str(error)
            self._say(str(error))
            return None

    async def _summarise(self, book: Book, task: TaskState) -> str:
        """A summary of the group's session, which is left. The task's status stays (A38)."""
        if self._stopping.is_set():
            return prompts.NO_SUMMARY
        path = self._folder.path / "logs" / f"{task.index + 1:03}-summary.log"
        summary, made = await self._group.summarise(log=path, publish=self._publisher(task))
        stands = book.task(task.index)
        await book.save(replace(_counted(stands, made), error_class=stands.error_class))
        return summary

    def _publisher(self, task: TaskState) -> Callable[[Event], None]:
        return lambda event: self._setup.publish(FromAgent(task.index, event))

    def _say(self, text: str) -> None:
        self._setup.publish(Said(text))


def _counted(task: TaskState, made: Attempt) -> TaskState:
    """The task with what an attempt used."""
    known = task.cost_usd is not None and made.cost_usd is not None
    changes: dict[str, Any] = {
        "usage": (Usage.from_json(task.usage) + made.usage).to_json(),
        "cost_usd": (task.cost_usd or 0.0) + (made.cost_usd or 0.0) if known else None,
        "error_class": None if made.outcome == "done" else made.error_class or "unknown",
    }
    return replace(task, **changes)


def _commit_message(task: TaskState) -> str:
    """The task as a commit message; the whole text below where the first line is cut."""
    title = " ".join(task.task.split())
    if len(title) <= _SUBJECT_MAX:
        return title
    return f"{title[: _SUBJECT_MAX - 1].rstrip()}…\n\n{title}"
