"""Machines in one process, with one time that a test lets pass: what is decided by chance, is
decided by a seed, and happens again as it did.

The programs on them are threads of which one runs at a time; it gives its turn away where it waits
and before it goes to the store. So every order of what they do can come. They can be stopped, woken
and killed anywhere there; each machine has a clock of its own.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tui.batch.cluster.task_store import StoreError, TaskStore


class KilledError(BaseException):
    """The program is gone, at once."""


class DriverKilledError(BaseException):
    """The driver is gone, at once."""


class Fiber:
    """A thread of a program, which goes on only while `step` lets it. `until` is the time that it
    waits for."""

    def __init__(self, program: Program, work: Callable[[], object]) -> None:
        self.program, self.until, self.is_done = program, 0.0, False
        self._work = work
        self._error: BaseException | None = None
        self._go, self._rest = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self._run, daemon=True).start()

    def step(self) -> None:
        """Let it go on to where it next gives its turn away. Raises what it failed with."""
        self._go.release()
        self._rest.acquire()
        if self._error is not None:
            raise self._error

    def pause(self, seconds: float = 0.0) -> None:
        """Called by the thread itself: let others go on for so long."""
        if self.program.is_killed:
            raise KilledError
        self.until = self.program.world.now + seconds
        self._rest.release()
        self._go.acquire()
        if self.program.is_killed:
            raise KilledError

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self.program.is_killed:
                self._work()
        except KilledError:
            pass
        except BaseException as error:  # noqa: BLE001 - for the test
            self._error = error
        finally:
            self.is_done = True
            self._rest.release()


class Program:
    """A process on a machine whose clock is `ahead` by so many seconds."""

    def __init__(self, world: World, name: str, ahead: float) -> None:
        self.world, self.name, self.ahead = world, name, ahead
        self.is_killed = False
        self.is_ending = False
        """It got SIGTERM."""
        self.stopped_until = 0.0
        self.fibers: list[Fiber] = []

    @property
    def lives(self) -> bool:
        return not self.is_killed and any(not one.is_done for one in self.fibers)

    def begin(self, work: Callable[[], object]) -> None:
        """Start a thread."""
        self.fibers.append(Fiber(self, work))

    def kill(self) -> None:
        """SIGKILL, which a stopped one gets, too."""
        self.is_killed = True
        for one in self.fibers:
            if not one.is_done:
                self.world.give_turn(one)

    # As `Clock` has it

    def now(self) -> datetime:
        begin = datetime(2026, 11, 30, tzinfo=UTC)
        return begin + timedelta(seconds=self.world.now + self.ahead)

    def monotonic(self) -> float:
        return self.world.now + self.ahead

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("a worker's lease waits in threads")


class World:
    """The machines, and their store, which can't be reached during `outages`."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = 0.0
        self.programs: list[Program] = []
        self.outages: list[tuple[float, float]] = []
        self.driver_ends: list[float] = []
        """The times at which the driver is killed, the next one last."""
        self.running: Fiber | None = None
        """The thread whose turn it is; None for the test's own."""

    def start(self, name: str, work: Callable[[Program], object]) -> Program:
        """Start a program on a machine of its own, whose clock is hours off."""
        made = Program(self, name, self.chance.uniform(-1e5, 1e5))
        self.programs.append(made)
        made.begin(lambda: work(made))
        return made

    def pass_s(self, seconds: float) -> None:
        """Let time pass, and the programs go on meanwhile."""
        end = self.now + seconds
        while True:
            if ready := self._ready():
                self.give_turn(self.chance.choice(ready))
                continue
            times = [max(one.until, one.program.stopped_until) for one in self._fibers()]
            if not times or min(times) > end:
                self.now = end
                return
            self.now = min(times)

    def some_steps(self) -> None:
        """Let the programs do a little at this very moment."""
        for _ in range(self.chance.choice((0, 0, 1, 3))):
            if ready := self._ready():
                self.give_turn(self.chance.choice(ready))

    def give_turn(self, fiber: Fiber) -> None:
        """Let a thread go on to where it waits next."""
        self.running = fiber
        try:
            fiber.step()
        finally:
            self.running = None

    def _fibers(self) -> list[Fiber]:
        living = [one for one in self.programs if not one.is_killed]
        return [one for program in living for one in program.fibers if not one.is_done]

    def _ready(self) -> list[Fiber]:
        return [
            one for one in self._fibers() if max(one.until, one.program.stopped_until) <= self.now
        ]

    def kill_driver(self) -> None:
        """Raise DriverKilledError if its time has come."""
        if self.driver_ends and self.now >= self.driver_ends[-1]:
            self.driver_ends.pop()
            raise DriverKilledError

    def reach_store(self) -> None:
        """Raise StoreError while nobody reaches the store."""
        if any(begin <= self.now < end for begin, end in self.outages):
            raise StoreError("The network is gone.")


@dataclass(frozen=True)
class FaultyStore(TaskStore):
    """A store in a world, seen by a worker's program or, without one, by the driver. Some answers
    to a push are lost, be it done or not."""

    world: World = field(default_factory=lambda: World(0))
    lossy: float = 0.0

    @classmethod
    def seen_by(cls, world: World, address: str, folder: Path, lossy: float) -> FaultyStore:
        made = TaskStore.at(address, folder)
        return cls(made.address, made.mirror, world=world, lossy=lossy)

    def _reach(self, *words: str, **given: Any) -> str:
        world = self.world
        if (fiber := world.running) is not None:
            fiber.pause(world.chance.uniform(0, 2))
        else:
            world.some_steps()
            world.kill_driver()
        world.reach_store()
        if words[0] in {"push", "update-ref"} and world.chance.random() < self.lossy:
            if world.chance.random() < 0.5:
                super()._reach(*words, **given)
            raise StoreError("The connection was closed.")
        return super()._reach(*words, **given)


class SimulatedThreading:
    """What `threading` has of use to a lease, with the time and the turns of a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def Thread(self, target: Callable[[], object], **_: object) -> _Startable:
        assert self._world.running is not None
        return _Startable(self._world.running.program, target)

    def Event(self) -> _Event:
        return _Event(self._world)

    def Lock(self) -> _Lock:
        return _Lock(self._world)


@dataclass
class _Startable:
    program: Program
    target: Callable[[], object]

    def start(self) -> None:
        self.program.begin(self.target)


class _Waited:
    """Something that threads wait for."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: list[Fiber] = []

    def _wait(self, seconds: float) -> None:
        fiber = self._world.running
        assert fiber is not None
        self._waiting.append(fiber)
        fiber.pause(seconds)

    def _wake(self) -> None:
        for fiber in self._waiting:
            fiber.until = min(fiber.until, self._world.now)
        self._waiting.clear()


class _Event(_Waited):
    _set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._wake()

    def wait(self, seconds: float) -> bool:
        if not self._set:
            self._wait(seconds)
        return self._set


class _Lock(_Waited):
    _held = False

    def __enter__(self) -> None:
        while self._held:
            self._wait(1e9)
        self._held = True

    def __exit__(self, *_: object) -> None:
        self._held = False
        self._wake()
