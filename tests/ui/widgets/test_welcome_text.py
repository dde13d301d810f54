"""The column in which a new session begins fits its place, and nothing in it moves."""

from __future__ import annotations

import pytest

from tui.app.start_rows import StartRow
from tui.ui.widgets.welcome_text import intro

ROWS = (
    StartRow("Resume “fix the flaky test of the session writer”", "2 h ago · stopped at pytest -q"),
    StartRow("Review 4 uncommitted changes", prompt="review"),
    StartRow("Run the tests", "pytest", "test"),
)
SIZES = [(40, 6), (60, 14), (80, 14), (120, 24), (200, 29), (300, 53)]


def lines(width: int, height: int, rows: tuple[StartRow, ...] = ROWS) -> list[str]:
    return intro("1.2", width, height, rows).plain.split("\n")


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_row_is_there_and_none_is_too_long(width: int, height: int) -> None:
    found = lines(width, height)
    assert len(found) == height
    assert max(map(len, found)) <= width
    text = "\n".join(found)
    assert all(f"{at}  {row.label[:12]}" in text for at, row in enumerate(ROWS, 1))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_nothing_moves_when_the_rows_come(width: int, height: int) -> None:
    places = [at for at, line in enumerate(lines(width, height)) if "  Re" in line or "Run" in line]
    before, after = lines(width, height, ()), lines(width, height)
    assert [line for at, line in enumerate(after) if at not in places] == [
        line for at, line in enumerate(before) if at not in places
    ]


def test_the_label_keeps_its_room_beside_a_long_detail() -> None:
    long = StartRow("Resume “a title that is rather long”", "3 d ago · stopped at " + "x" * 80)
    row = next(line for line in lines(60, 14, (long,)) if "Resume" in line)
    assert row.endswith("1  Resume “a title that is rather long” · 3 d ago")


def test_a_row_is_cut_between_words() -> None:
    long = StartRow("Resume “Fix the parser of dates”", "2 h ago · stopped at pytest")
    tests = StartRow("Run the tests and fix failures", "pytest")
    found = lines(40, 6, (long, tests))
    assert any(line.endswith("1  Resume “Fix the…” · 2 h ago") for line in found)
    assert any(line.endswith("2  Run the tests and fix failures") for line in found)


def test_what_a_session_is_called_is_never_markup() -> None:
    row = StartRow("Resume “[bold]x[/] [@click=app.quit]y[/]”", "[red]z")
    assert "[bold]x[/] [@click=app.quit]y[/]” · [red]z" in "\n".join(lines(80, 14, (row,)))


def test_where_no_rows_will_come_nothing_is_kept_free_for_them() -> None:
    drawn = intro("1.2", 80, 20, None).plain.split("\n")
    named = next(at for at, line in enumerate(drawn) if "1.2" in line)
    assert [line.split() for line in drawn[named + 1 : named + 3]] == [
        [],
        ["↑", "earlier", "prompts", "shift+tab", "mode", "f3", "sessions", "?", "help"],
    ]
