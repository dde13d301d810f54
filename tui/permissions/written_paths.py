"""The files that a command line can have changed, where its words alone tell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tui.core.workspace import Workspace
from tui.permissions.parsed_command import UNKNOWN, TooMuchError
from tui.permissions.plain_command import ReadableArea, parse, reasons_to_ask
from tui.permissions.risk_tiers import names

_NODES_MAX: Final = 20_000
_PROGRAMS: Final = frozenset(
    names(
        "cat echo printf true false : test [ sleep touch mkdir rmdir rm tee head tail wc ls pwd "
        "date basename dirname"
    )
)
"""What changes no file but those that its words name."""


def written_paths(command: str, folder: Path) -> frozenset[Path] | None:
    """Find the paths, absolute, that a line run in a folder may have written to, and no others;
    None where it may have changed anything. What it only names is among them."""
    from tui.permissions.shell import read  # noqa: PLC0415 - seldom needed

    plain = parse(command)
    if plain and not any(reasons_to_ask(plain, folder, ReadableArea(Workspace(folder)))):
        return frozenset()
    try:
        line = read(command, cwd=folder, known={"HOME": UNKNOWN}, most=_NODES_MAX)
    except TooMuchError:
        return None
    if line.problem or line.unseen or line.fork_bomb:
        return None
    named = [(one.cwd, one.target) for one in line.redirects]
    for one in line.commands:
        if one.assigned or not one.words or one.words[0].text not in _PROGRAMS:
            return None
        named += [(one.cwd, word) for word in one.words[1:]]
    found: set[Path] = set()
    for where, word in named:
        if where is None or not word.known or word.glob:
            return None
        found.add(Path(os.path.normpath(where / word.text)))
    return frozenset(found)
