"""The paths that checkpoints don't keep, sorted by what stands in for them where a state is made
again."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Final

_DEPENDENCIES: Final = frozenset({"node_modules", "bower_components", "vendor", "Pods", ".bundle"})
"""Folders of what others wrote, which a project needs and doesn't change. So is each virtual
environment of Python."""
ENVIRONMENT: Final = "pyvenv.cfg"
"""The file that makes a folder a virtual environment."""
_REMADE: Final = frozenset(
    {".git", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".holdfast"}
)


def is_remade(path: str) -> bool:
    """True for what nobody misses, as programs make it again: caches, and our own folder."""
    return not _REMADE.isdisjoint(PurePath(path).parts)


def is_dependency(place: Path) -> bool:
    """True for a folder of dependencies, which may be lent as it is today. Blocks."""
    named = place.name in _DEPENDENCIES or (place / ENVIRONMENT).is_file()
    return named and place.is_dir()


def lent_by(root: Path, path: bytes) -> Path | None:
    """The file or the dependencies that a workspace lends in the place of a path below it; None
    for anything else, and for what is reached through a link. Blocks."""
    place = root / os.fsdecode(path)
    if os.path.realpath(place) != str(place):
        return None
    return place if place.is_file() or is_dependency(place) else None
