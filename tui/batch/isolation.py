"""Isolation of tasks: the interface, and an implementation that isolates nothing."""

from __future__ import annotations

from typing import Protocol

from tui.core.errors import HoldfastError


class IsolationError(HoldfastError):
    """A task's files cannot be kept apart any more; the run stops."""


class Isolation(Protocol):
    """Keeps the files of one task apart from those of the next. Blocks; used in a thread.

    `begin`, then either `keep` or `undo`, for every attempt, and `finish` once the outcome is
    saved. `recover` at the start of a run, for what a killed one left behind: until `finish`
    even a kept task can be undone, as nobody knows of it.
    """

    @property
    def name(self) -> str: ...

    def check(self) -> None:
        """Raise UsageError, with the way on, where tasks cannot be kept apart here."""
        ...

    def begin(self) -> str:
        """Returns the id of the change that begins, "" where there is none."""
        ...

    def keep(self, message: str, /) -> str:
        """Returns the id of the change that holds the task's work, "" if it changed nothing."""
        ...

    def undo(self, label: str, /) -> str:
        """Put the files back. Returns where the attempt can be looked at, "" for nowhere."""
        ...

    def finish(self) -> None:
        """The outcome of the task is saved: it is never undone any more."""
        ...

    def recover(self, label: str, /) -> str:
        """Undo what a killed run left behind. Returns what `undo` does."""
        ...


class NoIsolation:
    """Every task works on the files as the one before left them."""

    name = "none"

    def check(self) -> None:
        pass

    def begin(self) -> str:
        return ""

    def keep(self, _: str, /) -> str:
        return ""

    def undo(self, _: str, /) -> str:
        return ""

    def finish(self) -> None:
        pass

    def recover(self, _: str, /) -> str:
        return ""
