"""Workspace trust: whether the files that come with a project may change what the program does.

The person is asked once per folder. Decisions are stored in the data folder, by real path, so
that nothing inside a project can grant itself trust.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from tui.core.errors import StorageError, os_error_as
from tui.core.files import locked, read_small, replace_file
from tui.core.paths import Folders, shorten
from tui.core.workspace import PRIVATE_DIR

_log = logging.getLogger(__name__)
_LIMIT = 10_000_000


def decision(folders: Folders, workspace: Path) -> bool | None:
    """The person's decision about a folder; None if there is none yet. Never raises."""
    try:
        return _read(_file(folders)).get(_key(workspace))
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("the trust decisions cannot be read, nothing counts as decided: %s", error)
        return None


def is_trusted(folders: Folders, workspace: Path) -> bool:
    """Whether the person said yes. A store that cannot be read trusts nothing."""
    return decision(folders, workspace) is True


def is_undecided(folders: Folders, workspace: Path) -> bool:
    """Whether a folder has files that need trust and nothing was decided about it yet."""
    return bool(brought_along(workspace)) and decision(folders, workspace) is None


def brought_along(workspace: Path) -> tuple[Path, ...]:
    """The project's files that have an effect only if the folder is trusted."""
    private = workspace / PRIVATE_DIR
    names = ("config.toml", "boot.md", "commands")
    found = [private / name for name in names if os.path.lexists(private / name)]
    return tuple(path for path in found if path.name != "commands" or _has_entries(path))


def decide(folders: Folders, workspace: Path, *, trusted: bool) -> None:
    """Remember the person's answer, yes or no. Blocks; raises StorageError."""
    file = _file(folders)
    hint = "The decision holds until the program ends."
    what = f"{shorten(file)} could not be written"
    with os_error_as(StorageError, what, hint=hint), locked(file.parent):
        try:
            decisions = _read(file)
        except (ValueError, RecursionError):
            with suppress(FileNotFoundError):
                file.replace(file.with_name("trust.json.broken"))
            decisions = {}
        decisions[_key(workspace)] = trusted
        text = json.dumps({"version": 1, "folders": decisions}, indent=1, sort_keys=True)
        replace_file(file, text.encode())


def _file(folders: Folders) -> Path:
    return folders.data / "trust.json"


def _key(workspace: Path) -> str:
    return os.path.realpath(workspace)


def _read(file: Path) -> dict[str, bool]:
    try:
        data, _ = read_small(file, limit=_LIMIT)
    except FileNotFoundError:
        return {}
    found: Any = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("no object at the top")  # noqa: TRY004 - a broken file, not a broken call
    entries: Any = cast("dict[str, Any]", found).get("folders")
    if not isinstance(entries, dict):
        raise ValueError("no list of folders")  # noqa: TRY004
    return {k: v for k, v in cast("dict[str, Any]", entries).items() if isinstance(v, bool)}


def _has_entries(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return True  # unknown: the person is asked
