"""Opening a damaged session: the problems, the repairs, and the person's options."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from tui.app.damage_report import Damage, findings_summary, where
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.ui.screens.table_screen import TableScreen, cell, whole_words
from tui.ui.widgets.output_view import OutputView
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.questions import Choice, ChoicePlace
from tui.ui.widgets.row_list import Part, RowList

Answer: TypeAlias = Literal["continue", "read_only", "copy", "back"]

SIDES_AFTER_S = 0.06
SMALL = 60
"""With fewer cells, the answers are listed one below the other."""


class RepairScreen(TableScreen[Answer], ChoicePlace):
    """Dismissed with the chosen option; Esc is back.

    `copy` is where a repaired copy would be written; None for a session of another agent, which is
    copied anyway. `unasked` is true if it opens by itself.
    """

    awaited = True
    CSS_PATH = "repair.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "choose('continue')", "continue", show=False),
        Binding("r", "choose('read_only')", "read-only", show=False),
        Binding("w", "choose('copy')", "write a copy", show=False),
        Binding("escape,ctrl+c", "choose('back')", "back", show=False),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#continue"

    def __init__(
        self, damage: Damage, copy: Path | None, *, title: str = "", unasked: bool = False
    ) -> None:
        super().__init__()
        self.unasked = unasked
        self._damage, self._copy = damage, copy
        self._title = one_line(title)

    def compose(self) -> ComposeResult:
        yield Static(self._heading(), id="title", markup=False)
        yield Static(self._summary(), id="summary", markup=False)
        yield PaneRule("problems and repairs", id="found-rule")
        rows = RowList(id="rows")
        rows.can_focus = False
        yield rows
        with Container(id="sides"):
            for side in ("before", "after"):
                with Vertical(classes="side", id=f"{side}-side"):
                    yield PaneRule(side)
                    yield OutputView(id=side)
        yield PaneRule(id="effect-rule")
        yield Static(self._effect(), id="effect", markup=False)
        with Horizontal(id="ways"):
            yield Choice("c", "Continue", "continue")
            if self._copy is not None:
                yield Choice("r", "Read-only", "read_only")
                yield Choice("w", "Write a copy", "copy")
            yield Choice("esc", "Cancel", "back")

    def on_mount(self) -> None:
        if self.unasked:
            self.await_quiet()
        findings = self._damage.findings
        for side in ("before", "after"):
            self.query_one(f"#{side}", OutputView).wrap = True
        self.rows.show(len(findings), self._row)
        self.show_sides()

    def on_resize(self) -> None:
        self.set_class(self.size.width < SMALL, "-small")

    def note(self, text: str) -> None:
        """Show a line right above the answers, in place of their effect on the file."""
        line = Content.styled(text, "bold $text-warning") if text else self._effect()
        self.put("effect", line)

    def sides(self) -> tuple[str, str]:
        """Return the shown texts, before and after."""
        return self.query_one("#before", OutputView).text, self.query_one("#after", OutputView).text

    def _heading(self) -> Content:
        return Content.assemble(
            ("This session is damaged", "bold $text-warning"),
            (f"   {self._title}" if self._title else "", "$foreground"),
            (f"   {shorten(self._damage.path)}", "$text-muted"),
        )

    def _summary(self) -> Content:
        findings = self._damage.findings
        places = "one place" if len(findings) == 1 else f"{len(findings):,} places"
        return Content.assemble(
            (f"It needs repair in {places}: ", "$foreground"),
            (f"{findings_summary(findings)}.", "$foreground"),
        )

    def _effect(self) -> Content:
        outcome = "The file stays as it is: Holdfast repairs it in memory"
        if self._copy is None:
            text = f"{outcome} and opens a copy."
        else:
            text = (
                f"{outcome} and adds new messages at the end.\n"
                f"A repaired copy would be named {self._copy.name}, in the same folder."
            )
        return Content.styled(text, "$text-muted")

    def _row(self, index: int, width: int) -> list[Part]:
        finding = self._damage.findings[index]
        place = 22 if width >= SMALL else 12
        return [
            ("! ", "warning"),
            (f"{cell(where(finding), place - 1)} ", "muted"),
            (whole_words(one_line(finding.action), max(8, width - 2 - place)), "text"),
        ]

    def row_moved(self, index: int) -> None:  # noqa: ARG002
        self.show_sides()

    @work(exclusive=True, group="sides")
    async def show_sides(self) -> None:
        """Show the part under the cursor, before and after, once the cursor rests."""
        await asyncio.sleep(SIDES_AFTER_S)
        if not self._damage.findings:
            return
        number = self.rows.cursor
        before, after = await asyncio.to_thread(self._damage.sides, number)
        for side, text in (("before", before), ("after", after)):
            view = self.query_one(f"#{side}", OutputView)
            view.show(f"{side} {plural(number + 1, 'finding')}", text)
            view.action_edge(-1)

    @on(Choice.Answered)
    def _chosen(self, event: Choice.Answered) -> None:
        self.action_choose(event.name)

    def action_choose(self, name: str) -> None:
        offered = {choice.name for choice in self.query(Choice)}
        if name in offered:
            self.dismiss(name)  # pyright: ignore[reportArgumentType] - one of Answer: see compose
