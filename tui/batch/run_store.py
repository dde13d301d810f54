"""The state of a run's tasks: saved at each change, with checkboxes set in the task file.

`RunStore` is for the program that works on the run, `OfflineRun` for one that only shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tui.batch.isolation import Isolation
from tui.batch.leftovers import end_commands
from tui.batch.prompts import merge_message
from tui.batch.report import one_line
from tui.batch.resumption import Resumption, resumption_of
from tui.batch.state import (
    PARTIAL_CHARS,
    PlacedRun,
    RunFolder,
    RunState,
    TaskBatch,
    TaskState,
    begin,
    edited,
    places_in,
    with_added,
)
from tui.batch.task_worktrees import TaskPlace, TaskWorktrees
from tui.batch.taskfile import Mark, TaskFile, parse, with_marks
from tui.core.clock import Clock, timestamp
from tui.core.dataclass import dataclass, field
from tui.core.errors import StorageError, UsageError, os_error_as
from tui.core.files import read_small, replace_file
from tui.core.formatting import plural
from tui.core.git.door import GitError
from tui.core.paths import Folders, shorten

FILE_MAX: Final = 10_000_000
_NAMED, _SHOWN = 5, 80
_MARKS: Final[dict[str, Mark]] = {
    "completed": "x",
    "failed": "!",
    "interrupted": "~",
    "pending": " ",
    "unmerged": "~",
    "running": " ",
}


@dataclass(slots=True)
class RunStore:
    """Keeps the state of a run of `task_file`. `say` takes lines for the person.

    Use `opened` to make one. What is saved is saved before the call returns. `marks`: the tasks
    have checkboxes in their file.
    """

    task_file: Path
    folder: RunFolder
    state: RunState
    say: Callable[[str], None]
    resumptions: dict[int, Resumption] = field(default_factory=dict[int, Resumption])
    """The tasks that continue where a killed run was, until they are taken up."""
    marks: bool = True
    _saving: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    async def opened(
        cls,
        task_file: Path,
        folder: RunFolder,
        isolation: Isolation,
        worktrees: TaskWorktrees,
        *,
        clock: Clock,
        say: Callable[[str], None],
        opened: Callable[[RunState], None],
        folders: Folders,
        resumes: bool = True,
    ) -> RunStore:
        """Continue the run in the folder, or begin one; `opened` is called with its state.

        A task that was running when the last run was killed continues where it was, unless it was
        in a worktree, or not `resumes`: others work on the tasks. Where it can't,
        the commands that it left are ended, the files that it had changed are put back, and it
        becomes interrupted. Raises UsageError if the run cannot begin, StorageError if it cannot be
        saved.
        """
        now = timestamp(clock.now())
        file = await asyncio.to_thread(read_tasks, task_file)
        state = await asyncio.to_thread(folder.load_for, task_file, file)
        if state is None:
            await asyncio.to_thread(isolation.check)
            place = await asyncio.to_thread(folder.put_away)
            store = cls(task_file, folder, begin(task_file, file, now=now), say)
            opened(store.state)
            if place is not None:
                say(f"The previous run here was complete; it is kept in {shorten(place)}.")
        else:
            store = cls(task_file, folder, state, say)
            opened(state)
            elsewhere = state.placed.waiting if state.placed else frozenset[int]()
            for task in state.tasks:
                if task.status != "running" or task.index in elsewhere:
                    continue
                worked: TaskPlace | None = TaskPlace(folder.target, isolation)
                if task.worktree:
                    worked = await asyncio.to_thread(worktrees.existing, task.worktree)
                try:
                    result = await store.take_over(task, worked, folders, clock, resumes=resumes)
                finally:
                    if worked is not None:
                        worked.leave()
                say(f"Task {task.index + 1} was running when the last run died{result}")
            await store._conclude_merges(worktrees)
            if not store.resumptions:
                await asyncio.to_thread(isolation.check)
        for line in not_taken(file):
            say(line)
        await asyncio.to_thread(folder.save, store.state)
        if any(task.session_id for task in store.state.tasks):  # a kill may have come between
            await asyncio.to_thread(store._mark, *store.state.tasks)
        return store

    async def take_over(
        self,
        task: TaskState,
        place: TaskPlace | None,
        folders: Folders,
        clock: Clock,
        *,
        resumes: bool = True,
    ) -> str:
        """Continue a task that a killed run was at, else make it interrupted, with its commands
        ended and its files put back. Returns a report of it, to follow the task's name."""
        resumed = await self._resumed(task, place, folders) if resumes else ""
        return resumed or await self._recovered(task, place, folders, clock)

    async def _resumed(self, task: TaskState, place: TaskPlace | None, folders: Folders) -> str:
        """Continue a task where it was. Returns a report of it, "" where it can't."""
        if place is None or place.isolation.name == "batch" or task.worktree:
            return ""
        resumption = await asyncio.to_thread(resumption_of, task, folders, place.folder)
        if resumption is None or not await asyncio.to_thread(place.isolation.resume):
            return ""
        self.resumptions[task.index] = resumption
        return f", {resumption.words}"

    async def _conclude_merges(self, worktrees: TaskWorktrees) -> None:
        """Commit a merge that the last run was at when it was killed."""
        for task in self.state.tasks:
            if task.status == "unmerged" and task.worktree and task.change:
                message = merge_message(task.index, task.task)
                with suppress(GitError):  # `check` says what is in the way
                    if await asyncio.to_thread(worktrees.conclude, task.change, message):
                        self.say(f"The merge of task {task.index + 1} was cut off; it is done now.")

    async def _recovered(
        self, task: TaskState, place: TaskPlace | None, folders: Folders, clock: Clock
    ) -> str:
        """Make a task interrupted, with its commands ended and its files as they were before.
        Returns a report of it."""
        sentence = "."
        async for command in end_commands(
            task.session_id or "", folders, self.folder.target, clock
        ):
            sentence += f" Its command was still running and has been stopped: {command}."
        output = await asyncio.to_thread(self.logged, task)
        now = timestamp(clock.now())
        task = replace(task, status="interrupted", interrupted_at=now, partial_context=output)
        self.state = self.state.with_task(task)
        label = self.label(task)
        kept = await asyncio.to_thread(place.isolation.recover, label) if place else ""
        return f"{sentence} Its changes are kept in {kept}." if kept else sentence

    def is_to_do(self, task: TaskState) -> bool:
        """True if a task is to be run."""
        return task.is_to_do or task.index in self.resumptions

    @property
    def spent_usd(self) -> float | None:
        """The cost of all attempts; None as soon as one has no price."""
        costs = [task.cost_usd for task in self.state.tasks if task.attempts]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def task(self, index: int) -> TaskState:
        return self.state.tasks[index]

    def next_index(self, skipped: Collection[int]) -> int | None:
        """The first task to be done, in the order of the file, but first those that continue
        where they were; None when none is left."""
        wanted = [task.index for task in self.state.tasks if self.is_to_do(task)]
        wanted.sort(key=lambda index: index not in self.resumptions)
        return next((index for index in wanted if index not in skipped), None)

    def worktree_of(self, task: TaskState, group: Collection[TaskState]) -> str:
        """The name of the worktree for what a group has done from this task on: the one that has
        something of it to be merged, else one of a name that no other group has."""
        names = (one.worktree for one in group if one.status == "unmerged")
        name = f"task-{task.index + 1}-{self._began}"
        taken = {other.worktree for other in self.state.tasks}
        while name in taken:
            name += "b"
        return next(filter(None, names), name)

    def more_in_group(self, task: TaskState) -> bool:
        """True if a task of the same group is to be done after this one."""
        later = self.state.tasks[task.index + 1 :]
        return any(other.section == task.section and self.is_to_do(other) for other in later)

    def note(self, task: TaskState) -> TaskState:
        """Set the state of a task in memory; the next save writes it."""
        self.state = self.state.with_task(task)
        return task

    async def save(self, task: TaskState) -> TaskState:
        """Set and save the state of a task. Raises StorageError; it is then in memory only."""
        self.note(task)
        async with self._saving:
            await asyncio.to_thread(self.folder.save, self.state)
        return task

    async def rest(self, task: TaskState) -> TaskState:
        """Save the final state of a task, and set its checkbox."""
        await self.save(task)
        async with self._saving:
            await asyncio.to_thread(self._mark, task)
        return task

    async def note_batch(self, batch: TaskBatch | None) -> None:
        """Save which message batch is waited for; None for none."""
        self.state = replace(self.state, batch=batch)
        async with self._saving:
            await asyncio.to_thread(self.folder.save, self.state)

    async def note_placed(self, placed: PlacedRun | None) -> None:
        """Save where the tasks are worked on; None for here."""
        self.state = replace(self.state, placed=placed)
        async with self._saving:
            await asyncio.to_thread(self.folder.save, self.state)

    async def remove_worktrees(
        self, worktrees: TaskWorktrees, wanted: Callable[[TaskState], bool]
    ) -> None:
        """Remove the worktrees of the `wanted` tasks, as far as nothing is lost with them. What has
        to be merged stays in them; any other reason is told."""
        waits = {task.worktree for task in self.state.tasks if task.status == "unmerged"}
        names = {task.worktree for task in self.state.tasks if wanted(task)}
        for name in sorted(filter(None, names - waits)):
            if refusal := await asyncio.to_thread(worktrees.leave, name):
                self.say(refusal)
                continue
            for task in self.state.tasks:
                if task.worktree == name:
                    await self.save(replace(task, worktree=None))

    async def take_up_failed(self, index: int | None = None) -> None:
        """Make every failed task pending again, or one of them."""
        for task in self.state.tasks:
            if task.status == "failed" and index in {None, task.index}:
                await self.rest(replace(task, status="pending", attempts=0))

    async def edit(self, data: bytes, *, running: Collection[int] = ()) -> None:
        """Use a task file that was edited on the screen from now on.

        Raises UsageError for a file without tasks, and for a change of a task that is running or
        waits to be merged, or of one before it.
        """
        file = parse(data)
        waits = [task.index for task in self.state.tasks if task.status == "unmerged"]
        begun = max((*running, *waits), default=-1) + 1
        same = [(task.section, task.group, task.text) for task in file.tasks[:begun]]
        had = [(t.section, t.group, t.task) for t in self.state.tasks[:begun]]
        if not file.tasks or same != had:
            raise UsageError(
                "Only tasks after those that run or have to be merged can be edited."
                if waits
                else "Only tasks after the running one can be edited.",
                hint="Pause the run first.",
            )
        self.state = edited(self.state, file)
        async with self._saving:
            with os_error_as(StorageError, f"Can't save {self.task_file.name}"):
                await asyncio.to_thread(replace_file, self.task_file, data)
            await asyncio.to_thread(self.folder.save, self.state)

    async def take_up_added(self) -> None:
        """Take over tasks that somebody has added to the task file while the run is at work, and
        no task is being worked on."""
        try:
            file = await asyncio.to_thread(read_tasks, self.task_file)
        except UsageError:
            return
        if file.sha256 == self.state.sha256:
            return
        state = with_added(self.state, file)
        if state is None:
            return  # `_mark` says that it was changed
        added = len(state.tasks) - len(self.state.tasks)
        self.state = state
        await asyncio.to_thread(self.folder.save, state)
        self.say(f"{self.task_file.name} has {plural(added, 'more task')}.")

    def label(self, task: TaskState) -> str:
        """The name under which the files of an attempt are kept."""
        return f"{self._began}/task-{task.index + 1}-attempt-{task.attempts}"

    @property
    def _began(self) -> str:
        return "".join(filter(str.isdigit, self.state.started_at))[:14]

    def logged(self, task: TaskState) -> str:
        """The end of a task's log, for one that was killed. Blocks."""
        if not task.log:
            return ""
        try:
            data, _ = read_small(self.folder.target / task.log, limit=FILE_MAX)
        except OSError:
            return ""
        return data.decode("utf-8", "replace")[-PARTIAL_CHARS:]

    def _mark(self, *tasks: TaskState) -> None:
        """Set the checkboxes of tasks. A task file that lacks one of the run's is left alone."""
        if not self.marks:
            return
        path = self.task_file
        try:
            data, _ = read_small(path, limit=FILE_MAX)
            places = places_in(parse(data), self.state)
            if places is None:
                self.say(
                    f"{path.name} has changed in the meantime: its checkboxes stay as they are."
                )
                return
            marked = with_marks(data, {places[task.index]: _MARKS[task.status] for task in tasks})
            if marked != data:
                replace_file(path, marked)
        except OSError as error:
            self.say(f"Can't mark {path.name}: {error.strerror or error}.")


