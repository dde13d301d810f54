"""The data of the session browser: its state, its rows in any width, and the texts around them.
Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from rich.cells import cell_len
from textual.content import Content

from tui.app.damage_report import kinds_summary
from tui.app.dialog_data import PickedSession, SessionRow
from tui.app.session_repository import SearchHit
from tui.core.dataclass import dataclass
from tui.core.formatting import age, plural, size
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.core.workspace import worktree_of
from tui.session.catalog import state_name
from tui.ui.screens.table_screen import cell, tab_names, whole_words
from tui.ui.widgets.keys import in_rows
from tui.ui.widgets.row_list import Part

Order: TypeAlias = Literal["age", "title", "messages", "size", "state"]

ORDERS: dict[Order, tuple[str, Callable[[SessionRow], Any], bool]] = {
    "age": ("newest first", lambda row: row.updated, True),
    "title": ("by title", lambda row: (not row.title, row.title.casefold()), False),
    "messages": ("longest first", lambda row: row.messages, True),
    "size": ("largest first", lambda row: row.size, True),
    "state": ("damaged first", lambda row: _TROUBLES.get(row.state, len(_TROUBLES)), False),
}
"""For each order its label, its sort key, and whether the greatest comes first."""

_STATE_LOOKS = {
    "interrupted": "warning",
    "parked": "secondary",
    "needs_repair": "error",
    "unreadable": "error",
}
_FOLDER = 20
"""Cells of a folder."""
_TROUBLES = {"unreadable": 0, "needs_repair": 1, "interrupted": 2, "parked": 3, "ok": 4}
_NEVER = 10_000
_KIND, _KINDS_FROM = 10, 60
"""Cells of the kind of a search hit, and the width from which there is room for it."""
_COLUMNS = (
    ("folder", 22, _NEVER, 56),
    ("messages", 10, 64, 96),
    ("size", 10, 90, 108),
    ("age", 12, 0, 0),
    ("state", 14, 44, 70),
)
"""The columns beside the title: name, cells, and the widths from which there is room for it if one
folder is listed, and if several are."""


def row_parts(
    row: SessionRow, now: datetime, width: int, *, current: bool = False, folders: bool = False
) -> list[Part]:
    """Return one session in `width` cells: title, folder, messages, size, age, badge."""
    # The badge: what the person can act on wins.
    badge, look = state_name(row.state), _STATE_LOOKS.get(row.state, "muted")
    if row.background:
        asks = row.background == "waiting"
        badge, look = ("asks you", "warning") if asks else ("background", "secondary")
    if current:
        badge, look = "open here", "success"
    if not badge and worktree_of(Path(row.cwd)):
        badge, look = "worktree", "secondary"
    if row.agent:
        badge, look = row.agent, "secondary"
    if not badge and row.profile:
        badge, look = one_line(row.profile), "accent"
    texts = {
        "title": ("└ " if row.parent else "") + (one_line(row.title) or "(no prompts)"),
        "folder": nearest_folders(one_line(shorten(Path(row.cwd))), _FOLDER) if row.cwd else "—",
        "messages": f"{row.messages:,}" if row.messages or not row.agent else "—",
        "size": size(row.size),
        "age": age(row.updated, now),
        "state": badge,
    }
    looks = {"title": "text", "state": look}
    line = _line(texts, width, folders=folders)
    return [(text, looks.get(name, "muted")) for name, text in line]


def heading(width: int, *, folders: bool) -> str:
    """Return the names of the columns over `row_parts`."""
    names = ("title", *(name for name, *_ in _COLUMNS))
    line = _line(dict(zip(names, names, strict=True)), width, folders=folders)
    return "".join(text for _, text in line)


def _line(texts: Mapping[str, str], width: int, *, folders: bool) -> list[tuple[str, str]]:
    """Return the cells of a line with their column names; the title gets what the others leave."""
    tail: list[tuple[str, str]] = []
    for name, cells, one, several in _COLUMNS:
        if width < (several if folders else one):
            continue
        if name in {"folder", "state"}:
            text = f"  {cell(texts[name], cells - 2, keep_end=name == 'folder')}"
        else:
            text = f"{texts[name]:>{cells}}"
        tail.append((name, text))
    room = max(4, width - sum(cell_len(text) for _, text in tail))
    return [("title", cell(whole_words(texts["title"], room), room)), *tail]


def nearest_folders(path: str, width: int) -> str:
    """Return a folder in `width` cells: parents are dropped as a whole, the nearest last."""
    parts = path.split("/")
    while cell_len(path) > width and len(parts) > 1:
        parts = parts[1:]
        path = f"…/{'/'.join(parts)}"
    return path


def place_parts(place: SearchHit, words: Sequence[str], width: int) -> list[Part]:
    """Return one search hit: the session's title, the kind of text, and the text with the words
    marked."""
    title = min(28, width // 3)
    child = "└ " if place.row.parent else ""
    name = whole_words(child + (one_line(place.row.title) or "(no prompts)"), title)
    kind = f"{place.kind:<{_KIND}}" if width >= _KINDS_FROM else ""
    parts: list[Part] = [(cell(name, title), "text"), (f"  {kind}", "muted")]
    text = whole_words(one_line(place.snippet), max(4, width - title - 2 - len(kind)))
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    pieces = re.split(f"({pattern})", text, flags=re.IGNORECASE)
    marked = {word.lower() for word in words}
    parts += [
        (piece, "accent" if piece.lower() in marked else "muted") for piece in pieces if piece
    ]
    return parts


def matching(rows: Sequence[SessionRow], words: str) -> list[SessionRow]:
    """Return the rows whose title, folder, id, state, agent or profile contain every word."""
    words_sought = words.casefold().split()
    return [row for row in rows if all(word in _text(row) for word in words_sought)]


def _text(row: SessionRow) -> str:
    state, profile = state_name(row.state), f"profile {row.profile}" if row.profile else ""
    return "\n".join((row.title, row.cwd, row.id, state, row.agent, profile)).casefold()


Tab: TypeAlias = Literal["here", "everywhere", "others"]

TABS: dict[Tab, str] = {
    "here": "this folder",
    "everywhere": "all folders",
    "others": "other agents",
}
SHORT_TABS: dict[Tab, str] = {"here": "here", "everywhere": "all", "others": "others"}
"""Tab names for when the full ones don't fit."""
SHORTEST = 2
"""Least characters for a search."""


