"""A replay at work: case after case, each in a folder and a session of its own, then judged.

For each run of a case, in this order; a kill at any moment loses at most the step that it came in:

    1. the checks are run on the files as they were when they were green, and on those of the
       prompt's start: red there, or green here, they say nothing, and the case is left out
    2. the folder is made, with the variation's AGENTS.md
    3. the prompt is one task of a run (`tui.batch.task_run`), in a session that begins with what
       was said before it
    4. the checks judge the folder
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tui.agent.launch import Launch
from tui.app.confined_program import ProgramStoppedError, StopSignal
from tui.batch.composition import TaskAgents
from tui.batch.events import BatchEvent
from tui.batch.group_session import GroupSession
from tui.batch.isolation import Isolation
from tui.batch.replay.checks import in_words, run_checks
from tui.batch.replay.folders import lent, put_files, put_instructions, remove_drafts
from tui.batch.replay.history import begin_session
from tui.batch.replay.recorded import (
    NotReplayableError,
    RecordedPrompt,
    figures,
    relocated,
    source_of,
)
from tui.batch.replay.state import CheckResult, Figures, ReplayState, Verdict, save
from tui.batch.replay.suite import Case
from tui.batch.resumption import first_record_of
from tui.batch.run_context import RunContext, RunSetup
from tui.batch.run_policy import ModelPair, RunLimits
from tui.batch.run_store import RunStore
from tui.batch.state import RunFolder, RunState, TaskState
from tui.batch.task_run import TaskRun
from tui.batch.task_worktrees import TaskPlace, TaskWorktrees
from tui.core import dataclass as core
from tui.core.clock import Clock
from tui.core.dataclass import dataclass
from tui.core.errors import SessionError
from tui.core.paths import Folders
from tui.core.redaction import mask
from tui.permissions.gate import RulesOnly
from tui.session import catalog
from tui.session.checkpoints.scratch import remove_tree
from tui.session.checkpoints.store import CheckpointStore, store_of
from tui.session.reader import read
from tui.session.records import Record
from tui.session.session import Session


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """A replay before it begins. `folder` holds its state and the folders of its `cases`, which are
    those of `state` in the same order; `suite` is the file. `at_once` are worked on at a time."""

    launch: Launch
    suite: Path
    folder: Path
    cases: tuple[Case, ...]
    state: ReplayState
    stops: RunLimits
    at_once: int = 1


class ReplayRun:
    """Works through a replay. `stop` may be called meanwhile; `reason` is then why it ended before
    each case had a verdict, "" where it did not."""

    def __init__(
        self, planned: ReplayPlan, publish: Callable[[BatchEvent], None], clock: Clock
    ) -> None:
        self.state = planned.state
        self._plan, self._clock = planned, clock
        launch = planned.launch
        self._agents = _Agents(launch, RulesOnly(), clock, planned.stops.cost_usd)
        self._run = RunContext(
            RunSetup(
                task_file=planned.suite,
                target=planned.folder,
                isolation=Isolation(),
                worktrees=TaskWorktrees(planned.folder, planned.suite),
                agents=self._agents,
                models=ModelPair(launch.model),
                clock=clock,
                publish=publish,
                batch=launch.config.batch,
                threshold=launch.config.compaction.threshold,
                stops=planned.stops,
                at_once=planned.at_once,
                recorded=True,
                prices=launch.config.prices,
                folders=launch.folders,
            ),
            self._cancel_others,
        )
        self._agents.context = self._run
        self._groups: dict[int, GroupSession] = {}
        self._stopped = StopSignal()
        self._saving = asyncio.Lock()
        self._verifying = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._untold: dict[str, str] = {}
        """Why the checks of a case tell nothing, "" where they do, once that is known."""

    async def run(self) -> ReplayState:
        """Give each case its verdict; returns the state. Goes on where an earlier run ended.

        Raises UsageError where another one is at work on it, StorageError where its state cannot be
        saved, SandboxError where checks can't be confined.
        """
        folder = RunFolder(self._plan.folder)
        with folder.locked():
            state = await asyncio.to_thread(folder.load) or self._begun()
            store = RunStore(self._plan.suite, folder, state, self._run.say, marks=False)
            self._run.book = store
            await asyncio.to_thread(folder.save, state)
            await asyncio.to_thread(remove_drafts, self._plan.folder)
            for index, case in enumerate(self.state.cases):
                self._count_cut_off(index, case.cut_off)
            waiting = (n for n, case in enumerate(self.state.cases) if not case.verdict)
            try:
                await self._all([self._work(waiting, store) for _ in range(self._plan.at_once)])
            finally:
                await self._agents.close()
        return self.state

    async def _all(self, work: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Do several things at the same time. If one of them raises, the others are stopped."""
        tasks = [asyncio.create_task(one) for one in work]
        _, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        if others:
            self.stop()
            await asyncio.wait(others)
        for task in tasks:
            task.result()

    async def _work(self, waiting: Iterator[int], store: RunStore) -> None:
        """Take up one case after the other."""
        for index in waiting:
            if self.reason:
                return
            try:
                await self._case(index, self._plan.cases[index], store)
            except ProgramStoppedError:
                return  # by `stop`: the case begins again the next time

    def stop(self) -> None:
        """End the replay now; the cases that are running begin again the next time."""
        self._run.stop()
        self._stopped.set()
        for group in self._groups.values():
            group.cancel()

    def _cancel_others(self, index: int) -> None:
        """Stop what runs beside a case, which may be done with this answer."""
        for other, group in self._groups.items():
            if other != index:
                group.cancel()

    @property
    def stopping(self) -> bool:
        """True if it was stopped."""
        return self._run.stopping

    @property
    def fatal_class(self) -> str | None:
        """The class of the error that no other case would survive; None without one."""
        return self._run.fatal_class

    @property
    def reason(self) -> str:
        """The reason why cases are left; "" where none is, or nothing is in the way."""
        book = self._run.book
        if self.state.is_over or book is None:
            return ""
        if self.stopping:
            return "interrupted"
        return self._run.fatal or self._plan.stops.reached(
            spent_usd=None if book.spent_usd is None else self._run.spent_usd,
            failures=self._run.failures,
            elapsed_s=self._run.elapsed_s,
        )

    @property
    def over_cost(self) -> float | None:
        """The USD that were spent, where that is the limit or more and cases are left."""
        book, most = self._run.book, self._plan.stops.cost_usd
        if self.state.is_over or book is None or most is None:
            return None
        return spent if (spent := self._run.spent_usd) >= most else None

    def _begun(self) -> RunState:
        state = self._plan.state
        return RunState(
            task_file=state.suite,
            sha256=state.sha256,
            started_at=state.started_at,
            tasks=tuple(
                TaskState(index=index, group=state.label(index), section=index, task=case.text)
                for index, case in enumerate(self._plan.cases)
            ),
        )

    async def _case(self, index: int, case: Case, store: RunStore) -> None:
        """Give a case its verdict, unless something ends the replay before."""
        folder, home = self._plan.folder / f"{index + 1:03}", self._plan.launch.folders
        try:
            if folder.is_symlink():  # nobody of ours has put it there
                await asyncio.to_thread(remove_tree, folder)
            source = await asyncio.to_thread(source_of, case, home)
            self._agents.cases[folder] = source, case
            task = store.task(index)
            if task.status == "running":
                there = await asyncio.to_thread(folder.is_dir)
                place = TaskPlace(folder, Isolation()) if there else None
                said = await store.take_over(task, place, home, self._clock)
                self._run.say(f"{task.group} was running when the last replay died{said}")
            task = await self._worked(index, case, source, folder, store)
        except NotReplayableError as error:
            await self._rest(index, "left out", error.message)
            return
        if task.status == "failed" and self._run.fatal:
            await store.save(replace(task, status="pending"))  # as every other case would
        elif task.status in {"failed", "completed"}:
            await self._judge(task, case, source, folder)

    async def _worked(
        self, index: int, case: Case, source: RecordedPrompt, folder: Path, store: RunStore
    ) -> TaskState:
        """The task of a case, once its turn has come to rest. Raises NotReplayableError."""
        task = store.task(index)
        if task.status == "completed":
            return task
        if index not in store.resumptions:
            await self._note_cut_off(task)
            await self._prepare(index, case, source, folder)
            text = relocated(case.text, str(source.root), str(folder))
            task = store.note(replace(task, status="pending", partial_context=None, task=text))
        place = TaskPlace(folder, Isolation())
        group = GroupSession(self._run, place, self._run.setup.models)
        self._groups[index] = group
        try:
            await TaskRun(self._run, store, task, group).run()
        finally:
            del self._groups[index]
            await group.leave()
        return store.task(index)

    async def _note_cut_off(self, task: TaskState) -> None:
        """Keep what an attempt has cost that begins again."""
        known = self.state.cases[task.index].cut_off
        if not task.session_id or task.session_id in known:
            return
        folders, prices = self._plan.launch.folders, self._plan.launch.config.prices
        turn = await asyncio.to_thread(_turn_of, task, folders)
        lost = {task.session_id: figures(turn, prices)}
        await self._save(task.index, cut_off={**known, **lost})
        self._count_cut_off(task.index, lost)

    def _count_cut_off(self, index: int, lost: Mapping[str, Figures]) -> None:
        """Let attempts that were cut off count towards the limit of cost."""
        for one in lost.values():
            self._run.paid(-1 - index, one.cost_usd or 0.0)

    # The files

    async def _prepare(self, index: int, case: Case, source: RecordedPrompt, folder: Path) -> None:
        """Make the folder of a case. Raises NotReplayableError where its checks tell nothing."""
        if not case.checks:
            raise NotReplayableError("It has no checks: name commands that judge it in the suite.")
        store = store_of(self._plan.launch.folders, source.root)
        try:
            async with self._verifying[case.name]:
                if case.name not in self._untold:
                    place = self._plan.folder / f"check-{index + 1:03}"
                    self._untold[case.name] = await self._why_untold(case, source, store, place)
            if why := self._untold[case.name]:
                raise NotReplayableError(why)
            await asyncio.to_thread(put_files, store, case.before, folder, case.linked)
        finally:
            await asyncio.to_thread(store.close)
        text = self._plan.state.variation.agents_md
        if text is not None:
            await asyncio.to_thread(put_instructions, folder, text)

    async def _why_untold(
        self, case: Case, source: RecordedPrompt, store: CheckpointStore, place: Path
    ) -> str:
        """Say why the checks tell nothing, unless they are green with the files of then, and one of
        them is red with those of the prompt's start. Raises NotReplayableError."""
        then = case.after or case.before
        if red := in_words(await self._checked(case, source, store, then, place)):
            needs = f" Not in the checkpoint: {', '.join(case.missing)}." if case.missing else ""
            return f"No longer green, even with the files of then: {red}.{needs}"
        if not in_words(await self._checked(case, source, store, case.before, place)):
            return "Already green before the prompt: its checks don't judge the work."
        return ""

    async def _checked(
        self,
        case: Case,
        source: RecordedPrompt,
        store: CheckpointStore,
        checkpoint: str,
        folder: Path,
    ) -> Sequence[CheckResult]:
        """Run the checks of a case on the files of a checkpoint, in a folder of their own."""
        self._agents.cases[folder] = source, case
        try:
            await asyncio.to_thread(put_files, store, checkpoint, folder, case.linked)
            return await self._run_checks(case, folder)
        finally:
            await asyncio.to_thread(remove_tree, folder)

    async def _run_checks(self, case: Case, folder: Path) -> Sequence[CheckResult]:
        launch = self._agents.launch_in(folder)
        return await asyncio.to_thread(run_checks, case.checks, launch, self._clock, self._stopped)

    # The verdict

    async def _judge(
        self, task: TaskState, case: Case, source: RecordedPrompt, folder: Path
    ) -> None:
        """Judge what a turn has made."""
        folders, prices = self._plan.launch.folders, self._plan.launch.config.prices
        turn = await asyncio.to_thread(_turn_of, task, folders)
        changes: dict[str, Any] = {
            "session_id": task.session_id or "",
            "folder": str(folder),
            "then": figures(source.turn, prices),
            "now": replace(figures(turn, prices), seconds=task.seconds),
        }
        if task.status == "failed":
            kind = f" ({task.error_class})" if task.error_class else ""
            why = (task.message or "The turn failed").rstrip(".")
            await self._rest(task.index, "failed", f"{why}{kind}.", **changes)
            return
        results = await self._run_checks(case, folder)
        red = in_words(results)
        verdict, reason = ("unsolved", f"Red: {red}.") if red else ("solved", "")
        await self._rest(task.index, verdict, reason, checks=tuple(results), **changes)

    async def _rest(self, index: int, verdict: Verdict, reason: str, **changes: Any) -> None:
        """Save the verdict on a case, then say it."""
        reason = mask(reason)[0]
        await self._save(index, verdict=verdict, reason=reason, **changes)
        told = f"{verdict}. {reason}".rstrip(". ")
        self._run.say(f"  {self.state.label(index)}: {told}")

    async def _save(self, index: int, **changes: Any) -> None:
        self.state = self.state.with_case(index, **changes)
        async with self._saving:
            await asyncio.to_thread(save, self._plan.folder, self.state)


