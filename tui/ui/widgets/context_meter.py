"""How full the context is: one row of figures with a thin bar, and, for F2, a bar by kind."""

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
    "results": ("▒", "$text-success"),
}
"""How each part of the context is drawn: told apart by shape as well as by color."""

MARK = 0.8
"""The share of the window where the bar bears a mark, unless the configuration says otherwise."""

NEARLY_FULL = 0.95
FORECAST_MAX = 20
"""Turns from which on a forecast says nothing."""

_BAR_MIN, _BAR_MAX = 10, 40
"""The cells that the thin bar has at least, or there is none, and at most."""


def share(state: ContextMeasured) -> float:
    return state.tokens / state.window if state.window else 0.0


def bar(state: ContextMeasured, width: int) -> Content:
    """`width` cells: the parts in proportion, what is left light, the threshold marked."""
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


def _figure(state: ContextMeasured, width: int) -> Content:
    """Tokens, window, cache and cost; those that `width` cells have no room for are left out."""
    figure = Content.assemble(
        (_brief(state.tokens), f"bold {_fill_style(state, '$foreground')}"),
        (f" of {_brief(state.window)}", "$text-muted"),
    )
    for said in filter(None, (cached(state), spent(state))):
        longer = Content.assemble(figure, (f" · {said}", "$text-muted"))
        if longer.cell_length <= width:
            figure = longer
    return figure


def _brief(count: int) -> str:
    """41k where another figure would be 0."""
    return tokens(count).replace(".0", "")


def cached(state: ContextMeasured) -> str:
    """How much of the last request came from the cache; "" before an answer."""
    return "" if state.cache_share is None else f"cache {floor(100 * state.cache_share)} %"


def spent(state: ContextMeasured) -> str:
    """What the session has cost; "" where a price is not known, or nothing was asked yet."""
    return money(state.cost_usd) if state.cost_usd and state.cache_share is not None else ""


def forecast(state: ContextMeasured) -> str:
    """When the mark will be reached, in words; "" while that is unknown or far away, or it has
    been."""
    if not state.forecast or state.forecast > FORECAST_MAX:
        return ""
    turns = "1 turn" if state.forecast == 1 else f"{state.forecast:,} turns"
    return f"{state.threshold:.0%} in ~{turns}".replace("%", " %", 1)


def drift(state: ContextMeasured) -> str:
    """By how much the last request was estimated too large or too small; "" where unknown."""
    if state.drift is None:
        return ""
    missed = f"{abs(state.drift):.1%}".replace("%", " %")
    if missed == "0.0 %":
        return "last estimate exact"
    return f"last estimate {missed} {'high' if state.drift > 0 else 'low'}"


def details(state: ContextMeasured, width: int) -> Content:
    """What the meter leaves out: what is to come, and where the figure is from; in one row, and
    what there is no room for is left out from its end."""
    assumed = "window assumed" if state.window_source == "assumed" else ""
    kept = f"limits saved {tokens(state.saved)}" if state.saved else ""
    origin = _origin(state, width)
    rest = _joined([forecast(state), assumed, kept], width - origin.cell_length - 3)
    return Content.assemble(origin, (" · ", "$text-muted"), rest) if rest else origin


def _origin(state: ContextMeasured, width: int) -> Content:
    """Where the figure comes from, and how good the last estimate was, in as many words as fit."""
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
    """The pieces that fit, muted; empty ones are left out."""
    joined = ""
    for piece in filter(None, pieces):
        longer = f"{joined} · {piece}" if joined else piece
        if len(longer) > width:
            break
        joined = longer
    return Content.styled(joined, "$text-muted")


def meter_line(state: ContextMeasured | None, width: int) -> Content:
    """A thin bar after the figures. Its weight says how full it is, not its color alone."""
    if state is None or not state.window:
        return Content("")
    figure = _figure(state, width)
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
    """Draws `state` in one row; None where nothing was measured yet."""

    DEFAULT_CSS = "ContextMeter { height: 1; width: 1fr; }"

    state: reactive[ContextMeasured | None] = reactive(None)

    def watch_state(self) -> None:
        self.set_class(self.state is None, "-unknown")

    def render(self) -> Content:
        return meter_line(self.state, self.size.width)
