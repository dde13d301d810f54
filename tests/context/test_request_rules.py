"""Rules about a whole request body: `check_request`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.context.wild import Json, assistant, text, thinking, user
from tui.context.validate import check_request

MARK = {"cache_control": {"type": "ephemeral"}}
TOOL = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}}


def body(**more: Json) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 100, "messages": [user("go")], **more}


def test_a_plain_request_is_valid() -> None:
    whole = body(
        system=[text("be brief") | MARK],
        tools=[TOOL, TOOL | {"name": "run_command"} | MARK],
        tool_choice={"type": "auto"},
        thinking={"type": "adaptive"},
        output_config={"effort": "high"},
        stream=True,
        metadata={"user_id": "x"},
    )
    assert check_request(whole) == []


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        ({"model": ""}, "request", "model: Field required"),
        ({"max_tokens": 0}, "request", "max_tokens: Input should be greater"),
        ({"max_tokens": True}, "request", "max_tokens"),
        ({"max_tokens": "9"}, "request", "max_tokens"),
        ({"messages": []}, "B56", "at least one message is required"),
        ({"messages": None}, "B56", "messages: Input should be a valid list"),
        ({"n": 2}, "B27", "n: Extra inputs are not permitted"),
        ({"system": [text("")]}, "B10", "text content blocks must be non-empty"),
        ({"system": [{"type": "image"}]}, "B27", "system.0.type: Input should be 'text'"),
        ({"system": "a\ud800"}, "B38", "not valid JSON"),
        ({"system": 5}, "B27", "system: Input should be a valid list"),
        ({"tools": [TOOL, TOOL]}, "request", "Tool names must be unique"),
        ({"tools": [TOOL | {"name": "a b"}]}, "request", "String should match pattern"),
        ({"tools": [TOOL | {"input_schema": {}}]}, "request", "Input should be 'object'"),
        ({"tools": [{"name": "a"}]}, "request", "input_schema: Field required"),
        ({"tools": [TOOL | {"color": "red"}]}, "B27", "tools.0.custom.color: Extra inputs"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "x"}}, "request", "not found"),
        ({"tool_choice": {"type": ["any"]}}, "B27", "tool_choice"),
        ({"thinking": {"type": "on"}}, "B27", "thinking: Input tag"),
        ({"thinking": {"type": "enabled", "budget_tokens": 9}}, "request", "1024"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            "request",
            "`max_tokens` must be greater than `thinking.budget_tokens`",
        ),
        ({"output_config": {"effort": "huge"}}, "request", "output_config.effort"),
    ],
)
def test_what_the_api_rejects(more: Json, code: str, says: str) -> None:
    found = check_request(body(**more))
    assert any(v.code == code and says in v.text for v in found), found


def test_B26_cache_marks_count_over_system_tools_and_messages() -> None:
    parts: dict[str, Json] = {
        "system": [text("a") | MARK, text("b") | MARK],
        "tools": [TOOL | MARK],
    }
    assert check_request(body(**parts, messages=[user(text("go") | MARK)])) == []
    found = check_request(body(**parts, messages=[user(text("go") | MARK, text("on") | MARK)]))
    assert [v.text for v in found] == [
        "A maximum of 4 blocks with cache_control may be provided. Found 5."
    ]


def test_B15_prefill_is_a_property_of_the_model() -> None:
    whole = body(messages=[user("go"), assistant("so")])
    assert [v.code for v in check_request(whole)] == ["B15"]
    assert check_request(whole, prefill=True) == []


def test_B21_the_thinking_switch_is_that_of_the_body() -> None:
    said = [user("go"), assistant(thinking(), "so"), user("on")]
    assert check_request(body(messages=said)) == []
    found = check_request(body(messages=said, thinking={"type": "disabled"}))
    assert [v.code for v in found] == ["B21"]
