"""Sessions in the background, as processes: started, asked, handed over, stopped and killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

import pytest

from tests.e2e.conftest import Serve
from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tests.support.preloaded import PLAIN
from tests.support.program import Done, Program
from tests.support.terminal import HOLDFAST, Terminal
from tui.app import background
from tui.app.background import BackgroundSession
from tui.core.clock import SystemClock
from tui.core.paths import Folders, folders
from tui.session.lock import holder

Start: TypeAlias = Callable[..., BackgroundSession]

WRITE = {"text": "I write.", "tools": [{"name": "write_file", "input": {
    "path": "new.txt", "content": "hello\n"}}]}  # fmt: skip
RUN = {"text": "I run.", "tools": [{"name": "run_command", "input": {"command": "cat go"}}]}
"""Runs until something is written into a pipe."""
TASK = {"agent": "general", "description": "look", "prompt": "do it"}


@pytest.fixture
def env(env: dict[str, str], config: Callable[[str], Path]) -> dict[str, str]:
    config('titles = "prompt"\n[permissions]\nallow = ["run_command(cat go)"]\n')
    return {**env, "ANTHROPIC_API_KEY": "sk-ant-secret"}


@pytest.fixture
def kept(home: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(home)})


@pytest.fixture
def start(holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders) -> Generator[Start]:
    """Starts one that plays turns; what runs still is killed at the end."""

    def started(*turns: dict[str, Any], words: tuple[str, ...] = ()) -> BackgroundSession:
        os.mkfifo(holdfast.work / "go")
        env["ANTHROPIC_BASE_URL"] = serve(*turns).url
        done = holdfast("--bg", "do it", *words, env=env)
        assert "holdfast attach " in done.stdout
        return background.find(kept, done.stdout.split()[4], SystemClock().now())

    yield started
    for one in background.sessions(kept, SystemClock().now()):
        background.send(one, signal.SIGKILL)


def until(kept: Folders, id_: str, *states: str) -> BackgroundSession:
    """How it is once it is in one of these states."""
    give_up = time.monotonic() + PATIENCE_S
    while (one := background.find(kept, id_, SystemClock().now())).state not in states:
        assert time.monotonic() < give_up, one
        Event().wait(0.05)
    return one


def gone(one: BackgroundSession) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while background.is_running(one):
        assert time.monotonic() < give_up
        Event().wait(0.05)


def records(one: BackgroundSession) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(one.path).read_bytes().splitlines()]


def listed(done: Done) -> list[dict[str, Any]]:
    return json.loads(done.stdout)


def attach(work: Path, env: dict[str, str], *words: str) -> Terminal:
    return Terminal([*HOLDFAST, "attach", "--plain", *words], cwd=work, env=env, preload=PLAIN)


def test_it_works_alone_and_is_listed_until_somebody_looks(
    holdfast: Program, start: Start, kept: Folders
) -> None:
    one = start(WRITE, {"text": "All done."}, words=("--allow", "write_file"))
    until(kept, one.id, "done")
    gone(one)
    assert (holdfast.work / "new.txt").read_text() == "hello\n"
    (row,) = listed(holdfast("ps", "--json"))
    assert (row["state"], row["detail"], row["title"]) == ("done", "All done.", "do it")
    assert one.id in holdfast("ps").stdout
    said = holdfast("logs", one.id, "-f").stdout
    assert "> do it" in said
    assert "All done." in said
    assert listed(holdfast("ps", "--json")) == []
    assert [row["id"] for row in listed(holdfast("ps", "--all", "--json"))] == [one.id]


@needs_proc
def test_it_waits_for_an_answer_and_can_be_stopped(
    holdfast: Program, start: Start, kept: Folders, config: Callable[[str], Path]
) -> None:
    config('titles = "prompt"\nbackground = { notify = "echo \\"$HOLDFAST_TEXT\\" > called" }\n')
    one = start(WRITE)
    one = until(kept, one.id, "waiting")
    assert one.words == "waiting for you: write_file(new.txt)"
    words = Path(f"/proc/{one.pid}/cmdline").read_bytes()
    assert b"do it" not in words
    assert b"secret" not in words
    assert os.getsid(one.pid) == one.pid, "it has no terminal"
    for file in background.folder_of(kept).iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
    os.kill(one.pid, signal.SIGHUP)
    assert "is open in process" in holdfast("-p", "-r", one.id, "more", code=4).stderr
    assert "Stopped" in holdfast("stop", one.id).stdout
    assert until(kept, one.id, "stopped").pid == one.pid
    gone(one)
    assert records(one)[-1]["type"] == "interrupt"
    assert (holdfast.work / "called").read_text()
    assert "doesn't run any more" in holdfast("stop", one.id).stderr


def test_attaching_puts_the_question_again_and_goes_on_with_the_turn(
    holdfast: Program, start: Start, env: dict[str, str], kept: Folders
) -> None:
    one = start(WRITE, {"text": "All done."})
    until(kept, one.id, "waiting")
    with attach(holdfast.work, env) as screen:
        screen.wait_for("1 once, 2 this session")
        gone(one)
        screen.type("1\r")
        screen.wait_for("All done.")
        screen.wait_until(lambda: screen.text.rstrip().endswith(">"))
        screen.type("\x04")
        screen.exit_code()
    assert (holdfast.work / "new.txt").read_text() == "hello\n"
    kinds = [record["type"] for record in records(one)]
    assert (kinds.count("user"), kinds.count("tool_result")) == (1, 1)
    assert "interrupt" not in kinds
    assert listed(holdfast("ps", "--all", "--json")) == []


def test_attaching_takes_the_command_over_that_runs(
    holdfast: Program, start: Start, env: dict[str, str], kept: Folders
) -> None:
    one = start(RUN, {"text": "All done."})
    until_runs(kept, one)
    with attach(holdfast.work, env, one.id) as screen:
        gone(one)
        screen.wait_for("Tool run_command cat go: started.")
        (holdfast.work / "go").write_text("over\n")
        screen.wait_for("All done.")
    (result,) = (record for record in records(one) if record["type"] == "tool_result")
    assert (result["is_error"], result["details"]["exit_code"]) == (False, 0)
    assert result["content"][0]["text"].startswith("over\n")


@pytest.mark.slow
def test_background_commands_go_along_to_and_fro(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    """From the screen to the background, and back while it still works."""
    os.mkfifo(holdfast.work / "go")
    job = "until [ -e stop ]; do sleep 0.05; done; echo seen"
    begin = {"name": "run_command", "input": {"command": job, "background": True}}
    env["ANTHROPIC_BASE_URL"] = serve(
        {"text": "I begin.", "tools": [begin]}, RUN, {"text": "All done."}
    ).url
    with Terminal(
        [*HOLDFAST, "--plain", "run it"], cwd=holdfast.work, env=env, preload=PLAIN
    ) as screen:
        screen.wait_for("4 no: ")
        screen.type("1\r")
        screen.wait_for("Tool run_command cat go: started.")
        screen.type("/bg\r")
        screen.wait_for("Open it with: holdfast attach ")
        assert screen.exit_code() == 0
    (one,) = background.sessions(kept, SystemClock().now())
    until_runs(kept, one)
    with attach(holdfast.work, env, one.id) as screen:
        gone(one)
        screen.wait_for("Tool run_command cat go: started.")
        (holdfast.work / "go").write_text("over\n")
        screen.wait_for("All done.")
        screen.type("/jobs\r")
        screen.wait_for("job-1", "running")
        (holdfast.work / "stop").touch()
        screen.wait_for("job-1 finished, exit code 0")
        screen.wait_until(lambda: not list(kept.running.glob("*/*")))
    results = [r["summary"] for r in records(one) if r["type"] == "tool_result"]
    assert results == ["job-1", "exit 0"]
    (end,) = (record for record in records(one) if record["type"] == "job_ended")
    assert (end["exit_code"], end["text"]) == (0, "seen")


def test_a_background_command_stays_where_the_turn_is_over_and_ends_with_stop(
    holdfast: Program, start: Start, kept: Folders
) -> None:
    begin = {"name": "run_command", "input": {"command": "sleep 300", "background": True}}
    one = start({"text": "I begin.", "tools": [begin]}, {"text": "All done."}, words=("-y",))
    until(kept, one.id, "done")
    gone(one)
    (_, row) = listed(holdfast("ps", "--json"))
    assert (row["id"], row["state"], row["command"]) == (one.id, "command_running", "sleep 300")
    assert "Stopped 1 command" in holdfast("stop", one.id).stdout


def test_who_quits_decides_about_background_commands(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    begin = {"name": "run_command", "input": {"command": "sleep 300", "background": True}}
    env["ANTHROPIC_BASE_URL"] = serve({"text": "I.", "tools": [begin]}, {"text": "Begun."}).url
    asked = ("Commands are still running", "sleep 300", "for none: ")
    with Terminal(
        [*HOLDFAST, "--plain", "run it"], cwd=holdfast.work, env=env, preload=PLAIN
    ) as screen:
        screen.wait_for("Begun.")
        screen.wait_until(lambda: screen.text.rstrip().endswith(">"))
        screen.type("/quit\r")
        screen.wait_for(*asked)
        screen.type("1\r")
        screen.wait_for("1 command still running: see `holdfast ps`")
        assert screen.exit_code() == 0
    (row,) = listed(holdfast("ps", "--json"))
    assert (row["state"], row["command"]) == ("command_running", "sleep 300")
    with Terminal(
        [*HOLDFAST, "--plain", "-c"], cwd=holdfast.work, env=env, preload=PLAIN
    ) as screen:
        screen.wait_for("resumed", ">")
        screen.type("/jobs\r")
        screen.wait_for("job-1", "running")
        screen.wait_until(lambda: screen.text.rstrip().endswith(">"))
        screen.type("\x04")
        screen.wait_for(*asked)
        screen.type("2\r")
        assert screen.exit_code() == 0
    assert "still running:" not in screen.text
    assert listed(holdfast("ps", "--json")) == []


def test_who_quits_in_a_turn_may_let_it_continue_in_the_background(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    os.mkfifo(holdfast.work / "go")
    env["ANTHROPIC_BASE_URL"] = serve(RUN, {"text": "All done."}).url
    with Terminal(
        [*HOLDFAST, "--plain", "run it"], cwd=holdfast.work, env=env, preload=PLAIN
    ) as screen:
        screen.wait_for("Tool run_command cat go: started.")
        screen.type("/quit\r")
        screen.wait_for("The agent is working", "for none: ")
        screen.type("1\r")
        screen.wait_for("Open it with: holdfast attach ")
        assert screen.exit_code() == 0
    (holdfast.work / "go").write_text("over\n")
    (one,) = background.sessions(kept, SystemClock().now())
    assert until(kept, one.id, "done", "failed").detail == "All done."


def test_a_command_of_a_sub_agent_goes_along(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    os.mkfifo(holdfast.work / "go")
    env["ANTHROPIC_BASE_URL"] = serve(
        {"text": "I ask.", "tools": [{"name": "task", "input": TASK}]},
        RUN,
        {"text": "It is over."},
        {"text": "All done."},
    ).url
    with Terminal(
        [*HOLDFAST, "--plain", "-y", "run it"], cwd=holdfast.work, env=env, preload=PLAIN
    ) as screen:
        until_kept(kept)
        screen.type("/bg\r")
        screen.wait_for("Open it with: holdfast attach ")
        assert screen.exit_code() == 0
    (one,) = background.sessions(kept, SystemClock().now())
    (holdfast.work / "go").write_text("over\n")
    assert until(kept, one.id, "done", "failed").detail == "All done."
    (child,) = kept.sessions.glob("*/*/*.jsonl")
    said = [json.loads(line) for line in child.read_bytes().splitlines()]
    (result,) = (record for record in said if record["type"] == "tool_result")
    assert result["details"]["exit_code"] == 0
    assert result["content"][0]["text"].startswith("over\n")


def test_a_command_of_a_sub_agent_is_listed_with_the_session_it_worked_for(
    holdfast: Program, start: Start, kept: Folders
) -> None:
    one = start({"text": "I ask.", "tools": [{"name": "task", "input": TASK}]}, RUN, words=("-y",))
    until_kept(kept)
    os.kill(one.pid, signal.SIGKILL)
    gone(one)
    (_, row) = listed(holdfast("ps", "--json"))
    assert (row["id"], row["detail"]) == (one.id, "still runs (sub-agent): cat go")
    assert "Stopped 1 command" in holdfast("stop", one.id).stdout


def held(answered: Path) -> dict[str, Any]:
    """A turn that is answered once there is this file, however long a process takes to start."""
    return {**WRITE, "until": str(answered)}


def until_asked(kept: Folders, one: BackgroundSession) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while "waiting for" not in background.find(kept, one.id, SystemClock().now()).detail:
        assert time.monotonic() < give_up
        Event().wait(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["1", "3"])
def test_attaching_waits_for_the_answer_that_comes(
    holdfast: Program, start: Start, env: dict[str, str], kept: Folders, answer: str
) -> None:
    answered = holdfast.work / "answered"
    one = start(held(answered), {"text": "All done."}, words=("--allow", "write_file"))
    until_asked(kept, one)
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("It isn't at a safe point yet", "just Enter for none: ")
        answered.touch()
        gone(one)
        screen.type(f"{answer}\r")  # to read only comes too late: nobody else has it
        screen.wait_for("All done.")
    (result,) = (record for record in records(one) if record["type"] == "tool_result")
    assert not result["is_error"]


@pytest.mark.slow
def test_who_asks_and_leaves_gets_nothing(
    holdfast: Program, start: Start, env: dict[str, str], kept: Folders
) -> None:
    answered = holdfast.work / "answered"
    one = start(held(answered), RUN, {"text": "All done."}, words=("-y",))
    until_asked(kept, one)
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("It isn't at a safe point yet", "just Enter for none: ")
        screen.kill()
    answered.touch()
    (holdfast.work / "go").write_text("over\n")
    assert until(kept, one.id, "done").detail == "All done."


ASKS = """
import sys
from tui.app import background
from tui.core.clock import SystemClock
from tui.core.paths import folders
home = folders()
background.request(home, background.find(home, sys.argv[1], SystemClock().now()))
sys.stdin.read()
"""


@pytest.mark.slow
def test_who_leaves_while_it_is_let_go_leaves_it_to_another_process(
    holdfast: Program, start: Start, env: dict[str, str], kept: Folders, home: Path
) -> None:
    """Between the last look at who asks and the end of the process lies what closing takes."""
    hook = {"type": "command", "command": "touch closing; cat left"}
    hooks = home / "config" / "hooks.json"
    hooks.write_text(json.dumps({"hooks": {"SessionEnd": [{"hooks": [hook]}]}}))
    os.mkfifo(holdfast.work / "left")
    one = start(RUN, {"text": "All done."}, words=("-y",))
    until_runs(kept, one)
    argv = [sys.executable, "-c", ASKS, one.id]
    with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE) as asks:
        give_up = time.monotonic() + PATIENCE_S
        while not (holdfast.work / "closing").exists():
            assert time.monotonic() < give_up
            Event().wait(0.05)
        asks.kill()
    hooks.unlink()
    (holdfast.work / "left").write_text("")
    gone(one)
    (holdfast.work / "go").write_text("over\n")
    assert until(kept, one.id, "done", "stopped", "failed").detail == "All done."
    kinds = [record["type"] for record in records(one)]
    assert (kinds.count("user"), kinds.count("tool_result")) == (1, 1)


@pytest.mark.slow
def test_taking_over_now_records_an_interruption(
    holdfast: Program, start: Start, env: dict[str, str], kept: Folders
) -> None:
    one = start({**WRITE, "delay_s": 60}, {"text": "Not written then."})
    until_asked(kept, one)
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("It isn't at a safe point yet", "just Enter for none: ")
        screen.type("2\r")
        screen.wait_for("Not written then.")
    kinds = [record["type"] for record in records(one)]
    assert "interrupt" in kinds
    assert kinds.count("user") == 1


def test_one_that_was_killed_is_interrupted_and_can_be_continued(
    holdfast: Program, start: Start, env: dict[str, str], kept: Folders
) -> None:
    one = start(RUN)
    until_runs(kept, one)
    os.kill(one.pid, signal.SIGKILL)
    gone(one)
    assert "interrupted" in holdfast("ps").stdout
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("was interrupted")
        (holdfast.work / "go").write_text("over\n")
        screen.wait_for("cat go: finished")
    assert listed(holdfast("ps", "--json")) == []
    assert holder(Path(one.path)) is None


def test_one_that_is_killed_while_it_is_asked_for_has_handed_over_nothing(
    holdfast: Program, start: Start, env: dict[str, str], kept: Folders
) -> None:
    one = start({**WRITE, "delay_s": 60})
    until_asked(kept, one)
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("Taking")
        os.kill(one.pid, signal.SIGKILL)
        screen.wait_for("resumed", ">")
    assert not [record for record in records(one) if record["type"] == "assistant"]


def test_who_comes_second_is_asked(
    holdfast: Program, start: Start, env: dict[str, str], kept: Folders
) -> None:
    one = start(WRITE)
    until(kept, one.id, "waiting")
    with attach(holdfast.work, env, one.id) as first:
        first.wait_for("1 once, 2 this session")
        with Terminal(
            [*HOLDFAST, "--plain", "-r", one.id], cwd=holdfast.work, env=env, preload=PLAIN
        ) as second:
            second.wait_for("This session is open elsewhere")
    assert "No session" in holdfast("attach", one.id, code=4).stderr


def test_opening_it_elsewhere_asks_first(
    holdfast: Program, start: Start, env: dict[str, str], kept: Folders
) -> None:
    one = start(WRITE, {"text": "All done."})
    until(kept, one.id, "waiting")
    with Terminal(
        [*HOLDFAST, "--plain", "-r", one.id], cwd=holdfast.work, env=env, preload=PLAIN
    ) as screen:
        screen.wait_for("This session runs in the background", "write_file", "for none: ")
        assert background.is_running(one)
        screen.type("1\r")
        screen.wait_for("1 once, 2 this session")
    gone(one)


def test_what_does_not_apply_is_said_when_it_starts(
    holdfast: Program, start: Start, kept: Folders
) -> None:
    (holdfast.work / ".holdfast").mkdir()
    settings = '[permissions]\nallow = ["write_file"]\n'
    (holdfast.work / ".holdfast" / "config.toml").write_text(settings)
    one = start(WRITE)
    assert until(kept, one.id, "waiting").detail == "write_file(new.txt)"
    assert "not applied" in background.log_of(kept, one.id).read_text()


def test_it_needs_nobody_who_started_it(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    env["ANTHROPIC_BASE_URL"] = serve({"text": "All done."}).url
    given = {"options": {"prompt": "do it"}, "attached": "", "go_on": False}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "tui.cli.background"],
        cwd=holdfast.work,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()  # who started it is gone
        process.stdin.write(json.dumps(given).encode())
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
    (row,) = listed(holdfast("ps", "--json"))
    assert (row["state"], row["detail"]) == ("done", "All done.")


def test_what_keeps_it_from_opening_is_said_at_once(
    holdfast: Program, env: dict[str, str], kept: Folders
) -> None:
    bare = dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "")
    assert "No API key found" in holdfast("--bg", "x", code=3, env={**env, **bare}).stderr
    assert "No session" in holdfast("attach", code=4).stderr
    assert "No session abc" in holdfast("logs", "abc", code=4).stderr
    assert "No prompt given" in holdfast("--bg", code=2).stderr
    assert "can't be combined" in holdfast("--bg", "x", "--no-session", code=2).stderr
    assert "Session not found" in holdfast("--bg", "x", "-r", "abc", code=4).stderr
    shutil.rmtree(kept.data / "background")
    (kept.data / "background").write_text("in the way")
    assert "Can't use" in holdfast("--bg", "x", code=1).stderr


def until_runs(kept: Folders, one: BackgroundSession) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while "Run " not in background.find(kept, one.id, SystemClock().now()).detail:
        assert time.monotonic() < give_up
        Event().wait(0.05)
    until_kept(kept)


def until_kept(kept: Folders) -> None:
    """Until a command runs."""
    give_up = time.monotonic() + PATIENCE_S
    while not list(kept.running.glob("*/*/state")):
        assert time.monotonic() < give_up
        Event().wait(0.05)


def test_bg_hands_a_running_turn_over_and_quits(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    os.mkfifo(holdfast.work / "go")
    env["ANTHROPIC_BASE_URL"] = serve(RUN, {"text": "All done."}).url
    with Terminal(
        [*HOLDFAST, "--plain", "run it"], cwd=holdfast.work, env=env, preload=PLAIN
    ) as screen:
        screen.wait_for("Tool run_command cat go: started.")
        screen.type("/bg\r")
        screen.wait_for("Open it with: holdfast attach ")
        assert screen.exit_code() == 0
    (holdfast.work / "go").write_text("over\n")
    (row,) = listed(holdfast("ps", "--json"))
    one = until(kept, row["id"], "done")
    assert one.detail == "All done."
    kinds = [record["type"] for record in records(one)]
    assert (kinds.count("user"), kinds.count("tool_result")) == (1, 1)
    assert "interrupt" not in kinds


def test_bg_with_a_prompt_starts_another_one(
    holdfast: Program, env: dict[str, str], serve: Serve, kept: Folders
) -> None:
    env["ANTHROPIC_BASE_URL"] = serve({"text": "All done."}).url
    with Terminal([*HOLDFAST, "--plain"], cwd=holdfast.work, env=env, preload=PLAIN) as screen:
        screen.wait_for(" >")
        screen.type("/bg do it\r")
        screen.wait_for("Running in the background: ")
        (row,) = listed(holdfast("ps", "--json"))
        assert until(kept, row["id"], "done").detail == "All done."
        screen.type("/bg\r")
        screen.wait_for("Nothing runs.")
