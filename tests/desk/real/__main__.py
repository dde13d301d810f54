"""Trials of the desk with a real sshd: `python -m tests.desk.real [--tree DIR] [TRIAL ...]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.benchmarks.bench_open import MESSAGES, long_session
from tests.desk.real.recorder import SessionRecorder
from tests.desk.real.scene import LOST_S, Machine
from tests.support.watcher import Watcher
from tui.app.door.lines import GiveAnswer, RequestOutcome
from tui.desk.far_host import FarHost
from tui.permissions.types import Answer
from tui.session.reader import active_branch, read
from tui.session.records import Record

TOP: Final = Path(__file__).resolve().parents[3]
Trial = Callable[[Machine], Awaitable[None]]
DELAY_S: Final = 0.075


def say(text: str) -> None:
    """Print a line at once."""
    print(f"  {text}", flush=True)


def expect(is_so: object, text: str) -> None:
    """Raise AssertionError with a text unless something is so."""
    if not is_so:
        raise AssertionError(text)


async def until(host: FarHost, true: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is so, which a change of the host makes so."""
    came = asyncio.Event()
    host.follow(came.set)
    async with asyncio.timeout(seconds):
        while not true():
            came.clear()
            await came.wait()


async def problem_of(host: FarHost) -> str:
    """Return why a machine can't be reached, and close it."""
    try:
        await until(host, lambda: host.problem and "Connecting" not in host.problem)
        return host.problem
    finally:
        await host.close()


def begin_session(machine: Machine, turns: int, words: int, *, asks: int = 4) -> str:
    """Start a session there that streams turns, of which one in `asks` wants to write a file.
    Returns its id."""
    script: list[str] = []
    for turn in range(turns):
        text = " ".join(f"t{turn}w{word}" for word in range(words))
        script.append(f'[[turn]]\ntext = "{text}"\ndelay_s = 0.4')
        run = f'{{name = "run_command", input = {{command = "echo {turn}"}}}}'
        write = f'{{name = "write_file", input = {{path = "f{turn}", content = "x"}}}}'
        if turn < turns - 1:
            script.append(f"tools = [{run if turn % asks else write}]")
    path = machine.folder / f"script{turns}-{words}.toml"
    path.write_text("\n".join(script))
    printed = machine.run("--bg", "--practice-script", str(path), "work through the list")
    return printed.split()[-1]


async def cuts(machine: Machine) -> None:
    """A hundred cuts while a session streams: nothing is lost, nothing done twice."""
    chance = random.Random(54)
    id_ = begin_session(machine, turns=4000, words=60)
    host = FarHost("box")
    follower = SessionRecorder(host, id_)
    prompts: dict[str, asyncio.Task[RequestOutcome]] = {}
    answers: dict[str, asyncio.Task[RequestOutcome]] = {}

    async def act() -> None:
        while True:
            await asyncio.sleep(chance.uniform(0.1, 0.4))
            for number in follower.questions.keys() - answers.keys():
                answering = follower.watched.answer(number, Answer("once"))
                answers[number] = asyncio.create_task(answering)
            if chance.random() < 0.2 and len(prompts) < 60:
                text = f"typed {len(prompts)}"
                prompts[text] = asyncio.create_task(follower.watched.prompt(text))

    acting = asyncio.create_task(act())
    try:
        while machine.line.cuts < 100:
            before = follower.times
            await follower.until(lambda: follower.times > before)  # noqa: B023 - awaited here
            await asyncio.sleep(chance.choice((0.0, 0.05, 0.2, 0.5, 1.0)) * chance.random())
            machine.line.cut()
            host.retry()
            follower.watched.retry()
            if machine.line.cuts % 20 == 0:
                say(f"{machine.line.cuts} cuts, {len(prompts)} prompts, {len(answers)} answers")
    finally:
        acting.cancel()
    before = follower.times
    await follower.until(lambda: follower.times > before)
    requests = [*prompts.values(), *answers.values()]
    say(f"{sum(not one.done() for one in requests)} outcomes are yet to come")
    async with asyncio.timeout(60):
        await asyncio.gather(*requests)
    machine.run("stop", id_)
    say("stopped")
    path, before = Path(follower.hello.path), follower.times
    machine.line.cut()
    await follower.until(lambda: follower.times > before and follower.hello.kind == "none")
    there = active_branch(read(path).records)
    await follower.until(lambda: len(follower.records) >= len(there), 30)
    expect(
        [*map(_whole, follower.records)] == [*map(_whole, there)],
        f"{len(follower.records)} records here, {len(there)} there",
    )
    typed = [one for one in there if one.type == "user"]
    for text, prompt in prompts.items():
        count = sum(f'"{text}"' in json.dumps(one.data) for one in typed)
        outcome = prompt.result().outcome
        expect(outcome != "refused", f"{text} was refused: {prompt.result().text}")
        expect(count == 1 or outcome == "queued", f"{text} is in the record {count} times")
        expect(count <= 1, f"{text} is in the record {count} times")
    outcomes = {answer.result().outcome for answer in answers.values()}
    expect(outcomes <= {"done"}, f"outcomes of answers: {outcomes}")
    touched = len([*machine.work.glob("f*")])
    expect(not follower.faults, f"{len(follower.faults)} faults: {follower.faults[:3]}")
    say(
        f"{machine.line.cuts} cuts: {len(there)} records all here; {len(prompts)} prompts once"
        f" each; {len(answers)} answers done once ({touched} files written); {follower.checked} of"
        f" {follower.answers} answers seen as they streamed, all whole"
    )
    await follower.close()
    await host.close()


