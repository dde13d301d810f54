"""Texts that were typed to a watched session and not sent, kept until somebody looks in again."""

from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from pathlib import Path

from tui.core.errors import StorageError
from tui.core.files import read_small, replace_file
from tui.core.paths import Folders

log = logging.getLogger(__name__)

_LONGEST = 1_000_000


def draft_of(home: Folders, host: str, session: str) -> str:
    """Return what was typed to a session; "" for nothing. Blocks."""
    try:
        return read_small(_path(home, host, session), limit=_LONGEST)[0].decode(errors="replace")
    except (OSError, StorageError):
        return ""


def keep_draft(home: Folders, host: str, session: str, text: str) -> None:
    """Keep what was typed to a session, in place of what was kept before. Blocks; raises
    StorageError."""
    path = _path(home, host, session)
    if text.strip():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, text.encode(errors="replace"))
        return
    with suppress(OSError):
        path.unlink()


def _path(home: Folders, host: str, session: str) -> Path:
    named = hashlib.sha256(f"{host}\0{session}".encode(errors="replace")).hexdigest()[:32]
    return home.data / "drafts" / f"{named}.txt"
