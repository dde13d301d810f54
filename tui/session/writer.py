"""The writer of a session file: whole lines, appended, and synced on request.

A line is one `write`, made at once from the event loop (it goes to the page cache: microseconds);
waiting for the disk happens in a thread. What cannot be written stays in memory and is tried
again with the next line or sync, so a full disk loses nothing while the program runs.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TypeAlias

from tui.core.errors import StorageError
from tui.core.files import sync_folder

_Job: TypeAlias = tuple[int, Path | None, Callable[[OSError | None], None]]

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class SessionWriter:
    """One session file, open for appending. Used from one event loop; owns its descriptor.

    With `header` the file is created by the first `append` and must not exist then. Without, it
    must exist, and its bytes are never changed.

    `guard` is called before every write: while it returns a reason, nothing is written.
    """

    def __init__(
        self, path: Path, *, header: bytes | None = None, guard: Callable[[], str] | None = None
    ) -> None:
        self.path = path
        self._guard = guard
        self._refused = False  # by the guard, just now
        self._header = header
        self._file: int | None = None
        self._made = False  # this object created the file
        self._unnamed = False  # the folder does not durably name the file yet
        self._torn = False  # the file's last line has no newline
        self._unwritten: deque[bytes] = deque()
        self._unsynced: deque[bytes] = deque()
        self._taken = 0  # lines taken over, ever
        self._synced = 0  # how many of them are on the disk
        self._write_problem = ""
        self._sync_problem = ""
        self._doubt = False  # a sync failed: what it covered may be lost
        self._flushing = False
        self._waiters: list[asyncio.Future[None]] = []
        self._disk: _Disk | None = None

    @property
    def saved(self) -> bool:
        """True if every line taken so far is in the file and no sync is known to have failed."""
        return not self.problem

    @property
    def problem(self) -> str:
        """The reason why something is not saved; "" where everything is."""
        return self._write_problem or self._sync_problem

    def append(self, line: bytes) -> None:
        """Accept one line, with its newline, and write it. Never raises: see `saved`."""
        self._taken += 1
        self._unwritten.append(line)
        self._write()

    async def sync(self) -> None:
        """Wait until every line taken so far is on the disk. Waiters share one sync.

        Raises StorageError while that fails; the lines are kept, and tried again next time.
        """
        wanted = self._taken
        while self._synced < wanted:
            if not self._flushing:
                self._flush()
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    async def close(self) -> None:
        """Sync and close the file. Raises StorageError if something could not be saved."""
        try:
            await self.sync()
        finally:
            if self._disk is not None:
                self._disk.close()
                self._disk = None
            if self._file is not None:
                os.close(self._file)
                self._file = None

    async def discard(self) -> None:
        """Close a file that this object created, and remove it."""
        made = self._file is not None and self._made
        with suppress(StorageError):
            await self.close()
        if made:
            with suppress(OSError):
                self.path.unlink()

    def _flush(self) -> None:
        """Begin one sync of what has been written by now. Raises StorageError if not all has.

        After a failed sync the kernel may have dropped the pages. So the first that succeeds
        only proves that the disk answers again: then the same lines are written once more, and
        a reader leaves the copies out by their ids.
        """
        if not self._doubt:
            self._write()
        if self._file is None or (self._unwritten and not self._doubt):
            raise self._error()
        if self._disk is None:
            self._disk = _Disk()
        taken, lines, doubt = self._taken, len(self._unsynced), self._doubt

        def over(error: OSError | None) -> None:
            self._flushing = False
            if error is not None:
                self._doubt = True
                self._sync_problem = self._write_error(error)
            elif doubt:
                self._unwritten.extendleft(reversed(self._unsynced))
                self._unsynced.clear()
                self._doubt = False
            else:
                self._sync_problem = ""
                self._unnamed = False
                self._synced = taken
                for _ in range(lines):
                    self._unsynced.popleft()
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if waiter.done():  # cancelled
                    continue
                if error is None:
                    waiter.set_result(None)
                else:
                    waiter.set_exception(self._error())

        self._flushing = True
        self._disk.sync(self._file, self.path.parent if self._unnamed else None, over)

    def _write(self) -> None:
        """Write what is waiting, line by line, until something fails."""
        reason = self._guard() if self._guard is not None else ""
        self._refused = bool(reason)
        if reason:
            self._write_problem = reason if self._unwritten else ""
            return
        try:
            if self._file is None:
                self._file = self._open()
            while self._unwritten:
                self._write_line(self._file, self._unwritten[0])
                self._unsynced.append(self._unwritten.popleft())
        except OSError as error:
            self._write_problem = self._write_error(error)
        else:
            self._write_problem = ""

    def _write_line(self, file: int, line: bytes) -> None:
        """Write one line in one go. If only a part fitted, that part is removed again."""
        data = b"\n" + line if self._torn else line
        written = os.write(file, data)
        if written == len(data):
            self._torn = False
            return
        self._torn = True
        with suppress(OSError):
            end = os.lseek(file, 0, os.SEEK_CUR)
            if os.fstat(file).st_size == end:  # nobody wrote after us
                os.ftruncate(file, end - written)
                self._torn = data is not line
        raise OSError(errno.ENOSPC, "only part of a line fit; the disk may be full")

    def _open(self) -> int:
        """The descriptor. A new file gets its header; of an old one, the end is checked."""
        if self._header is not None:
            make_private(self.path.parent)
            file = os.open(self.path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
            self._unwritten.appendleft(self._header)
            self._header = None
            self._made = self._unnamed = True
            return file
        file = os.open(self.path, _FLAGS)
        try:
            self._torn = _ends_torn(file)
        except BaseException:
            os.close(file)
            raise
        return file

    def _write_error(self, error: OSError) -> str:
        # The reason first: where there is little room, that is what has to be read.
        return f"{error.strerror or error}: can't write {self.path}."

    def _error(self) -> StorageError:
        return StorageError(
            self.problem or f"{self.path} isn't open.",
            hint="Unsaved work stays in memory; forking the session keeps it."
            if self._refused
            else "Unsaved work stays in memory; saving retries automatically.",
        )


def _ends_torn(file: int) -> bool:
    """True if a regular file has a last line without a newline. Raises OSError for others."""
    state = os.fstat(file)
    if not stat.S_ISREG(state.st_mode):
        raise OSError(errno.EINVAL, "it isn't a regular file")
    return bool(state.st_size) and os.pread(file, 1, state.st_size - 1) != b"\n"


class _Disk:
    """A thread that waits for the disk. A bare one: a pool costs as much as the disk does."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="session-sync", daemon=True)
        self._thread.start()

    def sync(self, file: int, folder: Path | None, over: Callable[[OSError | None], None]) -> None:
        """Sync a file, and the folder that names it; then call `over` on the loop."""
        self._jobs.put((file, folder, over))

    def close(self) -> None:
        """End the thread, once it is done with what it is doing."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            file, folder, over = job
            failed: OSError | None = None
            try:
                _datasync(file)
                if os.fstat(file).st_nlink == 0:
                    raise FileNotFoundError(errno.ENOENT, "it was deleted while in use")
                if folder is not None:
                    sync_folder(folder)
            except OSError as error:
                failed = error
            with suppress(RuntimeError):  # the loop was closed meanwhile
                self._loop.call_soon_threadsafe(over, failed)


def _datasync(file: int) -> None:
    if hasattr(os, "fdatasync"):
        os.fdatasync(file)
        return
    import fcntl  # noqa: PLC0415 - macOS: no fdatasync, and fsync stops at the drive's cache

    fcntl.fcntl(file, fcntl.F_FULLFSYNC)


def make_private(folder: Path) -> None:
    """Create a folder, and the missing ones above it, with mode 0700."""
    if not folder.is_dir():
        make_private(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