def _whole(record: Record) -> tuple[str, str | None, str]:
    return record.id, record.parent, json.dumps(record.data)


async def latency(machine: Machine) -> None:
    """The time from a request to its outcome, on a line with a round trip of 150 ms: at rest, where
    one block in fifty is lost, and where a large session comes over it."""
    id_ = begin_session(machine, turns=400, words=400, asks=1000)
    machine.line.delay_s = DELAY_S
    host = FarHost("box")
    follower = SessionRecorder(host, id_)
    await follower.until(lambda: follower.times)

    async def refused() -> None:
        await follower.watched.answer("nothing", Answer("no"))

    idle = await _echoes(refused, 30)
    say(f"round trip {2 * DELAY_S * 1000:.0f} ms; echo {_words(idle)}")
    machine.line.loss = 0.02
    lossy = await _echoes(refused, 60)
    say(f"with 2 % of all blocks lost, each {LOST_S * 1000:.0f} ms late: echo {_words(lossy)}")
    machine.line.loss = 0.0
    await follower.close()
    await host.close()
    machine.run("stop", id_)
    machine.line.rate = 250_000
    serves = f"exec {sys.executable} -m tests.support.far_machine {machine.work} 10000"
    machine.program(f"cd {TOP}; {serves}")
    host = FarHost("box")
    small, large = Watcher(host, "abc123"), Watcher(host, "large")
    await large.until(lambda: large.records)

    async def outcome() -> None:
        key = f"b{len(small.outcomes)}"
        small.request(GiveAnswer(number=key, to="nothing", answer={"answer": "no"}))
        await small.until(lambda: key in small.outcomes)

    busy = await _echoes(outcome, 30)
    came = len(large.records)
    say(f"while {came} of 10000 pages come at 250 kB/s: echo {_words(busy)}")
    await small.close()
    await large.close()
    await host.close()
    for times, most in ((idle, 1.2), (lossy, 1.2), (busy, 1.3)):
        ratio = statistics.median(times) / (2 * DELAY_S)
        expect(ratio <= most, f"an echo takes {ratio:.2f} round trips")
    expect(came < 10_000, "the line wasn't busy")


async def _echoes(ask: Callable[[], Awaitable[None]], count: int) -> list[float]:
    """The seconds that requests take which an owner refuses at once."""
    times: list[float] = []
    for _ in range(count):
        began = time.monotonic()
        await ask()
        times.append(time.monotonic() - began)
        await asyncio.sleep(0.05)
    return times


def _words(times: Sequence[float]) -> str:
    median, worst = statistics.median(times), max(times)
    trip = 2 * DELAY_S
    return f"{median * 1000:.0f} ms ({median / trip:.2f} trips), worst {worst / trip:.2f} trips"


