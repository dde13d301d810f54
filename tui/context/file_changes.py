"""Files that a session and its sub-agents changed, their restoration, and outdated reads.

Only the file tools are covered: what a command did to a file is not in the record. The details of a
result have `path`, `before` (the path of a copy, null for no file), `before_sha256` and
`after_sha256` (null where the file was deleted, with its `mode`); or `files`, a list of these.
Everything that touches files blocks: call it in a thread.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui.core.dataclass import dataclass
from tui.core.errors import StorageError
from tui.core.files import read_small, remove_real, replace_file, safe_name, set_real_mode
from tui.core.messages import list_of, object_of
from tui.core.private_files import private_file
from tui.core.workspace import TOOL_RESULTS, worktree_of
from tui.permissions.rules import GUARDED
from tui.session.checkpoints.entries import RestoredFile
from tui.session.records import FILE_CHANGE, Record

if TYPE_CHECKING:
    from tui.context.masks import FileRead

READ_MAX = 64_000_000


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change that a run of records made to one file.

    `before` holds the bytes from before the first write, None where there was no file then;
    `before_sha256` and `after_sha256` are the hashes of the first and the last state, None for no
    file. `mode` is that of a deleted file.
    """

    path: Path
    before: Path | None
    before_sha256: str | None
    after_sha256: str | None
    writes: int = 1
    mode: int | None = None

    @property
    def created(self) -> bool:
        """True if the file did not exist before."""
        return self.before_sha256 is None


def changes(records: Iterable[Record]) -> list[FileChange]:
    """The files that records changed, in the order of their first change."""
    merged: dict[Path, FileChange] = {}
    for change in (change for record in records for change in _changes_of(record)):
        first = merged.get(change.path)
        if first is None:
            merged[change.path] = change
            continue
        merged[change.path] = FileChange(
            change.path,
            first.before,
            first.before_sha256,
            change.after_sha256,
            first.writes + 1,
            change.mode if first.mode is None else first.mode,
        )
    return [change for change in merged.values() if change.before_sha256 != change.after_sha256]


def objection(change: FileChange, root: Path, copies: Path | None = None) -> str:
    """Explain why a recorded change is not trusted; "" if it may be. Blocks.

    A session may have been written by somebody else. It is trusted only with files that the file
    tools could have written below `root`, and with former contents only as copies of ours, which
    are in `copies`.
    """
    path, place = change.path, Path(os.path.realpath(change.path.parent))
    if root != place and root not in place.parents:
        return "outside the workspace"
    if place != path.parent:
        return "its folder is reached through a link"
    below = path.relative_to(worktree_of(root) or root).parts
    if guarded := next((part for part in below if part.lower() in GUARDED), ""):
        return f"nothing in {guarded} is brought back: {GUARDED[guarded.lower()]}"
    folder = change.before.parent if change.before is not None else None
    if folder is not None and (folder.name != TOOL_RESULTS or copies not in {None, folder}):
        return "the copy that it names isn't one of Holdfast's"
    return ""


def restore(change: FileChange, keep: Path) -> RestoredFile:
    """Restore a file to its state before the change. Blocks; never raises for the disk.

    A file that somebody else has changed since is not touched. Content that is replaced or deleted
    is first copied to the folder `keep`.
    """
    try:
        now = _now(change.path)
    except OSError as error:
        return RestoredFile(change.path, "failed", detail=error.strerror or str(error))
    # Act only if the file is still as the change left it.
    current = None if now is None else _sha256(now)
    if current == change.before_sha256:
        return RestoredFile(change.path, "unchanged")
    if current != change.after_sha256:
        return RestoredFile(change.path, "changed since")
    try:
        old = _copy(change)
    except OSError as error:
        return RestoredFile(change.path, "lost", detail=error.strerror or str(error))
    if (None if old is None else _sha256(old)) != change.before_sha256:
        return RestoredFile(change.path, "lost", detail="the kept copy is not what it was")
    # The current content is saved before it is replaced.
    try:
        copy = None if now is None else _keep(change.path, now, keep)
        if old is None:
            remove_real(change.path)
            return RestoredFile(change.path, "deleted", copy)
        if now is None:
            replace_file(change.path, old, real=True)
        else:
            from tui.core.in_place import put  # noqa: PLC0415 - seldom needed

            state = change.path.lstat()
            put(change.path, old, old=now, like=state, mode=0o600, check=lambda: None)
        if now is None and change.mode is not None:
            set_real_mode(change.path, change.mode & 0o777)
    except (OSError, StorageError) as error:
        return RestoredFile(change.path, "failed", detail=str(error))
    return RestoredFile(change.path, "restored", copy)


