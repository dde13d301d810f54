"""/permissions: the rules in force, and every decision of the session with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.app.permission_log import DecisionRow
from tui.core.formatting import plural
from tui.ui.screens.table_screen import TableDialog
from tui.ui.widgets.dialog import SCROLL
from tui.ui.widgets.row_list import Part, RowList

WIDE = 80
"""From so many columns on it is shown who decided."""
NAME = 12


_RULES = (SCROLL, ("tab", "to the rules"))


def rule_lines(rules: Sequence[tuple[str, str]], width: int) -> list[Content]:
    """The rules under their names, in lines of `width` cells."""
    lines: list[Content] = []
    for name, value in rules:
        head = Content.styled(f"{name:<{NAME}}", "$text-accent")
        for part in Content.styled(value, "$foreground").wrap(max(20, width - NAME)):
            lines.append(Content.assemble(head, part))
            head = Content(" " * NAME)
    return lines


class PermissionsScreen(TableDialog[None]):
    """Closed by Esc or q. The decision under the cursor is shown whole below."""

    DEFAULT_CSS = """
    PermissionsScreen #rules { height: auto; scrollbar-size-vertical: 1; }
    PermissionsScreen #rules:focus { background: $background; }
    PermissionsScreen Static { height: auto; }
    PermissionsScreen #count { margin: 1 0 0 0; }
    PermissionsScreen.-short #count { margin: 0; }
    PermissionsScreen #whole { min-height: 3; margin: 1 0 0 0; }
    PermissionsScreen.-none #whole { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c", "dismiss", "close", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "RowList"

    def __init__(self, rules: Sequence[tuple[str, str]], found: Sequence[DecisionRow]) -> None:
        super().__init__(classes="-table" if found else "-table -none")
        self._rules, self._found = rules, found

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "permissions", ("esc", "close")):
            yield Static(_heading("Rules", "deny before ask before allow"), markup=False)
            with VerticalScroll(id="rules", can_focus=False):
                yield Static(id="rule-lines", markup=False)
            count = plural(len(self._found), "decision") if self._found else "No decision yet"
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
        """A part of the room for the rules, one for the decision, and the rest for the rows."""
        rules = self.query_one("#rules", VerticalScroll)
        lines = rule_lines(self._rules, rules.size.width - 1)
        self.put("rule-lines", Content("\n").join(lines))
        part = max(3, self.size.height // 5) if self._found else self.free_rows(3)
        rules.styles.max_height = part
        rules.can_focus = len(lines) > part
        self.query_one("#whole").styles.max_height = part
        room = max(3, self.free_rows(min(part, len(lines)) + part + 4))
        self.rows.styles.height = min(len(self._found), room)
        self.show_keys(*(_RULES if rules.can_focus else ()), ("esc", "close"))

    def row_moved(self, index: int) -> None:
        if self._found:
            one = self._found[index]
            whole = Content.assemble(
                (f"{one.answer}", f"$text-{one.level}"),
                (f" by {one.by}. {one.reason}\n", "$text-muted"),
                (f"{one.tool} ", "$text-accent"), (one.subject, "$foreground"),
            )  # fmt: skip
            self.put("whole", whole)

    def _row(self, index: int, width: int) -> Sequence[Part]:
        one = self._found[index]
        parts = [(f"{one.time:<10}", "muted"), (_cell(one.answer, 8), one.level)]
        if width >= WIDE:
            parts.append((_cell(one.by, 24), "muted"))
        return [*parts, (f"{one.tool} {one.subject}"[:width], "text")]


def _heading(text: str, more: str = "") -> Content:
    return Content.assemble(
        (text, "bold $text-primary"), (f"   {more}" if more else "", "$text-muted")
    )


def _cell(text: str, width: int) -> str:
    """A text in a column of so many cells, the last of them empty."""
    if cell_len(text) >= width:
        text = set_cell_size(text, width - 2) + "…"
    return set_cell_size(text, width)