@dataclass(slots=True)
class Browsing:
    """The state of the browser.

    `sessions` are those of the tab, `places` the hits of a search in them; None before they are
    read. `words` filter the titles or, while `searching`, are searched for. `read` is how many of
    how many sessions have been read; `problem` is why none could be. With `sub_agents`, theirs are
    shown too, below the sessions that started them.
    """

    tab: Tab = "here"
    order: Order = "age"
    words: str = ""
    searching: bool = False
    sessions: Sequence[SessionRow] | None = None
    places: Sequence[SearchHit] | None = None
    read: tuple[int, int] = (0, 0)
    problem: str = ""
    sub_agents: bool = False

    @property
    def reading(self) -> bool:
        """True while the data to show is still being read."""
        return self.sessions is None or (self.searching and self.places is None)

    @property
    def too_short(self) -> bool:
        """True if the words are too short for a search."""
        return len(self.words.strip()) < SHORTEST

    def turn_tab(self, step: int) -> None:
        """Go to the next tab or, with a negative step, to the one before."""
        self.tab = _after(TABS, self.tab, step)

    def turn_order(self) -> None:
        """Go to the next order."""
        self.order = _after(ORDERS, self.order, 1)

    def sifted(self) -> list[SessionRow]:
        """Return the sessions that match the words, in order; equal ones keep their places."""
        _, key, greatest_first = ORDERS[self.order]
        sessions = matching(self.sessions or [], self.words)
        sessions = sorted(sessions, key=key, reverse=greatest_first)
        paths, below = {str(row.path) for row in sessions}, dict[str, list[SessionRow]]()
        for row in sessions:
            below.setdefault(row.parent, []).append(row)
        tops = (row for row in sessions if row.parent not in paths)
        return [one for row in tops for one in (row, *below.get(str(row.path), ()))]

    def picked(self, at: int, sifted: Sequence[SessionRow]) -> PickedSession | None:
        """Return what a row stands for; None if there is no such row."""
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
    ("ctrl+f", "find"),
    ("ctrl+s", "sort"),
    ("ctrl+r", "rename"),
    ("ctrl+b", "fork"),
    ("ctrl+d", "delete"),
    ("ctrl+e", "export"),
    ("ctrl+g", "sub-agents"),
    ("esc", "back"),
)
_OTHERS = frozenset({"enter", "tab", "ctrl+f", "ctrl+s", "ctrl+e", "esc"})
"""Keys for other agents' sessions, which are left as they are."""
_ANYWAY = frozenset({"tab", "ctrl+f", "esc"})
"""Keys that work while no session is listed."""
_PROGRESS = 24
"""Cells of the bar that shows how much has been read."""
_NOTHING: dict[Tab, str] = {
    "here": "No sessions in this folder yet.\n"
    "Every conversation you start here is saved and listed.\n"
    "Press Tab for all folders and other agents.",
    "everywhere": "No sessions yet.\nEvery conversation is saved and listed here.\n"
    "Press Tab for other agents' sessions.",
    "others": "No sessions from other agents.\n"
    "Looked in the default folders of Claude Code, Codex, opencode, OpenClaw and pi.\n"
    "Open any other file with holdfast -r FILE.",
}


