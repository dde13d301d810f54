"""The port for what differs between the engines: how their daemons start, end and can be hurt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.batch.cluster.real.processes import Process


class RealEngine(Protocol):
    """An engine with daemons of its own, in the harness's namespace."""

    words: Sequence[str]
    """The words that `run` gets for it, without the store."""
    store: str
    """The store's address."""
    repository: Path
    """The folder of the store."""
    makes_store: bool
    """True if the run makes the store itself."""
    outlives: bool
    """True if workers run on without the driver."""
    driver_env: Mapping[str, str]
    worker_env: Mapping[str, str]
    """The environment in which its workers begin."""
    extras: Mapping[str, int]
    """Faults that only this engine has, and how often: `hurt` carries them out."""
    secret: Sequence[Path]
    """Folders, beside the store, that never may have the driver's key."""

    def start(self) -> None:
        """Start the daemons, and wait until they serve."""
        ...

    def make_store(self) -> None:
        """Make the store, where the run doesn't do it. Until then the run says how."""
        ...

    def kinds(self) -> Mapping[int, str]:
        """The daemons, by name."""
        ...

    async def restart(self) -> str:
        """Kill the scheduler, and start it again; says what was done, "" where there is none."""
        ...

    async def hurt(self, fault: str) -> str:
        """Carry out one of the `extras`; says what was done."""
        ...

    def cancel(self, worker: Process, handle: str) -> str:
        """Take a killed worker's place away, behind the driver's back; says how."""
        ...

    def tend(self) -> None:
        """Start again what a cluster's keeper would start again. Called every few seconds."""
        ...

    def jobs(self) -> Sequence[str]:
        """The work that the engine still has."""
        ...
