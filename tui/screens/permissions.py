"""/permissions: the rules in force, and every decision of the session with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.screens.decided import Decided
from tui.widgets.dialog import Dialog
from tui.widgets.figures import plural
from tui.widgets.rows import Part, Rows

WIDE = 80
"""From so many columns on it is shown who decided."""


class PermissionsScreen(Dialog[None]):
    """Closed by Esc or q. The decision under the cursor is shown whole below."""

    DEFAULT_CSS = """
    PermissionsScreen #rules { height: auto; max-height: 10; scrollbar-size-vertical: 1; }
    PermissionsScreen.-short #rules { max-height: 4; }
    PermissionsScreen.-short.-none #rules { max-height: 10; }
    PermissionsScreen Static { height: auto; }
    PermissionsScreen #count { margin: 1 0 0 0; }
    PermissionsScreen.-short #count { margin: 0; }
    PermissionsScreen #whole { min-height: 3; max-height: 8; margin: 1 0 0 0; }
    PermissionsScreen.-none #whole { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c", "dismiss", "close", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "Rows"

    def __init__(self, rules: Sequence[tuple[str, str]], found: Sequence[Decided]) -> None:
        super().__init__(classes="-table" if found else "-table -none")
        self._rules, self._found = rules, found

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "permissions", ("esc", "close")):
            yield Static(_heading("Rules", "deny before ask before allow"), markup=False)
            with VerticalScroll(id="rules", can_focus=False):
                lines = [
                    Content.assemble((f"{name:<12}", "$text-accent"), (value, "$foreground"))
                    for name, value in self._rules
                ]
                yield Static(Content("\n").join(lines), markup=False)
            count = plural(len(self._found), "decision") if self._found else "No decision yet"
            yield Static(_heading(count), id="count", markup=False)
            yield Rows(id="decisions")
            yield Static(id="whole", markup=False)

    def on_mount(self) -> None:
        rows = self.query_one(Rows)
        self._fit()
        rows.show(len(self._found), self._row, cursor=len(self._found) - 1)
        self._show(len(self._found) - 1)

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """As many rows as there are decisions, as far as there is room."""
        others = 10 if self.has_class("-short") else 12 + min(10, len(self._rules))
        room = max(3, self.size.height - others)
        self.query_one(Rows).styles.height = min(len(self._found), room)

    @on(Rows.Moved)
    def _moved(self, event: Rows.Moved) -> None:
        event.stop()
        self._show(event.index)

    def _show(self, index: int) -> None:
        if self._found:
            one = self._found[index]
            whole = Content.assemble(
                (f"{one.tool} ", "$text-accent"), (f"{one.subject}\n", "$foreground"),
                (f"{one.answer}", f"$text-{one.look}"),
                (f" by {one.by}. {one.reason}", "$text-muted"),
            )  # fmt: skip
            self.query_one("#whole", Static).update(whole)

    def _row(self, index: int, width: int) -> Sequence[Part]:
        one = self._found[index]
        parts = [(f"{one.time:<10}", "muted"), (_cell(one.answer, 8), one.look)]
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
