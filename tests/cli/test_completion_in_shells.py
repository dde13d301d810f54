"""Completion as a person has it: the script sourced in a real bash, zsh or fish, and Tab pressed.

`holdfast` is a function of the shell there, which says what it was called with.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.session.test_naming import begin
from tests.support.terminal import Terminal
from tui.app.options.flags import COMMANDS, MAIN, Command
from tui.core.paths import folders

Press: TypeAlias = Callable[[str], list[str]]

_SAY = "{ printf '%s\\0' \"$@\"; echo; } > said.new; command mv said.new said"
_MAKE = f"{sys.executable} -m tui completion"
_FUNCTION = f"holdfast() {{ {_SAY}; }}"
_COMPINIT = "autoload -Uz compinit; compinit -i -D"
SOURCED = {
    "bash": f"source <({_MAKE} bash); {_FUNCTION}",
    "zsh": f"source <({_MAKE} zsh); {_FUNCTION}",
    "fish": f"{_MAKE} fish | source; function holdfast; "
    "begin; printf '%s\\0' $argv; echo; end > said.new; command mv said.new said; end",
}
ARGV = {
    "bash": ["bash", "--norc", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)
"""fish 3.6 wants to be the one that the terminal belongs to."""
SHELLS = [
    pytest.param(
        shell,
        marks=pytest.mark.skipif(not shutil.which(shell), reason=f"{shell} is not installed"),
    )
    for shell in ARGV
]


@contextmanager
def a_shell(shell: str, folder: Path, setup: str, **more: str) -> Generator[Press]:
    """Gives a function that types a line with Tab and Enter: what `holdfast` then was given."""
    (folder / "work" / "sub").mkdir(parents=True)
    (folder / "work" / "tasks one.md").touch()
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), **more}
    work, said = folder / "work", folder / "work" / "said"
    argv = [sys.executable, "-c", _OWN_TERMINAL, *ARGV[shell]]
    with Terminal(argv, cwd=work, env=env, kind={"TERM": "dumb"}) as terminal:
        terminal.type(f"{setup}; echo REA''DY\n")
        terminal.wait_for("READY")

        def press(line: str) -> list[str]:
            said.unlink(missing_ok=True)
            terminal.type(f"holdfast {line}\t\n")
            terminal.wait_until(said.exists)
            return said.read_text().split("\0")[:-1]

        yield press


LINES = [
    ("sess", ["sessions"]),
    ("sessions exp", ["sessions", "export"]),
    ("mcp ad", ["mcp", "add"]),
    ("--output-format stream", ["--output-format", "stream-json"]),
    ("sessions export --format h", ["sessions", "export", "--format", "html"]),
    ("-C su", ["-C", "sub"]),
    ("run tas", ["run", "tasks one.md"]),
    ("-r tas", ["-r", "tasks one.md"]),
    ("drill overf", ["drill", "overflow"]),
    ("help permi", ["help", "permissions"]),
    ("completion z", ["completion", "zsh"]),
    ("schema ev", ["schema", "events"]),
    ("--no-sand", ["--no-sandbox"]),
    ("sessions list --al", ["sessions", "list", "--all"]),
    ("-m nothing", ["-m", "nothing"]),
]


def all_pressed(press: Press) -> list[tuple[str, list[str]]]:
    return [(line, [word.rstrip("/") for word in press(line)]) for line, _ in LINES]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_sourced_script_completes(shell: str, tmp_path: Path) -> None:
    with a_shell(shell, tmp_path, SOURCED[shell]) as press:
        assert all_pressed(press) == LINES


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
@pytest.mark.parametrize(
    "setup",
    [
        f"{_COMPINIT}; source <({_MAKE} zsh); {_FUNCTION}",
        f'{_COMPINIT}; eval "$({_MAKE} zsh)"; {_FUNCTION}',
        f"mkdir ../f; {_MAKE} zsh > ../f/_holdfast; fpath=(../f $fpath); {_COMPINIT}; {_FUNCTION}",
    ],
    ids=["after compinit", "eval", "fpath"],
)
def test_zsh_takes_it_in_each_way(setup: str, tmp_path: Path) -> None:
    with a_shell("zsh", tmp_path, setup) as press:
        assert all_pressed(press) == LINES


def beginning_of(name: str, command: Command) -> str:
    """The shortest beginning of a long option that no other has; "" where that is all of it."""
    others = {other for flag in command.flags for other in flag.names} - {name} | {
        "--help",
        "--version",
    }
    for length in range(3, len(name)):
        if not any(other.startswith(name[:length]) for other in others):
            return name[:length]
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_of_every_command_is_completed(shell: str, tmp_path: Path) -> None:
    with a_shell(shell, tmp_path, SOURCED[shell]) as press:
        for command in (MAIN, *COMMANDS):
            for name in (name for flag in command.flags for name in flag.names):
                if begin := beginning_of(name, command):
                    assert press(" ".join((*command.words, begin))) == [*command.words, name]


ODD = 'Fix: it\'s "odd" $HOME `touch ran` \\ & (a/b)!'
SAY = 'Say: it\'s "odd" & (a/b); {x} * #~ <y>'
TITLES = ["Fix the parser", ODD, "plan one", "plan one", "-n first", SAY, ""]
"""Those of sessions s0, s1 and so on."""
TITLE_LINES = [
    ("-r Fix\\ the", ["-r", TITLES[0]]),
    ("-r 'Fix the", ["-r", TITLES[0]]),
    ('sessions show "Fix the', ["sessions", "show", TITLES[0]]),
    ("sessions export fix\\ the", ["sessions", "export", TITLES[0]]),
    ("attach Say", ["attach", SAY]),
    ("attach Say\\:\\ ", ["attach", SAY]),
    ('attach "Say: ', ["attach", SAY]),
    ("attach 'Say", ["attach", SAY]),
    ("-r s0", ["-r", "s0"]),
    ("-r plan", ["-r", "plan"]),  # names two: they go by their ids
    ("-r s3", ["-r", "s3"]),
    ("-r tas", ["-r", "tasks one.md"]),
    ("stop Fix\\ the", ["stop", "Fix the"]),  # nothing runs in the background
]


@pytest.mark.parametrize("shell", SHELLS)
def test_sessions_are_completed_by_their_titles(shell: str, tmp_path: Path) -> None:
    home, programs = folders({"HOLDFAST_HOME": str(tmp_path / "home")}), tmp_path / "bin"
    for number, title in enumerate(TITLES):
        begin(home, f"s{number}", title)
    programs.mkdir()
    program = programs / "holdfast"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tui "$@"\n')
    program.chmod(0o755)
    more = {"PATH": f"{programs}:{os.environ['PATH']}", "HOLDFAST_HOME": str(tmp_path / "home")}
    with a_shell(shell, tmp_path, SOURCED[shell], **more) as press:
        assert [(line, press(line)) for line, _ in TITLE_LINES] == TITLE_LINES
        then = "s1" if shell == "bash" else ODD  # bash 5.2 would run it
        assert [press(f"-r {line}") for line in ("Fix\\:\\ i", "'Fix: ")] == [["-r", then]] * 2
        assert not list(tmp_path.rglob("ran"))
