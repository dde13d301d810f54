"""`holdfast run --batch-api` as a process: its lines, events and exit codes, what it refuses."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import Serve
from tests.support.program import Program, of_type

TASKS = "## sky\n- [ ] why is it blue?\n- [ ] how high is it?\n"
ANSWERS = ({"text": "Because of the air."}, {"text": "100 km."})
ASK = ("run", "TASKS.md", "--batch-api")


@pytest.fixture
def asking(holdfast: Program, env: dict[str, str], work: Path, serve: Serve) -> Program:
    """The program beside a task file, with a server that answers its questions."""
    (work / "TASKS.md").write_text(TASKS)
    env |= {"ANTHROPIC_BASE_URL": serve(*ANSWERS).url, "ANTHROPIC_API_KEY": "sk-ant-test"}
    return holdfast


def test_lines_and_summary(asking: Program, work: Path) -> None:
    done = asking(*ASK, "--summary", "pr.md")
    lines = done.stdout.splitlines()
    assert lines[1] == "message batch: questions without tools, at half price"
    assert "[1/2] sky: why is it blue?" in lines
    assert "[1] answer: .holdfast/run/logs/001-1.log" in lines
    assert "2 tasks: 2 completed" in done.stdout
    assert (work / "TASKS.md").read_text() == TASKS.replace("[ ]", "[x]")
    assert "| 1 | why is it blue? | completed |" in (work / "pr.md").read_text()


def test_events_are_those_of_a_run(asking: Program) -> None:
    events = asking(*ASK, "--json").events
    assert events[0]["type"] == "run_started"
    assert events[0]["isolation"] == "batch"
    assert [e["task"] for e in of_type(events, "task_started")] == [0, 1]
    said = {e["task"]: e["text"] for e in of_type(events, "assistant_message")}
    assert said == {0: "Because of the air.", 1: "100 km."}
    assert events[-1]["type"] == "run_finished"
    assert events[-1]["counts"] == {"completed": 2}


def test_what_is_left_says_why_and_what_to_do(
    holdfast: Program, env: dict[str, str], work: Path, serve: Serve
) -> None:
    (work / "TASKS.md").write_text(TASKS)
    fault = {"status": 400, "type": "invalid_request_error", "message": "no"}
    server = serve({"result": "expired", "faults": [fault]})
    env |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
    out = holdfast(*ASK, code=1).stdout
    assert (
        "  1. failed (invalid_request): The server rejected the request: no. Once the cause is"
        " gone, ask again with --retry-failed. Its log: .holdfast/run/logs/001-1.log."
    ) in out
    assert (
        "  2. interrupted (timeout): The batch expired after 24 hours, before this question was"
        " answered; runs again next time. Its log: .holdfast/run/logs/002-1.log."
    ) in out


def test_a_dry_run_sends_nothing(asking: Program, work: Path) -> None:
    shown = asking(*ASK, "--dry-run").stdout
    assert "message batch: questions without tools, at half price" in shown
    assert not (work / ".holdfast").exists()


@pytest.mark.parametrize("features", ["basic", "all"])
def test_an_answer_is_a_session_that_is_gone_on_with(
    holdfast: Program, env: dict[str, str], work: Path, serve: Serve, home: Path, features: str
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text(f'api_features = "{features}"\n')
    (work / "TASKS.md").write_text("- why is it blue?\n")
    turns = ({"text": "Because of the air.", "thinking": "Light."}, {"text": "By day."})
    server = serve(*turns, catalogue=True)
    env |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
    holdfast(*ASK)
    (shown,) = json.loads(holdfast("sessions", "list", "--json").stdout)
    assert (shown["title"], shown["state"]) == ("why is it blue?", "ok")
    assert "all rebuilt exactly as sent" in holdfast("sessions", "verify", shown["id"]).stderr
    assert holdfast("-r", shown["id"], "-p", "always?").stdout == "By day.\n"
    texts = [
        [block["text"] for block in message["content"] if block["type"] == "text"]
        for message in server.posts[-1].body["messages"]
    ]
    assert texts[:2] == [["why is it blue?"], ["Because of the air."]]
    assert texts[2][0] == "always?"
    assert server.posts[-1].body["tools"]


def test_ctrl_c_leaves_the_batch_at_the_server(
    holdfast: Program, env: dict[str, str], work: Path, serve: Serve
) -> None:
    (work / "TASKS.md").write_text(TASKS)
    server = serve(*ANSWERS)
    server.api.batches.polls = 1000
    env |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
    with holdfast.started(*ASK) as process:
        assert process.stdout is not None
        assert any("2 waiting" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait() == 130
    assert "msgbatch_0001 continues at the server. Get its answers with: holdfast run" in rest
    assert "waiting for message batch msgbatch_0001" in holdfast("run", "--status").stdout
    refused = holdfast("run", "TASKS.md", code=2)
    assert "A message batch of this run isn't done yet." in refused.stderr
    server.api.batches.made[0].polls = 0
    assert "2 completed" in holdfast(*ASK).stdout
    assert sum(seen.method == "POST" for seen in server.requests) == 1


def test_a_run_killed_while_it_waits_is_gone_on_with(
    holdfast: Program, env: dict[str, str], work: Path, serve: Serve
) -> None:
    (work / "TASKS.md").write_text(TASKS)
    server = serve(*ANSWERS)
    server.api.batches.polls = 1000
    env |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
    for _ in range(2):
        with holdfast.started(*ASK) as process:
            assert process.stdout is not None
            assert any("2 waiting" in line for line in process.stdout)
            process.kill()
            process.wait()
    server.api.batches.made[0].polls = 0
    assert "2 completed" in holdfast(*ASK).stdout
    assert sum(seen.method == "POST" for seen in server.requests) == 1


def test_a_reset_says_that_a_batch_goes_on(
    holdfast: Program, env: dict[str, str], work: Path, serve: Serve
) -> None:
    (work / "TASKS.md").write_text(TASKS)
    server = serve(*ANSWERS)
    server.api.batches.polls = 1000
    env |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
    with holdfast.started(*ASK) as process:
        assert process.stdout is not None
        assert any("2 waiting" in line for line in process.stdout)
        process.kill()
        process.wait()
    said = holdfast("run", "--reset").stderr
    assert "msgbatch_0001 continues at the server, and is billed." in said


@pytest.mark.parametrize(
    "words",
    [
        "--parallel 2",
        "--fallback-model opus",
        "--allow edit_file",
        "--deny edit_file",
        "--yolo",
        "--no-sandbox",
        "--max-failures 1",
        "--max-time 1h",
    ],
)
def test_options_that_make_no_sense_with_it(asking: Program, words: str) -> None:
    flag, *value = words.split()
    said = asking(*ASK, flag, *value, code=2).stderr
    assert f"--batch-api sends questions without tools; it can't be combined with {flag}." in said


def test_the_practice_model_takes_none(asking: Program) -> None:
    said = asking(*ASK, "--practice", code=2).stderr
    assert "The practice model doesn't offer message batches: leave out --batch-api." in said
