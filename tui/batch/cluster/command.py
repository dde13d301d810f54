"""`holdfast run --on ENGINE`: store, engine and driver of a run, put together."""

from __future__ import annotations

import asyncio
import shlex
from typing import Final

from tui.agent.confined_programs import confinement_of
from tui.app.options.arguments import Options
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.cluster.engines.local import LocalEngine
from tui.batch.cluster.engines.port import EngineError, WorkerEngine
from tui.batch.cluster.engines.slurm import SlurmEngine, slots_of
from tui.batch.cluster.engines.ssh import SshEngine, hosts_of
from tui.batch.cluster.lease import change, read_task, ref_of
from tui.batch.cluster.relay import WorkerEvents
from tui.batch.cluster.run_in_store import stores_of
from tui.batch.cluster.task_store import StoreError, TaskStore, whole_address
from tui.batch.cluster.worker import private_place, scratch_folder
from tui.batch.events import EventSink
from tui.batch.plan import RunPlan
from tui.batch.state import PlacedRun, RunFolder
from tui.core.clock import Clock, SuspendAwareClock
from tui.core.errors import HoldfastError, UsageError
from tui.core.formatting import plural
from tui.core.git.checkout import Checkout
from tui.core.paths import workspace_slug
from tui.permissions.types import Approver

_SHA1_DIGITS: Final = 40


async def make_runner(
    planned: RunPlan,
    options: Options,
    sink: EventSink,
    clock: Clock,
    approver: Approver | None = None,
) -> PlacedRunner:
    """Make the driver of a run on machines; the `approver` is that of its screen, if it has one.
    Raises UsageError, StoreError, EngineError."""
    await asyncio.to_thread(planned.worktrees.check)
    if len(Checkout.of(planned.target).commit()) != _SHA1_DIGITS:
        raise UsageError(
            "This repository names its objects by SHA-256, and a store can't hold them.",
            hint="Run the tasks one after the other, without --parallel and --on.",
        )
    engine = await asyncio.to_thread(_engine, planned, options, clock)
    confinement = confinement_of(planned.launch, "run")
    try:
        confined = await confinement.engine() is not None
    finally:
        await confinement.close()
    store = await asyncio.to_thread(_store, planned, options, engine)
    printed: WorkerEvents | None = None
    if isinstance(engine, LocalEngine):
        # a script has no cache that the first one could write
        is_script = planned.launch.access.practice
        place = private_place(scratch_folder(options), store.address)
        printed = WorkerEvents(engine, place, clock, answered=is_script)
    return PlacedRunner(
        planned,
        options,
        store,
        engine,
        sink,
        clock=SuspendAwareClock(),
        confined=confined,
        approver=approver,
        printed=printed,
    )


def _engine(planned: RunPlan, options: Options, clock: Clock) -> WorkerEngine:
    named, slots = options.batch.on or "", options.batch.parallel
    logs = RunFolder(planned.target).path / "workers"
    kind, _, places = named.partition(":")
    match kind:
        case "local":
            return LocalEngine(slots, logs)
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
        folder = stores_of(planned.launch.folders) / workspace_slug(planned.target)
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
    """Cancel the tasks of a run: whoever works on one ends. Says in a sentence what was done.

    A folder that came from somebody else may have a state that names a store of theirs, whose hooks
    would run: only one that was used from here before, or that the person names, is gone to.
    """
    ended = 0
    try:
        place = private_place(scratch_folder(options), placed.store)
        named = options.batch.store and whole_address(options.batch.store) == placed.store
        if not named and not TaskStore.is_known(place):
            return (
                f"The tasks in {placed.store} aren't cancelled, since that store was never used "
                "from here. If it's yours, name it with --reset --store."
            )
        store = TaskStore.at(placed.store, place)
        for key in placed.keys:
            ref = ref_of(placed.run, key)
            while not (found := read_task(store, ref)).entry.is_over and not found.entry.cancelled:
                if change(store, ref, found, cancelled=True):
                    ended += found.entry.state == "running"
    except HoldfastError as error:
        return f"The tasks in {placed.store} couldn't be cancelled, and may run on: {error}"
    running = f"; {plural(ended, 'worker')} will end within seconds" if ended else ""
    return f"The tasks in {placed.store} are cancelled{running}. What they had done stays there."
