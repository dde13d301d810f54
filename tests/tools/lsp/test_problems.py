"""Problems: compared, and put into lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from tui.tools.lsp.problems import (
    SHOWN_MAX,
    Problem,
    in_changed_lines,
    new_problems,
    of_linter,
    of_server,
    problem_lines,
)


def problem(line: int, message: str = "no", text: str = "") -> Problem:
    return Problem("a.py", line, 1, "error", message, text=text)


def test_moved_problems_are_not_new() -> None:
    before = [problem(1, text="x"), problem(2, "other", text="y")]
    after = [problem(5, text="x"), problem(9, "other", text="y, changed")]
    assert new_problems(before, after) == []


def test_of_the_same_wording_the_one_in_a_new_line_is_the_new_one() -> None:
    before = [problem(1, text="old")]
    after = [problem(1, text="new"), problem(2, text="old")]
    assert new_problems(before, after) == [problem(1, text="new")]


def test_lines_say_the_errors_first_and_count_the_rest() -> None:
    warning = Problem("a.py", 1, 0, "warning", "hm", "ruff", "F1")
    lines = problem_lines([warning, *(problem(n) for n in range(SHOWN_MAX))])
    assert len(lines) == SHOWN_MAX + 1
    assert lines[-1] == "… and 1 more"
    assert problem_lines([warning]) == ["a.py:1 warning hm [ruff F1]"]


def test_only_lines_of_the_edit_count_where_nothing_is_known_of_before() -> None:
    found = [problem(1), problem(2), problem(3)]
    assert in_changed_lines(found, "a\nc\n", "a\nb\nc\n") == [problem(2)]


anything = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=5),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(
            some.sampled_from(
                ["range", "start", "line", "character", "message", "severity", "code"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(anything, some.lists(some.text(max_size=10), max_size=3))
def test_whatever_a_server_says_is_read(said: object, lines: list[str]) -> None:
    for one in of_server([said], "a.py", lines, lambda _, column: column, "wild"):
        assert one.line > 0
        assert one.severity in {"error", "warning"}
        assert "\n" not in one.message


@given(some.text(max_size=80))
def test_whatever_a_linter_prints_is_read(printed: str) -> None:
    for one in of_linter(f"a.py:1:1: {printed}", "a.py", ["a.py"], ["x"], "linter"):
        assert one.line == 1
