"""Letting the tools work in more folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from tui.app.ports import Agent
from tui.core.paths import shorten


def widened(
    agent: Agent, root: Path, folder: str
) -> tuple[str, Literal["info", "success", "warning"], str]:
    """Add a folder, as it was typed, to those of an agent's tools; "" adds none.

    Returns what to say, how it went, and a hint.
    """
    if not folder:
        told = ", ".join(shorten(each) for each in agent.folders)
        return f"The tools work in {told}.", "info", "/add-dir FOLDER adds one."
    given = Path(folder.strip("\"'")).expanduser()
    real = Path(os.path.realpath(root / given))
    if not real.is_dir():
        return f"{folder} is no folder.", "warning", ""
    if agent.add_dir(real):
        return f"The tools may work in {shorten(real)} too.", "success", "Until you leave."
    return f"{shorten(real)} is inside already.", "info", ""
