"""The chain: what was changed in a session file is found, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.clock import SystemClock
from tui.core.paths import folders
from tui.session import chain, chain_check, copies
from tui.session.reader import read
from tui.session.records import Header, Record
from tui.session.session import Session

HEADER = Header("ab12cd34ef56", "2026-01-01T00:00:00.000Z", "/w", "holdfast 1")


def records(count: int) -> list[Record]:
    return [
        Record(
            "note", f"r{n}", f"r{n - 1}" if n else None, "2026-01-01T00:00:00Z", {"text": f"é {n}"}
        )
        for n in range(count)
    ]


def file_of(path: Path, count: int) -> list[bytes]:
    copies.write_session(path, HEADER, records(count))
    return path.read_bytes().splitlines(keepends=True)


async def session_of(workspace: Path, *texts: str) -> Path:
    session = Session.create(workspace, folders=folders(), clock=SystemClock())
    for text in texts:
        session.append("user", content=[{"type": "text", "text": text}], text=text)
    await session.close()
    assert session.path
    return session.path


def changes(path: Path) -> list[tuple[int, str]]:
    return [(one.number, one.change) for one in chain_check.verify(path).changed]


async def test_a_session_is_as_it_was_written_however_often_it_is_opened(tmp_path: Path) -> None:
    path = await session_of(tmp_path, "one", "two")
    for text in ("three", "four"):
        session = Session.open(path, clock=SystemClock())
        session.append("user", content=[{"type": "text", "text": text}], text=text)
        await session.rewind(session.records[1].id)
        await session.close()
    report = chain_check.verify(path)
    lines = path.read_bytes().splitlines()
    assert (report.lines, report.linked, report.changed) == (len(lines), len(lines), [])
    assert report.head == json.loads(lines[-1])["chain"]
    assert not any("chain" in record.data for record in read(path).records)


async def test_an_older_session_is_covered_from_its_next_line_on(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes(b"".join((HEADER.to_line(), *(r.to_line() for r in records(3)))))
    report = chain_check.verify(path)
    assert (report.linked, report.uncovered, report.changed) == (0, [1, 2, 3, 4], [])
    session = Session.open(path, clock=SystemClock())
    session.append("note", text="new")
    await session.close()
    report = chain_check.verify(path)
    assert (report.lines, report.linked, report.covered) == (6, 2, 4)
    assert (report.uncovered, report.changed) == ([], [])
    assert [record.type for record in read(path).branch] == ["note"] * 4
    path.write_bytes(path.read_bytes().replace("é 1".encode(), b"e 1"))
    assert changes(path) == [(5, "before")]
    assert chain_check.verify(path).uncovered == [1, 2, 3, 4]


@pytest.mark.parametrize("cut", [1, 30, 200])
async def test_a_line_that_was_cut_short_is_named_and_no_change(tmp_path: Path, cut: int) -> None:
    path = await session_of(tmp_path, "one", "two " * 100)
    path.write_bytes(path.read_bytes()[:-cut])
    session = Session.open(path, clock=SystemClock())
    session.append("note", text="new")
    await session.close()
    report = chain_check.verify(path)
    assert report.changed == []
    assert report.covered == (cut > 1)
    assert report.torn == ([] if cut == 1 else [3])


async def test_a_line_that_is_written_twice_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = file_of(path, 6)
    path.write_bytes(b"".join([*lines[:5], *lines[2:5], *lines[5:]]))
    assert changes(path) == []
    assert chain_check.verify(path).twice == [6, 7, 8]


@pytest.mark.parametrize("cut", [20, 40])
async def test_a_line_that_was_cut_short_by_a_full_disk_is_no_change(
    tmp_path: Path, cut: int
) -> None:
    path = tmp_path / "s.jsonl"
    lines = file_of(path, 6)
    path.write_bytes(b"".join([*lines[:3], lines[3][:cut], b"\n", *lines[3:]]))
    report = chain_check.verify(path)
    assert (report.changed, report.torn) == ([], [4])
    path.write_bytes(b"".join([*lines, lines[3][:cut]]))
    report = chain_check.verify(path)
    assert (report.changed, report.torn) == ([], [8])


@pytest.mark.parametrize("what", [b"\n", b"garbage\n", b'{"type":"note"}\n', b'{"type":"note"\n'])
@pytest.mark.parametrize("at", [0, 3, 7])
def test_any_line_that_was_added_is_named(tmp_path: Path, what: bytes, at: int) -> None:
    path = tmp_path / "s.jsonl"
    lines = file_of(path, 6)
    path.write_bytes(b"".join([*lines[:at], what, *lines[at:]]))
    if at and what == b'{"type":"note"\n':
        assert chain_check.verify(path).torn == [at + 1]  # as if it had been cut short
    else:
        assert changes(path) == [(at + 1, "added")]


async def test_an_older_session_with_odd_lines_is_covered_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes(HEADER.to_line() + b"\n\r\n" + records(1)[0].to_line() + b"\xff\n\n")
    session = Session.open(path, clock=SystemClock())
    session.append("note", text="new")
    await session.close()
    report = chain_check.verify(path)
    assert (report.changed, report.covered, report.lines) == ([], 6, 8)


def _edited(lines: list[bytes], at: int) -> list[bytes]:
    said = json.loads(lines[at])
    said["time"] = "2027"
    return [*lines[:at], json.dumps(said).encode() + b"\n", *lines[at + 1 :]]


MUTATIONS: dict[str, Callable[[list[bytes], int], list[bytes]]] = {
    "a byte": lambda lines, n: [
        *lines[:n], lines[n].replace(b"note", b"n0te").replace(b"session", b"sessi0n"),
        *lines[n + 1 :],
    ],
    "gone": lambda lines, n: [*lines[:n], *lines[n + 1 :]],
    "two gone": lambda lines, n: [*lines[:n], *lines[n + 2 :]],
    "swapped": lambda lines, n: [*lines[:n], lines[n + 1], lines[n], *lines[n + 2 :]],
    "added": lambda lines, n: [
        *lines[:n], b'{"type":"note","id":"x","parent":null,"time":""}\n', *lines[n:],
    ],
    "written anew": _edited,
    "garbage": lambda lines, n: [*lines[:n], b"\x00\xff" * 40 + b"\n", *lines[n + 1 :]],
    "another link": lambda lines, n: [
        *lines[:n], lines[n][:-5] + (b"0" if lines[n][-5:-4] != b"0" else b"1") + lines[n][-4:],
        *lines[n + 1 :],
    ],
    "cr lf": lambda lines, n: [*lines[:n], lines[n][:-1] + b"\r\n", *lines[n + 1 :]],
    "joined": lambda lines, n: [*lines[:n], lines[n][:-1] + lines[n + 1], *lines[n + 2 :]],
}  # fmt: skip


@pytest.mark.parametrize("at", range(8))
@pytest.mark.parametrize("how", MUTATIONS)
def test_the_first_line_that_was_changed_is_named(tmp_path: Path, how: str, at: int) -> None:
    path = tmp_path / "s.jsonl"
    lines = file_of(path, 10)
    assert changes(path) == []
    path.write_bytes(b"".join(MUTATIONS[how](lines, at)))
    found = chain_check.verify(path).changed
    first = found[0]
    assert first.number - 1 in {at, at + 1} if how == "swapped" else first.number - 1 == at, found
    data = path.read_bytes()
    assert data[first.offset : first.offset + first.size] == data.split(b"\n")[first.number - 1]
    if how == "added":
        assert [one.change for one in found] == ["added"]
    if how in {"gone", "two gone"} and at:
        assert [one.change for one in found] == ["missing"]


@given(st.data())
def test_no_byte_before_the_last_line_changes_unseen(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        whole = b"".join(file_of(path, 6))
        at = data.draw(st.integers(0, whole.rstrip(b"\n").rindex(b"\n") - 1))
        byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))
        path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        assert changes(path)


async def test_two_writers_at_once_are_seen(tmp_path: Path) -> None:
    path = await session_of(tmp_path, "one")
    end = chain.end_of(path)
    with path.open("ab") as file:
        for text in ("a", "b"):
            line, _ = chain.linked(Record("note", text, None, "", {}).to_line(), end.link)
            file.write(line)
    assert changes(path) == [(4, "moved")]


def test_a_fork_has_a_chain_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    file_of(path, 5)
    made = copies.fork(read(path), folders=folders(), clock=SystemClock())
    report = chain_check.verify(made)
    assert report.linked == report.lines == 6
    data: dict[str, Any] = json.loads(made.read_bytes().splitlines()[-1])
    assert list(data)[-1] == "chain"
