"""Standard output and standard error of `run`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from tui.core.errors import StorageError


def width() -> int:
    """The width of the terminal on stdout; 100 where there is none."""
    with suppress(OSError):
        return os.get_terminal_size(sys.stdout.fileno()).columns
    return 100


def put(text: str) -> None:
    """A line of data. Raises StorageError, or BrokenPipeError when nobody reads."""
    try:
        sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"Standard output cannot be written: {error}.") from error


def told(text: str) -> None:
    """A line for the person."""
    with suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
