"""What the thread that reads the terminal fails with ends the program, and is not on its screen."""

from __future__ import annotations

import os
import re
import signal
import sys
import termios
from pathlib import Path

import pytest

from tests.support.terminal import HOLDFAST, Terminal

FAILING = """
import sys
from tui.{module} import {name}
feed = {name}.feed
def failing(self, data):
    if b"Z" in data:
        raise ValueError("on purpose")
    return feed(self, data)
{name}.feed = failing
from tui.cli import main
from tui.ui.start import first_frame
sys.exit(main.main(["--practice"]))
"""


LATE = """
import sys, threading
from tui.ui.start import terminal_takeover
reading = threading.Event()
class Parser(terminal_takeover.KeyParser):
    @property
    def patience_s(self):
        reading.set()
        return super().patience_s
terminal_takeover.KeyParser = Parser
takeover = terminal_takeover.TerminalTakeover
takeover.listen = lambda self, leave: setattr(self, "_leave", leave)
driver = terminal_takeover.LinuxDriver
ending = driver._disable_mouse_support
def late(self):
    self.over.listening.set()
    reading.wait()
    ending(self)
driver._disable_mouse_support = late
from tui.cli import main
from tui.ui.start import first_frame
sys.exit(main.main(["--practice"]))
"""


NOTED = """
import sys
from pathlib import Path
from tui.core import gc_pause
noted = Path(sys.argv[1]).open("w", buffering=1)
came, seen = gc_pause.key_read, gc_pause.key_drawn
gc_pause.key_read = lambda: (came(), print("came", file=noted))
gc_pause.key_drawn = lambda: (seen(), print("seen", file=noted))
from tui.cli import main
from tui.ui.start import first_frame
sys.exit(main.main(["--practice"]))
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ANTHROPIC")}
    return clean | {"HOLDFAST_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}


@pytest.mark.parametrize("shown", ["›", "shift+tab"], ids=["first frame", "real screen"])
def test_a_failure_while_keys_are_read_ends_the_program(
    env: dict[str, str], tmp_path: Path, shown: str
) -> None:
    failing = FAILING.format(module="core.terminal_input", name="TerminalInput")
    with Terminal([sys.executable, "-c", failing], cwd=tmp_path, env=env) as screen:
        screen.wait_for(shown)
        screen.type("Z")
        assert screen.exit_code() == 1
        assert termios.tcgetattr(screen.slave) == screen.before
        assert b"\x1b[?1049l" in screen.raw
        assert "Traceback" not in screen.text
        assert "bug" in screen.text
    (log,) = (tmp_path / "home").rglob("*.log")
    assert "on purpose" in log.read_text()


def test_the_program_ends_even_if_keys_are_just_beginning_to_be_read(
    env: dict[str, str], tmp_path: Path
) -> None:
    with Terminal([sys.executable, "-c", LATE], cwd=tmp_path, env=env) as screen:
        screen.wait_for("shift+tab")
        screen.process.send_signal(signal.SIGINT)
        assert screen.exit_code() == 128 + signal.SIGINT


def test_other_work_waits_for_a_key_until_it_is_drawn(env: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "noted"
    argv = [sys.executable, "-c", NOTED, str(log)]
    with Terminal(argv, cwd=tmp_path, env=env) as screen:
        screen.wait_for("shift+tab")
        screen.type("Q")
        screen.wait_for("› Q")
        screen.wait_until(log.read_text)
        assert log.read_text().startswith("came\n")
        screen.press("X", lambda: "came\nseen\n" in log.read_text())


def test_the_size_is_the_terminals_whatever_the_environment_says(
    env: dict[str, str], tmp_path: Path
) -> None:
    wrong = env | {"COLUMNS": "60", "LINES": "20"}
    with Terminal([*HOLDFAST, "--practice"], cwd=tmp_path, env=wrong) as screen:
        screen.resize(100, 30)
        screen.wait_for("shift+tab")
        screen.wait_until(lambda: max(screen.shown.by_row) >= 29)
        screen.resize(90, 26)
        screen.type("x" * 85)
        screen.wait_until(lambda: any("x" * 61 in text for text in rows(screen)))


def rows(screen: Terminal) -> list[str]:
    return ["".join(char for char, _ in row) for _, row in sorted(screen.shown.by_row.items())]


def test_keys_are_asked_for_with_their_place_and_alt_as_alt_until_the_end(
    env: dict[str, str], tmp_path: Path
) -> None:
    with Terminal([*HOLDFAST, "--practice"], cwd=tmp_path, env=env) as screen:
        screen.wait_for("shift+tab")
        screen.type("\x1a")  # suspend
        pid, stopped = screen.process.pid, os.WSTOPPED | os.WNOHANG
        screen.wait_until(lambda: os.waitid(os.P_PID, pid, stopped))
        screen.process.send_signal(signal.SIGCONT)
        screen.wait_until(lambda: screen.raw.count(b"\x1b[?1036h") == 2)
        screen.process.send_signal(signal.SIGTERM)
        assert screen.exit_code() == 128 + signal.SIGTERM
    asked = re.findall(rb"\x1b\[[<>]\d*u|\x1b\[\?1036[hrs]", screen.raw)
    on = [b"\x1b[>5u", b"\x1b[?1036s", b"\x1b[?1036h"]
    assert asked == [*on, b"\x1b[?1036r", b"\x1b[<u"] * 2


def test_the_linux_console_gets_nothing_that_it_may_draw(
    env: dict[str, str], tmp_path: Path
) -> None:
    with Terminal(
        [*HOLDFAST, "--practice"], cwd=tmp_path, env=env, kind={"TERM": "linux"}
    ) as screen:
        screen.wait_for("shift+tab")
        screen.type("hello")
        screen.wait_for("› hello")
        screen.type("\x03\x11")
        assert screen.exit_code() == 0
    assert re.findall(rb"\x1b(?:\[[<=>]|\[[\d?;]*[ -/]|[\]P_^X]).{9}", screen.raw) == []
