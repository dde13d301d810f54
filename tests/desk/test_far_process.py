"""`serve --stdio` as a process, started by a command in the place of ssh."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.far_machine import until
from tests.support.watcher import Watcher
from tui.app.door.lines import GiveAnswer, Hello
from tui.desk.far_host import FarHost
from tui.desk.far_lines import MARKER, Greeting, far_line_of
from tui.desk.far_ssh import dial_command

_MACHINE = [sys.executable, "-m", "tests.support.far_machine"]


@asynccontextmanager
async def _desk(words: list[str]) -> AsyncGenerator[FarHost]:
    host = FarHost("box", dial=partial(dial_command, words))
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield host
    finally:
        await host.close()


def _failed(host: FarHost) -> bool:
    return bool(host.problem) and not host.problem.startswith("Connecting")


async def test_a_process_serves_answers_and_ends_with_its_input(tmp_path: Path) -> None:
    async with _desk([*_MACHINE, str(tmp_path)]) as host:
        await until(host, lambda: host.rows)
        assert host.greeting is not None
        assert host.greeting.home == str(tmp_path)
        watcher = Watcher(host, "abc123")
        await watcher.until(lambda: watcher.questions)
        watcher.request(GiveAnswer(number="1", to="q1", answer="yes"))
        await watcher.until(lambda: watcher.outcomes)
        assert watcher.outcomes["1"].outcome == "done"
        await watcher.close()
    assert json.loads((tmp_path / "ended").read_text()) == [["q1", "yes"]]


@pytest.mark.parametrize("noise", ["printf 'Welcome!\\n'", "printf 'no newline {'", "echo '{}'"])
async def test_what_a_shell_prints_before_is_skipped(tmp_path: Path, noise: str) -> None:
    words = ["sh", "-c", f'{noise}; echo complaint >&2; exec {shlex.join(_MACHINE)} "$0"']
    async with _desk([*words, str(tmp_path)]) as host:
        await until(host, lambda: host.rows)
        assert host.problem == ""


def test_it_ends_in_order_when_nobody_reads_any_more(tmp_path: Path) -> None:
    words = [*_MACHINE, str(tmp_path)]
    with subprocess.Popen(words, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while not process.stdout.readline().startswith(MARKER):
            pass
        process.stdin.write(far_line_of(Greeting()))
        process.stdin.flush()
        assert b'"every"' in process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


async def test_a_killed_process_is_noticed_and_started_again(tmp_path: Path) -> None:
    async with _desk([*_MACHINE, str(tmp_path)]) as host:
        await until(host, lambda: host.rows)
        assert host.greeting is not None
        first = host.greeting.pid
        os.kill(first, signal.SIGKILL)
        await until(host, lambda: host.problem)
        assert host.problem == "The line to box is cut: it ended."
        await until(host, lambda: not host.problem)
        assert host.greeting.pid != first
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        channel = await host.open("abc123")
        assert isinstance(await channel.receive(), Hello)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
async def test_a_signal_ends_it_in_order(tmp_path: Path, name: str) -> None:
    async with _desk([*_MACHINE, str(tmp_path)]) as host:
        await until(host, lambda: host.rows)
        assert host.greeting is not None
        os.kill(host.greeting.pid, signal.Signals[name])
        await until(host, lambda: host.problem)
        await until(host, lambda: not host.problem)
        assert (tmp_path / "ended").exists()


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 127", "box has no command holdfast. Install Holdfast there"),
        ("exit 2", "The Holdfast on box is too old to serve a desk"),
        ("echo 'No such thing' >&2; exit 1", "On box Holdfast ended at once (1). It said: No such"),
        ("echo Hi; echo This account is locked; exit 1", "It said: This account is locked"),
        (
            "echo 'ann@box: Permission denied (publickey,password).' >&2; exit 255",
            "box needs a password. Run `ssh box` once",
        ),
        (
            "echo 'ann@box: Permission denied (publickey).' >&2; exit 255",
            "box takes none of your keys",
        ),
        (
            'echo \'HOLDFAST SERVES {"type":"greeting","protocol":99,"version":"9.9"}\'; cat',
            "(protocol 99.1 there, 1.1 here). Update it here.",
        ),
        ("printf 'HOLDFAST SERVES {\\n'; cat", "box doesn't answer."),
    ],
)
async def test_why_a_machine_can_not_be_reached_is_said(script: str, problem: str) -> None:
    async with _desk(["sh", "-c", script]) as host:
        await until(host, lambda: _failed(host))
        assert problem in host.problem


async def test_a_missing_ssh_is_said() -> None:
    async with _desk(["/nowhere/ssh"]) as host:
        await until(host, lambda: _failed(host))
        assert host.problem == ("ssh can't be started on this machine: No such file or directory.")
