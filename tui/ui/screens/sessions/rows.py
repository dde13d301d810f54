"""The lines of the session browser, in any width; how they are filtered and sorted. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

from rich.cells import cell_len, set_cell_size

from tui.app.dialog_data import SessionRow
from tui.app.session_repository import Place
from tui.core.formatting import age, size
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.ui.widgets.row_list import Part

Order: TypeAlias = Literal["age", "title", "messages", "size", "state"]

ORDERS: dict[Order, str] = {
    "age": "newest first",
    "title": "by title",
    "messages": "longest first",
    "size": "largest first",
    "state": "trouble first",
}

BADGES = {
    "ok": ("", "muted"),
    "interrupted": ("interrupted", "warning"),
    "parked": ("parked", "secondary"),
    "needs_repair": ("needs repair", "error"),
    "unreadable": ("unreadable", "error"),
}
_STATE_ORDER = ("unreadable", "needs_repair", "interrupted", "parked", "ok")
_AGE, _COUNT, _SIZE, _BADGE, _FOLDER = 12, 8, 10, 14, 22


def columns(width: int, *, folders: bool) -> list[str]:
    """The columns that fit beside the title, in their order."""
    wanted = [("badge", 44), ("messages", 64), ("size", 76), ("folder", 96 if folders else 9999)]
    return ["age", *(name for name, least in wanted if width >= least)]


def row_parts(
    row: SessionRow, now: datetime, width: int, *, current: bool = False, folders: bool = False
) -> list[Part]:
    """One session in `width` cells: title, folder, messages, size, age, badge."""
    shown = columns(width, folders=folders)
    badge, look = ("open here", "success") if current else BADGES.get(row.state, (row.state, ""))
    if row.agent:
        badge, look = row.agent, "secondary"
    tail: list[Part] = []
    if "folder" in shown:
        where = shorten(Path(row.cwd)) if row.cwd else "—"
        tail.append((f"  {_cell(where, _FOLDER - 2, keep_end=True)}", "muted"))
    if "messages" in shown:
        count = f"{row.messages:,}" if row.messages or not row.agent else "—"
        tail.append((f"{count:>{_COUNT}}", "muted"))
    if "size" in shown:
        tail.append((f"{size(row.size):>{_SIZE}}", "muted"))
    tail.append((f"{age(row.updated, now):>{_AGE}}", "muted"))
    if "badge" in shown:
        tail.append((f"  {_cell(badge, _BADGE - 2)}", look or "muted"))
    room = max(4, width - sum(cell_len(text) for text, _ in tail))
    return [(_cell(one_line(row.title) or "(nothing asked)", room), "text"), *tail]


def heading(width: int, *, folders: bool) -> str:
    """The names of the columns over `row_parts`."""
    shown = columns(width, folders=folders)
    tail = f"  {'folder':<{_FOLDER - 2}}" if "folder" in shown else ""
    tail += f"{'messages':>{_COUNT + 1}}"[1:] if "messages" in shown else ""
    tail += f"{'size':>{_SIZE}}" if "size" in shown else ""
    tail += f"{'age':>{_AGE}}"
    tail += f"  {'state':<{_BADGE - 2}}" if "badge" in shown else ""
    return _cell("title", max(4, width - len(tail))) + tail


def place_parts(place: Place, words: Sequence[str], width: int) -> list[Part]:
    """One place of a search: the session's title, then what stands there, the words marked."""
    title = min(28, width // 3)
    parts: list[Part] = [
        (_cell(one_line(place.row.title) or "(nothing asked)", title), "text"), ("  ", "muted")
    ]  # fmt: skip
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    pieces = re.split(f"({pattern})", one_line(place.snippet), flags=re.IGNORECASE)
    found = {word.lower() for word in words}
    parts += [(piece, "accent" if piece.lower() in found else "muted") for piece in pieces if piece]
    return parts


def matching(rows: Sequence[SessionRow], words: str) -> list[SessionRow]:
    """The rows in whose title, folder, id, state or agent every word occurs."""
    wanted = words.casefold().split()
    if not wanted:
        return list(rows)
    return [row for row in rows if all(word in _text(row) for word in wanted)]


def in_order(rows: Sequence[SessionRow], order: Order) -> list[SessionRow]:
    """The rows sorted; those that are equal stay as they stood."""
    match order:
        case "age":
            return sorted(rows, key=lambda row: row.updated, reverse=True)
        case "title":
            return sorted(rows, key=lambda row: (not row.title, row.title.casefold()))
        case "messages":
            return sorted(rows, key=lambda row: row.messages, reverse=True)
        case "size":
            return sorted(rows, key=lambda row: row.size, reverse=True)
        case "state":
            return sorted(rows, key=_trouble)


def _trouble(row: SessionRow) -> int:
    return _STATE_ORDER.index(row.state) if row.state in _STATE_ORDER else len(_STATE_ORDER)


def _text(row: SessionRow) -> str:
    state = BADGES.get(row.state, (row.state, ""))[0]
    return f"{row.title}\n{row.cwd}\n{row.id}\n{state}\n{row.agent}".casefold()


def _cell(text: str, width: int, *, keep_end: bool = False) -> str:
    """`text` in exactly `width` cells."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    if keep_end:
        while cell_len(text) > width - 1:
            text = text[1:]
        return set_cell_size("…" + text, width)
    return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width)
