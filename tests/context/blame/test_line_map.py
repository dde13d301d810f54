"""Lines from one version of a file to the next."""

from __future__ import annotations

from tui.context.blame.line_map import LineMap, Reformatted, composed, line_map

OLD = ["total = add(1,2)", "name = 'some text'", "long = make('first', 'second', third=3)", "end"]
EDITED_AND_FORMATTED = [
    "total = add(1, 2)",
    "fresh = by_hand()",
    'name = "some text"',
    "long = make(",
    '    "first", "second", third=3',
    ")",
    "another = by_hand()",
    "end",
]


def sources(new: list[str], reformatted: Reformatted) -> list[int | None]:
    """For each new line the old one that it comes from."""
    found: list[int | None] = [None] * len(new)
    for run in line_map(OLD, new, reformatted).runs:
        found[run.new : run.new + run.size] = range(run.old, run.old + run.size)
    return found


def test_who_formats_a_file_may_have_edited_it_as_well() -> None:
    """Both happen between two checkpoints: what only took another form is still who wrote it."""
    assert sources(EDITED_AND_FORMATTED, "lines") == [0, None, 1, 2, 2, 2, None, 3]


def test_in_a_call_of_the_model_another_form_is_another_line() -> None:
    assert sources(EDITED_AND_FORMATTED, "nothing") == [None] * 7 + [3]


def test_a_line_that_says_little_is_not_told_by_its_substance() -> None:
    found = line_map(["x = 1", "y = 2", "tail"], ["x = (1)", "other()", "tail"], "lines")
    assert 0 not in {run.new for run in found.runs}


def places_of(found: LineMap) -> dict[int, int]:
    return {run.new + k: run.old + k for run in found.runs for k in range(run.size)}


def test_lines_that_a_formatter_joins_come_from_the_first_of_them() -> None:
    old = ["one = call(", "    first_argument=1,", ")", "two = 2"]
    new = ["added = line(1)", "one = call(first_argument=1)", "other = line(2)", "two = 2"]
    assert places_of(line_map(old, new, "lines")) == {1: 0, 3: 3}


def test_a_block_that_is_moved_and_formatted_in_one_step_keeps_its_lines() -> None:
    moved = ["alpha = make('alpha', first=1, second=2)", "beta = make('beta', third=3)"]
    rest = [f"line_{n} = {n}" for n in range(12)]
    formatted = ["alpha = make(", '    "alpha",', "    first=1,", "    second=2,", ")"]
    formatted.append('beta = make("beta", third=3)')
    found = places_of(line_map([*moved, *rest], [*rest, *formatted, "end = 1"], "lines"))
    assert [found.get(n) for n in range(12, 19)] == [0, 0, 0, 0, 0, 1, None]


def test_two_steps_are_one() -> None:
    first = line_map(["a", "b", "c"], ["a", "x", "b", "c"], "nothing")
    second = line_map(["a", "x", "b", "c"], ["x", "b", "y", "c"], "nothing")
    assert places_of(composed(first, second)) == {1: 1, 3: 2}
    assert composed(first, second).length == 4
