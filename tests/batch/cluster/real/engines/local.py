"""This machine as the engine: no daemons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.batch.cluster.real.processes import Process
from tests.batch.cluster.real.scene import DRIVERS_KEY, Scene


class RealLocal:
    """Workers are children of the driver, and have its key."""

    makes_store = True
    outlives = False
    extras: Mapping[str, int] = {}
    secret: Sequence[Path] = ()

    def __init__(self, scene: Scene) -> None:
        self.words: Sequence[str] = ["--on", "local"]
        self.store, self.repository = str(scene.store), scene.store
        self.driver_env: Mapping[str, str] = {}
        self.worker_env: Mapping[str, str] = {**scene.env, "ANTHROPIC_API_KEY": DRIVERS_KEY}

    def start(self) -> None:
        """There is nothing to start."""

    def make_store(self) -> None:
        """The run makes it."""

    def kinds(self) -> Mapping[int, str]:
        return {}

    async def restart(self) -> str:
        return ""

    async def hurt(self, fault: str) -> str:
        raise KeyError(fault)

    def cancel(self, worker: Process, handle: str) -> str:
        return "there is no more to take away"

    def tend(self) -> None:
        """There is nothing to tend."""

    def jobs(self) -> Sequence[str]:
        return ()
