"""Every app ends in one way: by a signal, an error in any thread, or a terminal that goes away."""

from __future__ import annotations

import re
import signal
import sys
import termios
from pathlib import Path
from subprocess import PIPE
from typing import Final

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.preloaded import SCREEN, start
from tests.support.terminal import HOLDFAST, Terminal

APPS: Final = {
    "chat": (("--practice",), "Ask for anything"),
    "welcome": ((), "Connect a model"),
    "tour": (("tour",), "F9"),
    "drill": (("drill",), "drill"),
    "run": (("run", "TASKS.md", "--practice", "-y"), "sleep 300"),
}
"""The words of each, and what its screen shows."""
SET: Final = re.compile(rb"\x1b\[(?:\?(\d+)[hlr]|([<>])\d*u)")
"""A mode that is set, cleared or restored to what it was, and the keys' protocol."""
ON: Final = {b"7", b"25"}
"""Modes that a terminal has on by itself: the end of a line wraps, and a cursor is shown."""
INJECTED: Final = """
import sys, threading, tui.cli.main, tui.ui.toolkit.base_app as base

def boom(*_, **__):
    raise ValueError("boom")

heed = base.ThemedApp.heed_ends

def heed_ends(app, leave):
    heed(app, leave)
    app.set_timer(0.2, lambda: go(app))

def go(app):
    {}

base.ThemedApp.heed_ends = heed_ends
sys.argv = ["holdfast", *sys.argv[1:]]
raise SystemExit(tui.cli.main.main())
"""


@pytest.fixture
def there(work: Path) -> Path:
    (work / "TASKS.md").write_text("- [ ] run `exec sleep 300`\n")
    return work


def left_on(raw: bytes) -> set[bytes]:
    """The modes that a terminal is left with, in which it was not before."""
    modes = {found[1] or b"u": found[0].endswith((b"h", b"u")) for found in SET.finditer(raw)}
    modes[b"u"] = raw.rfind(b"\x1b[<u") < raw.rfind(b"\x1b[>")
    return {mode for mode, on in modes.items() if on is not (mode in ON)}


def assert_put_back(screen: Terminal) -> None:
    assert left_on(screen.raw) == set()
    assert termios.tcgetattr(screen.slave) == screen.before
    assert b"Traceback" not in screen.raw


@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGQUIT,
        *(
            pytest.param(number, marks=pytest.mark.slow)
            for number in (
                *(signal.SIGHUP, signal.SIGTERM, signal.SIGABRT),
                *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU),
            )
        ),
    ],
)
def test_a_signal_puts_the_terminal_back(
    there: Path, env: dict[str, str], app: str, number: signal.Signals
) -> None:
    argv, shown = APPS[app]
    with Terminal([*HOLDFAST, *argv], cwd=there, env=env, preload=SCREEN) as screen:
        screen.wait_for(shown)
        screen.process.send_signal(number)
        usual = {signal.SIGHUP: 129, signal.SIGTERM: 130 if app == "run" else 143}
        assert screen.exit_code() == usual.get(number, -number)
        assert_put_back(screen)


@pytest.mark.parametrize("app", APPS)
def test_a_terminal_that_goes_away_ends_it(there: Path, env: dict[str, str], app: str) -> None:
    argv, shown = APPS[app]
    with Terminal([*HOLDFAST, *argv], cwd=there, env=env, preload=SCREEN) as screen:
        screen.wait_for(shown)
        screen.hang_up()
        assert screen.process.wait(PATIENCE_S) == 128 + signal.SIGHUP


@pytest.mark.parametrize(
    "app",
    ["chat", *(pytest.param(app, marks=pytest.mark.slow) for app in ("welcome", "tour", "run"))],
)
def test_a_terminal_whose_output_is_stopped_does_not_keep_it_from_ending(
    there: Path, env: dict[str, str], app: str
) -> None:
    """As TCOOFF does it (Linux 6.18): whatever is written waits, also what is said at the end."""
    argv, shown = APPS[app]
    with Terminal([*HOLDFAST, *argv], cwd=there, env=env, preload=SCREEN) as screen:
        screen.wait_for(shown)
        termios.tcflow(screen.slave, termios.TCOOFF)
        screen.resize(90, 25)
        screen.process.send_signal(signal.SIGTERM)
        told = 130 if app == "run" else 128 + signal.SIGTERM
        assert screen.process.wait(PATIENCE_S) == told
        while screen.read(0):
            pass
        assert_put_back(screen)


