"""`holdfast --bare` as a process: nothing of a set-up counts, and the record says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Serve
from tests.support.program import Program

KEY = "sk-ant-api03-" + "x" * 40


@pytest.fixture
def broken(work: Path, home: Path, env: dict[str, str], serve: Serve) -> Callable[..., Any]:
    """A set-up in which everything is wrong that can be, and a server."""
    (work / "AGENTS.md").write_text("Always say BANANA.")
    (work / "sub").mkdir()
    (work / "sub" / "AGENTS.md").write_text("Say CHERRY here.")
    (work / ".holdfast").mkdir()
    (work / ".holdfast" / "config.toml").write_text("x = [")
    config = home / "config"
    (config / "commands").mkdir(parents=True)
    (config / "config.toml").write_text('[mcp.dead]\ncommand = ["nonesuch"]\nbroken')
    guard = {"type": "command", "command": "touch ran; exit 2"}
    hooks = {"hooks": {"PreToolUse": [{"hooks": [guard]}]}}
    (config / "hooks.json").write_text(json.dumps(hooks))
    (config / "commands" / "mine.md").write_text("Say DATE.")

    def start(*turns: dict[str, Any]) -> Any:
        server = serve(*turns)
        env.update(ANTHROPIC_BASE_URL=server.url, ANTHROPIC_API_KEY=KEY)
        return server

    return start


def test_a_broken_set_up_names_the_way_in_and_it_works(
    holdfast: Program, broken: Callable[..., Any], work: Path
) -> None:
    read = {"name": "read_file", "input": {"path": "sub/AGENTS.md"}}
    server = broken({"tools": [read]}, {"text": "done"})
    refused = holdfast("-p", "go", code=2)
    assert "To start without it meanwhile: holdfast --bare." in refused.stderr
    done = holdfast("--bare", "-p", "/mine", "--output-format", "json")
    assert json.loads(done.stdout)["result"] == "done"
    assert "Started with --bare" in done.stderr
    assert "unreadable lines: not applied, because it is not valid" in done.stderr
    first, second = (json.dumps(one.body) for one in server.posts)
    assert "BANANA" not in first
    assert "DATE" not in first
    assert "CHERRY" in second  # what it read, and not once more as an instruction
    assert "holds for" not in second
    assert not (work / "ran").exists()


def test_the_record_says_so_and_a_resumed_session_only_grows(
    holdfast: Program, broken: Callable[..., Any], work: Path, home: Path
) -> None:
    broken({"text": "one"}, {"text": "two"}, {"text": "three"})
    (work / ".holdfast" / "config.toml").unlink()
    (home / "config" / "config.toml").unlink()
    holdfast("-p", "go")
    holdfast("--bare", "-c", "-p", "again")
    holdfast("-c", "-p", "as usual")
    (file,) = home.glob("data/sessions/*/*.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    notes = [one["text"] for one in records if one["type"] == "note"]
    assert [text.partition(":")[0] for text in notes] == ["Started with --bare"]
    said = [one["text"] for one in records if one["type"] == "notice" and one["kind"] == "file"]
    assert said[0] == "AGENTS.md is gone. What it said no longer applies."
    assert said[1].startswith("AGENTS.md has changed. It now says:")
    assert not [one for one in records if one["type"] == "break"]
    verified = holdfast("sessions", "verify", file.stem.rpartition("-")[2])
    assert "3 requests: all rebuilt exactly as sent." in verified.stderr


def test_it_cannot_be_combined_with_trust(holdfast: Program) -> None:
    assert "--trust" in holdfast("--bare", "--trust", "-p", "x", code=2).stderr


def test_doctor_names_it(holdfast: Program, broken: Callable[..., Any]) -> None:
    broken()
    assert "holdfast --bare" in holdfast("doctor", code=1).stdout
