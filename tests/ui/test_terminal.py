"""Title, progress and notifications: each only to a terminal that knows it, and put back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import answer, running, say, turn, until
from tui.core import facts
from tui.core.config import TerminalSettings
from tui.ui.terminal import TerminalCodes, TerminalStatus, terminal_behind_tmux

XTERM = {"TERM": "xterm-256color"}
GHOSTTY = XTERM | {"TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.2.3"}
PROGRESS = "\x1b]9;4;3\x07"


@pytest.mark.parametrize(
    ("env", "title", "progress", "notification"),
    [
        (XTERM, True, False, ""),
        (GHOSTTY, True, True, "9"),
        (GHOSTTY | {"TERM_PROGRAM_VERSION": "1.1.9"}, True, False, "9"),
        (GHOSTTY | {"TERM_PROGRAM_VERSION": "?"}, True, False, "9"),
        (XTERM | {"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.5.0"}, True, False, "9"),
        (XTERM | {"LC_TERMINAL": "iTerm2", "LC_TERMINAL_VERSION": "3.6.6"}, True, True, "9"),
        (XTERM | {"TERM_PROGRAM": "WezTerm"}, True, False, "9"),
        (XTERM | {"TERM_PROGRAM": "Apple_Terminal"}, True, False, ""),
        (XTERM | {"WT_SESSION": "x"}, True, True, ""),
        (XTERM | {"VTE_VERSION": "8001"}, True, True, ""),
        (XTERM | {"VTE_VERSION": "7600"}, True, False, ""),
        (XTERM | {"KONSOLE_VERSION": "260400"}, True, True, ""),
        (XTERM | {"KONSOLE_VERSION": "251203"}, True, False, ""),
        ({"TERM": "xterm-kitty"}, True, False, "9"),
        ({"TERM": "foot-extra"}, True, False, "777"),
        ({"TERM": "rxvt-unicode-256color"}, True, False, "777"),
        (GHOSTTY | {"TMUX": "/tmp/tmux", "TERM": "tmux-256color"}, True, False, ""),
        (GHOSTTY | {"STY": "1.x", "TERM": "screen"}, True, False, ""),
        ({"TERM": "linux"}, False, False, ""),
        ({"TERM": "a-terminal-nobody-knows"}, False, False, ""),
        ({"TERM": "st-256color"}, True, False, ""),
        ({"TERM": "dumb"}, False, False, ""),
        ({"TERM": "vt100"}, False, False, ""),
        (XTERM | {"INSIDE_EMACS": "29.1"}, False, False, ""),
        ({}, False, False, ""),
    ],
)
def test_a_terminal_gets_what_it_understands(
    env: Mapping[str, str], title: bool, progress: bool, notification: str
) -> None:
    terminal = TerminalCodes.of(env)
    texts = {"9": "\x1b]9;holdfast: Done.\x07", "777": "\x1b]777;notify;holdfast;Done.\x07"}
    assert bool(terminal.title("x", "auto")) == title
    assert terminal.progress("working", "auto") == (PROGRESS if progress else "")
    assert terminal.notification("Done.", "auto") == texts.get(notification, "")
    assert terminal.title("x", "off") == terminal.progress("working", "off") == ""
    assert terminal.notification("Done.", "bell") == ""
    assert terminal.progress("working", "on") == PROGRESS
    assert terminal.notification("Done.", "osc777") == texts["777"]


def test_behind_tmux_codes_are_wrapped_where_it_lets_them_through() -> None:
    ghostty = TerminalCodes.behind_tmux("xterm-ghostty", "ghostty 1.2.0", passthrough="on")
    assert ghostty.progress("working", "auto") == "\x1bPtmux;\x1b\x1b]9;4;3\x07\x1b\\"
    assert ghostty.title("x", "auto") == "\x1b]0;x\x07"  # tmux's own
    kitty = TerminalCodes.behind_tmux("xterm-kitty", "", passthrough="all")
    assert kitty.notification("Done.", "auto").startswith("\x1bPtmux;\x1b\x1b]9;")
    closed = TerminalCodes.behind_tmux("xterm-ghostty", "ghostty 1.2.0", passthrough="off")
    assert closed.progress("working", "auto") == closed.notification("x", "auto") == ""


async def test_a_tmux_that_answers_nothing_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (await terminal_behind_tmux()).notification("x", "auto") == ""
    fake = tmp_path / "tmux"
    fake.write_text("#!/bin/sh\nprintf 'on\\txterm\\tfoot(1.16.2)\\n'\n")
    fake.chmod(0o755)
    assert "777" in (await terminal_behind_tmux()).notification("x", "auto")


def status(env: Mapping[str, str] = GHOSTTY) -> tuple[TerminalStatus, list[str]]:
    written: list[str] = []
    return TerminalStatus(written.append, terminal=TerminalCodes.of(env)), written


def test_what_changes_goes_out_in_one_write_and_is_put_back() -> None:
    terminal, written = status()
    terminal.show(name="A title")
    terminal.show(name="A title")
    terminal.show(state="working")
    terminal.show(state="waiting")
    terminal.say_again()
    terminal.show(state="idle")
    terminal.say_again()
    assert written == [
        "\x1b[22;0t\x1b]0;holdfast · A title\x07",
        "\x1b]0;… holdfast · A title\x07\x1b]9;4;3\x07",
        "\x1b]0;? holdfast · A title\x07\x1b]9;4;4;100\x07",
        "\x1b]9;4;4;100\x07",
        "\x1b]0;holdfast · A title\x07\x1b]9;4;0\x07",
    ]
    assert terminal.leave() == "\x1b[23;0t"
    assert terminal.leave() == ""


def test_nothing_is_written_while_another_program_has_the_terminal() -> None:
    terminal, written = status()
    terminal.show(name="A title", state="working")
    assert terminal.leave() == "\x1b]9;4;0\x07\x1b[23;0t"
    del written[:]
    terminal.show(state="waiting")
    terminal.say_again()
    assert written == []
    terminal.resume()
    assert written == ["\x1b[22;0t\x1b]0;? holdfast · A title\x07\x1b]9;4;4;100\x07"]


def test_a_setting_that_is_switched_off_takes_its_own_back() -> None:
    terminal, written = status()
    terminal.show(name="x", state="working")
    terminal.use(TerminalSettings(title="off", progress="off"))
    terminal.show(state="idle")
    assert written[1:] == ["\x1b]9;4;0\x07\x1b[23;0t"]


def test_progress_shows_how_far_a_run_is() -> None:
    terminal, written = status()
    for percent in (0, 40, 40, 100):
        terminal.show(state="working", percent=percent)
    terminal.show(state="waiting", percent=40)
    terminal.show(state="done", percent=100)
    codes = [code for text in written for code in text.split("\x07") if "]9;4;" in code]
    assert codes == [f"\x1b]9;4;{code}" for code in ("3", "1;40", "1;100", "4;100", "0")]


@given(st.text())
def test_no_title_breaks_out_of_its_code(name: str) -> None:
    terminal, written = status(XTERM)
    terminal.show(name=name)
    (code,) = written
    body = code.removeprefix("\x1b[22;0t\x1b]0;").removesuffix("\x07")
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in body)
    assert len(body) < 100


async def test_a_turn_is_seen_in_the_tab(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GHOSTTY.items():
        monkeypatch.setenv(name, value)
    for name in ("TMUX", "STY", "WT_SESSION", "INSIDE_EMACS"):
        monkeypatch.delenv(name, raising=False)
    world, hold, late = World(), Hold(), Hold()
    asked = facts.PermissionAsked("t1", "run_command", "It runs.")
    world.scripts.append(turn(hold, asked, late, *answer("Done.")))
    written: list[str] = []
    async with running(world) as (app, pilot):
        app.frontend.terminal.write = written.append
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.busy)
        assert "".join(written).count("\x1b]9;4;3\x07") == 1
        hold.release()
        await until(pilot, lambda: written[-1].endswith("\x1b]9;4;4;100\x07"))
        assert "]0;? holdfast · " in written[-1]
        late.release()
        await until(pilot, lambda: written[-1].endswith("\x1b]9;4;0\x07"))
        assert "]0;holdfast · go" in written[-1]
