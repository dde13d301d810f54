"""Placed runs on an engine that loses, repeats and forgets at will, with workers that are killed,
stopped and woken, a store that is gone for a while, and a driver that is killed.

Driver, store and leases are the real ones; the workers are simulated, and so is time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.batch.test_git import git, make_repo
from tests.support.clock import FakeClock
from tests.support.simulated_machines import (
    DriverKilledError,
    FaultyStore,
    Program,
    SimulatedThreading,
    World,
)
from tui.app.options.parser import parse
from tui.batch.cluster import lease as lease_module
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.cluster.engines.port import EngineError, Life
from tui.batch.cluster.lease import Lease, LeaseLostError, LeasePace, StoredTask, read_task, ref_of
from tui.batch.cluster.task_store import RUNS, StoreError, TaskStore
from tui.batch.cluster.workplace import TaskSnapshot
from tui.batch.events import BatchEvent, RunFinished, TaskFinished, TaskMerged
from tui.batch.plan import plan
from tui.batch.state import RunFolder, RunState
from tui.core.facts import Notice
from tui.core.git import door

LEASE_S = 90.0
DEAREST_USD = 0.5
"""The most that an answer costs here."""


@dataclass
class Machines:
    """The simulated workers, and all that was seen of them."""

    world: World
    address: str
    folder: Path
    steps: int
    faults: float
    """The likelihood of each fault."""
    deadly: int = 0
    """The requests after which each worker of the first task is killed; 0 for none."""
    meanwhile: list[tuple[float, Callable[[], object]]] = field(
        default_factory=list[tuple[float, Callable[[], object]]]
    )
    """Things that happen here, each with its time, the next one last."""
    paid_usd: float = 0.0
    wrong: list[str] = field(default_factory=list[str])

    def start(self, words: Sequence[str]) -> Program:
        """Start `holdfast work RUN/KEY --store S`."""
        run, _, key = words[1].partition("/")
        return self.world.start(key, lambda program: self._work(program, run, key))

    def _work(self, program: Program, run: str, key: str) -> None:
        world, chance = self.world, self.world.chance
        if chance.random() < self.faults / 2:
            return  # it ends at once, without a word
        fiber = program.fibers[0]
        fiber.pause(chance.uniform(0, 20))
        ref, worker = ref_of(run, key), _Worker(program)
        try:
            store = FaultyStore.seen_by(world, self.address, self.folder / "m", self.faults / 5)
            lease = Lease(store, ref, LeasePace(LEASE_S), program, worker)
            run_ref = f"{RUNS}{run}"
            made = store.refs(run_ref)[run_ref]
            store.fetch({run_ref: made})
            if (found := lease.take("/place", wait=fiber.pause)) is None:
                return
            try:
                self._go_on(worker, store, lease, found, made)
            except StoreError as error:
                self.wrong.append(f"{key} is given back instead of waiting: {error}")
                lease.fail(error.message)
            except LeaseLostError:
                if not program.stopped_until and not self._was_out():
                    self.wrong.append(f"{key} is taken from a worker that lives")
        except (LeaseLostError, StoreError):
            return

    def _was_out(self) -> bool:
        """True if the store was gone since the last renewal, or a while before."""
        now = self.world.now
        return any(begin < now < end + 2 * LEASE_S for begin, end in self.world.outages)

    def _go_on(
        self, worker: _Worker, store: TaskStore, lease: Lease, found: StoredTask, made: str
    ) -> None:
        chance, fiber, entry = self.world.chance, worker.program.fibers[0], found.entry
        base = store.parents(made)[0]
        done = int(store.read(found.commit, "steps")) if entry.head else 0
        requests, spent, usual = entry.requests, entry.spent_usd or 0.0, base
        status, change = "completed", ""
        while done < self.steps:
            if entry.cap_usd is not None and spent >= entry.cap_usd:
                status = "interrupted"
                break
            requests += 1
            files = {"steps": str(done).encode()}
            asked = chance.uniform(0.5, 1.0) * DEAREST_USD
            lease.put(
                TaskSnapshot(files, (usual,), usual, (), store.mirror),
                requests=requests,
                spent_usd=spent,
                next_usd=asked,
            )
            while not lease.is_fresh:
                try:
                    lease.renew()
                except StoreError:
                    fiber.pause(5)
            self._send(lease, worker)
            paid = chance.uniform(0.2, 1.0) * asked
            self.paid_usd += paid
            fiber.pause(chance.uniform(1, 60))
            if entry.key == "00001" and requests == entry.requests + self.deadly:
                worker.program.is_killed = True
                fiber.pause()
            if worker.program.is_ending:
                lease.finish(
                    state="waiting", holder="", spent_usd=spent + paid, next_usd=0.0,
                    ended="stopped by a signal",
                )  # fmt: skip
                return
            spent, done = spent + paid, done + 1
        head = base
        if status == "completed":
            name = f"made by {entry.key}"
            draft = {name: lease.stored.entry.holder.encode()}
            head = change = store.commit(f"{name}\n", upon=base, files=draft)
        state = msgspec.json.decode(store.read(made, "state.json"), type=RunState)
        tasks = tuple(
            msgspec.structs.replace(
                task, status=status, change=change or None, cost_usd=spent, attempts=1
            )
            if task.index in entry.tasks
            else task
            for task in state.tasks
        )
        ended = msgspec.structs.replace(state, tasks=tasks)
        files = {"private/run/state.json": msgspec.json.encode(ended), "refs.json": b"{}"}
        last = TaskSnapshot(files, (head,), head, (), store.mirror)
        lease.finish(last, state="done", ended="", spent_usd=spent, requests=requests, next_usd=0.0)

    def _send(self, lease: Lease, worker: _Worker) -> None:
        """A request is sent: nobody else may have the task now."""
        held = lease.stored.entry
        plain = TaskStore.at(self.address, self.folder / "m")
        refs = plain.refs("refs/holdfast/tasks/")
        ref = next(ref for ref in refs if ref.endswith(f"/{held.key}"))
        now = read_task(plain, ref).entry
        if now.holder != held.holder:
            self.wrong.append(f"{held.key} is {now.holder}'s, and {held.holder} sends a request")


@dataclass
class _Worker:
    """The holder of a simulated lease."""

    program: Program

    def lose(self) -> None:
        pass

    def poll(self) -> None:
        pass


@dataclass
class FaultyEngine:
    """An engine that loses, repeats and forgets what it was given, and says anything."""

    machines: Machines
    slots: int
    name: str = "faulty"
    outlives: bool = True
    look_s: float = 2.0
    _programs: dict[str, list[Program]] = field(default_factory=dict[str, list[Program]])
    _believed: set[str] = field(default_factory=set[str])
    """Handles whose workers live for it whatever happens."""

    def _by_chance(self, share: float = 1.0) -> bool:
        return self.machines.world.chance.random() < self.machines.faults * share

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        self.machines.world.some_steps()
        if self._by_chance(0.5):
            raise EngineError("Nobody answers.")
        handles: dict[str, str] = {}
        for key, words in commands.items():
            times = 0 if self._by_chance() else 2 if self._by_chance() else 1
            started = [self.machines.start(words) for _ in range(times)]
            self._programs.setdefault(words[1], []).extend(started)
            if self._by_chance():
                self._believed.add(words[1])
            if not self._by_chance():
                handles[key] = words[1]
        if self._by_chance(0.5):
            raise EngineError("The connection was closed.")
        return handles

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        self.machines.world.some_steps()
        if self._by_chance(0.3):
            raise EngineError("Nobody answers.")
        known = [one for one in handles if one in self._believed or not self._by_chance(0.2)]
        return {one: self._life(one) for one in known}

    def _life(self, handle: str) -> Life:
        if handle in self._believed:
            return "lives"
        if self._by_chance(0.2):
            return self.machines.world.chance.choice(("ended", "unknown", "waits"))
        return "lives" if any(one.lives for one in self._programs.get(handle, ())) else "ended"

    def fetch(self, handle: str) -> str:
        if self._by_chance(0.3):
            raise EngineError("The log is gone.")
        return ""

    def cancel(self, handles: Collection[str]) -> None:
        if self._by_chance():
            raise EngineError("Nobody answers.")
        for handle in handles:
            self._believed.discard(handle)
            for one in self._programs.get(handle, ()):
                if self._by_chance():
                    continue
                if self._by_chance():
                    one.is_ending = True
                else:
                    one.kill()

    def close(self) -> None:
        pass


class PassingClock(FakeClock):
    """The driver's clock: while it sleeps, everybody else goes on."""

    def __init__(self, machines: Machines) -> None:
        super().__init__()
        self._world, self._faults, self._meanwhile = (
            machines.world, machines.faults, machines.meanwhile,
        )  # fmt: skip

    def monotonic(self) -> float:
        return self._world.now

    async def sleep(self, seconds: float) -> None:
        world = self._world
        assert world.now < 20_000, "the run doesn't come to its end"
        world.pass_s(seconds * world.chance.uniform(1, 4))
        for one in [one for one in world.programs if one.lives]:
            chance = world.chance.random()
            if chance < self._faults / 20:
                one.kill()
            elif chance < self._faults / 12:
                one.stopped_until = world.now + world.chance.uniform(10, 3 * LEASE_S)
        if self._meanwhile and world.now >= self._meanwhile[-1][0]:
            self._meanwhile.pop()[1]()
        world.kill_driver()


