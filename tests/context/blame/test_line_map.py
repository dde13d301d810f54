"""Lines from one version of a file to the next."""

from __future__ import annotations

from tui.context.blame.line_map import Reformatted, line_map

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
    assert sources(["x = (1)", *OLD[1:], "fine()", "end;"], "lines")[0] is None
