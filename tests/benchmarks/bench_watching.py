"""The whole desk in a pty over 200 real sessions, of which 20 stream in the background.

The others are saved ones, or ended. The answers come from `tests.desk.real.model`, ten pieces a
second each. The work for a key is what the program takes of a processor from the key to its echo.
The CPU is that of the desk, and what the owners take for it, over what they take without it: the
median of some rounds of both. A question counts from the time that its owner gives
it to the moment when its words are on the screen.

Beside that the live view (`attach`) of one session that streams, and of one with 50,000 messages
that is open on a screen: the longest stretch in which its loop hears no key (`tests.benchmarks.
loop`), and the work for a key.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.bench_open import MESSAGES, long_session
from tests.benchmarks.loop import stretches
from tests.benchmarks.pace import slowness
from tests.benchmarks.process_cost import rss_mb
from tests.support.clock import PATIENCE_S
from tests.support.desk_world import home_in
from tests.support.terminal import HOLDFAST, Terminal
from tui.app import background
from tui.app.background import BackgroundSession
from tui.core.clock import SystemClock, timestamp
from tui.core.paths import Folders
from tui.desk.local_host import LocalHost
from tui.session.records import Header, Record

SESSIONS, STREAMING, ASKING = 200, 20, 5
ROUNDS, MEASURED_S, DESKS = 3, 8.0, 10
"""As many desks at once show what one costs the owners, which is less than chance."""
KEYS, PAUSE_S = 60, 0.25
KEY_MS, MOST_KEY_MS = 5.0, 8.0
CPU_PERCENT = 5.0
SEEN_S = 0.3
MEMORY_MB = 100
STREAM_S, STRETCH_MS, OPENING_MS = 15.0, 10.0, 30.0
"""Opening fills the conversation and draws a whole screen for the first time: 20 ms, once."""
_KEYS = "ΩΨΦΣΠΞΛΘΔΓЖЦЧШЩЭЮЯБД"
"""Nothing else on the screen has them."""

_OF_PROCESS = 2
"""Of Linux: the clock of all that a process runs, with its number (CPUCLOCK_SCHED)."""

_Rows = list[tuple[str, float, float]]


class World(NamedTuple):
    """A machine with sessions that stream."""

    home: Folders
    work: Path
    env: Mapping[str, str]


def run() -> _Rows:
    with tempfile.TemporaryDirectory() as folder, _answering() as url:
        place = Path(folder)
        (place / "work").mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
        env |= {"HOLDFAST_HOME": folder, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
        world = World(home_in(place), place / "work", env)
        for number in range(SESSIONS - STREAMING):
            _save(world, number)
        try:
            return [*_desk_rows(world), *_live_rows(world)]
        finally:
            _end_all(world)


@contextmanager
def _answering() -> Generator[str]:
    server = [sys.executable, "-m", "tests.desk.real.model"]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _desk_rows(world: World) -> _Rows:
    for number in range(STREAMING - ASKING):
        _begin(world, f"Task {number}\nSteps: say 900 word{number}")
    pids = [one.pid for one in background.sessions(world.home, SystemClock().now())]
    time.sleep(5)
    rounds = [asyncio.run(_round(world, pids)) for _ in range(ROUNDS)]
    alone, extra = map(statistics.median, zip(*rounds, strict=True))
    with _desk(world) as screen:
        screen.listen(5)
        before, began = _cpu([screen.process.pid]), time.monotonic()
        screen.listen(MEASURED_S)
        desk = (_cpu([screen.process.pid]) - before) / (time.monotonic() - began)
        moving = [_to_echo(screen, lambda n=n: _move(screen, n)) for n in range(KEYS)]
        filtering = _typed(screen, "/")
        screen.type("\x1b")
        screen.listen(1)
        waits = [_question(world, screen, number) for number in range(ASKING)]
        memory = rss_mb(screen.process.pid)
    about = f"{SESSIONS} sessions, {STREAMING} of them streaming"
    over = 100 * (desk + extra) / alone
    shares = (
        f"the desk takes {100 * desk:.1f} % CPU, the owners {100 * alone:.0f} %,"
        f" {100 * extra:+.1f} % for it"
    )
    middle, last = (1e3 * one for one in (statistics.median(waits), max(waits)))
    seen = f"a question is seen after {middle:.0f} ms, the last of {ASKING} after {last:.0f}"
    return [
        *_key_rows(f"a key that moves the cursor, {about}", moving),
        *_key_rows(f"a key in the filter, {about}", filtering),
        (
            f"{about}: {shares}: {over:.1f} of {CPU_PERCENT:g} % over their own",
            over / CPU_PERCENT,
            1,
        ),
        (
            f"{seen} of {1e3 * SEEN_S:.0f}",
            max(waits) / SEEN_S,
            1,
        ),
        (f"memory of the desk, {memory:.0f} of {MEMORY_MB} MB", memory / MEMORY_MB, 1),
    ]


def _live_rows(world: World) -> _Rows:
    log = world.home.data / "stretches"
    id_ = _begin(world, "Live\nSteps: say 5 word; think 3; run ls; say 900 hello")
    log.touch()
    with _attached(world, log, id_) as screen:
        screen.wait_for("word")
        screen.listen(1)
        began = time.monotonic()
        screen.listen(STREAM_S)
        streamed = max((one.ms for one in stretches(log, began)), default=0.0)
        keys = _typed(screen, "")
    path = long_session(world.home.sessions / "long", world.work)
    argv = (*HOLDFAST, "-r", path)
    with Terminal(argv, cwd=world.work, env=world.env, columns=120, rows=40) as own:
        own.wait_for(f"question {MESSAGES // 2 - 1}")
        own.listen(3)
        began = time.monotonic()
        with _attached(world, log, path) as screen:
            screen.wait_for(f"question {MESSAGES // 2 - 1}")
            seconds = time.monotonic() - began
            screen.listen(2)
            opened = max((one.ms for one in stretches(log, began)), default=0.0)
            after = _typed(screen, "")
    slow, live = slowness(), "a live view"
    return [
        (
            f"{live} that streams hears keys at least each {streamed:.1f} ms",
            streamed / STRETCH_MS / slow,
            1,
        ),
        *_key_rows(f"a key in {live} that streams", keys),
        (
            f"{live} of {MESSAGES:,} messages, opened in {seconds:.1f} s, each {opened:.1f} ms",
            opened / OPENING_MS / slow,
            1,
        ),
        *_key_rows(f"a key in {live} of {MESSAGES:,} messages", after),
    ]


def _key_rows(what: str, seconds: list[float]) -> _Rows:
    """The median, and what 95 of 100 keys take at most, in milliseconds of processor."""
    slow = slowness()
    middle, most = 1e3 * statistics.median(seconds), 1e3 * statistics.quantiles(seconds, n=20)[-1]
    return [
        (f"{what}, median {middle:.1f} of {KEY_MS * slow:.1f} ms", middle / KEY_MS / slow, 1),
        (
            f"{what}, 95 of 100 within {most:.1f} of {MOST_KEY_MS * slow:.1f} ms",
            most / MOST_KEY_MS / slow,
            1,
        ),
    ]


async def _round(world: World, pids: Sequence[int]) -> tuple[float, float]:
    """The CPU of the owners alone, and how much more they take for each desk; in processors."""
    before, began = _cpu(pids), time.monotonic()
    await asyncio.sleep(MEASURED_S)
    alone = (_cpu(pids) - before) / (time.monotonic() - began)
    hosts = [LocalHost(world.home) for _ in range(DESKS)]
    try:
        for host in hosts:
            host.follow(_nothing)
        await asyncio.sleep(3)
        before, began = _cpu(pids), time.monotonic()
        await asyncio.sleep(MEASURED_S)
        watched = (_cpu(pids) - before) / (time.monotonic() - began)
    finally:
        await asyncio.gather(*(host.close() for host in hosts))
    return alone, (watched - alone) / DESKS


def _nothing() -> None:
    """Do nothing with a change."""


def _to_echo(screen: Terminal, press: Callable[[], object]) -> float:
    """Seconds of processor from a key to what comes of it, with a rest after that."""
    before = _cpu([screen.process.pid])
    press()
    took = _cpu([screen.process.pid]) - before
    screen.listen(PAUSE_S)
    return took


def _move(screen: Terminal, number: int) -> None:
    screen.type("\x1b[B" if number % 20 < 10 else "\x1b[A")
    until = time.monotonic() + PATIENCE_S
    while not screen.read(0.5):
        assert time.monotonic() < until, "the cursor doesn't move"


def _typed(screen: Terminal, first: str) -> list[float]:
    """Seconds of processor for each key of a text, after a key that leads to its field."""
    screen.type(first)
    screen.listen(1)
    return [_to_echo(screen, lambda key=key: screen.echo(key)) for key in _KEYS]


def _question(world: World, screen: Terminal, number: int) -> float:
    """Seconds from when a question is asked to when it is on the screen."""
    words = f"Really{number}?"
    id_ = _begin(world, f"Question {number}\nSteps: say 3 word; ask {words}; say 900 on")
    until = time.monotonic() + PATIENCE_S
    while words not in screen.now:
        assert time.monotonic() < until, "the question isn't seen"
        screen.read(0.005)
    seen = time.time()
    one = background.entry(world.home, id_)
    assert one is not None
    return seen - datetime.fromisoformat(one.since).timestamp()


@contextmanager
def _desk(world: World) -> Generator[Terminal]:
    argv = (*HOLDFAST, "desk")
    with Terminal(argv, cwd=world.work, env=world.env, columns=160, rows=48) as screen:
        screen.wait_for("Task 1")
        yield screen


@contextmanager
def _attached(world: World, log: Path, session: str) -> Generator[Terminal]:
    """A live view whose loop's stretches go to `log`."""
    argv = (sys.executable, "-m", "tests.benchmarks.loop", str(log), "attach", session)
    env = {**world.env, "PYTHONPATH": str(Path(__file__).parents[2])}
    with Terminal(argv, cwd=world.work, env=env, columns=120, rows=40) as screen:
        yield screen


