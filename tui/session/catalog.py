"""Which sessions there are: listed, named by a prefix, or the newest of a folder.

Everything here blocks. What lists show comes from the index, as far as that is up to date.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from tui.core.errors import SessionError
from tui.core.paths import Folders
from tui.session.jsonl import Findings, parse, split
from tui.session.reader import open_session
from tui.session.records import is_ours
from tui.session.summary import Entry, describe, id_of

__all__ = [
    "Entry",
    "Found",
    "check_ours",
    "describe",
    "entries",
    "files",
    "id_of",
    "newest",
    "resolve",
    "scan",
]

_CANDIDATES = 10

Found: TypeAlias = tuple[int, str, int]
"""A session file: when it was changed (ns), its path, its size."""

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many files have been read, and of how many."""


def entries(
    folders: Folders, workspace: Path | None = None, *, progress: Progress | None = None
) -> list[Entry]:
    """The sessions of a workspace, or all of them, the one used last first."""
    from tui.session import index  # noqa: PLC0415 - it needs sqlite, and nothing else here does

    return index.entries(folders.cache, scan(folders, workspace), progress)


def files(folders: Folders, workspace: Path | None = None) -> list[Path]:
    """The session files of a workspace, or all of them, the one written last first."""
    return [Path(path) for _, path, _ in scan(folders, workspace)]


def scan(folders: Folders, workspace: Path | None = None) -> list[Found]:
    """The session files of a workspace, or all of them, with their state; newest first."""
    roots = [folders.sessions_of(workspace)] if workspace else _folders_in(folders.sessions)
    return sorted((found for root in roots for found in _files_in(root)), reverse=True)


def newest(folders: Folders, workspace: Path) -> Path | None:
    """The session of a workspace that was used last."""
    return next(iter(files(folders, workspace)), None)


def resolve(reference: str, folders: Folders) -> Path:
    """The file of an id, of an unambiguous beginning of one, or of a path.

    Raises SessionError where there is none, or more than one.
    """
    if os.sep in reference or reference.endswith(".jsonl"):
        path = Path(reference).expanduser()
        if path.exists():
            return path
        raise SessionError(f"There is no file {reference}.", hint="Check the path.")
    every = files(folders)
    found = [path for path in every if reference and id_of(path).startswith(reference)]
    exact = [path for path in found if id_of(path) == reference]
    if len(found) == 1 or len(exact) == 1:
        return (exact or found)[0]
    if found:
        raise SessionError(
            f"{len(found)} sessions begin with {reference}: {_some(found)}.",
            hint="Give more characters of the id.",
        )
    known = f" The newest are {_some(every)}." if every else " There are no sessions yet."
    raise SessionError(
        f"There is no session {reference}.{known}", hint="`holdfast sessions list` shows them."
    )


def check_ours(path: Path, folders: Folders) -> None:
    """Raise SessionError for a file that is not to be gone on with: nothing in it is ours.

    Whatever lies in the folder of the sessions is a session, however damaged; so is an empty
    file. Nothing is ever appended to anything else.
    """
    if folders.sessions.resolve() in path.resolve().parents:
        return
    found = False
    with open_session(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return
        found = any(is_ours(value) for _, value in parse(split(file.read), Findings()))
    if not found:
        raise SessionError(
            f"{path} is not a session: there is no record of Holdfast's in it.",
            hint="It is left as it is. `holdfast sessions list --all` shows the sessions.",
        )


def _some(paths: Sequence[Path]) -> str:
    more = ", …" if len(paths) > _CANDIDATES else ""
    return ", ".join(id_of(path) for path in paths[:_CANDIDATES]) + more


def _folders_in(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as found:
            return [Path(item.path) for item in found if item.is_dir()]
    except OSError:
        return []


def _files_in(folder: Path) -> Iterator[Found]:
    try:
        with os.scandir(folder) as found:
            yield from (one for item in found if (one := _found(item)))
    except OSError:
        return


def _found(item: os.DirEntry[str]) -> Found | None:
    if not item.name.endswith(".jsonl") or item.is_dir():
        return None
    try:
        state = item.stat()
    except OSError:  # a link to nowhere, say: listed, as what cannot be read
        return 0, item.path, 0
    return state.st_mtime_ns, item.path, state.st_size
