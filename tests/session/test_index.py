"""The index: fast lists, and never more than a cache."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.core.paths import Folders
from tui.session import cache_database, catalog, index
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


DAMAGE = ["missing", "no database", "cut", "other version", "a folder", "other tables"]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_broken_index_costs_only_a_rebuild(home: Folders, damage: str) -> None:
    await session(home, "find the needle", "and more" * 999)
    before = index.list_sessions(home)
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
    assert index.list_sessions(home) == before
    assert index.list_sessions(home) == before


async def test_another_program_that_writes_the_index_is_not_waited_for(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_database, "BUSY_S", 0.01)
    await session(home, "one needle")
    index.list_sessions(home)
    with sqlite3.connect(home.cache / index.NAME, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        await session(home, "two needles", at=9)
        assert [entry.title for entry in index.list_sessions(home)] == ["two needles", "one needle"]
        other.execute("ROLLBACK")
    assert len(index.list_sessions(home)) == 2


async def test_without_a_place_for_the_index_everything_works(home: Folders) -> None:
    await session(home, "the needle")
    home.cache.write_bytes(b"")
    assert [entry.title for entry in index.list_sessions(home)] == ["the needle"]


async def test_progress_is_told_while_the_index_is_made(home: Folders) -> None:
    await session(home, "one")
    await session(home, "two", at=9)
    told: list[tuple[int, int]] = []
    index.list_sessions(home, progress=lambda done, of: told.append((done, of)))
    assert told == [(0, 2), (2, 2)]
    told.clear()
    index.list_sessions(home, progress=lambda done, of: told.append((done, of)))
    assert told == []
