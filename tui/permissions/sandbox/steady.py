"""Starts a command that only reads where there are no walls: `steady_command` runs it, and its
output counts only if its paths led to what was allowed the whole time."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tui.core.errors import ToolError
from tui.keeper.command import Keep, MonitorReport, Starter
from tui.permissions.plain_command import ReadableArea, ReadPlace, parse, places_read
from tui.permissions.sandbox import steady_command
from tui.permissions.sandbox.steady_command import Place


def steady(command: str, folder: Path, area: ReadableArea, start: Starter) -> Starter:
    """Make a starter, by `start`, for a plain command in `folder`. Blocks.

    It is `start` itself if the command reads no files. Raises ToolError if it would by now read
    outside the area.
    """
    named = dict.fromkeys(places_read(parse(command) or (), folder))
    if len(named) == 1:
        return start
    places = json.dumps([place for one in named for place in _checked(one, folder, area)])

    async def started(
        argv: Sequence[str], cwd: Path, env: Mapping[str, str], keep: Keep
    ) -> tuple[int, MonitorReport]:
        program = (sys.executable, "-I", "-S", steady_command.__file__, places)
        return await start((*program, *argv), cwd, env, keep)

    return started


def _checked(one: ReadPlace, folder: Path, area: ReadableArea) -> Iterator[Place]:
    """Yield the places to watch for a path that is read."""
    real = Path(os.path.realpath(folder / one.path))
    walks = one.below and not one.git
    if not (area.walks(real) if walks else area.reads(real)):
        raise ToolError("The path now leads somewhere else; nothing was done.")
    yield str(one.path), str(real), walks
    if one.git:  # its repository may begin further up
        inside = area.workspace
        for root in (inside.root, *inside.extra):
            if real == root or root in real.parents:
                yield os.path.relpath(root, folder), str(root), True
