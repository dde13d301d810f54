"""A task file of many groups, worked on in order or several at a time, before a priced server."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.program import Program
from tests.support.server_script import Json, Script
from tests.support.serving import serving

ANSWERS_AFTER_S: Final = 0.1
READS: Final = 3
_THOUGHT: Final = "I look at the file before I decide what to do about it, and why. " * 12


class Run(NamedTuple):
    """What it cost in US dollars, and how many first requests wrote most of what they began
    with."""

    dollars: float
    cold: int
    refused: int


@dataclass(slots=True)
class SameForAll(Script):
    """Reads a file three times, then answers: whoever asks, and in whatever order."""

    def next(self, body: Json | None = None) -> tuple[Json | None, Json | None, int]:
        self._turn += 1
        said = [m for m in (body or {}).get("messages", ()) if m["role"] == "assistant"]
        turn: Json = {"thinking": f"{self._turn} {_THOUGHT}", "delay_s": ANSWERS_AFTER_S}
        if len(said) < READS:
            turn["tools"] = [{"name": "read_file", "input": {"path": "notes.txt"}}]
        else:
            turn["text"] = "The notes say nothing about it. " * 20
        return turn, None, self._turn


def play(root: Path, groups: int, at_once: int) -> Run:
    """The default model with the default configuration."""
    work = root / f"work{at_once}"
    work.mkdir(parents=True)
    (work / "notes.txt").write_text("a line of notes\n" * 60)
    (work / "AGENTS.md").write_text("Be brief.\n")
    named = [f"## group {n}\n- [ ] What do the notes say about {n}?\n" for n in range(groups)]
    (work / "TASKS.md").write_text("\n".join(named))
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        name = ["-c", "user.name=Eve", "-c", "user.email=eve@example.org"]
        subprocess.run(["git", *name, *words], cwd=work, check=True)
    script = SameForAll(catalogue=True, priced=True)
    with serving(script) as server:
        place = {"HOLDFAST_HOME": str(root / "home"), "HOME": str(root)}
        key = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789", "ANTHROPIC_BASE_URL": server.url}
        several = ["--parallel", str(at_once)] if at_once > 1 else []
        Program(work, {**os.environ, **place, **key})("run", "TASKS.md", "--yolo", *several)
        first = [
            one.message["usage"]
            for one in server.api.priced
            if not any(m["role"] == "assistant" for m in one.body["messages"])
        ]
        return Run(
            server.cache.dollars,
            sum(u["cache_creation_input_tokens"] > u["cache_read_input_tokens"] for u in first),
            len(server.posts) - len(server.api.priced),
        )
