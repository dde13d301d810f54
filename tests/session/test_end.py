"""The end of a session, read alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.errors import SessionError
from tui.session.end import END_BYTES, read_end
from tui.session.reader import read
from tui.session.records import Header, Record


def write(path: Path, count: int, *, tail: bytes = b"") -> None:
    lines = [Header("a1", "2026-11-21T08:00:00Z", "/work", "holdfast").to_line()]
    for number in range(count):
        parent = f"r{number - 1}" if number else None
        lines.append(
            Record(
                "user", f"r{number}", parent, "2026-11-21T08:00:01Z", {"text": "x" * 200}
            ).to_line()
        )
    path.write_bytes(b"".join(lines) + tail)


def test_a_short_session_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, 3)
    assert read_end(path) == read(path).branch


def test_of_a_long_session_the_last_records(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, 5000)
    found = read_end(path)
    assert found == read(path).branch[-len(found) :]
    assert 100 < len(found) < END_BYTES / 200


def test_damage_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, 3, tail=b'not json\n{"type": 7, "id": "x"}\n{"type": "user", "id"')
    assert [record.id for record in read_end(path)] == ["r0", "r1", "r2"]


def test_an_empty_file_and_none(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.touch()
    assert read_end(path) == []
    with pytest.raises(SessionError):
        read_end(tmp_path / "none.jsonl")
