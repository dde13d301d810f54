"""A program that is forked from its preloaded parent does what one that was started afresh does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.support.preloaded import AT_START, PLAIN, SCREEN, Forked, Process, start
from tests.support.program import Done, Program, until
from tests.support.terminal import HOLDFAST
from tui.session.records import CHECKPOINT

PRACTICE: Final = ("--practice", "-y")
STREAM: Final = ("--output-format", "stream-json")
CHANGING: Final = re.compile(
    r"\b[0-9a-f]{8,64}\b|\b[0-9A-Z]{26}\b|\d{4}-?\d\d-?\d\d[T ][\d:.]+Z?|\d+(\.\d+)? ?(ms|s)\b"
    r"|\"[a-z_]*(_ms|_s|seconds|drift|id)\": ?[^,}]+"
)
"""Ids, moments and how long something took."""

WORDS: Final = {
    "answer": (*PRACTICE, "-p", "read README.md"),
    "events": (*PRACTICE, "-p", "create notes.txt with hello", *STREAM),
    "object": (*PRACTICE, "-p", "list files", "--output-format", "json"),
    "command": (*PRACTICE, "-p", "run `echo one; exit 3`", *STREAM),
    "refused": ("--practice", "-p", "create notes.txt with hello"),
    "no key": ("-p", "hello"),
    "unknown option": ("--nonsense",),
    "run": ("run", "TASKS.md", "--practice", "-y", "--json"),
    "sessions": ("sessions", "list"),
    "help": ("--help",),
}

SPYING: Final = """
import os, sys
from collections import UserDict
read = set()
class Spied(UserDict):
    def __getitem__(self, name):
        read.add(name)
        return super().__getitem__(name)
    def __contains__(self, name):
        read.add(name)
        return super().__contains__(name)
spied = Spied(os.environ)
read.clear()
os.environ = spied
from tests.support.preloaded_parent import load
for place in sys.argv[1:]:
    load(place)
print(*sorted(name for name in read if isinstance(name, str)))
"""
LEFT_ALONE: Final = {
    *("HOME", "PATH"),  # where Python's own configuration and a program of pypdf would be
    *("_PYTHON_PROJECT_BASE", "_PYTHON_SYSCONFIGDATA_NAME", "ANDROID_DATA"),
}


BOTH: Final[dict[str, Callable[..., Process]]] = {"fresh": subprocess.Popen, "forks": start}
"""By names of the same length: what is measured has the folder's path in it."""


def place(tmp_path: Path, name: str) -> Program:
    """A workspace and a home of its own."""
    root = tmp_path / name
    work = root / "work"
    work.mkdir(parents=True)
    (work / "README.md").write_text("# Demo\n\nThe demo project.\n")
    (work / "TASKS.md").write_text("- [ ] say hello\n")
    return Program(work, {**os.environ, "HOLDFAST_HOME": str(root / "home"), "HOME": str(root)})


def steady(text: str, program: Program) -> str:
    """A text without what is another in each run."""
    return CHANGING.sub("…", text.replace(str(program.work.parent), "ROOT"))


def records(program: Program) -> list[tuple[str, list[str]]]:
    """The types of what was recorded in all sessions, with the names of what each holds, without
    checkpoints: one that is not taken by the end of a run is given up."""
    files = sorted((program.work.parent / "home").rglob("sessions/**/*.jsonl"))
    lines = [json.loads(line) for path in files for line in path.read_bytes().splitlines()]
    return sorted((line["type"], sorted(line)) for line in lines if line["type"] != CHECKPOINT)


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_output_exit_code_and_session_are_the_same(tmp_path: Path, words: Sequence[str]) -> None:
    def run(program: Program, begin: Callable[..., Process]) -> tuple[Any, ...]:
        pipe = subprocess.PIPE
        with begin(
            [*HOLDFAST, *words], cwd=program.work, env=program.env,
            stdin=pipe, stdout=pipe, stderr=pipe,
        ) as process:  # fmt: skip
            out, err = process.communicate(b"", PATIENCE_S)
        done = Done(process.wait(), out, err)
        return (
            type(process),
            (done.code, steady(done.stdout, program), steady(done.stderr, program)),
            records(program),
        )

    (one, *fresh), (other, *forked) = (run(place(tmp_path, name), BOTH[name]) for name in BOTH)
    assert (one, other) == (subprocess.Popen, Forked)
    assert forked == fresh


@contextmanager
def waiting(program: Program, begin: Callable[..., Process]) -> Generator[Process]:
    """One that waits for a command, until it is killed."""
    words = [*HOLDFAST, *PRACTICE, "-p", "run `sleep 60`", *STREAM]
    with begin(
        words, cwd=program.work, env=program.env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            until(process, "tool_started")
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_it_in_the_same_way(tmp_path: Path, number: signal.Signals) -> None:
    codes = list[int]()
    for name, begin in BOTH.items():
        with waiting(place(tmp_path, name), begin) as process:
            process.send_signal(number)
            codes.append(process.wait(PATIENCE_S))
    assert codes[0] == codes[1]


@needs_proc
def test_its_descriptors_signals_folder_and_session_are_those_of_a_fresh_one(
    tmp_path: Path,
) -> None:
    places = {name: place(tmp_path, name) for name in BOTH}
    with (
        waiting(places["fresh"], BOTH["fresh"]) as fresh,
        waiting(places["forks"], BOTH["forks"]) as forked,
    ):
        end = time.monotonic() + PATIENCE_S
        while state(fresh.pid) != state(forked.pid) and time.monotonic() < end:
            time.sleep(0.02)  # each is still opening and closing something
        assert state(fresh.pid) == state(forked.pid)


def state(pid: int) -> tuple[list[str], list[str], str, bool]:
    """What a process has open, how it takes signals, where it works, if it leads its session."""
    of_it = Path(f"/proc/{pid}")
    opened = list[str]()
    for one in (of_it / "fd").iterdir():
        with suppress(FileNotFoundError):
            opened.append(kind(os.readlink(one)))
    signals = re.findall(r"^(?:Sig\w+|Umask):.*$", (of_it / "status").read_text(), re.MULTILINE)
    return sorted(opened), signals, Path(os.readlink(of_it / "cwd")).name, os.getsid(pid) == pid


def kind(target: str) -> str:
    """What a descriptor is open for, whichever one it is."""
    return re.sub(r"\[\d+\]|^\w+-\w+\.", "", Path(target).name)


def test_what_else_is_read_at_the_start_lets_it_be_started_afresh(tmp_path: Path) -> None:
    program = place(tmp_path, "a")
    env = {**program.env, "TEXTUAL_FPS": "10"}
    with start([*HOLDFAST, "--version"], cwd=program.work, env=env) as process:
        assert isinstance(process, subprocess.Popen)
        assert process.wait(PATIENCE_S) == 0


def test_no_other_variable_is_read_while_it_is_imported() -> None:
    words = [sys.executable, "-c", SPYING, *SCREEN, *PLAIN]
    root = Path(__file__).parents[2]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True)
    assert {name for name in done.stdout.split() if not name.startswith(AT_START)} <= LEFT_ALONE
