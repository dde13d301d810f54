"""Codex rollouts, told as ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.context.pictures import image, png
from tests.session.importers.telling import codes, kinds, left_out, prompts, request, said, title
from tests.support.foreign import CODEX_ID, CWD, Codex, codex
from tui.core.messages import Usage
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
    "words",
    [
        "<user_instructions>\n\nBe brief.\n\n</user_instructions>",
        "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
        "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
        "<user_shell_command>\n<command>ls</command>\n</user_shell_command>",
        '<hook_prompt hook_run_id="stop:0">Go on.</hook_prompt>',
        "<skill>\n<name>review</name>\nRead it all.\n</skill>",
        "<SUBAGENT_NOTIFICATION>{}</subagent_notification>",
    ],
)
def test_what_nobody_typed_is_no_prompt_but_in_the_request(path: Path, words: str) -> None:
    made = codex(1)
    made.said("user", words)
    made.said("assistant", "so")
    made.said("user", "<div> is never closed")
    loaded = load(path, made)
    assert prompts(loaded) == ["prompt 0", "<div> is never closed"]
    assert f"user: {words}" in said(request(loaded)[0])


def test_what_comes_along_with_a_prompt_is_no_part_of_it(path: Path) -> None:
    made = Codex()
    parts = ["<recommended_plugins>\na\n</recommended_plugins>",
             "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"]  # fmt: skip
    for blocks in (parts, [*parts, "go"]):
        content = [{"type": "input_text", "text": one} for one in blocks]
        made.add("response_item", type="message", role="user", content=content)
    editor = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py: a.py\n\n"
    made.said("user", f"{editor}## My request for Codex:\nrename it\n")
    loaded = load(path, made)
    assert prompts(loaded) == ["go", "rename it\n"]
    assert "Open tabs" in said(request(loaded)[0])[0]


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


def counted(made: Codex, total: int, read: int, cached: int, output: int) -> None:
    last = {
        "input_tokens": read, "cached_input_tokens": cached, "output_tokens": output,
        "reasoning_output_tokens": output // 2, "total_tokens": read + output,
    }  # fmt: skip
    info = {"last_token_usage": last, "total_token_usage": {"total_tokens": total}}
    made.add("event_msg", type="token_count", info=info, rate_limits={})


def test_an_answer_has_the_count_that_comes_after_it_and_once_only(path: Path) -> None:
    made = Codex()
    made.said("user", "go")
    made.add("event_msg", type="token_count", info=None, rate_limits={})
    made.call("a")
    counted(made, 1_010, 1_000, 600, 10)
    counted(made, 1_010, 1_000, 600, 10)  # news of the rate limits
    made.output("a", "out")
    counted(made, 1_010, 1_000, 600, 10)
    made.said("assistant", "done")
    counted(made, 2_050, 1_030, 1_000, 10)
    loaded = load(path, made)
    first, second = [one.data["usage"] for one in loaded.records if one.type == "assistant"]
    assert first["input_tokens"] == 400
    assert first["cache_read_input_tokens"] == 600
    assert (first["output_tokens"], first["thinking_tokens"]) == (10, 5)
    assert (second["input_tokens"], second["cache_read_input_tokens"]) == (30, 1_000)
    assert not [line for line in left_out(loaded) if "token_count" in line]


def test_a_count_after_the_outputs_is_of_the_answer_before_them(path: Path) -> None:
    made = Codex()
    made.said("user", "go")
    made.call("a")
    made.output("a", "out")
    counted(made, 1_010, 1_000, 600, 10)
    made.said("assistant", "done")
    loaded = load(path, made)
    first, second = [one.data["usage"] for one in loaded.records if one.type == "assistant"]
    assert first["cache_read_input_tokens"] == 600
    assert second == {}


def test_two_responses_in_an_answer_are_both_paid_and_the_last_is_its_context(path: Path) -> None:
    made = Codex()
    made.said("user", "go")
    made.said("assistant", "First I look.")
    counted(made, 1_010, 1_000, 600, 10)
    made.call("a")
    counted(made, 2_040, 1_020, 1_000, 10)
    made.output("a", "out")
    (answer,) = [one for one in load(path, made).records if one.type == "assistant"]
    usage = Usage.from_json(answer.data["usage"])
    assert (usage.prompt_tokens, usage.output_tokens) == (2_020, 20)
    assert usage.context == 1_030


@pytest.mark.parametrize("odd", [[], "x", {"input_tokens": -1}, {"input_tokens": 1 << 60}])
def test_a_count_that_is_none_is_none(path: Path, odd: object) -> None:
    made = Codex()
    made.said("user", "go")
    made.said("assistant", "done")
    made.add("event_msg", type="token_count", info={"last_token_usage": odd})
    loaded = load(path, made)
    assert codes(loaded) == []
    assert [one.data["usage"] for one in loaded.records if one.type == "assistant"] == [{}]
