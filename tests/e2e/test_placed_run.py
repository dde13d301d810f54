"""`holdfast run --parallel`: tasks as processes that share a store, killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.batch.test_git import git
from tests.e2e.test_run import repo, saved, states, tasks, turn  # pyright: ignore[reportUnusedImport]
from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.support.preloaded import Process
from tests.support.program import Program, of_type, until
from tests.support.terminal import HOLDFAST, Terminal

__all__ = ["repo"]
ON = ("--parallel", "2", "--headless", "--yolo", "--json")
HOOK = {"matcher": "run_command", "hooks": [{"type": "command", "command": "true"}]}
LONG_LEASE = "[batch]\nlease_s = 3000\n"


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
    holdfast: Program, repo: Path, home: Path, script: Callable[[str], str]
) -> None:
    (home / "config" / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [HOOK]}}))
    file = tasks(repo, "- [ ] one\n- [ ] two\n## part\n- [ ] three\n- [ ] four\n")
    # both tasks of the group are played to one process
    done = holdfast("run", file, "--practice-script", script(steps(1) * 2), *ON)
    assert states(repo) == ["completed"] * 4
    assert [event["task"] for event in of_type(done.events, "task_merged")] == [0, 1, 2, 3]
    for index in range(4):
        assert told(done.events, index) == [
            "task_started",
            "hook_finished",  # a worker has the person's own
            "permission_answered",
            "tool_finished",
            "turn_finished",
            "task_finished",
            "task_merged",
        ]
    sessions = [event["session_id"] for event in of_type(done.events, "task_started")]
    assert sorted(sessions) == sorted(str(task["session_id"]) for task in saved(repo))
    assert {event["status"] for event in of_type(done.events, "task_finished")} == {"unmerged"}
    assert [e["at_once"] for e in of_type(done.events, "run_started")] == [2]
    assert sorted(lines_in(repo).values()) == [1, 1, 2]
    assert (repo / file).read_text().count("[x]") == 4
    assert verified(holdfast, repo) == 3
    assert git(repo, "branch", "--list").split() == ["*", "main"]
    assert git(repo, "status", "--porcelain", "--untracked-files=no") == f" M {file}\n"
    assert not [*(home / "data" / "stores").iterdir(), *(home / "work").iterdir()]
    assert not (repo / ".holdfast" / "run" / "workers").exists()


def told(events: Sequence[dict[str, Any]], task: int) -> list[str]:
    """What is told of a task, but for what streams."""
    kinds = [event["type"] for event in events if event.get("task") == task]
    wanted = {"hook_finished", "permission_answered", "tool_finished", "turn_finished"}
    return [kind for kind in kinds if kind.startswith("task_") or kind in wanted]


@needs_proc
def test_stopped_tasks_are_interrupted_and_go_on_with_the_next_run(
    holdfast: Program, repo: Path, home: Path, script: Callable[[str], str]
) -> None:
    file = tasks(repo, "- [ ] one\n- [ ] two\n- [ ] three\n")
    words = ("run", file, "--practice-script", script(steps(2, seconds=0.3)), *ON)
    with holdfast.started(*words) as process:
        until(process, "tool_finished")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        assert process.stdout
        rest = [json.loads(line) for line in process.stdout]
        assert process.wait(PATIENCE_S) == 130
    assert rest[-1]["reason"] == "interrupted"
    begun = [state for state in states(repo) if state != "pending"]
    assert begun
    assert set(begun) <= {"interrupted", "unmerged", "completed"}
    assert (repo / file).read_text().count("[~]") >= begun.count("interrupted")
    assert not list(workers(home))
    done = holdfast(*words)
    assert states(repo) == ["completed"] * 3
    said = [event["text"] for event in of_type(done.events, "notice")]
    assert any("the task goes on." in text for text in said)
    assert len(lines_in(repo)) == 3


@needs_proc
def test_a_killed_worker_is_replaced_and_the_task_goes_on(
    holdfast: Program, repo: Path, home: Path, script: Callable[[str], str]
) -> None:
    with (home / "config" / "config.toml").open("a") as config:
        config.write(LONG_LEASE)  # a process of this machine is known to be gone
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
    holdfast("run", file, "--practice-script", played, "--headless", "--yolo")  # one at a time
    assert states(repo) == ["completed"] * 3
    # where a task goes on, its next worker plays the script from the start
    assert [lines >= 2 for lines in lines_in(repo).values()] == [True] * 3
    assert verified(holdfast, repo) == 3


@needs_proc
def test_on_a_terminal_it_has_a_screen_and_ends_and_continues_with_it(
    repo: Path, home: Path, env: dict[str, str], script: Callable[[str], str]
) -> None:
    file = tasks(repo, "- [ ] one\n- [ ] two\n")
    words = ["run", file, "--practice-script", script(steps(2, seconds=0.4)), "--on", "local"]
    argv = [*HOLDFAST, *words, "--parallel", "2", "--yolo"]
    with Terminal(argv, cwd=repo, env=env) as screen:
        screen.wait_for("these tasks end with this window", "2 of 2 workers", "A step.")
        screen.hang_up()
        screen.process.wait(PATIENCE_S)
    assert not list(workers(home))
    with Terminal(argv, cwd=repo, env=env) as screen:
        screen.wait_for("2/2 done", "finished")
        screen.type("q")
        assert screen.exit_code() == 0
    assert states(repo) == ["completed"] * 2
    assert set(lines_in(repo).values()) == {2}


def end(process: Process) -> None:
    assert process.stdout
    told = process.stdout.read()
    assert process.wait(PATIENCE_S) == 0, told


@pytest.mark.parametrize(
    "words", [("work", "x"), ("work", "a/b"), ("work", "a/b", "--store", "/none")]
)
def test_a_worker_without_a_task_says_so(holdfast: Program, words: tuple[str, ...]) -> None:
    failed = holdfast(*words, code=1 if "--store" in words else 2)
    assert failed.stderr.startswith("holdfast")
