"""F1: every key and command, from the tables that they are bound by."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tui.ui.widgets.dialog import SCROLL, Dialog


@dataclass(frozen=True, slots=True)
class HelpSection:
    """A heading and its rows: what is pressed or typed, what it does. `here` is where it works
    on the screen that the help stands over."""

    title: str
    rows: tuple[tuple[str, str], ...]
    here: bool = False


def help_lines(sections: Sequence[HelpSection], width: int) -> list[Content]:
    """All sections in two columns of `width` cells together. The first is as wide as its widest
    row; where that is too much, wider ones stand in a row of their own."""
    widest = max(len(left) for section in sections for left, _ in section.rows) + 3
    column = min(widest, max(12, width * 2 // 5))
    lines: list[Content] = []
    for section in sections:
        if lines:
            lines.append(Content(""))
        mark = ("  ● here", "$text-success") if section.here else ""
        lines.append(Content.assemble((section.title, "bold $text-primary"), mark))
        for left, right in section.rows:
            alone = len(left) > column - 2
            if alone:
                lines.append(Content.styled(left, "$text-accent"))
            for index, part in enumerate(textwrap.wrap(right, max(12, width - column))):
                said = "" if index or alone else left
                head = Content.styled(said.ljust(column), "$text-accent")
                lines.append(Content.assemble(head, (part, "$foreground")))
    return lines


class HelpTable(Widget):
    """As high as its rows are at its width."""

    DEFAULT_CSS = "HelpTable { width: 1fr; height: auto; }"

    def __init__(self, sections: Sequence[HelpSection]) -> None:
        super().__init__()
        self._sections = sections

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(help_lines(self._sections, width))

    def render(self) -> Content:
        return Content("\n").join(help_lines(self._sections, self.content_size.width))


class HelpScreen(Dialog[None]):
    """Closed by Esc, F1, ?, q or Enter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,question_mark,q,enter,ctrl+c", "dismiss", "close", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#box"

    def __init__(self, sections: Sequence[HelpSection]) -> None:
        super().__init__()
        self._sections = sections

    def compose(self) -> ComposeResult:
        keys = (SCROLL, ("esc", "close"))
        with self.framed(VerticalScroll(can_focus=True), "help", *keys):
            yield HelpTable(self._sections)