@dataclass
class Played:
    """A run that came to its end."""

    repo: Path
    machines: Machines
    engine: Callable[[Machines, int], FaultyEngine] = FaultyEngine
    events: list[BatchEvent] = field(default_factory=list[BatchEvent])
    drivers: int = 0

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    @property
    def reason(self) -> str:
        return [event.reason for event in self.events if isinstance(event, RunFinished)][-1]

    def show(self, event: BatchEvent) -> None:
        self.events.append(event)

    async def drive(self, limit: float | None) -> RunState:
        """Drive the run, with one driver after another where they are killed."""
        machines, world = self.machines, self.machines.world
        words = ["run", str(self.repo / "TASKS.md"), "-C", str(self.repo), "--practice"]
        options = parse([*words, "--headless", *(["--max-cost", f"{limit}"] if limit else [])])
        engine = self.engine(machines, 2)
        while True:
            self.drivers += 1
            folder = machines.folder / "driver"
            store = FaultyStore.seen_by(world, machines.address, folder, machines.faults / 5)
            clock = PassingClock(machines)
            runner = PlacedRunner(
                plan(options), options, store, engine, self, clock=clock, confined=False
            )
            try:
                return await runner.run()
            except DriverKilledError:
                continue
            except StoreError:  # it begins again once the store is there
                assert world.outages or machines.faults
                world.pass_s(30)


