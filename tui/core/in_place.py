"""Replaces a file by renaming where that keeps what it is, and otherwise writes it in place.

A renamed file is a new one: it would be cut from its other hard links, lose its owner or its access
list, and cannot take the place of a mount. Written in place, it could be left half written; so a
synced copy of the old and the new bytes stands first, in a folder that no command reaches, and the
next start brings the old content back (`bring_back`).

Everything here blocks.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from unicodedata import normalize

from tui.core.dataclass import dataclass
from tui.core.files import atomic_write, open_real, sync_folder
from tui.core.paths import folders

_SPECIAL_BITS: Final = stat.S_ISUID | stat.S_ISGID
_ACCESS_LIST: Final = "system.posix_acl_access"
_BLOCK: Final = 4096
_SUFFIX: Final = ".torn"


@dataclass(frozen=True, slots=True)
class Written:
    """The state of a file that was written; `notes` say in sentences how, if not as usual."""

    state: os.stat_result
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """A file whose writing was cut off. `restored`: it has its old content again; otherwise it has
    changed since, and was left as it is."""

    path: Path
    restored: bool


def put(
    path: Path,
    data: bytes,
    *,
    old: bytes | None,
    like: os.stat_result | None,
    mode: int,
    check: Callable[[], None],
) -> Written:
    """Replace or create the file at a real path, as `atomic_write` does where nothing is lost by
    it. `old` and `like` are the content and the state of the file that is there; `old` is None if
    it is too large to be held. Raises OSError; the old content is then there."""
    if like is None:
        return Written(atomic_write(path, data, like=None, mode=mode, check=check))
    path = path.with_name(_name_on_disk(path, like))
    why = _reason(path, like)
    if not why:
        try:
            state = atomic_write(path, data, like=like, mode=mode, check=check, owner=True)
            return Written(state, _bits(like))
        except OSError as error:
            why = _REFUSED.get(error.errno or 0, "")
            if not why:
                raise
    if old is None:
        raise OSError(errno.EFBIG, f"{why}, and it is too large to be written in place")
    note = f"Written in place: {why}."
    return Written(write_over(path, old, data, like, check), (note, *_bits(like)))


def _name_on_disk(path: Path, state: os.stat_result) -> str:
    """Return the name that a file has in its folder: a file system that takes upper and lower case,
    or composed and decomposed characters, for the same finds it by others too."""
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(path.parent)  # noqa: PTH208 - names alone
    if path.name not in names:
        for name in names:
            if _folded(name) == _folded(path.name):
                with suppress(OSError):
                    found = path.with_name(name).lstat()
                    if (found.st_dev, found.st_ino) == (state.st_dev, state.st_ino):
                        return name
    return path.name


def _folded(name: str) -> str:
    return normalize("NFC", name).casefold()


_REFUSED: Final = {
    errno.EBUSY: "something is mounted there",
    errno.EXDEV: "something is mounted there",
    errno.EACCES: "its folder takes no new files",
    errno.EPERM: "its owner or its folder doesn't allow a new file there",
    errno.EROFS: "its folder takes no new files",
}
"""The errors of making a new file in the place of another that writing in place doesn't have."""


def _reason(path: Path, like: os.stat_result) -> str:
    """Return why a file must not be replaced by a new one; "" if it may."""
    if like.st_nlink > 1:
        return f"it has {like.st_nlink} hard links, which stay one file"
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            named = os.listxattr(path, follow_symlinks=False)
            if any(name.startswith("user.") or name == _ACCESS_LIST for name in named):
                return "it has an access list or other attributes of its own"
    return ""


def _bits(like: os.stat_result) -> tuple[str, ...]:
    """Return the sentence about bits of the mode that no changed program may keep."""
    gone = bool(like.st_mode & stat.S_ISUID) + 2 * bool(like.st_mode & stat.S_ISGID)
    words = {1: "Its setuid bit is", 2: "Its setgid bit is", 3: "Its setuid and setgid bits are"}
    return (f"{words[gone]} gone, as after any write.",) if gone else ()


class _TornError(OSError):
    """A file was left half written: its copy stays for the next start."""


