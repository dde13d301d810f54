"""What is searched for in bytes stands where it is marked in what is drawn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from tui.ui.widgets.file_viewer.line_file import Needle
from tui.ui.widgets.markdown.text import line


def spots(needle: Needle, text: str) -> list[str]:
    return [text[low:high] for low, high in needle.spots(line([(text, Style.null())]))]


def test_small_letters_match_capitals_only_where_that_is_asked_for() -> None:
    assert spots(Needle(b"error"), "Error error") == ["error"]
    assert spots(Needle(b"error", fold=True), "Error ERROR errör") == ["Error", "ERROR"]
    assert Needle(b"error", fold=True).count(b"Error ERROR") == 2
    assert Needle(b"error").count(b"Error error") == 1


def test_nothing_is_found_of_nothing() -> None:
    assert Needle().spots(line([("text", Style.null())])) == []


@given(st.text("aAbBäÄ€", max_size=40), st.text("abä€", min_size=1, max_size=3), st.booleans())
def test_as_many_are_marked_as_are_counted(text: str, wanted: str, fold: bool) -> None:
    needle = Needle(wanted.encode(), fold)
    assert len(spots(needle, text)) == needle.count(text.encode())
