"""Which isolation a folder has: jj before git, since a repository may be both; else none."""

from __future__ import annotations

from pathlib import Path

from tui.batch.git import GitIsolation
from tui.batch.isolation import Isolation, NoIsolation
from tui.batch.jj import JjIsolation


def find_isolation(target: Path, task_file: Path) -> Isolation:
    """The isolation of the tasks run in `target`. Blocks."""
    return (
        JjIsolation.find(target, task_file) or GitIsolation.find(target, task_file) or NoIsolation()
    )
