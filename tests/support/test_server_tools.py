"""Tools that join and leave in mid-conversation: what the server takes, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import server_tools
from tests.support.direct import LOOK, Direct
from tests.support.server_compaction import COMPACTION
from tests.support.server_script import Json
from tests.support.server_system_messages import CLEAR_AT
from tests.support.server_tools import INLINE_TOOLS, TOOL_REFERENCES, Toolbox


def reference(name: str, kind: str = "tool_addition") -> Json:
    return {"type": kind, "tool": {"type": "tool_reference", "name": name}}


def definition(name: str, **more: Any) -> Json:
    schema: Json = {"type": "object", "properties": {}}
    tool: Json = {"name": name, "description": "Joins.", "input_schema": schema, **more}
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool}}


def removal(name: str) -> Json:
    return reference(name, "tool_removal")


def begun(**script: Any) -> Direct:
    made = Direct.begun(**script)
    made.betas = [INLINE_TOOLS]
    made.body["tools"] = [LOOK, {**LOOK, "name": "late", "defer_loading": True}]
    return made


def test_without_a_header_no_tool_changes() -> None:
    one = begun()
    one.betas = []
    one.state(reference("late"))
    assert "'tool_addition' is not expected" in one.refused().message


def test_the_older_header_is_for_references_alone() -> None:
    one = begun()
    one.betas = [TOOL_REFERENCES]
    one.state(reference("late"))
    one.send()
    one.say()
    one.state(definition("new"))
    assert "'tool_definition' is not expected" in one.refused().message


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (reference("nothing"), "tool_reference_unresolved"),
        (removal("nothing"), "tool_reference_unresolved"),
        (reference("look"), "tool_name_conflict"),
        (definition("look"), "tool_name_conflict"),
        (
            {
                "type": "tool_addition",
                "tool": {"type": "mcp_toolset_reference", "server_name": "none"},
            },
            "tool_reference_unresolved",
        ),
        (definition("no name!"), ""),
        ({"type": "tool_removal", "tool": definition("x")["tool"]}, ""),
        ({**definition("new"), "text": "beside"}, ""),
        ({"type": "tool_addition", "tool": {"type": "another"}}, ""),
        (
            {
                "type": "tool_addition",
                "tool": {"type": "tool_definition", "definition": {"name": "x"}},
            },
            "",
        ),
        (
            {
                **definition("new", cache_control={"type": "ephemeral"}),
                "cache_control": {"type": "ephemeral"},
            },
            "",
        ),
    ],
)
def test_what_a_change_cannot_say(change: Json, code: str) -> None:
    one = begun()
    one.state(change)
    refusal = one.refused()
    assert refusal.code == code
    assert refusal.message.startswith("messages.1.content.0")


def test_a_tool_leaves_once_and_may_return() -> None:
    one = begun()
    for change in (removal("look"), reference("look"), reference("late"), definition("new")):
        one.state("The tools change.", change)
        one.send()
        one.say()
    one.state(definition("new", description="Another."))  # the same name again: a new schema
    one.send()
    assert Toolbox.at_end(one.body).available == {"look", "late", "new"}
    one.say()
    one.state(removal("look"))
    one.send()
    one.say()
    one.state(removal("look"))
    assert one.refused().code == "tool_reference_unresolved"


def test_a_name_changes_once_at_one_place() -> None:
    one = begun()
    one.state(definition("new"))
    one.state(removal("new"))
    assert one.refused().code == "tool_name_conflict"


def test_a_message_for_one_turn_brings_no_tool() -> None:
    one = begun()
    one.betas = [INLINE_TOOLS, CLEAR_AT]
    one.state(definition("new"), clear_at="next_user_message")
    assert "supports text blocks only" in one.refused().message


def test_no_tool_changes_after_a_paused_turn() -> None:
    one = begun()
    paused: list[Json] = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]
    one.messages.append({"role": "assistant", "content": paused})
    one.state(definition("new"))
    found = [
        r.message for r in server_tools.tool_change_violations(one.body, frozenset({INLINE_TOOLS}))
    ]
    assert found == ["messages.2.content.0: tools cannot change right after a paused turn"]


def test_there_are_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_tools, "MOST_TOOLS", 1)
    one = begun()
    one.state(definition("new"))
    one.send()
    one.say()
    one.state(definition("more"))
    assert one.refused().code == "available_tools_limit_exceeded"
    other = begun()
    other.body["tools"] += [{**LOOK, "name": "later", "defer_loading": True}]
    assert other.refused().code == "available_tools_limit_exceeded"


@pytest.mark.parametrize("form", ["by value", "rendered"])
def test_definitions_have_a_size(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = begun()
    if form == "by value":
        one.state(definition("new"))
        size = len(json.dumps(definition("new")["tool"]["definition"]))
        one.body["tools"] = []
    else:
        size = len(json.dumps(LOOK))
    monkeypatch.setattr(server_tools, "MOST_BYTES", size)
    one.send()
    one.messages.pop()
    monkeypatch.setattr(server_tools, "MOST_BYTES", size - 1)
    assert one.refused().code == "available_tools_limit_exceeded"


def test_an_answer_calls_what_is_there() -> None:
    call: Json = {"tools": [{"name": "new", "input": {}}]}
    one = begun(turns=[{"text": "a"}, call, call])
    one.send()
    one.say()
    assert "calls 'new', which is no tool" in one.refused().message
    one.state(definition("new"))
    two = begun(turns=[call, call])
    two.state(definition("new"))
    two.send()
    result = {"type": "tool_result", "tool_use_id": "toolu_0000_0", "content": "ok"}
    two.messages.append({"role": "user", "content": [result]})
    two.state(removal("new"))
    assert "calls 'new', which is no tool" in two.refused().message


def test_changes_of_tools_are_part_of_the_prefix() -> None:
    one = begun()
    one.state(definition("new"))
    one.send()
    one.say()
    one.send()
    one.say()
    one.messages[1]["content"][0]["tool"]["definition"]["description"] = "Changed."
    assert "bound to a different conversation" in one.refused().message


def test_a_deferred_tool_is_no_part_of_the_prefix_until_something_refers_to_it() -> None:
    one = begun()
    one.send()
    one.say()
    late = {**LOOK, "name": "later", "description": "Later.", "defer_loading": True}
    one.body["tools"] = [*one.body["tools"], late]
    one.state(reference("later"))
    one.send()
    one.say()
    one.body["tools"] = [*one.body["tools"][:-1], late | {"description": "Changed."}]
    assert "bound to a different conversation" in one.refused().message


def test_a_compaction_block_keeps_the_changes() -> None:
    one = begun()
    one.betas = [INLINE_TOOLS, COMPACTION]
    one.state(definition("new"), removal("look"))
    one.send()
    answer = one.send(compaction={"type": "summarize"})
    block = answer["content"][0]
    assert [change["type"] for change in block["tool_changes"]] == [
        "tool_addition",
        "tool_removal",
    ]
    one.messages = one.messages[-1:]
    one.say()
    one.send()
    assert Toolbox.at_end(one.body).available == {"new"}
    one.say()
    one.state(definition("new"), reference("look"))
    one.send()
    one.say()
    block["tool_changes"].pop()
    assert one.refused().code == "compaction_tool_changes_mismatch"


def test_a_first_tool_by_value_costs_the_cache_if_there_was_none() -> None:
    for tools, read in (([LOOK], True), ([], False)):
        one = begun(priced=True)
        one.body["tools"] = tools
        one.body["system"][0]["text"] = "long " * 1000
        one.body["system"][0]["cache_control"] = {"type": "ephemeral"}
        one.send()
        one.say()
        one.state(definition("new"))
        usage = one.send()["usage"]
        assert bool(usage["cache_read_input_tokens"]) == read
