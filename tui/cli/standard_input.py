"""Standard input as part of a prompt, for the ways of asking that have no screen."""

from __future__ import annotations

import select
import sys
from contextlib import suppress

from tui.core.errors import UsageError
from tui.core.standard_output import note

MAX_STDIN = 10_000_000
"""Bytes of standard input that are taken: more would not fit any model's window."""

STDIN_PATIENCE_S = 3.0
"""Seconds of silence after which the person is told that standard input is awaited."""


def standard_input() -> str:
    """Return what was piped in, "" from a terminal. It is data: directives in it do not count.

    Blocks until the end of input, and tells the person so after a silence. Raises UsageError above
    MAX_STDIN bytes.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    with suppress(OSError, ValueError):  # some streams can't be polled
        if not select.select([sys.stdin], [], [], STDIN_PATIENCE_S)[0]:
            note("Waiting for standard input; if there is none, add: < /dev/null")
    data = sys.stdin.buffer.read(MAX_STDIN + 1)
    if len(data) > MAX_STDIN:
        raise UsageError(
            "Too much on standard input (over 10 MB).",
            hint="Save it to a file and name the file in the prompt.",
        )
    return data.decode("utf-8", "replace").strip()
