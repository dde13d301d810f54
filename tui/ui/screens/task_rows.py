"""The queue of the tasks screen: its rows, and the line of totals."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.batch.placement import RunPlacement, TaskPlacement
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
_UNDONE: Final = frozenset({"pending", "running", "interrupted"})


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


def task_row(
    task: TaskState, width: int, *, skipped: bool = False, place: TaskPlacement | None = None
) -> Content:
    """Return one task in `width` cells; `place` is where it is, if it is on a machine or waits for
    one."""
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
    if place is not None and name in _UNDONE:
        right = _placed(name, place, width)
        style = "$text-warning" if place.warning else style
    room = max(8, width - len(right) - 10)
    text = whole_words(one_line(task.task), room)
    return Content.assemble(
        (f"{task.index + 1:>4}  ", "$text-muted"),
        (f"{glyph} ", style),
        (cell(text, room), "$foreground" if name != "pending" else ""),
        "  ",
        (right, style if name != "completed" else "$text-muted"),
    )


def _placed(name: str, place: TaskPlacement, width: int) -> str:
    """Return what is known of a task that isn't done: its host or what it waits for, and on a wide
    screen its attempts, losses and money."""
    host = one_line(place.host)
    if width < NARROW:
        return cell(place.label or (f"on {host}" if host else name), 11)
    tries = f"{place.attempt}×" if place.attempt else ""
    losses = f"{place.losses} lost" if place.losses else ""
    cost = money(place.spent_usd) if place.attempt else ""
    where = cell(place.label or host, 12).rstrip()
    return f"{name:<11}{tries:>4}{losses:>8}{cost:>9}{' ' * (13 - cell_len(where))}{where}"


def totals_line(
    state: RunState, pace: RunStatus, width: int, placement: RunPlacement | None = None
) -> Content:
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
    if placement is not None and placement.spent_usd is not None:
        parts.append((_budget(placement), "$text-muted"))
    parts.append((f"{tokens(total_usage(tasks).total)} tokens", "$text-muted"))
    if placement is None and (cost := cost_of(tasks)) is not None:
        parts.append((money(cost), "$text-muted"))
    if pace.seconds:
        parts.append((duration(pace.seconds), "$text-muted"))
    if pace.live and not pace.pausing and (eta := rest_s(tasks, pace)) is not None and eta >= 1:
        # The last facts give way first.
        parts.append((f"about {duration(eta)} left", "$text-muted"))
    while len(parts) > 1 and cell_len(" · ".join(text for text, _ in parts)) > width:
        parts.pop()
    return Content(" · ").join(Content.styled(*part) for part in parts)


def _budget(placement: RunPlacement) -> str:
    """Return the money of a run on machines: spent, of the limit, and reserved."""
    spent = money(placement.spent_usd)
    if placement.limit_usd is None:
        return spent
    return f"{spent} of {money(placement.limit_usd)}, {money(placement.reserved_usd)} reserved"


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


class SteadyText(Static):
    """Lines that are drawn only where they differ, and laid out only if their number does."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__("", id=id, markup=False)
        self._lines = Content()

    def show(self, lines: Content) -> None:
        """Show other lines, or the same."""
        before, self._lines = self._lines, lines
        if (before.plain, before.spans) != (lines.plain, lines.spans):
            self.update(lines, layout=before.plain.count("\n") != lines.plain.count("\n"))


Places: TypeAlias = Mapping[int, TaskPlacement]
NOWHERE: Final[Places] = {}
_Drawn: TypeAlias = tuple[TaskState, bool, int, TaskPlacement | None]
"""What a row shows: a task, whether it is skipped, the width, and its place."""


class TaskQueue(OptionList):
    """Leaves unchanged rows, and the cursor, as they are."""

    def __init__(self) -> None:
        super().__init__(id="queue", compact=True)
        self._names: list[tuple[int, str, str]] = []
        self._rows: dict[int, _Drawn] = {}
        self._shown: tuple[RunState, Collection[int], int, Places] | None = None

    def show(
        self, state: RunState, skipped: Collection[int], width: int, places: Places = NOWHERE
    ) -> None:
        """Show the state of the tasks, in rows of `width` cells."""
        before, self._shown = self._shown, (state, skipped, width, places)
        if before and before[0] is state and before[1:] == self._shown[1:]:
            return
        rows: dict[int, _Drawn] = {
            task.index: (task, task.index in skipped, width, places.get(task.index))
            for task in state.tasks
        }
        known, self._rows = self._rows, rows
        names = [(task.section, task.group, task.task) for task in state.tasks]
        if names != self._names:
            self._names = names
            self._fill(state)
            return
        changed = [index for index, drawn in rows.items() if known[index] != drawn]
        self._replace(changed)
        if before and before[2] != width:
            self._clear_caches()  # rows of another width may have been measured as two lines each

    def _replace(self, indexes: Collection[int]) -> None:
        """Draw the rows of tasks again, which have one line each. The list's own method would
        measure and draw all of its rows."""
        options = {self.get_option(f"task-{index}"): index for index in indexes}
        for option, index in options.items():
            option._set_prompt(self._row(index))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            self.refresh_line(self.get_option_index(f"task-{index}"))
        cache = self._option_render_cache
        for key in [key for key in cache.keys() if options and key[0] in options]:  # noqa: SIM118
            cache.discard(key)

    def _row(self, index: int) -> Content:
        task, skipped, width, place = self._rows[index]
        return task_row(task, width, skipped=skipped, place=place)

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

    def _fill(self, state: RunState) -> None:
        at = self.at_cursor or 0
        self.clear_options()
        section = None
        options: list[Option] = []
        for task in state.tasks:
            if task.section != section:
                section = task.section
                group = Content.styled(f"      {one_line(task.group)}", "bold $text-secondary")
                options.append(Option(group, disabled=True))
            options.append(Option(self._row(task.index), id=f"task-{task.index}"))
        self.add_options(options)
        self.follow(min(at, len(state.tasks) - 1))
