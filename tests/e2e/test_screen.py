"""The full screen in a real pseudo-terminal: typed at, killed, resumed."""

from __future__ import annotations

import json
import os
import signal
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.preloaded import SCREEN
from tests.support.processes import gone
from tests.support.terminal import HOLDFAST, Terminal
from tests.ui.widgets.test_whole_characters import SCRIPTS

Open: TypeAlias = Callable[..., Terminal]

READY = "Ask for anything"

COUNTED = """
import atexit, json, sys
from pathlib import Path
atexit.register(lambda: Path("modules.json").write_text(json.dumps(list(sys.modules))))
sys.argv[:1] = ["holdfast"]
from tui.cli.main import start
start()
"""
"""The program, which says at its end what it had loaded."""
MOST_AT_REST = 960
"""All modules, Python's own too, that the screen has loaded while nothing was asked. It may only
fall: each costs a start time and memory. Five are the door by which a desk sees the session."""


@pytest.fixture
def holdfast(work: Path, env: dict[str, str]) -> Open:
    def start(*argv: str, **more: Any) -> Terminal:
        return Terminal([*HOLDFAST, "--practice", *argv], cwd=work, env=env, preload=SCREEN, **more)

    return start


def records(home: Path) -> list[dict[str, Any]]:
    (path,) = (home / "data" / "sessions").rglob("*.jsonl")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_ask_and_leave(holdfast: Open) -> None:
    with holdfast() as screen:
        screen.wait_for(READY)
        screen.type("read README.md\r")
        screen.wait_for("The demo project.", "1 prompt")
        screen.type("\x04\x04")
        assert screen.exit_code() == 0
        assert "holdfast -r " in screen.text
        assert termios.tcgetattr(screen.slave) == screen.before


def test_little_is_loaded_while_nothing_is_asked(work: Path, env: dict[str, str]) -> None:
    argv, key = [sys.executable, "-c", COUNTED], {"ANTHROPIC_API_KEY": "none-is-sent"}
    with Terminal(argv, cwd=work, env=env | key) as screen:
        screen.wait_for(READY, "Explain this project")
        screen.type("\x04\x04")
        assert screen.exit_code() == 0
    loaded = set(json.loads((work / "modules.json").read_bytes()))
    assert "tui.agent.agent" in loaded
    assert not {"anthropic", "pydantic", "httpx2", "argparse", "email"} & loaded
    assert not {"pygments", "tui.permissions.risk"} & loaded
    assert len(loaded) <= MOST_AT_REST, "load it where it is used first"


def test_keys_typed_before_it_is_ready_are_kept_in_order(holdfast: Open) -> None:
    with holdfast() as screen:
        screen.read(0.05)
        for key in "read README.md":
            screen.type(key)
            screen.read(0.01)
        screen.type("\r")
        screen.wait_for("The demo project.")


def test_a_paste_presses_no_key_whatever_it_holds(holdfast: Open, work: Path, home: Path) -> None:
    """A coloured log, with the keys of Enter, a command, Ctrl+C and Ctrl+G behind its colours."""
    pasted = "a\x1b[31mred\x1b[3\r!touch bad\r\x03\x07 and\x1b]0;title\x07 so on"
    with holdfast() as screen:
        screen.wait_for(READY)
        screen.type(f"\x1b[200~{pasted}\x1b[201~")
        screen.wait_for("ared", "and so on")
        screen.type("\r")
        screen.wait_for("1 prompt")
        screen.type("\x04\x04")
        assert screen.exit_code() == 0
    (prompt,) = [record for record in records(home) if record["type"] == "user"]
    assert prompt["content"][0]["text"].startswith("ared")
    assert "touch bad" in prompt["content"][0]["text"]
    assert not (work / "bad").exists()


