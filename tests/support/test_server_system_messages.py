"""System messages in mid-conversation: messages for one turn, and an effort from one on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.direct import Direct
from tests.support.server_script import Json
from tests.support.server_system_messages import CLEAR_AT, TURN_EFFORT
from tests.support.server_tools import INLINE_TOOLS
from tests.support.server_view import shown

SCOPED = {"clear_at": "next_user_message"}
LOW = {"output_config": {"effort": "low"}}
Act = Callable[[Direct], None]


def _state(*content: Json | str, **more: Any) -> Act:
    """Says this in a system message."""
    return lambda one: one.state(*content, **more)


def _unheaded_scope(one: Direct) -> None:
    one.betas = []
    one.state("now", **SCOPED)


def _unheaded_effort(one: Direct) -> None:
    one.betas = []
    one.state(**LOW)


def _older_model(one: Direct) -> None:
    one.body["model"] = "claude-opus-4-8"
    one.state(**LOW)


def _thinking_off(one: Direct) -> None:
    one.body["thinking"] = {"type": "between_tools"}
    one.state(**LOW)


def _between_call_and_result(one: Direct) -> None:
    call: Json = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result: Json = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    one.messages.append({"role": "assistant", "content": [call]})
    one.state("now")
    one.messages.append({"role": "user", "content": [result]})


def _first(one: Direct) -> None:
    one.state("now")
    one.messages.reverse()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (_unheaded_scope, "messages.1.clear_at: Extra inputs are not permitted"),
        (_unheaded_effort, "messages.1.output_config: Extra inputs are not permitted"),
        (_older_model, "requires a model that supports per-turn effort"),
        (_thinking_off, "effort cannot change when thinking is disabled"),
        (_between_call_and_result, "messages.2: a system message must follow a user message"),
        (_first, "messages.0: a system message must follow a user message"),
        (_state(), "at least one block is required"),
        (_state(" "), "must be non-empty"),
        (_state("now", name="x"), "messages.1.name: Extra inputs"),
        (_state({"type": "image"}), "support text blocks and tool changes"),
        (_state("now", clear_at="later"), "Input should be 'never'"),
        (
            _state(
                {"type": "text", "text": "now", "cache_control": {"type": "ephemeral"}}, **SCOPED
            ),
            "cache_control is not permitted on a turn-scoped system message",
        ),
        (_state("now", **SCOPED, **LOW), "output_config is not permitted"),
        (_state(output_config={"effort": "huge"}), "Input should be one of"),
        (
            _state(output_config={"effort": "low", "format": {}}),
            "output_config.format: Extra inputs",
        ),
    ],
)
def test_a_system_message_is_refused(act: Act, words: str) -> None:
    one = Direct.begun()
    one.betas = [CLEAR_AT, TURN_EFFORT, INLINE_TOOLS]
    act(one)
    assert words in one.refused().message


def test_an_effort_stands_anywhere() -> None:
    one = Direct.begun()
    one.betas = [TURN_EFFORT]
    one.messages.insert(0, {"role": "system", "content": [], **LOW})
    one.send()
    one.state(**LOW)
    one.say()
    one.send()
    assert [message["role"] for message in one.messages[3:5]] == ["system", "user"]


def test_a_system_message_may_follow_the_result_of_a_server_tool() -> None:
    one = Direct.begun()
    blocks: list[Json] = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]
    one.messages.append({"role": "assistant", "content": blocks})
    one.state("now")
    one.messages.append({"role": "assistant", "content": "answer"})
    assert "messages.2" not in getattr(one.post(), "message", "")


def test_a_message_for_one_turn_is_gone_with_the_next_user_message_and_has_to_stay() -> None:
    one = Direct.begun()
    one.betas = [CLEAR_AT]
    one.state("reminder " * 100, **SCOPED)
    assert one.count() == {"input_tokens": _counted(one)}
    before = _counted(one)
    one.send()
    one.say()
    assert _counted(one) < before
    assert shown(one.body)["messages"][1]["content"] == []
    one.send()
    one.say()
    del one.messages[1]
    assert "bound to a different conversation" in one.refused().message


@pytest.mark.parametrize("more", [{"clear_at": "never"}, LOW])
def test_what_stands_beside_the_words_is_part_of_the_prefix(more: Json) -> None:
    one = Direct.begun()
    one.betas = [CLEAR_AT, TURN_EFFORT]
    one.state("now", **more)
    one.send()
    one.say()
    for name in more:
        del one.messages[1][name]
    assert "bound to a different conversation" in one.refused().message


def test_an_effort_keeps_the_cache() -> None:
    one = Direct.begun(priced=True)
    one.betas = [TURN_EFFORT]
    one.say("long " * 1000, cache_control={"type": "ephemeral"})
    del one.messages[0]
    one.send()
    one.say()
    one.state(**LOW)
    assert one.send()["usage"]["cache_read_input_tokens"] > 1000


def _counted(one: Direct) -> int:
    counted = one.count()
    assert isinstance(counted, dict), counted
    return counted["input_tokens"]
