"""/tree: the branches of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tui.app.dialog_data import UNDO, BranchQuestion
from tui.app.reports.branches import NOTHING_SAID, branch_about, branch_facts, indent
from tui.core.clock import Clock
from tui.ui.screens.table_screen import TableDialog, whole_words
from tui.ui.toolkit.answer_guard import guard_of
from tui.ui.widgets.keys import BRANCH_KEYS, bindings
from tui.ui.widgets.row_list import Part, RowList


class BranchesScreen(TableDialog[str | None]):
    """Dismissed with the leaf of a branch, or with `UNDO`; None for Esc."""

    DEFAULT_CSS = """
    BranchesScreen #box, BranchesScreen.-short #box { padding: 0 1; }
    BranchesScreen #about {
        height: auto; max-height: 4; padding: 0 1; color: $text-muted;
        border-top: solid $rule;
    }
    BranchesScreen.-tiny #about { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(BRANCH_KEYS),
        Binding("escape,q,ctrl+c", "dismiss(None)", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "RowList"

    def __init__(self, question: BranchQuestion, clock: Clock) -> None:
        super().__init__(classes="-table")
        self._rows, self._can_undo, self._clock = question.rows, question.can_undo, clock

    def compose(self) -> ComposeResult:
        undo = (("u", "undo the last rewind"),) if self._can_undo else ()
        keys = ("enter", "continue here"), *undo, ("esc", "back")
        with self.framed(Vertical(), "branches", *keys):
            yield RowList(id="rows")
            yield Static("", id="about", markup=False)

    def on_mount(self) -> None:
        self._fit()
        current = next((at for at, row in enumerate(self._rows) if row.current), 0)
        self.rows.show(len(self._rows), self._parts, cursor=current)
        self.row_moved(current)

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        self.rows.styles.height = max(1, min(len(self._rows), self.free_rows(4)))

    def _parts(self, index: int, width: int) -> Sequence[Part]:
        row = self._rows[index]
        facts = branch_facts(row, self._clock.now(), width // 2)
        mark = ("● ", "primary") if row.current else ("○ ", "muted")
        lines = indent(row)
        room = max(8, width - 4 - cell_len(lines) - cell_len(facts))
        words = whole_words(row.first or NOTHING_SAID, room)
        gap = " " * max(2, width - 2 - cell_len(lines) - cell_len(words) - cell_len(facts))
        look = "text" if row.first else "muted"
        return [(lines, "muted"), mark, (words, look), (f"{gap}{facts}", "muted")]

    def action_undo(self) -> None:
        """Undo the last rewind or switch of branches."""
        if self._can_undo and guard_of(self).deliberate:
            self.dismiss(UNDO)

    def row_moved(self, index: int) -> None:
        self.put("about", Content("\n".join(branch_about(self._rows[index]))))

    def row_chosen(self, index: int) -> None:
        self.dismiss(self._rows[index].leaf)
