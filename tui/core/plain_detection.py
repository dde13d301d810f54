"""Whether the program runs in plain lines, decided before anything else is opened.

Imported before the first frame, so it imports as little as `tui.core.theme_cache`.
"""

# ruff: noqa: PTH100, PTH111, PTH118, PTH123

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DUMB = ("", "dumb", "unknown")
"""Values of TERM of terminals that move no cursor."""

_READ_MAX = 1_000_000


def why(argv: Sequence[str]) -> str:
    """ "asked" (--plain), "dumb" (the terminal), "configured" (`plain = true`), or ""."""
    words = argv[: argv.index("--")] if "--" in argv else argv
    if "--plain" in words:
        return "asked"
    if os.environ.get("TERM", "") in DUMB:
        return "dumb"
    return "configured" if _configured() else ""


def _file() -> str:
    """The person's config.toml, as `tui.core.paths` has it."""
    env = os.environ
    if home := env.get("HOLDFAST_HOME"):
        folder = os.path.join(os.path.abspath(os.path.expanduser(home)), "config")
    elif sys.platform == "darwin":
        folder = os.path.expanduser("~/Library/Application Support/holdfast")
    else:
        base = env.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config")
        folder = os.path.join(base, "holdfast")
    return os.path.join(folder, "config.toml")


def _configured() -> bool:
    """Whether the user's file says `plain = true`. It is parsed only if it has that word."""
    try:
        with open(_file(), "rb") as file:
            data = file.read(_READ_MAX)
    except (OSError, ValueError):
        return False
    if b"plain" not in data:
        return False
    import tomllib  # noqa: PLC0415 - see above

    try:
        return tomllib.loads(data.decode("utf-8-sig")).get("plain") is True
    except ValueError:
        return False  # loading the settings reports what is wrong
