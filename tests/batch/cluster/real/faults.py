"""The faults that any engine meets. Each is carried out on a trial, expects what has to come of it,
and says in a few words what was done."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tests.batch.cluster.real import processes
from tests.batch.cluster.real.processes import Process
from tests.batch.cluster.real.trial import Trial
from tui.batch.cluster.worker import EXIT_DONE, EXIT_REFUSED, private_place

Fault: TypeAlias = Callable[[Trial], Awaitable[str]]
_NETWORK_S = 60.0
_MIB = 1024 * 1024


async def worker(trial: Trial) -> str:
    """A worker is killed."""
    one = await trial.victim(often=True)
    trial.check_secrets(one)
    processes.signalled(one.pid, signal.SIGKILL)
    return f"{one.task}, process {one.pid}"


async def gone(trial: Trial) -> str:
    """A worker is killed, and the engine has forgotten it: it never comes back."""
    one = await trial.victim()
    processes.signalled(one.pid, signal.SIGKILL)
    taken = await asyncio.to_thread(trial.engine.cancel, one, one.task)
    return f"{one.task}; {taken}"


async def driver(trial: Trial) -> str:
    """The driver is killed, and started again."""
    said = await trial.without_driver(trial.driver.kill)
    await trial.start_driver()
    return said


async def laptop(trial: Trial) -> str:
    """The laptop is closed: the driver stands still, its terminal is gone; later it is killed."""
    trial.driver.signal(signal.SIGSTOP)
    await asyncio.sleep(trial.given.closed)
    trial.driver.signal(signal.SIGCONT)
    await asyncio.sleep(3)
    hung = await trial.without_driver(partial(_hung_up, trial))
    await trial.start_driver()
    await trial.until(lambda: [*trial.at_work()], 120)
    killed = await trial.without_driver(trial.driver.kill)
    await trial.start_driver()
    return f"{trial.given.closed} s asleep; hung up, {hung}; killed, {killed}"


async def _hung_up(trial: Trial) -> None:
    code = await trial.driver.hang_up()
    trial.expect(code is not None, "the driver doesn't end when its terminal is gone")


async def stop(trial: Trial) -> str:
    """The person stops the run with Ctrl+C, and starts it again."""
    code = await trial.driver.stop()
    trial.expect(code == 130, f"the stopped driver ended with {code}")
    began = time.monotonic()
    ended = await trial.until(lambda: not trial.engines_own() and not trial.engine.jobs(), 60)
    trial.expect(ended, f"a stopped run leaves jobs or workers: {[*trial.engine.jobs()]}")
    await trial.start_driver()
    return f"jobs and workers were gone after {time.monotonic() - began:.0f} s"


async def engine(trial: Trial) -> str:
    """The engine's scheduler is killed, and started again."""
    return await trial.engine.restart()


async def stopped(trial: Trial) -> str:
    """A worker stands still, with its group, and wakes when it has long been given up."""
    one = await trial.victim()
    trial.asleep.add(one.pid)
    processes.signalled(one.pid, signal.SIGSTOP, group=True)
    trial.background.append(asyncio.create_task(_wake(trial, one)))
    return f"{one.task}, to be woken in {trial.given.stopped} s"


async def _wake(trial: Trial, one: Process) -> None:
    key, began = one.task.rpartition("/")[2], time.monotonic()
    holder = trial.entries()[key].holder
    if await trial.until(lambda: not trial.lives(one), trial.given.stopped):
        trial.asleep.discard(one.pid)
        trial.say(f"stopped: {one.task} was ended after {time.monotonic() - began:.0f} s")
        return
    before, now = trial.model.latest[one.id], trial.entries()[key]
    processes.signalled(one.pid, signal.SIGCONT, group=True)
    if now.holder == holder and now.state == "running":  # nobody was there to take it
        trial.asleep.discard(one.pid)
        trial.say(f"stopped: {one.task} woke, and goes on, as nobody has taken its task")
        return
    woken = time.monotonic()
    ended = await trial.until(lambda: not trial.lives(one), 60)
    trial.asleep.discard(one.pid)
    trial.expect(ended, f"a worker that woke without its task goes on: {one.task}")
    trial.expect(trial.model.latest[one.id] == before, f"a woken worker asks on: {one.task}")
    trial.say(f"stopped: {one.task} woke, and ended in {time.monotonic() - woken:.0f} s")


