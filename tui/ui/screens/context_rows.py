"""The ledger as a table: its rows, their order, filter and drawing, and the texts around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import structs
from rich.cells import cell_len
from textual.content import Content

from tui.agent.request.pruning import Waiting
from tui.context.token_ledger import PARTS, Item, Kind
from tui.core.dataclass import dataclass, replace
from tui.core.fact_words import ITEM_STATES
from tui.core.facts import ContextMeasured
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
"""Orders by name: their label and sort key."""
BY_SIZE: Final[frozenset[Order]] = frozenset({"tokens", "kind"})
"""Orders in which an item moves when it is masked."""
FOLDABLE: Final[Mapping[Kind, str]] = {"system": "part", "tools": "tool"}
"""Kinds that are shown as one row with their sum, and the word for one of their items."""

_COLUMNS: Final = (
    ("kind", 11, 56),
    ("item", 0, 0),
    ("prompts ago", 12, 76),
    ("tokens", 9, 0),
    ("share", 8, 76),
    ("state", 12, 0),
)
"""Name, cells, and the width from which there is room for the column; the item gets the rest."""

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
    "outdated": "warning",
    "cut": "warning",
    "pruned": "secondary",
    "masked": "accent",
    "summarised": "secondary",
    "repaired": "error",
}


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """An item and how many turns ago it was made; None for what every request carries.

    `waits` is true if it is old enough to be pruned, and will be with the next break or once that
    pays. `outdated` is true if the file that it shows has changed since. `parts` are the items
    summed up in it, which follow it while it is `unfolded`; they are `inner`.
    """

    item: Item
    age: int | None
    waits: bool = False
    outdated: bool = False
    parts: tuple[LedgerRow, ...] = ()
    unfolded: bool = False
    inner: bool = False

    @property
    def state(self) -> str:
        """The state in a word; "" for an item that is sent in full."""
        return "outdated" if self.outdated else "waits" if self.waits else state_name(self.item)


def state_name(item: Item) -> str:
    """Return an item's state in a word; "" if it is sent in full."""
    return ITEM_STATES.get(item.state, item.state)


def arranged(
    rows: Iterable[LedgerRow], words: str, order: Order, unfolded: Collection[Kind] = ()
) -> list[LedgerRow]:
    """Return the rows in an order, equal ones in the order of the request.

    System and tools are a row each, followed by their parts if unfolded. With words, only rows
    whose kind, label or state contain every word ("pinned" finds pins), parts included.
    """
    words_sought = words.casefold().split()

    def matches(row: LedgerRow) -> bool:
        item = row.item
        texts = (item.label.casefold(), item.kind, row.state, "pinned" if item.pinned else "")
        return all(any(word in text for text in texts) for word in words_sought)

    if words_sought:
        shown = [row for row in rows if matches(row)]
    else:
        shown = list(_summed(list(rows), unfolded))
    key = ORDERS[order][1]
    return [
        each
        for row in sorted(shown, key=key)
        for each in (row, *(sorted(row.parts, key=key) if row.unfolded else ()))
    ]


def _summed(rows: Sequence[LedgerRow], unfolded: Collection[Kind]) -> Iterator[LedgerRow]:
    """Yield the rows, those of a foldable kind as one if there are several."""
    members = {kind: [row for row in rows if row.item.kind == kind] for kind in FOLDABLE}
    for row in rows:
        parts = members.get(row.item.kind, ())
        if len(parts) < 2:
            yield row
        elif row is parts[0]:
            yield _sum(row.item.kind, parts, unfolded=row.item.kind in unfolded)


def _sum(kind: Kind, parts: Sequence[LedgerRow], *, unfolded: bool) -> LedgerRow:
    names = ", ".join(part.item.label for part in parts)
    label = f"{plural(len(parts), FOLDABLE[kind])}: {names}"
    item = Item(f"{kind}:", kind, label, sum(part.item.tokens for part in parts), "full")
    inner = tuple(replace(part, inner=True) for part in parts)
    return LedgerRow(item, None, parts=inner, unfolded=unfolded)


def largest_result(rows: Sequence[LedgerRow]) -> int:
    """Return the index of the first result, which is the largest one when sorted by size."""
    return next((at for at, row in enumerate(rows) if row.item.kind == "result"), 0)


def heading(width: int) -> str:
    """Return the heading over `row_parts`."""
    names = {name: name for name, _, _ in _COLUMNS}
    return "  " + "".join(text for _, text in _line(names, width))


def row_parts(row: LedgerRow, width: int, window: int) -> list[Part]:
    """Return a row in `width` cells: pin, kind, label, and if there is room age and share."""
    item = row.item
    mark = ("▾ " if row.unfolded else "▸ ") if row.parts else "  " if row.inner else ""
    looks = {
        "kind": _KIND_LOOKS[item.kind],
        "item": "muted" if item.state in {"masked", "pruned", "summarised"} else "text",
        "tokens": "text",
        "state": _STATE_LOOKS.get(row.state, _STATE_LOOKS[item.state]),
    }
    texts = {
        "kind": item.kind,
        "item": mark + one_line(item.label[:400]),
        "prompts ago": "" if row.age is None else f"{row.age:,}",
        "tokens": tokens(item.tokens),
        "share": share(item.tokens, window),
        "state": row.state,
    }
    line = [(text, looks.get(name, "muted")) for name, text in _line(texts, width)]
    return [("◆ " if item.pinned else "  ", "warning"), *line]


