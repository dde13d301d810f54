"""Isolation of tasks: the interface, and its form where nothing keeps tasks apart."""

from __future__ import annotations

import os
from pathlib import Path

from tui.core.errors import HoldfastError
from tui.core.workspace import PRIVATE_DIR


class IsolationError(HoldfastError):
    """A task's files cannot be kept apart any more; the run stops."""


class Isolation:
    """Keeps the files of one task apart from those of the next. Blocks; used in a thread.

    `begin`, then either `keep` or `undo`, for every attempt, and `finish` once the outcome is
    saved. At the start of a run, for what a killed one left behind, `resume` or `recover`: until
    `finish` even a kept task can be undone, as nobody knows of it.

    This one isolates nothing: every task works on the files as the one before left them.
    """

    name = "none"

    def check(self) -> None:
        """Raise UsageError, with the way on, where tasks cannot be kept apart here."""

    def begin(self) -> str:
        """A task begins here. Returns the commit it starts from, "" where there is none."""
        return ""

    def keep(self, message: str) -> str:  # noqa: ARG002 - the others do
        """The task is done. Returns the id of the change that holds its work, "" if it changed
        nothing."""
        return ""

    def stop(self) -> None:
        """End what keeping a task's work runs: the run ends. Doesn't block."""

    def undo(self, label: str) -> str:  # noqa: ARG002 - the others do
        """Put the files back. Returns where the attempt can be looked at, "" for nowhere."""
        return ""

    def finish(self) -> None:
        """The outcome of the task is saved: it is never undone any more."""

    def resume(self) -> bool:
        """Continue the task that a killed run was working on, with its files as they are. False if
        where it began isn't known, or the history has changed since."""
        return True

    def recover(self, label: str) -> str:  # noqa: ARG002 - the others do
        """Undo what a killed run left behind. Returns what `undo` does."""
        return ""


class NothingToIsolate(Isolation):
    """For questions in a message batch: they change no files."""

    name = "batch"


def excluded_paths(top: Path, target: Path, task_file: Path) -> tuple[str, ...]:
    """List the paths from `top` that are no task's work: the task file, the link that it was named
    by, and `.holdfast/` of `target`."""
    link = Path(os.path.realpath(task_file.parent)) / task_file.name
    own = [*(os.path.realpath(path) for path in (target / PRIVATE_DIR, task_file)), str(link)]
    within = (path for path in dict.fromkeys(own) if path.startswith(f"{top}{os.sep}"))
    return tuple(os.path.relpath(path, top) for path in within)