class _Agents(TaskAgents):
    """Makes the agents of a replay, each with MCP servers of its own: shared ones would work in the
    original's folder. `cases` are those of its folders, each with its source."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.cases: dict[Path, tuple[RecordedPrompt, Case]] = {}

    def new_session(self, launch: Launch) -> Session:
        """The session of a case: what was said before its prompt."""
        folder = launch.workspace.root
        source, case = self.cases[folder]
        home = launch.folders
        path = begin_session(source, case.name, folder, folders=home, clock=self.clock)
        return Session.open(path, clock=self.clock)

    def launch_in(self, folder: Path) -> Launch:
        """The launch in the folder of a case: what that links to can be read, full outputs stay in
        it, and no file tool ever leaves it, so that the original is as it was."""
        launch = super().launch_in(folder)
        source, case = self.cases[folder]
        found = (lent(source.root, name) for name in case.linked)
        readable = tuple(place for place in found if place is not None)
        workspace = core.replace(
            launch.workspace, extra=(), ceiling=folder, readable=readable, spare=None
        )
        return core.replace(launch, workspace=workspace)


def _turn_of(task: TaskState, folders: Folders) -> Sequence[Record]:
    """The records of a task's turn; none where its session can't be read."""
    try:
        records = read(catalog.resolve(task.session_id or "", folders)).branch
    except SessionError:
        return ()
    first = first_record_of(records, task.index)
    return records[next((n for n, one in enumerate(records) if one.id == first), 0) :]
