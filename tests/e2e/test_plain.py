"""Plain lines in a real pseudo-terminal: typed at, interrupted, hung up, and without one."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import termios
import time
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.preloaded import PLAIN
from tests.support.program import Program
from tests.support.terminal import HOLDFAST, XTERM, Terminal

Open: TypeAlias = Callable[..., Terminal]

READY = "Ctrl+D quits."
ASKED = "1 once, 2 this session, 3 always, 4 no: "


@pytest.fixture
def plain(work: Path, env: dict[str, str]) -> Open:
    def start(*argv: str, term: str = "xterm-256color", **more: Any) -> Terminal:
        words, kind = [*HOLDFAST, "--practice", *argv], {**XTERM, "TERM": term}
        return Terminal(words, cwd=work, env=env, kind=kind, preload=PLAIN, **more)

    return start


def ready(screen: Terminal) -> None:
    """The prompt stands there."""
    screen.wait_for(READY, "model practice. >")


def pause(screen: Terminal, seconds: float = 0.3) -> None:
    """What follows was not pasted along with what came before."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        screen.read(left)


def press_ctrl_c(screen: Terminal) -> None:
    """The terminal of a test controls nobody, so the signal is sent."""
    os.kill(screen.process.pid, signal.SIGINT)


def records(home: Path) -> list[dict[str, Any]]:
    (path,) = (home / "data" / "sessions").rglob("*.jsonl")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_ask_and_leave_without_a_single_escape_sequence(plain: Open) -> None:
    with plain("--plain") as screen:
        ready(screen)
        screen.type("read README.md\r")
        screen.wait_for("Holdfast: I read 3 lines", "End of code. > ")
        screen.type("/status\r")
        screen.wait_for("tokens, compacts at 80 percent.", "your turn. > ")
        screen.type("/help\r")
        screen.wait_for("Only on the full screen:")
        pause(screen)
        screen.type("\x04")
        assert screen.exit_code() == 0
        assert "Resume with: holdfast --plain -r " in screen.text
        assert termios.tcgetattr(screen.slave) == screen.before
        assert b"\x1b" not in screen.raw


@pytest.mark.parametrize(("term", "clips"), [("xterm-256color", True), ("dumb", False)])
def test_code_is_copied_by_a_terminal_that_knows_how(
    plain: Open, term: str, *, clips: bool
) -> None:
    with plain("--plain", term=term) as screen:
        ready(screen)
        screen.type("read README.md\r")
        screen.wait_for("Holdfast: I read 3 lines", "Code 1, markdown:", "End of code. > ")
        screen.type("/copy 1\r")
        screen.wait_for("Copied code block 1 (", "lines). >")
        sent = re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\a", screen.raw)
        assert [b64decode(one).count(b"\n") for one in sent] == [2] * clips
        assert screen.raw.count(b"\x1b") == len(sent)


def test_a_dumb_terminal_gets_plain_lines_by_itself_and_is_told(plain: Open) -> None:
    with plain(term="dumb") as screen:
        screen.wait_for("This terminal can't move the cursor, so Holdfast uses plain lines.")
        ready(screen)
        screen.type("\x04")
        assert screen.exit_code() == 0
        assert b"\x1b" not in screen.raw


def test_the_settings_ask_for_plain_lines(plain: Open, config: Callable[[str], Path]) -> None:
    config("plain = true\n")
    with plain() as screen:
        screen.wait_for("Plain lines, as set in your settings.")
        ready(screen)
        assert b"\x1b" not in screen.raw


def test_the_screen_is_never_loaded(work: Path, env: dict[str, str]) -> None:
    code = (
        "import sys; from tui.cli.main import main\n"
        "code = main(['--plain', '--practice'])\n"
        "print('LOADED', code, sorted({'textual', 'rich', 'anthropic'} & set(sys.modules)))"
    )
    with Terminal([sys.executable, "-c", code], cwd=work, env=env) as screen:
        ready(screen)
        for text, heard in (
            ("read README.md", "End of code."),
            ("/context", "/context all"),
            ("/diff", "No files changed"),
            ("/usage", "Cost: last prompt"),
            ("/permissions", "write freely"),
            ("/doctor", "storage"),
        ):
            pause(screen)
            screen.type(f"{text}\r")
            screen.wait_for(heard)
        pause(screen)
        screen.type("/quit\r")
        screen.wait_for("LOADED 0 []")