async def version(trial: Trial) -> str:
    """Workers of another version come, for a task that waits and for one that is worked on."""
    env = {"PYTHONPATH": str(await asyncio.to_thread(trial.scene.other_version))}
    key, started = await trial.hand_started(env=env)
    trial.expect(started.returncode == EXIT_REFUSED, f"another version: {trial.said_by_hand(key)}")
    entry = trial.entries()[key]
    trial.expect(entry.refusals, f"the store doesn't have the refusal of {key}")
    trial.expect(entry.attempt <= 1, f"a refusal counts as an attempt: {key}")
    one = await trial.victim()
    busy = one.task.rpartition("/")[2]
    before = trial.entries()[busy]
    elsewhere = {"HOLDFAST_HOME": str(trial.scene.folder / "elsewhere")}  # as on another machine
    second = trial.start_worker(busy, env={**env, **elsewhere})
    await trial.until(lambda: second.poll() is not None, 60)
    now = trial.entries()[busy]
    same = now.attempt == before.attempt and now.losses == before.losses
    trial.expect(same or now.is_over, f"a refusal takes {busy} from its worker")
    await asyncio.sleep(10)
    over = trial.entries()[busy].is_over
    trial.expect(over or trial.lives(one), f"a refusal ends the worker of {busy}")
    return f"{key} refused; {busy}, at work, was asked for, too ({second.returncode})"


async def clock(trial: Trial) -> str:
    """A worker's clock is two hours ahead of all others."""
    assert shutil.which("faketime"), "needs faketime"
    key, started = await trial.hand_started(["faketime", "-f", "+2h"])
    trial.background.append(asyncio.create_task(_to_its_end(trial, key, started)))
    return f"{key} by a worker that is two hours ahead"


async def _to_its_end(trial: Trial, key: str, started: subprocess.Popen[bytes]) -> None:
    await trial.until(lambda: started.poll() is not None, 600)
    said = trial.said_by_hand(key)[-300:]
    trial.expect(started.returncode == EXIT_DONE, f"{key} ended with {started.returncode}: {said}")


async def disk(trial: Trial) -> str:
    """The disk of a worker is full before the task's files are there."""
    key, started, place = await _on_disk_of(trial, trial.given.files * 2 * 1024 + 64 * 1024)
    trial.expect(started.returncode not in {None, EXIT_DONE}, f"{key} was done without a disk")
    return await _given_back(trial, key, started, place)


async def filled(trial: Trial) -> str:
    """The disk of a worker becomes full while it works."""
    key, started, place = await _on_disk_of(trial, trial.given.files * 16 * 1024 + 32 * _MIB)
    await asyncio.to_thread(_fill, place / "filler")
    return await _given_back(trial, key, started, place)


async def _on_disk_of(trial: Trial, size: int) -> tuple[str, subprocess.Popen[bytes], Path]:
    """Start a worker by hand whose task has a disk of its own, with so many bytes."""
    places: list[Path] = []

    def mount(key: str) -> None:
        scratch = Path(trial.engine.worker_env["HOLDFAST_HOME"]) / "work"
        place = private_place(scratch, trial.engine.store) / trial.run / key
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", str(place)]
        subprocess.run(words, check=True)
        places.append(place)

    key, started = await trial.hand_started(ready=mount)
    for place in places[:-1]:
        _unmount(place)
    return key, started, places[-1]


async def _given_back(trial: Trial, key: str, started: subprocess.Popen[bytes], place: Path) -> str:
    """Wait until a worker without a disk has ended; its task has to wait, and to say why."""
    ended = await trial.until(lambda: started.poll() is not None, 180)
    trial.expect(ended, f"the worker of {key} doesn't end on a full disk")
    processes.signalled(started.pid, signal.SIGKILL, group=not ended)
    started.wait()
    _unmount(place)
    entry = trial.entries()[key]
    trial.expect(entry.state != "running", f"{key} isn't given back by a worker without a disk")
    trial.expect(entry.ended or entry.refusals, f"nobody says why {key} failed without a disk")
    return f"{key}: exit {started.returncode}, {entry.state}, {entry.ended[:150]}"


def _fill(path: Path) -> None:
    block = bytes(_MIB)
    try:
        with path.open("wb", buffering=0) as file:
            while file.write(block):
                pass
    except OSError:
        return


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "--lazy", str(place)], check=True)


async def network(trial: Trial) -> str:
    """The network is gone for a minute."""
    _link("down")
    await asyncio.sleep(_NETWORK_S)
    count = len(processes.workers(processes.every()))
    _link("up")
    return f"down for {_NETWORK_S:.0f} s, {count} workers at its end"


def _link(state: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", state], check=True)


FAULTS: Mapping[str, Fault] = {
    "worker": worker,
    "gone": gone,
    "driver": driver,
    "laptop": laptop,
    "stop": stop,
    "engine": engine,
    "stopped": stopped,
    "version": version,
    "clock": clock,
    "disk": disk,
    "filled": filled,
    "network": network,
}
EARLY = frozenset({"version", "clock", "disk", "filled", "stopped"})
"""Faults that need tasks which wait, or time until they are over."""
USUAL: Mapping[str, int] = {
    **dict.fromkeys(FAULTS, 1),
    "worker": 20,
    "driver": 5,
    "laptop": 2,
    "killer": 1,
}
"""The faults of a run, and how often. `killer` is no event: a task that kills its worker."""