def begin(folder: Path, seed: int, tasks: int, faults: float) -> Played:
    """Make the repository and the store of a run in a folder, and the faults of this seed."""
    world = World(seed)
    chance = world.chance
    repo = make_repo(folder / "repo")
    (repo / "TASKS.md").write_text("".join(f"- [ ] task {n}\n" for n in range(tasks)))
    git(repo, "commit", "-qam", "tasks")
    plain = TaskStore.at(str(folder / "store.git"), folder / "m")
    plain.make()
    machines = Machines(world, plain.address, folder, chance.randint(1, 3), faults)
    if faults:
        begin = chance.uniform(10, 300)
        world.outages = [(begin, begin + chance.uniform(5, 2 * LEASE_S))]
        times = [chance.uniform(0, 400) for _ in range(chance.randint(0, 2))]
        world.driver_ends = sorted(times, reverse=True)
    return Played(repo, machines)


def play(folder: Path, seed: int, tasks: int, faults: float, limit: float | None) -> Played:
    """Play a run in a folder with this seed."""
    played = begin(folder, seed, tasks, faults)
    finish(played, limit)
    return played


def finish(played: Played, limit: float | None = None) -> None:
    """Drive a run to its end, and let its workers go on for a while."""
    folder, world = played.machines.folder, played.machines.world
    config = folder / "home" / "config" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[prices."practice"]\ninput = 1.0\noutput = 1.0\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_HOME", str(folder / "home"))
        patch.setattr(lease_module, "threading", SimulatedThreading(world))
        patch.setattr(door, "_listed_settings", _settings_of())
        asyncio.run(played.drive(limit))
        world.outages.clear()
        world.pass_s(3 * LEASE_S)
        for one in world.programs:
            one.kill()


