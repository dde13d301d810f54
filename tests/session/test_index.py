"""The index: fast lists and search, and never more than a cache."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.core.paths import Folders
from tui.session import catalog, index
from tui.session.records import Record
from tui.session.session import Session


async def session(home: Folders, *prompts: str, at: float = 0) -> Session:
    clock = FakeClock()
    clock.elapsed = at
    made = Session.create(Path("/w"), folders=home, clock=clock)
    for prompt in prompts:
        made.append("user", content=prompt, text=prompt)
    await made.close()
    assert made.path is not None
    os.utime(made.path, (at, at))
    return made


def found(home: Folders, query: str) -> list[index.Hit]:
    return index.search(home.cache, catalog.scan(home), query)


def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read for a list from now on."""
    read: list[str] = []
    real = index.describe

    def counting(path: Path) -> catalog.SessionSummary:
        read.append(path.name)
        return real(path)

    monkeypatch.setattr(index, "describe", counting)
    return read


async def test_only_what_has_changed_is_read_again(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await session(home, "one"), await session(home, "two", at=9)
    before = index.list_sessions(home)
    read = described(monkeypatch)
    assert index.list_sessions(home) == before
    assert read == []
    assert one.path is not None
    again = Session.open(one.path, clock=FakeClock())
    again.append("title", title="changed")
    await again.close()
    entries = index.list_sessions(home)
    assert read == [one.path.name]
    assert [entry.title for entry in entries] == ["changed", "two"]
    assert two.path is not None
    two.path.unlink()
    assert [entry.title for entry in index.list_sessions(home)] == ["changed"]
    assert found(home, "two") == []


DAMAGE = ["missing", "no database", "cut", "other version", "a folder", "other tables"]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_broken_index_costs_only_a_rebuild(home: Folders, damage: str) -> None:
    await session(home, "find the needle", "and more" * 999)
    before, hits = index.list_sessions(home), found(home, "needle")
    assert len(hits) == 1
    file = home.cache / index.NAME
    match damage:
        case "missing":
            file.unlink()
        case "no database":
            file.write_bytes(b"\0nonsense" * 999)
        case "cut":
            file.write_bytes(file.read_bytes()[:5000])
        case "other version":
            with sqlite3.connect(file) as other:
                other.execute("PRAGMA user_version = 99")
        case "a folder":
            file.unlink()
            file.mkdir()
        case _:
            with sqlite3.connect(file) as other:
                other.execute("DROP TABLE session")
                other.execute("DROP TABLE said")
    assert index.list_sessions(home) == before
    assert found(home, "needle") == hits
    assert index.list_sessions(home) == before


async def test_another_program_that_writes_the_index_is_not_waited_for(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "BUSY_S", 0.01)
    await session(home, "one needle")
    index.list_sessions(home)
    with sqlite3.connect(home.cache / index.NAME, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        await session(home, "two needles", at=9)
        assert [entry.title for entry in index.list_sessions(home)] == ["two needles", "one needle"]
        assert len(found(home, "needle")) == 2
        other.execute("ROLLBACK")
    assert len(index.list_sessions(home)) == 2


async def test_without_a_place_for_the_index_everything_works(home: Folders) -> None:
    await session(home, "the needle")
    home.cache.write_bytes(b"")
    assert [entry.title for entry in index.list_sessions(home)] == ["the needle"]
    assert len(found(home, "needle")) == 1


@pytest.mark.parametrize("fts", [True, False])
async def test_search_finds_the_record_and_its_line(
    home: Folders, fts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not fts:
        monkeypatch.setattr(index, "_WORDS", "CREATE VIRTUAL TABLE words USING nothing()")
    old = await session(home, "a Needle in the hay", "nothing here")
    new = await session(home, "hay", 'more "hay" and a needle: İstanbul 針山', at=9)
    assert [hit.id for hit in found(home, "needle")] == [new.id, old.id]
    (hit,) = found(home, "NEEDLE more")
    assert hit.to_json() == {
        "id": new.id,
        "path": str(new.path),
        "message": new.records[1].id,
        "line": 3,
        "snippet": 'more "hay" and a needle: İstanbul 針山',
    }
    assert [h.line for h in found(home, '"hay"')] == [3]
    assert [h.line for h in found(home, "針山")] == [3]
    assert [h.id for h in found(home, "in the")] == [old.id]
    assert found(home, "needles") == []
    assert found(home, "  ") == []


def test_a_snippet_is_one_line_around_the_first_word() -> None:
    text = "x" * 200 + "\n\x1b[31mthe Needle\n" + "y" * 200
    shown = index.snippet(text, ["needle"])
    assert "Needle" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert len(shown) <= 103


def test_calls_and_the_beginning_of_results_are_searched() -> None:
    call = {"type": "tool_use", "id": "a", "name": "run_command", "input": {"command": "pytest"}}
    record = Record("assistant", "i", None, "t", {"content": [call]})
    assert "run_command" in index.text_in(record)
    assert "pytest" in index.text_in(record)
    result = Record("tool_result", "i", None, "t", {"content": "ab" * 9000})
    assert len(index.text_in(result)) == 4000
    assert index.text_in(Record("directive", "i", None, "t", {"think": True})) == ""


async def test_progress_is_told_while_the_index_is_made(home: Folders) -> None:
    await session(home, "one")
    await session(home, "two", at=9)
    told: list[tuple[int, int]] = []
    index.list_sessions(home, progress=lambda done, of: told.append((done, of)))
    assert told == [(0, 2), (2, 2)]
    told.clear()
    index.list_sessions(home, progress=lambda done, of: told.append((done, of)))
    assert told == []
