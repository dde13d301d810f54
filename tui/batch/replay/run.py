"""A replay at work: case after case, each in a folder and a session of its own, then judged.

For each case, in this order; a kill at any moment loses at most the step that it came in:

    1. the checks are run on the files as they were when they were green, and on those of the
       prompt's start: red there, or green here, they say nothing, and the case is left out
    2. the folder is made, with the variation's AGENTS.md
    3. the prompt is one task of a run (`tui.batch.task_run`), in a session that begins with what
       was said before it
    4. the checks judge the folder
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
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
from tui.batch.replay.folders import lent, put_files, put_instructions
from tui.batch.replay.history import begin_session
from tui.batch.replay.recorded import (
    NotReplayableError,
    RecordedPrompt,
    figures,
    relocated,
    source_of,
)
from tui.batch.replay.state import CheckResult, ReplayState, Verdict, save
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
    those of `state` in the same order; `suite` is the file."""

    launch: Launch
    suite: Path
    folder: Path
    cases: tuple[Case, ...]
    state: ReplayState
    stops: RunLimits


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
                recorded=True,
                prices=launch.config.prices,
                folders=launch.folders,
            ),
            lambda _: None,
        )
        self._agents.context = self._run
        self._group: GroupSession | None = None
        self._stopped = StopSignal()

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
            try:
                for index, case in enumerate(self._plan.cases):
                    if self.state.cases[index].verdict:
                        continue
                    if self.reason:
                        break
                    await self._case(index, case, store)
            except ProgramStoppedError:
                pass  # by `stop`: the case begins again the next time
            finally:
                await self._agents.close()
        return self.state

    def stop(self) -> None:
        """End the replay now; the case that is running begins again the next time."""
        self._run.stop()
        self._stopped.set()
        if self._group is not None:
            self._group.cancel()

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
        return self._run.fatal or self._run.reached_limit(book)

    def _begun(self) -> RunState:
        state = self._plan.state
        return RunState(
            task_file=state.suite,
            sha256=state.sha256,
            started_at=state.started_at,
            tasks=tuple(
                TaskState(index=index, group=case.name, section=index, task=case.text)
                for index, case in enumerate(self._plan.cases)
            ),
        )

    async def _case(self, index: int, case: Case, store: RunStore) -> None:
        """Give a case its verdict, unless something ends the replay before."""
        folder, home = self._plan.folder / f"{index + 1:03}", self._plan.launch.folders
        try:
            source = await asyncio.to_thread(source_of, case, home)
            self._agents.cases[folder] = source, case
            task = store.task(index)
            if task.status == "running":
                there = await asyncio.to_thread(folder.is_dir)
                place = TaskPlace(folder, Isolation()) if there else None
                said = await store.take_over(task, place, home, self._clock)
                self._run.say(f"{case.name} was running when the last replay died{said}")
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
            await self._prepare(case, source, folder)
            text = relocated(case.text, str(source.root), str(folder))
            task = store.note(replace(task, status="pending", partial_context=None, task=text))
        place = TaskPlace(folder, Isolation())
        self._group = GroupSession(self._run, place, self._run.setup.models, alone=True)
        try:
            await TaskRun(self._run, store, task, self._group).run()
        finally:
            await self._group.leave()
            self._group = None
        return store.task(index)

    # The files

    async def _prepare(self, case: Case, source: RecordedPrompt, folder: Path) -> None:
        """Make the folder of a case. Raises NotReplayableError where its checks tell nothing."""
        if not case.checks:
            raise NotReplayableError("It has no checks: name commands that judge it in the suite.")
        store = store_of(self._plan.launch.folders, source.root)
        try:
            await self._verify(case, source, store)
            await asyncio.to_thread(put_files, store, case.before, folder, case.linked)
        finally:
            await asyncio.to_thread(store.close)
        text = self._plan.state.variation.agents_md
        if text is not None:
            await asyncio.to_thread(put_instructions, folder, text)

    async def _verify(self, case: Case, source: RecordedPrompt, store: CheckpointStore) -> None:
        """Raise NotReplayableError unless the checks are green with the files of then, and one of
        them is red with those of the prompt's start."""
        if red := in_words(await self._checked(case, source, store, case.after or case.before)):
            needs = f" Not in the checkpoint: {', '.join(case.missing)}." if case.missing else ""
            raise NotReplayableError(f"No longer green, even with the files of then: {red}.{needs}")
        if not in_words(await self._checked(case, source, store, case.before)):
            raise NotReplayableError(
                "Already green before the prompt: its checks don't judge the work."
            )

    async def _checked(
        self, case: Case, source: RecordedPrompt, store: CheckpointStore, checkpoint: str
    ) -> Sequence[CheckResult]:
        """Run the checks of a case on the files of a checkpoint, in a folder of their own."""
        folder = self._plan.folder / "check"
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
        case = self.state.cases[index]
        self.state = self.state.with_case(replace(case, verdict=verdict, reason=reason, **changes))
        await asyncio.to_thread(save, self._plan.folder, self.state)
        self._run.say(f"  {case.name}: {f'{verdict}. {reason}'.rstrip('. ')}")


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
