"""A session of 200 turns on the full screen: compacted, killed, resumed, and still right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.preloaded import SCREEN
from tests.support.server_script import Json, Script
from tests.support.serving import serving
from tests.support.terminal import HOLDFAST, Terminal
from tui.context.overrides import content_of
from tui.context.validate import check
from tui.context.view import build
from tui.core.clock import SystemClock
from tui.session.reader import read
from tui.session.session import Session

READY = "Ask for anything"
TURNS = 200
KILLED_AT = (30, 130)
RULE = "RULE 1: never touch the folder vendor/."
DECISION = "DECISION: we keep SQLite and no server."
SETTINGS = """
context_window = 24000
[retry]
initial_delay_ms = 1
"""


@dataclass
class Working(Script):
    """A model that reads a file in every turn, and sums up by what it was told was decided.

    It knows nothing but the request: what it says of a decision has come down to it.
    """

    accepted: list[Json] = field(default_factory=list[Json])
    summaries: int = 0

    def next(self, body: Json | None = None) -> tuple[Json | None, Json | None, int]:
        assert body is not None
        self.accepted.append(body)
        turn = self._turn_for(body)
        size = len(json.dumps({k: body.get(k) for k in ("system", "messages", "tools")})) // 4
        return turn | {"usage": {"input_tokens": size, "output_tokens": 100}, "burst": True}, {}, 0

    def _turn_for(self, body: Json) -> Json:
        said = texts(body["messages"])
        last = body["messages"][-1]["content"]
        asked = str(last[-1].get("text", ""))
        if not body.get("tools") or asked.startswith("Summarize the work"):
            self.summaries += 1
            known = sorted(set(re.findall(r"DECISION: [^.]*\.", said)))
            told = "\n".join(f"- {one}" for one in [*known, "The steps went well."])
            return {"text": f"{told}\n\nMEMORY\n{told}" if "MEMORY" in asked else told}
        number = re.findall(r"step (\d+)", said)[-1]
        if any(block["type"] == "tool_result" for block in last):
            return {"text": f"answer {number}. " + "It went as it should have gone. " * 12}
        path = "RULES.md" if number == "0" else "data.txt"
        return {"tools": [{"name": "read_file", "input": {"path": path}, "id": f"t{number}"}]}


def texts(messages: Iterable[Mapping[str, Any]]) -> str:
    """Everything that is said in messages, results included."""
    found: list[str] = []
    for message in messages:
        for block in message["content"]:
            inside = block.get("content", []) if block["type"] == "tool_result" else [block]
            found += [str(part.get("text", "")) for part in inside]
    return "\n".join(found)


def session_file(home: Path) -> Path:
    (path,) = (home / "data" / "sessions").rglob("*.jsonl")
    return path


async def pin_first(path: Path, kind: str) -> None:
    """Pin the first record of a type."""
    session = Session.open(path, clock=SystemClock())
    found = next(record for record in session.records if record.type == kind)
    session.append("pin", target=found.id, pinned=True)
    await session.close()


def play(screen: Terminal, turns: range) -> None:
    """Ask for each turn once the one before is answered."""
    for turn in turns:
        screen.forget()
        decided = f" {DECISION}" if turn == 3 else ""
        screen.type(f"step {turn}{decided}\r")
        screen.wait_for(f"answer {turn}.")


@pytest.mark.slow
async def test_200_turns_on_the_strict_server_in_three_processes(
    work: Path, env: dict[str, str], home: Path, config: Callable[[str], Path]
) -> None:
    (work / "RULES.md").write_text(RULE + "\n" + "Keep the tests green. " * 60)
    (work / "data.txt").write_text("some line of data in it\n" * 120)
    config(SETTINGS)
    server_script = Working()
    with serving(server_script) as server:
        env = {**env, "ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": server.url}

        def opened(*argv: str) -> Terminal:
            return Terminal([*HOLDFAST, *argv], cwd=work, env=env, preload=SCREEN)

        def recorded(words: str) -> bool:
            """True once an answer is no longer provisional."""
            return words in session_file(home).read_text()

        first, second = KILLED_AT
        with opened() as screen:
            screen.wait_for(READY)
            play(screen, range(first))
            screen.wait_until(lambda: recorded(f"answer {first - 1}."))
            screen.kill()
        await pin_first(session_file(home), "tool_result")
        with opened("-c") as screen:
            screen.wait_for(f"answer {first - 1}.")
            play(screen, range(first, second))
            screen.wait_until(lambda: recorded(f"answer {second - 1}."))
            screen.kill()
        with opened("-c") as screen:
            screen.wait_for(f"answer {second - 1}.")
            play(screen, range(second, TURNS))
            screen.type("\x04\x04")
            assert screen.exit_code() == 0
        posts = [post.body for post in server.posts]

    accepted = server_script.accepted
    assert len(posts) == len(accepted), "a request was rejected"
    loaded = read(session_file(home))
    kinds = [record.type for record in loaded.records]
    assert kinds.count("compaction") >= 4
    assert kinds.count("user") == TURNS
    last = [body for body in accepted if body.get("tools")][-1]
    assert RULE in texts(last["messages"]), "what was pinned stands word for word"
    assert DECISION in texts(last["messages"]), "a decision of turn 3 has come down"
    assert all(check(body["messages"]) == [] for body in accepted[-20:])
    memory = (work / ".holdfast" / "MEMORY.md").read_text()
    assert memory.count(DECISION) == 1
    assert not [r for r in loaded.records if r.type == "error"]


def written(*turns: Json) -> str:
    """Turns as a practice script."""
    return "\n".join(
        "[[turn]]\n" + "\n".join(f"{key} = {_toml(value)}" for key, value in turn.items())
        for turn in turns
    )


def _toml(value: object) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[{name = 'recall', input = {query = 'SQLite'}}]"


@pytest.mark.slow
async def test_200_turns_of_a_practice_script_in_three_processes(
    work: Path, env: dict[str, str], home: Path, tmp_path: Path, config: Callable[[str], Path]
) -> None:
    config("[compaction]\nmemory_flush = false\n")
    filler = "It went as it should have gone, step by step. " * 36
    answers = [{"text": f"answer {number}. {filler}"} for number in range(TURNS + 20)]
    script = tmp_path / "script.toml"
    script.write_text(written(*answers))
    marks = (0, *KILLED_AT, TURNS)
    for run, (begin, end) in enumerate(pairwise(marks)):
        argv = ["--practice-script", str(script), *(["-c"] if run else [])]
        with Terminal([*HOLDFAST, *argv], cwd=work, env=env, preload=SCREEN) as screen:
            screen.wait_for(READY, *([f" {begin} prompts"] if run else []))
            for turn in range(begin, end):
                screen.forget()
                more = {0: f" {RULE}", 3: f" {DECISION}"}.get(turn, "")
                screen.type(f"step {turn}{more}\r")
                screen.wait_for(f" {turn + 1} prompt")
            screen.kill()
        if not run:
            await pin_first(session_file(home), "user")
    script.write_text(written({"tools": [1]}, {"text": "We keep SQLite, it says."}))
    with Terminal(
        [*HOLDFAST, "--practice-script", str(script), "-c"], cwd=work, env=env, preload=SCREEN
    ) as screen:
        screen.wait_for(READY, f" {TURNS} prompts")
        screen.type("what was decided on the database?\r")
        screen.wait_for("it says.", f" {TURNS + 1} prompts")
        screen.type("\x04\x04")
        assert screen.exit_code() == 0

    loaded = read(session_file(home))
    kinds = [record.type for record in loaded.records]
    assert kinds.count("compaction") >= 4
    assert kinds.count("user") == TURNS + 1
    assert "error" not in kinds
    seen = build(loaded.branch, model="practice", prompt_follows=True)
    assert check(seen.messages, tail="open") == []
    assert RULE in texts(seen.messages), "what was pinned stands word for word"
    assert f"step 3 {DECISION}" not in texts(seen.messages[:2]), "it was summed up"
    result = [record for record in loaded.records if record.type == "tool_result"][-1]
    assert DECISION in texts([{"role": "user", "content": content_of(result)}])
