"""The program in terminals of many kinds: without colour, few colours, no UTF-8, too small."""

from __future__ import annotations

import os
import re
import select
import signal
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.benchmarks.streamed import streaming
from tests.support.clock import PATIENCE_S
from tests.support.terminal import HOLDFAST, Terminal

pytestmark = pytest.mark.slow

Open: TypeAlias = Callable[..., Terminal]

READY = "Ask for anything"
_SGR = re.compile(rb"\x1b\[([0-9;:]*)m")
NO_UTF8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def colours(raw: bytes) -> set[bytes]:
    """The sequences that set a colour of the text or of what lies behind it."""
    return {m[0] for m in _SGR.finditer(raw) if any(map(_is_colour, _codes(m[1])))}


def _codes(parameters: bytes) -> list[int]:
    return [int(one.split(b":")[0] or 0) for one in parameters.split(b";")]


def _is_colour(code: int) -> bool:
    return code in (*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108))


@pytest.fixture
def holdfast(work: Path, env: dict[str, str]) -> Open:
    def start(*argv: str, more: Mapping[str, str] | None = None, **kind: Any) -> Terminal:
        return Terminal([*HOLDFAST, *argv], cwd=work, env={**env, **(more or {})}, **kind)

    return start


@pytest.mark.parametrize("no_color", [True, False])
def test_no_color_leaves_no_colour_on_any_screen(holdfast: Open, *, no_color: bool) -> None:
    with holdfast("--practice", more={"NO_COLOR": "1"} if no_color else {}) as screen:
        screen.wait_for(READY)
        screen.type("change demo to sample in README.md\r")
        screen.wait_for("+ The sample project.", "1 Yes")
        screen.press("\x1b", lambda: "1 prompt" in screen.text)
        for key, shown in (("\x10", "/resume"), ("\x1bOP", "● here"), ("\x1bOR", "this folder")):
            screen.forget()
            screen.press(key, lambda shown=shown: shown in screen.text)
            found = colours(screen.raw)
            assert not found if no_color else found
            screen.type("\x1b")
        assert b"\x1b[7m" in screen.raw or not no_color  # the text cursor is still to be seen


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("sessions", "list"), 0),
        (("doctor",), 1),
        (("run", "tasks.md", "--headless", "--practice"), 0),
        (("--nonsense",), 2),
        (("-r", "nothing-like-it", "--practice"), 4),
        (("--help",), 0),
    ],
    ids=["sessions", "doctor", "run", "usage", "no session", "help"],
)
def test_no_color_holds_for_what_is_printed(
    holdfast: Open, work: Path, argv: tuple[str, ...], code: int
) -> None:
    (work / "tasks.md").write_text("- [ ] say hello\n")
    with holdfast(*argv, more={"NO_COLOR": "1"}) as screen:
        assert screen.exit_code() == code
        assert len(screen.text) > 20
        assert colours(screen.raw) == set()


@pytest.mark.parametrize(
    ("term", "deep"),
    [
        ("xterm-16color", False),
        ("screen-256color", True),
        ("tmux-256color", True),
        ("linux", False),
        ("xterm-256color", True),
        ("a-terminal-nobody-knows", False),
    ],
)
def test_a_turn_on_a_terminal_without_colorterm(holdfast: Open, term: str, *, deep: bool) -> None:
    with holdfast("--practice", kind={"TERM": term}) as screen:
        screen.wait_for(READY)
        screen.type("read README.md\r")
        screen.wait_for("The demo project.", "1 prompt")
        found = colours(screen.raw)
        assert found
        assert not any(b"38;2" in one or b"48;2" in one for one in found)
        assert any(b"38;5" in one for one in found) == deep


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "POSIX"}])
def test_the_plain_locale_does_no_harm(holdfast: Open, locale: dict[str, str]) -> None:
    with holdfast("--practice", more=locale) as screen:
        screen.wait_for(READY)
        screen.type("say grüß\r")
        screen.wait_for("grüß", "1 prompt")


