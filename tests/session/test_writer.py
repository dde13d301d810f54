"""The writer: whole lines, honest about what is on the disk."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tui.core.errors import StorageError
from tui.session.writer import SessionWriter

HEADER = b'{"type":"session"}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "sessions" / "w" / "s.jsonl"


@pytest.fixture
def size_limit() -> Iterator[Callable[[int], None]]:
    """Sets how large a file may grow: past it a write comes back short, then fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_the_file_appears_with_the_first_line_private_and_with_its_header(path: Path) -> None:
    file = SessionWriter(path, header=HEADER)
    assert not path.parent.exists()
    file.append(b"1\n")
    assert path.read_bytes() == HEADER + b"1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    await file.close()


async def test_a_new_file_never_takes_the_place_of_another(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"theirs\n")
    file = SessionWriter(path, header=HEADER)
    file.append(b"1\n")
    assert not file.saved
    with pytest.raises(StorageError, match="can't write"):
        await file.close()
    assert path.read_bytes() == b"theirs\n"


async def test_nothing_is_written_through_a_symlink(path: Path) -> None:
    path.parent.mkdir(parents=True)
    target = path.parent / "target"
    target.write_bytes(b"")
    path.symlink_to(target)
    for file in (SessionWriter(path), SessionWriter(path, header=HEADER)):
        file.append(b"1\n")
        assert not file.saved
    assert target.read_bytes() == b""


async def test_B40_a_torn_last_line_keeps_its_bytes_and_gets_a_newline(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(HEADER + b'{"type":"us')
    file = SessionWriter(path)
    file.append(b"1\n")
    file.append(b"2\n")
    assert path.read_bytes() == HEADER + b'{"type":"us\n1\n2\n'
    await file.close()


async def test_waiters_share_a_sync_that_began_after_their_line(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fdatasync

    def counting(file: int) -> None:
        synced.append(os.fstat(file).st_size)
        real(file)

    monkeypatch.setattr(os, "fdatasync", counting)
    file = SessionWriter(path, header=HEADER)
    sizes: list[int] = []

    async def commit(line: bytes) -> None:
        file.append(line)
        sizes.append(path.stat().st_size)
        await file.sync()
        assert synced[-1] >= sizes[int(line)]

    await asyncio.gather(*(commit(b"%d\n" % n) for n in range(50)))
    assert len(synced) <= 3
    await file.sync()
    assert len(synced) <= 3, "nothing new, nothing to sync"
    await file.close()


async def test_B45_a_full_disk_costs_nothing_but_the_word_saved(
    path: Path, size_limit: Callable[[int], None]
) -> None:
    file = SessionWriter(path, header=HEADER)
    file.append(b"first\n")
    whole = path.read_bytes()
    size_limit(len(whole) + 4)
    file.append(b"second\n")
    assert not file.saved
    assert path.read_bytes() == whole, "our own part of a line was taken back"
    with pytest.raises(StorageError):
        await file.sync()
    file.append(b"third\n")
    assert not file.saved
    size_limit(resource.RLIM_INFINITY)
    await file.sync()
    assert file.saved
    assert path.read_bytes() == whole + b"second\nthird\n"
    await file.close()


async def test_B45_foreign_bytes_behind_a_torn_write_stay(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SessionWriter(path, header=HEADER)
    file.append(b"first\n")
    real = os.write

    def torn(fd: int, data: bytes) -> int:
        written = real(fd, data[:3])
        with path.open("ab") as other:
            other.write(b"<other>\n")
        return written

    monkeypatch.setattr(os, "write", torn)
    file.append(b"second\n")
    assert not file.saved
    monkeypatch.setattr(os, "write", real)
    await file.close()
    assert path.read_bytes() == HEADER + b"first\nsec<other>\n\nsecond\n"


async def test_after_a_failed_sync_the_lines_are_written_once_more(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SessionWriter(path, header=HEADER)
    file.append(b"1\n")
    await file.sync()
    real, broken = os.fdatasync, True

    def failing(fd: int) -> None:
        if broken:
            raise OSError(errno.EIO, "Input/output error")
        real(fd)

    monkeypatch.setattr(os, "fdatasync", failing)
    file.append(b"2\n")
    for _ in range(3):
        with pytest.raises(StorageError, match="Input/output error"):
            await file.sync()
    file.append(b"3\n")
    assert not file.saved, "a write that succeeds does not undo a sync that failed"
    broken = False
    await file.sync()
    assert file.saved
    assert path.read_bytes() == HEADER + b"1\n2\n3\n2\n3\n"
    await file.close()


async def test_a_deleted_file_is_not_called_saved(path: Path) -> None:
    file = SessionWriter(path, header=HEADER)
    file.append(b"1\n")
    path.unlink()
    with pytest.raises(StorageError, match="deleted"):
        await file.sync()
    assert not file.saved


async def test_a_cancelled_waiter_does_not_stop_the_sync_of_others(path: Path) -> None:
    file = SessionWriter(path, header=HEADER)
    file.append(b"1\n")
    first, second = (asyncio.create_task(file.sync()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first
    assert file.saved
    await file.close()


@pytest.mark.parametrize("kind", ["folder", "pipe"])
async def test_what_is_no_file_is_a_problem_not_a_hang(path: Path, kind: str) -> None:
    path.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    file = SessionWriter(path)
    file.append(b"1\n")
    assert not file.saved
    assert str(path) in file.problem
