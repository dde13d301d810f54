"""`holdfast run --on ENGINE`: store, engine and driver of a run, put together."""

from __future__ import annotations

import asyncio
import os
import shlex

from tui.agent.confined_programs import confinement_of
from tui.app.options.arguments import Options
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.cluster.engines.local import LocalEngine
from tui.batch.cluster.engines.port import EngineError, WorkerEngine
from tui.batch.cluster.engines.slurm import SlurmEngine, slots_of
from tui.batch.cluster.engines.ssh import SshEngine, hosts_of
from tui.batch.cluster.lease import change, read_task, ref_of
from tui.batch.cluster.task_store import StoreError, TaskStore, whole_address
from tui.batch.cluster.worker import private_place, scratch_folder
from tui.batch.events import EventSink
from tui.batch.plan import RunPlan
from tui.batch.state import PlacedRun, RunFolder
from tui.core.clock import Clock
from tui.core.errors import HoldfastError, UsageError
from tui.core.formatting import plural
from tui.core.paths import workspace_slug
from tui.permissions.types import Approver


async def make_runner(
    planned: RunPlan,
    options: Options,
    sink: EventSink,
    clock: Clock,
    approver: Approver | None = None,
) -> PlacedRunner:
    """Make the driver of a run on machines; the `approver` is that of its screen, if it has one.
    Raises UsageError, StoreError, EngineError."""
    planned.worktrees.check()
    engine = await asyncio.to_thread(_engine, planned, options, clock)
    confinement = confinement_of(planned.launch, "run")
    try:
        confined = await confinement.engine() is not None
    finally:
        await confinement.close()
    store = _store(planned, options, engine)
    return PlacedRunner(
        planned,
        options,
        store,
        engine,
        sink,
        clock=clock,
        confined=confined,
        approver=approver,
    )


def _engine(planned: RunPlan, options: Options, clock: Clock) -> WorkerEngine:
    named, slots = options.batch.on or "", options.batch.parallel
    logs = RunFolder(planned.target).path / "workers"
    kind, _, places = named.partition(":")
    match kind:
        case "local":
            return LocalEngine(slots if slots > 1 else os.cpu_count() or 1, logs)
        case "slurm":
            return SlurmEngine(slots_of(slots), logs)
        case "ssh":
            program = shlex.split(options.batch.remote or "") or ["holdfast"]
            return SshEngine(named, hosts_of(places, slots), program, logs, clock)
        case "tls" | "tcp":
            slots = slots if slots > 1 else 0
            return _dask(named, slots, insecure=options.batch.insecure_cluster)
        case _:
            raise UsageError(
                f"There is no engine {named}.",
                hint="There are: local, slurm, ssh:HOST,HOST, tls://HOST:PORT.",
            )


def _dask(address: str, slots: int, *, insecure: bool) -> WorkerEngine:
    try:
        from tui.batch.cluster.engines.dask import DaskEngine  # noqa: PLC0415 - an extra, and slow
    except ModuleNotFoundError as error:
        raise EngineError(
            f"Dask isn't installed here: {error}.",
            hint="Install Holdfast with its extra: holdfast[cluster]",
        ) from error
    return DaskEngine(address, slots, insecure=insecure)


def _store(planned: RunPlan, options: Options, engine: WorkerEngine) -> TaskStore:
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


def cancel(placed: PlacedRun, options: Options) -> str:
    """Cancel the tasks of a run: whoever works on one ends. Says in a sentence what was done."""
    ended = 0
    try:
        store = TaskStore.at(placed.store, private_place(scratch_folder(options), placed.store))
        for key in placed.keys:
            ref = ref_of(placed.run, key)
            while not (found := read_task(store, ref)).entry.is_over and not found.entry.cancelled:
                if change(store, ref, found, cancelled=True):
                    ended += found.entry.state == "running"
    except HoldfastError as error:
        return f"The tasks in {placed.store} couldn't be cancelled, and may run on: {error}"
    running = f"; {plural(ended, 'worker')} will end within seconds" if ended else ""
    return f"The tasks in {placed.store} are cancelled{running}. What they had done stays there."