async def opening(machine: Machine) -> None:
    """A session of 50,000 messages, opened over a line of 250 kB/s with a round trip of 150 ms."""
    id_ = long_session(machine.there / "data" / "sessions" / "long", machine.work)
    machine.line.delay_s, machine.line.rate = DELAY_S, 250_000
    host = FarHost("box")
    began = time.monotonic()
    follower = SessionRecorder(host, id_)
    await follower.until(lambda: follower.times, 300)
    expect(len(follower.records) == MESSAGES, f"{len(follower.records)} messages came")
    say(f"{MESSAGES} messages are here after {time.monotonic() - began:.1f} s")
    await follower.close()
    await host.close()


async def sleep(machine: Machine) -> None:
    """The desk, its ssh, or both, stopped for longer than a line is silent."""
    id_ = begin_session(machine, turns=400, words=20, asks=1000)
    desk = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.desk.real.desk", id_, stdout=asyncio.subprocess.PIPE, cwd=TOP
    )
    assert desk.stdout is not None
    lines = desk.stdout

    async def line() -> str:
        async with asyncio.timeout(60):
            return (await lines.readline()).decode().strip()

    async def until_line(words: str) -> str:
        while words not in (text := await line()):
            expect(text, f"the desk ended before it said {words!r}")
        return text

    try:
        await until_line("caught up")
        for what, stopped in (("desk", [desk.pid]), ("ssh", []), ("both", [desk.pid])):
            pids = [*stopped, *(_children(desk.pid) if what != "desk" else [])]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(65)
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            began = time.monotonic()
            cut = await until_line("cut:")
            back = await until_line("caught up")
            say(f"{what} stopped for 65 s: {cut!r}, {back!r} {time.monotonic() - began:.1f} s on")
        served = _serving(machine)
        expect(len(served) == 1, f"{len(served)} processes serve")
    finally:
        desk.terminate()
        await desk.wait()
    machine.run("stop", id_)


def _children(pid: int) -> list[int]:
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def _serving(machine: Machine) -> list[int]:
    """The processes that serve there."""
    pids: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            home = f"HOLDFAST_HOME={machine.there}".encode()
            if b"serve" in words and home in (place / "environ").read_bytes().split(b"\0"):
                pids.append(int(place.name))
    return pids


async def killed(machine: Machine) -> None:
    """sshd killed with its connections, and started again after some seconds."""
    id_ = begin_session(machine, turns=400, words=20, asks=1000)
    host = FarHost("box")
    follower = SessionRecorder(host, id_)
    await follower.until(lambda: follower.times)
    await until(host, lambda: host.rows)
    machine.stop()
    machine.write_client(machine.port)  # the line would take the connection in its place
    await until(host, lambda: "refuses" in host.problem)
    expect([row.id for row in host.rows if row.id == id_], "the row is gone")
    say(f"while it is down: {host.problem}")
    machine.start()
    began = time.monotonic()
    before = follower.times
    await follower.until(lambda: follower.times > before)
    say(f"back {time.monotonic() - began:.1f} s after it was; the session went on")
    await follower.close()
    await host.close()
    machine.write_client(machine.line.port)
    machine.run("stop", id_)


async def refusals(machine: Machine) -> None:
    """The words for each reason why a machine can't be reached."""
    machine.know("other")
    say(f"changed key: {await _expected('shows another key')}")
    machine.know("")
    say(f"unknown key: {await _expected('known here')}")
    machine.know("host")
    await _restarted(machine, authorized="none", password="yes")
    say(f"password: {await _expected('needs a password')}")
    await _restarted(machine, authorized="none")
    say(f"no key: {await _expected('none of your keys')}")
    await _restarted(machine)
    greeting = '{"type":"greeting","protocol":99,"lines":1,"version":"9.9"}'
    machine.program(f"echo 'HOLDFAST SERVES {greeting}'; cat")
    say(f"other protocol: {await _expected('Update it here')}")
    machine.program('echo "usage: holdfast" >&2; exit 2')
    say(f"too old: {await _expected('too old')}")
    (machine.bin / "holdfast").unlink()
    say(f"not installed: {await _expected('has no command holdfast')}")
    machine.program(f'PYTHONPATH={machine.tree} exec {sys.executable} -P -m tui "$@"')


