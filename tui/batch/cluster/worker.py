"""`holdfast work`: one task of a run on many machines, as one process.

It takes the task's lease, makes the task's folder, and works through its tasks as any run without
a screen does. Before each request the record and the files are put into the store: whatever kills
this process, at most the answer to one request is lost, and another worker goes on from there.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import tui
from tui.agent.confined_programs import confinement_of
from tui.app import unattended_commands as unattended
from tui.app.options.arguments import Options
from tui.app.packs.pack import default_name, pack
from tui.batch.cluster.asking import StoreApprover
from tui.batch.cluster.lease import (
    Lease,
    LeaseLostError,
    LeasePace,
    StoredTask,
    SuspendAwareClock,
    read_task,
    ref_of,
    refuse,
)
from tui.batch.cluster.run_spec import BOOT_FILE, RunSpec, python_version, spec_of
from tui.batch.cluster.task_store import RUNS, TASKS, StoreError, TaskStore, whole_address
from tui.batch.cluster.waits import SharedWaits
from tui.batch.cluster.workplace import TaskSnapshot, Workplace
from tui.batch.composition import RunComposition
from tui.batch.events import BatchEvent, FromAgent
from tui.batch.plan import RunPlan, plan
from tui.batch.runner import Runner
from tui.core.clock import Clock
from tui.core.config import Price
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import CredentialsError, HoldfastError, ProviderError, UsageError, os_error_as
from tui.core.facts import RequestPaid, StorageChanged
from tui.core.paths import Folders, folders
from tui.core.process_birth import born
from tui.core.signals import heeded_signals
from tui.core.standard_output import note, print_text
from tui.permissions.gate import RulesOnly
from tui.provider.base import Provider, Request, StreamPart
from tui.provider.prices import price_of
from tui.provider.provider_wrapper import ProviderWrapper
from tui.tokens.estimate import request_weight

EXIT_DONE: Final = 0
EXIT_REFUSED: Final = 75
"""This machine can't take tasks of the run."""
EXIT_LOST: Final = 76
"""Another worker has the task, or it was cancelled."""
EXIT_STOPPED: Final = 143
PACKS: Final = "packs"
"""The folder of the finished task's sessions in the store."""
_MARGIN: Final = 1.3
"""Tokens of a request may be so many times the estimate."""
_END_S: Final = 20.0
"""Seconds that a stopped run has for ending its commands."""
_PDEATHSIG: Final = 1


class RefusedError(HoldfastError):
    """This machine can't take tasks of the run: that is no attempt."""


def run(options: Options) -> int:
    """Carry out `holdfast work KEY --store S`. Raises HoldfastError."""
    run_name, _, key = (options.target or "").partition("/")
    if not (run_name and key and options.batch.store):
        raise UsageError("holdfast work needs RUN/TASK and --store.")
    _die_with_parent()
    usual = folders()
    address = whole_address(options.batch.store)
    place = private_place(scratch_folder(options), address)
    store = TaskStore.at(address, place)
    ref = ref_of(run_name, key)
    try:
        with _alone(place / run_name / key, store, ref):
            code = asyncio.run(_work(store, run_name, key, place, usual))
            _sweep(store, run_name, place / run_name)
            return code
    except LeaseLostError:
        return EXIT_LOST
    except (RefusedError, CredentialsError) as error:
        refuse(store, ref, str(error))
        note(f"Not taken: {error}")
        return EXIT_REFUSED


def scratch_folder(options: Options) -> Path:
    """The folder for tasks of stores on this machine. The same on every machine, so that a lost
    task can go on; and no home folder, which is hidden from commands."""
    if options.batch.scratch is not None:
        return options.batch.scratch.absolute()
    if home := os.environ.get("HOLDFAST_HOME"):
        return Path(home).expanduser().absolute() / "work"
    return Path("/var/tmp") / f"holdfast-{os.getuid()}"  # noqa: S108


def private_place(scratch: Path, address: str) -> Path:
    """The folder of one store, which is nobody else's. Raises StoreError."""
    with os_error_as(StoreError, f"Can't make {scratch}"):
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = scratch.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise StoreError(f"{scratch} isn't yours alone.", hint="Name another folder: --scratch DIR")
    return Path(os.path.realpath(scratch)) / sha256(address.encode()).hexdigest()[:12]


