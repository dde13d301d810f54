"""/doctor: what `holdfast doctor` prints, on the screen."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.doctor import Check, summary
from tui.widgets.plain import visible

_MARKS: Final = {
    "ok": ("✓", "$text-success"),
    "warn": ("!", "$text-warning"),
    "fail": ("✗", "$text-error"),
}
_NAME = 15


def check_lines(checks: Sequence[Check]) -> Content:
    """The checks for reading, those that fail first."""
    order = ("fail", "warn", "ok")
    lines: list[Content] = []
    for check in sorted(checks, key=lambda check: order.index(check.status)):
        glyph, style = _MARKS[check.status]
        name = (f"{check.name:<{_NAME}}", "bold $foreground")
        line = Content.assemble((f"{glyph} ", style), name, (visible(check.detail), "$foreground"))
        fix = [Content.styled(f"→ {visible(check.fix)}", "$text-muted")] if check.fix else []
        lines += [line, *fix]
    return Content("\n").join([*lines, Content(""), Content.styled(summary(checks), "bold")])


class DoctorScreen(ModalScreen[None]):
    """Closed by Esc, q or Enter. The checks are awaited once the screen stands; then they are
    `found`."""

    CSS_PATH = "doctor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#box"

    def __init__(self, checks: Awaitable[Sequence[Check]]) -> None:
        super().__init__()
        self.found = False
        self._checks = checks

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box", can_focus=True) as box:
            box.border_title = Content("doctor")
            box.border_subtitle = Content("esc closes")
            yield Static("Looking …", id="checks", markup=False)

    def on_mount(self) -> None:
        self.look()

    @work(exclusive=True)
    async def look(self) -> None:
        """Show what was found."""
        checks = await self._checks
        self.query_one("#checks", Static).update(check_lines(checks))
        self.found = True
