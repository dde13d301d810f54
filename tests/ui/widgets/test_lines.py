"""The one-line widgets: what they say, and that they never grow beyond their width."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.app.dialog_data import SessionRow
from tui.core import formatting
from tui.core.facts import ContextMeasured
from tui.ui.screens.session_rows import heading, matching, row_parts
from tui.ui.widgets.bars import HeaderState, KeyHint, StatusState, header_line, status_line
from tui.ui.widgets.context_meter import bar, details, meter_line
from tui.ui.widgets.notices import todo_lines

WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=40)
HINTS = (KeyHint("enter", "send"), KeyHint("f1", "help", "app.help"), KeyHint("f3", "sessions"))
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


@given(WORDS, WORDS, WORDS, WORDS, st.integers(20, 220))
def test_the_header_fits_any_width(
    folder: str, branch: str, model: str, title: str, width: int
) -> None:
    state = HeaderState(folder, branch, model, title, verbose=True)
    assert header_line(state, width).cell_length <= width + 1


def test_the_header_keeps_the_elevated_light_longest() -> None:
    state = HeaderState("~/proj", "main", "claude-sonnet-5-5", "a title", elevated=True)
    assert "ELEVATED" in header_line(state, 40).plain
    assert "a title" not in header_line(state, 60).plain


def test_a_long_model_and_a_long_folder_share_the_header() -> None:
    folder, model = "~/here/clients/company/backend", "claude-sonnet-5-5-20261101-preview"
    state = HeaderState(folder, "a-branch", model, "a title", think=True)
    shown = header_line(state, 60).plain
    assert "company/backend" in shown
    assert "claude-sonnet" in shown
    assert "…" in shown


def test_the_header_says_it_all_when_there_is_room() -> None:
    state = HeaderState("~/proj", "main", "claude-sonnet-5-5", "fix the test", think=True)
    line = header_line(state, 120).plain
    assert line.split() == [
        *("holdfast", "~/proj", "(main)", "claude-sonnet-5-5", "“fix", "the", "test”", "think"),
    ]


def test_the_status_counts_turns_once_there_are_any() -> None:
    assert "1 prompt " in status_line(StatusState(HINTS, turns=1), 80).plain
    assert "turn" not in status_line(StatusState(HINTS), 120).plain


def test_the_status_says_when_nothing_is_saved() -> None:
    line = status_line(StatusState(HINTS, trouble="no space left"), 100).plain
    assert "not saved: no space left" in line
    assert "● saved" not in line
    assert "memory only" in status_line(StatusState(HINTS, keeping=False), 100).plain


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_long_trouble_leaves_room_for_the_first_keys(width: int) -> None:
    trouble = "no space left on device: /home/me/.local/share/holdfast"
    line = status_line(StatusState(HINTS, trouble=trouble), width).plain
    assert "enter send" in line
    assert "not saved: no space left on device" in line


@given(st.integers(30, 200), st.integers(0, 99_999), WORDS)
def test_the_status_fits_any_width(width: int, turns: int, trouble: str) -> None:
    line = status_line(StatusState(HINTS, turns, trouble), width)
    assert line.cell_length <= width


def test_hints_give_way_from_the_end() -> None:
    line = status_line(StatusState(HINTS, turns=1), 45).plain
    assert "enter send" in line
    assert "sessions" not in line


@given(
    st.integers(0, 400_000),
    st.dictionaries(st.sampled_from(["system", "tools", "messages", "results"]), st.integers(0)),
    st.integers(1, 120),
)
def test_the_bar_is_as_wide_as_asked(count: int, parts: dict[str, int], width: int) -> None:
    assert bar(ContextMeasured(count, 0, count, 200_000, parts), width).cell_length == width


def test_the_bar_is_in_proportion_and_marks_80_percent() -> None:
    state = ContextMeasured(100_000, 0, 0, 200_000, {"system": 50_000, "results": 50_000})
    assert bar(state, 40).plain == "▓" * 10 + "▞" * 10 + "░" * 12 + "│" + "░" * 7


def test_the_meter_tells_measured_from_estimated() -> None:
    state = ContextMeasured(82_100, 81_400, 700, 200_000, {"messages": 82_100}, "server")
    assert details(state, 60).plain == "81.4k measured, 700 more since"
    assumed = ContextMeasured(10, 0, 10, 200_000, {"messages": 10}, "assumed")
    assert details(assumed, 60).plain == "estimate; no answer yet · window assumed"
    assert meter_line(None, 40).plain == ""


def test_the_forecast_is_told_where_it_is_near_and_there_is_room() -> None:
    state = ContextMeasured(82_100, 81_400, 700, 200_000, {"messages": 82_100}, forecast=9)
    shown = "81.4k measured, 700 more since · 80 % in ~9 prompts · window assumed"
    assert details(state, 78).plain == shown
    assert "turns" not in details(state, 40).plain
    far = ContextMeasured(82_100, 81_400, 700, 200_000, {"messages": 82_100}, forecast=40)
    assert "turns" not in details(far, 78).plain


def test_the_meter_is_one_thin_row() -> None:
    parts = {"messages": 82_100}
    state = ContextMeasured(82_100, 81_400, 700, 200_000, parts, cache_share=0.97, cost_usd=0.42)
    shown = meter_line(state, 78).plain
    assert shown.startswith("82.1k of 200k · cache 97 % · $0.42  ━━━━")
    assert shown.count("┃") == 1, "the threshold is marked"
    for width in (5, 20, 40, 300):
        assert meter_line(state, width).cell_length <= width


def test_todos_show_the_one_in_hand() -> None:
    todos = [{"text": f"step {n}", "status": "completed"} for n in range(10)]
    todos += [{"text": "now this", "status": "in_progress"}, {"text": "then", "status": "pending"}]
    lines = todo_lines(todos, 6).plain.splitlines()
    assert lines[0] == "to do  10 of 12 done"
    assert len(lines) == 6
    assert "▸ now this" in lines
    assert "○ then" in lines


def test_what_is_still_to_be_done_is_counted_where_it_is_not_shown() -> None:
    todos = [{"text": f"step {n}", "status": "pending"} for n in range(9)]
    assert todo_lines(todos, 6).plain.splitlines()[0] == "to do  0 of 9 done · 4 more below"
    short = todo_lines(todos, 3).plain.splitlines()
    assert short == ["to do  0 of 9 done · 7 more below", "○ step 0", "○ step 1"]
    assert todo_lines(todos, 1).plain == "○ step 0 · 0 of 9 done"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (999, "999"), (8100, "8.1k"), (200_000, "200k"), (999_600, "1.0M")],
)
def test_tokens_are_short(count: int, text: str) -> None:
    assert formatting.tokens(count) == text


@pytest.mark.parametrize(
    ("delta", "text"),
    [(5, "now"), (300, "5 min"), (7200, "2 h"), (200_000, "2 d"), (9_000_000, "2026-08-09")],
)
def test_age(delta: float, text: str) -> None:
    assert formatting.age(NOW - timedelta(seconds=delta), NOW) == text


def test_durations_money_and_sizes() -> None:
    assert [formatting.duration(s) for s in (0, 59.9, 185, 7440)] == [
        *("0 s", "59 s", "3 min 05 s", "2 h 04 min"),
    ]
    assert [formatting.money(m) for m in (None, 0.0, 0.0042, 1.5)] == [
        "—",
        "$0.00",
        "$0.0042",
        "$1.50",
    ]
    assert [formatting.size(n) for n in (0, 999, 1000, 5_000_000)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "4.8 MB",
    ]


def _row(title: str, state: str = "ok") -> SessionRow:
    return SessionRow("01abc", Path("/s"), title, NOW, 1230, 4_000_000, state)


def _line(row: SessionRow, width: int, *, folders: bool) -> str:
    return "".join(text for text, _ in row_parts(row, NOW, width, folders=folders))


@given(WORDS, st.sampled_from(["ok", "interrupted"]), st.integers(30, 200), st.booleans())
def test_session_rows_are_exactly_as_wide_as_asked(
    title: str, state: str, width: int, folders: bool
) -> None:
    assert cell_len(_line(_row(title, state), width, folders=folders)) == width
    assert len(heading(width, folders=folders)) == width


@pytest.mark.parametrize("folders", [False, True])
def test_session_columns_stand_over_their_figures(folders: bool) -> None:
    row, names = _line(_row("a title"), 120, folders=folders), heading(120, folders=folders)
    for word, value in (("age", "now"), ("messages", "1,230"), ("size", "3.8 MB")):
        assert names.rindex(word) + len(word) == row.index(value) + len(value)


def test_every_word_of_a_filter_must_occur() -> None:
    rows = [_row("Fix the flaky test", "interrupted")]
    assert matching(rows, "flaky FIX") == rows
    assert matching(rows, "interrupted") == rows
    assert matching(rows, "flaky banner") == []


def test_the_header_names_the_profile_in_one_line_and_not_at_any_length() -> None:
    state = HeaderState("~/proj", "main", "claude-sonnet-5-5", profile="work")
    assert header_line(state, 100).plain.rstrip().endswith("profile work")
    assert "profile" not in header_line(replace(state, profile=""), 100).plain
    long = header_line(replace(state, profile="an odd\nname " * 9), 60)
    assert long.cell_length == 60
    assert "profile an odd name" in long.plain