@pytest.mark.slow
@pytest.mark.parametrize("wait_s", [0.0, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0])
def test_the_terminal_of_a_run_goes_away_at_any_moment(
    there: Path, env: dict[str, str], wait_s: float
) -> None:
    (there / "TASKS.md").write_text("- [ ] run `echo one`\n- [ ] run `sleep 1`\n")
    argv = [*HOLDFAST, "run", "TASKS.md", "--practice", "-y"]
    with Terminal(argv, cwd=there, env=env) as screen:
        screen.wait_for("TASKS.md")
        screen.read(wait_s)
        screen.hang_up()
        assert screen.process.wait(PATIENCE_S) == 128 + signal.SIGHUP


@pytest.mark.parametrize(
    "where",
    [
        (
            "app._driver._own = None; app.refresh(); "  # else no thread has to write
            "app._driver._file._file = type('F', (), {'write': boom, 'flush': boom})()"
        ),
        *(
            pytest.param(where, marks=pytest.mark.slow)
            for where in (
                "app._loop.call_soon(boom)",
                "app.run_worker(boom, thread=True)",
                "app._driver.process_message = boom; app.bell()",
                "app.takeover.pacing.drained = boom; app.refresh()",
                "app.screen._compositor.render_update = boom; app.refresh()",
            )
        ),
    ],
)
def test_an_error_in_any_thread_puts_the_terminal_back_and_says_where_it_is_told(
    work: Path, env: dict[str, str], where: str
) -> None:
    argv = [sys.executable, "-c", INJECTED.format(where), "--practice"]
    with Terminal(argv, cwd=work, env=env) as screen:
        screen.wait_for("›")
        while screen.process.poll() is None:
            screen.type("x")
            screen.listen(0.1)  # else the terminal echoes them into what is printed
        assert screen.exit_code() == 1
        assert "stopped by a bug: ValueError('boom')" in screen.text
        assert "holdfast.log" in screen.text
        assert left_on(screen.raw) == set()
        assert b"Traceback" not in screen.raw


def test_an_abort_puts_the_terminal_back(work: Path, env: dict[str, str]) -> None:
    abort = "import os; threading.Thread(target=os.abort).start()"
    argv = [sys.executable, "-c", INJECTED.format(abort), "--practice"]
    with Terminal(argv, cwd=work, env=env) as screen:
        screen.wait_for("›")
        assert screen.exit_code() == -signal.SIGABRT
        assert_put_back(screen)


@pytest.mark.slow
def test_a_second_signal_ends_what_does_not_end(work: Path, env: dict[str, str]) -> None:
    hang = "import time; base.LONGEST_S = 0.1\n    while True: time.sleep(0.01)"
    argv = [sys.executable, "-c", INJECTED.format(hang), "--practice"]
    with Terminal(argv, cwd=work, env=env) as screen:
        screen.wait_for("Ask for anything")
        screen.read(1.0)
        screen.process.send_signal(signal.SIGTERM)
        screen.read(0.5)
        assert screen.process.poll() is None
        screen.process.send_signal(signal.SIGTERM)
        assert screen.exit_code() == 128 + signal.SIGTERM
        assert_put_back(screen)


@pytest.mark.parametrize("words", [("help",), ("blame", "README.md")])
def test_it_ends_as_other_programs_do_when_nobody_reads_on(
    words: tuple[str, ...], work: Path, env: dict[str, str]
) -> None:
    process = start([*HOLDFAST, *words], cwd=work, env=env, stdout=PIPE, stderr=PIPE)
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(PATIENCE_S) == -signal.SIGPIPE
