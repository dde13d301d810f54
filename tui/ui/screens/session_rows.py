"""What the session browser shows: what is browsed and how far it is read, the rows of it in any
width, and the words around them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from tui.app.dialog_data import PickedSession, SessionRow
from tui.app.session_repository import SearchHit
from tui.core.formatting import age, plural, size
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.ui.widgets.keys import in_rows
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


def place_parts(place: SearchHit, words: Sequence[str], width: int) -> list[Part]:
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


Tab: TypeAlias = Literal["here", "everywhere", "others"]

TABS: dict[Tab, str] = {
    "here": "this folder",
    "everywhere": "all folders",
    "others": "other agents",
}
SHORTEST = 2
"""Characters that a search needs."""


@dataclass(slots=True)
class Browsing:
    """`sessions` are those of the tab, `places` what a search found in them; None: not read yet.

    `words` filter the titles or, while `searching`, are what is searched for. `read` is how many
    of how many sessions have been read; `problem` is why none could be.
    """

    tab: Tab = "here"
    order: Order = "age"
    words: str = ""
    searching: bool = False
    sessions: Sequence[SessionRow] | None = None
    places: Sequence[SearchHit] | None = None
    read: tuple[int, int] = (0, 0)
    problem: str = ""

    @property
    def reading(self) -> bool:
        """Whether what is to be shown is still being read."""
        return self.sessions is None or (self.searching and self.places is None)

    @property
    def too_short(self) -> bool:
        """Whether what is typed is not enough for a search."""
        return len(self.words.strip()) < SHORTEST

    def forget_sessions(self) -> None:
        """Those of the tab are to be read."""
        self.sessions, self.problem, self.read = None, "", (0, 0)

    def forget_places(self) -> None:
        """They are to be searched for."""
        self.places, self.read = None, (0, 0)

    def turn_tab(self, step: int) -> None:
        """To the next tab or (less than 0) the one before. Other agents' texts have no index."""
        self.tab = _after(TABS, self.tab, step)
        self.searching = self.searching and self.tab != "others"

    def turn_order(self) -> None:
        """To the next order."""
        self.order = _after(ORDERS, self.order, 1)

    def turn_search(self) -> None:
        """Between the titles and the texts."""
        self.searching = not self.searching
        self.places = None

    def sifted(self) -> list[SessionRow]:
        """The sessions that match the words, in order."""
        return in_order(matching(self.sessions or [], self.words), self.order)

    def picked(self, at: int, sifted: Sequence[SessionRow]) -> PickedSession | None:
        """What a row stands for; None where there is no such row."""
        if self.searching:
            places = self.places or ()
            return PickedSession(places[at].row, places[at].message) if at < len(places) else None
        return PickedSession(sifted[at]) if at < len(sifted) else None


_Choice = TypeVar("_Choice")


def _after(all_: Iterable[_Choice], one: _Choice, step: int) -> _Choice:
    choices = list(all_)
    return choices[(choices.index(one) + step) % len(choices)]


KEYS = (
    ("enter", "open"),
    ("tab", "scope"),
    ("ctrl+f", "search"),
    ("ctrl+s", "sort"),
    ("ctrl+r", "rename"),
    ("ctrl+b", "fork"),
    ("ctrl+d", "delete"),
    ("ctrl+e", "export"),
    ("esc", "back"),
)
_OTHERS = frozenset({"enter", "tab", "ctrl+s", "ctrl+e", "esc"})
"""The sessions of other agents are left as they are."""
_ANYWAY = frozenset({"tab", "ctrl+f", "esc"})
"""These mean something where no session is listed."""
_PROGRESS = 24
"""Cells of the bar that shows how much has been read."""
_NOTHING: dict[Tab, str] = {
    "here": "No sessions in this folder yet.\n"
    "Every conversation that begins here is kept and listed here.\n"
    "Tab shows those of all folders, and of other agents.",
    "everywhere": "No sessions yet.\nEvery conversation is kept and listed here.\n"
    "Tab shows the sessions of other agents.",
    "others": "No sessions of other agents were found.\n"
    "Those of Claude Code, pi, OpenClaw and Codex are looked for in their usual folders.\n"
    "A file that lies elsewhere: holdfast -r FILE.",
}


def session_keys(tab: Tab, count: int, width: int) -> Content:
    """The keys that mean something for the `count` rows of a tab."""
    wanted = _OTHERS if tab == "others" else frozenset(key for key, _ in KEYS)
    if not count:
        wanted &= _ANYWAY
    return in_rows([key for key in KEYS if key[0] in wanted], width)


def sessions_title(seen: Browsing) -> Content:
    """How many there are, and how many of them are in trouble."""
    return Content.assemble(
        ("sessions", "bold $text-primary"), (f"   {' · '.join(_facts(seen))}", "$text-muted")
    )


def _facts(seen: Browsing) -> list[str]:
    if seen.searching and seen.places is not None:
        return [plural(len(seen.places), "place")]
    if seen.sessions is None:
        return []
    counts = {
        state: sum(row.state == state for row in seen.sessions)
        for state in ("interrupted", "needs_repair", "unreadable")
    }
    troubles = [f"{count:,} {BADGES[state][0]}" for state, count in counts.items() if count]
    return [plural(len(seen.sessions), "session"), *troubles]


def tab_names(seen: Browsing) -> Content:
    """The names of the tabs, the open one in colour."""
    return Content("   ").join(
        [
            Content.styled(name, "bold $text-primary" if tab == seen.tab else "$text-muted")
            for tab, name in TABS.items()
        ]
    )


def order_name(seen: Browsing, width: int) -> Content:
    """In which order they stand, where there is room for that beside the tabs."""
    name = "search" if seen.searching else ORDERS[seen.order]
    fits = tab_names(seen).cell_length + len(name) + 9 <= width
    return Content.styled(name if fits else "", "$text-muted")


def empty_text(seen: Browsing) -> str:
    """Why there is no row: not read yet, none that matches, or none at all, and what to do."""
    words = one_line(seen.words)
    if seen.problem:
        return seen.problem
    if seen.searching and seen.too_short:
        return "Type words that stand in what you look for: in a prompt, an answer, a result."
    if seen.reading:
        return _progress(seen)
    if not words or not seen.sessions:
        return _NOTHING[seen.tab]
    if seen.searching:
        return f"Nothing has “{words}” in it.\nTab looks in other folders too."
    return f"No session matches “{words}”.\nCtrl+F looks for it in the texts, Esc clears."


def _progress(seen: Browsing) -> str:
    done, of = seen.read
    if not of:
        return "Searching …" if seen.searching else "Looking for sessions …"
    full = round(_PROGRESS * done / of)
    return f"Reading sessions: {done:,} of {of:,}\n{'█' * full}{'░' * (_PROGRESS - full)}"


def preview_title(row: SessionRow) -> Content:
    """Over the preview: which session it is, where it was held, and what is wrong with it."""
    where = shorten(Path(row.cwd)) if row.cwd else ""
    facts = [row.id[:12], where, ", ".join(row.problems)]
    return Content.styled(" · ".join(filter(None, facts)), "$text-muted")
