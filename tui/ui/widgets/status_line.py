"""The last line: what the keys do now, then cost, turns and whether everything is saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.reactive import reactive
from textual.style import Style

from tui.core.formatting import money, plural
from tui.core.text_cleaning import one_line
from tui.ui.widgets.cached_render import Still

WIDE = 100


@dataclass(frozen=True, slots=True)
class Hint:
    """A key and what it does. `action` is run by a click on it."""

    key: str
    text: str
    action: str = ""


@dataclass(frozen=True, slots=True)
class StatusState:
    """`cost_usd` is None when no price is known; `trouble` says why nothing can be saved."""

    hints: tuple[Hint, ...] = ()
    cost_usd: float | None = None
    turns: int = 0
    trouble: str = ""
    keeping: bool = True


def status_line(state: StatusState, width: int) -> Content:
    """The line in `width` cells. Hints at the end of the list give way first."""
    if state.trouble:
        room = width - 7 - _hints(state.hints[:2], width // 4).cell_length
        saved = Content.styled(_trouble(state.trouble, room), "bold $text-error")
        saved = saved.truncate(max(0, room), ellipsis=True)
    elif not state.keeping:
        saved = Content.styled("○ kept in memory only", "$text-muted")
    else:
        saved = Content.assemble(("●", "$text-success"), (" saved", "$text-muted"))
    said = f"{_cost(state, width)}{plural(state.turns, 'turn')}   " if state.turns else ""
    figures = Content.styled(said, "$text-muted")
    right = Content.assemble(figures, saved).truncate(max(0, width - 2), ellipsis=True)
    left = _hints(state.hints, width - right.cell_length - 5)
    fill = max(0, width - 2 - left.cell_length - right.cell_length)
    return Content.assemble(" ", left, " " * fill, right, " ")


def _trouble(trouble: str, room: int) -> str:
    """Why nothing is saved; where there is too little room, without the file that is named last."""
    why = one_line(trouble)
    if cell_len(said := f"● not saved: {why}") > room and (brief := why.rpartition(": ")[0]):
        return f"● not saved: {brief}"
    return said


def _cost(state: StatusState, width: int) -> str:
    """What it has cost; that no price is known is said only where there is room."""
    if state.cost_usd is not None:
        return f"{money(state.cost_usd)}   "
    return "cost —   " if width >= WIDE else ""


def _hints(hints: Sequence[Hint], room: int) -> Content:
    line = Content("")
    for hint in hints:
        key = Content.styled(hint.key, "$text-accent")
        one = Content.assemble(key, (f" {hint.text}", "$text-muted"))
        if hint.action:
            one = one.stylize(Style.from_meta({"hint": hint.action}))
        grown = Content.assemble(line, "   ", one) if line else one
        if grown.cell_length > room:
            break
        line = grown
    return line


class StatusLine(Still):
    """Draws `state`; set it to change what is shown."""

    DEFAULT_CSS = """
    StatusLine { height: 1; width: 1fr; color: $text-muted; }
    """

    state: reactive[StatusState] = reactive(StatusState())

    def render(self) -> Content:
        return status_line(self.state, self.size.width)

    async def on_click(self, event: events.Click) -> None:
        if action := event.style.meta.get("hint"):
            await self.run_action(str(action))
