"""`run --batch-api`: the open tasks as one message batch, at half price.

Every step is saved before the next one, so that a killed run continues where it was:

    sessions made     each question has a session with its request, and its task names that
    batch noted       custom ids and sessions are in the state; from here on it may be sent
    batch sent        its id is in the state
    result taken      in the session's record, then in the state, of the task and of the batch
    batch forgotten   all results are taken

A run that finds a batch noted and no id looks at the server's batches since then: it is the one
whose results have its custom ids. Only where none is, the batch is sent. A failed POST is treated
in the same way: what may have arrived is looked for before it is sent again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace as copy_of
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from tui.agent.limits import Spent
from tui.agent.mentions import named_files
from tui.agent.model_access import make_batches
from tui.batch.attempt import TaskAttempt, counted
from tui.batch.events import (
    BatchEvent,
    FromAgent,
    RunFinished,
    RunStarted,
    TaskFinished,
    TaskStarted,
)
from tui.batch.plan import RunPlan
from tui.batch.questions import Questions, custom_ids, failure_of
from tui.batch.run_store import RunStore
from tui.batch.state import RunFolder, RunState, TaskBatch, TaskState, total_usage
from tui.core import facts
from tui.core.cancellation import to_the_end
from tui.core.clock import Clock, timestamp
from tui.core.errors import (
    CredentialsError,
    HoldfastError,
    LimitReachedError,
    ProviderError,
    SessionError,
    StorageError,
    UsageError,
    os_error_as,
)
from tui.core.facts import Notice
from tui.core.files import replace_file
from tui.core.formatting import local_time, money, plural, wait_time
from tui.core.messages import text_of
from tui.core.paths import shorten
from tui.provider.base import Completed, Request
from tui.provider.message_batches import BatchResult, MessageBatches, SentBatch
from tui.provider.prices import ModelPrice, price_of
from tui.provider.retry import wait_before_retry
from tui.tokens import estimate

T = TypeVar("T")

FIRST_POLL_S: Final = 5.0
LAST_POLL_S: Final = 60.0
_SLOWER: Final = 1.5
ANSWER_TOKENS: Final = 4000
"""Tokens assumed for an answer that nobody has seen, to estimate the price."""
_SKEW: Final = timedelta(hours=1)
"""The difference that may be between the clocks of the server and of this machine."""
_PATIENCE_S: Final = 86_400.0
"""Seconds to wait at a server's word: a batch takes as long, too."""
_NONCE: Final = 12


class _StoppedError(Exception):
    """The person waits no longer."""


