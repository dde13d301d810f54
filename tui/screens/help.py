"""F1: every key and command, from the tables that they are bound by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static


@dataclass(frozen=True, slots=True)
class HelpSection:
    """A heading and its rows: what is pressed or typed, what it does."""

    title: str
    rows: tuple[tuple[str, str], ...]


def help_text(sections: Sequence[HelpSection]) -> Content:
    """All sections in two columns; the first is as wide as its widest row."""
    width = max(len(left) for section in sections for left, _ in section.rows) + 3
    lines: list[Content] = []
    for section in sections:
        if lines:
            lines.append(Content(""))
        lines.append(Content.styled(section.title, "bold $text-primary"))
        lines += [
            Content.assemble((left.ljust(width), "$text-accent"), (right, "$foreground"))
            for left, right in section.rows
        ]
    return Content("\n").join(lines)


class HelpScreen(ModalScreen[None]):
    """Closed by Esc, F1, q or Enter."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,enter,ctrl+c", "dismiss", "close", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#box"

    def __init__(self, sections: Sequence[HelpSection]) -> None:
        super().__init__()
        self._sections = sections

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box", can_focus=True) as box:
            box.border_title = Content("help")
            box.border_subtitle = Content("esc closes")
            yield Static(help_text(self._sections), markup=False)
