"""Rows with bars that show where tokens and money went, made once for every front end.

A bar is as long as what it costs, and is made of three parts: what came from the cache, what was
new to the model, what the model wrote. Each part has a character of its own, so that it is seen
without colors, too. Where no price is known, a bar shows tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from tui.context.usage import Amount, total_of
from tui.core.dataclass import dataclass, replace
from tui.core.formatting import money, plural, tokens
from tui.core.text_cleaning import one_line

Look: TypeAlias = Literal["", "head", "muted", "cached", "new", "output", "warning"]
"""The look of a part of a line: the parts of bars have colors of their own."""
Piece: TypeAlias = tuple[Look, str]
Width: TypeAlias = Callable[[str], int]

NAMES: Final[Mapping[str, str]] = {
    "day": "day",
    "model": "model",
    "folder": "folder",
    "repository": "repository",
    "session": "session",
    "purpose": "purpose",
    "prompt": "prompt",
    "brought": "prompt that brought it",
    "kind": "kind of content",
    "tool": "tool",
    "file": "file",
    "server": "MCP server",
    "skill": "skill",
    "agent": "sub-agent",
    "break": "cache restart",
    "profile": "profile",
}
"""The groupings, with their names for people."""
IN_ORDER: Final = frozenset({"day", "prompt", "brought"})
"""The groupings whose rows stand in the order of time."""
_PATHS: Final = frozenset({"file", "folder", "repository"})
"""The groupings whose names say most at their end."""
_NOTHING: Final[Mapping[str, str]] = {
    "day": "(no date)",
    "model": "(model not named)",
    "folder": "(no folder)",
    "repository": "(no folder)",
    "prompt": "(before the first prompt)",
    "brought": "(there from the start)",
    "tool": "(no tool)",
    "file": "(no file)",
    "server": "(no MCP server)",
    "skill": "(no skill)",
    "agent": "(no sub-agent)",
    "break": "(everything else)",
}
_CHARS: Final[Mapping[Look, str]] = {"cached": "░", "new": "▒", "output": "█"}
_ASCII: Final[Mapping[Look, str]] = {"cached": ".", "new": "+", "output": "#"}
_GAP: Final = 2
_LEAST_NAME: Final = 12
_MOST_BAR: Final = 60
_SHORT: Final = 22
_DEAREST: Final = 3
UNKNOWN: Final = "price unknown"


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A row: its name, and what it amounts to. `key` is its name in the data."""

    key: str
    name: str
    amount: Amount


@dataclass(frozen=True, slots=True)
class UsageTable:
    """The rows of one grouping, which add up to `total`; not to all that was paid unless
    `whole`."""

    by: str
    rows: tuple[UsageRow, ...]
    whole: bool = True

    @property
    def total(self) -> Amount:
        return total_of(row.amount for row in self.rows)


def table_of(
    by: str, amounts: Mapping[str, Amount], names: Mapping[str, str] | None = None
) -> UsageTable:
    """Make the rows of a grouping: in the order of time, or the dearest first. What belongs to
    nothing comes last. `names` are those for people, where the data has others."""
    shown = names or {}
    rows = [
        UsageRow(key, one_line(shown.get(key) or key) if key else _NOTHING.get(by, "(other)"), one)
        for key, one in amounts.items()
    ]
    order = _by_time if by in IN_ORDER else _by_cost
    return UsageTable(by, tuple(sorted(rows, key=order)))


def _by_time(row: UsageRow) -> tuple[bool, int, str]:
    number = row.key.rpartition(" ")[2]
    return not row.key, int(number) if number.isdigit() and len(number) < 9 else 0, row.key


def _by_cost(row: UsageRow) -> tuple[bool, float, float, str]:
    return not row.key, -row.amount.usd, -row.amount.tokens, row.name


def by_cost(table: UsageTable) -> UsageTable:
    """The same rows, the dearest first."""
    return replace(table, rows=tuple(sorted(table.rows, key=_by_cost)))


def dearest_words(table: UsageTable, width: int, cells: Width = len) -> str:
    """Name the dearest rows of a table, as many as fit in a line; "" for one with few rows."""
    if len(table.rows) <= _DEAREST:
        return ""
    said = [f"{_short(row.name)} {cost(row.amount)}" for row in by_cost(table).rows[:_DEAREST]]
    while len(said) > 1 and cells(f"Dearest: {', '.join(said)}") > width:
        said.pop()
    return f"Dearest: {', '.join(said)}"


def _short(name: str) -> str:
    return name if len(name) <= _SHORT else f"{name[: _SHORT - 1].rstrip()}…"


