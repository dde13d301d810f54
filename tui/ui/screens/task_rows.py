"""The queue of the tasks screen: its rows, and the line of totals."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.batch.report import UNCHANGED, cost_of
from tui.batch.state import RunState, TaskState, total_usage
from tui.core.dataclass import dataclass
from tui.core.formatting import duration, money, plural, tokens
from tui.core.messages import Usage
from tui.core.text_cleaning import one_line
from tui.ui.screens.table_screen import cell, whole_words

STATES: Final = {
    "pending": ("○", "$text-muted"),
    "running": ("●", "bold $text-primary"),
    "completed": ("✓", "$text-success"),
    "unmerged": ("◐", "$text-warning"),
    "failed": ("✗", "$text-error"),
    "interrupted": ("~", "$text-warning"),
    "skipped": ("»", "$text-muted"),
}
NARROW: Final = 100


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The progress of a run.

    `seconds` count from its start, `task_s` from the start of the task that has run longest.
    `wait_s` remain before attempt `attempt`. `ended` says why it is over, None while it continues;
    `skipped` are the tasks that will not be run.
    """

    live: bool = False
    seconds: float = 0.0
    task_s: float = 0.0
    wait_s: float = 0.0
    attempt: int = 0
    pausing: bool = False
    ended: str | None = None
    skipped: frozenset[int] = frozenset()


def task_row(task: TaskState, width: int, *, skipped: bool = False) -> Content:
    """Return one task in `width` cells."""
    name = "skipped" if skipped and task.status == "pending" else task.status
    glyph, style = STATES[name]
    begun = bool(task.attempts or task.usage)
    right = f"{UNCHANGED if task.unchanged else name:<11}"
    if width >= NARROW:
        used = tokens(Usage.from_json(task.usage).total) if task.usage else ""
        tries = f"{task.attempts}×" if begun else ""
        cost = money(task.cost_usd) if task.usage else ""
        took = duration(task.seconds) if task.seconds else ""
        right += f"{tries:>4}{used:>8}{cost:>9}{took:>13}"
    room = max(8, width - len(right) - 10)
    text = whole_words(one_line(task.task), room)
    return Content.assemble(
        (f"{task.index + 1:>4}  ", "$text-muted"),
        (f"{glyph} ", style),
        (cell(text, room), "$foreground" if name != "pending" else ""),
        "  ",
        (right, style if name != "completed" else "$text-muted"),
    )


def totals_line(state: RunState, pace: RunStatus, width: int) -> Content:
    """Return the run's progress, what happens next, what it used, and how long it may still take,
    as far as it fits in `width` cells."""
    counts = state.counts()
    tasks = state.tasks
    parts = [(f"{counts.get('completed', 0)}/{len(tasks)} done", "$text-success")]
    if failed := counts.get("failed", 0):
        parts.append((f"{failed} failed", "$text-error"))
    if apart := counts.get("unmerged", 0):
        parts.append((f"{apart} to be merged", "$text-warning"))
    if cut := counts.get("interrupted", 0):
        parts.append((f"{cut} interrupted", "$text-warning"))
    if pace.wait_s > 0:
        waits = f"waiting {pace.wait_s:.0f} s before attempt {pace.attempt}"
        parts.append((waits, "$text-warning"))
    if pace.pausing and pace.live:
        after = "these tasks" if counts.get("running", 0) > 1 else "this task"
        parts.append((f"pauses after {after}", "$text-warning"))
    if pace.ended is not None:
        ended = f"stopped early: {one_line(pace.ended)}" if pace.ended else "finished"
        parts.append((ended, "bold $text-warning" if pace.ended else "$text-success"))
    parts.append((f"{tokens(total_usage(tasks).total)} tokens", "$text-muted"))
    if (cost := cost_of(tasks)) is not None:
        parts.append((money(cost), "$text-muted"))
    if pace.seconds:
        parts.append((duration(pace.seconds), "$text-muted"))
    if pace.live and not pace.pausing and (eta := rest_s(tasks, pace)) is not None and eta >= 1:
        # The last facts give way first.
        parts.append((f"about {duration(eta)} left", "$text-muted"))
    while len(parts) > 1 and cell_len(" · ".join(text for text, _ in parts)) > width:
        parts.pop()
    return Content(" · ").join(Content.styled(*part) for part in parts)


def rest_s(tasks: Collection[TaskState], pace: RunStatus) -> float | None:
    """Estimate how long the remaining tasks will take, from the finished ones; None while unknown.

    A running task that has taken longer than the others raises the estimate for the rest; its own
    remaining time is then unknown, and while it is the last there is no estimate.
    """
    done = {"completed", "unmerged"}
    took = [task.seconds for task in tasks if task.status in done and task.seconds]
    if not took:
        return None
    each = sum(took) / len(took)
    remaining = sum(
        task.status in {"pending", "interrupted"} and task.index not in pace.skipped
        for task in tasks
    )
    running = sum(task.status == "running" for task in tasks)
    if running > 1:  # they work in parallel
        remaining, running = -(-remaining // running), 1
    if running and pace.task_s > each:
        return remaining * (sum(took) + pace.task_s) / (len(took) + 1) if remaining else None
    return remaining * each + (each - pace.task_s if running else 0.0)


def title_line(state: RunState | None) -> str:
    """Return the title over the queue."""
    if state is None:
        return "tasks"
    return f"tasks · {state.task_file.rsplit('/', 1)[-1]} · {plural(len(state.tasks), 'task')}"


class TaskQueue(OptionList):
    """Leaves unchanged rows, and the cursor, as they are."""

    def __init__(self) -> None:
        super().__init__(id="queue", compact=True)
        self._names: list[tuple[int, str, str]] = []
        self._rows: dict[int, tuple[TaskState, bool, int]] = {}

    def show(self, state: RunState, skipped: Collection[int], width: int) -> None:
        """Show the state of the tasks, in rows of `width` cells."""
        names = [(task.section, task.group, task.task) for task in state.tasks]
        if names != self._names:
            self._names = names
            self._fill(state, width)
        for task in state.tasks:
            drawn = (task, task.index in skipped, width)
            if self._rows.get(task.index) != drawn:
                self._rows[task.index] = drawn
                row = task_row(task, width, skipped=drawn[1])
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
                group = Content.styled(f"      {one_line(task.group)}", "bold $text-secondary")
                options.append(Option(group, disabled=True))
            options.append(Option(task_row(task, width), id=f"task-{task.index}"))
        self.add_options(options)
        self.follow(min(at, len(state.tasks) - 1))
