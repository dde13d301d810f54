"""The fill level of the context: one row of figures with a thin bar, and, for F2, a bar by kind."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor
from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui.core.formatting import money, tokens

if TYPE_CHECKING:
    from tui.core.facts import ContextMeasured

KINDS: dict[str, tuple[str, str]] = {
    "system": ("▓", "$text-secondary"),
    "tools": ("▒", "$text-accent"),
    "memory": ("▚", "$text-warning"),
    "messages": ("█", "$text-primary"),
    "results": ("▞", "$text-success"),
}
"""The glyph and style of each part of the context: distinguished by shape as well as by color."""

MARK = 0.8
"""The share of the window that the bar marks, unless the configuration says otherwise."""

NEARLY_FULL = 0.95
FORECAST_MAX = 20
"""Turns from which a forecast is left out."""

_BAR_MIN, _BAR_MAX = 10, 40
"""Fewest cells of the thin bar, below which there is none, and most cells."""


def share(state: ContextMeasured) -> float:
    return state.tokens / state.window if state.window else 0.0


def bar(state: ContextMeasured, width: int) -> Content:
    """Return `width` cells: the parts in proportion, the rest light, the threshold marked."""
    cells: list[tuple[str, str]] = []
    whole = sum(state.parts.values()) or 1
    filled = 0.0
    for kind, (glyph, style) in KINDS.items():
        filled += share(state) * width * state.parts.get(kind, 0) / whole
        cells += [(glyph, style)] * (min(width, round(filled)) - len(cells))
    if state.tokens and not cells:
        cells.append(("▏", "$text-primary"))
    cells += [("░", "$rule")] * (width - len(cells))
    mark = round(width * state.threshold)
    if 0 < mark < width:
        cells[mark] = ("│", "$text-warning")
    return Content.assemble(*cells)


def _figure(state: ContextMeasured, width: int, goal: str) -> Content:
    """Return tokens, window, goal, cache and cost, leaving out what does not fit in `width`
    cells."""
    figure = Content.assemble(
        (_brief(state.tokens), f"bold {_fill_style(state, '$foreground')}"),
        (f" of {_brief(state.window)}", "$text-muted"),
    )
    for fact in filter(None, (goal, cached(state), spent(state))):
        longer = Content.assemble(figure, (f" · {fact}", "$text-muted"))
        if longer.cell_length <= width:
            figure = longer
    return figure


def _brief(count: int) -> str:
    """Return 41k where another figure would be 0."""
    return tokens(count).replace(".0", "")


def cached(state: ContextMeasured) -> str:
    """Return the part of the last request that came from the cache; "" before an answer."""
    share = state.cache_share
    return "" if share is None else f"cache {floor(100 * min(max(share, 0.0), 1.0))} %"


def spent(state: ContextMeasured) -> str:
    """Return what the session has cost; "" if a price is unknown, or nothing was asked yet."""
    return money(state.cost_usd) if state.cost_usd and state.cache_share is not None else ""


def forecast(state: ContextMeasured) -> str:
    """Say when the mark will be reached; "" if that is unknown, far away, or has happened."""
    if not state.forecast or state.forecast > FORECAST_MAX:
        return ""
    prompts = "1 prompt" if state.forecast == 1 else f"{state.forecast:,} prompts"
    return f"{state.threshold:.0%} in ~{prompts}".replace("%", " %", 1)


def drift(state: ContextMeasured) -> str:
    """Say by how much the last request was estimated too large or too small; "" if unknown."""
    if state.drift is None:
        return ""
    missed = f"{abs(state.drift):.1%}".replace("%", " %")
    if missed == "0.0 %":
        return "last estimate exact"
    return f"last estimate {missed} {'high' if state.drift > 0 else 'low'}"


def details(state: ContextMeasured, width: int) -> Content:
    """Return in one row what the meter leaves out: the forecast and the source of the figure; what
    does not fit is left out from the end."""
    assumed = "window assumed" if state.window_source == "assumed" else ""
    kept = f"limits saved {tokens(state.saved)}" if state.saved else ""
    origin = _origin(state, width)
    others = _joined([forecast(state), assumed, kept], width - origin.cell_length - 3)
    return Content.assemble(origin, (" · ", "$text-muted"), others) if others else origin


def _origin(state: ContextMeasured, width: int) -> Content:
    """Return the source of the figure and the quality of the last estimate, in as many words as
    fit."""
    before, missed, since = f"{tokens(state.measured)} measured", drift(state), ""
    reserve = f"{tokens(state.reserve)} kept for the answer" if state.reserve else ""
    if not state.measured:
        return _joined(["estimate; no answer yet", reserve], width)
    if state.estimated:
        since = (
            f", {tokens(abs(state.estimated))} {'less' if state.estimated < 0 else 'more'} since"
        )
    brief = missed.removeprefix("last estimate ")
    forms = (
        [before + since, missed, reserve],
        [before + since, brief, reserve],
        [before + since, brief],
        [before, brief],
    )
    rows = [_joined(form, 1000) for form in forms]
    return next((row for row in rows if row.cell_length <= width), rows[-1])


def _joined(pieces: Iterable[str], width: int) -> Content:
    """Return the pieces that fit, muted; empty ones are left out."""
    joined = ""
    for piece in filter(None, pieces):
        longer = f"{joined} · {piece}" if joined else piece
        if len(longer) > width:
            break
        joined = longer
    return Content.styled(joined, "$text-muted")


def meter_line(state: ContextMeasured | None, width: int, goal: str = "") -> Content:
    """Return a thin bar after the figures. Its weight shows the level, not its color alone. `goal`
    says how far that is."""
    if state is None or not state.window:
        return Content("")
    figure = _figure(state, width, goal)
    room = min(width - figure.cell_length - 2, _BAR_MAX)
    if room < _BAR_MIN:
        return figure.truncate(width)
    full = min(room, round(share(state) * room)) or int(state.tokens > 0)
    mark = round(room * state.threshold)
    cells = [("━", _fill_style(state, "$text-primary"))] * full + [("─", "$rule")] * (room - full)
    if 0 < mark < room:
        cells[mark] = ("┃", "$text-warning")
    return Content.assemble(figure, "  ", *cells)


def _fill_style(state: ContextMeasured, usual: str) -> str:
    full = share(state)
    if full > NEARLY_FULL:
        return "$text-error"
    return "$text-warning" if full > state.threshold else usual


class ContextMeter(Widget):
    """Draws `state` in one row, None if nothing was measured yet, and how far a `goal` is."""

    DEFAULT_CSS = "ContextMeter { height: 1; width: 1fr; }"

    state: reactive[ContextMeasured | None] = reactive(None)
    goal: reactive[str] = reactive("")

    def watch_state(self) -> None:
        self.set_class(self.state is None, "-unknown")

    def render(self) -> Content:
        return meter_line(self.state, self.size.width, self.goal)
