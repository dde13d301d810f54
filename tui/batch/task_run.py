"""One task, attempted until it is done, given up or interrupted.

Every transition is saved before it is announced. A failure is answered by its class:

    rate_limit, network   wait, then continue in the same session: the work so far is kept
    timeout               the same, once
    context_overflow      a fresh session with a summary of the work, once
    auth                  the task fails, as every other would: the run stops
    unknown               a small model says whether another attempt, begun afresh, is worth it

A task that ends as failed or interrupted leaves the files as they were; its attempt is kept. One
that a killed run was at continues (`resumption`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from tui.agent.agent import Agent
from tui.agent.limits import session_cost
from tui.batch import prompts
from tui.batch.attempt import TaskAttempt, counted
from tui.batch.commit_hooks import HookRefusedError
from tui.batch.events import FromAgent, RetryDelayed, TaskStarted, finished
from tui.batch.group_session import GroupSession
from tui.batch.isolation import IsolationError
from tui.batch.resumption import Resumption, first_record_of
from tui.batch.run_context import RunContext
from tui.batch.run_policy import answer_to, class_of, cost_reached, switch_line, wait_line, wait_s
from tui.batch.run_store import RunStore
from tui.batch.state import TaskState
from tui.core.clock import timestamp
from tui.core.errors import HoldfastError
from tui.core.facts import Fact, RequestPaid, RequestSent, TaskBegun
from tui.provider.task_error_class import TaskClass


class TaskRun:
    """Works on one task of a run. `task` is its state."""

    def __init__(
        self, run: RunContext, book: RunStore, task: TaskState, group: GroupSession
    ) -> None:
        self._run, self._setup, self._book = run, run.setup, book
        self._group, self._isolation = group, group.place.isolation
        self._began = run.setup.clock.monotonic()
        self._seen: set[TaskClass] = set()
        self.task = task

    async def run(self) -> None:
        """Attempt it until it comes to rest."""
        resumption = self._book.resumptions.pop(self.task.index, None)
        prompt = "" if resumption else await self._begin()
        while True:
            made = await (self._resume(resumption) if resumption else self._attempt(prompt))
            resumption = None
            self._note(made)
            if made.outcome == "done":
                prompt = await self._completed(made)
                if prompt:
                    continue
                return None
            if made.outcome == "limit":
                self._heed_cost()
            if self._must_end():
                return await self._interrupted(made)
            again = await self._next_prompt(prompt, made)
            if again is None and not self._run.stopping:
                return await self._failed(made.message)
            if again is None or not await self._wait(made) or self._must_end():
                return await self._interrupted(made)
            prompt = again

    # Attempts

    async def _resume(self, resumption: Resumption) -> TaskAttempt:
        """Continue the attempt that a killed run was working on, as if nothing had happened."""
        task, group = self.task, self._group
        await group.leave()
        agent = await group.enter(task.section, resumption.path)
        of_session = (one for one in self._book.state.tasks if one.session_id == agent.session.id)
        group.cumulative = max(one.session_tokens for one in of_session)
        records = agent.session.records
        first = first_record_of(records, task.index)
        place = next(place for place, one in enumerate(records) if one.id == first)
        spent = session_cost(records[place:], self._setup.prices).session
        if not await asyncio.to_thread(self._isolation.resume):
            raise IsolationError("The files of a task were changed meanwhile.", hint="Run again.")
        self._announce(agent)
        for event in await agent.note("The last run died here; the task goes on."):
            self._publish(event)
        if resumption.answer:
            made = TaskAttempt("done", answer=resumption.answer, context=resumption.context)
            made.cost_usd = 0.0
        else:
            log, calls = self._setup.target / (task.log or ""), resumption.calls
            made = await group.attempt("", log=log, publish=self._publish, open_calls=calls)
        made.usage += spent.usage
        known = made.cost_usd is not None and spent.usd is not None
        made.cost_usd = (made.cost_usd or 0.0) + (spent.usd or 0.0) if known else None
        return made

    async def _attempt(self, prompt: str) -> TaskAttempt:
        await self._begin_attempt()
        return await self._send(prompt)

    async def _begin(self) -> str:
        """Leave the session of another group, or of an interrupted attempt. Returns the prompt."""
        task, group = self.task, self._group
        stopped_before = task.status == "interrupted"
        if group.section != task.section or stopped_before:
            await group.leave()
            group.summary = None  # it was of another group's work
        note = (task.partial_context or "") if stopped_before else ""
        prompt = prompts.first(task.task, partial=note, summary=group.summary)
        group.summary = None
        self.task = replace(
            task,
            attempts=0,
            usage={},
            cost_usd=0.0,
            error_class=None,
            change=None,
            unchanged=False,
        )
        await asyncio.to_thread(self._isolation.begin)
        return prompt

    async def _begin_attempt(self) -> None:
        """Save that an attempt runs, on the group's session."""
        task, model = self.task, self._group.models.current
        agent = await self._group.enter(task.section)
        if agent.models.current != model:
            agent.models.use(self._setup.agents.model_info(model))
        number = task.attempts + 1
        path = self._book.folder.log_of(task.index, number)
        agent.session.record(TaskBegun(task.index, task.group, task.task))
        self.task = await self._book.save(
            replace(
                task,
                status="running",
                attempts=number,
                session_id=agent.session.id,
                worktree=None,
                log=str(path.relative_to(self._setup.target)),
            )
        )
        self._announce(agent)

    def _announce(self, agent: Agent) -> None:
        """Say that an attempt runs."""
        task = self.task
        self._setup.publish(
            TaskStarted(task.index, task.group, task.task, task.attempts, agent.session.id)
        )
        for event in self._group.news():
            self._publish(event)

    async def _send(self, prompt: str) -> TaskAttempt:
        path = self._setup.target / (self.task.log or "")
        return await self._group.attempt(prompt, log=path, publish=self._publish)

    def _note(self, made: TaskAttempt, *, keep_class: bool = False) -> None:
        """Count what an attempt, or a question beside it, used; the next save carries it."""
        self._run.counted(self.task.index)
        self.task = self._book.note(counted(self.task, made, keep_class=keep_class))

    def _heed_cost(self) -> None:
        """An attempt reached a limit: where that is the run's limit of cost, the run ends."""
        most = self._setup.stops.cost_usd
        if most is not None and (self._book.spent_usd or 0.0) >= 0.99 * most:
            self._run.fatal = cost_reached(most)

    def _must_end(self) -> bool:
        """True if a task that is not done must end here: the next run resumes it."""
        return self._run.stopping or bool(self._run.fatal or self._run.reached_limit(self._book))

    # After a failed attempt

    async def _next_prompt(self, prompt: str, made: TaskAttempt) -> str | None:
        """Choose the prompt of the next attempt, "" to continue without one; None when there is
        none.

        `prompt` is the one of this attempt.
        """
        kind, reason = class_of(made), made.message or f"the turn ended as {made.outcome}"
        # An answer that nobody can read is paid for, and was asked for twice within the attempt.
        last = made.unreadable or self.task.attempts >= self._setup.batch.attempts
        answer = answer_to(kind, met_before=kind in self._seen, last=last)
        self._seen.add(kind)
        match answer:
            case "analyse" | "summarise" if self._setup.recorded:
                return None
            case "give_up":
                return None
            case "stop_run":
                self._run.fatal_class = made.error_class or kind
                self._run.fatal = f"{self._run.fatal_class}: every other task would fail too"
                return None
            case "analyse":
                return await self._begun_afresh(made, reason)
            case "summarise":
                self._say("  fresh session with a summary of the work so far")
                summary = await self._summarise()
                note = f"{summary}\n\nNOTE: {prompts.OVERFLOWED}"
                return prompts.first(self.task.task, summary=note)
            case "go_on":
                self._swap(made.error_class or kind)
                return "" if made.prompted else prompt

    async def _begun_afresh(self, made: TaskAttempt, reason: str) -> str | None:
        """After a failure that nobody knows: ask whether it is worth it, and undo what was done."""
        question = prompts.question(self.task.task, reason, made.output)
        asking = asyncio.ensure_future(self._setup.agents.ask(question))
        # the person may stop the run while the model thinks about the failure
        await self._run.or_stopped(asking)
        try:
            analysed = await asking
        except HoldfastError as error:
            self._say(f"  couldn't analyze the failure: {error.message}")
            return None
        except asyncio.CancelledError:
            if self._run.stopping:
                return None
            raise
        self._note(analysed, keep_class=True)
        analysis = prompts.read_analysis(analysed.answer)
        if not analysis.retry:
            self._say(f"  no retry: {analysis.reason or 'another attempt would fail too'}")
            return None
        self._say(f"  starting over: {analysis.reason or reason}")
        # another attempt must find the folder as the first one did
        await self._undo()
        await self._group.leave()
        if self._run.fatal:
            return None
        await asyncio.to_thread(self._isolation.begin)
        return prompts.HINT.format(
            reason=analysis.reason or reason, hint=analysis.hint or "none", task=self.task.task
        )

    def _swap(self, error_class: str) -> None:
        """The other model takes the next attempt, if that may help."""
        now = self._group.models
        after = now.after(error_class, last=False)
        if after != now:
            self._say(switch_line(now.current, after.current))
            self._group.models = after

    async def _wait(self, made: TaskAttempt) -> bool:
        """Wait before the next attempt. False if the run was stopped meanwhile."""
        seconds = wait_s(self.task.attempts, made.error_class or "unknown", self._setup.rng)
        self._say(wait_line(seconds))
        self._setup.publish(RetryDelayed(self.task.index, seconds, made.message))
        waiting = asyncio.ensure_future(self._setup.clock.sleep(seconds))
        await self._run.or_stopped(waiting)
        return not self._run.stopping

    # How it comes to rest

    async def _completed(self, made: TaskAttempt) -> str:
        """Commit what was done. Returns the prompt of another attempt if a hook of the project
        refuses that, "" once the task has come to rest."""
        message = prompts.commit_message(self.task.task)
        try:
            change = await asyncio.to_thread(self._isolation.keep, message)
        except HookRefusedError as error:
            self._say(f"  {error}")
            if self._must_end():
                await self._interrupted(made)
            elif self.task.attempts >= self._setup.batch.attempts:
                await self._failed(error.message)
            else:
                return prompts.refused(self.task.task, error.message)
            return ""
        except HoldfastError as error:
            self._run.fatal = str(error)
            self._say(f"  {error}")
            await self._rest(str(error), status="failed", error_class="unknown")
            await self._group.leave()
            return ""
        self._run.failures = 0
        self._group.models = self._group.models.restored()
        self._group.cumulative += made.context
        total = self._group.cumulative
        await self._rest(
            "",
            status="completed",
            change=change or None,
            unchanged=not change and self._isolation.name in {"git", "jj"},
            session_tokens=total,
        )
        await self._compact(made.context)
        return ""

    async def _failed(self, message: str) -> None:
        self._run.failures += 1
        self._group.models = self._group.models.restored()
        change = await self._undo()
        await self._rest(message, status="failed", change=change)
        await self._group.leave()

    async def _interrupted(self, made: TaskAttempt) -> None:
        """The person stopped the run: the end of the output is kept for the next one. Where the
        terminal was lost, everything stays as it is: the next run continues the task."""
        if self._run.leaving:
            await self._group.leave()
            return
        change = await self._undo()
        await self._rest(
            "interrupted",
            status="interrupted",
            interrupted_at=timestamp(self._setup.clock.now()),
            partial_context=made.output,
            error_class=None,
            change=change,
        )
        await self._group.leave()

    async def _rest(self, message: str, **changes: Any) -> None:
        """Save how the task came to rest, then announce it."""
        seconds = self._setup.clock.monotonic() - self._began
        task = replace(self.task, message=message or None, seconds=round(seconds, 3), **changes)
        self.task = await self._book.rest(task)
        await asyncio.to_thread(self._isolation.finish)
        self._setup.publish(finished(self.task))

    async def _undo(self) -> str | None:
        """Put the files back. Returns where the attempt is kept."""
        label = self._book.label(self.task)
        try:
            return await asyncio.to_thread(self._isolation.undo, label) or None
        except HoldfastError as error:
            self._run.fatal = str(error)
            self._say(f"  {error}")
            return None

    async def _compact(self, context: int) -> None:
        """Over the threshold, the group continues in a fresh session with a summary."""
        group = self._group
        cumulative = self._setup.batch.compaction_basis == "cumulative"
        used = group.cumulative if cumulative else context
        more = self._book.more_in_group(self.task)
        window = group.agent.models.window if group.agent else 0
        if used > self._setup.threshold * window and more:
            share = used * 100 // window
            self._say(f"  compaction: context at {share}%, starting fresh session with summary")
            group.summary = await self._summarise()

    async def _summarise(self) -> str:
        """A summary of the group's session, which is closed. The task's status stays."""
        if self._run.stopping:
            return prompts.NO_SUMMARY
        path = self._book.folder.log_of(self.task.index, "summary")
        summary, made = await self._group.summarise(log=path, publish=self._publish)
        self._note(made, keep_class=True)
        self.task = await self._book.save(self.task)
        return summary

    def _say(self, text: str) -> None:
        """A line for the person, with the task's number where others run beside it."""
        self._run.say(f"[{self.task.index + 1}] {text.strip()}" if self._run.parallel else text)

    def _publish(self, event: Fact) -> None:
        match event:
            case RequestPaid(usd):
                self._run.paid(self.task.index, usd or 0.0)
            case RequestSent() if self._run.parallel and self._run.fatal:
                self._group.cancel()  # the run has ended beside it
            case _:
                pass
        self._setup.publish(FromAgent(self.task.index, event))
