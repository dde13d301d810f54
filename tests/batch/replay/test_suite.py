"""Suite files: whatever is recorded comes back from them, and whatever is in them is understood or
refused in words."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tui.batch.replay.suite import Case, name_of, parse, rendered
from tui.core.errors import UsageError

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text("\\\"'\n\r\t#[]= a\x7f\x00")
SAID = TEXTS.filter(str.strip)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    return Case(
        name=draw(SAID),
        session=draw(SAID),
        prompt=draw(TEXTS),
        text=draw(SAID),
        before=draw(SAID),
        after=draw(TEXTS),
        checks=tuple(draw(st.lists(TEXTS, max_size=3))),
        linked=tuple(draw(st.lists(TEXTS, max_size=2))),
        missing=tuple(draw(st.lists(TEXTS, max_size=2))),
    )


@given(st.lists(cases(), max_size=3, unique_by=lambda case: case.name))
def test_what_is_written_is_read_again(written: list[Case]) -> None:
    assert parse(rendered(written).encode(), "suite.toml").case == tuple(written)


FIELDS = b'session = "s"\nprompt = "p"\nbefore = "b"\nafter = "a"\n'


@given(st.binary() | st.text("[]=\"'case\n{}.,0123456789-:T").map(str.encode))
@example(b"[[case]]\nname = 'a'\n")
@example(b"case = 3")
@example(b"[case]\nname = 'a'")
@example(b"[[case]]\nname = ''\ntext = 't'\n" + FIELDS)
@example(b"[[case]]\nname = 'a'\ntext = ' '\n" + FIELDS)
@example(b"[[case]]\nname = 'a'\ntext = 't'\nmore = 1\n" + FIELDS)
@example(b"a = " + b"[" * 5000)
@example(b"a = 1979-13-45")
def test_anything_else_is_refused_in_words(data: bytes) -> None:
    problem: UsageError | None = None
    try:
        suite = parse(data, "suite.toml")
        assert all(case.name and case.text for case in suite.case)
    except UsageError as error:
        problem = error
    if problem is not None:
        assert problem.message.startswith("suite.toml isn't a suite: ")
        assert problem.hint


def test_two_cases_of_one_name_are_refused() -> None:
    case = Case(name="a", session="s", prompt="p", text="t", before="b", after="c")
    with pytest.raises(UsageError, match="two cases are named a"):
        parse(rendered([case, case]).encode(), "suite.toml")


def test_names_are_the_first_words_and_differ() -> None:
    assert name_of("Make the *parser* skip bad lines, please!", set()) == (
        "make-the-parser-skip-bad-lines"
    )
    assert name_of("Hi!", {"hi"}) == "hi-2"
    assert name_of("\u4f60\u597d", set()) == "prompt"
