"""L26: kept outputs go in time, but never one that a session names."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest

from tests.support.agents import make_agent
from tests.support.clock import PATIENCE_S, FakeClock
from tests.support.provider import ScriptedProvider
from tests.tools.folder import Folder
from tui.core.config import Guard
from tui.core.output_store import (
    DAY_S,
    OutputStore,
    OutsideError,
    Retention,
    open_full_copy,
    unpacked_copy,
    why_missing,
)
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.tools.read_file import ReadFile

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Store:
    """A workspace with kept outputs and sessions that may name them."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "work" / ".holdfast" / "tool-results"
        self.sessions = root / "sessions"
        self.sessions.mkdir()
        self.folder.mkdir(parents=True)

    def kept(
        self, session: Path | None = None, *, days: int = 30, most: int = 1 << 40
    ) -> OutputStore:
        return OutputStore(
            self.folder, session=session, retention=Retention(self.sessions, days, most)
        )

    def output(self, name: str, *, days: float, size: int = 10) -> Path:
        path = self.folder / name
        path.write_bytes(b"x" * size)
        when = NOW.timestamp() - days * DAY_S
        os.utime(path, (when, when))
        return path

    def session(self, name: str, text: str = "") -> Path:
        path = self.sessions / f"{name}.jsonl"
        path.write_text(json.dumps({"type": "user", "text": text}) + "\n")
        return path

    def left(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("*.txt"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def sweep(kept: OutputStore) -> int:
    removed = kept.sweep(NOW, Event())
    kept.close()
    return removed


def test_L26_what_is_too_old_goes_and_what_a_session_names_stays(store: Store) -> None:
    session = store.session("one")
    named = store.output("named.txt", days=400)
    noting = store.kept(session)
    noting.note(named)
    noting.close()
    store.output("old.txt", days=30.1)
    store.output("young.txt", days=29.9)
    assert sweep(store.kept()) == 1
    assert store.left() == ["named.txt", "young.txt"]
    assert sweep(store.kept()) == 0
    session.rename(store.sessions.parent / "in the trash.jsonl")
    assert sweep(store.kept()) == 1
    assert store.left() == ["young.txt"]


def test_L26_the_oldest_of_too_much_goes_first(store: Store) -> None:
    for days in (5, 4, 3, 2):
        store.output(f"{days}.txt", days=days, size=8192)
    store.output("fresh.txt", days=0.001, size=8192)
    used = (store.folder / "5.txt").stat().st_blocks * 512
    assert sweep(store.kept(most=used * 3)) == 2
    assert store.left() == ["2.txt", "3.txt", "fresh.txt"]
    assert sweep(store.kept(most=0)) == 2
    assert store.left() == ["fresh.txt"]  # its record may not be written yet


def test_L26_a_session_that_only_mentions_a_file_keeps_it(store: Store) -> None:
    """A fork, or a copy made by hand, has no line in the index."""
    for name in ("forked.txt", "job-b.txt", "c.txt", "alone.txt"):
        store.output(name, days=99)
    store.session("fork", f'"path": "{store.folder}/forked.txt" and so on')
    store.session("words", f"all output: {store.folder}/job-b.txt. It " + "y" * (1 << 20))
    store.session("late", "y" * ((1 << 20) - 60) + f" {store.folder}/c.txt.")
    assert sweep(store.kept()) == 1
    assert store.left() == ["c.txt", "forked.txt", "job-b.txt"]


def test_L26_a_session_elsewhere_counts_while_it_exists(store: Store, tmp_path: Path) -> None:
    elsewhere = tmp_path / "copy.jsonl"
    elsewhere.write_text("{}\n")
    noting = store.kept(elsewhere)
    noting.note(store.output("a.txt", days=99))
    noting.close()
    assert sweep(store.kept()) == 0
    elsewhere.unlink()
    assert sweep(store.kept()) == 1


def test_L26_nothing_goes_while_another_program_holds_the_store(store: Store) -> None:
    store.output("old.txt", days=99)
    other = store.kept(store.session("other"))
    other.note(store.output("its.txt", days=0))
    assert sweep(store.kept()) == 0
    other.close()
    assert sweep(store.kept()) == 1


def test_L26_one_that_has_swept_holds_the_store_too(store: Store) -> None:
    first = store.kept()
    assert first.sweep(NOW, Event()) == 0
    store.output("old.txt", days=99)
    assert sweep(store.kept()) == 0
    with (store.folder / "index.jsonl").open() as index, pytest.raises(BlockingIOError):
        fcntl.flock(index, fcntl.LOCK_EX | fcntl.LOCK_NB)
    first.close()
    assert sweep(store.kept()) == 1


def test_L26_an_unreadable_session_may_name_anything(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.output("old.txt", days=99)
    session, real = store.session("locked"), Path.open

    def refused(self: Path, mode: str = "r") -> object:
        if self == session:
            raise PermissionError(13, "Permission denied")
        return real(self, mode)

    monkeypatch.setattr(Path, "open", refused)
    assert sweep(store.kept()) == 0
    assert store.left() == ["old.txt"]


def test_L26_a_sweep_that_is_told_to_stop_removes_nothing_more(store: Store) -> None:
    store.output("old.txt", days=99)
    stop = Event()
    stop.set()
    assert store.kept().sweep(NOW, stop) == 0
    assert store.left() == ["old.txt"]


def test_L19_a_sweep_follows_no_link(store: Store, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    victim = outside / "victim.txt"
    victim.write_text("x")
    os.utime(victim, (0, 0))
    (store.folder / "link.txt").symlink_to(victim)
    assert sweep(store.kept()) == 0
    store.folder.rename(outside / "tool-results")
    store.folder.symlink_to(outside)
    assert sweep(store.kept()) == 0
    assert victim.exists()


def test_L26_a_torn_or_foreign_index_does_no_harm(store: Store) -> None:
    session = store.session("one")
    (store.folder / "index.jsonl").write_bytes(b'[1]\n{"name": 5, "session": 7}\n\xff\n{"na')
    kept = store.kept(session)
    kept.note(store.output("a.txt", days=99))
    kept.note(store.output("b.txt", days=99))
    kept.close()
    store.output("old.txt", days=99)
    assert sweep(store.kept()) == 1
    assert store.left() == ["a.txt", "b.txt"]


def test_L26_a_workspace_without_outputs_gets_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / ".holdfast" / "tool-results"
    kept = OutputStore(folder, session=None, retention=Retention(tmp_path))
    assert sweep(kept) == 0
    assert not folder.parent.exists()


def test_L26_what_was_unpacked_goes_with_the_last_session_that_names_it(store: Store) -> None:
    home = folders()
    place = unpacked_copy(Path("/elsewhere/proj/.holdfast/tool-results/a.txt"))
    place.parent.mkdir(parents=True)
    session = home.sessions / "work-00000000" / "one.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text(json.dumps({"type": "user", "text": "…/tool-results/a.txt"}))
    when = NOW.timestamp() - 40 * DAY_S
    for name in ("a.txt", "b.txt"):
        place.with_name(name).write_text("x")
        os.utime(place.with_name(name), (when, when))
    (unpacked,) = store.kept().unpacked()
    assert unpacked.sweep(NOW, Event()) == 1
    assert place.exists()
    session.unlink()
    assert unpacked.sweep(NOW, Event()) == 1
    unpacked.close()
    assert not place.exists()


async def test_L26_an_expired_copy_says_so_and_read_file_too(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    path = folder.write(".holdfast/tool-results/toolu_9.txt", "x")
    os.utime(path, (0, 0))
    retention = Retention(folder.root / "none", days=30)
    kept = OutputStore(path.parent, session=None, retention=retention)
    assert kept.sweep(FakeClock().now(), Event()) == 1
    kept.close()
    said = "The full copy was removed after 30 days, on 2026-11-21."
    assert why_missing(path) == said
    error = await folder.error(ReadFile(), path=str(path))
    assert error.startswith(said)
    assert "Run what produced the output again." in error
    never = path.with_name("never.txt")
    assert why_missing(never) == "The full copy is gone."


async def test_L26_an_agent_sweeps_at_its_start_and_lets_go_at_its_end(tmp_path: Path) -> None:
    store = Store(tmp_path)
    old = store.folder / "old.txt"
    old.write_text("x")
    os.utime(old, (0, 0))
    agent = make_agent(tmp_path / "work", ScriptedProvider(), outputs=store.kept())
    await agent.start()
    async with asyncio.timeout(PATIENCE_S):
        while old.exists():  # noqa: ASYNC110 - a removal tells nobody
            await asyncio.sleep(0.001)
    second = store.output("second.txt", days=99)
    assert sweep(store.kept()) == 0  # the agent holds the store
    await agent.close()
    assert sweep(store.kept()) == 1
    assert not second.exists()


def test_L26_L29_O21_the_defaults_of_the_parts_are_those_of_the_configuration() -> None:
    guard = Guard()
    assert guard.spill_max_bytes == 4 * 1024**3
    assert guard.spill_min_free_bytes == 1024**3
    assert guard.memory_chars == 200_000
    folder = Path("sessions")
    assert Retention(folder) == Retention(folder, guard.keep_days, guard.keep_bytes)


def test_a_full_copy_is_opened_only_where_such_things_lie(tmp_path: Path) -> None:
    root, secret = tmp_path / "w", tmp_path / "tool-results"
    results = Workspace.at(root).tool_results
    worktree = Workspace.at(root / ".holdfast/worktrees/fox").tool_results
    other = Workspace.at(tmp_path / "other").tool_results
    ours = folders().outputs / "some-slug" / "tool-results"
    for folder in (results, worktree, other, ours, secret):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.txt").write_text("kept")
    (results / "link.txt").symlink_to(secret / "a.txt")
    for good in (results, worktree, ours):
        os.close(open_full_copy(good / "a.txt", results))
    os.close(open_full_copy(results / "a.txt", worktree))
    for bad in (other, secret, results / "..", results / "../tool-results", Path("/"), Path()):
        with pytest.raises(OutsideError, match="not opened"):
            open_full_copy(bad / "a.txt", results)
    for name in ("a\0b.txt", "a\ud800.txt"):  # as a record may have it in JSON
        with pytest.raises(OutsideError):
            open_full_copy(results / name, results)
    with pytest.raises(OutsideError):
        open_full_copy(results / "index.jsonl", results)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        open_full_copy(results / "link.txt", results)