def test_characters_of_twelve_scripts_get_into_the_record(holdfast: Open, home: Path) -> None:
    text = " ".join(SCRIPTS.values())
    text = (text * (1 + 2000 // len(text)))[:2000].strip()
    with holdfast() as screen:
        screen.wait_for(READY)
        sent = text.encode()
        for start in range(0, len(sent), 101):  # cut anywhere
            os.write(screen.master, sent[start : start + 101])
            screen.read(0.01)
        screen.wait_until(lambda: drafts(home) and drafts(home)[-1]["prompt"] == text)
        screen.type("\r")
        screen.wait_for("1 prompt")
    (prompt,) = [record for record in records(home) if record["type"] == "user"]
    assert prompt["content"][0]["text"] == text


def test_what_is_typed_after_an_editor_had_the_terminal_is_shown(
    work: Path, env: dict[str, str], tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "from the editor" > "$1"\n')
    editor.chmod(0o755)
    words = [*HOLDFAST, "--practice"]
    edits = {**env, "VISUAL": str(editor)}
    with Terminal(words, cwd=work, env=edits, preload=SCREEN) as screen:
        screen.wait_for(READY, "Explain this project")
        screen.type("\x07")
        screen.wait_for("from the editor")
        for key in "WXYZ":
            screen.forget()
            screen.read(0.2)
            screen.type(key)
            screen.wait_for(key)


def test_a_change_is_shown_and_asked_for(holdfast: Open, work: Path) -> None:
    with holdfast() as screen:
        screen.wait_for(READY)
        screen.type("change demo to sample in README.md\r")
        screen.wait_for("− The demo project.", "+ The sample project.", "1 Yes")
        screen.press("1", lambda: "sample" in (work / "README.md").read_text())
        screen.wait_for("1 prompt")


def test_no_means_no(holdfast: Open, work: Path, home: Path) -> None:
    with holdfast() as screen:
        screen.wait_for(READY)
        screen.type("create notes.txt with hello\r")
        screen.wait_for("1 Yes")
        screen.press("\x1b", lambda: "1 prompt" in screen.text)
        assert not (work / "notes.txt").exists()
    (result,) = [r for r in records(home) if r["type"] == "tool_result"]
    assert result["is_error"]


def test_kill_9_in_a_command_resume_and_go_on(holdfast: Open, work: Path, home: Path) -> None:
    pid = work / "pid"
    with holdfast("-y") as screen:
        screen.wait_for(READY)
        screen.type("run `echo $$ > pid; exec sleep 300`\r")
        screen.wait_until(lambda: pid.exists() and pid.read_text())
        screen.kill()
    os.kill(int(pid.read_text()), signal.SIGKILL)  # its keeper lives
    kinds = [r["type"] for r in records(home)]
    assert "intent" in kinds
    assert "tool_result" not in kinds
    with holdfast("-c") as screen:
        screen.wait_for("Elevate again?")
        screen.press("n", lambda: "Elevate again?" not in screen.now)
        screen.type("\x15read README.md\r")  # Ctrl+U: an early n is in the draft
        screen.wait_for("The demo project.")
    (note,) = [r["text"] for r in records(home) if r["type"] == "note"]
    assert "has ended meanwhile: its output and result are kept" in note


def drafts(home: Path) -> list[dict[str, Any]]:
    """What the drafts on the disk say, the last at the end."""
    lines = [
        one.read_bytes().splitlines() for one in home.rglob("*.jsonl") if "sessions" in str(one)
    ]
    found = [json.loads(line) for line in (lines[0] if lines else [])]
    return [record for record in found if record["type"] == "draft"]


def test_kill_9_while_typing_and_the_prompt_comes_back(holdfast: Open, home: Path) -> None:
    typed = "read README.md and tell me"
    with holdfast() as screen:
        screen.wait_for(READY)
        screen.type(typed)
        screen.wait_until(lambda: drafts(home) and drafts(home)[-1]["prompt"] == typed)
        screen.kill()
    with holdfast("-c") as screen:
        screen.wait_for(typed)


def test_kill_9_while_a_command_waits_and_it_comes_back_without_being_run(
    holdfast: Open, work: Path, home: Path
) -> None:
    pid, made = work / "pid", work / "made"
    with holdfast() as screen:
        screen.wait_for(READY)
        screen.type("!echo $$ > pid; exec sleep 300\r")
        screen.wait_until(lambda: pid.exists() and pid.read_text())
        screen.type("!touch made\r")
        screen.wait_until(lambda: drafts(home) and "commands" in drafts(home)[-1])
        screen.kill()
    assert gone(int(pid.read_text()))  # nobody waits for a person's own command
    assert drafts(home)[-1]["commands"] == ["!touch made"]
    with holdfast("-c") as screen:
        screen.wait_for("!touch made")
        assert not made.exists()
        screen.press("\r", made.exists)


def test_kill_9_while_an_answer_comes_and_all_of_it_comes_back(
    holdfast: Open, home: Path, script: Callable[[str], str]
) -> None:
    words = " ".join(f"word{number}" for number in range(90))
    slow = script(f'[[turn]]\ntext = "{words}"\nfaults = [{{stall_s = 60, after = 200}}]\n')
    with holdfast("--practice-script", slow) as screen:
        screen.wait_for(READY)
        screen.type("go\r")
        screen.wait_for("word3")
        screen.type("and then this\r")
        screen.wait_for("and then this")
        screen.type("half a thou")
        screen.wait_until(
            lambda: (
                any("word3" in draft.get("answer", "") for draft in drafts(home))
                and drafts(home)[-1]["prompt"] == "half a thou"
            )
        )
        assert drafts(home)[-1]["queue"] == ["and then this"]
        screen.kill()
    with holdfast("-c") as screen:
        screen.wait_for("word3", "Holdfast closed here", "and then this", "half a thou")
    (user,) = [record for record in records(home) if record["type"] == "user"]
    assert user["text"] == "go"


def test_esc_stops_a_command_and_the_session_goes_on(holdfast: Open, home: Path) -> None:
    with holdfast("-y") as screen:
        screen.wait_for(READY)
        screen.type("run `echo be''gun; sleep 300`\r")
        screen.wait_for("begun")
        screen.type("\x1b")
        screen.wait_for("interrupted")
        # Typed while the turn still closes, it is the next turn.
        screen.type("read README.md")
        screen.press("\r", lambda: "The demo project." in screen.text)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_signals_close_the_record_and_put_the_terminal_back(
    holdfast: Open, work: Path, home: Path, number: signal.Signals
) -> None:
    pid = work / "pid"
    with holdfast("-y") as screen:
        screen.wait_for(READY)
        screen.type("run `echo $$ > pid; echo be''gun; exec sleep 300`\r")
        screen.wait_for("begun")
        screen.process.send_signal(number)
        assert screen.exit_code() == 128 + number
        assert termios.tcgetattr(screen.slave) == screen.before
        assert "holdfast -r " in screen.text
    kinds = [r["type"] for r in records(home)]
    if number == signal.SIGHUP:  # the terminal is lost: the command is left to the next run
        assert not {"tool_result", "interrupt"} & set(kinds)
        os.kill(int(pid.read_text()), signal.SIGKILL)
        return
    assert "tool_result" in kinds
    assert kinds[-1] == "interrupt"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.slow
@pytest.mark.parametrize("wait_s", [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8])
def test_a_signal_at_any_moment_of_the_start_ends_it_in_order(
    holdfast: Open, wait_s: float
) -> None:
    with holdfast() as screen:
        screen.wait_for("›")
        until = time.monotonic() + wait_s
        while (left := until - time.monotonic()) > 0:
            screen.read(left)
        screen.process.send_signal(signal.SIGINT)
        assert screen.exit_code() == 128 + signal.SIGINT
        assert termios.tcgetattr(screen.slave) == screen.before
        for mode in (b"1049", b"2004", b"1003"):
            assert screen.raw.rfind(b"\x1b[?" + mode + b"l") >= screen.raw.rfind(
                b"\x1b[?" + mode + b"h"
            )


def test_a_run_on_the_screen_is_interrupted_by_a_signal(work: Path, env: dict[str, str]) -> None:
    (work / "TASKS.md").write_text("- [ ] run `exec sleep 300`\n")
    argv = [*HOLDFAST, "run", "TASKS.md", "--practice", "-y"]
    with Terminal(argv, cwd=work, env=env) as screen:
        screen.wait_for("sleep 300", "running")
        screen.process.send_signal(signal.SIGINT)
        assert screen.exit_code() == 130
        assert termios.tcgetattr(screen.slave) == screen.before


LEADER = """
import fcntl, signal, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
sys.exit(subprocess.call(sys.argv[1:]))
"""


@pytest.mark.parametrize("leader", [(), (sys.executable, "-c", LEADER)], ids=["error", "end"])
def test_a_terminal_that_goes_away_ends_the_program(
    work: Path, env: dict[str, str], home: Path, leader: tuple[str, ...]
) -> None:
    """No signal comes: reading fails where it is no controlling terminal, else it just ends."""
    pid = work / "pid"
    argv = [*leader, *HOLDFAST, "--practice", "-y"]
    with Terminal(argv, cwd=work, env=env) as screen:
        screen.wait_for(READY)
        screen.type("run `echo $$ > pid; exec sleep 300`\r")
        screen.wait_until(lambda: pid.exists() and pid.read_text())
        screen.hang_up()
        assert screen.process.wait(PATIENCE_S) == 128 + signal.SIGHUP
    kinds = [r["type"] for r in records(home)]
    assert "tool_result" not in kinds
    assert "interrupt" not in kinds
    os.kill(int(pid.read_text()), signal.SIGTERM)  # it runs on
    with Terminal([*HOLDFAST, "--practice", "-c"], cwd=work, env=env, preload=SCREEN) as screen:
        screen.wait_until(lambda: "tool_result" in [r["type"] for r in records(home)])
    (note,) = [r["text"] for r in records(home) if r["type"] == "note"]
    assert "has ended meanwhile" in note


def test_a_terminal_that_goes_away_while_it_starts_ends_the_program(holdfast: Open) -> None:
    with holdfast() as screen:
        screen.wait_for("›")
        screen.hang_up()
        assert screen.process.wait(PATIENCE_S) > 0


def test_a_narrow_terminal_works(holdfast: Open) -> None:
    with holdfast(columns=60, rows=20) as screen:
        screen.wait_for("›")
        screen.type("read README.md\r")
        screen.wait_for("The demo project.")
