"""Opens an address in the person's browser, if there is one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def has_browser(env: Mapping[str, str]) -> bool:
    """True if a page can be opened beside the terminal: a browser in it would take its place."""
    if env.get("BROWSER"):
        return True
    if env.get("SSH_CONNECTION"):
        return False
    return sys.platform == "darwin" or any(
        env.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
    )


def open_page(address: str) -> bool:
    """Open an address; False if that is not possible. Blocks."""
    if not has_browser(os.environ):
        return False
    import webbrowser  # noqa: PLC0415 - seldom needed

    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
