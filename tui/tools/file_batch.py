"""Several files written, moved and deleted in one step: all of it, or nothing.

The old bytes of every file are kept before the first one is touched. If something fails midway, the
files are restored, unless something else has changed them since.
"""

from __future__ import annotations

import os
import stat as stats
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.files import atomic_write, real_folder
from tui.tools.base import ToolContext
from tui.tools.file_access import check_still_wanted, in_thread, keep_before, os_failure
from tui.tools.file_ledger import Snapshot
from tui.tools.text_decoding import printable

if TYPE_CHECKING:
    from tui.core.in_place import Written

NEW_MODE = 0o666


@dataclass(frozen=True, slots=True)
class FileWrite:
    """One file and its new content: `data`, or None to delete it. `found` is its present state,
    None if it does not exist. `mode` is that of a new file, within the umask. `known`: the model
    has seen all that is written."""

    path: Path
    data: bytes | None
    found: Snapshot | None
    mode: int = NEW_MODE
    known: bool = True


@dataclass(slots=True)
class _Batch:
    """The writes of one call, and their progress."""

    ctx: ToolContext
    kept: list[tuple[Path | None, str | None]] = field(
        default_factory=list[tuple[Path | None, str | None]]
    )
    written: list[tuple[FileWrite, Written | None]] = field(
        default_factory=list[tuple[FileWrite, "Written | None"]]
    )
    folders: list[Path] = field(default_factory=list[Path])
    """Folders that were made, the outermost first."""

    def shown(self, path: Path) -> str:
        return printable(self.ctx.workspace.show(path))


async def write_files(
    ctx: ToolContext, writes: Sequence[FileWrite]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Write and delete all files. Raises ToolError; then they are as they were.

    Returns for each the fields for the record: path, before (the path of the copy, or None),
    before_sha256, after_sha256 (None for no file), and the mode of a deleted one; and sentences
    about those that were not written as usual.
    """
    batch = _Batch(ctx)
    details = await in_thread(partial(_write_all, batch, writes), finish=True)
    notes: list[str] = []
    for write, written in batch.written:
        if written is None or write.data is None:
            ctx.files.forget(write.path)
            continue
        notes += [f"{batch.shown(write.path)}: {note}" for note in written.notes]
        if write.known:
            digest = sha256(write.data).hexdigest()
            ctx.files.note_seen(write.path, written.state, digest, write.data)
    return details, notes


def _write_all(batch: _Batch, writes: Sequence[FileWrite], stop: Event) -> list[dict[str, Any]]:
    try:
        for write in writes:
            snapshot = write.found
            kept = (
                keep_before(batch.ctx, snapshot, batch.shown(write.path))
                if snapshot
                else (None, None)
            )
            batch.kept.append(kept)
        # Deletions come last, so that a failed write leaves those files alone.
        for write in sorted(writes, key=lambda write: write.data is None):
            batch.written.append((write, _write_one(batch, write, stop)))
    except BaseException as error:
        lost = _put_back(batch)
        if not lost:
            for copy, _ in batch.kept:
                if copy is not None:
                    copy.unlink(missing_ok=True)
        if isinstance(error, ToolError):
            raise _with_outcome(error.message, error.hint, batch, lost) from error
        raise
    return [
        _details(write, kept, sha) for write, (kept, sha) in zip(writes, batch.kept, strict=True)
    ]


def _with_outcome(message: str, hint: str, batch: _Batch, lost: Sequence[str]) -> ToolError:
    """Return an error that tells what happened to the files written before it."""
    if lost:
        message += f" What was written before is still there: {'; '.join(lost)}."
    elif batch.written:
        message += " What was written before was put back: no file is changed."
    return ToolError(message, hint=hint)


def _details(write: FileWrite, kept: Path | None, before_sha256: str | None) -> dict[str, Any]:
    data, snapshot = write.data, write.found
    details: dict[str, Any] = {
        "path": str(write.path),
        "before": str(kept) if kept else None,
        "before_sha256": before_sha256,
        "after_sha256": None if data is None else sha256(data).hexdigest(),
    }
    if data is None and snapshot is not None:
        details["mode"] = stats.S_IMODE(snapshot.stat.st_mode)
    return details


def _write_one(batch: _Batch, write: FileWrite, stop: Event) -> Written | None:
    """Write or delete one file. Returns what was written. Raises ToolError."""
    from tui.core.in_place import put  # noqa: PLC0415 - for a write only

    path, shown, snapshot = write.path, batch.shown(write.path), write.found
    check = partial(check_still_wanted, path, shown, snapshot, stop)
    try:
        if write.data is None:
            folder = real_folder(path.parent)
            try:
                check()
                os.unlink(path.name, dir_fd=folder)
            finally:
                os.close(folder)
            return None
        missing = [part for part in (path.parent, *path.parent.parents) if not part.exists()]
        batch.folders += reversed(missing)
        os.close(real_folder(path.parent, create=True))
        old, like = (snapshot.data, snapshot.stat) if snapshot else (None, None)
        return put(path, write.data, old=old, like=like, mode=write.mode, check=check)
    except OSError as error:
        if isinstance(error, InterruptedError):
            raise
        raise os_failure("delete" if write.data is None else "write", shown, error) from error


def _put_back(batch: _Batch) -> list[str]:
    """Undo what was written, the last first. Returns in words what could not be undone."""
    from tui.core.in_place import put  # noqa: PLC0415 - for a write only

    lost: list[str] = []
    for write, written in reversed(batch.written):
        shown = batch.shown(write.path)
        state = None if written is None else Snapshot(write.path, written.state, None, None)
        check = partial(check_still_wanted, write.path, shown, state, Event())
        try:
            if write.found is None:
                check()
                write.path.unlink()
            else:
                old = write.found.data or b""
                if written is None:  # it was deleted
                    atomic_write(write.path, old, like=write.found.stat, mode=NEW_MODE, check=check)
                else:
                    put(
                        write.path,
                        old,
                        old=write.data,
                        like=written.state,
                        mode=NEW_MODE,
                        check=check,
                    )
        except ToolError:
            lost.append(f"{shown} (changed meanwhile)")
        except OSError as error:
            lost.append(f"{shown} ({error.strerror or error})")
    for folder in reversed(batch.folders):
        with suppress(OSError):
            folder.rmdir()
    return lost
