"""The name of a session on another machine: `ssh://[USER@]HOST[:PORT]/ID`. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from tui.core.errors import UsageError
from tui.core.late_pattern import late_pattern
from tui.core.text_cleaning import one_line, visible

FAR: Final = "ssh://"
_NAME: Final = late_pattern(r"ssh://([^/\s]+)/([0-9A-Za-z][0-9A-Za-z._-]*)")


class FarSession(NamedTuple):
    """A session by its id, or the beginning of one, and its machine as ssh knows it."""

    host: str
    id: str


def far_session(text: str) -> FarSession:
    """Read the name of a session on another machine. Raises UsageError."""
    match = _NAME.fullmatch(text)
    if match is None or match[1].startswith("-"):
        raise UsageError(
            f"attach: {one_line(visible(text))} names no session on another machine.",
            hint="Give its machine and its id: holdfast attach ssh://HOST/ID.",
        )
    return FarSession(match[1], match[2])
