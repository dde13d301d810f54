"""Sessions by what people call them: ids first, then titles, and never one of several."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.errors import MissingSessionError, SessionError
from tui.core.paths import Folders, folders
from tui.session.naming import completed, find, named


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


def begin(home: Folders, id_: str, title: str, folder: str = "/work") -> Path:
    """A session with a title."""
    file = home.sessions_of(Path(folder)) / f"20261130T120000Z-{id_}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = [{"type": "text", "text": "hi"}]
    lines = [
        {"type": "session", "version": 1, "id": id_, "created": "", "cwd": folder, "app": "x"},
        {"type": "user", "id": "1", "parent": None, "time": "", "content": text, "text": "hi"},
        {"type": "title", "id": "2", "parent": "1", "time": "", "title": title},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_whole_title_goes_before_the_start_of_one_and_that_before_words_in_one() -> None:
    every = [("Fix the parser", 1), ("fix", 2), ("Don't fix it", 3)]
    assert named("FIX", every) == [2]
    assert named("fix  the", every) == [1]
    assert named("it", every) == [3]
    assert named("f", every) == [1, 2]
    assert named("", every) == named("no", every) == []
    assert named("fix the", every, whole=True) == []


@given(st.lists(st.text(max_size=8), max_size=6), st.text(max_size=4))
def test_of_any_titles_only_those_that_fit_are_named(titles: list[str], wanted: str) -> None:
    found = named(wanted, ((one, one) for one in titles))
    words = " ".join(wanted.casefold().split())
    assert all(words in " ".join(one.casefold().split()) for one in found)
    assert bool(found) == (
        bool(words) and any(words in " ".join(one.casefold().split()) for one in titles)
    )


def test_an_id_and_a_file_count_before_a_title(home: Folders, tmp_path: Path) -> None:
    one = begin(home, "deadbeef0001", "Fix the parser")
    two = begin(home, "cafe00000002", "deadbeef")
    assert find("deadbeef", home) == one
    assert find("cafe", home) == two
    assert find("Fix THE", home) == one
    assert find(str(two), home) == two


def test_a_title_may_look_like_a_path(home: Folders) -> None:
    one = begin(home, "deadbeef0001", "Deploy a/b now.jsonl")
    assert find("a/b", home) == one
    assert find("now.jsonl", home) == one
    with pytest.raises(MissingSessionError, match=r"File not found: no/such\."):
        find("no/such", home)


def test_several_are_listed_with_id_and_folder(home: Folders) -> None:
    for number in range(12):
        begin(home, f"{number:012x}", f"Fix part {number}\x1b[31m", f"/w/{number}")
    with pytest.raises(SessionError) as caught:
        find("fix part", home)
    assert caught.value.message == "12 sessions are called “fix part”."
    first, *lines = caught.value.hint.splitlines()
    assert first == "Name one by its id:"
    assert len(lines) == 11
    assert lines[-1] == "  … and 2 more"
    assert any(line.endswith("/w/5") and "000000000005" in line for line in lines)
    assert "\x1b" not in caught.value.hint


def test_what_is_deleted_is_named_in_full(home: Folders) -> None:
    one = begin(home, "deadbeef0001", "Fix the parser")
    assert find("fix the parser", home, whole=True) == one
    with pytest.raises(MissingSessionError, match="whole title"):
        find("parser", home, whole=True)


def test_a_title_that_fills_a_command_line_is_completed_by_its_id() -> None:
    assert completed([("x" * 100_000, "a1"), ("short", "b2")]) == [("a1", ""), ("short", "b2")]
