"""The first line: the program, the folder and branch, the model, the title, the lights."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive

from tui.core.text_cleaning import one_line
from tui.ui.widgets.cached_render import Still

GAP = 3
LEAST = 12
"""Cells that the model keeps beside a long folder; half of them make a folder worth saying."""


@dataclass(frozen=True, slots=True)
class HeaderState:
    """What the header says. `folder` is as the person reads it (`~/proj`); `mark` is a word that
    must not be overlooked."""

    folder: str = ""
    branch: str = ""
    model: str = ""
    title: str = ""
    think: bool = False
    verbose: bool = False
    elevated: bool = False
    mark: str = ""


def header_line(state: HeaderState, width: int) -> Content:
    """The header in `width` cells. What matters least gives way first: title, name, branch."""
    texts = (one_line(text) for text in (state.folder, state.branch, state.model, state.title))
    folder, branch, model_name, title_text = texts
    lights = Content("  ").join(
        [
            *(
                [Content.styled(f" {state.mark} ", "bold $background on $warning")]
                * bool(state.mark)
            ),
            *([Content.styled("think", "$text-secondary")] if state.think else []),
            *([Content.styled("verbose", "$text-accent")] if state.verbose else []),
            *(
                [Content.styled(" ELEVATED ", "bold $background on $error")]
                if state.elevated
                else []
            ),
        ]
    )
    name = Content.styled("holdfast", "bold $text-primary")
    place = Content.assemble(
        (folder, "$foreground"), (f" ({branch})" if branch else "", "$text-muted")
    )
    model = Content.styled(model_name, "$text-muted")
    room = width - 2 - (lights.cell_length + GAP if lights else 0)

    def total(*parts: Content) -> int:
        shown = [p for p in parts if p]
        return sum(p.cell_length for p in shown) + GAP * (len(shown) - 1)

    parts = [name, place, model]
    if total(*parts) > room:
        parts = [place, model]
    if total(*parts) > room and branch:
        return header_line(replace(state, branch=""), width)
    if total(*parts) > room:
        least = min(model.cell_length, max(LEAST, room // 3))
        keep = max(least, room - GAP - cell_len(folder))
        model = model.truncate(min(model.cell_length, keep), ellipsis=True)
        folder = _tail(folder, room - GAP - model.cell_length)
        parts = [Content.styled(folder, "$foreground"), model]
    if total(*parts) > room or not folder:
        parts = [model.truncate(max(0, room), ellipsis=True)]
    spare = room - total(*parts) - GAP
    if title_text and spare >= 12:
        title = Content.styled(f"“{title_text}”", "italic $foreground")
        parts.append(title.truncate(spare, ellipsis=True))
    left = Content(" " * GAP).join([p for p in parts if p])
    fill = max(0, width - 2 - left.cell_length - lights.cell_length)
    return Content.assemble(" ", left, " " * fill, lights, " ")


def _tail(path: str, keep: int) -> str:
    """The end of a path in so many cells, "" where that would say nothing."""
    if cell_len(path) <= keep:
        return path
    while path and cell_len(path) >= keep:
        path = path[1:]
    return f"…{path}" if len(path) >= LEAST // 2 else ""


class HeaderBar(Still):
    """Draws `state`; set it to change what is shown."""

    DEFAULT_CSS = """
    HeaderBar { height: 1; width: 1fr; background: $panel; color: $foreground; }
    """

    state: reactive[HeaderState] = reactive(HeaderState())

    def render(self) -> Content:
        return header_line(self.state, self.size.width)
