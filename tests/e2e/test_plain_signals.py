"""Signals at the line editor (decision 32): none waits for a key, whichever way it comes."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.terminal import Terminal

PROGRAM = """
import os, signal, sys, threading
from pathlib import Path
from types import SimpleNamespace
from tui.plain.editor import Editor
from tui.plain.terminal import Terminal
from tui.app.prompt_history import PromptHistory

terminal = Terminal(Editor(PromptHistory(Path("history"))))

def signals():
    for number in sys.argv[1].split():
        if number == "elsewhere":
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        else:
            os.kill(os.getpid(), getattr(signal, number))

async def work():
    terminal.listen(SimpleNamespace(typed=print, interrupt=lambda: True, leave=print))
    threading.Timer(0.5, signals).start()
    print("ANSWER", await terminal.prompt())
    print("ENDED", terminal.ended)
    return 7

sys.exit(terminal.run(work))
"""


def end_with(signals: str, work: Path, env: dict[str, str]) -> str:
    with Terminal([sys.executable, "-c", PROGRAM, signals], cwd=work, env=env) as screen:
        assert screen.exit_code() == 7, screen.text
        return screen.text


def test_a_signal_that_another_thread_got_ends_the_line(work: Path, env: dict[str, str]) -> None:
    """The editor's wait is not interrupted by it, as by one that lands just before the wait."""
    assert "ANSWER None ENDED True" in end_with("elsewhere", work, env)


def test_two_signals_at_once_end_the_line(work: Path, env: dict[str, str]) -> None:
    assert "ANSWER None ENDED True" in end_with("SIGTERM SIGHUP", work, env)
    assert "ANSWER None ENDED True" in end_with("SIGINT SIGTERM", work, env)


COMPLETING = """
import os, signal, sys, threading, time
from pathlib import Path
from types import SimpleNamespace
from tui.plain.editor import Editor
from tui.plain.terminal import Terminal
from tui.app.prompt_history import PromptHistory

def slow(line):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)
    return ()

editor = Editor(PromptHistory(Path("history")))
editor.complete = slow
terminal = Terminal(editor)

async def work():
    terminal.listen(SimpleNamespace(typed=print, interrupt=lambda: True, leave=print))
    print("ANSWER", await terminal.prompt(), flush=True)
    return 7

sys.exit(terminal.run(work))
"""


def test_ctrl_c_while_a_word_is_completed_drops_the_line(work: Path, env: dict[str, str]) -> None:
    """The editor swallows what a handler raises there."""
    with Terminal([sys.executable, "-c", COMPLETING], cwd=work, env=env) as screen:
        screen.wait_for("> ")
        screen.type("half @a\t")
        screen.wait_for("half @a > ")
        screen.type("whole\r")
        screen.wait_for("ANSWER whole")
        assert screen.exit_code() == 7
