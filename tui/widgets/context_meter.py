"""How full the context is: figures, and a bar by kind of content."""

from __future__ import annotations

from dataclasses import dataclass, field

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui.widgets.figures import tokens

KINDS: dict[str, tuple[str, str]] = {
    "system": ("▓", "$text-secondary"),
    "tools": ("▒", "$text-accent"),
    "memory": ("▓", "$text-warning"),
    "messages": ("█", "$text-primary"),
    "results": ("▒", "$text-success"),
}
"""How each part of the context is drawn: told apart by shape as well as by colour."""

MARK = 0.8
"""Where the bar bears a mark: above it the conversation is compacted."""


@dataclass(frozen=True, slots=True)
class MeterState:
    """As in `ContextMeasured`; a window of 0 means that nothing was measured yet."""

    tokens: int = 0
    measured: int = 0
    estimated: int = 0
    window: int = 0
    parts: dict[str, int] = field(default_factory=dict[str, int])
    window_source: str = ""


def share(state: MeterState) -> float:
    return state.tokens / state.window if state.window else 0.0


def bar(state: MeterState, width: int) -> Content:
    """`width` cells: each part in proportion to the window, the rest light, a mark at 80 %."""
    cells: list[tuple[str, str]] = []
    whole = sum(state.parts.values()) or 1
    filled = 0.0
    for kind, (glyph, style) in KINDS.items():
        filled += share(state) * width * state.parts.get(kind, 0) / whole
        cells += [(glyph, style)] * (min(width, round(filled)) - len(cells))
    if state.tokens and not cells:
        cells.append(("▏", "$text-primary"))
    cells += [("░", "$rule")] * (width - len(cells))
    mark = round(width * MARK)
    if 0 < mark < width:
        cells[mark] = ("│", "$text-warning")
    return Content.assemble(*cells)


def _figure(state: MeterState) -> Content:
    full = share(state)
    style = "$text-error" if full > 0.95 else "$text-warning" if full > MARK else "$foreground"
    return Content.assemble(
        (tokens(state.tokens), f"bold {style}"),
        (f" / {tokens(state.window)}", "$text-muted"),
        (f"  {full:.0%}".replace("%", " %"), style),
    )


def meter_lines(state: MeterState, width: int) -> Content:
    """Four rows: the figure, the bar, its legend, and where the figure comes from."""
    if not state.window:
        return Content.styled(
            "Nothing measured yet.\nIt fills with the first message.", "$text-muted"
        )
    assumed = Content.styled(
        "window assumed" if state.window_source == "assumed" else "", "$text-muted"
    )
    figure = _figure(state)
    gap = width - figure.cell_length - assumed.cell_length
    head = Content.assemble(figure, " " * gap, assumed) if gap > 1 else figure
    legend = Content("  ").join(
        [
            Content.assemble((glyph, style), (f" {kind}", "$text-muted"))
            for kind, (glyph, style) in KINDS.items()
            if state.parts.get(kind)
        ]
    )
    origin = (
        f"measured {tokens(state.measured)} + since {tokens(state.estimated)}"
        if state.measured
        else "estimated, no answer yet"
    )
    rows = [head, bar(state, width), legend, Content.styled(origin, "$text-muted")]
    return Content("\n").join([row.truncate(width, ellipsis=True) for row in rows])


def meter_line(state: MeterState, width: int) -> Content:
    """One row for narrow screens."""
    if not state.window:
        return Content.styled("context: nothing measured yet", "$text-muted").truncate(width)
    figure = Content.assemble(("context ", "$text-muted"), _figure(state))
    room = min(40, width - figure.cell_length - 2)
    return (
        Content.assemble(figure, "  ", bar(state, room)) if room >= 10 else figure.truncate(width)
    )


class ContextMeter(Widget):
    """Draws `state`, in four rows or, `compact`, in one."""

    DEFAULT_CSS = """
    ContextMeter { height: 4; width: 1fr; }
    ContextMeter.-compact { height: 1; }
    """

    state: reactive[MeterState] = reactive(MeterState())

    def __init__(self, *, compact: bool = False, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes="-compact" if compact else None)
        self.compact = compact

    def render(self) -> Content:
        draw = meter_line if self.compact else meter_lines
        return draw(self.state, self.size.width)
