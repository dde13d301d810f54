"""`holdfast -p` as a process: what other programs rely on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.processes import ended, gone
from tests.support.program import Program, until
from tui.core.clock import SystemClock
from tui.session.lock import SessionLock


def test_text_is_the_answer_alone(holdfast: Program) -> None:
    done = holdfast("--practice", "-p", "read README.md")
    assert "The demo project." in done.stdout


def test_json_is_one_object(holdfast: Program) -> None:
    done = holdfast("--practice", "-p", "read README.md", "--output-format", "json")
    found = json.loads(done.stdout)
    assert set(found) == {
        "session_id",
        "result",
        "is_error",
        "error_class",
        "turns",
        "usage",
        "cost_usd",
        "duration_ms",
        "model",
        "cuts",
    }
    assert found["model"] == "practice"
    assert found["is_error"] is False
    assert found["turns"] == 2
    assert found["cost_usd"] is None
    assert set(found["usage"]) == {
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    }


def test_stream_json_tells_everything_in_order(holdfast: Program) -> None:
    lines = holdfast.lines("--practice", "-p", "read README.md")
    types = [line["type"] for line in lines if not line["type"].endswith("_delta")]
    assert types == [
        "session_started",
        "context_measured",
        "user_message",
        "request_sent",
        "assistant_message",
        "request_extended",
        "cost",
        "context_measured",
        "tool_started",
        "tool_finished",
        "context_measured",
        "request_sent",
        "assistant_message",
        "request_extended",
        "cost",
        "context_measured",
        "context_measured",
        "turn_finished",
    ]
    assert lines[0]["cwd"] == str(holdfast.work)
    assert lines[-1]["outcome"] == "done"


def test_only_directives_give_three_events(holdfast: Program) -> None:
    types = [line["type"] for line in holdfast.lines("--practice", "-p", "/think")]
    assert [t for t in types if t not in {"context_measured", "notice"}] == [
        "session_started",
        "directives_changed",
        "turn_finished",
    ]


def test_only_directives_say_that_nothing_is_kept(holdfast: Program) -> None:
    assert "isn't kept" in holdfast("--practice", "-p", "/think").stderr
    holdfast("--practice", "-p", "hello")
    assert "isn't kept" not in holdfast("--practice", "-c", "-p", "/think").stderr


@pytest.mark.parametrize("typed", ["/compact", "/status", "/cost"])
def test_a_command_of_the_program_is_no_prompt(holdfast: Program, typed: str) -> None:
    done = holdfast("--practice", "-p", typed, code=2)
    assert done.stdout == ""
    assert f"{typed} is a command of the program" in done.stderr


def test_writes_need_a_rule(holdfast: Program) -> None:
    ask = ("--practice", "-p", "create notes.txt with hello")
    done = holdfast(*ask)
    assert "--allow" in done.stderr
    assert not (holdfast.work / "notes.txt").exists()
    holdfast(*ask, "--allow", "write_file")
    assert (holdfast.work / "notes.txt").read_text().strip() == "hello"


def test_deny_beats_allow_and_yolo(holdfast: Program) -> None:
    ask = ("--practice", "-p", "create notes.txt with hello", "--deny", "write_file")
    holdfast(*ask, "--allow", "write_file")
    assert not (holdfast.work / "notes.txt").exists()


def test_yolo_asks_nothing(holdfast: Program) -> None:
    holdfast("--practice", "-y", "-p", "change demo to sample in README.md")
    assert "sample project" in (holdfast.work / "README.md").read_text()


def test_stdin_is_added_and_sets_no_directive(holdfast: Program) -> None:
    done = holdfast(
        "--practice", "-p", "--output-format", "stream-json", stdin="/think read README.md"
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert "directives_changed" not in {line["type"] for line in lines}


def test_continue_goes_on_with_the_newest_session(holdfast: Program) -> None:
    first = holdfast.lines("--practice", "-p", "read README.md")
    again = holdfast.lines("--practice", "-c", "-p", "list")
    assert again[0]["session_id"] == first[0]["session_id"]
    assert again[0]["resumed"] is True
    sent = next(line for line in again if line["type"] == "request_sent")
    assert sent["messages"] == 5


def test_no_session_leaves_nothing(holdfast: Program, home: Path) -> None:
    lines = holdfast.lines("--practice", "--no-session", "-p", "read README.md")
    assert lines[0]["path"] is None
    assert not list(home.rglob("*.jsonl"))


def test_exit_2_usage(holdfast: Program) -> None:
    assert "--frobnicate" in holdfast("-p", "x", "--frobnicate", code=2).stderr
    assert "prompt" in holdfast("--practice", "-p", code=2).stderr
    assert "isn't a folder" in holdfast("-C", "nowhere", "-p", "x", code=2).stderr


def test_exit_2_a_broken_configuration_names_file_and_key(holdfast: Program, home: Path) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text("[retry]\nmax_delay_ms = 999999\n")
    err = holdfast("--practice", "-p", "x", code=2).stderr
    assert "config.toml" in err
    assert "retry.max_delay_ms" in err


def test_exit_2_without_a_terminal(holdfast: Program) -> None:
    assert "-p" in holdfast("--practice", code=2).stderr


def test_exit_3_without_a_key(holdfast: Program) -> None:
    assert "ANTHROPIC_API_KEY" in holdfast("-p", "x", code=3).stderr


def test_exit_4_unknown_session(holdfast: Program) -> None:
    assert "nothere" in holdfast("--practice", "-r", "nothere", "-p", "x", code=4).stderr


def test_exit_4_a_session_that_another_program_has(holdfast: Program, home: Path) -> None:
    holdfast("--practice", "-p", "read README.md")
    (path,) = (home / "data" / "sessions").rglob("*.jsonl")
    before = path.read_bytes()
    lease = SessionLock(path, clock=SystemClock())
    lease.take()
    said = holdfast("--practice", "-c", "-p", "and now?", code=4).stderr
    assert f"process {os.getpid()}" in said
    assert "sessions fork" in said
    assert path.read_bytes() == before
    lease.release()
    holdfast("--practice", "-c", "-p", "and now?")
    assert path.read_bytes().startswith(before)


def test_exit_1_a_failed_turn_still_gives_its_object(
    holdfast: Program, script: Callable[[str], str]
) -> None:
    path = script('[[turn]]\nfaults = [{status = 400}]\ntext = "x"\n')
    done = holdfast("--practice-script", path, "-p", "x", "--output-format", "json", code=1)
    found = json.loads(done.stdout)
    assert found["is_error"] is True
    assert found["error_class"] == "invalid_request"
    assert "invalid_request" in done.stderr


def test_exit_1_a_limit(holdfast: Program) -> None:
    done = holdfast("--practice", "-p", "read README.md", "--max-turns", "1", code=1)
    assert "--max-turns" in done.stderr


def test_exit_130_interrupted(holdfast: Program, script: Callable[[str], str]) -> None:
    path = script('[[turn]]\ntext = "slow"\ndelay_s = 600\n')
    ask = ("--practice-script", path, "-p", "x", "--output-format", "stream-json")
    with holdfast.started(*ask) as process:
        assert process.stdout is not None
        until(process, "request_sent")
        process.send_signal(signal.SIGINT)
        rest = [json.loads(line) for line in process.stdout]
        assert process.wait(PATIENCE_S) == 130
    assert rest[-1] == {**rest[-1], "type": "turn_finished", "outcome": "interrupted"}


def command_turn(command: str) -> str:
    """A practice script whose model runs a command."""
    return (
        '[[turn]]\ntext = "Running."\n'
        f'tools = [{{name = "run_command", input = {{command = {json.dumps(command)}}}}}]\n'
    )


def test_kill_9_of_program_and_keeper_then_continue(
    holdfast: Program, home: Path, work: Path, script: Callable[[str], str]
) -> None:
    path = script(command_turn("echo $$ > pid; echo begun; exec sleep 300"))
    ask = ("--practice-script", path, "-y", "-p", "x", "--output-format", "stream-json")
    with holdfast.started(*ask) as process:
        until(process, "tool_output", "begun")
        process.kill()
    os.kill(keeper_in(home), signal.SIGKILL)
    os.kill(int((work / "pid").read_text()), signal.SIGKILL)
    lines = holdfast.lines("--practice", "-c", "-p", "read README.md")
    repaired = next(line for line in lines if line["type"] == "repair_applied")
    assert {f["code"] for f in repaired["findings"]} == {"B01"}
    assert lines[-1]["outcome"] == "done"


def keeper_in(home: Path) -> int:
    """The process that keeps the only command."""
    (state,) = (home / "data" / "running").glob("*/*/state")
    return int(json.loads(state.read_text())["keeper"])


def test_3_and_11_what_outlived_its_keeper_is_said_and_is_no_damage(
    holdfast: Program, home: Path, work: Path, script: Callable[[str], str]
) -> None:
    path = script(command_turn("echo $$ > pid; echo begun; exec sleep 300"))
    ask = ("--practice-script", path, "-y", "-p", "x", "--output-format", "stream-json")
    with holdfast.started(*ask) as process:
        until(process, "tool_output", "begun")
        process.kill()
    os.kill(keeper_in(home), signal.SIGKILL)
    pid = int((work / "pid").read_text())
    done = holdfast("--practice", "-c", "-p", "read README.md")
    _elevated, first, call, running, *_ = done.stderr.splitlines()
    assert first == "The last run of this session was interrupted."
    assert call.startswith("run_command echo $$")
    assert call.endswith("started; may or may not have finished.")
    assert running.startswith("Still running since ")
    assert running.endswith(f"exec sleep 300. Stop it: kill -- -{pid}")
    assert "damaged" not in done.stderr
    (session,) = home.rglob("sessions/*/*.jsonl")
    assert f"- process {pid}: " in session.read_text(), "the model is told"
    os.kill(pid, signal.SIGKILL)
    assert "Still running" not in holdfast("--practice", "-c", "-p", "hello").stderr


@pytest.mark.parametrize("ends", ["meanwhile", "later"])
@pytest.mark.parametrize("lost", [signal.SIGKILL, signal.SIGHUP])
def test_a_command_outlives_the_program_and_its_result_is_kept(
    holdfast: Program,
    home: Path,
    work: Path,
    script: Callable[[str], str],
    ends: str,
    lost: signal.Signals,
) -> None:
    command = "echo begun; until test -e go; do sleep 0.02; done; seq 1 20000; exit 7"
    path = script(command_turn(command))
    ask = ("--practice-script", path, "-y", "-p", "x", "--output-format", "stream-json")
    with holdfast.started(*ask) as process:
        until(process, "tool_output", "begun")
        process.send_signal(lost)
        process.wait(PATIENCE_S)
    keeper = keeper_in(home)
    if ends == "meanwhile":
        (work / "go").touch()
        while not ended(keeper):
            Event().wait(0.01)
    again = ("--practice", "-c", "-p", "read README.md", "--output-format", "stream-json")
    with holdfast.started(*again) as process:
        shown = until(process, "tool_started")
        (work / "go").touch()
        assert process.stdout is not None
        lines = [json.loads(line) for line in process.stdout]
        assert process.wait(PATIENCE_S) == 0
    assert shown["name"] == "run_command"
    finished = next(line for line in lines if line["type"] == "tool_finished")
    assert finished["summary"] == "exit 7 · 1 file changed"
    kept = Path(finished["receipt"]["path"])
    assert kept.read_text() == "begun\n" + "".join(f"{n}\n" for n in range(1, 20_001))
    assert lines[-1]["outcome"] == "done"
    (session,) = home.rglob("sessions/*/*.jsonl")
    results = [json.loads(line) for line in session.read_text().splitlines()]
    codes = [r["details"]["exit_code"] for r in results if r.get("name") == "run_command"]
    assert codes == [7], "one result, and no other"
    assert not list((home / "data" / "running").glob("*/*"))


def test_a_command_without_its_session_is_listed_and_can_be_stopped(
    holdfast: Program, home: Path, script: Callable[[str], str]
) -> None:
    path = script(command_turn("echo begun; sleep 300"))
    ask = ("--practice-script", path, "-y", "-p", "x", "--output-format", "stream-json")
    with holdfast.started(*ask) as process:
        session = until(process, "session_started")["session_id"]
        until(process, "tool_output", "begun")
        assert json.loads(holdfast("ps", "--json").stdout) == [], "somebody has it open"
        process.kill()
    keeper = keeper_in(home)
    (row,) = json.loads(holdfast("ps", "--json").stdout)
    assert (row["id"], row["state"], row["command"]) == (
        session,
        "command_running",
        "echo begun; sleep 300",
    )
    listed = holdfast("ps")
    assert "still runs: echo begun; sleep 300" in listed.stdout
    assert "`holdfast stop ID`" in listed.stderr
    doctor = holdfast("doctor", code=1).stdout
    assert f"{session} still runs: echo begun" in doctor
    assert "Stopped 1 command of" in holdfast("stop", session[:4]).stdout
    assert gone(keeper)
    assert "has ended: echo" in holdfast("ps").stdout, "how it ended is for the session to say"
    assert "Nothing runs that could be stopped" in holdfast("stop", session).stdout
    lines = holdfast.lines("--practice", "-c", "-p", "read README.md")
    finished = next(line for line in lines if line["type"] == "tool_finished")
    assert finished["summary"] == "killed by SIGTERM"
    assert "Nothing to list" in holdfast("ps").stderr


def test_a_command_whose_session_is_gone_is_listed_and_can_be_stopped(
    holdfast: Program, home: Path, script: Callable[[str], str]
) -> None:
    path = script(command_turn("echo begun; sleep 300"))
    ask = ("--practice-script", path, "-y", "-p", "x", "--output-format", "stream-json")
    with holdfast.started(*ask) as process:
        session = until(process, "session_started")["session_id"]
        until(process, "tool_output", "begun")
        process.kill()
    keeper = keeper_in(home)
    for file in home.rglob("sessions/*/*.jsonl"):
        file.unlink()
    listed = holdfast("ps").stdout
    assert session in listed
    assert "(its session is gone)" in listed
    assert "Stopped 1 command of" in holdfast("stop", session).stdout
    assert gone(keeper)
    assert "Nothing to list" in holdfast("ps").stderr
    assert not list((home / "data" / "running").iterdir())


def test_a_command_of_a_session_that_is_not_saved_ends_with_the_program(
    holdfast: Program, work: Path, script: Callable[[str], str]
) -> None:
    path = script(command_turn("echo $$ > pid; echo begun; sleep 300"))
    ask = ("--practice-script", path, "-y", "--no-session", "-p", "x")
    with holdfast.started(*ask, "--output-format", "stream-json") as process:
        until(process, "tool_output", "begun")
        process.kill()
    assert gone(int((work / "pid").read_text()))


def test_version_help_and_completion(holdfast: Program) -> None:
    assert holdfast("--version").stdout.startswith("holdfast ")
    assert holdfast("run", "--version").stdout == holdfast("--version").stdout
    assert "--practice" in holdfast("--help").stdout
    assert "holdfast" in holdfast("completion", "bash").stdout


def test_what_was_cut_of_the_prompts_files_is_said_on_stderr(holdfast: Program, work: Path) -> None:
    (work / "AGENTS.md").write_text("Be brief.\n")
    assert holdfast("--practice", "-p", "hello").stderr == ""
    (work / "AGENTS.md").write_text("x" * 31_000)
    done = holdfast("--practice", "-p", "hello")
    assert done.stderr.splitlines() == ["Loaded AGENTS.md (31,000 → 20,000 chars, cut)"]
    lines = holdfast.lines("--practice", "-p", "hello")
    (files,) = (line["files"] for line in lines if line["type"] == "context_files")
    assert files == [{"name": "AGENTS.md", "origin": "project", "raw": 31_000, "kept": 20_000}]


def test_a_page_is_fetched_where_a_rule_allows_it(holdfast: Program) -> None:
    with page_served(b"<title>News</title><h1>Hello</h1>") as url:
        done = holdfast("--practice", "-p", f"fetch {url}", "--allow", f"web_fetch({url}*)")
        assert f"I fetched `{url}`" in done.stdout
        assert "# Hello" in done.stdout
        done = holdfast("--practice", "-p", f"fetch {url}")
        assert f"Allow with --allow 'web_fetch({url})'" in done.stdout


@contextmanager
def page_served(body: bytes) -> Generator[str]:
    """A web server in a thread that answers everything with one page; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def test_a_command_of_the_person_is_run_by_its_name(
    holdfast: Program, work: Path, home: Path
) -> None:
    mine = home.parent / ".claude" / "commands"
    mine.mkdir(parents=True)
    (mine / "look.md").write_text(
        "---\nallowed-tools: Bash(touch:*), WebSearch\n---\nread $0, then !`touch made` !`wc -l $0`"
    )
    brought = work / ".claude" / "commands"
    brought.mkdir(parents=True)
    (brought / "look.md").write_text("Not trusted.")
    done = holdfast("--practice", "-p", "/look README.md", "--output-format", "stream-json")
    (sent,) = [line for line in done.events if line["type"] == "user_message"]
    below = "(its output is below)"
    assert sent["text"] == (
        f"/look README.md\n\nread README.md, then `touch made` {below} `wc -l README.md` {below}"
    )
    ran = [line["label"] for line in done.events if line["type"] == "tool_started"]
    assert ran[:2] == ["touch made", "wc -l README.md"]
    assert (work / "made").exists()
    assert "/look can't allow WebSearch here." in done.stderr
    assert "/look allows in this turn: run_command(touch *)." in done.stderr
