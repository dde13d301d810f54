"""Codex rollouts, told as ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.context.pictures import image, png
from tests.session.importers.telling import codes, kinds, request, said, title
from tests.support.foreign import CODEX_ID, CWD, Codex, codex
from tui.session import importers
from tui.session.reader import LoadedSession


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rollout-2026-02-10T22-00-00-codex-1.jsonl"


def load(path: Path, made: Codex) -> LoadedSession:
    path.write_bytes(made.bytes())
    assert importers.recognise(path) == "codex"
    return importers.load(path)


def test_a_sound_session_is_told_whole_and_needs_no_repair(path: Path) -> None:
    loaded = load(path, codex(2))
    assert codes(loaded) == []
    messages, findings = request(loaded)
    assert findings == []
    assert said(messages[1:4]) == [
        "assistant: look 0, call_0a, call_0b",
        "user: call_0a=out 0a, call_0b=out 0b",
        "assistant: answer 0",
    ]
    assert loaded.header.origin == f"codex:{CODEX_ID}"
    assert (loaded.header.cwd, loaded.header.app) == (CWD, "codex 0.77.0")


def test_arguments_are_json_in_a_string_and_that_is_no_damage(path: Path) -> None:
    messages, _ = request(load(path, codex(1)))
    assert [b["input"] for b in messages[1]["content"][1:]] == [
        {"command": ["ls"]},
        {"command": ["pwd"]},
    ]


def test_B07_arguments_that_are_no_json_are_kept_as_they_are(path: Path) -> None:
    made = Codex()
    made.said("user", "go")
    made.call("a", '{"comm')
    made.output("a", "no")
    messages, findings = request(load(path, made))
    assert findings == ["B07"]
    assert messages[1]["content"][0]["input"] == {"raw_input": '{"comm'}


def test_reasoning_and_instructions_stay_behind(path: Path) -> None:
    loaded = load(path, codex(1))
    told = str([record.data for record in loaded.records])
    assert "gAAA" not in told
    assert "another agent" not in told


def test_what_the_program_said_for_the_user_is_not_shown_as_typed(path: Path) -> None:
    loaded = load(path, codex(1))
    typed = [r.data.get("text") for r in loaded.records if r.type == "user"]
    assert typed == [None, "prompt 0"]
    assert title(loaded) == "prompt 0"


@pytest.mark.parametrize(
    ("output", "failed", "words"),
    [
        ("plain", False, "plain"),
        ({"content": "no such file", "success": False}, True, "no such file"),
        ([{"type": "input_text", "text": "listed"}], False, "listed"),
    ],
)
def test_outputs_of_every_shape(path: Path, output: Any, failed: bool, words: str) -> None:
    made = Codex()
    made.said("user", "go")
    made.call("a")
    made.output("a", output)
    messages, findings = request(load(path, made))
    assert findings == []
    block = messages[2]["content"][0]
    assert block.get("is_error", False) is failed
    assert said(messages)[2] == f"user: a={words}"


def test_images_become_the_apis(path: Path) -> None:
    source = image(png(9, 9))["source"]
    made = Codex()
    url = f"data:image/png;base64,{source['data']}"
    shown = [{"type": "input_image", "image_url": url}]
    made.add("response_item", type="message", role="user", content=shown)
    messages, findings = request(load(path, made))
    assert messages[0]["content"] == [{"type": "image", "source": source}]
    assert findings == []


def test_other_kinds_of_calls(path: Path) -> None:
    made = Codex()
    made.said("user", "go")
    patch = {"call_id": "a", "name": "apply_patch", "input": "*** Begin Patch"}
    made.add("response_item", type="custom_tool_call", **patch)
    made.add("response_item", type="custom_tool_call_output", call_id="a", output="ok")
    action = {"type": "exec", "command": ["ls"]}
    made.add("response_item", type="local_shell_call", call_id="b", action=action)
    made.output("b", "out")
    messages, findings = request(load(path, made))
    assert findings == []
    assert messages[1]["content"][0]["input"] == {"input": "*** Begin Patch"}
    assert messages[3]["content"][0]["input"] == action


def test_compactions_and_interrupts_are_events(path: Path) -> None:
    made = codex(1)
    made.add("compacted", message="We did things.")
    made.said("user", "on")
    made.add("event_msg", type="turn_aborted", reason="interrupted")
    loaded = load(path, made)
    assert kinds(loaded)[-4:] == ["compaction", "user", "interrupt", "title"]
    assert "We did things" not in str(request(loaded)[0])


@pytest.mark.parametrize("payload", [{}, {"type": "message", "role": "user"}])
def test_B56_what_is_no_message_costs_itself(path: Path, payload: Any) -> None:
    made = codex(1)
    whole = request(load(path, made))[0]
    made.add("response_item", **payload)
    loaded = load(path, made)
    assert codes(loaded) == ["B56"]
    assert request(loaded)[0] == whole


def test_B01_an_unanswered_call_is_answered(path: Path) -> None:
    made = codex(1)
    made.call("lost")
    made.said("user", "on")
    loaded = load(path, made)
    assert codes(loaded) == []
    assert "B01" in request(loaded)[1]
