"""The theme of the last run, its name and its colors, for the first frames of the next one.

A small file in the cache folder; nothing depends on its existence or content. It is read before the
first frame, so without pathlib, whose import takes 7 ms.
"""

# ruff: noqa: PTH100, PTH103, PTH105, PTH111, PTH118, PTH120, PTH123

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

COLOURS = (
    "background", "surface", "panel", "foreground", "muted", "rule", "primary", "secondary",
    "accent", "success", "warning", "error",
)  # fmt: skip
"""The colors of a theme, by role; `tui.ui.toolkit.themes` reads them from its file."""


_FOLDERS = {
    "cache": ("~/Library/Caches", "XDG_CACHE_HOME", "~/.cache"),
    "config": ("~/Library/Application Support", "XDG_CONFIG_HOME", "~/.config"),
}
"""The folder on a Mac, and the variable and the default elsewhere."""


def folder(kind: str) -> str:
    """Return the program's folder of a kind, a key of _FOLDERS, the same as in `tui.core.paths`."""
    if home := os.environ.get("HOLDFAST_HOME"):
        return os.path.join(os.path.abspath(os.path.expanduser(home)), kind)
    mac, variable, default = _FOLDERS[kind]
    if sys.platform == "darwin":
        base = os.path.expanduser(mac)
    else:
        base = os.environ.get(variable, "").strip() or os.path.expanduser(default)
    return os.path.join(base, "holdfast")


def file() -> str:
    """Return the path of the file."""
    return os.path.join(folder("cache"), "look")


def load() -> dict[str, str]:
    """Return `theme`, `dark` (yes or no) and COLOURS of the last run; {} if the file is not
    valid."""
    try:
        with open(file(), encoding="utf-8") as stream:
            theme = dict(line.split(" ", 1) for line in stream.read(2000).splitlines())
        for name in COLOURS:
            rgb(theme[name])
    except (OSError, ValueError, KeyError):
        return {}
    return theme if "theme" in theme and theme.get("dark") in {"yes", "no"} else {}


def save(theme: Mapping[str, str]) -> None:
    """Store the theme for the next run, if the cache can be written."""
    if load() == theme:
        return
    path = file()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(f"{path}.new", "w", encoding="utf-8") as stream:
            stream.writelines(f"{name} {value}\n" for name, value in theme.items())
        os.replace(f"{path}.new", path)
    except OSError:
        return


def rgb(colour: str) -> tuple[int, int, int]:
    """Return the parts of "#62d2c6". Raises ValueError."""
    if len(colour) != 7 or colour[0] != "#":
        raise ValueError(colour)
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:], 16)