def texts(change: FileChange) -> tuple[str | None, str | None]:
    """Return a file before the change and now, as text; None where there is no file. Blocks.

    Raises OSError where one of them cannot be read.
    """
    old = _copy(change)
    now = _now(change.path)
    return _text(old), _text(now)


def _copy(change: FileChange) -> bytes | None:
    """Read the former content of a file from its copy."""
    if change.before is None:
        return None
    return read_small(change.before, limit=READ_MAX, follow=False)[0]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _now(path: Path) -> bytes | None:
    try:
        return read_small(path, limit=READ_MAX, real=True)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None


def _keep(path: Path, data: bytes, folder: Path) -> Path:
    with private_file(folder / f"{safe_name(path.name)}.before-rewind") as file:
        file.write(data)
        return Path(str(file.name))


def _changes_of(record: Record) -> list[FileChange]:
    """The changes that one record made to files."""
    return [change for details in details_of(record) if (change := _change(details)) is not None]


def details_of(record: Record) -> Sequence[Mapping[str, Any]]:
    """The details of written files in a record, one by one."""
    if record.type == FILE_CHANGE:
        return [record.data]
    if record.type != "tool_result" or record.data.get("is_error"):
        return []
    details = object_of(record.data.get("details"))
    files = list_of(details.get("files"))
    return [object_of(each) for each in files] if files else [details]


def _change(fields: Mapping[str, Any]) -> FileChange | None:
    path, after = fields.get("path"), fields.get("after_sha256")
    before, sha256 = fields.get("before"), fields.get("before_sha256")
    deleted = "after_sha256" in fields and after is None and isinstance(sha256, str)
    if not (isinstance(path, str) and path.startswith("/")):
        return None
    if not (deleted or isinstance(after, str)):
        return None
    mode = fields.get("mode")
    return FileChange(
        Path(path),
        Path(before) if isinstance(before, str) else None,
        sha256 if isinstance(sha256, str) else None,
        after if isinstance(after, str) else None,
        mode=mode if isinstance(mode, int) and not isinstance(mode, bool) else None,
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


HASHED_BYTES = 20 * 1024 * 1024


def change_checker(root: Path) -> Callable[[FileRead], bool]:
    """Return a function that tells whether a file has changed since a read, or is gone.

    `root` is for relative paths. If size and time are the same, the file is unchanged; otherwise
    the hash decides, if it is known. Without either, the time of the read is compared with that of
    the file. Each file is examined once.
    """
    looks: dict[Path, os.stat_result | None] = {}
    hashes: dict[Path, str] = {}

    def file_state(path: Path) -> os.stat_result | None:
        try:
            status = path.stat()
        except OSError:
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def changed(read: FileRead) -> bool:
        path = root / read.path
        if path not in looks:
            looks[path] = file_state(path)
        status = looks[path]
        if status is None:
            return True
        # Reads of other programs have no size and time.
        if read.mtime_ns is None or read.size is None:
            return status.st_mtime > _seconds(read.time)
        if (status.st_size, status.st_mtime_ns) == (read.size, read.mtime_ns):
            return False
        if read.sha256 is None or status.st_size != read.size or status.st_size > HASHED_BYTES:
            return True
        if path not in hashes:
            hashes[path] = _digest(path)
        return hashes[path] != read.sha256

    return changed


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return float("inf")


def _digest(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
