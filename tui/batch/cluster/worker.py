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
import pwd
import select
import shutil
import signal
import stat
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

import tui
from tui.agent.confined_programs import confinement_of
from tui.agent.limits import Spent
from tui.app import unattended_commands as unattended
from tui.app.options.arguments import Options
from tui.app.packs.pack import default_name, pack
from tui.batch.cluster.asking import StoreApprover
from tui.batch.cluster.budget import TaskBill
from tui.batch.cluster.disk_space import is_full
from tui.batch.cluster.entry import ActiveTask, TaskEntry
from tui.batch.cluster.hard_end import EXIT_STOPPED, end_by_force, signals_for_sure
from tui.batch.cluster.lease import (
    Lease,
    LeaseLostError,
    LeasePace,
    StoredTask,
    read_task,
    ref_of,
    refuse,
)
from tui.batch.cluster.reaching import UnreachableError, reached
from tui.batch.cluster.run_spec import BOOT_FILE, RunSpec, python_version, spec_of
from tui.batch.cluster.task_store import RUNS, TASKS, StoreError, TaskStore, whole_address
from tui.batch.cluster.waits import SharedWaits
from tui.batch.cluster.workplace import TaskSnapshot, Workplace
from tui.batch.composition import RunComposition
from tui.batch.events import BatchEvent, FromAgent, RunFinished, TaskStarted
from tui.batch.plan import RunPlan, plan
from tui.batch.runner import Runner
from tui.batch.state import RunFolder
from tui.core.clock import Clock, SuspendAwareClock
from tui.core.config import Price
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import CredentialsError, HoldfastError, ProviderError, UsageError, os_error_as
from tui.core.facts import Notice, StorageChanged
from tui.core.git.door import GitError
from tui.core.paths import Folders, folders
from tui.core.process_birth import born
from tui.core.standard_output import note, print_text
from tui.permissions.gate import RulesOnly
from tui.provider.base import Completed, Provider, Request, StreamPart
from tui.provider.prices import price_of
from tui.provider.provider_wrapper import ProviderWrapper
from tui.tokens.estimate import request_weight

EXIT_DONE: Final = 0
EXIT_UNREACHABLE: Final = 74
"""This machine doesn't reach the store."""
EXIT_REFUSED: Final = 75
"""This machine can't take tasks of the run."""
EXIT_LOST: Final = 76
"""Another worker has the task, or it was cancelled."""
PACKS: Final = "packs"
"""The folder of the finished task's sessions in the store."""
_MARGIN: Final = 1.3
"""Tokens of a request may be so many times the estimate."""
_PDEATHSIG: Final = 1


class RefusedError(HoldfastError):
    """This machine can't take tasks of the run: that is no attempt."""


_NO_ATTEMPT: Final = (RefusedError, UnreachableError, UsageError, CredentialsError)


def run(options: Options) -> int:
    """Carry out `holdfast work KEY --store S`. Raises HoldfastError."""
    run_name, _, key = (options.target or "").partition("/")
    if not (run_name and key and options.batch.store):
        raise UsageError("holdfast work needs RUN/TASK and --store.")
    _die_with_parent()
    usual = folders()
    try:
        address = whole_address(options.batch.store)
        place = private_place(scratch_folder(options), address)
        return _run_in(place, TaskStore.at(address, place), run_name, key, usual)
    except LeaseLostError:
        return EXIT_LOST
    except UnreachableError as error:
        note(str(error))
        return EXIT_UNREACHABLE
    except StoreError as error:
        note(f"Not taken: {error}")
        return EXIT_REFUSED


def _run_in(place: Path, store: TaskStore, run: str, key: str, usual: Folders) -> int:
    """Work on a task in the folder of its store. Returns the exit code; raises HoldfastError,
    LeaseLostError."""
    ref = ref_of(run, key)
    try:
        with _alone(place / run / key, store, ref):
            code = asyncio.run(_work(store, run, key, place, usual))
            with suppress(StoreError, OSError):  # the next one does it
                _sweep(store, run, place / run)
            return code
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
    if found.st_uid != os.getuid():
        raise StoreError(
            f"{scratch} belongs to {_owner(found.st_uid)}.",
            hint="Have it removed, or name another folder: --scratch DIR",
        )
    if found.st_mode & 0o077:
        raise StoreError(
            f"{scratch} is open to others.",
            hint=f"Close it (chmod 700 {scratch}), or name another folder: --scratch DIR",
        )
    return Path(os.path.realpath(scratch)) / sha256(address.encode()).hexdigest()[:12]