@contextmanager
def _alone(place: Path, store: TaskStore, ref: str) -> Generator[None]:
    """Keep a second worker of the same task on this machine out of its folder. One that has lost
    the task and is still there, because it was stopped, is ended. Raises LeaseLostError while
    another has it."""
    with os_error_as(StoreError, f"Can't make {place}"):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if read_task(store, ref).entry.state == "running":
                raise LeaseLostError from None
            _end_worker(os.pread(file, 200, 0).decode("ascii", "replace"))
            fcntl.flock(file, fcntl.LOCK_EX)
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()} {born(os.getpid())}".encode(), 0)
        yield
    finally:
        os.close(file)


def _end_worker(noted: str) -> None:
    """End the worker of a note."""
    pid, _, birth = noted.partition(" ")
    if pid.isdigit() and birth and born(int(pid)) == birth:
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _die_with_parent() -> None:
    """Get SIGTERM when whoever started this is gone (Linux only)."""
    parent = os.getppid()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


async def _work(store: TaskStore, run: str, key: str, place: Path, usual: Folders) -> int:
    """Take the task and work on it to its end. Returns the exit code."""
    ref, run_ref = ref_of(run, key), f"{RUNS}{run}"
    run_commit = await asyncio.to_thread(lambda: store.refs(run_ref).get(run_ref))
    if run_commit is None:
        raise StoreError(f"The store has no run {run}.")
    await asyncio.to_thread(store.fetch, [run_commit])
    await asyncio.to_thread(store.keep, run_ref, run_commit)
    spec = spec_of(await asyncio.to_thread(store.message, run_commit))
    _check_versions(spec)
    workplace = Workplace(place / run / key, spec)
    job, clock = _Job(asyncio.get_running_loop()), SuspendAwareClock()
    job.lease = lease = Lease(store, ref, LeasePace(spec.lease_s), clock, job)
    job.workplace = workplace
    ending = asyncio.create_task(_hard_end(job))
    try:
        with heeded_signals(job.stop):
            return await _hold(job, store, run_commit, usual, clock)
    except LeaseLostError:
        return EXIT_LOST
    except (RefusedError, UsageError, CredentialsError) as error:
        if lease.is_held:
            with suppress(LeaseLostError):
                lease.finish(state="waiting", holder="", attempt=lease.stored.entry.attempt - 1)
        raise RefusedError(error.message, hint=error.hint) from error
    except HoldfastError as error:
        if lease.is_held:
            with suppress(LeaseLostError):
                lease.fail(error.message)
        raise
    finally:
        ending.cancel()


async def _hold(job: _Job, store: TaskStore, run_commit: str, usual: Folders, clock: Clock) -> int:
    """Take the task, and work on it in its folder. Raises LeaseLostError, HoldfastError."""
    lease, workplace = job.lease, job.workplace
    found = await asyncio.to_thread(lease.take, str(workplace.place))
    if found is None:
        return EXIT_LOST
    if not job.stopped:
        await _end_leftovers(workplace.folders(usual), clock)
        goes_on = await asyncio.to_thread(
            workplace.make, store, run_commit, found.commit, found.entry
        )
        key, why = found.entry.key, _why_again(found, workplace, goes_on=goes_on)
        _say(why or f"Task {key} {'goes on where it was' if goes_on else 'begins'}.")
        planned = await asyncio.to_thread(_planned, workplace, usual, found.entry.remaining_usd)
        await _check_sandbox(workplace.spec, planned)
        if key_used := planned.launch.access.key:
            job.waits = SharedWaits(store, workplace.spec.run, key_used, clock)
        await _run(job, planned, store, clock, found)
    if job.stopped and lease.is_held:
        entry = lease.stored.entry
        back: dict[str, Any] = {
            "ended": f"stopped by a signal on {entry.host}",
            "spent_usd": job.spent if job.requests else entry.spent_usd,
            "reserved_usd": entry.reserved_usd + job.asked_usd,
            "next_usd": 0.0,
        }
        await asyncio.to_thread(lambda: lease.finish(state="waiting", holder="", **back))
        return EXIT_STOPPED
    return EXIT_DONE


def _why_again(found: StoredTask, workplace: Workplace, *, goes_on: bool) -> str:
    """Say why a task that was lost begins again; "" where it goes on, or begins."""
    if goes_on or not found.entry.head:
        return ""
    return (
        f"Task {found.entry.key} begins again: it was worked on in {found.entry.place}, and here "
        f"that is {workplace.place}."
    )


def _check_versions(spec: RunSpec) -> None:
    ours, theirs = (tui.__version__, python_version()), (spec.version, spec.python)
    if ours != theirs:
        raise RefusedError(
            f"This is Holdfast {ours[0]} with Python {ours[1]}; the run was made with "
            f"{theirs[0]} and Python {theirs[1]}."
        )