def session_keys(tab: Tab, count: int, width: int) -> Content:
    """Return the keys that work on the `count` rows of a tab, in one row."""
    names = _OTHERS if tab == "others" else frozenset(key for key, _ in KEYS)
    if not count:
        names &= _ANYWAY
    return in_rows([key for key in KEYS if key[0] in names], width, rows=1)


def sessions_title(seen: Browsing, width: int = 200) -> Content:
    """Return how many sessions there are and how many have a problem, as far as it fits in `width`
    cells."""
    head, facts = Content.styled("sessions", "bold $text-primary"), _facts(seen)
    while facts and head.cell_length + 3 + len(" · ".join(facts)) > width:
        facts.pop()
    return Content.assemble(head, (f"   {' · '.join(facts)}", "$text-muted"))


def tabs_of(seen: Browsing, width: int) -> Content:
    """Return the tabs, with shorter names if the full ones don't fit."""
    fits = len("   ".join(TABS.values())) + 6 <= width
    names = TABS if fits else SHORT_TABS
    return tab_names(names.values(), names[seen.tab])


def _facts(seen: Browsing) -> list[str]:
    if seen.searching and seen.places is not None:
        return [] if seen.too_short else [plural(len(seen.places), "hit")]
    if seen.sessions is None:
        return []
    counts = {
        state: sum(row.state == state for row in seen.sessions)
        for state in ("interrupted", "needs_repair", "unreadable")
    }
    troubles = [f"{count:,} {state_name(state)}" for state, count in counts.items() if count]
    return [plural(len(seen.sessions), "session"), *troubles]


def order_name(seen: Browsing, width: int) -> Content:
    """Return the name of the current order, if there is room beside the tabs."""
    name = "search" if seen.searching else ORDERS[seen.order][0]
    fits = len("   ".join(TABS.values())) + len(name) + 9 <= width
    return Content.styled(name if fits else "", "$text-muted")


def empty_text(seen: Browsing) -> str:
    """Explain why there is no row (not read yet, no match, or none at all), and what to do."""
    words = one_line(seen.words)
    if seen.problem:
        return seen.problem
    if seen.searching and seen.too_short:
        return "Search prompts, answers, thinking, calls and outputs."
    if seen.reading:
        return _progress(seen)
    if not words or not seen.sessions:
        return _NOTHING[seen.tab]
    if seen.searching:
        return f"No session contains “{words}”.\nPress Tab to search other folders."
    return f"No session title matches “{words}”.\nCtrl+F searches the full text, Esc clears."


def _progress(seen: Browsing) -> str:
    done, of = seen.read
    if not of:
        return "Searching …" if seen.searching else "Looking for sessions …"
    full = round(_PROGRESS * done / of)
    return f"Reading sessions: {done:,} of {of:,}\n{'█' * full}{'░' * (_PROGRESS - full)}"


def preview_title(row: SessionRow) -> Content:
    """Return the preview's title: which session it is, its folder, and what is wrong with it."""

    where = shorten(Path(row.cwd)) if row.cwd else ""
    profile = f"profile {one_line(row.profile)}" if row.profile else ""
    facts = [row.id[:12], where, profile, kinds_summary(row.problems)]
    return Content.styled(" · ".join(filter(None, facts)), "$text-muted")
