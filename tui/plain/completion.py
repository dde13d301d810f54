"""What Tab makes of the last word of a line. Called by the line editor, in the main thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tui.app.commands.registry import COMMANDS
from tui.plain.conversation import Talk

_MATCHES: Final = 100


def complete(talk: Talk, line: str) -> Sequence[str]:
    """What the last word of a line may become: a command's name, or a file behind @."""
    words = line.split(" ")
    last = words[-1]
    if len(words) == 1 and last.startswith("/") and "/" not in last[1:]:
        names = [name for c in COMMANDS for name in (c.name, *c.aliases)]
        names += talk.own.commands
        return sorted(f"/{name} " for name in names if name.startswith(last[1:].lower()))
    if last.startswith("@"):
        return [f"@{path}" for path in _files(talk.services.workspace, last[1:])]
    return ()


def _files(root: Path, begun: str) -> list[str]:
    """The files and folders that a path may go on with."""
    folder, _, start = begun.rpartition("/")
    here = root / folder
    try:
        found = sorted(here.iterdir())
    except OSError:
        return []
    prefix = f"{folder}/" if folder else ""
    return [
        f"{prefix}{path.name}{'/' if path.is_dir() else ' '}"
        for path in found
        if path.name.startswith(start) and (start or not path.name.startswith("."))
    ][:_MATCHES]