def write_over(
    path: Path, old: bytes, data: bytes, like: os.stat_result, check: Callable[[], None]
) -> os.stat_result:
    """Write over the content of the file at a real path, which stays the same file: what is mounted
    on it or bound to it holds. Raises OSError; the old content is then there."""
    file = open_real(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        with _journal(path, old, data):
            opened = os.fstat(file)
            if (opened.st_dev, opened.st_ino) != (like.st_dev, like.st_ino):
                raise OSError(errno.ESTALE, "another file is there now", str(path))
            check()  # at the last moment: nothing may change the file between it and the writing
            try:
                _fill(file, data, at_least=len(old))
            except BaseException as error:
                try:
                    _fill(file, old)
                except OSError as again:
                    raise _TornError(
                        again.errno, f"{again.strerror}; it is half written"
                    ) from error
                raise
            if like.st_mode & _SPECIAL_BITS:
                with suppress(OSError):
                    os.fchmod(file, stat.S_IMODE(like.st_mode) & ~_SPECIAL_BITS)
        return os.fstat(file)
    finally:
        os.close(file)


def _fill(file: int, data: bytes, *, at_least: int = 0) -> None:
    """Write the whole content of an open file, and sync it. Room is taken first: a full disk is
    met before anything is overwritten."""
    if len(data) > at_least and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, len(data))
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
                raise
    view, done = memoryview(data), 0
    while done < len(data):
        done += os.pwrite(file, view[done : done + (1 << 20)], done)
    os.ftruncate(file, len(data))
    os.fsync(file)


@contextmanager
def _journal(path: Path, old: bytes, data: bytes) -> Generator[None]:
    """Keep both contents on the disk until the block ends. The file is held by a lock meanwhile:
    another start leaves it alone."""
    place = folders().in_place
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = place / f"{os.urandom(8).hex()}{_SUFFIX}"
    digest = sha256(old + data).hexdigest()
    head = {"path": os.fsencode(path).hex(), "old": len(old), "new": len(data), "sha256": digest}
    made = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(made, "wb") as file:
        try:
            with suppress(OSError):  # not every file system has locks
                fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps(head).encode() + b"\n")
            file.write(old)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            sync_folder(place)
            yield
        except _TornError:
            raise
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
        copy.unlink(missing_ok=True)


def bring_back() -> list[BroughtBack]:
    """Give the files whose writing was cut off by a crash their old content again. Those that are
    being written now are left alone, and so are those that somebody has changed since."""
    brought: list[BroughtBack] = []
    try:
        copies = sorted(folders().in_place.glob(f"*{_SUFFIX}"))
    except OSError:
        return brought
    for copy in copies:
        with suppress(OSError), copy.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            except OSError:
                pass
            if (one := _brought_back(file)) is not None:
                brought.append(one)
            copy.unlink(missing_ok=True)
    return brought


def _brought_back(copy: BinaryIO) -> BroughtBack | None:
    """Bring one file back; None if there is nothing to do. Raises OSError if it can't be."""
    head = _head(copy.readline(1 << 16))
    if head is None:  # the copy was not whole yet, so nothing was written
        return None
    path, length, digest = head
    both = copy.read()
    if sha256(both).hexdigest() != digest:
        return None
    old, new = both[:length], both[length:]
    try:
        file = open_real(path, os.O_RDWR | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        state = os.fstat(file)
        if not stat.S_ISREG(state.st_mode) or state.st_size > max(len(old), len(new)):
            return BroughtBack(path, restored=False)
        with os.fdopen(os.dup(file), "rb") as stream:
            now = stream.read()
        if now in {old, new}:
            return None
        if not _is_torn(now, old, new):
            return BroughtBack(path, restored=False)
        _fill(file, old)
        return BroughtBack(path, restored=True)
    finally:
        os.close(file)


def _head(line: bytes) -> tuple[Path, int, str] | None:
    try:
        head = cast("dict[str, Any]", json.loads(line))
        path = Path(os.fsdecode(bytes.fromhex(head["path"])))
        return path, int(head["old"]), str(head["sha256"])
    except (ValueError, TypeError, KeyError):
        return None


def _is_torn(now: bytes, old: bytes, new: bytes) -> bool:
    """True if every byte is one of the old content, of the new one, or of room taken for it."""
    if not min(len(old), len(new)) <= len(now) <= max(len(old), len(new)):
        return False
    # Room that was taken reads as NUL.
    before, after = old.ljust(len(now), b"\0"), new.ljust(len(now), b"\0")
    for start in range(0, len(now), _BLOCK):
        block, one, other = (all_[start : start + _BLOCK] for all_ in (now, before, after))
        if block not in {one, other} and not all(
            byte in pair for byte, *pair in zip(block, one, other, strict=False)
        ):
            return False
    return True