async def _check_sandbox(spec: RunSpec, planned: RunPlan) -> None:
    if not spec.confined:
        return
    confinement = confinement_of(planned.launch, "work")
    try:
        if await confinement.engine() is None:
            raise RefusedError("Commands can't be confined on this machine, and the run wants it.")
    finally:
        await confinement.close()


async def _end_leftovers(home: Folders, clock: Clock) -> None:
    """End the commands that a killed worker of this task left on this machine."""
    left = await asyncio.to_thread(unattended.unattended_commands, home)
    if failed := await unattended.end_commands(left, clock):
        raise RefusedError(f"Can't stop a command of the last worker: {failed[0]}.")


def _planned(workplace: Workplace, usual: Folders, most: float | None) -> RunPlan:
    """The run of this task alone, which may cost `most`: its state says that all others are done.
    Blocks."""
    spec = workplace.spec
    script = Path(spec.script) if spec.script else None
    options = Options(command="run").having(
        tasks=workplace.task_file,
        cwd=workplace.target,
        headless=True,
        max_cost=most,
        practice_script=script,
        **spec.options,
    )
    settled = {**spec.config, "batch": {**spec.config.get("batch", {}), "max_cost": 0.0}}
    home = workplace.folders(usual)
    planned = plan(options, home=home, settled=settled, trusted=spec.trust)
    workspace = planned.launch.workspace
    objects = Path(os.path.realpath(workplace.base / "objects"))
    launch = replace(
        planned.launch,
        workspace=replace(workspace, readable=(*workspace.readable, objects)),
        boot=workplace.target / ".holdfast" / BOOT_FILE if spec.boot else planned.launch.boot,
    )
    return replace(planned, launch=launch)


async def _run(
    job: _Job, planned: RunPlan, store: TaskStore, clock: Clock, found: StoredTask
) -> None:
    """Work through the task, and put its result into the store, unless it was stopped. Raises
    LeaseLostError, RefusedError."""
    job.requests, job.spent = found.entry.requests, found.entry.spent_usd
    job.prices = planned.launch.config.prices
    spec, redact = job.workplace.spec, planned.launch.config.redact == "record"
    asking = StoreApprover(store, spec.run, job, clock, redact=redact)
    shop = RunComposition(
        planned,
        job.see,
        approver=asking if spec.asks else RulesOnly(),
        clock=clock,
        around=lambda model, _: _StoredFirst(model, job),
    )
    job.runner = runner = shop.runner
    try:
        if not job.stopping.is_set():
            await runner.run()
    finally:
        await shop.close()
    if job.lease.is_lost:
        raise LeaseLostError
    if runner.fatal_class == "auth":
        raise RefusedError(runner.reason)
    if job.stopped:
        return
    if job.unsaved:
        raise StoreError(f"The session can't be saved: {job.unsaved}")
    last = await asyncio.to_thread(_last, job, planned.launch.folders, clock)
    done = {"state": "done", "spent_usd": job.spent, "requests": job.requests, "next_usd": 0.0}
    await asyncio.to_thread(lambda: job.lease.finish(last, ended="", **done))
    spare = not any(
        one.state == "running" for one in unattended.unattended_commands(planned.launch.folders)
    )
    await asyncio.to_thread(lambda: job.workplace.remove(spare=spare))


def _sweep(store: TaskStore, run: str, folder: Path) -> None:
    """Remove what killed workers of a run left of tasks that are over. Blocks."""
    places = [path for path in folder.iterdir() if path.is_dir()]
    refs = store.refs(f"{TASKS}{run}/") if places else {}
    for path in places:
        if commit := refs.get(ref_of(run, path.name)):
            store.fetch([commit])
            if store.entry(commit).is_over:
                shutil.rmtree(path, ignore_errors=True)


async def _hard_end(job: _Job) -> None:
    """End the process where a stopped run doesn't come to its end."""
    await job.stopping.wait()
    await asyncio.sleep(_END_S)
    os.killpg(0, signal.SIGKILL) if os.getpgrp() == os.getpid() else os._exit(EXIT_STOPPED)


def _last(job: _Job, home: Folders, clock: Clock) -> TaskSnapshot:
    """The state of a finished task, with its sessions as packs. Blocks."""
    snapshot = job.workplace.snapshot(job.lease.store)
    files = dict(snapshot.files)
    with TemporaryDirectory(prefix="holdfast-") as folder:
        for path in sorted(home.sessions.glob("*/*.jsonl")):
            out = Path(folder) / default_name(path)
            pack(path, out, folders=home, clock=clock, secrets="keep")
            files[f"{PACKS}/{out.name}"] = out.read_bytes()
    return replace(snapshot, files=files)