def _owner(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"the user {uid}"


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
    """Get SIGTERM when whoever started this is gone (Linux only), which may have been while this
    program was loaded: the socket that an engine of this machine gives as stdin is then closed."""
    parent = os.getppid()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent or _is_orphaned():
        os.kill(os.getpid(), signal.SIGTERM)


def _is_orphaned() -> bool:
    """True if stdin is a socket whose other end nobody holds any more."""
    with suppress(OSError):
        if stat.S_ISSOCK(os.fstat(0).st_mode):
            ends = select.poll()
            ends.register(0, 0)
            return bool(ends.poll(0))
    return False


async def _work(store: TaskStore, run: str, key: str, place: Path, usual: Folders) -> int:
    """Take the task and work on it to its end. Returns the exit code."""
    ref, run_ref = ref_of(run, key), f"{RUNS}{run}"
    clock = SuspendAwareClock()
    refs = await reached(lambda: store.refs(run_ref), clock)
    run_commit = refs.get(run_ref)
    if run_commit is None:
        raise StoreError(f"The store has no run {run}.")
    await reached(lambda: store.fetch({run_ref: run_commit}), clock)
    spec = spec_of(await asyncio.to_thread(store.message, run_commit))
    _check_versions(spec)
    workplace = Workplace(place / run / key, spec)
    job = _Job(asyncio.get_running_loop())
    job.lease = lease = Lease(store, ref, LeasePace(spec.lease_s), clock, job)
    job.workplace = workplace
    try:
        await asyncio.to_thread(workplace.reserve_room)
        with signals_for_sure(job.stop):
            return await _hold(job, store, run_commit, usual, clock)
    except LeaseLostError:
        return EXIT_LOST
    except HoldfastError as error:
        has_no_room = is_full(error.message)
        if has_no_room:
            with suppress(OSError):
                await asyncio.to_thread(workplace.make_room)  # also for giving the task back
        if not has_no_room and not isinstance(error, _NO_ATTEMPT):
            if lease.is_held:
                with suppress(LeaseLostError):
                    lease.fail(error.message)
            raise
        if lease.is_held:
            with suppress(LeaseLostError):
                lease.finish(
                    **_given_back(job, error.message), attempt=lease.stored.entry.attempt - 1
                )
        if isinstance(error, UnreachableError):
            raise
        raise RefusedError(error.message, hint=error.hint) from error
    finally:
        for text in store.notes:
            _say(text)


async def _hold(job: _Job, store: TaskStore, run_commit: str, usual: Folders, clock: Clock) -> int:
    """Take the task, and work on it in its folder. Raises LeaseLostError, HoldfastError."""
    lease, workplace = job.lease, job.workplace
    found = await reached(lambda: lease.take(str(workplace.place)), clock)
    if found is None:
        return EXIT_LOST
    if not job.stopped:
        await _end_leftovers(workplace.folders(usual), clock)
        goes_on = await reached(
            lambda: workplace.make(store, run_commit, found.commit, found.entry), clock
        )
        key, why = found.entry.key, _why_again(found, workplace, goes_on=goes_on)
        _say(why or f"Task {key} {'goes on where it was' if goes_on else 'begins'}.")
        for note in await asyncio.to_thread(workplace.bring):
            _tell(Notice(note))
        planned = await asyncio.to_thread(_planned, workplace, usual, found.entry)
        await _check_sandbox(workplace.spec, planned)
        if key_used := planned.launch.access.key:
            job.waits = SharedWaits(store, workplace.spec.run, key_used, clock)
        await _run(job, planned, store, clock, found)
    if job.stopped and lease.is_held:
        back = _given_back(job, "stopped by a signal")
        await asyncio.to_thread(lambda: lease.finish(**back))
        return EXIT_STOPPED
    return EXIT_DONE


def _given_back(job: _Job, why: str) -> dict[str, Any]:
    """The changes of a task's state where its worker gives it back."""
    entry = job.lease.stored.entry
    return {
        "state": "waiting",
        "holder": "",
        "ended": f"{why} on {entry.host}",
        "spent_usd": job.bill.spent_usd if job.requests else entry.spent_usd,
        "reserved_usd": entry.reserved_usd + job.bill.next_usd,
        "next_usd": 0.0,
    }


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


def _planned(workplace: Workplace, usual: Folders, entry: TaskEntry) -> RunPlan:
    """The run of this task alone: its state says that all others are done. Blocks."""
    spec, most = workplace.spec, entry.remaining_usd
    if most is not None:  # what tasks of the state have cost counts there, too
        state = RunFolder(workplace.target).load()
        most += sum(task.cost_usd or 0.0 for task in state.tasks) if state else 0.0
    script = Path(spec.script) if spec.script else None
    options = Options(command="run").having(
        tasks=workplace.task_file,
        cwd=workplace.target,
        headless=True,
        max_cost=most,
        practice_script=script,
        fallback_models=(spec.fallback,) if spec.fallback else (),
        **spec.options,
    )
    home = workplace.folders(usual)
    planned = plan(
        options, home=home, settled=spec.config, trusted=spec.trust, foreign=spec.foreign
    )
    workspace = planned.launch.workspace
    objects = [Path(os.path.realpath(path)) for path in workplace.shared_objects()]
    launch = replace(
        planned.launch,
        workspace=replace(workspace, readable=(*workspace.readable, *objects)),
        boot=workplace.target / ".holdfast" / BOOT_FILE if spec.boot else planned.launch.boot,
    )
    return replace(planned, launch=launch)


async def _run(
    job: _Job, planned: RunPlan, store: TaskStore, clock: Clock, found: StoredTask
) -> None:
    """Work through the task, and put its result into the store, unless it was stopped. Raises
    LeaseLostError, RefusedError."""
    job.requests, job.bill = found.entry.requests, TaskBill(found.entry.spent_usd)
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
    if job.failure is not None:
        raise job.failure
    if runner.fatal_class == "auth":
        raise RefusedError(runner.reason)
    if job.stopped:
        return
    if job.unsaved:
        raise StoreError(f"The session can't be saved: {job.unsaved}")
    try:
        kept = await asyncio.to_thread(job.workplace.keep_ignored)
    except GitError as error:
        kept = error.message  # the result counts without them
    if kept:
        _tell(Notice(kept))
    last = await asyncio.to_thread(_last, job, planned.launch.folders, clock)
    done: dict[str, Any] = {
        "state": "done",
        "spent_usd": job.bill.spent_usd,
        "reserved_usd": job.lease.stored.entry.reserved_usd + job.bill.next_usd,
        "requests": job.requests,
        "next_usd": 0.0,
    }
    await asyncio.to_thread(lambda: job.lease.finish(last, ended=runner.reason, **done))
    spare = not any(
        one.state == "running" for one in unattended.unattended_commands(planned.launch.folders)
    )
    await asyncio.to_thread(lambda: job.workplace.remove(spare=spare))


def _sweep(store: TaskStore, run: str, folder: Path) -> None:
    """Remove what killed workers of a run left of tasks that are over. Blocks."""
    places = [path for path in folder.iterdir() if path.is_dir()]
    refs = store.refs(f"{TASKS}{run}/") if places else {}
    for path in places:
        ref = ref_of(run, path.name)
        if commit := refs.get(ref):
            store.fetch({ref: commit})
            if store.entry(commit).is_over:
                shutil.rmtree(path, ignore_errors=True)


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
    failure: HoldfastError | None = None
    """The error with which the task couldn't be put into the store."""
    requests: int = 0
    bill: TaskBill = field(default_factory=TaskBill)
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    unsaved: str = ""
    """The reason why the session isn't on the disk; "" where it is."""
    waits: SharedWaits | None = None
    active: ActiveTask | None = None
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
        end_by_force()
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
        if isinstance(event, TaskStarted):
            self.active = ActiveTask(event.task, event.session_id)
        if isinstance(event, FromAgent) and isinstance(event.event, StorageChanged):
            self.unsaved = "" if event.event.saved else event.event.detail
        if isinstance(event, RunFinished):
            event = msgspec.structs.replace(event, tasks=())  # the driver has all of them
        _tell(event)

    async def ready(self, request: Request) -> int:
        """Return the request's number in the bill once the store has all that was done so far, and
        nobody can have the task instead. Never returns where it is lost, or can't be saved."""
        number = 0
        try:
            async with self._putting:
                if self.unsaved:  # the store wouldn't get what is paid from now on
                    self._end()
                    await asyncio.Event().wait()
                if not self.stopped:
                    self.requests += 1
                    number = self.bill.ask(_dearest(request, self.prices))
                    await asyncio.to_thread(self._put, self.bill.spent_usd, self.bill.next_usd)
                await self._keep_fresh()
            if self.waits is not None and (wait_s := self.waits.remaining_s(request.model)):
                await asyncio.sleep(wait_s)
                await self._keep_fresh()
        except LeaseLostError:
            await asyncio.Event().wait()  # until the run, which ends now, cancels it
        except HoldfastError as error:  # it is no failure of the task's
            self.failure = error
            self._end()
            await asyncio.Event().wait()
        return number

    async def _keep_fresh(self) -> None:
        while not self.lease.is_fresh:
            try:
                await asyncio.to_thread(self.lease.renew)
            except StoreError:
                await asyncio.sleep(1.0)

    async def limited(self, model: str, wait_s: float) -> None:
        """Tell the other workers that the server has asked to wait. No failure of that counts."""
        if self.waits is not None:
            with suppress(StoreError):
                await asyncio.to_thread(self.waits.tell, model, wait_s)

    def _put(self, spent_usd: float | None, next_usd: float) -> None:
        snapshot = self.workplace.snapshot(self.lease.store)
        self.lease.put(
            snapshot,
            requests=self.requests,
            spent_usd=spent_usd,
            next_usd=next_usd,
            active=self.active,
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
        bill, prices = self._job.bill, self._job.prices
        number = await self._job.ready(request)
        try:
            async with aclosing(self._provider.stream(request)) as parts:
                async for part in parts:
                    if isinstance(part, Completed):
                        price = price_of(part.model, prices)
                        bill.settle(number, Spent.on(part.usage, price).usd)
                    yield part
        except ProviderError as error:
            bill.settle(number)
            if error.error_class == "rate_limit" and error.retry_after:
                await self._job.limited(request.model, error.retry_after)
            raise


def _tell(event: BatchEvent) -> None:
    """An event on stdout."""
    _say(json.dumps(event.to_json(), ensure_ascii=True, separators=(",", ":")))


def _say(text: str) -> None:
    """A line on stdout, which the engine keeps; nothing depends on it."""
    with suppress(OSError):
        print_text(text)
        sys.stdout.flush()
