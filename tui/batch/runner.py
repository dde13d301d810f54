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
from typing import Any

import msgspec
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
from tui.batch.failure import answer_to, class_of
from tui.batch.group import GroupSession
from tui.batch.isolation import Isolation, IsolationError
from tui.batch.state import RunFolder, RunState, TaskState, partial
from tui.batch.stops import Stops, cost_reached
from tui.clock import Clock, timestamp
from tui.config import Batch
from tui.errors import HoldfastError
from tui.messages import Usage
from tui.provider.base import ModelInfo
from tui.provider.classes import TaskClass

log = logging.getLogger(__name__)

_SUBJECT_MAX = 72


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run is made of. `task_file` and `target` are real paths.

    `open_agent` makes an agent on a new session that asks the named model; `ask` puts one
    question to the small model and returns its answer with what it cost, or raises HoldfastError.
    """

    task_file: Path
    target: Path
    isolation: Isolation
    open_agent: Callable[[str], Awaitable[Agent]]
    ask: Callable[[str], Awaitable[Attempt]]
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
        self._again = False
        self._failures = 0
        self._fatal = ""
        self._began = 0.0
        self.fatal_class: str | None = None
        """The class of the error that ended the run, if one did."""

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
            if self._again:
                await book.take_up_failed()
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
                tuple(msgspec.to_builtins(task) for task in book.state.tasks),
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

    def pause(self, wanted: bool = True) -> None:
        """End the run after the task that is running; not `wanted` takes that back."""
        self._pausing = wanted

    @property
    def pausing(self) -> bool:
        """Whether the run ends after the task that is running."""
        return self._pausing

    def skip(self, index: int) -> None:
        """Leave out a task that has not begun; it stays pending for the next run."""
        self._skipped.add(index)

    @property
    def reason(self) -> str:
        """Why the run ended before all was done; "" where it did not."""
        return self._why_stop(self._book) if self._book else ""

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    @property
    def spent_usd(self) -> float:
        """What the run has cost so far, as far as it is known."""
        tasks = self._book.state.tasks if self._book else ()
        return sum(task.cost_usd or 0.0 for task in tasks)

    def take_up_failed(self) -> None:
        """Run the failed tasks of the earlier run again. To be said before `run`."""
        self._again = True

    @property
    def skipped(self) -> frozenset[int]:
        """The tasks that are left out of this run."""
        return frozenset(self._skipped)

    @property
    def running(self) -> int | None:
        """The task that is being worked on."""
        return self._running

    async def redo(self, index: int) -> None:
        """Take a failed or left out task up again: it is run when its turn comes."""
        self._skipped.discard(index)
        if self._book and self._book.task(index).status == "failed":
            await self._book.rest(replace(self._book.task(index), status="pending", attempts=0))

    async def edit(self, data: bytes) -> None:
        """Take over a task file that was edited on the screen; see `Book.edit`."""
        if self._book:
            await self._book.edit(data, running=self._running)

    async def _work(self, book: Book) -> None:
        """Run what is to be run, in the order of the file."""
        while not self._why_stop(book):
            index = book.next_index(self._skipped)
            if index is None:
                return
            self._running = index
            try:
                await self._task(book, book.task(index))
            finally:
                self._running = None

    def _why_stop(self, book: Book) -> str:
        """Why the run goes no further now; "" where it does, or nothing is left."""
        if self._stopping.is_set():
            return "interrupted"
        if self._fatal or not book.left:
            return self._fatal
        if book.next_index(self._skipped) is None:
            return "what is left was skipped"
        return "paused" if self._pausing else self._bound(book)

    def _bound(self, book: Book) -> str:
        """Which of the person's bounds is reached; "" for none."""
        return self._setup.stops.reached(
            spent_usd=book.spent_usd,
            failures=self._failures,
            elapsed_s=self._setup.clock.monotonic() - self._began,
        )

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
            if made.outcome == "limit" and (most := self._setup.stops.cost_usd) is not None:
                self._fatal = cost_reached(most) if (book.spent_usd or 0.0) >= 0.99 * most else ""
            if self._cut_short(book):
                return await self._interrupted(book, task, made, began)
            again = await self._next_prompt(book, task, prompt, made, seen)
            task = book.task(task.index)
            if again is None and not self._stopping.is_set():
                return await self._failed(book, task, made.message, began)
            if again is None or not await self._wait(task, made) or self._cut_short(book):
                return await self._interrupted(book, task, made, began)
            prompt = again

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

    def _cut_short(self, book: Book) -> bool:
        """Whether a task that is not done must end here: it is taken up again in the next run."""
        return self._stopping.is_set() or bool(self._fatal or self._bound(book))

    async def _next_prompt(
        self, book: Book, task: TaskState, prompt: str, made: Attempt, seen: set[TaskClass]
    ) -> str | None:
        """What the next attempt is told, "" to go on without a word; None when there is none.

        `prompt` is what this one was told, `seen` the classes met before.
        """
        kind, reason = class_of(made), made.message or f"the turn ended as {made.outcome}"
        last = task.attempts >= self._setup.batch.attempts
        answer = answer_to(kind, met_before=kind in seen, last=last)
        seen.add(kind)
        match answer:
            case "give_up":
                return None
            case "stop_run":
                self._fatal, self.fatal_class = reason, made.error_class
                return None
            case "analyse":
                return await self._begun_afresh(book, task, made, reason)
            case "summarise":
                summary = await self._summarise(book, task)
                note = f"{summary}\n\nNOTE: {prompts.OVERFLOWED}"
                return prompts.first(task.task, summary=note)
            case "go_on":
                self._swap(made.error_class or kind)
                return "" if made.prompted else prompt

    async def _begun_afresh(
        self, book: Book, task: TaskState, made: Attempt, reason: str
    ) -> str | None:
        """After a failure that nobody knows: ask whether it is worth it, and undo what was done."""
        asking = asyncio.ensure_future(
            self._setup.ask(prompts.question(task.task, reason, made.output))
        )
        await self._or_stopped(asking)
        try:
            made_of_it = await asking
        except HoldfastError as error:
            log.warning("the failure of task %d was not analysed: %s", task.index + 1, error)
            self._say(f"  The failure could not be analysed: {error.message}")
            return None
        except asyncio.CancelledError:
            if self._stopping.is_set():
                return None
            raise
        book.note(_counted(task, made_of_it, keep_class=True))
        found = prompts.read_analysis(made_of_it.answer)
        if not found.retry:
            self._say(f"  no retry: {found.reason or 'another attempt would fail as well'}")
            return None
        await self._undo(book, task)
        await self._group.leave()
        if self._fatal:
            return None
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
        await self._or_stopped(asyncio.ensure_future(self._setup.clock.sleep(seconds)))
        return not self._stopping.is_set()

    async def _or_stopped(self, work: asyncio.Future[Any]) -> None:
        """Wait for something, or until the run is stopped; it is then cancelled."""
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})

    async def _completed(self, book: Book, task: TaskState, made: Attempt, began: float) -> None:
        try:
            change = await asyncio.to_thread(self._setup.isolation.keep, _commit_message(task))
        except IsolationError as error:
            self._fatal = str(error)
            task = replace(task, status="failed", error_class="unknown")
            await self._rest(book, task, str(error), began)
            await self._group.leave()
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
        seconds = self._setup.clock.monotonic() - began
        task = replace(task, message=message or None, seconds=round(seconds, 3))
        await book.rest(task)
        await asyncio.to_thread(self._setup.isolation.finish)
        self._setup.publish(
            TaskFinished(
                task.index,
                task.status,
                task.change,
                task.attempts,
                task.error_class,
                message,
                seconds,
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
        await book.save(_counted(book.task(task.index), made, keep_class=True))
        return summary

    def _publisher(self, task: TaskState) -> Callable[[Event], None]:
        return lambda event: self._setup.publish(FromAgent(task.index, event))

    def _say(self, text: str) -> None:
        self._setup.publish(Said(text))


def _counted(task: TaskState, made: Attempt, *, keep_class: bool = False) -> TaskState:
    """The task with what an attempt, or a question beside it, used."""
    known = task.cost_usd is not None and made.cost_usd is not None
    changes: dict[str, Any] = {
        "usage": (Usage.from_json(task.usage) + made.usage).to_json(),
        "cost_usd": (task.cost_usd or 0.0) + (made.cost_usd or 0.0) if known else None,
    }
    if not keep_class:
        changes["error_class"] = None if made.outcome == "done" else made.error_class or "unknown"
    return replace(task, **changes)


def _commit_message(task: TaskState) -> str:
    """The task as a commit message; the whole text below where the first line is cut."""
    title = " ".join(task.task.split())
    if len(title) <= _SUBJECT_MAX:
        return title
    return f"{title[: _SUBJECT_MAX - 1].rstrip()}…\n\n{title}"
