"""The lock of a session: only one program at a time may write its file.

The file `<session>.lock` is locked with flock for as long as the holder runs, and says who that
is. The kernel releases the lock when the holder dies, however it dies, so there is no heartbeat
and nothing to clean up.

Taking a session over puts a new file, already locked, in the place of the old one. The old holder
notices at its next write that the lock file is not its own any more, and writes nothing from then
on.

Locks may not work across hosts (NFS without a lock service). So a lock file of another host is
never taken for abandoned: whether that program still runs cannot be seen from here. If no lock
can be made at all, the session is written without one, and `problem` says why.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from tui.core.clock import Clock, timestamp
from tui.core.dataclass import dataclass
from tui.core.errors import SessionInUseError
from tui.session.writer import make_private

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TRIES = 20
_PROGRAM = secrets.token_hex(8)  # tells this process from one that gets its number later


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that has a session locked. `since` is a timestamp; `program` tells processes with
    the same `pid` apart. `running` is False if that cannot be known, because it is on another
    host."""

    pid: int
    host: str
    since: str
    program: str = ""
    running: bool = True

    def __str__(self) -> str:
        since = f" since {self.since[:16].replace('T', ' ')} UTC" if self.since else ""
        return f"process {self.pid} on {self.host}{since}" if self.pid else "another program"

    @property
    def is_us(self) -> bool:
        return self.program == _PROGRAM and self.pid == os.getpid()


class SessionLock:
    """This program's lock of one session file. Its methods block for microseconds.

    `problem` says why there is no lock although the session is written, `lost` why nothing may
    be written any more; both are "" otherwise.
    """

    def __init__(self, session: Path, *, clock: Clock) -> None:
        self.session = session
        self.path = lock_of(session)
        self.problem = ""
        self.lost = ""
        self._clock = clock
        self._file: int | None = None
        self._inode = (0, 0)

    @property
    def held(self) -> bool:
        """True if the lock was ours at the last check."""
        return self._file is not None

    def take(self, *, over: bool = False) -> None:
        """Take the lock; with `over` even if another program has it.

        A lock that this process holds already is always taken. Raises SessionInUseError while
        another program has it.
        """
        try:
            for _ in range(_TRIES):
                if self._try(over=over):
                    return
        except OSError as error:  # no folder, a read-only disk, no locks on this file system
            self.problem = f"The session isn't locked: {error.strerror or error}."
            return
        raise SessionInUseError(f"{self.session} keeps changing hands.", hint="Try again.")

    def check(self) -> str:
        """Return why nothing may be written now, "" while the lock is ours. Take a lock not yet
        taken."""
        if self.lost or self.problem:
            return self.lost
        if self._file is None:
            try:
                with suppress(OSError):
                    make_private(self.path.parent)
                self.take()
            except SessionInUseError as error:
                return error.message
            return ""
        try:
            if _inode(self.path.lstat()) == self._inode:
                return ""
            by = holder(self.session)
            self.lost = f"{by or 'Another program'} took over the session."
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ESTALE, errno.ENOTDIR}:
                return f"Can't check {self.path}: {error.strerror or error}."
            self.lost = f"{self.path} is gone: another program may have taken over the session."
        self._close()
        return self.lost

    def release(self) -> None:
        """Give it back. Does nothing if it is not ours any more."""
        if self._file is None:
            return
        with suppress(OSError):
            if _inode(self.path.lstat()) == self._inode:
                self.path.unlink()
        self._close()

    def _try(self, *, over: bool) -> bool:
        file = os.open(self.path, _FLAGS | os.O_CREAT, 0o600)
        owned = False
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = True
            except BlockingIOError:
                locked = False
            if not _names(self.path, file):
                return False  # the holder has just gone, and the file with it
            left = _holder_in(file, running=not locked)
            if locked and (over or left is None or left.host == socket.gethostname()):
                os.ftruncate(file, 0)
                self._keep(file)
                owned = True
            elif over or (left is not None and left.is_us):
                self._replace()
            else:
                raise _in_use(self.session, self.path, left)
            return True
        finally:
            if not owned:
                os.close(file)

    def _replace(self) -> None:
        """Put a file of ours, locked from the beginning, in the place of another's."""
        fresh = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        file = os.open(fresh, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._keep(file)
            fresh.replace(self.path)
        except BaseException:
            self._file = None
            os.close(file)
            with suppress(OSError):
                fresh.unlink()
            raise

    def _keep(self, file: int) -> None:
        about = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": timestamp(self._clock.now()),
            "program": _PROGRAM,
        }
        os.pwrite(file, json.dumps(about).encode(), 0)
        self._inode = _inode(os.fstat(file))
        self._file = file

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def lock_of(session: Path) -> Path:
    """The lock file of a session."""
    return session.with_name(session.name + ".lock")


def holder(session: Path) -> LockHolder | None:
    """Return the process that writes a session now, None if nobody does. Changes nothing."""
    try:
        file = os.open(lock_of(session), _FLAGS)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder_in(file, running=True) or LockHolder(0, "", "")
    except OSError:
        return None
    else:
        left = _holder_in(file, running=False)
        return left if left is not None and left.host != socket.gethostname() else None
    finally:
        os.close(file)


def _holder_in(file: int, *, running: bool) -> LockHolder | None:
    """The content of a lock file; None if it is not valid."""
    try:
        value: object = json.loads(os.pread(file, 4096, 0))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    entry = cast("dict[str, Any]", value)
    pid, host = entry.get("pid"), entry.get("host")
    if not isinstance(pid, int) or not isinstance(host, str):
        return None
    return LockHolder(
        pid, host, str(entry.get("since", "")), str(entry.get("program", "")), running
    )


def _in_use(session: Path, lock: Path, left: LockHolder | None) -> SessionInUseError:
    if left is not None and not left.running:
        return SessionInUseError(
            f"{session} was open in {left}, which may still run; Holdfast can't tell from here.",
            hint=f"If it isn't, delete {lock}; `holdfast sessions fork` makes a copy.",
        )
    return SessionInUseError(
        f"{session} is open in {left or 'another program'}.",
        hint="Close it there, or copy it with `holdfast sessions fork` and continue with the copy.",
    )


def _names(path: Path, file: int) -> bool:
    try:
        return _inode(path.lstat()) == _inode(os.fstat(file))
    except FileNotFoundError:
        return False


def _inode(state: os.stat_result) -> tuple[int, int]:
    return state.st_dev, state.st_ino
