"""`-p` on a terminal: nothing of a model's text, nor of a refused command, steers the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.support.preloaded import RUN
from tests.support.program import Program
from tests.support.terminal import HOLDFAST, Terminal

EVIL = "a\x1b]52;c;ZXZpbA==\x07b\x1b]0;title\x07c\x1b[6nd\u202ee\x9b2Jf"
COMMAND = "touch x\x1b]52;c;ZXZpbA==\x07\u202e; touch y"


def _script(script: Callable[[str], str]) -> str:
    tool = f'{{name = "run_command", input = {{command = {json.dumps(COMMAND)}}}}}'
    return script(
        f"[[turn]]\ntext = {json.dumps(EVIL)}\ntools = [{tool}]\n"
        f"[[turn]]\ntext = {json.dumps(EVIL)}\n"
    )


def test_print_mode_on_a_terminal_is_cleaned(
    work: Path, env: dict[str, str], script: Callable[[str], str]
) -> None:
    argv = [*HOLDFAST, "--practice-script", _script(script), "-p", "go"]
    with Terminal(argv, cwd=work, env=env, preload=RUN) as screen:
        assert screen.exit_code() == 0
        raw = screen.raw
    assert "abcdef" in raw.decode()
    assert "touch x" in raw.decode()
    for part in (b"\x1b]", b"\x1b[6n", b"\x07", "\u202e".encode(), b"ZXZpbA"):
        assert part not in raw


def test_a_pipe_gets_the_answer_as_it_is(holdfast: Program, script: Callable[[str], str]) -> None:
    ran = holdfast("--practice-script", _script(script), "-p", "go")
    assert EVIL in ran.stdout
    assert "\x1b" not in ran.stderr
