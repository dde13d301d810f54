"""The queue of a run: a row for every task under the names of the groups."""

from __future__ import annotations

from collections.abc import Collection

from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.batch.state import RunState, TaskState
from tui.ui.screens.task_rows import group_row, task_row


class TaskQueue(OptionList):
    """Rows that did not change are left alone, and so is the cursor."""

    def __init__(self) -> None:
        super().__init__(id="queue", compact=True)
        self._names: list[tuple[int, str, str]] = []
        self._rows: dict[int, tuple[TaskState, bool, int]] = {}

    def show(self, state: RunState, skipped: Collection[int], width: int) -> None:
        """How the tasks stand, in rows of `width` cells."""
        names = [(task.section, task.group, task.task) for task in state.tasks]
        if names != self._names:
            self._names = names
            self._fill(state, width)
        for task in state.tasks:
            wanted = (task, task.index in skipped, width)
            if self._rows.get(task.index) != wanted:
                self._rows[task.index] = wanted
                row = task_row(task, width, skipped=wanted[1])
                self.replace_option_prompt(f"task-{task.index}", row)

    def follow(self, index: int) -> None:
        """Bring a task's row into view."""
        if index < len(self._names):
            self.highlighted = self.get_option_index(f"task-{index}")

    @property
    def at_cursor(self) -> int | None:
        """The index of the task under the cursor."""
        if self.highlighted is None:
            return None
        id_ = self.get_option_at_index(self.highlighted).id
        return int(id_.removeprefix("task-")) if id_ else None

    def _fill(self, state: RunState, width: int) -> None:
        at = self.at_cursor or 0
        self.clear_options()
        self._rows.clear()
        section = None
        options: list[Option] = []
        for task in state.tasks:
            if task.section != section:
                section = task.section
                options.append(Option(group_row(task.group), disabled=True))
            options.append(Option(task_row(task, width), id=f"task-{task.index}"))
        self.add_options(options)
        self.follow(min(at, len(state.tasks) - 1))
