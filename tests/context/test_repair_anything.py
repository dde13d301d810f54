"""R4, R6, R7: whatever is given, the repaired list is valid, and stays as it is."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.wild import assistant, call, messages, result, user
from tui.context.repair import INTERRUPTED, repair, text_only
from tui.context.validate import Tail, check

TAILS = st.sampled_from(["user", "prefill", "open"])
SWITCHES = st.sampled_from([None, {"type": "disabled"}, {"type": "adaptive"}])


@settings(max_examples=400, deadline=None)
@given(given_=messages, tail=TAILS, thinking=SWITCHES)
def test_R4_any_list_becomes_one_that_the_api_takes(
    given_: list[Any], tail: Tail, thinking: dict[str, Any] | None
) -> None:
    before = copy.deepcopy(given_)
    repaired, findings = repair(given_, thinking=thinking, tail=tail)
    assert check(repaired, thinking=thinking, tail=tail) == []
    assert json.dumps(given_) == json.dumps(before)
    assert not [f for f in findings if f.code == "R4"], "the last resort was not needed"
    assert bool(findings) == (repaired is not given_)


@settings(max_examples=150, deadline=None)
@given(given_=messages, tail=TAILS, thinking=SWITCHES)
def test_R7_repair_is_idempotent_and_deterministic(
    given_: list[Any], tail: Tail, thinking: dict[str, Any] | None
) -> None:
    once, findings = repair(given_, thinking=thinking, tail=tail)
    assert repair(once, thinking=thinking, tail=tail) == (once, ())
    assert repair(copy.deepcopy(given_), thinking=thinking, tail=tail) == (once, findings)


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(messages, min_size=1, max_size=4), tail=TAILS)
def test_R4_damage_in_one_turn_is_repaired_as_if_all_were_looked_at(
    parts: list[list[Any]], tail: Tail
) -> None:
    said: list[Any] = []
    for number, part in enumerate(parts):
        one = call(f"turn_{number}")
        said += [user("go"), assistant(one), user(result(f"turn_{number}")), assistant("so"), *part]
        said += [user("and"), assistant("done"), user("on"), assistant("yes")]
    before = copy.deepcopy(said)
    in_pieces = repair(said, tail=tail)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tui.context.repair.pieces_of", _no_pieces)
        at_once = repair(said, tail=tail)
    assert in_pieces == at_once
    assert json.dumps(said) == json.dumps(before)


@settings(max_examples=100, deadline=None)
@given(given_=messages, tail=TAILS)
def test_R13_text_only_is_valid_whatever_is_given(given_: list[Any], tail: Tail) -> None:
    assert check(text_only(given_, tail=tail), tail=tail) == []


def _no_pieces(*_: object) -> None:
    return None


def _conversation(turns: int) -> list[dict[str, Any]]:
    """A valid conversation of `turns` prompts, each with two parallel calls and an answer."""
    said: list[dict[str, Any]] = []
    for n in range(turns):
        a, b = f"toolu_{n}a", f"toolu_{n}b"
        said += [
            user(f"prompt {n}"),
            assistant(f"look {n}", call(a), call(b, "grep_search", {"pattern": "x"})),
            user(result(a, f"out {n}a"), result(b, f"out {n}b")),
            assistant(f"answer {n}"),
        ]
    return [*said, user("the last prompt")]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_R4_any_damage_to_a_valid_list_loses_no_words(data: st.DataObject) -> None:
    """Dropped, doubled and reordered messages: valid again, and every text left is still there."""
    said = _conversation(3)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(said) - 1))
        match data.draw(st.sampled_from(["drop", "double", "move", "cut"])):
            case "drop" if len(said) > 1:
                del said[at]
            case "double":
                said.insert(data.draw(st.integers(0, len(said))), copy.deepcopy(said[at]))
            case "move":
                said.insert(data.draw(st.integers(0, len(said) - 1)), said.pop(at))
            case _:
                content = said[at]["content"]
                said[at] = said[at] | {"content": content[:-1] if len(content) > 1 else content}
    repaired, _ = repair(said)
    assert check(repaired) == []
    kept = json.dumps(repaired)
    for message in said:
        for block in message["content"]:
            if block["type"] == "text":
                assert json.dumps(block["text"])[1:-1] in kept


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_R7_a_valid_list_comes_back_as_the_same_object(turns: int) -> None:
    said = _conversation(turns)
    assert check(said) == []
    repaired, findings = repair(said)
    assert repaired is said
    assert findings == ()


def test_R6_a_hundred_orphans_in_one_message() -> None:
    ids = [f"toolu_{n}" for n in range(100)]
    repaired, findings = repair([user("go"), assistant(*map(call, ids)), user("and?")])
    assert check(repaired) == []
    answers = repaired[2]["content"][:100]
    assert [block["tool_use_id"] for block in answers] == ids
    assert all(b["is_error"] and b["content"][0]["text"] == INTERRUPTED for b in answers)
    assert repaired[2]["content"][100:] == [{"type": "text", "text": "and?"}]
    assert [f.code for f in findings] == ["B01"] * 100


def test_R8_the_failing_session_of_37_messages_goes_on() -> None:
    said = _conversation(9)
    assert len(said) == 37
    said[17] = assistant("look", call("toolu_orphan"))
    repaired, findings = repair(said)
    assert check(repaired) == []
    assert repaired[18]["content"][0]["tool_use_id"] == "toolu_orphan"
    assert "B01" in {f.code for f in findings}


def test_R6_deeply_nested_input_is_kept_up_to_what_can_be_sent() -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"d": deep}
    shallow: dict[str, Any] = {"d": {"d": {"d": [1, 2, {"e": None}]}}}
    said = [
        user("go"),
        assistant(call("a", "t", deep), call("b", "t", shallow)),
        user(result("a"), result("b")),
    ]
    repaired, findings = repair(said)
    assert check(repaired) == []
    assert repaired[1]["content"][1]["input"] == shallow
    assert {f.code for f in findings} == {"B38"}
