"""A run under faults while it goes on: what is looked at, and who may be hurt."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.batch.cluster.real import processes
from tests.batch.cluster.real.driver import Driver
from tests.batch.cluster.real.engines.port import RealEngine
from tests.batch.cluster.real.model import TaskModel
from tests.batch.cluster.real.processes import Process, Usage
from tests.batch.cluster.real.scene import DRIVERS_KEY, Scene, git
from tui.batch.cluster.entry import TaskEntry, entry_of
from tui.batch.cluster.task_store import TASKS
from tui.batch.cluster.worker import EXIT_LOST

_SAMPLE_S = 0.5
_HARM = 2
"""Faults that one task meets at most: the third lost worker may give it up."""


@dataclass
class Trial:
    """A run of `given` tasks in a `scene`, on an `engine`. `wrong` is what is not as it should
    be."""

    given: argparse.Namespace
    scene: Scene
    engine: RealEngine
    model: TaskModel
    driver: Driver
    chance: random.Random
    usage: Usage = field(default_factory=Usage)
    wrong: list[str] = field(default_factory=list[str])
    done: Counter[str] = field(default_factory=Counter[str])
    """The faults that were carried out."""
    harmed: Counter[str] = field(default_factory=Counter[str])
    """The faults that each task has met, by its key."""
    asleep: set[int] = field(default_factory=set[int])
    background: list[asyncio.Task[None]] = field(default_factory=list["asyncio.Task[None]"])
    by_hand: dict[int, subprocess.Popen[bytes]] = field(
        default_factory=dict[int, "subprocess.Popen[bytes]"]
    )
    two_at_once: Counter[str] = field(default_factory=Counter[str])
    """Seconds for which two processes that were not stopped had asked for a task, and lived."""
    began: float = field(default_factory=time.monotonic)
    looks_s: float = 0.0
    """Processor time of the harness's own looks at the store."""
    run: str = ""
    """The run's name in the store, once it is known."""

    def say(self, text: str) -> None:
        """Print a line, with the seconds since the beginning."""
        print(f"{time.monotonic() - self.began:6.0f} s  {text}", flush=True)

    def expect(self, is_so: object, text: str) -> None:
        """Note what is wrong unless it is so."""
        if not is_so:
            self.wrong.append(text)
            self.say(f"WRONG: {text}")

    # The store, read where it lies

    def entries(self) -> dict[str, TaskEntry]:
        """The tasks in the store by their keys; none before the run is there."""
        if not self.run:
            with suppress(OSError, ValueError):
                file = self.scene.repo / ".holdfast" / "run" / "state.json"
                state: dict[str, Any] = json.loads(file.read_bytes())
                placed: dict[str, str] = state.get("placed") or {}
                self.run = placed.get("run", "")
        if not self.run or not (self.engine.repository / "HEAD").exists():
            return {}
        words = ("for-each-ref", "--format=%(refname:lstrip=-1)%00%(contents)%00%00")
        before = processes.reaped_s()
        said = git(self.engine.repository, *words, f"{TASKS}{self.run}/")
        self.looks_s += processes.reaped_s() - before
        parts = (part.strip("\n").partition("\0") for part in said.split("\0\0"))
        return {key: entry_of(message) for key, _, message in parts if key}

    def handle(self, key: str) -> str:
        return f"{self.run}/{key}"

    # Processes

    async def watch(self) -> None:
        """Take samples for as long as this runs, and tend the engine."""
        for turn in range(10**9):
            found = processes.every()
            kinds = {self.driver.pid: "driver", **self.engine.kinds()}
            self.usage.take(found, kinds)
            mine = {one.pid for one in self.scene.daemons.running.values()}
            self.usage.reap(found, {*mine, *self.by_hand, self.driver.pid})
            self._count_pairs(found)
            if turn % 10 == 0:
                self.engine.tend()
            await asyncio.sleep(_SAMPLE_S)

    def _count_pairs(self, found: Mapping[int, Process]) -> None:
        live = Counter(
            one.task
            for one in processes.workers(found)
            if one.state != "T" and one.id in self.model.latest
        )
        for task, count in live.items():
            if count > 1:
                self.two_at_once[task] += _SAMPLE_S  # pyright: ignore[reportArgumentType]

    def at_work(self) -> Iterator[Process]:
        """The workers that have asked the model, and are not stopped."""
        for one in processes.workers(processes.every()):
            if one.id in self.model.latest and one.pid not in self.asleep:
                yield one

    async def victim(self, *, often: bool = False) -> Process:
        """Wait for a worker that may be hurt, and count it as hurt. Raises TimeoutError."""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            entries = self.entries()
            for most in range(_HARM if often else 1):
                able = [
                    one
                    for one in self.at_work()
                    if (key := one.task.rpartition("/")[2]) in entries
                    and entries[key].state == "running"
                    and self.harmed[key] <= most
                    and int(key) != self.given.killer
                ]
                if able:
                    one = self.chance.choice(able)
                    self.harmed[one.task.rpartition("/")[2]] += 1
                    return one
            await asyncio.sleep(1)
        raise TimeoutError("no worker is left to be hurt")

    async def until(
        self, is_so: Callable[[], object], seconds: float, *, look_s: float = 0.3
    ) -> bool:
        """Wait until it is so; False where it never is."""
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end:
                return False
            await asyncio.sleep(look_s)
        return True

    def lives(self, one: Process) -> bool:
        now = processes.every().get(one.pid)
        return now is not None and now.birth == one.birth and now.state not in "ZX"

    # The driver

    async def start_driver(self) -> None:
        """Start the same command again, and wait until it watches the run."""
        before = self.driver.text.count("parallel: ")
        self.driver.start()
        if not await self.until(lambda: self.driver.text.count("parallel: ") > before, 120):
            self.expect(False, f"the driver doesn't begin: {self.driver.text[-300:]}")

    async def without_driver(self, end: Callable[[], Awaitable[object]]) -> str:
        """End the driver, and expect its workers to run on, or to end, as the engine says."""
        before = {one.task.rpartition("/")[2]: one for one in self.engines_own()}
        before.pop(f"{self.given.killer:05}", None)  # which ends whenever it likes
        holders = {key: one.holder for key, one in self.entries().items() if key in before}
        await end()
        if not self.engine.outlives:
            ended = await self.until(lambda: not self.engines_own(), 40)
            self.expect(ended, "workers of this engine outlive its driver")
            return f"{len(before)} workers ended"
        await asyncio.sleep(5)
        now = self.entries()
        living = [key for key, one in before.items() if self.lives(one)]
        for key in holders.keys() - {*living}:
            same = now[key].state == "running" and now[key].holder == holders[key] != ""
            self.expect(not same, f"the worker of {key} ended with the driver")
        return f"{len(living)} workers of {len(before)} run on"

    def engines_own(self) -> list[Process]:
        """The workers that an engine has started, and that are awake."""
        found = processes.workers(processes.every())
        return [one for one in found if one.pid not in {*self.by_hand, *self.asleep}]

    @property
    def over(self) -> bool:
        """True if every task in the store has come to rest."""
        entries = self.entries()
        return bool(entries) and all(one.is_over for one in entries.values())

    # Workers that somebody starts by hand

    async def hand_started(
        self,
        prefix: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        ready: Callable[[str], None] = lambda _: None,
    ) -> tuple[str, subprocess.Popen[bytes]]:
        """Start a worker by hand for a task that waits, from the end of the file, and wait until it
        has it or has ended. `ready` is called before, with the key. Raises TimeoutError."""
        for _ in range(100):
            waiting = [
                key
                for key, one in sorted(self.entries().items())
                if one.state == "waiting" and not self.harmed[key] and not one.attempt
            ]
            if not waiting:
                break
            key = waiting[-1]
            ready(key)
            started = self.start_worker(key, prefix, env=env)
            await self.until(partial(self._has_begun, started), 120)
            if started.returncode != EXIT_LOST:
                self.harmed[key] += 1
                return key, started
        raise TimeoutError("no task waits for a worker by hand")

    def start_worker(
        self, key: str, prefix: Sequence[str] = (), *, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a worker of a task by hand, as the engine would."""
        program = [self.scene.python, "-P", "-m", "tui", "work", self.handle(key)]
        with (self.scene.folder / "logs" / f"by-hand-{key}.log").open("ab") as log:
            started = subprocess.Popen(
                [*prefix, *program, "--store", self.engine.store],
                env={**self.engine.worker_env, **(env or {})},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.by_hand[started.pid] = started
        return started

    def _has_begun(self, started: subprocess.Popen[bytes]) -> bool:
        """True if a worker that was started by hand has asked the model, or has ended."""
        return started.poll() is not None or self._worker_pid(started) in self._asking()

    def _worker_pid(self, started: subprocess.Popen[bytes]) -> int:
        """The worker of a process that was started by hand: it, or its child."""
        found = processes.workers(processes.every())
        return next((one.pid for one in found if started.pid in {one.pid, one.parent}), 0)

    def _asking(self) -> set[int]:
        return {one.pid for one in self.at_work()}

    def said_by_hand(self, key: str) -> str:
        return (self.scene.folder / "logs" / f"by-hand-{key}.log").read_text("utf-8", "replace")

    # What is never to be seen

    def check_secrets(self, worker: Process) -> None:
        """Expect that a worker of another machine doesn't have the driver's key."""
        if self.engine.worker_env["ANTHROPIC_API_KEY"] != DRIVERS_KEY:
            seen = DRIVERS_KEY.encode() in processes.environment(worker.pid)
            self.expect(not seen, f"the driver's key travelled to {worker.task}")