def _settings_of():
    """Git's settings, which nobody changes here, listed once for each place."""
    known: dict[object, str] = {}
    listed = door._listed_settings  # pyright: ignore[reportPrivateUsage]

    def once(where: Path, env: Mapping[str, str] | None) -> str:
        key = where, (env or {}).get("GIT_DIR")
        if key not in known:
            known[key] = listed(where, env)
        return known[key]

    return once


def history(played: Played, key: str) -> list[str]:
    """The states that a task had, the first one first, from the store alone."""
    store = Path(played.machines.address)
    (ref,) = git(
        store, "for-each-ref", "--format=%(refname)", f"refs/holdfast/tasks/*/{key}"
    ).split()
    said = git(store, "log", "--first-parent", "--reverse", "--format=%s", ref).splitlines()
    return [line.removeprefix(f"holdfast: task {key} is ").partition(",")[0] for line in said]


def state_of(played: Played) -> RunState:
    state = RunFolder(played.repo).load()
    assert state is not None
    return state


def check(played: Played, tasks: int) -> None:
    """Check that each task is done once, and merged once, and nothing happened behind a lease."""
    assert not played.machines.wrong, played.machines.wrong
    notices, state = played.notices, state_of(played)
    subjects = Counter(git(played.repo, "log", "--no-merges", "--format=%s").splitlines())
    finished = Counter(event.task for event in played.events if isinstance(event, TaskFinished))
    merged = Counter(
        event.task
        for event in played.events
        if isinstance(event, TaskMerged) and event.status == "completed"
    )
    for index in range(tasks):
        key, task = f"{index + 1:05}", state.tasks[index]
        states = history(played, key)
        ended = "done" if task.status == "completed" else "given up"
        assert Counter(states)[ended] == 1, (states, notices)
        assert states[-1] == ended, (states, notices)
        assert subjects[f"made by {key}"] == (ended == "done"), notices
        assert finished[index] >= 1
        assert ended == "given up" or merged[index] >= 1
        if played.drivers == 1:
            assert finished[index] == 1
            assert merged[index] == (ended == "done")
        if ended == "given up":
            assert " workers were lost with it; the worker was gone" in (task.message or "")
    assert state.placed is None


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_each_task_is_done_once_and_merged_once_whatever_the_engine_does(
    tmp_path: Path, seed: int
) -> None:
    check(play(tmp_path, seed, 3, 0.3, None), 3)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_so_it_is_by_any_chance(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    check(play(tmp_path_factory.mktemp("faults"), seed, 3, 0.3, None), 3)


def check_money(played: Played, limit: float) -> None:
    """Check that no more was paid than the limit, and what the first answers cost that nobody knew
    the price of when they were reserved."""
    assert not played.machines.wrong, played.machines.wrong
    unknown = 2 * DEAREST_USD
    assert played.machines.paid_usd <= limit + unknown, state_of(played).tasks
    last = [event for event in played.events if isinstance(event, RunFinished)][-1]
    undone = [task for task in last.tasks if task.status not in {"completed", "failed"}]
    assert not undone or last.reason.startswith("reached the limit") or not last.reason
    assert not last.reason or played.machines.paid_usd, "there was money, and nobody got it"


@pytest.mark.parametrize(("seed", "limit"), [(5, 1.5), (33, 0.7)])
def test_no_more_is_paid_than_was_reserved(tmp_path: Path, seed: int, limit: float) -> None:
    check_money(play(tmp_path, seed, 5, 0.3, limit), limit)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from([0.7, 1.5, 3.0]))
def test_so_it_is_with_any_limit(
    tmp_path_factory: pytest.TempPathFactory, seed: int, limit: float
) -> None:
    check_money(play(tmp_path_factory.mktemp("money"), seed, 5, 0.3, limit), limit)