def _line(texts: Mapping[str, str], width: int) -> list[tuple[str, str]]:
    """Return the cells of a line after its pin, with the names of their columns."""
    shown = [(name, cells) for name, cells, least in _COLUMNS if width >= least]
    room = max(4, width - 2 - sum(cells for _, cells in shown))
    line: list[tuple[str, str]] = []
    for name, cells in shown:
        if name == "item":
            text = cell(texts[name], room)
        elif name == "kind":
            text = f"{texts[name]:<{cells}}"
        elif name == "state":
            text = f"  {texts[name]:<{cells - 2}}"
        else:
            text = f"{texts[name]:>{cells}}"
        line.append((name, text))
    return line


def share(count: int, window: int) -> str:
    """Format a share of the window: 9 %, 0.4 %, or — if the window is unknown."""
    if not window:
        return "—"
    part = 100 * count / window
    if 0 < part < 0.05:
        return "<0.1 %"
    return f"{part:.0f} %" if part >= 9.95 or not part else f"{part:.1f} %"


KEYS = (
    ("enter", "open"),
    ("m w", "hide now, later"),
    ("p", "pin"),
    ("d", "send changes"),
    ("u", "undo"),
    ("e", "earlier"),
    ("b", "hide several"),
    ("/", "filter"),
    ("t a k", "sort"),
    ("y", "copy"),
    ("tab", "request"),
    ("esc", "back"),
)
REQUEST_KEYS = (("/", "find"), ("y", "copy"), ("tab", "items"), ("esc", "back"))
NOTHING_SENT = """\
Nothing here yet.
Every message and tool result in the next request will be listed here with its size.
Hide a result you don't need: the model then sees one line instead.
Nothing is lost. The session file keeps it, and u brings it back."""
FIXED = "System items are always sent; they can't be hidden or pinned."


def context_title(
    items: Sequence[Item],
    count: int,
    window: int,
    waiting: Waiting | None = None,
    *,
    outdated: int = 0,
    width: int = 200,
) -> Content:
    """Return the tokens, the window, and as many facts about the items as fit in `width` cells."""
    full = count / window if window else 0.0
    look = "$foreground"
    if full > MARK:
        look = "$text-error" if full > NEARLY_FULL else "$text-warning"
    head = Content.assemble(
        ("context", "bold $text-primary"),
        (f"   {tokens(count)}", f"bold {look}"),
        (f" / {tokens(window)}  {full:.0%}".replace("%", " %"), look),
    )
    facts = [*_facts(items), *_waiting_facts(waiting)]
    if outdated:
        facts.insert(1, f"{outdated:,} outdated")
    while facts and head.cell_length + 3 + cell_len(" · ".join(facts)) > width:
        facts.pop()
    return Content.assemble(head, (f"   {' · '.join(facts)}" if facts else "", "$text-muted"))


def _waiting_facts(waiting: Waiting | None) -> list[str]:
    """Say how many items wait to be pruned, and what that would save."""
    if waiting is None or not waiting.records:
        return []
    return [f"{len(waiting.records):,} to leave out, −{tokens(waiting.tokens)}"]


def _facts(items: Sequence[Item]) -> list[str]:
    counts = Counter[str](item.state for item in items)
    counts["pinned"] = sum(item.pinned for item in items)
    states = ("cut", "masked", "pruned", "summarised", "repaired", "pinned")
    return [
        plural(len(items), "item"),
        *(f"{counts[one]:,} {ITEM_STATES.get(one, one)}" for one in states if counts[one]),
    ]


def totals(items: Sequence[Item], measured: ContextMeasured, width: int) -> Content:
    """Return a bar of each kind's share of the window, the names of the kinds, and the source of
    the figures."""
    parts: dict[str, int] = {}
    for item in items:
        part = PARTS[item.kind]
        parts[part] = parts.get(part, 0) + item.tokens
    width = max(10, width)
    legend = _legend(parts, width)
    rows = (bar(structs.replace(measured, parts=parts), width), legend, details(measured, width))
    return Content("\n").join([row.truncate(width, ellipsis=True) for row in rows if row])


def _legend(parts: Mapping[str, int], width: int) -> Content:
    """Return the parts with their tokens; the smallest are left out if there is no room for all."""
    shown = [kind for kind in KINDS if parts.get(kind)]
    while True:
        named = [(KINDS[kind], f" {kind} {tokens(parts[kind])}") for kind in shown]
        legend = Content("  ").join(
            [
                Content.assemble((glyph, style), (text, "$text-muted"))
                for (glyph, style), text in named
            ]
        )
        if legend.cell_length <= width or len(shown) < 2:
            return legend
        shown.remove(min(shown, key=lambda kind: parts[kind]))


def empty_text(words: str) -> str:
    """Explain why there is no row."""
    return (
        f"No item matches “{one_line(words)}”.\nPress Esc to clear the filter."
        if words
        else NOTHING_SENT
    )
