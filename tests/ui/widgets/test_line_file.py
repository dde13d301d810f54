"""A file of any size by its lines: found by sums, whatever was counted so far."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.ui.widgets.file_viewer import line_file
from tui.ui.widgets.file_viewer.line_file import LineFile, MatchCounts

LINES = st.lists(st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"")), max_size=60)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_file, "BLOCK", 16)


def counted(file: LineFile, blocks: int | None = None) -> LineFile:
    """With so many blocks counted; None for all."""
    done = 0
    while (blocks is None or done < blocks) and file.lines.go_on(0):
        done += 1
    return file


@settings(max_examples=200, deadline=None)
@given(LINES, st.booleans(), st.integers(0, 40))
def test_lines_are_found_however_much_is_counted(
    lines: list[bytes], ended: bool, blocks: int
) -> None:
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    file = counted(LineFile(data), blocks)
    places = [0, *(n + 1 for n, byte in enumerate(data) if byte == 10 and n + 1 < len(data))]
    for at in range(len(data)):
        start = max(place for place in places if place <= at)
        end = data.find(b"\n", at)
        assert file.start(at) == start
        assert file.end(at) == (end if end >= 0 else len(data))
    counted(file)
    assert file.count == (len(places) if data else 0)
    for number, place in enumerate(places if data else []):
        assert file.number(place) == number
        assert file.place(number) == place


@settings(max_examples=300, deadline=None)
@given(
    st.text("abAB\n", max_size=120),
    st.text("abAB", min_size=1, max_size=20),
    st.booleans(),
    st.integers(0, 8),
)
def test_what_is_searched_is_found_across_blocks(
    text: str, wanted: str, fold: bool, blocks: int
) -> None:
    data, needle = text.encode(), wanted.encode()
    hits = MatchCounts(LineFile(data), needle, fold=fold)
    for _ in range(blocks):
        hits.go_on(0)
    plain, seek = (data.lower(), needle.lower()) if fold else (data, needle)
    starts = [n for n in range(len(data)) if plain.startswith(seek, n)]
    for at in range(len(data) + 1):
        assert hits.after(at) == next((n for n in starts if n >= at), None)
        assert hits.before(at) == next((n for n in reversed(starts) if n < at), None)
    while hits.go_on(0):
        pass
    found = [hits.nth(number) for number in range(hits.total)]
    assert found == sorted(found)  # type: ignore[type-var]
    assert set(found) <= set(starts)
    assert (hits.total == 0) == (not starts)
    for number, at in enumerate(found):
        assert at is not None
        assert hits.upto(at) == number


def test_the_end_of_an_endless_line_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_file, "SCAN", 4)
    file = LineFile(b"x" * 1000 + b"\nend")
    assert file.end(0) is None
    assert file.start(900) > 0  # somewhere in it, so that the end can be shown at once
    counted(file)
    assert file.end(0) == 1000
    assert file.start(900) == 0


@pytest.mark.parametrize("kind", ["folder", "missing", "pipe", "device"])
def test_only_a_regular_file_is_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    match kind:
        case "folder":
            path = tmp_path
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/zero")
        case _:
            pass
    with pytest.raises(OSError, match=r"."):
        LineFile(path)


def test_a_file_that_is_shortened_or_closed_just_ends(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"line\n" * 100)
    file = LineFile(path)
    os.truncate(path, 10)
    assert file.read(0, 500) == b"line\nline\n"
    assert file.end(0) == 4
    file.close()
    assert file.read(0, 500) == b""
    assert not file.lines.go_on(0)
