"""Dialogs to read: /doctor (the checks) and /diff (what a session changed)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.app.doctor import Check, summary
from tui.core.text_cleaning import visible
from tui.ui.widgets.dialog import SCROLL, Dialog
from tui.ui.widgets.diff import DiffView

_MARKS: Final = {
    "ok": ("✓", "$text-success"),
    "warn": ("!", "$text-warning"),
    "fail": ("✗", "$text-error"),
}
_NAME = 15
_DOCTOR_KEYS: Final = (SCROLL, ("esc", "close"))


def check_lines(checks: Sequence[Check], width: int) -> Content:
    """The checks for reading in `width` cells, those that fail first."""
    order = ("fail", "warn", "ok")
    lines: list[Content] = []
    for check in sorted(checks, key=lambda check: order.index(check.status)):
        glyph, style = _MARKS[check.status]
        name = (f"{check.name:<{_NAME}}", "bold $foreground")
        said = _wrapped(check.detail, "$foreground", width)
        said += _wrapped(check.fix, "$text-muted", width)
        head = [(f"{glyph} ", style), name]
        for part in said or [Content("")]:
            lines.append(Content.assemble(*head, part))
            head = [(" " * (2 + _NAME), "")]
    return Content("\n").join([*lines, Content(""), Content.styled(summary(checks), "bold")])


def _wrapped(text: str, style: str, width: int) -> list[Content]:
    said = Content.styled(visible(text), style)
    return said.wrap(max(20, width - 2 - _NAME)) if text else []


class DoctorScreen(Dialog[None]):
    """Closed by Esc, q or Enter. The checks are awaited once the screen stands; then they are
    `found`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#box"

    def __init__(self, checks: Awaitable[Sequence[Check]]) -> None:
        super().__init__(classes="-table")
        self._seen: Sequence[Check] = ()
        self.found = False
        self._checks = checks

    def compose(self) -> ComposeResult:
        with self.framed(VerticalScroll(can_focus=True), "doctor", *_DOCTOR_KEYS):
            yield Static("Looking …", id="checks", markup=False)

    def on_mount(self) -> None:
        self.run_checks()

    @work(exclusive=True)
    async def run_checks(self) -> None:
        """Show what was found."""
        self._seen = await self._checks
        self._draw()
        self.found = True

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        if self._seen:
            text = self.query_one("#checks", Static)
            text.update(check_lines(self._seen, text.size.width))
            self.show_keys(*_DOCTOR_KEYS)


class DiffScreen(Dialog[None]):
    """Closed by Esc, q or Enter; `y` copies the diff."""

    DEFAULT_CSS = """
    DiffScreen #box { width: 96%; background: $background; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False),
        Binding("y", "copy", "copy", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#box"

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self.text = title, text

    def compose(self) -> ComposeResult:
        box = VerticalScroll(can_focus=True)
        with self.framed(box, self._title, SCROLL, ("y", "copy"), ("esc", "close")):
            yield DiffView(self.text)

    def action_scroll(self, rows: int) -> None:
        self.query_one("#box").scroll_relative(y=rows, animate=False)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text)  # pyright: ignore[reportUnknownMemberType]
        self.show_keys(("y", "copied"), ("esc", "close"))
