"""B45 while nothing is written: a disk that has room again, or is writable, saves what waits."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.core.errors import StorageError
from tui.core.facts import RepairApplied
from tui.core.paths import folders
from tui.session.lock import SessionLock
from tui.session.reader import read
from tui.session.session import Session


@pytest.fixture
async def session(tmp_path: Path, clock: FakeClock) -> Session:
    home = folders({"HOLDFAST_HOME": str(tmp_path)})
    made = Session.create(tmp_path, folders=home, clock=clock)
    made.append("user", text="first")
    await made.sync()
    return made


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
async def test_B45_what_could_not_be_saved_is_saved_without_a_further_record(
    session: Session, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    real = os.write

    def refuse(file: int, data: bytes) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "write", refuse)
    session.append("user", text="second")
    with pytest.raises(StorageError):
        await session.sync()
    assert os.strerror(code) in await session.recheck()
    assert not session.saved
    monkeypatch.setattr(os, "write", real)
    assert await session.recheck() == ""
    assert session.saved
    assert session.path
    assert [r.data["text"] for r in read(session.path).branch] == ["first", "second"]
    await session.close()


async def test_B45_a_disk_that_is_read_only_from_the_beginning(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse(path: str, flags: int, *more: int, **named: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    home = folders({"HOLDFAST_HOME": str(tmp_path)})
    session = Session.create(tmp_path, folders=home, clock=clock)
    session.append("user", text="kept in memory")
    assert os.strerror(errno.EROFS) in await session.recheck()
    assert session.path
    assert not session.path.exists()
    monkeypatch.setattr(os, "open", real)
    assert await session.recheck() == ""
    assert read(session.path).branch[0].data["text"] == "kept in memory"
    await session.close()


async def test_B44_a_session_that_was_taken_away_is_noticed_while_idle(
    session: Session, clock: FakeClock
) -> None:
    assert session.path
    assert await session.recheck() == ""
    other = SessionLock(session.path, clock=clock)
    other.take(over=True)
    assert "took over" in await session.recheck()
    assert session.read_only
    assert session.lost
    before = session.path.read_bytes()
    session.append("user", text="too late")
    assert session.path.read_bytes() == before
    other.release()


async def test_a_new_session_in_which_nothing_was_asked_makes_no_file(
    tmp_path: Path, clock: FakeClock
) -> None:
    home = folders({"HOLDFAST_HOME": str(tmp_path)})
    session = Session.create(tmp_path, folders=home, clock=clock)
    assert await session.recheck() == ""
    assert not home.sessions.exists()


async def test_what_waits_for_a_prompt_is_written_with_it(session: Session) -> None:
    assert session.path
    before = session.path.read_bytes()
    session.with_next_prompt(RepairApplied(()))
    assert session.path.read_bytes() == before
    session.append("user", text="next")
    session.append("user", text="after")
    assert [r.type for r in session.records] == ["user", "repair", "user", "user"]
    await session.close()
