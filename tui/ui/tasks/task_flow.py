"""/tasks in the chat: show this folder's run, continue it, or start one."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.app.dialog_data import YesNoQuestion
from tui.app.options.arguments import Options
from tui.app.services import SessionChoice
from tui.batch.command import placed
from tui.batch.plan import RunPlan, plan
from tui.batch.report import commit_words
from tui.batch.resumption import first_record_of
from tui.batch.run_store import OfflineRun
from tui.batch.state import TaskState
from tui.batch.taskfile import parse
from tui.core.errors import StorageError, UsageError
from tui.core.files import read_small
from tui.core.formatting import plural
from tui.session import catalog
from tui.session.reader import read
from tui.ui.screens.picker import TaskFileRow, TaskPicker
from tui.ui.screens.tasks import TasksScreen
from tui.ui.tasks.run import RunOnScreen
from tui.ui.tasks.run_signals import RunSignals
from tui.ui.widgets.bars import HeaderState
from tui.ui.widgets.questions import Confirmation

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend

_DEPTH: Final = 2
_FILES_MAX: Final = 40
_LOOKED_AT_MAX: Final = 2000
_FILE_MAX: Final = 1_000_000
_KEPT_APART: Final = {
    "git": "Each successful task becomes one commit; failed tasks are undone.",
    "jj": "Each successful task becomes one change; failed tasks are undone.",
    "none": "No repository here: changes made by failed tasks stay.",
}


async def show(frontend: ScreenFrontend) -> None:
    """Show the run of the folder. Raises UsageError if it is damaged."""
    run = FolderRun(frontend)
    await run.refresh()
    screen = TasksScreen(run, frontend.services.clock)
    await frontend.app.push_screen(screen)
    await screen.furnish()
    header = frontend.chat.header.state
    screen.header.state = HeaderState(folder=header.folder, branch=header.branch)


class FolderRun(OfflineRun):
    """The folder's run, shown over the chat."""

    begins = True

    def __init__(self, frontend: ScreenFrontend) -> None:
        self._frontend, self._services = frontend, frontend.services
        super().__init__(self._services.workspace)

    async def open_task(self, task: TaskState) -> None:
        """Leave the chat's session for the task's session."""
        folders = self._services.folders
        path = await asyncio.to_thread(catalog.resolve, task.session_id or "", folders)
        session = await asyncio.to_thread(read, path)
        message = first_record_of(session.branch, task.index)
        self._frontend.app.call_later(self._go_to, SessionChoice(path, message=message))

    async def _go_to(self, choice: SessionChoice) -> None:
        await self.leave()
        self._frontend.switch_session(choice)

    async def stop(self) -> None:
        await self.leave()

    async def leave(self) -> None:
        await self._frontend.app.pop_screen()

    async def begin(self, path: Path | None) -> None:
        """Work on a task file once the person has agreed. Runs in a worker of the screen.

        Raises:
            UsageError, CredentialsError: If the run cannot be planned.
        """
        app, services = self._frontend.app, self._services
        if self._frontend.conversation.busy:
            raise UsageError(
                "The agent is working.", hint="Wait until it is done, or stop it with Esc."
            )
        if path is None:
            rows = await asyncio.to_thread(task_files, services.workspace)
            path = await app.push_screen_wait(TaskPicker(services.workspace, rows))
        if path is None:
            return
        options = await asyncio.to_thread(placed, services.run_options(path))
        planned = await asyncio.to_thread(plan, options)
        if await app.push_screen_wait(Confirmation(_question(planned))):
            app.run_worker(_work(self._frontend, planned, options), group="run")


def _question(planned: RunPlan) -> YesNoQuestion:
    file = planned.file
    done = sum(task.mark == "x" for task in file.tasks)
    asks = (
        "Holdfast won't ask for permission."
        if planned.launch.elevated
        else "Holdfast asks about calls that no rule allows."
    )
    made = ""
    if planned.isolation.name == "git":
        made = f" Commits are made {commit_words(planned.launch.config.batch)}."
    left = len(file.not_taken)
    ignored = f" {plural(left, 'line')} ignored: almost a task, but not one." if left else ""
    return YesNoQuestion(
        f"Run {planned.task_file.name}?",
        f"{plural(len(file.tasks), 'task')}, {done} done, with {planned.models.first}."
        f" {_KEPT_APART[planned.isolation.name]}{made} {asks}{ignored}",
        yes="Run",
        no="Cancel",
    )


async def _work(frontend: ScreenFrontend, planned: RunPlan, options: Options) -> None:
    """Show the run on a screen of its own, in place of the one that showed its state."""
    await frontend.app.pop_screen()
    signals = RunSignals(frontend.terminal, frontend.notifier, frontend.log, planned.task_file.name)
    clock = frontend.services.clock
    run = RunOnScreen(frontend.app, planned, options, clock=clock, signals=signals)
    await frontend.app.push_screen(run.screen)
    await run.work_through()
    if frontend.app.screen is run.screen:
        await frontend.app.pop_screen()
    frontend.refresh()  # the terminal shows the session's title again
    if run.failure:
        frontend.say(run.failure.message, "error", hint=run.failure.hint)


def task_files(root: Path) -> list[TaskFileRow]:
    """Return the Markdown files near the top of a folder that contain tasks with checkboxes.
    Blocks."""
    rows: list[TaskFileRow] = []
    count = 0
    for folder, names, files in os.walk(root):
        deep = len(Path(folder).relative_to(root).parts)
        names[:] = sorted(n for n in names if deep < _DEPTH and not n.startswith("."))
        for name in sorted(files):
            count += 1
            if count > _LOOKED_AT_MAX or len(rows) == _FILES_MAX:
                return rows
            if name.lower().endswith(".md") and (row := _row(Path(folder) / name)):
                rows.append(row)
    return rows


def _row(path: Path) -> TaskFileRow | None:
    try:
        data, _ = read_small(path, limit=_FILE_MAX)
    except (OSError, StorageError):
        return None
    boxes = [task for task in parse(data).tasks if task.mark]
    return TaskFileRow(path, len(boxes), sum(t.mark == "x" for t in boxes)) if boxes else None
