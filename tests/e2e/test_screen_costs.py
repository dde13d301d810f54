"""What the whole screen costs in counts that do not vary: writes, bytes, waits and system calls of
a key, of a token, of a command and of a minute of rest.

A ceiling may only fall. Seconds are measured by `tests/benchmarks`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import pytest

from tests.e2e.conftest import Serve
from tests.support.fast_clock import FASTER
from tests.support.machine import needs_proc
from tests.support.preloaded import SCREEN
from tests.support.server import LoopbackServer
from tests.support.terminal import HOLDFAST, Terminal

pytestmark = needs_proc

TOKENS, WARM = 20, 5
COMMANDS = 2
KEYS, PRESSED = "ΩΨΦΣΠΞΛΘΔΓЖЦЧШЩЭЮЯБДЂЃЄЅІ", 10
"""Nothing else on the screen has them."""
MINUTE_S = 1.0
"""Of a clock that runs sixty times as fast."""
_FREE = {"futex", "getpid", "restart_syscall", "gettid", "sched_yield"}
"""Calls whose number depends on Python's version, or on which thread happens to be first."""

Open: TypeAlias = Callable[..., tuple[LoopbackServer, Terminal]]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a process has done so far: calls that write, their bytes, and how often it waited."""

    writes: int
    written: int
    waits: int

    @classmethod
    def of(cls, pid: int) -> Counts:
        process = Path(f"/proc/{pid}")
        done = dict(re.findall(r"^(\w+): (\d+)$", (process / "io").read_text(), re.MULTILINE))
        waits = (
            re.search(r"^voluntary_ctxt_switches:\s*(\d+)", one.read_text(), re.MULTILINE)
            for one in (process / "task").glob("*/status")
        )
        return cls(int(done["syscw"]), int(done["wchar"]), sum(int(w[1]) for w in waits if w))

    def per(self, many: int, before: Counts) -> tuple[float, float, float]:
        """Writes, bytes and waits since `before`, of each of so many."""
        return (
            (self.writes - before.writes) / many,
            (self.written - before.written) / many,
            (self.waits - before.waits) / many,
        )


@contextmanager
def traced(pid: int, file: Path) -> Generator[Counter[str]]:
    """Counts the system calls of a process by name, there when the block is over."""
    if (strace := shutil.which("strace")) is None:
        pytest.skip("there is no strace")
    counted = Counter[str]()
    with subprocess.Popen(
        [strace, "-f", "-qq", "-o", str(file), "-p", str(pid)], stderr=subprocess.PIPE, text=True
    ) as tracer:
        try:
            while f"TracerPid:\t{tracer.pid}" not in Path(f"/proc/{pid}/status").read_text():
                if tracer.poll() is not None:
                    pytest.skip("strace may not look into other processes")
            yield counted
            own = {thread.name for thread in Path(f"/proc/{pid}/task").iterdir()}
        finally:
            tracer.terminate()
    for thread, name in re.findall(r"^(\d+) +(\w+)\(", file.read_text(), re.MULTILINE):
        if thread in own:
            counted[name] += 1


@pytest.fixture
def opened(
    work: Path, env: dict[str, str], config: Callable[[str], Path], serve: Serve
) -> Generator[Open]:
    """Starts the screen before a server that plays turns, and lets it answer once."""
    config('titles = "prompt"\n')
    with ExitStack() as stack:

        def start(
            *turns: dict[str, Any], options: Sequence[str] = ()
        ) -> tuple[LoopbackServer, Terminal]:
            server = serve({"text": "ready"}, *turns)
            given = {**env, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
            screen = stack.enter_context(
                Terminal([*HOLDFAST, *options], cwd=work, env=given, preload=SCREEN)
            )
            screen.wait_for("Ask for anything")
            screen.type("hello\r")
            screen.wait_for("1 prompt", "saved")
            return server, screen

        yield start


def test_a_token_is_written_once_and_waited_for_once(opened: Open, tmp_path: Path) -> None:
    """Each one comes alone and is on the screen before the next: no token shares a frame."""
    words = [f" w{number}" for number in range(100, 100 + WARM + 2 * TOKENS)]
    server, screen = opened({"text": "".join(words), "piece": 5, "stepped": True})
    screen.type("go\r")

    def stream(count: int) -> None:
        for _ in range(count):
            server.step()
            screen.wait_for(words.pop(0).strip())

    stream(WARM)
    before, pid = Counts.of(screen.process.pid), screen.process.pid
    stream(TOKENS)
    writes, written, waits = Counts.of(pid).per(TOKENS, before)
    assert writes <= 1.8, "a frame is one write; the spinner turns meanwhile"
    assert written <= 200
    assert waits <= 4
    with traced(pid, tmp_path / "calls") as calls:
        stream(TOKENS)
    # A frame takes two turns of the loop, so that a key comes between; some 17 on a quiet machine.
    assert sum(calls[name] for name in calls.keys() - _FREE) / TOKENS <= 19.5


def test_a_key_is_written_once_and_wakes_few(opened: Open, tmp_path: Path) -> None:
    """Each one is on the screen before the next is pressed. The median: what goes by time, such as
    a draft each second, meets more keys on a slow machine."""
    _, screen = opened()
    pid = screen.process.pid

    def press(keys: str) -> list[tuple[float, float, float]]:
        costs: list[tuple[float, float, float]] = []
        for key in keys:
            before = Counts.of(pid)
            screen.echo(key)
            screen.listen(0.05)
            costs.append(Counts.of(pid).per(1, before))
        return costs

    press(KEYS[:WARM])
    writes, written, waits = map(median, zip(*press(KEYS[WARM : WARM + PRESSED]), strict=True))
    assert writes <= 1, "a frame is one write"
    assert written <= 100
    assert waits <= 3
    with traced(pid, tmp_path / "calls") as calls:
        press(KEYS[WARM + PRESSED :])
    assert sum(calls[name] for name in calls.keys() - _FREE) / PRESSED <= 14


def test_a_command_writes_and_asks_for_little(opened: Open, tmp_path: Path) -> None:
    turns: list[dict[str, Any]] = []
    for number in range(1 + 2 * COMMANDS):
        words = {"command": f"echo {number} > made; echo shown"}
        turns += [{"tools": [{"name": "run_command", "input": words}]}, {"text": f"end {number}."}]
    _, screen = opened(*turns, options=("--yolo",))
    numbers = iter(range(len(turns)))

    def run(count: int) -> None:
        for _ in range(count):
            screen.forget()
            screen.type("go\r")
            number = next(numbers)
            screen.wait_for(f"end {number}.", f"{number + 2} prompts")

    run(1)
    before, pid = Counts.of(screen.process.pid), screen.process.pid
    run(COMMANDS)
    writes, written, waits = Counts.of(pid).per(COMMANDS, before)
    assert writes <= 60
    assert written <= 60_000
    assert waits <= 250
    with traced(pid, tmp_path / "calls") as calls:
        run(COMMANDS)
    assert sum(calls[name] for name in calls.keys() - _FREE) / COMMANDS <= 1000


def test_a_minute_of_rest_wakes_for_what_may_have_changed_alone(
    work: Path, env: dict[str, str], config: Callable[[str], Path]
) -> None:
    config(f"[mcp.time]\ncommand = {json.dumps([sys.executable, '-m', 'mcp_server_time'])}\n")
    program = [sys.executable, "-m", "tests.support.fast_clock", "--practice"]
    given = {**env, "PYTHONPATH": str(Path(__file__).parents[2])}
    with Terminal(program, cwd=work, env=given) as screen:
        screen.wait_for("Ask for anything")
        screen.type("hello\r")
        screen.wait_for("1 prompt", "saved")
        pid, before = screen.process.pid, -1
        while (now := Counts.of(pid).waits) != before:  # what has begun is over
            before = now
            screen.listen(0.6)
        os.kill(pid, FASTER)
        screen.listen(MINUTE_S)
        screen.forget()
        rested = Counts.of(pid)
        screen.listen(MINUTE_S)
        _, _, waits = Counts.of(pid).per(1, rested)
        assert 0 < waits <= 40
        assert not screen.raw, "nothing on the screen changes"
