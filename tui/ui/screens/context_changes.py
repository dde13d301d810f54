"""The changes that keys of the inspector make, and how they are undone; masking many results at
once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from tui.agent.request.break_cost import ChangePrice
from tui.context import masks
from tui.context.masks import MaskableResult, MaskPlan, one_image, record_of
from tui.context.overrides import overlays_of, pins_of, stand
from tui.context.token_ledger import Item
from tui.core.dataclass import dataclass, field, replace
from tui.core.facts import Overlay
from tui.core.formatting import plural, tokens
from tui.session.records import Record
from tui.ui.screens.context_rows import share
from tui.ui.screens.table_screen import TableDialog, cell
from tui.ui.widgets.row_list import Part, RowList

if TYPE_CHECKING:
    from tui.agent.agent import Agent


@dataclass(frozen=True, slots=True)
class ContextChange:
    """A change of how records are sent, and of which are pinned (True) or unpinned."""

    overlays: Sequence[Overlay] = ()
    pins: Mapping[str, bool] = field(default_factory=dict[str, bool])


def masking(item: Item, records: Sequence[Record]) -> ContextChange:
    """Return the change that masks an item, or unmasks a masked one; for an image, only that
    image."""
    hide, (id_, place) = item.state != "masked", record_of(item.id)
    if place is not None:
        return ContextChange([one_image(records, id_, place, hide=hide)])
    return ContextChange([Overlay(id_, "masked" if hide else "full")])


async def mask_price(agent: Agent, item: Item) -> str:
    """Return the price of pressing m for an item; "" if that would change nothing."""
    records = agent.session.records
    overlay, id_ = masking(item, records).overlays[0], record_of(item.id)[0]
    record = next((one for one in records if one.id == id_), None)
    if record is None or (overlay.view == "masked" and stand(record, overlay) is None):
        return ""
    weigh = agent.context.ledger.would
    try:
        then = weigh(id_, stand(record, overlay))
        saved = weigh(id_, agent.context.view().stands.get(id_)) - then
    except KeyError:  # behind a summary
        return ""
    verb = "show" if item.state == "masked" else "hide"
    waits = "waits for a cache restart · " if id_ in agent.context.pending else ""
    price = await agent.context.price_of_changes([overlay], saved)
    return f"{waits}m {verb}: {replace(price, pays_after=None).text}"  # the line is short


def pinning(item: Item) -> ContextChange:
    """Return the change that pins or unpins an item."""
    return ContextChange(pins={record_of(item.id)[0]: not item.pinned})


def undoing(change: ContextChange, records: Sequence[Record]) -> ContextChange:
    """Return the change that restores `records`, which are those before the change."""
    masks, pinned = overlays_of(records), pins_of(records)
    targets = [overlay.target for overlay in change.overlays]
    return ContextChange(
        [masks.get(target, Overlay(target, "full", reason="undone")) for target in targets],
        {target: target in pinned for target in change.pins},
    )


def change_text(change: ContextChange, saved: int, window: int) -> str:
    """Describe what a change did; `saved` is in tokens, negative if it costs some."""
    if not change.overlays:
        what = "pinned" if any(change.pins.values()) else "unpinned"
        return f"{plural(len(change.pins), 'item')} {what}."
    many = plural(len(change.overlays), "item")
    if any(overlay.wait for overlay in change.overlays):
        return f"{many} will be hidden when the cache restarts anyway, such as after /compact."
    masked = any(overlay.view != "full" for overlay in change.overlays)
    what = f"{many} hidden" if masked else f"{many} restored"
    verb = "costs" if saved < 0 else "saves"
    size = f"{tokens(abs(saved))} tokens ({share(abs(saved), window)})"
    return f"{what}: {verb} ~{size}, starting with the next request."


TURNS = (0, 1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 50)
NARROW = 52
"""With fewer cells in a row, a plan says only how many tokens it saves."""
CHARS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)


def effect(plan: MaskPlan, window: int) -> str:
    """Describe what a plan would do."""
    if not plan.targets:
        return "nothing to hide"
    saved = f"saves ~{tokens(plan.saves)} tokens ({share(plan.saves, window)})"
    return f"hides {plural(len(plan.targets), 'result')}, {saved}"


class BulkMenu(TableDialog[MaskPlan | None]):
    """Dialog that is dismissed with the chosen plan, or None.

    `stale` will be the plan for changed files; `price` works out the price of changes that save so
    many tokens.
    """

    CSS_PATH = "context.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,b,q,ctrl+c", "dismiss(None)", "close", show=False),
        Binding("left,minus", "step(-1)", show=False),
        Binding("right,plus", "step(1)", show=False),
        Binding("w", "later", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#plans"

    def __init__(
        self,
        found: Sequence[MaskableResult],
        stale: Awaitable[MaskPlan],
        window: int,
        price: Callable[[Sequence[Overlay], int], Awaitable[ChangePrice]],
    ) -> None:
        super().__init__()
        self._found, self._awaited = found, stale
        self._stale: MaskPlan | None = None
        self._window, self._price = window, price
        self._turns, self._chars = TURNS.index(6), CHARS.index(5_000)

    def compose(self) -> ComposeResult:
        keys = (
            ("enter", "now"),
            ("w", "at the next cache restart"),
            ("← →", "number"),
            ("esc", "back"),
        )
        with self.framed(Vertical(), "Hide several results", *keys):
            yield RowList(id="plans")
            yield Static(id="price", markup=False)
            yield Static("Pinned results are kept. u undoes.", markup=False)

    def on_mount(self) -> None:
        self._draw()
        self.check_files()

    @work(group="files")
    async def check_files(self) -> None:
        """Show the plan for changed files."""
        self._stale = await self._awaited
        self._draw()

    def plans(self) -> list[MaskPlan]:
        """Return the choices in their order."""
        return [
            masks.older(self._found, TURNS[self._turns]),
            masks.larger(self._found, CHARS[self._chars]),
            self._stale or masks.outdated((), lambda _: False),
        ]

    def _draw(self) -> None:
        rows, plans = self.rows, self.plans()
        rows.styles.height = len(plans)
        rows.show(
            len(plans), lambda index, width: self._row(plans[index], width), cursor=rows.cursor
        )
        self._explain()

    def row_moved(self, index: int) -> None:  # noqa: ARG002
        self._explain()

    @work(group="price", exclusive=True)
    async def _explain(self) -> None:
        """Show the price of the plan under the cursor, once it is worked out."""
        plan = self.plans()[self.rows.cursor]
        if not plan.targets:
            self._show_price("")
            return
        what = f"hide {plural(len(plan.targets), 'result')}"
        self._show_price(f"{what}: …")
        price = await self._price(plan.overlays(), plan.saves)
        self._show_price(f"{what}: {price.text}.")

    def _show_price(self, text: str) -> None:
        self.query_one("#price", Static).update(f"\n{text}\n")

    def _row(self, plan: MaskPlan, width: int) -> list[Part]:
        looking = self._stale is None and plan.reason.startswith("reads")
        what, comes_to = plan.reason, "…" if looking else effect(plan, self._window)
        if not what.startswith("reads"):
            what = f"results {what}"
        look = "success" if plan.targets else "muted"
        if width < NARROW:
            saved = f"~{tokens(plan.saves)}" if plan.targets else "…" if looking else "—"
            return [(cell(f" {plan.reason}", width - 9), "text"), (f"{saved:>9}", look)]
        if width < 80 and plan.targets:
            comes_to = f"{plural(len(plan.targets), 'result')}, ~{tokens(plan.saves)}"
        return [(f" {what:<32}", "text"), (comes_to, look)]

    def action_step(self, step: int) -> None:
        """Raise or lower the number of the row under the cursor."""
        match self.rows.cursor:
            case 0:
                self._turns = max(0, min(self._turns + step, len(TURNS) - 1))
            case 1:
                self._chars = max(0, min(self._chars + step, len(CHARS) - 1))
            case _:
                return
        self._draw()

    def row_chosen(self, index: int) -> None:
        plan = self.plans()[index]
        self.dismiss(plan if plan.targets else None)

    def action_later(self) -> None:
        """Mask with the next break, which then costs no more."""
        plan = self.plans()[self.rows.cursor]
        self.dismiss(replace(plan, wait=True) if plan.targets else None)
