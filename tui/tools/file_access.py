"""Safe access to files for the tools: opening without blocking, and replacing in one step, after
copying the old bytes, so that nothing is ever lost.

Everything blocks and is to be called with `in_thread`, except `resolve`.
"""

from __future__ import annotations

import asyncio
import difflib
import errno
import os
import shutil
import stat as stats
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from tui.core.errors import StorageError, ToolError
from tui.core.files import open_real, real_folder, safe_name
from tui.core.formatting import size
from tui.core.messages import list_of, object_of
from tui.core.private_files import private_copy
from tui.core.workspace import Workspace
from tui.tools.base import ToolContext
from tui.tools.file_ledger import Snapshot
from tui.tools.text_decoding import printable

if TYPE_CHECKING:
    from tui.core.in_place import Written

T = TypeVar("T")

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC

WHOLE_FILE_LIMIT = 20 * 1024 * 1024
"""Files up to this size may be held in memory as a whole."""


async def in_thread(work: Callable[[Event], T], *, finish: bool = False) -> T:
    """Run blocking `work` in a thread. Cancelling sets the event that `work` was given.

    With `finish` a cancelled call returns only after `work` has, so that nothing is written after
    it.
    """
    stop = Event()
    task = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        task.add_done_callback(lambda t: t.cancelled() or t.exception())
        if finish:
            await asyncio.wait({task})
        raise


async def resolve(ctx: ToolContext, path: str) -> Path:
    """Call `resolve_now` in a thread: it asks the file system about links."""
    return await in_thread(lambda _stop: resolve_now(ctx, path))


def resolve_now(ctx: ToolContext, path: str) -> Path:
    """Return the real path that a tool named. Raises ToolError if it is not the one that was
    allowed."""
    real = ctx.workspace.resolve(path)
    if ctx.allowed is not None and real not in ctx.allowed:
        raise ToolError(
            f"{printable(path)} no longer leads to the path that was allowed; nothing was done.",
            hint="A running command is changing its folders. Stop it, or try again.",
        )
    return real


def changed(shown: str) -> ToolError:
    return ToolError(
        f"{shown} changed since it was last read; nothing was written.", hint="Read it again."
    )