class BatchApiRun:
    """Asks the open tasks of a file as one message batch, and waits for the answers. `stop` ends
    the waiting; the batch continues. With `cancel` nothing is asked, and a batch that is waited for
    is canceled.

    `reason` says why tasks are left, `fatal_class` is the class of the error that it was.
    """

    def __init__(
        self,
        planned: RunPlan,
        publish: Callable[[BatchEvent], None],
        *,
        clock: Clock,
        cancel: bool = False,
        server: MessageBatches | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._plan, self._publish, self._clock = planned, publish, clock
        self._server = server or make_batches(planned.launch, clock)
        self._rng = rng or random.Random()  # noqa: S311 - it spreads load and guards nothing
        self._stop = asyncio.Event()
        self._again, self._cancel = False, cancel
        self._tried: set[str | None] = set()
        """The sessions whose results this run waited for: a task is asked once."""
        self._shown = ""
        self.reason = ""
        self.fatal_class: str | None = None

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Wait no longer."""
        self._stop.set()

    def take_up_failed(self) -> None:
        """Ask the failed tasks of the earlier run again. To be called before `run`."""
        self._again = True

    async def close(self) -> None:
        """Leave the server."""
        await self._server.aclose()

    async def run(self) -> RunState:
        """Ask, wait, and take the results; returns the state of every task.

        Raises UsageError and LimitReachedError where nothing can be sent, StorageError where the
        state cannot be saved. A refusal of the server is shown, and in `reason`.
        """
        plan, folder = self._plan, RunFolder(self._plan.target)
        began = self._clock.monotonic()
        with folder.locked():
            self._check_killed(await asyncio.to_thread(folder.load))
            book = await RunStore.opened(
                plan.task_file,
                folder,
                plan.isolation,
                plan.worktrees,
                clock=self._clock,
                say=self._say,
                opened=self._announce,
                folders=plan.launch.folders,
            )
            for text in plan.launch.notices:
                self._say(text)
            if self._again and book.state.batch is None:
                await book.take_up_failed()
            try:
                await self._work(book)
            except _StoppedError:
                self.reason = "interrupted"
            # these end the command; all others end only the run
            except (UsageError, LimitReachedError, StorageError):
                raise
            except HoldfastError as error:
                kind = "auth" if isinstance(error, CredentialsError) else "unknown"
                self.fatal_class = getattr(error, "error_class", kind)
                self.reason = error.message.rstrip(".")
                self._say(str(error))
            self._say_what_goes_on(book.state.batch)
        counts, usage = book.state.counts(), total_usage(book.state.tasks).to_json()
        seconds = self._clock.monotonic() - began
        self._publish(
            RunFinished(counts, seconds, self.reason, usage, book.spent_usd, book.state.tasks)
        )
        return book.state

    async def _work(self, book: RunStore) -> None:
        """One batch after the other until nothing is left that this run has not asked."""
        launch = self._plan.launch
        info = await self._until_stopped(self._server.model_info(launch.model))
        questions = Questions(launch, info, self._server, self._clock)
        while True:
            batch = book.state.batch
            fresh = batch is None
            if batch is None and self._cancel:
                if not self._tried:
                    raise UsageError("There is no message batch to cancel here.")
                return
            # nothing is under way: note the questions before they are sent
            if batch is None:
                await book.take_up_added()
                todo = [
                    task
                    for task in book.state.tasks
                    if task.is_to_do and task.session_id not in self._tried
                ]
                if not todo:
                    return
                batch = await self._note(book, questions, todo)
            waiting = {*batch.waiting.values()}
            self._tried |= waiting
            if not batch.id:
                batch = await self._send(book, questions, batch, fresh=fresh)
            self._say(f"Sent {local_time(batch.noted_at)}: {batch.id}")
            for task in book.state.tasks:
                if (session := task.session_id) in waiting and session:
                    self._publish(TaskStarted(task.index, task.group, task.task, 1, session))
            if self._cancel:
                await self._cancel_at_server(batch.id)
            await self._wait_for(batch.id)
            await self._take_results(book, questions, batch)

    # Asking

    async def _note(self, book: RunStore, questions: Questions, todo: list[TaskState]) -> TaskBatch:
        """Make the session of each question, and note the batch before it is sent."""
        if not questions.model.batches:
            raise UsageError(
                f"{questions.model.id} doesn't support message batches.",
                hint="Choose another model with -m, or leave out --batch-api.",
            )
        await asyncio.to_thread(self._check_files, todo)
        sessions: list[str] = []
        requests: list[Request] = []
        for task in todo:
            if self.stopping:
                raise _StoppedError
            session = await questions.session_of(task)
            if session != task.session_id:
                await book.save(replace(task, session_id=session))
            request = await asyncio.to_thread(questions.request_of, session)
            assert request is not None
            sessions.append(session)
            requests.append(request)
        self._check_cost(book, requests)
        now = timestamp(self._clock.now())
        nonce = sha256(f"{now} {sessions}".encode()).hexdigest()[:_NONCE]
        ids = custom_ids(todo, nonce)
        batch = TaskBatch(noted_at=now, sessions=dict(zip(ids, sessions, strict=True)))
        await book.note_batch(batch)
        return batch

    def _check_files(self, todo: list[TaskState]) -> None:
        """Refuse tasks that name files: a question brings none. Blocks."""
        workspace = self._plan.launch.workspace
        for task in todo:
            if names := named_files(task.task, workspace):
                raise UsageError(
                    f"Task {task.index + 1} names a file (@{names[0]}), and --batch-api sends no"
                    " files.",
                    hint="Put what matters into the task, or leave out --batch-api.",
                )

    def _check_cost(self, book: RunStore, requests: list[Request]) -> None:
        """Say about what the batch will cost. Raises LimitReachedError beyond the limit."""
        price, most = self._price(self._plan.launch.model), self._plan.stops.cost_usd
        if price is None:
            return
        usd = 0.0
        for one in requests:
            written = round(estimate.request_weight(one.system, one.tools, one.messages))
            usd += price.forecast(written=written, output=min(ANSWER_TOKENS, one.max_tokens))
        about = f"{plural(len(requests), 'question')}, about {money(usd)} at half price"
        spent = book.spent_usd or 0.0
        if most is not None and spent + usd > most:
            before = f" ({money(spent)} spent before)" if spent else ""
            raise LimitReachedError(
                f"{about}{before}: more than the limit of ${most:.2f}. Nothing was sent.",
                hint="Raise --max-cost, or ask fewer questions.",
            )
        self._say(f"{about} (assuming {ANSWER_TOKENS:,} tokens per answer)")

    async def _send(
        self, book: RunStore, questions: Questions, batch: TaskBatch, *, fresh: bool
    ) -> TaskBatch:
        """Send a batch that is noted, unless the server has it. Its id is saved."""
        created = None if fresh else await self._find(batch)
        if created is None and self._cancel:
            await book.note_batch(None)
            raise UsageError("The message batch was never sent: there is nothing to cancel.")
        failures, waited = 0, 0.0
        requests = await self._requests(book, questions, batch) if created is None else {}
        while created is None:
            try:
                created = await self._until_stopped(self._server.create(requests))
            except ProviderError as error:
                refused = not error.retryable if error.status is None else error.status // 100 == 4
                try:
                    waited += await self._wait_to_retry(error, failures, waited)
                except ProviderError:
                    if refused:
                        await book.note_batch(None)
                    raise
                failures += 1
                created = None if refused else await self._find(batch)
        sent = replace(batch, id=created.id, request_id=created.request_id)
        await book.note_batch(sent)
        return sent

    async def _requests(
        self, book: RunStore, questions: Questions, batch: TaskBatch
    ) -> dict[str, Request]:
        """The requests of a batch, from the records of its sessions."""
        requests: dict[str, Request] = {}
        for id_, session in batch.sessions.items():
            request = await asyncio.to_thread(questions.request_of, session)
            if request is None:
                await book.note_batch(None)  # it was not sent, and now it can't be
                raise HoldfastError(
                    f"The session {session} doesn't hold its question any more.",
                    hint="Run it again: the question gets a new session.",
                )
            requests[id_] = request
        return requests

    async def _find(self, batch: TaskBatch) -> SentBatch | None:
        """The batch of the server that is this one, None where none is. One of the same size that
        is not done yet is waited for: only its results tell."""
        since = datetime.fromisoformat(batch.noted_at) - _SKEW
        self._say("Checking whether the server already has this batch.")
        for one in await self._retried(lambda: self._server.made_since(since)):
            if one.requests != len(batch.sessions):
                continue
            if not one.ended:
                self._say(f"{one.id} may be it: waiting for its results to find out.")
                await self._wait_for(one.id)
            first = await self._retried(partial(self._first_result, one.id))
            if first is not None and first.custom_id in batch.sessions:
                return one
        self._say("The server doesn't have it.")
        return None

    async def _first_result(self, batch: str) -> BatchResult | None:
        async with aclosing(self._server.results(batch)) as results:
            return await anext(results, None)

    # Waiting

    async def _cancel_at_server(self, batch: str) -> None:
        """Cancel a batch; one that has ended meanwhile stays as it is."""
        try:
            await self._retried(partial(self._server.cancel, batch))
        except ProviderError as error:
            if error.error_class != "invalid_request":
                raise
        self._say(f"Canceled {batch}. Answers that it has already are taken.")

    async def _wait_for(self, batch: str) -> None:
        """Wait until a batch has ended, and show its state whenever that changes."""
        pause = FIRST_POLL_S
        while True:
            now = await self._retried(lambda: self._server.describe(batch))
            parts = [
                f"{now.succeeded} done",
                *([f"{now.failed} failed"] if now.failed else []),
                f"{now.waiting} waiting · up to 24 h" if not now.ended else "",
            ]
            shown = f"batch of {now.requests}: {', '.join(filter(None, parts))}"
            if shown != self._shown:
                self._shown = shown
                self._say(shown)
            if now.ended:
                return
            await self._until_stopped(self._clock.sleep(pause))
            pause = min(pause * _SLOWER, LAST_POLL_S)

    async def _retried(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a request; it is sent again as far as the settings allow."""
        failures, waited = 0, 0.0
        while True:
            try:
                return await self._until_stopped(call())
            except ProviderError as error:
                waited += await self._wait_to_retry(error, failures, waited)
                failures += 1

    async def _wait_to_retry(self, error: ProviderError, failures: int, waited: float) -> float:
        """Wait before the next attempt. Raises `error` where there is none. Returns the seconds
        that the server asked for."""
        retry = self._plan.launch.config.retry
        wait = wait_before_retry(
            error,
            failures,
            waited,
            retry=retry,
            clock=self._clock,
            rng=self._rng,
            max_wait_s=_PATIENCE_S,
        )
        again = f"Retry {failures + 1} of {retry.max_attempts} in {wait_time(wait)}."
        self._say(f"{error.message} {again}")
        await self._until_stopped(self._clock.sleep(wait))
        return wait if error.retry_after is not None else 0.0

    async def _until_stopped(self, coming: Awaitable[T]) -> T:
        """Wait for a result. Raises _StoppedError where the person stops before."""
        work, stop = asyncio.ensure_future(coming), asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise _StoppedError
            return work.result()
        finally:
            for one in (work, stop):
                one.cancel()
            await asyncio.gather(work, stop, return_exceptions=True)

    # Results

    async def _take_results(self, book: RunStore, questions: Questions, batch: TaskBatch) -> None:
        """Take the results that no run has taken yet, and forget the batch. Raises SessionError
        where a session is in use: its result is left for the next run."""
        unknown: set[str] = set()
        unsaved: dict[str, SessionError] = {}

        async def take() -> None:
            unsaved.clear()
            async with aclosing(self._server.results(batch.id)) as results:
                async for one in results:
                    if one.custom_id not in batch.sessions:
                        unknown.add(one.custom_id)
                        continue
                    try:
                        await to_the_end(self._take(book, questions, one))
                    except SessionError as error:
                        unsaved[one.custom_id] = error

        await self._retried(take)
        for id_ in unknown:
            self._say(f"Ignored a result for {id_!r}: this run didn't ask for it.")
        if unsaved:
            raise next(iter(unsaved.values()))
        # the server's results are complete: what still waits gets none
        for id_ in book.state.batch.waiting if book.state.batch else ():
            lost = ProviderError(
                "stream_broken",
                "The batch has no result for this question.",
                hint="Run it again to ask again.",
                retryable=True,
            )
            await self._take(book, questions, BatchResult(id_, lost))
        await book.note_batch(None)

    async def _take(self, book: RunStore, questions: Questions, result: BatchResult) -> None:
        """Take one result: into the session, the log, the state and the file of tasks."""
        batch = book.state.batch
        if batch is None or result.custom_id in batch.taken:
            return
        session, answer = batch.sessions[result.custom_id], result.answer
        if isinstance(answer, Completed):
            answer = copy_of(answer, request_id=batch.request_id)
        await questions.answered(session, answer, batch.id)
        batch = replace(batch, taken=(*batch.taken, result.custom_id))
        task = next((t for t in book.state.tasks if t.session_id == session), None)
        if task is None:
            await book.note_batch(batch)
            return
        await self._finish(book, task, answer, batch)

    async def _finish(
        self, book: RunStore, task: TaskState, answer: Completed | ProviderError, batch: TaskBatch
    ) -> None:
        """Write the log of a task, then the states of it and of its batch, and show it."""
        waited = self._clock.now() - datetime.fromisoformat(batch.noted_at)
        share = waited.total_seconds() / len(batch.sessions)  # so that all together waited so long
        failure, made = failure_of(answer), TaskAttempt("done", cost_usd=0.0)
        if isinstance(answer, Completed):
            made.answer, made.usage = text_of(answer.content), answer.usage
            made.cost_usd = Spent.on(answer.usage, self._price(answer.model)).usd
        if failure is not None:
            made.outcome, made.error_class = "failed", failure.error_class
            made.message = failure.message if failure.retryable else str(failure)
        status = (
            "completed" if failure is None else "interrupted" if failure.retryable else "failed"
        )
        log = book.folder.log_of(task.index, 1)
        text = made.answer if failure is None else f"{made.answer}\n» {failure}\n".lstrip("\n")
        with os_error_as(StorageError, f"Can't write the log {log}"):
            await asyncio.to_thread(_write, log, text)
        changes: dict[str, Any] = {
            "status": status,
            "attempts": 1,
            "log": str(log.relative_to(book.folder.target)),
            "message": made.message or None,
            "seconds": round(share, 3),
            "partial_context": None,
            "change": None,
        }
        if status == "interrupted":
            changes["interrupted_at"] = timestamp(self._clock.now())
        book.state = replace(book.state, batch=batch)  # saved with the task
        fresh = replace(task, usage={}, cost_usd=0.0)
        task = await book.rest(replace(counted(fresh, made, keep_class=False), **changes))
        self._show(task, answer, made, failure)

    def _show(
        self,
        task: TaskState,
        answer: Completed | ProviderError,
        made: TaskAttempt,
        failure: HoldfastError | None,
    ) -> None:
        """Publish what became of a task, in the events of an ordinary one."""
        shown: list[facts.Fact] = []
        if isinstance(answer, Completed):
            reason, id_ = answer.stop_reason, answer.request_id
            shown += [
                facts.AssistantMessage(made.answer, reason, made.usage, id_),
                facts.RequestPaid(made.cost_usd, made.cost_usd),
            ]
            if reason == "max_tokens":
                shown.append(Notice("The answer was cut off at the output limit."))
        if failure is not None:
            kind = made.error_class or "unknown"
            shown.append(facts.ErrorRaised(kind, failure.message, True, failure.hint))
        outcome = "done" if failure is None else "failed"
        shown.append(facts.TurnFinished(outcome, made.usage, made.cost_usd))
        # the same events as for an agent's turn, so that one reader serves both
        for event in shown:
            self._publish(FromAgent(task.index, event))
        self._publish(
            TaskFinished(
                task.index,
                task.status,
                None,
                task.attempts,
                task.error_class,
                made.message,
                task.seconds,
                task.usage,
                task.cost_usd,
            )
        )
        if failure is None and task.log:
            self._say(f"[{task.index + 1}] answer: {task.log}")

    # Saying

    def _price(self, model: str) -> ModelPrice | None:
        price = price_of(model, self._plan.launch.config.prices)
        return price.in_batch() if price else None

    def _check_killed(self, state: RunState | None) -> None:
        """Refuse to begin beside what a killed run of another kind left in the files."""
        task = next((t for t in state.tasks if t.status == "running"), None) if state else None
        if task is not None:
            raise UsageError(
                f"Task {task.index + 1} was running when the last run died.",
                hint="Run it once without --batch-api first: that restores its files.",
            )

    def _announce(self, state: RunState) -> None:
        done = state.counts().get("completed", 0)
        boot = self._plan.boot.shown
        file = str(self._plan.task_file)
        self._publish(RunStarted(file, len(state.tasks), done, boot, self._plan.isolation.name))

    def _say_what_goes_on(self, batch: TaskBatch | None) -> None:
        """Say what becomes of a batch whose results this run has not taken."""
        if batch is None:
            return
        what = f"{batch.id} continues at the server" if batch.id else "The batch may have been sent"
        file = shorten(self._plan.task_file)
        self._say(f"{what}. Get its answers with: holdfast run {file} --batch-api")

    def _say(self, text: str) -> None:
        self._publish(Notice(text))


def _write(log: Path, text: str) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    replace_file(log, text.encode("utf-8", "replace"))
