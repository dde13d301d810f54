"""The name of a session on another machine: `ssh://[USER@]HOST[:PORT]/ID`, or its title. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from tui.core.errors import UsageError
from tui.core.late_pattern import late_pattern
from tui.core.text_cleaning import one_line, visible

FAR: Final = "ssh://"
_NAME: Final = late_pattern(r"ssh://([^/\s]+)/([^\s\x00-\x1f-][^\x00-\x1f\x7f]*)")


class FarSession(NamedTuple):
    """A session by its id, the beginning of one, or its title, and its machine as ssh knows it."""

    host: str
    id: str


def far_session(text: str) -> FarSession:
    """Read the name of a session on another machine. Raises UsageError."""
    match = _NAME.fullmatch(text)
    if match is None or match[1].startswith("-"):
        raise UsageError(
            f"attach: {one_line(visible(text))} names no session on another machine.",
            hint="Give its machine, and its id or title: holdfast attach ssh://HOST/ID.",
        )
    return FarSession(match[1], match[2])
