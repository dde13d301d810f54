"""Dialogs to read: /doctor (the checks) and /diff (a session's changes)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui.app.dialog_data import ShownLine
from tui.app.doctor import Check, summary
from tui.core.text_cleaning import visible
from tui.ui.screens.read_screen import ReadScreen
from tui.ui.widgets.dialog import SCROLL, Dialog
from tui.ui.widgets.diff import DiffView
from tui.ui.widgets.markdown.text import breaks
from tui.ui.widgets.panes import hanging

_MARKS: Final = {
    "ok": ("✓", "$text-success"),
    "warn": ("!", "$text-warning"),
    "fail": ("✗", "$text-error"),
}
_NAME = 15
_TEXT_MIN = 32
"""With fewer cells, text is shown under the names, not beside them."""
_DOCTOR_KEYS: Final = (SCROLL, ("esc", "close"))


def check_lines(checks: Sequence[Check], width: int) -> Content:
    """Return the checks in `width` cells, failed ones first."""
    order = ("fail", "warn", "ok")
    lines: list[Content] = []
    beside = width - 2 - _NAME >= _TEXT_MIN
    room = width - 2 - (_NAME if beside else 0)
    for check in sorted(checks, key=lambda check: order.index(check.status)):
        glyph, style = _MARKS[check.status]
        head = Content.assemble(
            (f"{glyph} ", style), (f"{check.name:<{_NAME}}", "bold $foreground")
        )
        if not beside:
            lines.append(head.rstrip())
            head = Content("  ")
        details = _wrapped(check.detail, "$foreground", room)
        details += _wrapped(check.fix, "$text-muted", room)
        lines += hanging(head, details or [Content("")])
    return Content("\n").join([*lines, Content(""), Content.styled(summary(checks), "bold")])


def _wrapped(text: str, style: str, width: int) -> list[Content]:
    shown = visible(text)
    pieces = breaks(shown, width) if shown else []
    return [Content.styled(shown[piece.start : piece.end], style) for piece in pieces]


class DoctorScreen(Dialog[None]):
    """Closed by Esc, q or Enter. The checks are awaited once the screen is up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#box"

    def __init__(self, checks: Awaitable[Sequence[Check]]) -> None:
        super().__init__(classes="-table")
        self._seen: Sequence[Check] = ()
        self._checks = checks

    def compose(self) -> ComposeResult:
        with self.framed(VerticalScroll(can_focus=True), "doctor", *_DOCTOR_KEYS):
            yield Static("Checking …", id="checks", markup=False)

    def on_mount(self) -> None:
        self.run_checks()

    @work(exclusive=True)
    async def run_checks(self) -> None:
        """Wait for the checks and show them."""
        self._seen = await self._checks
        self._draw()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        if self._seen:
            text = self.query_one("#checks", Static)
            text.update(check_lines(self._seen, text.size.width))
            self.show_keys(*_DOCTOR_KEYS)


class DiffScreen(ReadScreen):
    """A diff to read; `B` asks where a line comes from."""

    DEFAULT_CSS = "DiffScreen #box { width: 96%; background: $background; padding: 0 1; }"
    KEYS = (("B", "why"), *ReadScreen.KEYS)

    def body(self) -> Widget:
        return DiffView(self.text)

    def asked_line(self) -> ShownLine | None:
        box = self.query_one("#box")
        return self.query_one(DiffView).asked_line(round(box.scroll_y), box.size.height)
