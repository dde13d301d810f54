"""Paths in a pasted text, as terminals and file managers send them."""

from __future__ import annotations

import re
import shlex
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.image_files import PASTE_MAX_CHARS, pasted_paths

CHARS = st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp"), blacklist_characters="/")
NAMES = st.text(CHARS, min_size=1, max_size=20).filter(lambda name: name.strip() == name)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
MANY = st.lists(PATHS, min_size=1, max_size=5)


def escaped(path: str) -> str:
    """As most terminals do it: a backslash before what means something to a shell."""
    return re.sub(r"([^\w/.,:@%+=-])", r"\\\1", path)


@given(MANY)
def test_quoted_paths(paths: list[str]) -> None:
    assert tuple(paths) in pasted_paths(" ".join(map(shlex.quote, paths)))


@given(MANY)
def test_escaped_paths(paths: list[str]) -> None:
    assert tuple(paths) in pasted_paths(" ".join(map(escaped, paths)) + " ")


@given(MANY, st.sampled_from(["file://", "file://localhost", "FILE://"]))
def test_addresses_one_a_line(paths: list[str], scheme: str) -> None:
    assert tuple(paths) in pasted_paths(
        "\r\n".join(scheme + quote(path) for path in paths) + "\r\n"
    )


@given(PATHS.filter(lambda path: path.splitlines() == [path]))
def test_one_path_as_it_is(path: str) -> None:
    found = pasted_paths(path)
    assert (path,) in found or path.lower().startswith("file:")


@given(st.text(max_size=400))
def test_any_text_is_read_without_harm(text: str) -> None:
    for reading in pasted_paths(text):
        assert reading
        assert all(path and "\0" not in path for path in reading)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("shot.png", ("shot.png",)),
        ("~/a b.png", ("~/a b.png",)),
        ("/a/Screen Shot 1.png", ("/a/Screen Shot 1.png",)),
        ("'/a/it'\\''s.png'", ("/a/it's.png",)),
        ('"/a/b c.png" "/d.jpg"', ("/a/b c.png", "/d.jpg")),
        ("/a/b c.png /d e.jpg", ("/a/b c.png", "/d e.jpg")),
        ("file:///a/b%20c%C3%BC.png", ("/a/b cü.png",)),
        (r"C:\Users\me\shot.png", (r"C:\Users\me\shot.png",)),
    ],
)
def test_what_terminals_send(text: str, paths: tuple[str, ...]) -> None:
    assert paths in pasted_paths(text)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "hello world", "see shot.png there", "a = b / c", "x\0y.png", "\x1b[31m/a.png"],
)
def test_other_texts_are_no_paths(text: str) -> None:
    assert pasted_paths(text) == []


def test_a_long_text_is_no_list_of_paths() -> None:
    assert pasted_paths("/a" * PASTE_MAX_CHARS) == []
    assert pasted_paths("\n".join(f"/a/{n}.png" for n in range(100))) == []
