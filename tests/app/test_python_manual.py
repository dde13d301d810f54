"""The examples of the manual's page on Python run as they are there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tui.app import Conversation

SCRIPTS = (
    '[[turn]]\ntext = "It repairs boats."\n',
    (
        "[[turn]]\n"
        'tools = [{name = "owners", input = {path = "src/a.py"}}]\n'
        "[[turn]]\n"
        'tools = [{name = "submit_result", input = {verdict = "approve", risks = ['
        '{file = "src/a.py", risk = "none"}]}}]\n'
    ),
    (
        "[[turn]]\n"
        'tools = [{name = "run_command", input = {command = "rm -r /tmp/none"}}]\n'
        '[[turn]]\ntext = "Fixed."\n'
    ),
)
PRINTED = ("It repairs boats.", "src/a.py: none\napprove\n", "Fixed.\nFixed.\n")

Opened = Callable[..., AbstractAsyncContextManager[Conversation]]


def examples() -> list[str]:
    text = (files("tui") / "manual" / "python.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_there_is_a_script_for_each() -> None:
    assert len(examples()) == len(SCRIPTS)


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_an_example_runs(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q", work], check=True)
    script = tmp_path / "script.toml"
    script.write_text(SCRIPTS[number])
    monkeypatch.chdir(work)
    at: Opened = Conversation.at
    monkeypatch.setattr(Conversation, "at", partial(at, practice_script=script))
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(examples()[number], f"example {number}", "exec"), space)
    assert capsys.readouterr().out == PRINTED[number]