def open_regular(path: Path, shown: str) -> BinaryIO:
    """Open a regular file for reading. Never blocks on a FIFO or device; raises ToolError."""
    try:
        fd = open_real(path, _READ)
    except OSError as error:
        raise os_failure("read", shown, error) from error
    mode = os.fstat(fd).st_mode
    if stats.S_ISREG(mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    raise not_regular(mode, shown)


@contextmanager
def opened_folder(path: Path) -> Generator[int]:
    """Yield a descriptor of the folder at a real path, to list it. Raises OSError."""
    file = open_real(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield file
    finally:
        os.close(file)


def not_regular(mode: int, shown: str) -> ToolError:
    if stats.S_ISDIR(mode):
        return ToolError(f"{shown} is a folder.", hint="Use list_dir or find_by_name.")
    kinds = {stats.S_IFIFO: "a FIFO", stats.S_IFSOCK: "a socket"}
    kind = kinds.get(stats.S_IFMT(mode), "a device")
    return ToolError(f"{shown} is {kind}, not a regular file.", hint="Name a regular file.")


def take_snapshot(path: Path, shown: str) -> Snapshot | None:
    """Return the state of a file that is about to be replaced; None if there is none. Raises
    ToolError."""
    try:
        stat = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise os_failure("read", shown, error) from error
    if not stats.S_ISREG(stat.st_mode):
        raise not_regular(stat.st_mode, shown)
    if not os.access(path, os.W_OK):
        raise _read_only(path, stat, shown)
    with open_regular(path, shown) as file:
        stat = os.fstat(file.fileno())
        if stat.st_size > WHOLE_FILE_LIMIT:
            return Snapshot(path, stat, None, None)
        try:
            data = file.read()
        except OSError as error:
            raise os_failure("read", shown, error) from error
    return Snapshot(path, stat, data, sha256(data).hexdigest())


def _read_only(path: Path, stat: os.stat_result, shown: str) -> ToolError:
    with suppress(OSError):
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            return ToolError(
                f"{shown} is on a read-only file system.", hint="Ask the user about it."
            )
    if not stat.st_mode & 0o222:
        return ToolError(
            f"{shown} is read-only: its mode is {stats.S_IMODE(stat.st_mode):03o}.",
            hint="Make it writable first, if that is intended.",
        )
    return ToolError(
        f"{shown} is read-only for this user: another user owns it.", hint="Ask the user about it."
    )


def missing(workspace: Workspace, path: Path) -> ToolError:
    """Return the error for a file that does not exist, with names that come close."""
    shown = printable(workspace.show(path))
    if workspace.is_temporary(path):
        return ToolError(
            f"{shown} doesn't exist.",
            hint="Commands and file tools have their own /tmp; the user's isn't visible.",
        )
    if not path.parent.is_dir():
        return ToolError(
            f"{shown} doesn't exist, and neither does its folder.",
            hint="Use list_dir or find_by_name to see what is there.",
        )
    names: list[str] = []
    with suppress(OSError), opened_folder(path.parent) as file, os.scandir(file) as entries:
        names = [entry.name for entry, _ in zip(entries, range(5000), strict=False)]
    by_lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(path.name.lower(), by_lower, n=3, cutoff=0.6)
    suggestions = ", ".join(printable(workspace.show(path.with_name(by_lower[c]))) for c in close)
    hint = f"Did you mean {suggestions}?" if suggestions else "Use find_by_name to look for it."
    return ToolError(f"{shown} doesn't exist.", hint=hint)


def os_failure(verb: str, shown: str, error: OSError) -> ToolError:
    """Return an error of the operating system, worded for the model."""
    hints = {
        errno.EACCES: "The permissions don't allow it; ask the user.",
        errno.EPERM: "The system doesn't allow it; ask the user.",
        errno.ENOSPC: "The disk is full: free some space, then try again.",
        errno.EDQUOT: "The disk quota is used up: free some space, then try again.",
        errno.EROFS: "The file system is read-only.",
        errno.EBUSY: "Something is mounted there, or it is in use.",
        errno.EEXIST: "A part of the path is a file, not a folder.",
        errno.ENOTDIR: "A part of the path is a file, not a folder.",
        errno.ENXIO: "It is a socket, FIFO or device, not a regular file.",
    }
    reason = error.strerror or str(error)
    return ToolError(
        f"Couldn't {verb} {printable(shown)}: {reason}.", hint=hints.get(error.errno or 0, "")
    )


def check_still_wanted(path: Path, shown: str, found: Snapshot | None, stop: Event) -> None:
    """Raises ToolError if the file has changed since it was found, InterruptedError if `stop` is
    set."""
    if stop.is_set():
        raise InterruptedError("cancelled before the file was replaced")
    try:
        now = path.lstat()
    except FileNotFoundError:
        now = None
    if (now and _stamp(now)) != (found and _stamp(found.stat)):
        raise changed(shown)


def _stamp(stat: os.stat_result) -> tuple[int, int, int, int]:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


async def replace_file(
    ctx: ToolContext, path: Path, data: bytes, found: Snapshot | None
) -> tuple[dict[str, Any], Sequence[str]]:
    """Replace the content of `path` by `data`, after copying the old bytes. Raises ToolError.

    Returns the fields for the record: path, before (the path of the copy, or None), before_sha256,
    after_sha256; and sentences about how it was written, if not as usual. The ledger knows the new
    content afterwards.
    """
    details, written = await in_thread(partial(_replace, ctx, path, data, found), finish=True)
    ctx.files.note_seen(path, written.state, str(details["after_sha256"]), data)
    return details, written.notes


def _replace(
    ctx: ToolContext, path: Path, data: bytes, found: Snapshot | None, stop: Event
) -> tuple[dict[str, Any], Written]:
    shown = printable(ctx.workspace.show(path))
    before, before_sha256 = keep_before(ctx, found, shown) if found else (None, None)
    try:
        os.close(real_folder(path.parent, create=True))
        check = partial(check_still_wanted, path, shown, found, stop)
        from tui.core.in_place import put  # noqa: PLC0415 - for a write only

        old, like = (found.data, found.stat) if found else (None, None)
        written = put(path, data, old=old, like=like, mode=0o666, check=check)
    except (OSError, ToolError) as error:
        if before is not None:
            before.unlink(missing_ok=True)
        if isinstance(error, ToolError):
            raise
        raise os_failure("write", shown, error) from error
    return {
        "path": str(path),
        "before": str(before) if before else None,
        "before_sha256": before_sha256,
        "after_sha256": sha256(data).hexdigest(),
    }, written


def as_now(details: Mapping[str, Any]) -> tuple[dict[str, Any], list[Path]]:
    """Update the record's fields of written files to their present content. Returns them, and the
    files that have changed since: a formatter may have run. Blocks."""
    several = [object_of(one) for one in list_of(details.get("files"))]
    fields = dict(details)
    changed_since: list[Path] = []
    for one in several or [fields]:
        path, after = one.get("path"), one.get("after_sha256")
        if not isinstance(path, str) or not isinstance(after, str):
            continue
        with suppress(OSError), os.fdopen(open_real(Path(path), _READ), "rb") as file:
            now = file_digest(file, "sha256").hexdigest()
            if now != after:
                one["after_sha256"] = now
                changed_since.append(Path(path))
    return fields | ({"files": several} if several else {}), changed_since


def keep_before(ctx: ToolContext, found: Snapshot, shown: str) -> tuple[Path, str]:
    """Copy the old bytes into the spill store and return the copy and its SHA-256."""
    try:
        with private_copy(ctx.spill_path.with_name(f"{safe_name(ctx.call_id)}.before")) as file:
            copy = Path(file.name)
            if found.data is not None:
                file.write(found.data)
            else:
                with open_regular(found.path, shown) as source:
                    shutil.copyfileobj(source, file, 1 << 20)
    except (StorageError, OSError) as error:
        raise ToolError(
            f"The old content of {shown} ({size(found.stat.st_size)}) couldn't be kept, "
            f"so nothing was written: {error}",
            hint="Tell the user; the folder .holdfast must be writable.",
        ) from error
    digest = found.sha256
    if digest is None:
        with copy.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    return copy, digest
