"""`holdfast run --on local`: tasks as processes that share a store, killed at any moment."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.batch.test_git import git
from tests.e2e.test_run import repo, saved, states, tasks, turn  # pyright: ignore[reportUnusedImport]
from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.support.preloaded import Process
from tests.support.program import Program, of_type, until

__all__ = ["repo"]
ON = ("--on", "local", "--parallel", "2", "--headless", "--yolo", "--json")
LEASE = "[batch]\nlease_s = 6\n"


def steps(count: int, *, seconds: float = 0) -> str:
    """The turns of a task that adds a line to a file of its own, `count` times."""
    add = "echo line >> made-by-$(basename $(dirname $PWD)).txt"
    tool = f'{{name = "run_command", input = {{command = "{add}"}}}}'
    step = turn(text="A step.", tool=tool, delay_s=seconds)
    return step * count + turn(text="All steps are made.")


def workers(home: Path) -> Iterator[int]:
    """The processes at work on tasks."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"work" in words and any(os.fsencode(home) in word for word in words):
                yield int(path.parent.name)


def one_worker(home: Path) -> int:
    """Wait for a worker that has sent a request, and return its process."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        begun = list(home.glob("work/*/*/*/data/sessions/*/*.jsonl"))
        if begun and (found := next(workers(home), None)):
            return found
        time.sleep(0.02)
    raise AssertionError("no worker")


def lines_in(repo: Path) -> dict[str, int]:
    return {path.name: len(path.read_text().split()) for path in repo.glob("made-by-*.txt")}


def verified(holdfast: Program, repo: Path) -> int:
    """Verify the sessions of all tasks, and count them."""
    ids = {task["session_id"] for task in saved(repo)}
    for id_ in ids:
        holdfast("sessions", "verify", id_)
    return len(ids)


def test_tasks_are_worked_on_by_processes_and_merged_in_the_order_of_the_file(
    holdfast: Program, repo: Path, script: Callable[[str], str]
) -> None:
    file = tasks(repo, "- [ ] one\n- [ ] two\n## part\n- [ ] three\n- [ ] four\n")
    # both tasks of the group are played to one process
    done = holdfast("run", file, "--practice-script", script(steps(1) * 2), *ON)
    assert states(repo) == ["completed"] * 4
    assert [event["task"] for event in of_type(done.events, "task_merged")] == [0, 1, 2, 3]
    assert sorted(lines_in(repo).values()) == [1, 1, 2]
    assert (repo / file).read_text().count("[x]") == 4
    assert verified(holdfast, repo) == 3
    assert git(repo, "branch", "--list").split() == ["*", "main"]
    assert git(repo, "status", "--porcelain", "--untracked-files=no") == f" M {file}\n"


@needs_proc
def test_a_killed_worker_is_replaced_and_the_task_goes_on(
    holdfast: Program, repo: Path, home: Path, script: Callable[[str], str]
) -> None:
    with (home / "config" / "config.toml").open("a") as config:
        config.write(LEASE)
    file = tasks(repo, "- [ ] one\n- [ ] two\n")
    played = script(steps(3, seconds=0.3))
    with holdfast.started("run", file, "--practice-script", played, *ON) as process:
        os.kill(one_worker(home), signal.SIGKILL)
        end(process)
    assert states(repo) == ["completed"] * 2
    made = git(repo, "log", "--no-merges", "--format=%s").split()
    assert sorted(made) == ["first", "one", "two"]
    assert len(lines_in(repo)) == 2
    assert verified(holdfast, repo) == 2
    assert not list(workers(home))


@needs_proc
def test_a_killed_driver_is_replaced_and_takes_what_was_done_meanwhile(
    holdfast: Program, repo: Path, home: Path, script: Callable[[str], str]
) -> None:
    file = tasks(repo, "- [ ] one\n- [ ] two\n- [ ] three\n")
    played = script(steps(2, seconds=0.2))
    words = ("run", file, "--practice-script", played, *ON)
    with holdfast.started(*words) as process:
        until(process, "task_finished")
        process.kill()
        process.wait()
    refused = holdfast("run", file, "--headless", "--practice", code=2)
    assert "worked on elsewhere, by local" in refused.stderr
    holdfast(*words)
    assert states(repo) == ["completed"] * 3
    assert lines_in(repo) == dict.fromkeys(lines_in(repo), 2)
    assert len(lines_in(repo)) == 3
    assert verified(holdfast, repo) == 3


def test_a_worker_that_cannot_save_its_session_asks_no_model_and_says_why(
    holdfast: Program, repo: Path, script: Callable[[str], str]
) -> None:
    file = tasks(repo, "- [ ] one\n")
    words = [sys.executable, "-m", "tui", "run", file, "--practice-script", script(steps(5)), *ON]
    limited = f"ulimit -f 16; exec {shlex.join(words)}"  # less than a session begins with
    env = {**holdfast.env, "PYTHONDONTWRITEBYTECODE": "1"}  # no module is cut short
    done = subprocess.run(["bash", "-c", limited], cwd=repo, env=env, check=False, timeout=60)
    (task,) = saved(repo)
    assert (done.returncode, task["status"]) == (1, "failed")
    assert "Given up: 3 workers were lost" in task["message"]
    assert "The session can't be saved" in task["message"]
    assert git(repo, "log", "--format=%s") == "first\n"


def end(process: Process) -> None:
    assert process.stdout
    process.stdout.read()
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    "words", [("work", "x"), ("work", "a/b"), ("work", "a/b", "--store", "/none")]
)
def test_a_worker_without_a_task_says_so(holdfast: Program, words: tuple[str, ...]) -> None:
    failed = holdfast(*words, code=1 if "--store" in words else 2)
    assert failed.stderr.startswith("holdfast")
