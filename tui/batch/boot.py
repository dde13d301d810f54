"""The boot file of a run: which one, and whether it may be read (A6, A7, A9, A10). Blocks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tui.context.project_files import BOOT_FILES
from tui.core.errors import UsageError
from tui.core.paths import shorten
from tui.core.storage.atomic_files import read_small

_READ_MAX = 4_000_000


@dataclass(frozen=True, slots=True)
class Boot:
    """`named` is the file of a directive, None for the usual places; `shown` is as the banner
    has it, "" without a boot file."""

    named: Path | None = None
    shown: str = ""


def find(directive: str, task_file: Path, target: Path) -> Boot:
    """The boot file of a task file with this directive ("" for none) that is run in `target`.

    Raises UsageError for a directive whose file is missing, unreadable, or outside both folders.
    """
    if directive:
        return _named(directive, task_file.parent, target)
    for name in BOOT_FILES:
        path = target / name
        if os.path.lexists(path) and target in Path(os.path.realpath(path)).parents:
            return Boot(shown=name)
    return Boot()


def _named(directive: str, beside: Path, target: Path) -> Boot:
    folders = (beside, target)
    outside = False
    for folder in folders:
        try:
            real = Path(os.path.realpath(folder / directive))
        except ValueError:  # a NUL byte
            continue
        if not any(allowed in real.parents for allowed in folders):
            outside = True
            continue
        if real.exists():
            try:
                read_small(real, limit=_READ_MAX, whole=False)
            except OSError as error:
                raise UsageError(
                    f"The boot file {directive} cannot be read: {error.strerror or error}.",
                    hint="Correct the boot directive of the task file, or take the line out.",
                ) from error
            inside = target in real.parents
            return Boot(real, os.path.relpath(real, target) if inside else shorten(real))
    if outside:
        raise UsageError(
            f"The boot file {directive} lies outside the project.",
            hint=f"It must be in {shorten(target)} or beside the task file.",
        )
    raise UsageError(
        f"The boot file {directive}, which the task file names, does not exist.",
        hint=f"It is looked for in {shorten(beside)} and in {shorten(target)}.",
    )
