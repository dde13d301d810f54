"""Whole processes of `-p`, from spawn to exit: wall and processor, with the processes they start.

Against the scripted loopback server, with the settings as they are: sandbox, checkpoints, synced.
Beside each a bare script on the SDK that sends the same request, and the same run without what
might sit in the way.

And the memory of sessions without a screen, in proportional shares (PSS), while each waits for its
answer: many, with the parent that forks them, beside as many that load the program themselves.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.pace import slowness
from tests.benchmarks.streamed import playing

RUNS = 9
HELLO_S, HELLO_CPU_S = 0.4, 0.4
COMMAND_S, COMMAND_CPU_S = 0.4, 0.4
"""On a quiet machine."""
OF_BARE = 0.6
"""Of the wall time of the bare script, which loads all of the SDK."""
SESSIONS, SESSION_MB, SESSIONS_MB = 20, 40, 500
"""Before they had a parent, each took 43 MB: 870 in all."""
OF_ALONE = 0.6
OFF = 1.15
"""With a feature over without it: what does nothing in a run may cost it nothing."""

_HELLO = {"text": "Hello."}
_CALL = {"tools": [{"name": "run_command", "input": {"command": "echo hi"}}]}
_BARE = """
import asyncio, sys, anthropic
async def main():
    client = anthropic.AsyncAnthropic(api_key="k", base_url=sys.argv[1], max_retries=0)
    stream = await client.messages.create(
        model="claude-sonnet-4-5", max_tokens=9, stream=True,
        messages=[{"role": "user", "content": "hello"}])
    async for event in stream:
        pass
asyncio.run(main())
"""
_WITHOUT = {
    "sandbox": 'sandbox.engine = "off"',
    "checkpoints": 'checkpoints.mode = "off"',
}
"""Settings that switch a feature off."""


class _Cost(NamedTuple):
    seconds: float
    cpu_s: float


def run() -> list[tuple[str, float, float]]:
    """(what, ratio measured, ratio allowed) of each measurement."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        place, slow = Path(folder), slowness()
        (place / "work").mkdir()
        for name, setting in _WITHOUT.items():
            (place / name / "config").mkdir(parents=True)
            (place / name / "config" / "config.toml").write_text(f"{setting}\n")
        kinds = dict.fromkeys(_WITHOUT, _PRINT)
        hello = _measured(place, [_HELLO], {"ours": _PRINT, "bare": [], **kinds})
        command = _measured(place, [_CALL, _HELLO], {"ours": [*_PRINT, "--yolo"]})["ours"]
        memory = _memory(place) if sys.platform == "linux" else []
    ours = hello["ours"]
    return [
        *memory,
        *_rows("-p hello", ours, _Cost(HELLO_S * slow, HELLO_CPU_S * slow)),
        *_rows("-p with one command", command, _Cost(COMMAND_S * slow, COMMAND_CPU_S * slow)),
        (
            f"-p hello, {ours.seconds:.2f} s ÷ bare SDK script, {hello['bare'].seconds:.2f} s",
            ours.seconds / hello["bare"].seconds,
            OF_BARE,
        ),
        *(
            (
                f"-p hello ÷ without {name}, {ours.cpu_s:.2f} ÷ {off.cpu_s:.2f} s of processor",
                ours.cpu_s / off.cpu_s,
                OFF,
            )
            for name, off in hello.items()
            if name in _WITHOUT
        ),
    ]


_PRINT = [sys.executable, "-m", "tui", "-p", "hello"]


def _memory(place: Path) -> list[tuple[str, float, float]]:
    held = {"text": "Hello.", "delay_s": 600}
    with playing(place, [held] * (SESSIONS + 1)) as url:
        env = _environment(url) | {"HOLDFAST_HOME": str(place / "alone")}
        folder = place / "alone" / "data" / "background"
        folder.mkdir(parents=True)
        folder.chmod(0o755)  # no parent may be asked in a folder that others may enter
        (alone,) = _shares(env, folder, place / "work", 1)
        env["HOLDFAST_HOME"] = str(place / "many")
        *many, parent = _shares(env, place / "many" / "data" / "background", place / "work")
    each, whole = sum(many) / SESSIONS, sum(many) + parent
    what = f"--bg, {SESSIONS} sessions"
    return [
        (f"{what}, each {each:.0f} of {SESSION_MB} MB", each / SESSION_MB, 1),
        (f"{what} and their parent, {whole:.0f} of {SESSIONS_MB} MB", whole / SESSIONS_MB, 1),
        (
            f"{what} and their parent ÷ as many like one alone, {alone:.0f} MB each",
            whole / (SESSIONS * alone),
            OF_ALONE,
        ),
    ]


def _shares(
    env: Mapping[str, str], folder: Path, work: Path, number: int = SESSIONS
) -> list[float]:
    """The memory of so many sessions in the background, in MB, and that of their parent if they
    have one. All have ended then."""
    words = [sys.executable, "-m", "tui", "--bg", "hello"]
    for _ in range(number):
        subprocess.run(words, env=env, cwd=work, stdout=subprocess.DEVNULL, check=True)
    started = list(folder.glob("*.json"))
    while not all("waiting for" in json.loads(one.read_text())["detail"] for one in started):
        time.sleep(0.1)
    time.sleep(1)  # until all that a request needs has been done
    sessions = [json.loads(one.read_text())["pid"] for one in started]
    fields = Path(f"/proc/{sessions[0]}/stat").read_text().rpartition(")")[2].split()
    parent = int(fields[1])
    its = [parent] if b"tui.cli.background" in Path(f"/proc/{parent}/cmdline").read_bytes() else []
    shares = [_share(process) for process in [*sessions, *its]]
    for process in [*sessions, *its]:
        os.kill(process, signal.SIGKILL)
    return shares


def _share(process: int) -> float:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _environment(url: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC", "HOLDFAST"))}
    return env | {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}


def _rows(what: str, cost: _Cost, goal: _Cost) -> list[tuple[str, float, float]]:
    return [
        (f"{what}, spawn → exit, {got:.2f} of {most:.2f} {unit}", got / most, 1)
        for got, most, unit in zip(cost, goal, ("s", "s of processor"), strict=True)
    ]


def _measured(
    place: Path, turns: Sequence[Mapping[str, Any]], commands: Mapping[str, Sequence[str]]
) -> dict[str, _Cost]:
    """The medians of commands that are run in turn; each gets all turns."""
    times = (RUNS + 1) * len(commands)
    with playing(place, [*turns] * times) as url:
        env = _environment(url)
        argv = {
            name: [*words] if words else [sys.executable, "-c", _BARE, url]
            for name, words in commands.items()
        }
        taken: dict[str, list[_Cost]] = {name: [] for name in argv}
        for round_ in range(RUNS + 1):
            for name, words in argv.items():
                home = str(place / name)
                cost = _cost(words, env | {"HOLDFAST_HOME": home}, place / "work")
                if round_:  # the first writes what later ones start from
                    taken[name].append(cost)
    return {
        name: _Cost(*map(statistics.median, zip(*costs, strict=True)))
        for name, costs in taken.items()
    }


def _cost(words: Sequence[str], env: Mapping[str, str], work: Path) -> _Cost:
    """What one process costs, with those it waited for."""
    started = time.perf_counter()
    process = subprocess.Popen(
        words, env=env, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, json.dumps(list(words))
    return _Cost(seconds, used.ru_utime + used.ru_stime)