def test_a_change_is_made_after_a_typed_answer(plain: Open, work: Path) -> None:
    with plain("--plain") as screen:
        ready(screen)
        screen.type("change demo to sample in README.md\r")
        screen.wait_for("removed: The demo project.", "added: The sample project.", ASKED)
        assert "sample" not in (work / "README.md").read_text()
        screen.type("1\r")
        screen.wait_for("Answered: once.", "End of code. > ")
        assert "sample" in (work / "README.md").read_text()
        screen.type("/diff\r")
        screen.wait_for("1 file changed: 1 line added, 1 removed.")


def test_what_is_typed_before_a_question_never_answers_it(
    plain: Open, work: Path, script: Callable[[str], str]
) -> None:
    calls = script(
        '[[turn]]\n[[turn.tools]]\nname = "run_command"\n'
        'input = {command = "touch began; until [ -e go ]; do sleep 0.05; done"}\n'
        '[[turn.tools]]\nname = "write_file"\ninput = {path = "notes.txt", content = "x"}\n'
        '[[turn]]\ntext = "Left."\n[[turn]]\ntext = "Heard."\n'
    )
    rule = ("--allow", "run_command(touch began; until [[] -e go ]; do sleep 0.05; done)")
    with plain("--plain", "--practice-script", calls, *rule) as screen:
        ready(screen)
        screen.type("write it\r")
        screen.wait_until((work / "began").exists)
        screen.type("1\r")
        screen.wait_for("Queued: sent as soon as the agent can take it.")
        screen.type("3")
        (work / "go").touch()
        screen.wait_for("Kept for your next prompt: 3", ASKED)
        screen.type("4 no\r")
        screen.wait_for("Answered: no.", "You: 1", "Holdfast: Left.", "> 3")
        assert not (work / "notes.txt").exists()


def test_ctrl_c_stops_the_turn_clears_the_line_and_then_leaves(plain: Open, work: Path) -> None:
    with plain("--plain", "-y") as screen:
        screen.wait_for("ELEVATED", "> ")
        screen.type("run `touch began; sleep 300`\r")
        screen.wait_until((work / "began").exists)
        press_ctrl_c(screen)
        screen.wait_for("interrupted after", "Stopped. What should it do instead? > ")
        screen.forget()
        screen.type("half a line")
        screen.wait_for("half a line")
        press_ctrl_c(screen)
        screen.wait_for("half a line >")
        press_ctrl_c(screen)
        screen.wait_for("Press Ctrl+C again, or Ctrl+D, to quit. >")
        press_ctrl_c(screen)
        assert screen.exit_code() == 0
        assert termios.tcgetattr(screen.slave) == screen.before


def test_ctrl_d_while_a_turn_runs_stops_it_and_leaves(plain: Open, work: Path) -> None:
    with plain("--plain", "-y") as screen:
        screen.wait_for("ELEVATED", "> ")
        screen.type("run `touch began; sleep 300`\r")
        screen.wait_until((work / "began").exists)
        screen.type("\x04")
        assert screen.exit_code() == 0
        assert "interrupted after" in screen.text


def test_a_signal_that_ends_it_keeps_what_was_typed(plain: Open, home: Path) -> None:
    typed = "read README.md and tell me"
    with plain("--plain") as screen:
        ready(screen)
        screen.type(typed)
        screen.wait_for(typed)
        while screen.read(0.3):  # the line editor waits for the next key by then
            pass
        os.kill(screen.process.pid, signal.SIGTERM)
        assert screen.exit_code() == 143
        assert termios.tcgetattr(screen.slave) == screen.before
    drafts = [one for one in records(home) if one["type"] == "draft"]
    assert drafts[-1]["prompt"] == typed
    with plain("--plain", "-c") as screen:
        screen.wait_for(f"> {typed}")
        screen.type("\r")
        screen.wait_for("Holdfast: I read 3 lines")


def test_kill_9_while_typing_and_the_prompt_comes_back(plain: Open, home: Path) -> None:
    typed = "read README.md and tell me"
    with plain("--plain") as screen:
        ready(screen)
        screen.type(typed)
        screen.wait_until(lambda: any(one.get("prompt") == typed for one in records_so_far(home)))
        screen.kill()
    with plain("--plain", "-c") as screen:
        screen.wait_for(f"> {typed}")


def records_so_far(home: Path) -> list[dict[str, Any]]:
    files = list((home / "data" / "sessions").rglob("*.jsonl"))
    return [json.loads(line) for line in files[0].read_bytes().splitlines()] if files else []


