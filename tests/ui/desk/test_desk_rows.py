"""The desk as data: groups, order, words, and lines that fit and hide nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.support.desk import FakeHost
from tests.ui.desk.samples import NOW, PLAN, QUESTION, ago, call, day, row
from tui.app.door.lines import AskedLine
from tui.desk.host import DeskRow
from tui.ui.desk import desk_rows
from tui.ui.desk.desk_rows import ColumnCells, DeskLine, line_parts, lines_of


def texts(lines: list[DeskLine], width: int = 116, *, hosts: bool = False) -> list[str]:
    rows = [line.row for line in lines if line.row is not None]
    columns = ColumnCells.of(rows, hosts=hosts)
    parts = [line_parts(line, NOW, width, columns) for line in lines]
    return ["".join(text for text, _ in some) for some in parts]


def test_groups_come_in_the_order_of_what_a_person_has_to_do() -> None:
    lines = lines_of(day())
    groups = [text for line, text in zip(lines, texts(lines), strict=True) if line.kind == "group"]
    assert groups == [
        "Waiting for you  2",
        "Working  2",
        "Waiting for the server  1",
        "Open  1",
        "Ended  3",
        "Saved  14   f shows them",
    ]


def test_a_single_saved_session_is_named_as_one() -> None:
    lines = lines_of([row("a", "idle", "t"), row("b", "saved", "u")])
    assert texts(lines)[-1] == "Saved  1   f shows it"


def test_a_session_with_an_open_question_waits_whatever_else_it_does() -> None:
    assert desk_rows.group_of(row("a", "working", "t", asked=QUESTION)) == "waiting"


def test_each_question_is_on_a_line_of_its_own() -> None:
    rows = [
        row("a", "waiting", "one", asked=call(), since=ago(1)),
        row("b", "waiting", "two", asked=QUESTION, since=ago(2)),
        row("c", "waiting", "three", asked=PLAN, since=ago(3)),
    ]
    shown = texts(lines_of(rows))
    assert shown[2] == "  └ Run pytest -q tests/store --maxfail=1"
    assert shown[4] == "  └ Which database should the sessions live in?"
    assert shown[6] == "  └ Plan: Split the parser"
    does = [desk_rows.does_words(one) for one in rows]
    assert does == ["asks to run", "has a question", "has a plan for you"]


def test_a_title_gets_the_room_that_short_folders_and_branches_leave() -> None:
    title = "rename the settings of the importer and warn"
    short = [row("a", "working", title, detail="answering", cwd="/srv", branch="main")]
    assert title in texts(lines_of(short))[1]
    wide = [row("a", "working", title, cwd="/srv/a/long/folder", branch="fix/a-long-name")]
    assert title not in texts(lines_of(wide))[1]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_the_names_of_the_columns_stand_over_them(width: int) -> None:
    one = row("a", "idle", "t", cwd="/srv", branch="main", cost_usd=0.5)
    columns = ColumnCells.of([one], hosts=True)
    names = desk_rows.heading(width, columns)
    parts = line_parts(DeskLine("session", "open", one), NOW, width, columns)
    line = "".join(text for text, _ in parts)
    assert len(line) == len(names) == width
    for name, text in (("folder", "/srv"), ("branch", "main"), ("host", "here")):
        assert name not in names or names.index(name) == line.index(text)


def test_an_interrupted_session_says_so_before_why() -> None:
    killed = row("a", "interrupted", "t", detail="killed, or the machine restarted")
    assert desk_rows.does_words(killed) == "interrupted: killed, or the machine restarted"
    assert desk_rows.does_words(row("a", "interrupted", "t", detail="")) == "interrupted"


def test_of_several_questions_the_first_is_shown_and_the_others_are_counted() -> None:
    asked = (AskedLine(number="1", asked=PLAN), AskedLine(number="2", asked=QUESTION))
    shown = texts(lines_of([row("a", "waiting", "one", questions=asked)]))
    assert shown[2] == "  └ Plan: Split the parser  and 1 more"
    assert "2 questions" in shown[1]


def test_the_newest_question_is_on_top_and_ended_ones_that_nobody_saw_come_first() -> None:
    rows = [
        row("a", "waiting", "older", asked=QUESTION, since=ago(9)),
        row("b", "waiting", "newer", asked=QUESTION, since=ago(1)),
        row("c", "done", "seen", since=ago(1), seen=True),
        row("d", "failed", "unseen", since=ago(9)),
    ]
    titles = [line.row.title for line in lines_of(rows) if line.kind == "session" and line.row]
    assert titles == ["newer", "older", "unseen", "seen"]


def test_a_session_that_goes_from_step_to_step_keeps_its_place() -> None:
    rows = [
        row("a", "working", "first", started=ago(9), since=ago(0)),
        row("b", "working", "second", started=ago(3), since=ago(2)),
    ]
    before = [line.name for line in lines_of(rows)]
    rows[1] = row("b", "working", "second", started=ago(3), since=ago(-1))
    assert [line.name for line in lines_of(rows)] == before


def test_saved_sessions_are_shown_once_unfolded_sought_or_alone() -> None:
    rows = day()
    assert sum(line.kind == "session" for line in lines_of(rows, folded=False)) == 23
    assert [line.row.title for line in lines_of(rows, words="OLDER 13") if line.row] == [
        "older session 13"
    ]
    alone = [one for one in rows if one.state == "saved"]
    assert sum(line.kind == "session" for line in lines_of(alone)) == 14


@pytest.mark.parametrize(
    "words", ["flaky", "fix/flaky", "src/store fix", "waiting for you pytest", "A1B2C3"]
)
def test_a_filter_finds_by_title_place_state_and_question(words: str) -> None:
    assert [one.id for one in desk_rows.matching(day(), words)] == ["a1b2c3d4e5f6"]


def test_what_cannot_be_reached_says_why_and_what_to_do() -> None:
    here, far = FakeHost(""), FakeHost("mill")
    far.problem = "Connection refused"
    assert desk_rows.problem_lines([here, far], 100).plain == (
        "! mill: Connection refused. Check that `ssh mill` works; trying again."
    )
    assert desk_rows.problem_lines([here], 100).plain == ""


def test_an_owner_that_hangs_is_marked_with_its_problem() -> None:
    line = texts(lines_of([row("a", "working", "t", problem="It hasn't answered for 9 s.")]))[1]
    assert line.startswith("! t")
    assert "It hasn't answered for 9 s." in line


def test_the_command_to_open_a_session_elsewhere() -> None:
    assert desk_rows.attach_command(row("ab", "idle", "t")) == "holdfast attach ab"
    far = row("ab", "idle", "t", host="me@mill:2222")
    assert desk_rows.attach_command(far) == "holdfast attach ssh://me@mill:2222/ab"


def test_only_keys_that_do_something_are_offered() -> None:
    keys = dict(desk_rows.desk_keys(row("a", "waiting", "t", asked=PLAN), waiting=1, saved=0))
    assert {"a", "s", "enter"} <= keys.keys()
    assert not {"d", "f", "w"} & keys.keys()
    done = dict(desk_rows.desk_keys(row("a", "done", "t"), waiting=1, saved=2))
    assert {"d", "w", "f"} <= done.keys()
    assert not {"a", "s"} & done.keys()
    assert dict(desk_rows.desk_keys(None, waiting=0, saved=0)).keys() == {"n", "esc"}


NASTY = st.text(max_size=80) | st.sampled_from(
    [
        "x" * 500,
        "a\x1b[31mred\x1b]0;pwned\x07",
        "日本語" * 40,
        "\u202eevil\u2066",
        "שלום",
        "a\tb\r\nc",
    ]
)


@given(
    title=NASTY, detail=NASTY, cwd=NASTY, branch=NASTY, command=NASTY, width=st.integers(20, 220)
)
def test_whatever_a_session_says_its_lines_fit_and_steer_nothing(
    title: str, detail: str, cwd: str, branch: str, command: str, width: int
) -> None:
    given_: dict[str, str] = {"detail": detail, "cwd": cwd, "branch": branch}
    rows: list[DeskRow] = [
        row("a", "working", title, **given_),
        row("b", "waiting", title, asked=call(command), **given_),
        row("c", "working", title, host=detail[:20], problem=branch, **given_),
    ]
    for text in texts(lines_of(rows), width, hosts=True):
        assert cell_len(text) <= width
        assert not any(ord(char) < 32 or char == "\x7f" for char in text)
    for text in texts([line for line in lines_of(rows) if line.kind == "question"], width):
        assert not any(char in text for char in "\u202e\u2066\u200f")
