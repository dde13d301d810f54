"""The ledger as a table: rows, their order, the filter, how one is drawn, the words around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import structs
from textual.content import Content

from tui.agent.events import ContextMeasured
from tui.agent.pruning import Waiting
from tui.context.token_ledger import PARTS, Item
from tui.core.formatting import plural, tokens
from tui.core.text_cleaning import one_line
from tui.ui.screens.table_screen import cell
from tui.ui.widgets.context_meter import KINDS, MARK, NEARLY_FULL, bar, details
from tui.ui.widgets.row_list import Part

Order: TypeAlias = Literal["request", "tokens", "age", "kind"]
ORDERS: dict[Order, tuple[str, Callable[[LedgerRow], tuple[int, ...]]]] = {
    "request": ("request order", lambda _: ()),
    "tokens": ("largest first", lambda row: (-row.item.tokens,)),
    "age": ("oldest first", lambda row: (1 if row.age is None else -row.age,)),
    "kind": ("by kind", lambda row: (_KINDS.index(row.item.kind), -row.item.tokens)),
}
"""What an order is called, and what it goes by."""
NARROW = 76

_KIND_LOOKS = {
    "system": "secondary",
    "tools": "accent",
    "memory": "warning",
    "summary": "warning",
    "user": "primary",
    "image": "secondary",
    "assistant": "primary",
    "result": "success",
}
_KINDS = list(_KIND_LOOKS)
_STATE_LOOKS = {
    "full": "muted",
    "waits": "muted",
    "cut": "warning",
    "pruned": "secondary",
    "masked": "accent",
    "summarised": "secondary",
    "repaired": "error",
}


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """An item and how many turns ago it was made; None for what every request carries.

    `waits`: it is old enough to be pruned, and will be with the next break, or once that pays.
    """

    item: Item
    age: int | None
    waits: bool = False

    @property
    def state(self) -> str:
        return "waits" if self.waits else self.item.state


def arranged(rows: Iterable[LedgerRow], words: str, order: Order) -> list[LedgerRow]:
    """The rows in whose kind, label or state every word occurs ("pinned" finds pins), in an order;
    equals stay in the order of the request."""
    wanted = words.casefold().split()

    def text(row: LedgerRow) -> str:
        item, pinned = row.item, "pinned" if row.item.pinned else ""
        return f"{item.kind} {item.label} {row.state} {pinned}".casefold()

    found = [row for row in rows if all(word in text(row) for word in wanted)]
    return sorted(found, key=ORDERS[order][1])


def heading(width: int) -> str:
    """The heading over `row_parts`, with the keys that sort."""
    if width < NARROW:
        return f"  {'kind':<10}{'item':<{max(4, width - 30)}}{'tokens':>8}  state"
    room = max(4, width - 51)
    return f"  {'kind':<11}{'item':<{room}}{'turns ago':>10}{'tokens':>9}{'share':>8}  state"


def row_parts(row: LedgerRow, width: int, window: int) -> list[Part]:
    """One row in `width` cells: pin, kind, label, and where there is room age and share."""
    item = row.item
    label = one_line(item.label[:400])
    parts: list[Part] = [("◆ " if item.pinned else "  ", "warning")]
    look = "muted" if item.state in {"masked", "pruned", "summarised"} else "text"
    if width < NARROW:
        return [
            *parts,
            (f"{item.kind:<10}", _KIND_LOOKS[item.kind]),
            (cell(label, max(4, width - 30)), look),
            (f"{tokens(item.tokens):>8}", "text"),
            (f"  {row.state:<8}"[:10], _STATE_LOOKS[row.state]),
        ]
    room = max(4, width - 51)
    age = "" if row.age is None else f"{row.age:,}"
    return [
        *parts,
        (f"{item.kind:<11}", _KIND_LOOKS[item.kind]),
        (cell(label, room), look),
        (f"{age:>10}", "muted"),
        (f"{tokens(item.tokens):>9}", "text"),
        (f"{share(item.tokens, window):>8}", "muted"),
        (f"  {row.state:<9}", _STATE_LOOKS[row.state]),
    ]


def share(count: int, window: int) -> str:
    """Of the window: 9 %, 0.4 %, — where the window is not known."""
    if not window:
        return "—"
    part = 100 * count / window
    if 0 < part < 0.05:
        return "<0.1 %"
    return f"{part:.0f} %" if part >= 9.95 or not part else f"{part:.1f} %"


KEYS = (
    ("enter", "open"),
    ("m w", "mask now, later"),
    ("p", "pin"),
    ("u", "undo"),
    ("b", "many"),
    ("/", "filter"),
    ("t a k", "sort"),
    ("y", "copy"),
    ("tab", "request"),
    ("esc", "back"),
)
NOTHING_SENT = """\
Nothing here yet.
Every message and tool result in the next request will be listed here with its size.
Mask a result you don't need: the model then sees one line instead.
Nothing is lost. The session file keeps it, and u brings it back."""
FIXED = "System items are always sent; they can't be masked or pinned."


def context_title(
    items: Sequence[Item], count: int, window: int, waiting: Waiting | None = None
) -> Content:
    """The tokens, the window, and how the items stand."""
    full = count / window if window else 0.0
    look = "$foreground"
    if full > MARK:
        look = "$text-error" if full > NEARLY_FULL else "$text-warning"
    return Content.assemble(
        ("context", "bold $text-primary"),
        (f"   {tokens(count)}", f"bold {look}"),
        (f" / {tokens(window)}  {full:.0%}".replace("%", " %"), look),
        (f"   {' · '.join([*_facts(items), *_waiting_facts(waiting)])}", "$text-muted"),
    )


def _waiting_facts(waiting: Waiting | None) -> list[str]:
    """What waits to be pruned, and what that would save."""
    if waiting is None or not waiting.records:
        return []
    some = f"{len(waiting.records):,} wait" if len(waiting.records) > 1 else "1 waits"
    return [f"{some} to prune, −{tokens(waiting.tokens)}"]


def _facts(items: Sequence[Item]) -> list[str]:
    counts = {
        state: sum(item.state == state for item in items)
        for state in ("cut", "masked", "pruned", "summarised", "repaired")
    }
    counts["pinned"] = sum(item.pinned for item in items)
    return [
        plural(len(items), "item"),
        *(f"{count:,} {state}" for state, count in counts.items() if count),
    ]


def totals(items: Sequence[Item], measured: ContextMeasured, width: int) -> Content:
    """A bar of what each kind of item takes of the window, the names of the kinds, and where the
    figures are from."""
    parts: dict[str, int] = {}
    for item in items:
        part = PARTS[item.kind]
        parts[part] = parts.get(part, 0) + item.tokens
    legend = Content("  ").join(
        [
            Content.assemble((glyph, style), (f" {kind} {tokens(parts[kind])}", "$text-muted"))
            for kind, (glyph, style) in KINDS.items()
            if parts.get(kind)
        ]
    )
    width = max(10, width)
    rows = (bar(structs.replace(measured, parts=parts), width), legend, details(measured, width))
    return Content("\n").join([row.truncate(width, ellipsis=True) for row in rows if row])


def empty_text(words: str) -> str:
    """Why there is no row."""
    return (
        f"No item matches “{one_line(words)}”.\nPress Esc to clear the filter."
        if words
        else NOTHING_SENT
    )