def cost(amount: Amount) -> str:
    """The cost of an amount: "price unknown" where none is known, "$0.42 + ?" where a part is."""
    if not amount.unpriced:
        return money(amount.usd)
    return f"{money(amount.usd)} + ?" if amount.usd else UNKNOWN


def summed(table: UsageTable, most: int) -> UsageTable:
    """The first rows only; one row stands for the others."""
    if len(table.rows) <= most:
        return table
    kept, others = table.rows[: most - 1], table.rows[most - 1 :]
    rest = UsageRow("", f"({len(others):,} more)", total_of(row.amount for row in others))
    return UsageTable(table.by, (*kept, rest))


def last(table: UsageTable, most: int) -> UsageTable:
    """The last rows only; one row before them stands for the earlier ones."""
    if len(table.rows) <= most:
        return table
    earlier, kept = table.rows[: 1 - most], table.rows[1 - most :]
    rest = UsageRow("", f"({len(earlier):,} earlier)", total_of(row.amount for row in earlier))
    return UsageTable(table.by, (rest, *kept))


# Lines


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns for a width: cells of the name, of the bar, and the numbers that there is room
    for."""

    name: int
    bar: int
    cost: int
    shown: tuple[str, ...]
    paths: bool = False
    """Names are cut at their beginning."""

    @classmethod
    def of(cls, table: UsageTable, width: int, cells: Width = len) -> Columns:
        """Share a width out. Without enough room the numbers go first, then the bar."""
        costs = max((cells(cost(row.amount)) for row in table.rows), default=5)
        costs = max(costs, cells(cost(table.total)), 4)
        names = [NAMES[table.by], *(row.name for row in table.rows)]
        wanted = max(map(cells, names))
        shown: tuple[str, ...] = ()
        for numbers, least in ((("share",), 36), (("share", "tokens"), 60), (_EVERY, 100)):
            if width >= least:
                shown = numbers
        fixed = costs + _GAP + sum(_WIDTHS[one] + _GAP for one in shown)
        room = max(4, width - fixed)
        name = min(wanted, max(_LEAST_NAME, room * 3 // 5), room)
        bar = min(_MOST_BAR, room - name - _GAP)
        return cls(name, bar if bar >= 4 else 0, costs, shown, table.by in _PATHS)


_WIDTHS: Final[Mapping[str, int]] = {
    "share": 5, "tokens": 7, "cached": 7, "new": 7, "output": 7,
}  # fmt: skip
_EVERY: Final = ("share", "cached", "new", "output")


def lines(
    table: UsageTable, width: int, cells: Width = len, *, ascii_only: bool = False
) -> Iterator[list[Piece]]:
    """Yield the head, the rows and the sum, for so many cells in a row."""
    columns, most, total = Columns.of(table, width, cells), longest(table), table.total
    yield [("head", table_head(table, columns, cells))]
    for row in table.rows:
        yield row_line(row, total, most, columns, cells, ascii_only=ascii_only)
    yield total_line(table, columns, cells)


def longest(table: UsageTable) -> float:
    """The size of the longest bar."""
    total = table.total
    return max((_size(row.amount, total) for row in table.rows), default=0.0)


def total_line(table: UsageTable, columns: Columns, cells: Width = len) -> list[Piece]:
    """The sum of a table, in its columns."""
    total = UsageRow("", "total" if table.whole else "so far", table.total)
    return [("head", text) for _, text in row_line(total, total.amount, 0.0, columns, cells)]


def row_line(
    row: UsageRow,
    total: Amount,
    most: float,
    columns: Columns,
    cells: Width = len,
    *,
    ascii_only: bool = False,
) -> list[Piece]:
    """A row in its columns; `most` is the size of the longest bar, 0 for none."""
    quiet: Look = "" if row.key else "muted"
    pieces: list[Piece] = [(quiet, _filled(row.name, columns.name, cells, end=columns.paths))]
    if columns.bar:
        pieces.append(("", " " * _GAP))
        pieces += bar(row.amount, total, most, columns.bar, ascii_only=ascii_only)
    words = cost(row.amount)
    look: Look = "warning" if row.amount.unpriced else quiet
    pieces.append((look, " " * (_GAP + columns.cost - cells(words)) + words))
    for name in columns.shown:
        pieces.append(("muted", f"{_number(name, row.amount, total):>{_WIDTHS[name] + _GAP}}"))
    return pieces


def bar(
    amount: Amount, total: Amount, most: float, width: int, *, ascii_only: bool = False
) -> list[Piece]:
    """The bar of an amount, as long as the longest is at most: `width` cells."""
    chars = _ASCII if ascii_only else _CHARS
    parts = sizes(amount, total)
    scale = width / most if most > 0 else 0.0
    pieces: list[Piece] = []
    end = drawn = 0
    whole = 0.0
    for look, size in parts:
        whole += max(0.0, size)
        end = round(whole * scale)
        if end > drawn:
            pieces.append((look, chars[look] * (end - drawn)))
            drawn = end
    if not drawn and whole > 0 and most > 0:  # it is there, however small
        look = max(parts, key=lambda one: one[1])[0]
        pieces.append((look, chars[look]))
        drawn = 1
    pieces.append(("", " " * (width - drawn)))
    return pieces


def legend(*, ascii_only: bool = False) -> list[Piece]:
    """The legend of a bar's parts."""
    chars = _ASCII if ascii_only else _CHARS
    words: tuple[tuple[Look, str], ...] = (
        ("cached", "from the cache"),
        ("new", "new to the model"),
        ("output", "written by the model"),
    )
    pieces: list[Piece] = []
    for look, text in words:
        pieces.append((look, chars[look] * 2))
        pieces.append(("muted", f" {text}   "))
    return pieces