def read_tasks(path: Path) -> TaskFile:
    """The task file at `path`. Blocks. Raises UsageError where it cannot be read or is empty."""
    hint = "Name a Markdown file with one line `- what to do` per task."
    with os_error_as(UsageError, f"Can't read the task file {path}", hint=hint):
        data, _ = read_small(path, limit=FILE_MAX)
    file = parse(data)
    if not file.tasks:
        raise UsageError(f"No tasks in {path}.", hint="A task is a line that starts with `- `.")
    return file


def not_taken(file: TaskFile) -> list[str]:
    """Describe, in lines for the person, what looks like a task in a task file and was taken as
    none."""
    lines = [
        f"Line {number + 1} was not taken as a task: {one_line(text, _SHOWN)}"
        for number, text in file.not_taken[:_NAMED]
    ]
    if more := len(file.not_taken) - _NAMED:
        lines += [f"… and {plural(more, 'more line')} like that."] if more > 0 else []
    hint = "A task starts with `- ` or `* [ ] ` at the start of its line."
    return [*lines, hint] if lines else []


class OfflineRun:
    """The run of a folder, shown and changed while nobody works on it.

    `state` is as of the last `refresh`, None if there is no run. Changes raise UsageError while
    another program works on it, StorageError if they cannot be saved.
    """

    live = False
    pausing = False
    placement = None
    heading = "conversation"
    skipped: frozenset[int] = frozenset()

    def __init__(self, target: Path) -> None:
        self._folder = RunFolder(target)
        self.state: RunState | None = None

    @property
    def running(self) -> tuple[int, ...]:
        """The tasks that another program works on, or worked on when it was killed."""
        tasks = self.state.tasks if self.state else ()
        return tuple(task.index for task in tasks if task.status == "running")

    async def refresh(self) -> None:
        """Read the state again. Raises UsageError for a damaged one."""
        self.state = await asyncio.to_thread(self._folder.load)

    def pause(self) -> None:
        """There is nothing to pause: whoever runs it has its own screen."""

    def skip(self, index: int) -> None:
        """As for `pause`."""

    async def redo(self, index: int) -> None:
        """Make a failed task pending: the next run takes it up."""
        with self._folder.locked():
            store = await self._book()
            await store.take_up_failed(index)
            self.state = store.state

    async def edit(self, data: bytes) -> None:
        """Take over an edited task file; the run continues with it."""
        with self._folder.locked():
            store = await self._book()
            await store.edit(data)
            self.state = store.state

    async def _book(self) -> RunStore:
        await self.refresh()
        if self.state is None:
            raise UsageError("There is no run here.", hint="Start one with: holdfast run TASKS.md")
        path = Path(self.state.task_file)
        return RunStore(path, self._folder, self.state, lambda _: None)
