"""Holds a recorded conversation with Holdfast: the same driver, and the same model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any, Final

from tests.cli.claude_stream.cases import FLAGS, Case
from tests.cli.claude_stream.driver import Driver
from tests.cli.claude_stream.model_server import ModelServer
from tests.support import preloaded
from tests.support.clock import PATIENCE_S

Line = dict[str, Any]

SETTINGS: Final = """
[retry]
max_attempts = 1
initial_delay_ms = 1
[compaction]
keep_messages = 1
keep_tokens = 1
memory_flush = false
[sandbox]
engine = "off"
[checkpoints]
mode = "off"
"""


def _bash(given: Line) -> Line:
    return {key: value for key, value in given.items() if key != "description"}


def _path(given: Line) -> Line:
    return {("path" if key == "file_path" else key): value for key, value in given.items()}


def _edit(given: Line) -> Line:
    edit = {key: given[key] for key in ("old_string", "new_string")}
    return {"path": given["file_path"], "edits": [edit]}


def _task(given: Line) -> Line:
    return {"description": given["description"], "prompt": given["prompt"], "agent": "explore"}


def _ask(given: Line) -> Line:
    names = {"options": "choices", "multiSelect": "several"}
    return {
        "questions": [
            {names.get(key, key): value for key, value in question.items()}
            for question in given["questions"]
        ]
    }


OURS: Final[Mapping[str, tuple[str, Callable[[Line], Line]]]] = {
    "Bash": ("run_command", _bash),
    "Read": ("read_file", _path),
    "Write": ("write_file", _path),
    "Edit": ("edit_file", _edit),
    "Task": ("task", _task),
    "AskUserQuestion": ("ask_user", _ask),
    "StructuredOutput": ("submit_result", dict),
}
"""What a model of ours calls where one of Claude Code's calls a tool of its own."""


@dataclass(frozen=True)
class Played:
    """What the program wrote, its exit code, and what was on its standard error."""

    lines: list[Line]
    code: int
    stderr: str
    requests: list[Line]
    folder: Path

    def of(self, kind: str, subtype: str | None = None) -> list[Line]:
        """The lines of a kind."""
        return [
            line
            for line in self.lines
            if line["type"] == kind and subtype in {None, line.get("subtype")}
        ]

    @property
    def result(self) -> Line:
        return self.of("result")[-1]


def play(
    case: Case, folder: Path, *, settings: str = SETTINGS, words: tuple[str, ...] = ()
) -> Played:
    """Hold the conversation of a case, in folders of its own. `words` are another command line."""
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True, exist_ok=True)
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "config.toml").write_text(settings)
    for name, text in case.files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    turns = json.loads(
        json.dumps([_own_turn(one) for one in case.turns]).replace("{cwd}", str(work))
    )
    server = ModelServer(turns)
    env = {name: value for name, value in os.environ.items() if name.startswith(preloaded.AT_START)}
    env |= {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "HOLDFAST_HOME": str(home),
        "ANTHROPIC_BASE_URL": server.address,
        "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        **case.env,
    }
    command = words or (*FLAGS[:3], "--system-prompt", "", *case.flags, *FLAGS[3:])
    errors = folder / "stderr"
    with errors.open("wb") as file:
        process = preloaded.start(
            [sys.executable, "-m", "tui", *command],
            cwd=work,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, lines = process.stdin, list[Line]()

    def send(line: Line | None) -> None:
        if line is None:
            stdin.close()
            return
        stdin.write(json.dumps(line).encode() + b"\n")
        stdin.flush()

    timer = Timer(PATIENCE_S, process.kill)
    timer.start()
    try:
        driver = Driver(case, str(work), send)
        driver.begin()
        for text in process.stdout:
            lines.append(json.loads(text))
            driver.see(lines[-1])
        code = process.wait(PATIENCE_S)
    finally:
        timer.cancel()
        process.kill()
        server.close()
    said = errors.read_text()
    assert "Traceback" not in said, said
    return Played(lines, code, said, server.requests, work)


def _own_turn(turn: Line) -> Line:
    calls = list[Line]()
    for call in turn.get("tools", ()):
        name, convert = OURS.get(call["name"], (call["name"], dict))
        calls.append(call | {"name": name, "input": convert(call["input"])})
    return turn | ({"tools": calls} if calls else {})