def test_a_locale_that_is_not_utf8_is_told_and_the_screen_is_whole(holdfast: Open) -> None:
    with holdfast("--practice", more=NO_UTF8) as screen:
        screen.wait_for(READY, "draws in UTF-8 anyway", "export LANG=C.UTF-8")
        screen.type("read README.md\r")
        screen.wait_for("The demo project.", "1 prompt", "───")
        assert "\\u2" not in screen.text


@pytest.mark.parametrize("argv", [("doctor",), ("sessions", "list"), ("--help",)])
def test_what_is_printed_in_a_locale_without_utf8(holdfast: Open, argv: tuple[str, ...]) -> None:
    with holdfast(*argv, more=NO_UTF8) as screen:
        assert screen.exit_code() in {0, 1}
        assert "Traceback" not in screen.text


def test_a_terminal_that_is_too_small_says_so_and_recovers(holdfast: Open) -> None:
    with holdfast("--practice", columns=20, rows=5) as screen:
        screen.wait_for("20 × 5", "40 × 10")
        screen.forget()
        screen.resize(100, 30)
        screen.wait_for(READY, "ctrl+p")
        screen.type("read READ")
        screen.wait_for("› read READ")
        screen.resize(39, 30)
        screen.wait_for("39 × 30")
        screen.resize(100, 9)
        screen.wait_for("100 × 9")
        screen.forget()
        screen.resize(40, 10)
        screen.wait_for("› read READ")
        screen.type("ME.md\r")
        screen.wait_for("The demo project.")


def test_a_terminal_that_is_too_small_can_be_left(holdfast: Open) -> None:
    with holdfast("--practice", columns=20, rows=5) as screen:
        screen.wait_for("40 × 10")
        screen.type("\x03")
        screen.read(0.2)
        screen.type("\x03")
        assert screen.exit_code() == 0


@pytest.mark.parametrize("motion", ["full", "reduced"])
def test_reduced_motion_paints_nothing_but_the_seconds(
    holdfast: Open, script: Callable[[str], str], config: Callable[[str], Path], motion: str
) -> None:
    config(f'motion = "{motion}"\n')
    waits = script('[[turn]]\ntext = "hello"\ndelay_s = 60.0\n')
    with holdfast("--practice", "--practice-script", waits) as screen:
        screen.wait_for(READY)
        screen.type("go\r")
        screen.wait_for("1 s waiting for practice")
        screen.forget()
        until = time.monotonic() + 3.2
        while time.monotonic() < until:
            screen.read(0.05)
        frames = set(re.findall(r"(\S) \d+ s waiting for practice", screen.text))
        painted = screen.text.count("waiting for practice")
    if motion == "reduced":
        assert frames == {"●"}
        assert 2 <= painted <= 4  # once a second, for the figure
    else:
        assert len(frames) > 2
        assert painted > 4


