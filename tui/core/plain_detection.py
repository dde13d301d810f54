"""Decides between plain lines and the full screen, before anything else is opened.

Imported before the first frame, so it imports as little as `tui.core.theme_cache`.
"""

# ruff: noqa: PTH118, PTH123

from __future__ import annotations

import os
import sys

from tui.core.theme_cache import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DUMB = ("", "dumb", "unknown")
"""Values of TERM of terminals that move no cursor."""

_READ_MAX = 1_000_000


def why(argv: Sequence[str]) -> str:
    """Return the reason for plain lines: "asked" (--plain), "dumb" (the terminal), "configured"
    (`plain = true`), or ""."""
    words = argv[: argv.index("--")] if "--" in argv else argv
    if "--plain" in words:
        return "asked"
    if os.environ.get("TERM", "") in DUMB:
        return "dumb"
    return "configured" if _configured() else ""


def need_terminal(sentence: str, hint: str = 'Without one, use: holdfast -p "…"') -> None:
    """Raise UsageError, which says the sentence and the hint, if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from tui.core.errors import UsageError  # noqa: PLC0415 - see above

        raise UsageError(sentence, hint=hint)


def _configured() -> bool:
    """True if the user's file has `plain = true`. It is parsed only if it has that word."""
    try:
        with open(os.path.join(folder("config"), "config.toml"), "rb") as file:
            data = file.read(_READ_MAX)
    except (OSError, ValueError):
        return False
    if b"plain" not in data:
        return False
    from tui.core.toml_files import parse_toml  # noqa: PLC0415 - see above

    try:
        return parse_toml(data.decode("utf-8-sig")).get("plain") is True
    except ValueError:
        return False  # loading the settings reports the error
