"""What the repair promises as a whole (R1, R3, R5), and the numbers that have no test elsewhere."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.context.wild import Json, assistant, call, messages, result, text, thinking, user
from tui.context.repair import CONTINUE, INTERRUPTED, repair
from tui.context.repair_levels import summary_only
from tui.context.repairs.pairs import ORPHANED
from tui.context.request_assembly import MARGIN_TOKENS, build
from tui.context.validate import check, check_request
from tui.core.messages import blocks_of, text_block
from tui.provider.base import ModelInfo
from tui.tokens.estimate import request_weight
from tui.tokens.tokenizer import count

MARK = {"cache_control": {"type": "ephemeral"}}
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


def damaged(data: st.DataObject) -> list[Any]:
    """A valid conversation after a few losses, copies and moves of messages and of blocks."""
    said: list[Any] = []
    for n in range(3):
        a, b = f"t{n}a", f"t{n}b"
        said += [
            user(f"prompt {n}"),
            assistant(thinking(), f"look {n}", call(a), call(b)),
            user(result(a, f"out {n}a"), result(b, f"out {n}b")),
            assistant(f"answer {n}"),
        ]
    for _ in range(data.draw(st.integers(1, 6))):
        message = said[data.draw(st.integers(0, len(said) - 1))]
        blocks = message["content"]
        other = said[data.draw(st.integers(0, len(said) - 1))]["content"]
        match data.draw(st.sampled_from(["drop", "copy", "move", "lose", "swap"])):
            case "lose" if len(said) > 1:
                said.remove(message)
            case "drop" if blocks:
                blocks.pop(data.draw(st.integers(0, len(blocks) - 1)))
            case "copy" if blocks:
                at = data.draw(st.integers(0, len(other)))
                other.insert(at, copy.deepcopy(blocks[data.draw(st.integers(0, len(blocks) - 1))]))
            case "move" if blocks:
                block = blocks.pop(data.draw(st.integers(0, len(blocks) - 1)))
                other.insert(data.draw(st.integers(0, len(other))), block)
            case _:
                blocks.reverse()
    return said


def texts(said: list[Any]) -> Iterator[str]:
    for message in said:
        for block in message["content"]:
            yield from _texts(block)


def _texts(block: Any) -> Iterator[str]:
    if block["type"] == "text":
        yield block["text"]
    content = block.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:  # pyright: ignore[reportUnknownVariableType] - JSON
            yield from _texts(part)


@settings(max_examples=150, deadline=None)
@given(input_=JSON)
def test_R1_the_input_of_a_call_is_always_an_object(input_: Json) -> None:
    for given_ in (input_, json.dumps(input_), json.dumps(json.dumps(input_))):
        said = [user("go"), assistant(call("a") | {"input": given_}), user(result("a"))]
        repaired, _ = repair(said)
        made = repaired[1]["content"][0]["input"]
        assert isinstance(made, dict)
        if isinstance(input_, dict):
            assert made == input_


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ('"{\\"path\\": \\"x\\"}"', {"path": "x"}),
        ('{"path": ', {"raw_input": '{"path": '}),
        ("", {}),
        (None, {}),
        ([], {}),
        ([1], {"raw_input": [1]}),
    ],
)
def test_R1_text_is_parsed_twice_and_kept_where_it_cannot_be(given_: Json, expected: Json) -> None:
    said = [user("go"), assistant(call("a") | {"input": given_}), user(result("a"))]
    assert repair(said)[0][1]["content"][0]["input"] == expected


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_R3_nothing_is_made_up_and_no_success_is_claimed(data: st.DataObject) -> None:
    said = damaged(data)
    known = {*texts(said), INTERRUPTED, CONTINUE, ORPHANED}
    given_ids = {
        b.get("tool_use_id") for m in said for b in m["content"] if b["type"] == "tool_result"
    }
    repaired, findings = repair(said)
    assert set(texts(repaired)) <= known
    for message in repaired:
        for block in message["content"]:
            if block["type"] == "tool_result":
                made_up = list(_texts(block)) == [INTERRUPTED]
                assert block.get("is_error", False) is made_up
                if block["tool_use_id"] not in given_ids:
                    assert made_up or "B03" in {f.code for f in findings}


@settings(max_examples=300, deadline=None)
@given(given_=messages)
@example(given_=[user(text("go"), {"type": "tool_result", "is_error": [], "content": [None]})])
def test_R5_results_stand_directly_behind_their_calls_first_once_and_in_order(
    given_: list[Any],
) -> None:
    """Said without the checker: each answer's calls are the front of the message after it."""
    repaired, _ = repair(given_)
    roles = [message["role"] for message in repaired]
    assert roles == [("user", "assistant")[n % 2] for n in range(len(roles))]
    seen: set[str] = set()
    owed: list[str] = []
    for message in repaired:
        blocks: list[Any] = blocks_of(message["content"])
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert results == owed
        assert all(b["type"] == "tool_result" for b in blocks[: len(owed)])
        owed = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert seen.isdisjoint(owed)
        seen.update(owed)
    assert not owed