def test_a_screen_that_was_stopped_is_drawn_again(holdfast: Open) -> None:
    """After SIGSTOP and SIGCONT the shell's own text stood there until Ctrl+L."""
    with holdfast("--practice") as screen:
        screen.wait_for(READY, "f1 help")
        for _ in range(2):
            while screen.read(0.3):
                pass
            os.kill(screen.process.pid, signal.SIGSTOP)
            _, status = os.waitpid(screen.process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            screen.forget()
            os.kill(screen.process.pid, signal.SIGCONT)
            screen.wait_for(READY, "f1 help", "ask first")
        screen.type("/quit\r")
        assert screen.exit_code() == 0


_BESIDE = re.compile(rb"\x1b\](?:0|9;4);[^\x07]*\x07|\x1b\[2[23];0t|\x1b\[\?1049[hl]")
GHOSTTY = {"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.2.0"}


def told(screen: Terminal) -> list[str]:
    """Title, progress and the change of screens, in the order in which they were sent."""
    return [one.decode().replace("\x1b", "") for one in _BESIDE.findall(screen.raw)]


@pytest.fixture
def in_ghostty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMUX", "STY", "WT_SESSION", "INSIDE_EMACS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("in_ghostty")
def test_title_and_progress_are_put_back_whenever_the_terminal_is_let_go(holdfast: Open) -> None:
    with holdfast("--practice", kind=GHOSTTY) as screen:
        screen.wait_until(lambda: "]0;holdfast · work\x07" in told(screen))
        assert told(screen)[:2] == ["[?1049h", "[22;0t"]
        screen.forget()
        screen.type("change demo to sample in README.md\r")
        screen.wait_until(lambda: "]9;4;4;100\x07" in told(screen))
        assert "]9;4;3\x07" in told(screen)
        assert any(one.startswith("]0;? holdfast · ") for one in told(screen))
        screen.forget()
        os.kill(screen.process.pid, signal.SIGTERM)
        assert screen.exit_code() == 128 + signal.SIGTERM
        assert told(screen)[-2:] == ["[23;0t", "[?1049l"]
        assert "]9;4;0\x07" in told(screen)


@pytest.mark.usefixtures("in_ghostty")
def test_a_suspended_program_takes_its_title_along(holdfast: Open) -> None:
    with holdfast("--practice", kind=GHOSTTY) as screen:
        screen.wait_until(lambda: "]0;holdfast · work\x07" in told(screen))
        screen.forget()
        screen.type("\x1a")
        screen.wait_until(lambda: told(screen) == ["[23;0t", "[?1049l"])
        pid, stopped = screen.process.pid, os.WSTOPPED | os.WNOHANG
        screen.wait_until(lambda: os.waitid(os.P_PID, pid, stopped))
        screen.forget()
        os.kill(screen.process.pid, signal.SIGCONT)
        screen.wait_until(lambda: "]0;holdfast · work\x07" in told(screen))
        assert told(screen)[0] == "[?1049h"


@pytest.mark.usefixtures("in_ghostty")
def test_print_mode_sends_no_title(holdfast: Open) -> None:
    with holdfast("--practice", "-p", "hello", kind=GHOSTTY) as screen:
        assert screen.exit_code() == 0
        assert told(screen) == []


def _answering(screen: Terminal) -> None:
    """Read on, and answer that all has been drawn, as terminals do."""
    seen = len(screen.raw)
    screen.read(0.05)
    for _ in range(screen.raw.count(b"\x1b[5n", max(0, seen - 3))):
        screen.type("\x1b[0n")


def test_an_answer_is_finished_and_kept_while_the_terminal_takes_nothing(
    holdfast: Open, tmp_path: Path, env: dict[str, str]
) -> None:
    """A laptop that sleeps, a text that is being marked: what is drawn waits, the work does not."""
    with (
        streaming(tmp_path, tokens=4_000, piece=4, every_s=0.001) as url,
        holdfast(more={"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}) as screen,
    ):
        screen.wait_for(READY)
        screen.type("hello\r")
        screen.wait_for("1 prompt")
        screen.type("go\r")
        sessions = Path(env["HOLDFAST_HOME"])
        until = time.monotonic() + PATIENCE_S
        while not any("## Part 50" in one.read_text() for one in sessions.rglob("*.jsonl")):
            assert time.monotonic() < until, "the answer was not finished"
            time.sleep(0.05)
        screen.wait_for("2 prompts")


def test_no_answer_of_the_terminal_is_left_to_the_shell(holdfast: Open) -> None:
    with holdfast("--practice") as screen:
        screen.wait_for(READY)
        screen.type("hello\r")
        while "1 prompt" not in screen.text:
            _answering(screen)
        assert b"\x1b[5n" in screen.raw
        screen.type("\x04\x04")
        while screen.process.poll() is None:
            _answering(screen)
        attributes = termios.tcgetattr(screen.slave)
        attributes[3] &= ~termios.ICANON
        termios.tcsetattr(screen.slave, termios.TCSANOW, attributes)
        assert not select.select([screen.slave], [], [], 0.2)[0]