@dataclass(slots=True)
class _Job:
    """The task at work: what stops it, what it has paid, and what is done before each request."""

    loop: asyncio.AbstractEventLoop
    runner: Runner | None = None
    stopped: bool = False
    requests: int = 0
    spent: float | None = 0.0
    asked_usd: float = 0.0
    """The most that the answer to the last request may cost, until it is paid."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    unsaved: str = ""
    """The reason why the session isn't on the disk; "" where it is."""
    waits: SharedWaits | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _putting: asyncio.Lock = field(default_factory=asyncio.Lock)
    lease: Lease = field(init=False)
    workplace: Workplace = field(init=False)

    @property
    def task(self) -> int:
        """The place in the task file of what is worked on."""
        running = self.runner.running if self.runner else ()
        return next(iter(running), self.lease.stored.entry.tasks[0])

    def lose(self) -> None:
        """The task is somebody else's: nothing more is done for it."""
        _say("The lease is lost: another worker has the task, or it was cancelled.")
        self.loop.call_soon_threadsafe(self._end)

    def poll(self) -> None:
        """Take in what others with the same key were asked to wait."""
        if self.waits is not None:
            self.waits.read()

    def stop(self) -> None:
        """A signal: the task waits for another worker, in its last state."""
        self.stopped = True
        self._end()

    def _end(self) -> None:
        self.stopping.set()
        if self.runner is not None:
            self.runner.stop()

    def see(self, event: BatchEvent) -> None:
        """Take in what the run publishes, and print it."""
        if isinstance(event, FromAgent) and isinstance(event.event, RequestPaid):
            usd, self.asked_usd = event.event.usd, 0.0
            self.spent = None if usd is None or self.spent is None else self.spent + usd
        if isinstance(event, FromAgent) and isinstance(event.event, StorageChanged):
            self.unsaved = "" if event.event.saved else event.event.detail
        _say(json.dumps(event.to_json(), ensure_ascii=True, separators=(",", ":")))

    async def ready(self, request: Request) -> None:
        """Return once the store has all that was done so far, and nobody can have the task
        instead. Never returns where it is lost, or can't be saved."""
        try:
            async with self._putting:
                if self.unsaved:  # the store wouldn't get what is paid from now on
                    self._end()
                    await asyncio.Event().wait()
                if not self.stopped:
                    await asyncio.to_thread(self._put, request)
                await self._keep_fresh()
            if self.waits is not None and (wait_s := self.waits.remaining_s(request.model)):
                await asyncio.sleep(wait_s)
                await self._keep_fresh()
        except LeaseLostError:
            await asyncio.Event().wait()  # until the run, which ends now, cancels it

    async def _keep_fresh(self) -> None:
        while not self.lease.is_fresh:
            with suppress(StoreError):
                await asyncio.to_thread(self.lease.renew)

    async def limited(self, model: str, wait_s: float) -> None:
        """Tell the other workers that the server has asked to wait. No failure of that counts."""
        if self.waits is not None:
            with suppress(StoreError):
                await asyncio.to_thread(self.waits.tell, model, wait_s)

    def _put(self, request: Request) -> None:
        self.requests += 1
        snapshot = self.workplace.snapshot(self.lease.store)
        self.asked_usd = _dearest(request, self.prices)
        self.lease.put(
            snapshot,
            requests=self.requests,
            spent_usd=self.spent,
            next_usd=self.asked_usd,
        )
        self.workplace.stored(snapshot)


def _dearest(request: Request, prices: Mapping[str, Price]) -> float:
    """The most that an answer may cost; 0 where there is no price."""
    price = price_of(request.model, prices)
    if price is None:
        return 0.0
    weight = request_weight(request.system, request.tools, request.messages)
    return price.forecast(written=int(weight * _MARGIN), output=request.max_tokens)


class _StoredFirst(ProviderWrapper):
    """A model that is asked only once the store has all that was done before."""

    def __init__(self, model: Provider, job: _Job) -> None:
        super().__init__(model)
        self._job = job

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        await self._job.ready(request)
        try:
            async with aclosing(self._provider.stream(request)) as parts:
                async for part in parts:
                    yield part
        except ProviderError as error:
            if error.error_class == "rate_limit" and error.retry_after:
                await self._job.limited(request.model, error.retry_after)
            raise


def _say(text: str) -> None:
    """A line on stdout, which the engine keeps; nothing depends on it."""
    with suppress(OSError):
        print_text(text)
        sys.stdout.flush()
