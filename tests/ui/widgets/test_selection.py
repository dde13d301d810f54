"""The part of a long line that is drawn: no byte is lost, and no character is torn."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tui.ui.widgets.file_viewer.line_file import WINDOW, LineFile, part_of


def whole(data: bytes) -> LineFile:
    """A file all of whose lines are known."""
    file = LineFile(data)
    while file.lines.unfinished:
        file.lines.go_on(1.0)
    return file


def test_a_short_line_is_drawn_whole() -> None:
    assert part_of(whole(b"one\ntwo\r\n"), 4, 0) == (b"two", 0, 0, 4)


def test_what_a_carriage_return_overwrote_is_not_drawn() -> None:
    assert part_of(whole(b"10 %\r50 %\r100 %\n"), 0, 0) == (b"100 %", 0, 0, 10)


@settings(max_examples=30, deadline=None)
@given(st.text("aé€𝄞", min_size=1, max_size=12), st.integers(0, 3 * WINDOW))
def test_before_and_behind_a_part_stands_what_it_says(piece: str, shift: int) -> None:
    text = piece * (2 * WINDOW // len(piece.encode()) + 1)
    data = text.encode()
    part = part_of(whole(b"x\n" + data + b"\n"), 2, shift)
    assert part.before + len(part.data) + (part.behind or 0) == len(data)
    assert part.data == data[part.before :][: len(part.data)]
    assert part.first == 2 + part.before
    assert not part.data.decode("utf-8", "replace").startswith("\ufffd")


def test_the_end_of_a_line_that_was_not_read_yet_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"x" * (WINDOW << 10))
    file = LineFile(path)
    part = part_of(file, 0, 0)
    file.close()
    assert len(part.data) == WINDOW
    assert part.behind is None
