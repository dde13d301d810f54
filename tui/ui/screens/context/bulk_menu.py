"""Mask many results at once: what each choice would mask and save is shown before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from tui.context import masks
from tui.context.masks import MaskableResult, MaskPlan
from tui.core.formatting import plural, tokens
from tui.ui.screens.context.rows import share
from tui.ui.widgets.dialog import Dialog
from tui.ui.widgets.row_list import Part, Rows

TURNS = (0, 1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50)
CHARS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)


def effect(plan: MaskPlan, window: int) -> str:
    """What a plan would come to."""
    if not plan.targets:
        return "nothing to mask"
    saved = f"saves ~{tokens(plan.saves)} tokens ({share(plan.saves, window)})"
    return f"masks {plural(len(plan.targets), 'result')}, {saved}"


class BulkMenu(Dialog[MaskPlan | None]):
    """Dismissed with the plan that was chosen, or None. `stale` is that of the changed files."""

    CSS_PATH = "context.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,b,q,ctrl+c", "dismiss(None)", "close", show=False),
        Binding("left,minus", "step(-1)", show=False),
        Binding("right,plus", "step(1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#plans"

    def __init__(self, found: Sequence[MaskableResult], stale: MaskPlan, window: int) -> None:
        super().__init__()
        self._found = found
        self._stale = stale
        self._window = window
        self._turns, self._chars = TURNS.index(6), CHARS.index(5_000)

    def compose(self) -> ComposeResult:
        keys = (("enter", "mask"), ("← →", "change the number"), ("esc", "back"))
        with self.framed(Vertical(), "mask many results", *keys):
            yield Rows(id="plans")
            yield Static(
                "\nPinned results stay. What is masked can be undone with u.", markup=False
            )

    def on_mount(self) -> None:
        self._draw()

    def plans(self) -> list[MaskPlan]:
        """The choices, in their order."""
        return [
            masks.older(self._found, TURNS[self._turns]),
            masks.larger(self._found, CHARS[self._chars]),
            self._stale,
        ]

    def _draw(self) -> None:
        rows = self.query_one("#plans", Rows)
        plans = self.plans()
        rows.styles.height = len(plans)
        rows.show(
            len(plans), lambda index, width: self._row(plans[index], width), cursor=rows.cursor
        )

    def _row(self, plan: MaskPlan, width: int) -> list[Part]:
        what, comes_to = plan.reason, effect(plan, self._window)
        if not what.startswith("reads"):
            what = f"results {what}"
        look = "success" if plan.targets else "muted"
        if width < 80 and plan.targets:
            comes_to = f"{plural(len(plan.targets), 'result')}, ~{tokens(plan.saves)}"
        return [(f" {what:<32}", "text"), (comes_to, look)]

    def action_step(self, step: int) -> None:
        """More or less of what the row under the cursor counts."""
        match self.query_one("#plans", Rows).cursor:
            case 0:
                self._turns = max(0, min(self._turns + step, len(TURNS) - 1))
            case 1:
                self._chars = max(0, min(self._chars + step, len(CHARS) - 1))
            case _:
                return
        self._draw()

    @on(Rows.Chosen)
    def _chosen(self, event: Rows.Chosen) -> None:
        plan = self.plans()[event.index]
        self.dismiss(plan if plan.targets else None)
