"""The real program on its default model and settings, before a server that binds thinking.

A request more than there are turns in the script would be one that the server refused.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.batch.test_git import git
from tests.e2e.conftest import Serve
from tests.support.preloaded import PLAIN, SCREEN
from tests.support.program import Program, of_type, until
from tests.support.server import LoopbackServer
from tests.support.terminal import HOLDFAST, Terminal

pytestmark = pytest.mark.slow

REFUSED = "messages.1.content.0: Invalid `signature` in `thinking` block"


def runs(number: int, command: str = "") -> dict[str, Any]:
    text = f"seq -f 'line %g of {number}, with some words' 100"
    call = {"name": "run_command", "input": {"command": command or text}}
    return {"thinking": f"command {number}", "tools": [call]}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"thinking": f"I say {text}", "text": text, **more}


@pytest.fixture
def asking(work: Path, env: dict[str, str]) -> Program:
    git(work, "init", "-q", "-b", "main")
    git(work, "config", "user.email", "test@example.org")
    git(work, "config", "user.name", "Test")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    return Program(work, {**env, "ANTHROPIC_API_KEY": "sk-ant-test-0123456789"})


def at(holdfast: Program, server: LoopbackServer) -> Program:
    return Program(holdfast.work, {**holdfast.env, "ANTHROPIC_BASE_URL": server.url})


def thoughts(server: LoopbackServer) -> list[list[str]]:
    """The thinking in each request."""
    return [
        [str(b["thinking"]) for m in post.body["messages"] for b in m["content"] if "thinking" in b]
        for post in server.posts
    ]


def test_twelve_commands_in_one_turn(serve: Serve, asking: Program) -> None:
    server = serve(*(runs(n) for n in range(12)), said("done"))
    done = at(asking, server)("-y", "-p", "run them")
    assert done.stdout == "done\n"
    assert done.stderr == ""
    assert len(server.posts) == 13
    assert [len(found) for found in thoughts(server)] == list(range(13))


def test_a_task_file(serve: Serve, asking: Program) -> None:
    (asking.work / "TASKS.md").write_text("- [ ] one\n- [ ] two\n")
    git(asking.work, "add", "-A")
    git(asking.work, "commit", "-qm", "tasks")
    tasks = [[*(runs(8 * n + k) for k in range(8)), said(f"task {n}")] for n in range(2)]
    server = serve(*(turn for task in tasks for turn in task))
    done = at(asking, server)("run", "TASKS.md", "--headless", "--yolo", "--json")
    assert done.events[-1]["type"] == "run_finished"
    assert [e["status"] for e in of_type(done.events, "task_finished")] == ["completed"] * 2
    assert len(server.posts) == 18


def test_resumed_on_another_branch_with_other_memory(serve: Serve, asking: Program) -> None:
    server = serve(runs(1), said("one"), *(said(word) for word in ("two", "three", "four", "five")))
    holdfast = at(asking, server)
    assert holdfast("-y", "-p", "begin").stdout == "one\n"
    assert holdfast("-c", "-p", "nothing changed").stdout == "two\n"
    git(asking.work, "checkout", "-q", "-b", "other")
    assert holdfast("-c", "-p", "another branch").stdout == "three\n"
    (asking.work / ".holdfast").mkdir(exist_ok=True)
    (asking.work / ".holdfast" / "MEMORY.md").write_text("- the answer is 42\n")
    assert holdfast("-c", "-p", "other memory").stdout == "four\n"
    assert holdfast("-c", "-p", "nothing changed").stdout == "five\n"
    assert len(server.posts) == 6
    every = ["command 1", "I say one", "I say two", "I say three", "I say four"]
    assert thoughts(server) == [every[:n] for n in range(6)], "what changed is said at the end"


def test_killed_behind_a_change_and_resumed(serve: Serve, asking: Program) -> None:
    sleep = "echo $$ > pid; echo begun; exec sleep 300"
    server = serve(said("one"), runs(2), runs(3, sleep), said("three"), said("four"))
    holdfast = at(asking, server)
    holdfast("-p", "begin")
    git(asking.work, "checkout", "-q", "-b", "other")
    with holdfast.started("-c", "-y", "-p", "run", "--output-format", "stream-json") as process:
        until(process, "tool_output", "begun")
        process.kill()
    os.kill(int((asking.work / "pid").read_text()), signal.SIGKILL)
    git(asking.work, "checkout", "-q", "main")  # as it was when the first answer was made
    assert holdfast("-c", "-p", "and?").stdout == "three\n"
    git(asking.work, "checkout", "-q", "other")
    assert holdfast("-c", "-p", "and then?").stdout == "four\n"
    assert len(server.posts) == 5
    every = ["I say one", "command 2", "command 3", "I say three"]
    assert thoughts(server) == [every[:n] for n in range(5)]


@pytest.mark.parametrize(("how", "ready"), [((), "Ask for anything"), (("--plain",), ". >")])
def test_a_refusal_is_said_where_a_person_sits(
    serve: Serve, asking: Program, home: Path, how: tuple[str, ...], ready: str
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text("[compaction]\nmemory_flush = false\n")
    refused = {"faults": [{"status": 400, "message": REFUSED}]}
    server = serve(said("The first."), said("The second.", **refused))
    holdfast = at(asking, server)
    with Terminal(
        [*HOLDFAST, *how], cwd=holdfast.work, env=holdfast.env, preload=(*SCREEN, *PLAIN)
    ) as screen:
        screen.wait_for(ready)
        screen.type("one\r")
        screen.wait_for("The first.")
        screen.type("two\r")
        screen.wait_for("rejected the reasoning", "The second.")
    assert thoughts(server) == [[], ["I say The first."], []]


def test_a_refusal_that_nothing_foretold(serve: Serve, asking: Program, home: Path) -> None:
    refused = {"faults": [{"status": 400, "message": REFUSED}]}
    server = serve(runs(1), said("one", **refused), said("two"))
    holdfast = at(asking, server)
    done = holdfast("-y", "-p", "begin")
    assert done.stdout == "one\n"
    assert done.stderr.splitlines() == [
        (
            "The server rejected the reasoning in earlier answers. Holdfast sends the request "
            "again without it and leaves it out from now on."
        ),
        "The cache restarts (refused): 1 thought left out.",
        "Billed for the cache restart (refused): nothing cached again.",
    ]
    assert holdfast("-c", "-p", "and?").stdout == "two\n"
    assert thoughts(server) == [[], ["command 1"], [], ["I say one"]]
    (path,) = (home / "data" / "sessions").rglob("*.jsonl")
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [(r["reason"], r["by"]) for r in found if r["type"] == "break"] == [
        ("refused", "server")
    ]
    assert json.loads(holdfast("sessions", "check", str(path), "--json").stdout)["valid"]