def _begin(world: World, prompt: str) -> str:
    argv = (*HOLDFAST, "--bg", prompt)
    done = subprocess.run(
        argv, cwd=world.work, env=world.env, check=True, capture_output=True, text=True
    )
    return done.stdout.split()[4]


def _end_all(world: World) -> None:
    for one in background.sessions(world.home, SystemClock().now()):
        background.send(one, signal.SIGKILL)


def _save(world: World, number: int) -> None:
    """Write a session that was open some hours ago; each third was one in the background."""
    id_ = f"{number:012x}"
    then = timestamp(datetime.now(UTC) - timedelta(hours=number % 20, minutes=number))
    folder = world.home.sessions / "work-00000000"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{then[:19].translate({45: None, 58: None}).replace('T', '-')}-{id_}.jsonl"
    header = Header(id=id_, created=then, cwd=str(world.work), app="holdfast 1")
    records = [header.to_line()]
    for n in range(20):
        text = f"Message {n} of session {number}"
        content = {"content": [{"type": "text", "text": text}], "text": text}
        kind = "assistant" if n % 2 else "user"
        records.append(Record(kind, f"r{n}", f"r{n - 1}" if n else None, then, content).to_line())
    path.write_bytes(b"".join(records))
    if number % 3 == 0:
        one = BackgroundSession(
            id=id_,
            path=str(path),
            cwd=str(world.work),
            pid=1,
            born="0",
            host="",
            state="done",
            detail="All is done.",
            started=then,
            since=then,
            title=f"Ended {number}",
        )
        background.save(world.home, one)


def _cpu(pids: Sequence[int]) -> float:
    """CPU seconds of processes so far."""
    return sum(time.clock_gettime((~pid << 3) | _OF_PROCESS) for pid in pids)
