"""`holdfast run --on ENGINE`: the store, the engine and the driver of a run, put together. Blocks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from tui.agent.confined_programs import confinement_of
from tui.app.options.arguments import Options
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.cluster.engines.local import LocalEngine
from tui.batch.cluster.engines.port import Engine, EngineError
from tui.batch.cluster.task_store import StoreError, TaskStore, whole_address
from tui.batch.cluster.worker import private_place, scratch_folder
from tui.batch.events import BatchEvent
from tui.batch.plan import RunPlan
from tui.batch.state import RunFolder
from tui.core.clock import Clock
from tui.core.errors import UsageError
from tui.core.paths import workspace_slug


async def make_runner(
    planned: RunPlan, options: Options, publish: Callable[[BatchEvent], None], clock: Clock
) -> PlacedRunner:
    """Make the driver of a run on machines. Raises UsageError, StoreError, EngineError."""
    planned.worktrees.check()
    engine = await asyncio.to_thread(_engine, planned, options)
    confinement = confinement_of(planned.launch, "run")
    try:
        confined = await confinement.engine() is not None
    finally:
        await confinement.close()
    store = _store(planned, options, engine)
    return PlacedRunner(planned, options, store, engine, publish, clock=clock, confined=confined)


def _engine(planned: RunPlan, options: Options) -> Engine:
    named, slots = options.batch.on or "", options.batch.parallel
    if named == "local":
        slots = slots if slots > 1 else os.cpu_count() or 1
        return LocalEngine(slots, RunFolder(planned.target).path / "workers")
    if named.startswith(("tls://", "tcp://")):
        slots = slots if slots > 1 else 0
        return _dask(named, slots, insecure=options.batch.insecure_cluster)
    raise UsageError(f"There is no engine {named}.", hint="There are: local, and tls://HOST:PORT.")


def _dask(address: str, slots: int, *, insecure: bool) -> Engine:
    try:
        from tui.batch.cluster.engines.dask import DaskEngine  # noqa: PLC0415 - an extra, and slow
    except ModuleNotFoundError as error:
        raise EngineError(
            f"Dask isn't installed here: {error}.",
            hint="Install Holdfast with its extra: holdfast[cluster]",
        ) from error
    return DaskEngine(address, slots, insecure=insecure)


def _store(planned: RunPlan, options: Options, engine: Engine) -> TaskStore:
    address = options.batch.store
    if address is None and engine.name == "local":
        folder = planned.launch.folders.data / "stores" / workspace_slug(planned.target)
        address = str(folder.with_suffix(".git"))
    if address is None:
        raise StoreError(
            f"The machines of {engine.name} need a store that all of them reach.",
            hint="Name a bare git repository: --store /shared/runs.git, or --store HOST:runs.git",
        )
    address = whole_address(address)
    store = TaskStore.at(address, private_place(scratch_folder(options), address))
    store.make()
    return store
