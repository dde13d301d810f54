"""Hundreds of tasks over a real engine, with every fault that it may meet. Run by hand:

    python -m tests.batch.cluster.real.many --engine slurm|dask|ssh|local --tasks 500

It works in a folder, network, and process tree of its own, which end with it: it needs Linux,
`unshare`, `ip`, git, `faketime`, and the engine (the packages slurm-wlm and munge, openssh-server,
or the extra `cluster`). It prints a line every 15 seconds, a table at the end, and exits 1 unless
all is as it should be. `--faults worker=4,driver=1` names the faults and how often, in the place of
the whole list. The modules beside this one: `faults`, `checks`, `engines/`.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.batch.cluster.real import checks, processes
from tests.batch.cluster.real.checks import Paid
from tests.batch.cluster.real.driver import Driver
from tests.batch.cluster.real.engines.dask import RealDask
from tests.batch.cluster.real.engines.local import RealLocal
from tests.batch.cluster.real.engines.port import RealEngine
from tests.batch.cluster.real.engines.slurm import RealSlurm
from tests.batch.cluster.real.engines.ssh import RealSsh
from tests.batch.cluster.real.faults import EARLY, FAULTS, USUAL
from tests.batch.cluster.real.model import ANSWERS, TaskModel
from tests.batch.cluster.real.scene import DRIVERS_KEY, TOP, Scene
from tests.batch.cluster.real.trial import Trial

_INSIDE = "HOLDFAST_REAL_INSIDE"
_PROGRESS_S = 15
_STARTS = 60
_LAST = 0.85
"""The part of the tasks that is done when the last fault comes."""
_ENGINES: Mapping[str, Callable[[Scene], RealEngine]] = {
    "local": RealLocal,
    "slurm": RealSlurm,
    "dask": RealDask,
    "ssh": RealSsh,
}


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="many")
    parser.add_argument("--engine", choices=_ENGINES, required=True)
    numbers = {"tasks": 500, "files": 10_000, "parallel": 4, "lease": 30, "seed": 1}
    seconds = {"closed": 60, "stopped": 180, "pause": 4, "patience": 900}
    for name, usual in {**numbers, **seconds}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--delay", type=float, default=2.0, help="seconds of each answer")
    parser.add_argument("--faults", default="", help="NAME=NUMBER,…; none: the whole list")
    parser.add_argument("--keep", type=Path, help="a folder for all of it, if anything is wrong")
    return parser.parse_args()


def enter() -> None:
    """Become the first process of a process tree with a network and mounts of its own."""
    rights = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    apart = ["--net", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]
    inside = [sys.executable, "-m", "tests.batch.cluster.real.many", *sys.argv[1:]]
    os.environ[_INSIDE] = "1"
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background ignores Ctrl+C
    os.execvp("unshare", ["unshare", *rights, *apart, "--", *inside])


def wanted_faults(given: argparse.Namespace, engine: RealEngine) -> dict[str, int]:
    """The faults of a run, and how often each."""
    if given.faults:
        pairs = (one.partition("=") for one in given.faults.split(","))
        return {name: int(number or 1) for name, _, number in pairs}
    wanted = {**USUAL, **engine.extras}
    if given.engine == "local":
        del wanted["engine"]
    return wanted


def in_order(wanted: Mapping[str, int], chance: random.Random) -> list[str]:
    """The faults one after the other: those that need time in the first half."""
    every = [name for name, count in wanted.items() for _ in range(count) if name != "killer"]
    chance.shuffle(every)
    early = [name for name in every if name in EARLY]
    others = [name for name in every if name not in EARLY]
    half = len(every) // 2
    first = [*early, *others[: max(0, half - len(early))]]
    chance.shuffle(first)
    return [*first, *others[max(0, half - len(early)) :]]


def _are_over(trial: Trial, count: float) -> bool:
    return sum(one.is_over for one in trial.entries().values()) >= count


async def hurt(trial: Trial, order: list[str]) -> None:
    """Carry out the faults, each when its part of the tasks is done."""
    for place, name in enumerate(order):
        due = trial.given.tasks * _LAST * place / len(order)
        await trial.until(partial(_are_over, trial, due), math.inf, look_s=2)
        await trial.until(lambda: [*trial.at_work()] or trial.over, 300)
        try:
            fault = FAULTS.get(name)
            said = await (fault(trial) if fault else trial.engine.hurt(name))
        except TimeoutError as error:
            trial.expect(False, f"the fault {name} didn't happen: {error}")
            continue
        trial.done[name] += 1
        trial.say(f"{name}: {said}")
        await asyncio.sleep(trial.given.pause)


async def to_the_end(trial: Trial) -> int:
    """Wait until the driver ends by itself with all that there is to do; returns its exit code."""
    seen, moved, shown = -1, time.monotonic(), 0.0
    while (code := trial.driver.ended()) is None or not trial.over:
        if code is not None:
            trial.expect(False, f"the driver ended by itself ({code}): {trial.driver.text[-400:]}")
            trial.driver.start()
        now = time.monotonic()
        if now - shown >= _PROGRESS_S:
            shown, over = now, progress(trial)
            if over != seen:
                seen, moved = over, now
        if now - moved > trial.given.patience or trial.driver.starts > _STARTS:
            trial.expect(False, f"it doesn't come to its end: {trial.driver.text[-400:]}")
            return -1
        await asyncio.sleep(0.5)
    return code


def progress(trial: Trial) -> int:
    """Print how far it is; returns how many tasks are over."""
    entries = trial.entries().values()
    over = sum(one.is_over for one in entries)
    running = sum(one.state == "running" for one in entries)
    live = len(processes.workers(processes.every()))
    faults = f"{sum(trial.done.values())} faults"
    text = f"{over} of {trial.given.tasks} over, {running} run, {live} workers, {faults}"
    memory = f"driver {trial.usage.peak_kb['driver'] // 1024} MB"
    wrong = f", {len(trial.wrong)} WRONG" if trial.wrong else ""
    trial.say(f"{text}, {memory}, load {os.getloadavg()[0]:.1f}{wrong}")
    return over


async def carried_out(given: argparse.Namespace, folder: Path) -> bool:
    """Run it all; True if everything is as it should be."""
    scene = Scene(folder, given)
    engine = _ENGINES[given.engine](scene)
    wanted, chance = wanted_faults(given, engine), random.Random(given.seed)
    given.killer = min(given.tasks // 2, 7) if wanted.get("killer") else 0
    model = TaskModel(given.delay, given.killer)
    async with model:
        key = {"ANTHROPIC_API_KEY": DRIVERS_KEY, "ANTHROPIC_BASE_URL": model.url}
        words = ["holdfast", "run", "TASKS.md", *engine.words, "--headless"]
        words += ["--parallel", str(given.parallel), "--store", engine.store, "--yolo"]
        env = {**scene.env, **engine.driver_env, **key}
        driver = Driver(words, scene.repo, env, folder / "logs" / "driver.log")
        trial = Trial(given, scene, engine, model, driver, chance)
        trial.say(f"{given.tasks} tasks, {given.files} files, by {given.engine}; {wanted}")
        await asyncio.to_thread(scene.make_repository)
        await asyncio.to_thread(engine.start)
        await prove_missing_store(trial)
        trial.began, before_s = time.monotonic(), processes.reaped_s()
        watching = asyncio.create_task(trial.watch())
        driver.start()
        hurting = asyncio.create_task(hurt(trial, in_order(wanted, chance)))
        code = await to_the_end(trial)
        wall_s = time.monotonic() - trial.began
        await asyncio.gather(*trial.background)
        watching.cancel()
        hurting.cancel()
        for error in await asyncio.gather(watching, hurting, return_exceptions=True):
            if isinstance(error, Exception):
                trial.expect(False, f"the harness failed: {error!r}")
    trial.say(f"the driver ended with {code}; checks")
    trial.expect(code == (1 if given.killer else 0), f"the driver ended with {code}")
    for name, count in wanted.items():
        happened = trial.done[name] + (name == "killer")
        trial.expect(happened == count, f"{name}: {happened} faults of {count}")
    checks.nothing_left(trial)
    used_s = processes.reaped_s() - before_s - trial.looks_s
    paid, count = check(trial)
    print("\n".join(table(trial, wanted, paid, count, wall_s, used_s)), flush=True)
    return not trial.wrong


async def prove_missing_store(trial: Trial) -> None:
    """Check that a run says how to make a store that it can't make itself."""
    if not trial.engine.makes_store:
        trial.driver.start()
        await trial.until(lambda: trial.driver.ended() is not None, 60)
        trial.expect("git init --bare" in trial.driver.text, "nobody says how to make the store")
    trial.engine.make_store()


