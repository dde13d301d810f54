"""How full the context is: figures, and a bar by kind of content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor
from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui.core.formatting import money, tokens

if TYPE_CHECKING:
    from tui.agent.events import ContextMeasured

KINDS: dict[str, tuple[str, str]] = {
    "system": ("▓", "$text-secondary"),
    "tools": ("▒", "$text-accent"),
    "memory": ("▚", "$text-warning"),
    "messages": ("█", "$text-primary"),
    "results": ("▒", "$text-success"),
}
"""How each part of the context is drawn: told apart by shape as well as by colour."""

MARK = 0.8
"""The share of the window where the bar bears a mark, unless the configuration says otherwise."""

NEARLY_FULL = 0.95

_BAR_MIN = 24
"""The cells that the bar keeps beside the words of the one row."""

_SHORT = {"system": "sys", "tools": "tool", "memory": "mem", "messages": "msg", "results": "res"}


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
    full = share(state)
    style = "$text-warning" if full > state.threshold else "$foreground"
    if full > NEARLY_FULL:
        style = "$text-error"
    figure = Content.assemble(
        (_brief(state.tokens), f"bold {style}"), (f" of {_brief(state.window)}", "$text-muted")
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
    """When the mark will be reached, in words; "" while that is unknown, or it has been."""
    if not state.forecast:
        return ""
    turns = "1 turn" if state.forecast == 1 else f"{state.forecast:,} turns"
    return f"{state.threshold:.0%} in ~{turns}".replace("%", " %", 1)


def drift(state: ContextMeasured) -> str:
    """By how much the last request was estimated too large or too small; "" where unknown."""
    if state.drift is None:
        return ""
    missed = f"{abs(state.drift):.1%}".replace("%", " %")
    if missed == "0.0 %":
        return "estimate exact"
    return f"estimate {missed} {'high' if state.drift > 0 else 'low'}"


def meter_lines(state: ContextMeasured | None, width: int) -> Content:
    """Four rows: the figure and what is to come, the bar, its legend, and where it comes from.

    What there is no room for is left out from the end of a row.
    """
    if state is None or not state.window:
        return Content.styled(
            "Nothing measured yet.\nIt fills with your first message.", "$text-muted"
        )
    assumed = "window assumed" if state.window_source == "assumed" else ""
    kept = f"limits saved {tokens(state.saved)}" if state.saved else ""
    said = [forecast(state), assumed] if width >= 48 else [assumed, forecast(state)]
    figure = _figure(state, width)
    room = width - figure.cell_length - 2
    head = _apart(figure, _joined([*said, kept], room), width)
    rows = [head, bar(state, width), _legend(state, width), _origin(state, width)]
    return Content("\n").join([row.truncate(width, ellipsis=True) for row in rows])


def _origin(state: ContextMeasured, width: int) -> Content:
    """Where the figure comes from, and how good the last estimate was, in as many words as fit."""
    sign, since = "−" if state.estimated < 0 else "+", tokens(abs(state.estimated))
    before, missed = tokens(state.measured), drift(state)
    reserve = f"reserve {tokens(state.reserve)}" if state.reserve else ""
    if not state.measured:
        return _joined(["estimate; no answer yet", reserve], width)
    brief = missed.removeprefix("estimate ")
    forms = (
        [f"measured {before} {sign} since {since}", missed, reserve],
        [f"measured {before} {sign} {since}", brief, reserve],
        [f"measured {before} {sign} {since}", brief],
        [f"{before} {sign} {since}", brief],
    )
    rows = [_joined(form, 1000) for form in forms]
    return next((row for row in rows if row.cell_length <= width), rows[-1])


def _legend(state: ContextMeasured, width: int) -> Content:
    """What the parts of the bar are: with their sizes, by name, or in short, as there is room."""
    parts = [(kind, *look) for kind, look in KINDS.items() if state.parts.get(kind)]

    def legend(gap: str, names: Sequence[str]) -> Content:
        return Content(gap).join(
            Content.assemble((glyph, style), (f" {name}", "$text-muted"))
            for (_, glyph, style), name in zip(parts, names, strict=True)
        )

    sizes = legend("  ", [f"{kind} {tokens(state.parts[kind])}" for kind, _, _ in parts])
    if width >= 72 and sizes.cell_length <= width:
        return sizes
    names = legend("  ", [kind for kind, _, _ in parts])
    if names.cell_length <= width:
        return names
    return legend(" ", [_SHORT[kind] for kind, _, _ in parts])


def _joined(pieces: Iterable[str], width: int) -> Content:
    """The pieces that fit, muted; empty ones are left out."""
    joined = ""
    for piece in filter(None, pieces):
        longer = f"{joined} · {piece}" if joined else piece
        if len(longer) > width:
            break
        joined = longer
    return Content.styled(joined, "$text-muted")


def _apart(left: Content, right: Content, width: int) -> Content:
    """One at either end of a row; the right one only where there is room."""
    gap = width - left.cell_length - right.cell_length
    return Content.assemble(left, " " * gap, right) if right and gap > 1 else left


def meter_line(state: ContextMeasured | None, width: int) -> Content:
    """One row for narrow screens."""
    if state is None or not state.window:
        return Content.styled("context: nothing measured yet", "$text-muted").truncate(width)
    figure = Content.assemble(("context ", "$text-muted"), _figure(state, width - 8))
    room = width - figure.cell_length - 2
    if room < 10:
        return figure.truncate(width)
    said = forecast(state)
    tail = f"  {said}" if said and room - len(said) - 2 >= _BAR_MIN else ""
    row = bar(state, room - len(tail))
    return Content.assemble(figure, "  ", row, (tail, "$text-muted"))


class ContextMeter(Widget):
    """Draws `state`, in four rows or, `compact`, in one; None where nothing was measured yet."""

    DEFAULT_CSS = """
    ContextMeter { height: 4; width: 1fr; }
    ContextMeter.-compact { height: 1; }
    """

    state: reactive[ContextMeasured | None] = reactive(None)

    def __init__(self, *, compact: bool = False, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes="-compact" if compact else None)
        self.compact = compact

    def render(self) -> Content:
        draw = meter_line if self.compact else meter_lines
        return draw(self.state, self.size.width)
