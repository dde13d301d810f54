"""What the session browser looks at, and what it says of it: without a screen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tui.app.dialog_data import PickedSession, SessionRow
from tui.app.session_repository import SearchHit
from tui.ui.screens import session_rows
from tui.ui.screens.session_rows import Browsing

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def row(title: str, hours: int = 0, **more: Any) -> SessionRow:
    made = SessionRow(title, Path(f"/s/{title}"), title, NOON - timedelta(hours=hours), 2, 100)
    return replace(made, **more)


ROWS = [
    row("old", hours=9, size=900, state="needs_repair"),
    row("new", messages=1),
    row("middle", hours=5, messages=40),
]


def titles(seen: Browsing) -> list[str]:
    return [each.title for each in seen.sifted()]


def test_the_newest_comes_first_and_each_order_has_its_turn() -> None:
    seen = Browsing(sessions=ROWS)
    orders = [titles(seen)]
    for _ in range(5):
        seen.turn_order()
        orders.append(titles(seen))
    assert orders == [
        ["new", "middle", "old"],
        ["middle", "new", "old"],
        ["middle", "old", "new"],
        ["old", "new", "middle"],
        ["old", "new", "middle"],
        ["new", "middle", "old"],
    ]


def test_words_filter_titles_and_states() -> None:
    assert titles(Browsing(sessions=ROWS, words="DLE")) == ["middle"]
    assert titles(Browsing(sessions=ROWS, words="damaged")) == ["old"]


def test_tabs_go_round_and_a_search_goes_with_them() -> None:
    seen = Browsing(searching=True)
    seen.turn_tab(1)
    assert (seen.tab, seen.searching) == ("everywhere", True)
    seen.turn_tab(1)
    assert (seen.tab, seen.searching) == ("others", True)
    seen.turn_tab(1)
    assert seen.tab == "here"
    seen.turn_tab(-1)
    assert seen.tab == "others"


def test_a_row_stands_for_a_session_or_for_a_place_in_one() -> None:
    places = [SearchHit(ROWS[0], "m1", "…")]
    seen = Browsing(sessions=ROWS, places=places)
    assert seen.picked(1, ROWS) == PickedSession(ROWS[1])
    assert seen.picked(3, ROWS) is None
    seen.searching = True
    assert seen.picked(0, ROWS) == PickedSession(ROWS[0], "m1")
    assert seen.picked(1, ROWS) is None


def test_the_title_counts_and_names_trouble() -> None:
    assert session_rows.sessions_title(Browsing()).plain.strip() == "sessions"
    assert "3 sessions · 1 damaged" in session_rows.sessions_title(Browsing(sessions=ROWS)).plain
    found = Browsing(sessions=ROWS, places=[], searching=True, words="calc")
    assert session_rows.sessions_title(found).plain.endswith("0 hits")
    unasked = Browsing(sessions=ROWS, places=[], searching=True)
    assert session_rows.sessions_title(unasked).plain.strip() == "sessions"


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Browsing(), "Looking for sessions …"),
        (Browsing(read=(1, 2)), f"Reading sessions: 1 of 2\n{'█' * 12}{'░' * 12}"),
        (Browsing(sessions=[]), "No sessions in this folder yet."),
        (Browsing(sessions=[], words="a"), "No sessions in this folder yet."),
        (Browsing(sessions=[], tab="everywhere"), "No sessions yet."),
        (Browsing(sessions=[], tab="others"), "No sessions from other agents."),
        (Browsing(sessions=[], problem="It is gone."), "It is gone."),
        (Browsing(sessions=ROWS, words="x"), "No session title matches “x”."),
        (Browsing(sessions=ROWS, words="x", searching=True), "Search prompts, answers"),
        (Browsing(sessions=ROWS, words="xy", searching=True), "Searching …"),
        (
            Browsing(sessions=ROWS, words="xy", searching=True, places=[]),
            "No session contains “xy”.",
        ),
    ],
)
def test_where_nothing_stands_it_is_said_why(seen: Browsing, said: str) -> None:
    assert session_rows.empty_text(seen).startswith(said)


def test_over_the_preview_stand_the_id_and_what_is_wrong() -> None:
    about = session_rows.preview_title(row("x", id="0123456789abcdef", cwd="/w", problems=("B52",)))
    assert about.plain == "0123456789ab · /w · lines that can't be read"


FAR = row("fix the flaky test in test_store.py for good", cwd="/w/customers/northwind/shop-backend")


@pytest.mark.parametrize("width", range(34, 160))
def test_columns_fit_and_titles_end_behind_a_word(width: int) -> None:
    for folders in (False, True):
        parts = session_rows.row_parts(FAR, NOON, width, folders=folders)
        line = "".join(text for text, _ in parts)
        assert len(line) == len(session_rows.heading(width, folders=folders)) == width
        title = parts[0][0].rstrip()
        assert title.removesuffix("…") in FAR.title
        cut = title.endswith("…")
        assert not cut or FAR.title[len(title) - 1] == " "
        assert ("…/shop-backend" in line) == (folders and width >= 56)


def test_the_state_is_said_in_plain_words() -> None:
    states = {"parked": "will retry", "needs_repair": "damaged", "interrupted": "interrupted"}
    for state, words in states.items():
        line = "".join(part for part, _ in session_rows.row_parts(row("x", state=state), NOON, 78))
        assert line.rstrip().endswith(words)


@pytest.mark.parametrize(("width", "shown"), [(80, "all folders"), (40, "all")])
def test_a_narrow_screen_has_shorter_tabs(width: int, shown: str) -> None:
    tabs = session_rows.tabs_of(Browsing(tab="everywhere"), width).plain
    assert shown in tabs.split("   ")
    assert len(tabs) + 5 <= width


def test_only_keys_that_mean_something_are_named() -> None:
    every = session_rows.session_keys("here", 3, 200).plain
    assert "ctrl+r rename" in every
    assert every.endswith("ctrl+e export   ctrl+g sub-agents   esc back")
    assert session_rows.session_keys("here", 0, 200).plain == "tab scope   ctrl+f find   esc back"
    others = session_rows.session_keys("others", 3, 200).plain
    assert others == (
        "enter open   tab scope   ctrl+f find   ctrl+s sort   ctrl+e export   esc back"
    )
    assert session_rows.session_keys("others", 0, 200).plain == "tab scope   ctrl+f find   esc back"
    narrow = session_rows.session_keys("here", 3, 78).plain
    assert narrow.endswith("ctrl+s sort   ctrl+r rename   esc back")
    assert "\n" not in narrow


def test_a_session_of_a_worktree_is_marked_unless_its_state_matters_more() -> None:
    inside = "/w/.holdfast/worktrees/fix"

    def text(one: SessionRow) -> str:
        return "".join(part for part, _ in session_rows.row_parts(one, NOON, 100))

    assert "worktree" in text(row("a", cwd=inside))
    assert "damaged" in text(row("a", state="needs_repair", cwd=inside))
    assert "worktree" not in text(row("a", cwd="/w"))


def test_one_that_runs_in_the_background_is_marked() -> None:
    for state, badge in (("waiting", "asks you"), ("working", "background")):
        parts = session_rows.row_parts(row("far", background=state), NOON, 120)
        assert badge in "".join(text for text, _ in parts)
