"""A checkpoint's entry for one name in the workspace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError

RACY_NS: Final = 2_000_000_000
"""A file that changed so shortly before it was looked at may change again and keep its times."""
FILE_BYTES_MAX: Final = 50_000_000
"""The content of a larger file isn't stored."""
NEVER: Final = 0
"""The stamp of what must be read again: no file has it."""


class CheckpointError(HoldfastError):
    """No checkpoint can be taken, or one that is asked for isn't there."""


class WorkspaceTooLargeError(CheckpointError):
    """There are too many files to look at."""


class CheckpointsDamagedError(CheckpointError):
    """The store of the checkpoints was damaged and has been put aside: a new one can be begun."""


class CheckpointStoppedError(CheckpointError):
    """The program ends."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a workspace at a moment. `files` is how many files (no folders, nothing that git
    ignores) differ from the one before; `changed` are some of their paths, below the workspace.
    `skipped` is how many files there was no room for on the disk. Two with the same `id` are the
    same state."""

    id: str
    files: int = 0
    changed: tuple[str, ...] = ()
    skipped: int = 0


Outcome: TypeAlias = Literal["restored", "deleted", "unchanged", "changed since", "lost", "failed"]


@dataclass(frozen=True, slots=True)
class RestoredFile:
    """The outcome of restoring one file. `kept` is the copy of its content from before."""

    path: Path
    outcome: Outcome
    kept: Path | None = None
    detail: str = ""


class Kind(IntEnum):
    """The kind of thing that a name stands for. An `OMITTED` folder isn't looked into: its files
    aren't stored."""

    FILE = 1
    LINK = 2
    FOLDER = 3
    OMITTED = 4


class PathEntry(NamedTuple):
    """A name in a checkpoint. `mode` is its permission bits, `size` is in bytes. `digest` is the
    SHA-256 of a file's content or of a link's target, None where that isn't stored. `stamp` sums
    up size, times and inode. `ignored`: git ignores it.
    """

    kind: Kind
    mode: int
    size: int
    stamp: int
    digest: bytes | None
    ignored: bool

    @property
    def stored(self) -> bool:
        """True if it can be put back."""
        return self.kind is Kind.FOLDER or self.digest is not None

    def same(self, other: PathEntry | None) -> bool:
        """True if both stand for the same kind, mode and content."""
        if other is None or (self.kind, self.mode) != (other.kind, other.mode):
            return False
        if self.kind in {Kind.FOLDER, Kind.OMITTED}:
            return True
        if self.digest is None and other.digest is None:
            return self.stamp == other.stamp
        return self.digest == other.digest


@dataclass(frozen=True, slots=True)
class Change:
    """A difference at one path between two checkpoints; None is nothing there. `path` is
    absolute."""

    path: Path
    old: PathEntry | None
    new: PathEntry | None

    @property
    def ignored(self) -> bool:
        """True if git ignores it."""
        return all(one.ignored for one in (self.old, self.new) if one is not None)

    @property
    def is_folder(self) -> bool:
        """True if only a folder appeared, went, or changed its mode."""
        folders = {Kind.FOLDER, Kind.OMITTED}
        return all(one.kind in folders for one in (self.old, self.new) if one is not None)


def is_repository(change: Change) -> bool:
    """True if the path is the `.git` of a nested repository, of which only that it is there is
    known."""
    return change.path.name == ".git"


COLUMNS: Final = "kind, mode, size, stamp, digest, ignored"
"""The columns of an entry in the store, in the order of its fields."""
_KINDS: Final = (Kind.FILE, *Kind)
"""The kinds by their stored numbers, from 1."""


def entry_of(row: Sequence[Any]) -> PathEntry:
    """Make the entry of a row with the `COLUMNS`."""
    kind, mode, size, stamp, digest, ignored = row
    return PathEntry(_KINDS[kind], mode, size, stamp, digest, bool(ignored))


def stamp_of(state: os.stat_result) -> int:
    """A number that changes with size, times and inode."""
    parts = (state.st_mode, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
    return hash(parts) or 1
