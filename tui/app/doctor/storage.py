"""The program's folders: can they be written, is there room, and is what lies there sound?"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from tui.app.doctor.check import Check, Subject
from tui.core.formatting import plural, size
from tui.core.paths import shorten
from tui.core.workspace import Workspace

LITTLE = 50_000_000
"""Bytes of free space below which a session is soon in trouble."""

_DAMAGED = ("needs_repair", "unreadable")
_NAMED = 3


def folders(what: Subject) -> Iterator[Check]:
    """Whether sessions, settings, cache and log can be written, and how much room there is."""
    home = what.folders
    named = {"data": home.data, "config": home.config, "cache": home.cache, "log": home.log}
    refused = [
        f"{name} ({shorten(path)}): {why}"
        for name, path in named.items()
        if (why := _refusal(path))
    ]
    if refused:
        fix = "Make the folder writable, or set HOLDFAST_HOME to one that is."
        yield Check("storage", "fail", f"cannot be written: {'; '.join(refused)}", fix)
    else:
        yield Check("storage", "ok", f"{shorten(home.data)} can be written")
    free = shutil.disk_usage(_existing(home.data)).free
    wanted = what.config.guard.spill_min_free_bytes
    if free < LITTLE:
        yield Check("space", "fail", f"{size(free)} free", "Free some space: sessions need it.")
    elif free < wanted:
        fix = f"Full copies of outputs are kept from {size(wanted)} free on."
        yield Check("space", "warn", f"{size(free)} free", fix)
    else:
        yield Check("space", "ok", f"{size(free)} free")


def _refusal(folder: Path) -> str:
    """Why a folder cannot be written, "" where it can. One that is not there yet is not made."""
    there = _existing(folder)
    if not there.is_dir():
        return f"{shorten(there)} is not a folder"
    if there == folder:
        try:
            with TemporaryFile(dir=folder):
                return ""
        except OSError as error:
            return error.strerror or str(error)
    return "" if os.access(there, os.W_OK | os.X_OK) else "no permission"


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def sessions(what: Subject) -> Iterator[Check]:
    """How many there are, and which are damaged."""
    from tui.session import index  # noqa: PLC0415 - it needs sqlite

    found = index.list_sessions(what.folders)
    states = Counter(entry.state for entry in found)
    said = plural(len(found), "session") if found else "none yet"
    more = [
        f"{states[state]} {state.replace('_', ' ')}" for state in sorted(states) if state != "ok"
    ]
    damaged = [entry for entry in found if entry.state in _DAMAGED]
    detail = f"{said} ({', '.join(more)})" if more else said
    if not damaged:
        yield Check("sessions", "ok", detail)
        return
    ids = ", ".join(entry.id for entry in damaged[:_NAMED]) + (", …" if damaged[_NAMED:] else "")
    fix = f"They open repaired; `holdfast sessions check ID` says what is wrong: {ids}"
    yield Check("sessions", "warn", detail, fix)


def outputs(what: Subject) -> Iterator[Check]:
    """The full copies of tool outputs that this folder holds."""
    folder = Workspace(what.workspace).tool_results
    total = count = 0
    if folder.is_dir():
        with os.scandir(folder) as found:
            for item in found:
                with suppress(OSError):
                    if item.name.endswith(".txt") and item.is_file(follow_symlinks=False):
                        total += item.stat(follow_symlinks=False).st_size
                        count += 1
    said = f"{plural(count, 'full copy').replace('copys', 'copies')}, {size(total)}, in this folder"
    most = what.config.guard.keep_bytes
    if total > most:
        fix = f"More than guard.keep_bytes ({size(most)}): sessions still name them."
        yield Check("outputs", "warn", said, fix)
    else:
        yield Check("outputs", "ok", said if count else "no full copies in this folder")
