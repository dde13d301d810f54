"""What is piped into `-p`."""

from __future__ import annotations

import select
import sys
from contextlib import suppress

from tui.core.errors import UsageError

MAX_STDIN = 10_000_000
"""Bytes of standard input that `-p` takes: more would not fit any model's window."""

STDIN_PATIENCE_S = 3.0
"""After how many seconds of silence a person is told that standard input is waited for."""


def standard_input(*, patience_s: float = STDIN_PATIENCE_S) -> str:
    """What was piped in, "" from a terminal. It is data: directives in it do not count.

    Blocks until it ends; says so after a silence. Raises UsageError above MAX_STDIN bytes.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    with suppress(OSError, ValueError):  # not everything can be waited for
        if not select.select([sys.stdin], [], [], patience_s)[0]:
            note = "Waiting for standard input; without any, add: < /dev/null"
            print(note, file=sys.stderr)  # noqa: T201
    data = sys.stdin.buffer.read(MAX_STDIN + 1)
    if len(data) > MAX_STDIN:
        raise UsageError(
            "There is too much on standard input (over 10 MB).",
            hint="Save it to a file and name the file in the prompt.",
        )
    return data.decode("utf-8", "replace").strip()
