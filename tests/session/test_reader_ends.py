"""The two ends of a session, read without what stands between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.core.errors import SessionError
from tui.session.reader import read, read_end, read_ends
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
    assert read_ends(path) == read(path)


def test_of_a_long_session_the_first_and_the_last_records(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, 5000)
    ends, whole = read_ends(path), read(path)
    ids = [record.id for record in ends.branch]
    assert ids[0] == "r0"
    assert ids[-200:] == [record.id for record in whole.branch[-200:]]
    assert len(ids) < 2500
    assert not ends.findings


def test_damage_at_the_end_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, 5000, tail=b'not json\n{"type": 7, "id": "x"}\n{"type": "user", "id"')
    assert [record.id for record in read_ends(path).branch[-2:]] == ["r4998", "r4999"]


def test_an_empty_file_and_none(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.touch()
    assert read_ends(path).branch == []
    with pytest.raises(SessionError):
        read_ends(tmp_path / "none.jsonl")


@pytest.mark.parametrize("size", [1000, 20_000, 10_000_000])
def test_the_last_bytes_hold_the_last_records(tmp_path: Path, size: int) -> None:
    path = tmp_path / "s.jsonl"
    write(path, 500, tail=b'{"type": "user", "id"')
    end, whole = read_end(path, size), read(path).branch
    assert [r.id for r in end] == [r.id for r in whole[-len(end) :]]
    assert min(500, size // 400) <= len(end) <= 500


def test_less_than_a_line_holds_no_record(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, 3)
    assert read_end(path, 50) == []
