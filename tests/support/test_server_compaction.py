"""Compaction on demand: the request for it, its block, and the requests that begin with one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support import server_compaction
from tests.support.direct import LOOK, Direct
from tests.support.server_compaction import COMPACTION
from tests.support.server_errors import Rejection
from tests.support.server_script import Json
from tests.support.server_tools import INLINE_TOOLS

ASK: Json = {"compaction": {"type": "summarize"}}
CALL: Json = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
Act = Callable[[Direct], object]


def begun(**more: Any) -> Direct:
    """A conversation of one answered turn, with the header."""
    one = Direct.begun(**more)
    one.betas = [COMPACTION, INLINE_TOOLS]
    one.send()
    return one


def compacted(one: Direct, kept: int = 0) -> Json:
    """Put a block in the place of all but the last messages, and say something."""
    tail = one.messages[len(one.messages) - kept :]
    one.messages = one.messages[: len(one.messages) - kept]
    block: Json = one.send(**ASK)["content"][0]
    one.messages = [{"role": "assistant", "content": [block]}, *tail]
    one.say()
    return block


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"compaction": {"type": "other"}}, "compaction.type"),
        ({"compaction": {"type": "summarize", "keep": 1}}, "compaction.keep: Extra inputs"),
        (
            {"compaction": {"type": "summarize", "instructions": "x" * 16_385}},
            "at most 16384 characters",
        ),
        ({**ASK, "context_management": {}}, "combined with context_management"),
        ({**ASK, "stop_sequences": ["x"]}, "combined with stop_sequences"),
        ({**ASK, "output_config": {"format": {}}}, "combined with output_config.format"),
        (
            {**ASK, "model": "claude-haiku-5-5", "tool_choice": {"type": "any"}},
            "combined with a forced tool_choice",
        ),
        ({**ASK, "model": "claude-haiku-4-5"}, "does not support compaction"),
    ],
)
def test_a_request_for_a_summary_has_its_form(more: Json, words: str) -> None:
    assert words in begun().refused(**more).message


def test_a_request_for_a_summary_needs_the_header() -> None:
    one = begun()
    one.betas = []
    assert "compaction: Extra inputs are not permitted" in one.refused(**ASK).message


def _waiting(one: Direct) -> None:
    one.say()
    one.messages.append({"role": "assistant", "content": [CALL]})


def _only_a_block(one: Direct) -> None:
    compacted(one)
    del one.messages[1:]


def _two(one: Direct) -> None:
    block = compacted(one)
    one.messages[0]["content"].append(block)


def _misplaced(one: Direct) -> None:
    block = compacted(one)
    one.messages[:1] = [{"role": "user", "content": "before"}]
    one.messages.insert(1, {"role": "assistant", "content": [block]})


def _signature(one: Direct) -> None:
    block = compacted(one)
    block["signature"] = block["signature"][:-1]


def _text(one: Direct) -> None:
    compacted(one)["content"] = "Edited."


def _tools(one: Direct) -> None:
    compacted(one)["tool_changes"] = [
        {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}}
    ]


def _dumped(one: Direct) -> None:
    compacted(one)["citations"] = None


@pytest.mark.parametrize(
    ("act", "more", "code"),
    [
        (_waiting, ASK, "compaction_incomplete_turn"),
        (_only_a_block, ASK, "compaction_nothing_to_summarize"),
        (_two, {}, "compaction_block_ambiguous"),
        (_misplaced, {}, "compaction_block_misplaced"),
        (_signature, {}, "compaction_signature_invalid"),
        (_text, {}, "compaction_content_mismatch"),
        (_tools, {}, "compaction_tool_changes_mismatch"),
        (_dumped, {}, ""),
    ],
)
def test_each_mistake_has_its_code(act: Act, more: Json, code: str) -> None:
    one = begun()
    act(one)
    assert one.refused(**more).code == code


def test_a_summary_stands_for_so_many_changes_of_tools_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_compaction, "MOST_TOOLS", 0)
    one = begun()
    one.say()
    one.state({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}})
    one.send()
    assert one.refused(**ASK).code == "compaction_too_many_tool_references"


def test_a_block_needs_the_header_each_time() -> None:
    one = begun()
    compacted(one)
    one.send()
    one.say()
    one.betas = []
    assert "Input tag 'compaction' is not expected" in one.refused().message


def test_a_block_may_open_the_first_message_and_carry_a_mark() -> None:
    one = begun()
    block = compacted(one)
    block["cache_control"] = {"type": "ephemeral"}
    one.messages = [{"role": "user", "content": [block, {"type": "text", "text": "continue"}]}]
    one.send()
    one.say()
    one.send()


def test_there_may_be_no_summary_and_a_bill() -> None:
    one = begun(compactions=[{"stop_reason": "max_tokens"}, {"summary": "All of it."}])
    cut = one.post(**ASK)
    assert isinstance(cut, dict)
    assert (cut["content"], cut["stop_reason"]) == ([], "max_tokens")
    assert cut["usage"]["iterations"][0]["input_tokens"] > 0
    whole = one.post(**ASK)
    assert isinstance(whole, dict)
    assert whole["content"][0]["content"] == "All of it."
    assert whole["usage"]["input_tokens"] == 0


def test_a_later_summary_is_of_the_newest_block_alone() -> None:
    one = begun()
    first = compacted(one)
    one.send()
    second = compacted(one)
    assert second["signature"] != first["signature"]
    one.send()


def test_a_kept_tail_keeps_its_thinking() -> None:
    one = begun()
    one.say()
    one.send()
    compacted(one, kept=2)
    one.send()
    one.say()
    one.send()
    thoughts = [b for m in one.messages for b in m["content"] if b["type"] == "thinking"]
    assert len(thoughts) == 3


def _other_model(one: Direct) -> None:
    one.body["model"] = "claude-sonnet-5"


def _in_between(one: Direct) -> None:
    one.messages.insert(1, {"role": "user", "content": "between"})
    one.messages.insert(2, {"role": "assistant", "content": "between"})


def _other_tools(one: Direct) -> None:
    one.body["tools"] = [{**LOOK, "description": "Changed."}]


@pytest.mark.parametrize(
    ("before", "after"),
    [(_other_model, None), (None, _in_between), (None, _other_tools)],
)
def test_a_kept_tail_loses_its_thinking(before: Act | None, after: Act | None) -> None:
    one = begun()
    one.say()
    one.send()
    if before is not None:
        before(one)
    compacted(one, kept=2)
    one.body["model"] = "claude-sonnet-5-5"
    if after is not None:
        after(one)
    assert "bound to a different conversation" in one.refused().message


def test_a_kept_tail_begins_with_another_role() -> None:
    one = Direct.begun(
        turns=[{"thinking": "t0", "tools": [{"name": "look"}]}, {"thinking": "t1", "text": "a"}]
    )
    one.betas = [COMPACTION]
    one.send()
    result = {"type": "tool_result", "tool_use_id": "toolu_0000_0", "content": "ok"}
    one.messages.append({"role": "user", "content": [result, {"type": "text", "text": "typed"}]})
    whole = one.messages  # it is cut between two blocks of the user's
    one.messages = [*whole[:2], {"role": "user", "content": [result]}]
    made: Json = one.send(**ASK)["content"][0]
    one.messages = whole
    answer = one.send()
    rest = [{"role": "user", "content": [{"type": "text", "text": "typed"}]}]
    one.messages = [
        {"role": "assistant", "content": [made]},
        *rest,
        {"role": "assistant", "content": answer["content"]},
    ]
    one.say()
    assert "bound to a different conversation" in one.refused().message


def test_counting_applies_a_block_and_passes_over_a_request_for_one() -> None:
    one = begun()
    one.say()
    before = one.count(**ASK)
    assert before == one.count()
    assert isinstance(before, dict)
    one.messages.pop()
    one.say("long " * 1000)
    one.send()
    compacted(one)
    after = one.count()
    assert isinstance(after, dict)
    assert after["input_tokens"] < before["input_tokens"] + 1000
    one.messages[0]["content"][0]["content"] = "Edited."
    refused = one.count()
    assert isinstance(refused, Rejection)
    assert refused.code == "compaction_content_mismatch"
