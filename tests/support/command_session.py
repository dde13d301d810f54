"""A session of small commands, played by the program without a screen against a priced server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.ideal_client import ideal_dollars
from tests.support.program import Done, Program
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tests.support.serving import serving

COMMANDS: Final = 10
OUTPUT: Final = 3000
_THOUGHT: Final = "I run the next command and look at what it says before I decide. " * 18

"""So long that the ideal client pays 40 cents for four turns, as when the goal was set."""


class Session(NamedTuple):
    """How it went. `thoughts` are those in the last request; `dollars` is what the server charged,
    `ideal` what it could have been."""

    turns: list[Done]
    requests: int
    refused: int
    thoughts: int
    dollars: float
    ideal: float


def command_turns(turns: int) -> list[Json]:
    """So many turns of ten commands that each put out 3 KB, and an answer."""
    script: list[Json] = []
    for turn in range(turns):
        for number in range(COMMANDS):
            name = f"{turn}.{number}"
            line = f"{name}: the output of a small command"
            command = f"printf '%0{OUTPUT - len(line)}d{line}' 0"
            call = {"name": "run_command", "input": {"command": command}}
            script.append({"thinking": f"{name} {_THOUGHT}", "tools": [call]})
        script.append({"thinking": f"{turn} {_THOUGHT}", "text": "All ten commands were run."})
    return script


def play(root: Path, turns: int, *, enforced: bool = True) -> Session:
    """The default model with the default configuration; each turn in a process of its own."""
    work = root / "work"
    work.mkdir(parents=True)
    binding = True if enforced else "record"
    script: Json = {"turns": command_turns(turns), "catalogue": True, "priced": True}
    with serving({**script, "binding": binding}) as server:
        program = Program(work, {**os.environ, **_place(root, server)})
        done = [
            program("-p", "Run the ten commands.", "--yolo", *(["-c"] if turn else []))
            for turn in range(turns)
        ]
        answered = server.api.priced
        last = [block["type"] for m in answered[-1].body["messages"] for block in m["content"]]
        return Session(
            turns=done,
            requests=len(server.posts),
            refused=len(server.posts) - len(answered),
            thoughts=last.count("thinking"),
            dollars=server.cache.dollars,
            ideal=ideal_dollars(answered),
        )


def _place(root: Path, server: LoopbackServer) -> dict[str, str]:
    return {
        "HOLDFAST_HOME": str(root / "home"),
        "HOME": str(root),
        "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
        "ANTHROPIC_BASE_URL": server.url,
    }
