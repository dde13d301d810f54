"""What the browser says: its title, its tabs, and what stands where no session does. Pure."""

from __future__ import annotations

from pathlib import Path

from textual.content import Content

from tui.app.dialog_data import SessionRow
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.ui.screens.sessions.filters import TABS, Browsing, Tab
from tui.ui.screens.sessions.rows import BADGES, ORDERS
from tui.ui.widgets.key_hints import in_rows

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
_BAR = 24
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


def keys(tab: Tab, count: int, width: int) -> Content:
    """The keys that mean something for the `count` rows of a tab."""
    wanted = _OTHERS if tab == "others" else frozenset(key for key, _ in KEYS)
    if not count:
        wanted &= _ANYWAY
    return in_rows([key for key in KEYS if key[0] in wanted], width)


def title(seen: Browsing) -> Content:
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


def tabs(seen: Browsing) -> Content:
    """The names of the tabs, the open one in colour."""
    return Content("   ").join(
        [
            Content.styled(name, "bold $text-primary" if tab == seen.tab else "$text-muted")
            for tab, name in TABS.items()
        ]
    )


def order(seen: Browsing, width: int) -> Content:
    """In which order they stand, where there is room for that beside the tabs."""
    name = "search" if seen.searching else ORDERS[seen.order]
    fits = tabs(seen).cell_length + len(name) + 9 <= width
    return Content.styled(name if fits else "", "$text-muted")


def nothing(seen: Browsing) -> str:
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
    full = round(_BAR * done / of)
    return f"Reading sessions: {done:,} of {of:,}\n{'█' * full}{'░' * (_BAR - full)}"


def about(row: SessionRow) -> Content:
    """Over the preview: which session it is, where it was held, and what is wrong with it."""
    where = shorten(Path(row.cwd)) if row.cwd else ""
    facts = [row.id[:12], where, ", ".join(row.problems)]
    return Content.styled(" · ".join(filter(None, facts)), "$text-muted")