@pytest.mark.parametrize("blank", [" ", "\n\t", "\u00a0"])
def test_B11_blank_text_goes(blank: str) -> None:
    said = [user("go"), assistant("so", blank), user("next", blank)]
    found = check(said)
    assert {v.code for v in found} == {"B11"}
    assert "text content blocks must contain non-whitespace text" in found[0].text
    assert repair(said)[0] == [user("go"), assistant("so"), user("next")]


def test_B12_an_empty_text_with_a_cache_mark_goes_and_the_request_sets_its_own() -> None:
    said = [user("go", text("") | MARK)]
    found = check(said)
    assert "cache_control cannot be set for empty text blocks" in found[-1].text
    repaired, findings = repair(said)
    assert [f.code for f in findings] == ["B12"]
    sent, _ = build(
        model=MODEL, system=[text_block("s")], messages=repaired, tools=[], prompt_tokens=10
    )
    assert sent.messages[-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert check_request({"model": "m", "max_tokens": 9, "messages": sent.messages}) == []


def test_B19_thinking_is_sent_verbatim_and_complete_or_not_at_all() -> None:
    whole = assistant(thinking("one"), thinking("two"), "so")
    kept = [user("go"), whole, user("next")]
    assert repair(kept)[0][1] is whole
    torn = assistant(thinking("one"), thinking("") | {"thinking": "x"}, call("a"), "so")
    repaired, findings = repair([user("go"), torn, user(result("a"))])
    assert repaired[1] == assistant(call("a"), "so")
    assert "B19" in {f.code for f in findings}


MODEL = ModelInfo("m", 10_000, 8192, "server")


def test_B36_a_conversation_of_any_length_can_be_brought_under_the_window() -> None:
    said: list[Any] = []
    for n in range(40):
        said += [user(f"p{n}"), assistant(call(f"t{n}")), user(result(f"t{n}", "word " * 4000))]
        said += [assistant("word " * 300)]
    said.append(user("last " * 9000))

    def fits(kept: Any) -> bool:
        return request_weight([], [], kept, count) <= 8000

    assert not fits(said[-1:]), "the last prompt alone is too long"
    least, _ = summary_only(said, budget_tokens=6000)
    assert fits(least)
    assert check(least) == []


@pytest.mark.parametrize("prompt", [100, 5000, 9000])
def test_B37_the_output_asked_for_fits_behind_the_prompt(prompt: int) -> None:
    sent, _ = build(model=MODEL, system=[], messages=[], tools=[], prompt_tokens=prompt)
    assert sent.max_tokens <= max(MODEL.window - prompt - MARGIN_TOKENS, MARGIN_TOKENS)
    assert sent.max_tokens >= 1