def check(trial: Trial) -> tuple[Paid, int]:
    """All checks. Returns what was paid and lost, and how many sessions there are."""
    checks.commits(trial)
    checks.states(trial)
    paid = checks.requests(trial, checks.history(trial))
    checks.secrets(trial)
    return paid, checks.sessions(trial)


def table(
    trial: Trial,
    wanted: Mapping[str, int],
    paid: Paid,
    sessions: int,
    wall_s: float,
    used_s: float,
) -> list[str]:
    """The figures of a run, a line each."""
    given, usage = trial.given, trial.usage
    tasks, ideal_s = given.tasks, ANSWERS * given.delay
    slot_s = wall_s * given.parallel / tasks
    rows = [
        f"wall                {wall_s:8.0f} s, {tasks} tasks, {given.parallel} at a time",
        f"place of a worker   {slot_s:8.1f} s a task, {ideal_s:.1f} s of them answers",
        f"processor           {used_s / tasks:8.2f} s a task, all processes but the harness",
    ]
    for kind in sorted(usage.peak_kb):
        own, children = (seconds / tasks for seconds in usage.of(kind))
        peak = usage.peak_kb[kind] // 1024
        rows.append(f"  {kind:<18}{own:8.2f} s, its children {children:.2f} s, peak {peak} MB")
    return [
        *rows,
        f"paid and lost       {paid.answers:8} answers, ${paid.usd:.4f} reserved for such",
        f"requests            {len(trial.model.asked):8}",
        f"sessions            {sessions:8}, all verified unless below",
        f"driver              {trial.driver.starts:8} starts",
        f"faults              {sum(trial.done.values()):8}: "
        + ", ".join(f"{name} {trial.done[name]}" for name in wanted if name != "killer"),
        *(f"WRONG: {one}" for one in trial.wrong),
        "not as it should be" if trial.wrong else "all as it should be",
    ]


def main() -> int:
    given = arguments()
    if _INSIDE not in os.environ:
        enter()
    # with a second address, or name lookups take this for a machine without a network
    for words in ("link set lo up", "address add 127.0.0.2/8 dev lo"):
        subprocess.run(["ip", *words.split()], check=True)
    folder = Path(tempfile.mkdtemp(prefix=f"holdfast-{given.engine}-"))
    good = False
    try:
        good = asyncio.run(carried_out(given, folder))
    finally:
        if given.keep and not good:
            with suppress(OSError, shutil.Error):
                shutil.copytree(folder, given.keep / folder.name, symlinks=True)
        shutil.rmtree(folder, ignore_errors=True)
    return not good


if __name__ == "__main__":
    assert TOP.is_dir()
    sys.exit(main())