async def _restarted(
    machine: Machine, *, authorized: str = "key.pub", password: str = "no"
) -> None:
    machine.stop()
    await asyncio.to_thread(machine.start, authorized=authorized, password=password)


async def _expected(words: str) -> str:
    problem = await problem_of(FarHost("box"))
    expect(words in problem, f"{words!r} isn't in {problem!r}")
    return problem


async def noise(machine: Machine) -> None:
    """A shell that prints before, and a Holdfast that only a login shell has in its PATH."""
    noisy = machine.folder / "noisy.sh"
    noisy.write_text("echo 'Welcome to box!'; printf '{not a line'; echo 'locale: bad' >&2\n")
    machine.variables["BASH_ENV"] = str(noisy)
    hidden = machine.folder / "hidden"
    hidden.mkdir()
    (machine.bin / "holdfast").rename(hidden / "holdfast")
    machine.variables["SHELL"] = str(machine.bin / "login")
    login = machine.bin / "login"
    login.write_text(f'#!/bin/bash\nPATH=$PATH:{hidden}\nshift\neval "$1"\n')
    login.chmod(0o755)
    await _restarted(machine)
    host = FarHost("box")
    await until(host, lambda: not host.problem)
    assert host.greeting is not None
    say(f"Holdfast {host.greeting.version} serves on {host.greeting.machine} behind the noise")
    await host.close()
    (hidden / "holdfast").rename(machine.bin / "holdfast")
    for name in ("BASH_ENV", "SHELL"):
        del machine.variables[name]
    await _restarted(machine)


async def nothing_remains(machine: Machine) -> None:
    """No process serves once the desk is gone, killed or not."""
    host = FarHost("box")
    await until(host, lambda: not host.problem)
    expect(len(_serving(machine)) == 1, "it doesn't serve")
    await host.close()
    for _ in range(50):
        if not _serving(machine):
            break
        await asyncio.sleep(0.1)
    expect(not _serving(machine), "it serves nobody")
    desk = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.desk.real.desk", "none", stdout=subprocess.DEVNULL, cwd=TOP
    )
    for _ in range(100):
        if _serving(machine):
            break
        await asyncio.sleep(0.1)
    expect(_serving(machine), "it doesn't serve")
    desk.kill()
    await desk.wait()
    for _ in range(100):
        if not _serving(machine):
            break
        await asyncio.sleep(0.1)
    expect(not _serving(machine), "it serves a desk that was killed")
    say("nothing serves after a desk that was closed, nor after one that was killed")


_EVERY: Final = (refusals, noise, nothing_remains, killed, latency, opening, cuts, sleep)
TRIALS: Final[Mapping[str, Trial]] = {one.__name__: one for one in _EVERY}


async def _main(tree: Path, names: Sequence[str]) -> int:
    failed = 0
    for name in names:
        print(f"{name}: {TRIALS[name].__doc__}", flush=True)
        with tempfile.TemporaryDirectory(prefix="desk-", ignore_cleanup_errors=True) as folder:
            machine = Machine(Path(folder), tree)
            await machine.begin()
            began = time.monotonic()
            try:
                await TRIALS[name](machine)
                print(f"  passed in {time.monotonic() - began:.0f} s", flush=True)
            except (AssertionError, TimeoutError) as error:
                failed += 1
                print(f"  FAILED: {type(error).__name__} {error}", flush=True)
            finally:
                await machine.close()
    return 1 if failed else 0


def main() -> int:
    """Run trials. Returns an exit code."""
    parser = argparse.ArgumentParser(prog="tests.desk.real", description=__doc__)
    parser.add_argument("--tree", type=Path, default=TOP, help="the program on the machine")
    parser.add_argument("trials", nargs="*", metavar="TRIAL", help=", ".join(TRIALS))
    given = parser.parse_args()
    if unknown := {*given.trials} - TRIALS.keys():
        parser.error(f"no such trial: {', '.join(sorted(unknown))}")
    return asyncio.run(_main(given.tree.resolve(), given.trials or [*TRIALS]))


if __name__ == "__main__":
    sys.exit(main())
