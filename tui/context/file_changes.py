"""Which files a session's own tools changed, and how to bring them back (decision 33).

Only the file tools are known: what a command did to a file is not in the record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from tui.core.errors import StorageError
from tui.core.storage.atomic_files import read_small, replace_file
from tui.core.storage.private_files import private_file, safe_name
from tui.session.records import Record

READ_MAX = 64_000_000

Outcome: TypeAlias = Literal["restored", "deleted", "unchanged", "changed since", "lost", "failed"]


@dataclass(frozen=True, slots=True)
class Change:
    """What a run of records did to one file.

    `before` holds the bytes from before the first write, None where there was no file then;
    `before_sha256` and `after_sha256` are of the first and the last state.
    """

    path: Path
    before: Path | None
    before_sha256: str | None
    after_sha256: str
    writes: int = 1

    @property
    def created(self) -> bool:
        """Whether the file was not there before."""
        return self.before_sha256 is None


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of one file. `kept` is where its content from before the restoring went."""

    path: Path
    outcome: Outcome
    kept: Path | None = None
    detail: str = ""


def changes(records: Iterable[Record]) -> list[Change]:
    """The files that records changed, in the order of their first change."""
    found: dict[Path, Change] = {}
    for record in records:
        change = _change(record)
        if change is None:
            continue
        first = found.get(change.path)
        if first is not None:
            change = Change(
                change.path,
                first.before,
                first.before_sha256,
                change.after_sha256,
                first.writes + 1,
            )
        found[change.path] = change
    return [change for change in found.values() if change.before_sha256 != change.after_sha256]


def restore(change: Change, keep: Path) -> Restored:
    """Put a file back as it was before the change. Blocks; never raises for the disk.

    A file that is not as the session left it is somebody else's work by now: it is left alone.
    What is replaced or deleted is first copied below `keep`.
    """
    try:
        now = _now(change.path)
    except OSError as error:
        return Restored(change.path, "failed", detail=error.strerror or str(error))
    stands = None if now is None else _sha256(now)
    if stands == change.before_sha256:
        return Restored(change.path, "unchanged")
    if stands != change.after_sha256:
        return Restored(change.path, "changed since")
    try:
        old = None if change.before is None else read_small(change.before, limit=READ_MAX)[0]
    except OSError as error:
        return Restored(change.path, "lost", detail=error.strerror or str(error))
    if (None if old is None else _sha256(old)) != change.before_sha256:
        return Restored(change.path, "lost", detail="the kept copy is not what it was")
    try:
        kept = _keep(change.path, now or b"", keep)
        if old is None:
            change.path.unlink()
            return Restored(change.path, "deleted", kept)
        replace_file(change.path, old)
    except (OSError, StorageError) as error:
        return Restored(change.path, "failed", detail=str(error))
    return Restored(change.path, "restored", kept)


def texts(change: Change) -> tuple[str | None, str | None]:
    """A file before the change and now, as text; None where there is no file. Blocks.

    Raises OSError where one of them cannot be read.
    """
    old = None if change.before is None else read_small(change.before, limit=READ_MAX)[0]
    now = _now(change.path)
    return _text(old), _text(now)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _now(path: Path) -> bytes | None:
    try:
        return read_small(path, limit=READ_MAX, follow=False)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None


def _keep(path: Path, data: bytes, folder: Path) -> Path:
    with private_file(folder / f"{safe_name(path.name)}.before-rewind") as file:
        file.write(data)
        return Path(str(file.name))


def _change(record: Record) -> Change | None:
    if record.type != "tool_result" or record.data.get("is_error"):
        return None
    details: Any = record.data.get("details")
    if not isinstance(details, dict):
        return None
    said = cast("dict[str, Any]", details)
    path, after = said.get("path"), said.get("after_sha256")
    if not (isinstance(path, str) and isinstance(after, str) and path.startswith("/")):
        return None
    before, sha256 = said.get("before"), said.get("before_sha256")
    return Change(
        Path(path),
        Path(before) if isinstance(before, str) else None,
        sha256 if isinstance(sha256, str) else None,
        after,
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
