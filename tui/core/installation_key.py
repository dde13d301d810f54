"""A secret of this installation, by which it knows again what it wrote itself."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

NAME: Final = "seal.key"
_BYTES: Final = 32


def installation_key(data: Path) -> bytes:
    """The key in a data folder; made (mode 0600) where there is none. Blocks.

    Where it can neither be read nor written it is one for this process alone: what was sealed with
    it is a stranger's to the next.
    """
    path = data / NAME
    if found := _read(path):
        return found
    made = secrets.token_bytes(_BYTES)
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = data / f".{NAME}.{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(made)
        try:
            os.link(temporary, path)  # the first of two programs wins
        finally:
            temporary.unlink()
    except OSError:
        return _read(path) or made
    return made


def _read(path: Path) -> bytes:
    try:
        found = path.read_bytes()
    except OSError:
        return b""
    return found if len(found) == _BYTES else b""
