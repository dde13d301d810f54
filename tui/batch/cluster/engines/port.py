"""The port for engines. An engine places processes, and no more: it may lose, repeat or forget what
it was given. Nothing is believed because an engine says it; the store alone has the truth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from tui.core.errors import HoldfastError

Life: TypeAlias = Literal["lives", "waits", "ended", "unknown"]
"""`waits`: the engine has it, and no machine for it yet. `unknown`: it can't say, or never heard of
it."""


class EngineError(HoldfastError):
    """An engine can't be reached, or refuses."""


class WorkerEngine(Protocol):
    """Starts workers. Every method blocks, and may raise EngineError."""

    name: str
    """As `--on` has it, and for the person."""
    slots: int
    """Workers that it is given at a time."""
    look_s: float
    """Seconds between two looks at its workers and the store."""
    outlives: bool
    """True if workers run on when the window of the run is closed."""

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        """Start workers by their keys: each with the words of its command, without the program;
        the second is RUN/TASK. Returns a handle for each that was taken: that very word, where a
        later driver can find the worker by it."""
        ...

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        """Say whether the processes of handles live."""
        ...

    def fetch(self, handle: str) -> str:
        """Return the end of what a process has printed, "" where that isn't known."""
        ...

    def cancel(self, handles: Collection[str]) -> None:
        """End processes; those that have ended are passed over."""
        ...

    def close(self) -> None:
        """Let go of the engine. What outlives it runs on."""
        ...
