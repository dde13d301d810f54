"""The log file: tracebacks and decisions go here, never to the screen. Secrets are masked."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from tui.core.redaction import mask

NAME = "holdfast.log"


class _MaskingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))[0]


def to_file(folder: Path, *, debug: bool = False) -> Path | None:
    """Send all logging to the file NAME in `folder` (1 MB, three old ones kept).

    Returns the file, or None if it cannot be written: a full or read-only disk must not keep anyone
    from working. Nothing ever goes to stderr.
    """
    root = logging.getLogger()
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler: logging.Handler = RotatingFileHandler(
            path, maxBytes=1_000_000, backupCount=3, encoding="utf-8", delay=True
        )
        path.touch(mode=0o600)
    except OSError:
        root.handlers[:] = [logging.NullHandler()]
        return None
    handler.setFormatter(_MaskingFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.raiseExceptions = False
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    return path
