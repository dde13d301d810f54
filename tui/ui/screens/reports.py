"""Dialogs to read: /doctor (the checks), /diff (a session's changes), /permissions (the rules in
force, and every decision of the session with its reason)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui.app.doctor import Check, summary
from tui.app.reports.permissions import PermissionsReport
from tui.core.formatting import plural
from tui.core.text_cleaning import visible
from tui.ui.screens.read_screen import ReadScreen
from tui.ui.screens.table_screen import TableDialog, cell
from tui.ui.widgets.dialog import SCROLL, Dialog
from tui.ui.widgets.diff import DiffView
from tui.ui.widgets.markdown.text import breaks
from tui.ui.widgets.panes import hanging
from tui.ui.widgets.row_list import Part, RowList

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
    """A diff to read."""

    DEFAULT_CSS = "DiffScreen #box { width: 96%; background: $background; padding: 0 1; }"

    def body(self) -> Widget:
        return DiffView(self.text)


_WIDE: Final = 80
"""Columns from which the source of each decision is shown."""
_RULE_NAME: Final = 14


_REVOKE: Final = ("r", "revoke")
_RULES = (SCROLL, ("tab", "to the rules"))


def rule_lines(rules: Sequence[tuple[str, str]], width: int) -> list[Content]:
    """Return the rules under their names, in lines of `width` cells."""
    lines: list[Content] = []
    for name, value in rules:
        texts = Content.styled(value, "$foreground").wrap(max(20, width - _RULE_NAME))
        lines += hanging(Content.styled(f"{name:<{_RULE_NAME}}", "$text-accent"), texts)
    return lines


class PermissionsScreen(TableDialog[str]):
    """Closed by Esc or q, with "revoke" by r; shows the decision under the cursor completely
    below."""

    DEFAULT_CSS = """
    PermissionsScreen #rules { height: auto; scrollbar-size-vertical: 1; }
    PermissionsScreen #rules:focus { background: $background; }
    PermissionsScreen Static { height: auto; }
    PermissionsScreen #count { margin: 1 0 0 0; }
    PermissionsScreen.-short #count { margin: 0; }
    PermissionsScreen #whole { min-height: 3; margin: 1 0 0 0; }
    PermissionsScreen.-none #whole, PermissionsScreen.-tiny #whole { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c", "dismiss", "close", show=False),
        Binding("r", "dismiss('revoke')", "revoke a rule", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "RowList"

    def __init__(self, report: PermissionsReport) -> None:
        super().__init__(classes="-table" if report.decisions else "-table -none")
        self._rules, self._found = report.rules, report.decisions

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "permissions", _REVOKE, ("esc", "close")):
            yield Static(_heading("Rules", "deny › ask › allow"), markup=False)
            with VerticalScroll(id="rules", can_focus=False):
                yield Static(id="rule-lines", markup=False)
            count = plural(len(self._found), "decision") if self._found else "No decisions yet"
            yield Static(_heading(count), id="count", markup=False)
            yield RowList(id="decisions")
            yield Static(id="whole", markup=False)

    def on_mount(self) -> None:
        self.call_after_refresh(self._fit)
        self.rows.show(len(self._found), self._row, cursor=len(self._found) - 1)
        self.row_moved(len(self._found) - 1)

    def on_resize(self) -> None:
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """Divide the room: a part for the rules, one for the decision, the rest for the rows."""
        rules = self.query_one("#rules", VerticalScroll)
        lines = rule_lines(self._rules, rules.size.width - 1)
        self.put("rule-lines", Content("\n").join(lines))
        tiny = self.has_class("-tiny")
        part = self.size.height // 5 if tiny else max(3, self.size.height // 5)
        part = part if self._found else self.free_rows(3)
        rules.styles.max_height = part
        rules.can_focus = len(lines) > part
        self.query_one("#whole").styles.max_height = part
        others = 2 if tiny else part + 4
        room = max(3, self.free_rows(min(part, len(lines)) + others))
        self.rows.styles.height = min(len(self._found), room)
        self.show_keys(*(_RULES if rules.can_focus else ()), _REVOKE, ("esc", "close"))

    def row_moved(self, index: int) -> None:
        if self._found:
            one = self._found[index]
            whole = Content.assemble(
                (f"{one.answer}", f"$text-{one.level}"),
                (f" · {one.by} · {one.reason}\n", "$text-muted"),
                (f"{one.tool} ", "$text-accent"), (one.subject, "$foreground"),
            )  # fmt: skip
            self.put("whole", whole)

    def _row(self, index: int, width: int) -> Sequence[Part]:
        one = self._found[index]
        parts = [(f"{one.time:<10}", "muted"), (cell(one.answer, 7) + " ", one.level)]
        if width >= _WIDE:
            parts.append((cell(one.by, 23) + " ", "muted"))
        return [*parts, (f"{one.tool} {one.subject}"[:width], "text")]


def _heading(text: str, more: str = "") -> Content:
    return Content.assemble(
        (text, "bold $text-primary"), (f"   {more}" if more else "", "$text-muted")
    )