def test_a_terminal_that_goes_away_ends_it(plain: Open, home: Path) -> None:
    with plain("--plain") as screen:
        ready(screen)
        screen.type("read README.md\r")
        screen.wait_for("End of code. > ")
        screen.hang_up()
        assert screen.process.wait(PATIENCE_S) == 129
    assert records(home)


def test_a_terminal_that_goes_away_in_a_turn_ends_it(plain: Open, work: Path) -> None:
    with plain("--plain", "-y") as screen:
        screen.wait_for("ELEVATED", "> ")
        screen.type("run `touch began; sleep 300`\r")
        screen.wait_until((work / "began").exists)
        screen.hang_up()
        assert screen.process.wait(PATIENCE_S) == 129


def test_several_lines_and_the_history_of_the_full_screen(plain: Open, home: Path) -> None:
    with plain("--plain") as screen:
        ready(screen)
        screen.type('"""\r')
        screen.wait_for("...")
        screen.type("first\r")
        pause(screen)
        screen.type('second"""\r')
        screen.wait_for("Holdfast:")
    (kept,) = (home / "data" / "history").glob("*.jsonl")
    assert json.loads(kept.read_text().splitlines()[-1]) == "first\nsecond"
    with plain("--plain") as screen:
        ready(screen)
        screen.type("\x10")  # Ctrl+P: the prompt before
        screen.wait_for("second")


def test_a_paste_of_lines_is_one_prompt(plain: Open, home: Path) -> None:
    with plain("--plain") as screen:
        ready(screen)
        screen.type("one\rtwo\rthree")
        pause(screen)
        screen.type("\r")
        screen.wait_for("Holdfast:")
    users = [one for one in records(home) if one["type"] == "user"]
    assert [one["text"] for one in users] == ["one\ntwo\nthree"]


def test_the_context_is_masked_and_pinned_by_number(plain: Open, home: Path) -> None:
    with plain("--plain") as screen:
        ready(screen)
        screen.type("read README.md\r")
        screen.wait_for("End of code. > ")
        screen.type("/context\r")
        screen.wait_for("or read N. > ")
        number = re.findall(r"(\d+): result,", screen.text)[-1]
        for typed, heard in (
            (f"/context hide {number}", "One item is hidden from the model, starting with the"),
            (f"/context pin {number}", "Pinned."),
            (f"/context show {number}", "One item is sent in full again"),
            (f"/context read {number}", "The demo project."),
            ("/pin", "Unpinned."),
            ("/context mask 1", "they can't be hidden or pinned"),
            ("/context hide 999", "No item 999."),
            ("/context paint 3", "Unknown /context paint 3."),
        ):
            screen.forget()
            screen.type(f"{typed}\r")
            screen.wait_for(heard, "> ")
            pause(screen)
    kinds = [one["type"] for one in records(home)]
    assert kinds.count("overlay") == 2
    assert kinds.count("pin") == 2


def test_a_shell_of_emacs_edits_the_line_itself(
    plain: Open, env: dict[str, str], work: Path
) -> None:
    words = ["env", "TERM=dumb", "INSIDE_EMACS=29.1,comint", *HOLDFAST, "--practice"]
    with Terminal(words, cwd=work, env=env) as screen:
        ready(screen)
        screen.type("read README.md\r")
        screen.wait_for("Holdfast: I read 3 lines", "End of code. > ")
        assert screen.text.count("read README.md") == 2  # the echo, and the answer's "I'll read"
        screen.type("\x04")
        assert screen.exit_code() == 0


def test_without_a_terminal_it_refuses(holdfast: Program) -> None:
    done = holdfast("--plain", "--practice", stdin="hello", code=2)
    assert "need a terminal" in done.stderr
    assert "holdfast -p" in done.stderr
    assert done.stdout == ""


def test_without_a_key_and_an_answer_the_exit_code_says_so(work: Path, env: dict[str, str]) -> None:
    without = {name: value for name, value in env.items() if not name.startswith("ANTHROPIC_")}
    with Terminal([*HOLDFAST, "--plain"], cwd=work, env=without, preload=PLAIN) as screen:
        screen.wait_for("How do you want to connect?", "or just Enter for none: ")
        screen.type("\r")
        assert screen.exit_code() == 3
        assert "No API key" in screen.text


def test_a_named_session_that_does_not_exist(holdfast: Program, plain: Open) -> None:
    with plain("--plain", "-r", "nosuchsession") as screen:
        assert screen.exit_code() == 4


def test_p_and_plain_exclude_each_other(holdfast: Program) -> None:
    done = holdfast("--plain", "-p", "hi", "--practice", code=2)
    assert "-p already prints lines" in done.stderr
