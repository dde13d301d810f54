"""`holdfast run --parallel`: tasks as processes that share a store, killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from tests.batch.test_git import git
from tests.e2e.test_run import repo, saved, states, tasks, turn  # pyright: ignore[reportUnusedImport]
from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.support.preloaded import Process
from tests.support.processes import gone
from tests.support.program import Program, of_type, until
from tests.support.terminal import HOLDFAST, Terminal
from tui.batch.cluster.entry import TaskEntry, entry_of
from tui.batch.cluster.worker import EXIT_REFUSED, EXIT_UNREACHABLE

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
def test_the_commands_of_a_killed_worker_end_with_it(
    holdfast: Program, repo: Path, tmp_path: Path, home: Path, script: Callable[[str], str]
) -> None:
    file = tasks(repo, "- [ ] one\n")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    tool = f'{{name = "run_command", input = {{command = "echo $$ >{fifo}; exec sleep 300"}}}}'
    played = script(turn(text="A long one.", tool=tool) + turn(text="Done."))
    with holdfast.started("run", file, "--practice-script", played, *ON):
        pid = int(fifo.read_text())
        os.kill(one_worker(home), signal.SIGKILL)
        assert gone(pid)


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
    words = ["run", file, "--practice-script", script(steps(2, seconds=0.4))]
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
    # where a task goes on, its next worker plays the script from the start
    assert [lines >= 2 for lines in lines_in(repo).values()] == [True] * 2


def test_workers_use_the_scratch_folder_of_the_run(
    holdfast: Program, repo: Path, home: Path, tmp_path: Path, script: Callable[[str], str]
) -> None:
    file = tasks(repo, "- [ ] one\n")
    place = tmp_path / "scratch"
    stays = ("--on", "local", "--store", str(home / "store.git"))
    words = ("run", file, "--practice-script", script(steps(1)), *ON, *stays)
    holdfast(*words, "--scratch", str(place))
    assert list(place.glob("*/*/base.git"))
    assert not (home / "work").exists()


PRICED = "[prices.practice]\ninput = 10\noutput = 1000\n"


@pytest.fixture
def priced(home: Path, repo: Path) -> None:
    """A price for the practice model: a request costs a few cents."""
    with (home / "config" / "config.toml").open("a") as config:
        config.write(PRICED)


@pytest.mark.usefixtures("priced")
def test_a_run_whose_tasks_have_spent_their_shares_says_so(
    holdfast: Program, repo: Path, script: Callable[[str], str]
) -> None:
    file = tasks(repo, "- [ ] one\n- [ ] two\n")
    words = ("run", file, "--practice-script", script(steps(3)), *ON)
    ended = holdfast(*words, "--max-cost", "0.10", code=1)
    (finished,) = of_type(ended.events, "run_finished")
    assert finished["reason"] == "reached the limit of $0.10: tasks 1, 2"
    assert states(repo) == ["interrupted"] * 2
    for task in saved(repo):
        assert (task["error_class"], task["message"]) == ("limit", "spent its share, $0.05")
    assert "spent its share" in holdfast("run", file, "--status").stdout


@pytest.mark.usefixtures("priced")
def test_what_earlier_tasks_have_cost_takes_nothing_from_the_share_of_the_next(
    holdfast: Program, repo: Path, script: Callable[[str], str]
) -> None:
    file = tasks(repo, "- [ ] one\n")
    holdfast("run", file, "--practice-script", script(steps(4)), *ON)
    (one,) = saved(repo)
    with (repo / file).open("a") as more:
        more.write("- [ ] two\n")
    words = ("run", file, "--practice-script", script(steps(0)), *ON)
    holdfast(*words, "--max-cost", str(1.8 * one["cost_usd"]))
    assert states(repo) == ["completed"] * 2
    two = saved(repo)[1]
    assert two["cost_usd"] < 0.4 * one["cost_usd"]


def stored(home: Path) -> list[TaskEntry]:
    """All states of the only task, oldest first."""
    place = home / "store.git"
    said = git(place, "log", "--first-parent", "--reverse", "--format=%B%x00", "--all")
    return [entry_of(one.strip("\n")) for one in said.split("\0") if "holdfast: task" in one]


@pytest.mark.usefixtures("priced")
def test_answers_to_sub_agents_at_the_same_time_are_reserved_and_paid_together(
    holdfast: Program, repo: Path, home: Path, script: Callable[[str], str]
) -> None:
    asked = '{name = "task", input = {agent = "general", description = "d", prompt = "p"}}'
    both = turn(text="Two.", tool=f"{asked}, {asked}")
    # as the first answer comes, the second has been asked for: both are under way before
    waiting = turn(text="Done.", delay_s=2)
    file = tasks(repo, "- [ ] one\n")
    words = ("run", file, "--practice-script", script(both + waiting * 3), *ON)
    store = ("--on", "local", "--store", str(home / "store.git"))
    done = holdfast(*words, *store, "--max-cost", "900")
    states_ = stored(home)
    most = max(entry.next_usd for entry in states_)
    first = next(entry.next_usd for entry in states_ if entry.next_usd)
    assert most > 1.5 * first
    last = states_[-1]
    assert (last.state, last.next_usd, last.reserved_usd, last.requests) == ("done", 0, 0, 4)
    (finished,) = of_type(done.events, "task_finished")
    assert last.spent_usd
    assert isclose(last.spent_usd, finished["cost_usd"])


def end(process: Process) -> None:
    assert process.stdout
    told = process.stdout.read()
    assert process.wait(PATIENCE_S) == 0, told


@pytest.mark.parametrize(
    "words", [("work", "x"), ("work", "a/b"), ("work", "a/b", "--store", "/none")]
)
def test_a_worker_without_a_task_says_so(holdfast: Program, words: tuple[str, ...]) -> None:
    failed = holdfast(*words, code=EXIT_UNREACHABLE if "--store" in words else 2)
    assert failed.stderr.startswith("The store can't be reached" if "--store" in words else "holdf")


def test_a_worker_says_in_its_last_line_why_its_folder_takes_no_task(
    holdfast: Program, tmp_path: Path
) -> None:
    place = tmp_path / "scratch"
    place.mkdir(mode=0o755)
    words = ("work", "a/b", "--store", str(tmp_path / "s.git"), "--scratch", str(place))
    last = holdfast(*words, code=EXIT_REFUSED).stderr.splitlines()[-1]
    assert last.startswith("Not taken:")
    assert "open to others" in last