def sizes(amount: Amount, total: Amount) -> list[tuple[Look, float]]:
    """The parts of a bar: in USD, or in tokens where nothing has a price."""
    if total.usd > 0:
        return [
            ("cached", amount.read_usd),
            ("new", amount.new_usd),
            ("output", amount.output_usd + amount.fees),
        ]
    return [("cached", amount.read), ("new", amount.new), ("output", amount.output)]


def _size(amount: Amount, total: Amount) -> float:
    return sum(size for _, size in sizes(amount, total))


def share(amount: Amount, total: Amount) -> str:
    """The share of the sum: of the money, or of the tokens where nothing has a price."""
    whole, part = _size(total, total), _size(amount, total)
    if whole <= 0 or (amount.unpriced and not part):
        return "?" if amount.tokens else ""
    return part_of(part, whole)


def part_of(part: float, whole: float) -> str:
    """A share in percent; what there is of it is never 0."""
    percent = 100 * part / whole
    return "<1 %" if 0 < percent < 0.5 else f"{percent:.0f} %"


def _number(name: str, amount: Amount, total: Amount) -> str:
    counts = {
        "tokens": amount.tokens,
        "cached": amount.read,
        "new": amount.new,
        "output": amount.output,
    }
    return share(amount, total) if name == "share" else tokens(round(counts[name]))


def table_head(table: UsageTable, columns: Columns, cells: Width = len) -> str:
    """The names of the columns."""
    text = _filled(NAMES[table.by], columns.name, cells)
    if columns.bar:
        text += " " * (_GAP + columns.bar)
    text += f"{'cost':>{_GAP + columns.cost}}"
    for name in columns.shown:
        text += f"{'' if name == 'share' else name:>{_WIDTHS[name] + _GAP}}"
    return text


def _filled(text: str, width: int, cells: Width, *, end: bool = False) -> str:
    """A text cut to its column, and filled up; with `end`, cut so that its end is seen."""
    if cells(text) > width:
        text = text[1 - width :] if end else text[: max(0, width - 1)]
        while text and cells(text) > width - 1:
            text = text[1:] if end else text[:-1]
        text = f"…{text}" if end else f"{text}…"
    return text + " " * (width - cells(text))


def plain(pieces: Iterable[Piece]) -> str:
    """A line without its looks."""
    return "".join(text for _, text in pieces).rstrip()


def row_words(row: UsageRow, total: Amount) -> str:
    """A row in words."""
    amount = row.amount
    words = [cost(amount), share(amount, total), f"{tokens(round(amount.tokens))} tokens"]
    parts = (("from the cache", amount.read), ("new", amount.new), ("written", amount.output))
    said = ", ".join(f"{tokens(round(count))} {what}" for what, count in parts if count >= 0.5)
    return f"{row.name}: {', '.join(filter(None, words))}" + (f" ({said})" if said else "")


def cut_off(answers: int) -> str:
    """Say that answers have no bill, though they may have cost something; "" for none."""
    if not answers:
        return ""
    ended = f"{plural(answers, 'answer')} cut off or lost"
    return f"{ended}: what that cost is in no record, and not in these sums."


def unknown_prices(models: Sequence[str]) -> str:
    """Say whose price isn't known; "" if all are."""
    if not models:
        return ""
    names = ", ".join(models[:3]) + (f" and {len(models) - 3} more" if len(models) > 3 else "")
    return f"No price is known for {names}: what it costs isn't in these sums. [prices] sets it."
