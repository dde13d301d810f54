"""What the server says beside an answer: diagnostics, dropped thinking, refusals, models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from anthropic import APIStatusError, AsyncAnthropic

from tests.support.direct import LOOK, Direct
from tests.support.server import LoopbackServer
from tests.support.server_binding import BINDING, HINT
from tests.support.server_catalogue import listed
from tests.support.server_compaction import COMPACTION
from tests.support.server_errors import Rejection
from tests.support.server_models import MODELS
from tests.support.server_script import Json, events_of

Act = Callable[[Direct], object]
FIRST: Json = {"diagnostics": {"previous_message_id": None}}
DROP: Json = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def _after(id_: str) -> Json:
    return {"diagnostics": {"previous_message_id": id_}}


def _model(one: Direct) -> None:
    one.body["model"] = "claude-opus-5-5"


def _system(one: Direct) -> None:
    one.body["system"] = [{"type": "text", "text": "You are another."}]


def _tools(one: Direct) -> None:
    one.body["tools"] = [{**LOOK, "description": "Changed."}]


def _messages(one: Direct) -> None:
    one.messages[0]["content"][0]["text"] = "Changed."


def _thinking(one: Direct) -> None:
    one.body["thinking"] = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("act", "kind", "counted"),
    [
        (_model, "model_changed", True),
        (_system, "system_changed", True),
        (_tools, "tools_changed", True),
        (_messages, "messages_changed", True),
        (_thinking, "unavailable", False),
    ],
)
def test_diagnostics_name_the_first_difference(act: Act, kind: str, counted: bool) -> None:
    one = Direct.begun(binding=False)
    id_ = one.send(**FIRST)["id"]
    one.say()
    act(one)
    reason = one.send(**_after(id_))["diagnostics"]["cache_miss_reason"]
    assert reason["type"] == kind
    assert (reason.get("cache_missed_input_tokens", 0) > 0) == counted


def test_diagnostics_say_nothing_where_a_request_extends_the_last() -> None:
    one = Direct.begun()
    assert one.send()["diagnostics"] is None
    one.say()
    first = one.send(**FIRST)
    assert first["diagnostics"] is None
    one.say("again", cache_control={"type": "ephemeral"})
    assert one.send(**_after(first["id"]))["diagnostics"] is None


def test_a_request_that_did_not_ask_leaves_nothing_to_compare_with() -> None:
    one = Direct.begun()
    id_ = one.send()["id"]
    one.say()
    found = one.send(**_after(id_))["diagnostics"]
    assert found == {"cache_miss_reason": {"type": "previous_message_not_found"}}


def test_diagnostics_have_a_form() -> None:
    one = Direct.begun()
    assert "Extra inputs" in one.refused(diagnostics={"other": 1}).message
    assert "should be an object" in one.refused(diagnostics=True).message


def _two_thoughts(**script: Any) -> Direct:
    one = Direct.begun(**script)
    one.betas = [BINDING]
    one.send()
    one.say()
    one.send()
    one.say()
    return one


def _reported(answer: Json) -> list[tuple[str, str]]:
    return [(one["reason"], one["path"]) for one in answer["input_transformations"]]


def test_transformations_are_reported_with_the_header_alone_and_empty_when_clean() -> None:
    one = _two_thoughts()
    assert one.send()["input_transformations"] == []
    one.say()
    one.betas = []
    assert "input_transformations" not in one.send()


def test_all_thinking_behind_what_is_dropped_goes_with_it() -> None:
    one = _two_thoughts()
    _messages(one)
    answer = one.send(thinking=DROP)
    assert _reported(answer) == [
        ("prefix_binding_mismatch", "messages.1.content.0"),
        ("prefix_binding_mismatch", "messages.3.content.0"),
    ]
    one.say()
    one.messages = [
        {**m, "content": [b for b in m["content"] if b["type"] != "thinking"]}
        if m["role"] == "assistant"
        else m
        for m in one.messages[:5]
    ] + one.messages[5:]
    assert one.send(thinking=DROP)["input_transformations"] == []


def test_thinking_that_was_left_out_is_not_put_back() -> None:
    one = _two_thoughts()
    thought = one.messages[1]["content"].pop(0)
    one.send()
    one.say()
    one.messages[1]["content"].insert(0, thought)
    assert one.refused().message.startswith("messages.5.content.0")


def test_thinking_is_not_missing_in_between() -> None:
    one = _two_thoughts()
    one.send()
    one.say()
    del one.messages[3]["content"][0]
    assert one.refused().message.startswith("messages.5.content.0")


def test_thinking_may_be_missing_from_the_end() -> None:
    one = _two_thoughts()
    del one.messages[3]["content"][0]
    one.send()


def test_a_text_in_the_place_of_a_block_is_an_edit() -> None:
    one = _two_thoughts()
    one.messages[0]["content"] = "hello"
    assert "bound to a different conversation" in one.refused().message


def test_the_hint_comes_without_the_header() -> None:
    one = _two_thoughts()
    _messages(one)
    assert HINT not in one.refused().message
    one.betas = []
    assert HINT in one.refused().message


def test_a_newer_model_is_refused_to_every_account() -> None:
    for model, refused in (("claude-fable-5-2", True), ("claude-fable-5-1", False)):
        one = Direct.begun(model, binding="record")
        one.send()
        one.say()
        _messages(one)
        assert isinstance(one.post(), Rejection) == refused


def test_the_behavior_has_two_values() -> None:
    one = _two_thoughts()
    thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop"}}
    assert "'error' or 'drop_block'" in one.refused(thinking=thinking).message


def test_who_reads_whom() -> None:
    one = _two_thoughts(priced=True)
    one.body["model"] = "claude-opus-5-5"  # reads what sonnet thought
    assert one.send()["input_transformations"] == []
    one.say()
    one.body["model"] = "claude-sonnet-5-5"  # and not the other way round
    answer = one.send()
    assert _reported(answer) == [("model_binding_mismatch", "messages.5.content.0")]
    one.say()
    one.body["model"] = "claude-opus-5-5"
    assert one.send()["input_transformations"] == []


def test_what_is_dropped_is_not_billed() -> None:
    usages: list[Json] = []
    for model in ("claude-opus-5-5", "claude-sonnet-5-5"):
        one = Direct.begun(model, priced=True, turns=[{"thinking": "x" * 8000, "text": "a"}] * 3)
        one.send()
        one.say()
        one.body["model"] = "claude-sonnet-5-5"
        usages.append(one.send()["usage"])
    assert usages[0]["input_tokens"] + 1500 < usages[1]["input_tokens"]


def test_another_organization_does_not_read_the_thinking_of_some_models() -> None:
    for model, reason in (("claude-sonnet-5-5", True), ("claude-opus-5-5", False)):
        one = Direct.begun(model, organizations={"other": "elsewhere"})
        one.betas = [BINDING]
        one.send()
        one.say()
        one.key = "other"
        expected = [("organization_binding_mismatch", "messages.1.content.0")]
        assert _reported(one.send()) == expected * reason


def test_a_mark_for_the_whole_request() -> None:
    one = Direct.begun(priced=True)
    one.say("long " * 1000)
    del one.messages[0]
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    usage = one.send(**mark)["usage"]
    assert usage["cache_creation"]["ephemeral_1h_input_tokens"] > 1000
    one.say()
    assert one.send(**mark)["usage"]["cache_read_input_tokens"] > 1000
    four = [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 4
    one.messages = [{"role": "user", "content": four}]
    assert "maximum of 4" in one.refused(**mark).message


def test_a_default_that_is_named_keeps_the_cache() -> None:
    one = Direct.begun(priced=True)
    one.say("long " * 1000, cache_control={"type": "ephemeral"})
    del one.messages[0]
    one.send()
    one.say()
    defaults = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
    usage = one.send(**defaults, tool_choice={"type": "auto"})["usage"]
    assert usage["cache_read_input_tokens"] > 1000


@pytest.mark.parametrize("extra", ["max_tokens", "stream", "diagnostics", "stop_sequences"])
def test_what_is_counted_has_its_fields(extra: str) -> None:
    refused = Direct.begun().count(**{extra: 1})
    assert isinstance(refused, Rejection)
    assert refused.message == f"{extra}: Extra inputs are not permitted"


def test_what_is_counted_is_judged_as_a_message() -> None:
    one = _two_thoughts()
    assert isinstance(one.count(), dict)
    _system(one)
    refused = one.count()
    assert isinstance(refused, Rejection)
    assert "bound to a different conversation" in refused.message
    forced = Direct.begun().count(tool_choice={"type": "any"})
    assert isinstance(forced, Rejection)
    assert "tool_choice" in forced.message


def test_a_refusal_says_why_and_usage_says_how_much_was_thought() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    turn: Json = {
        "thinking": "x" * 400,
        "text": "I",
        "stop_reason": "refusal",
        "stop_details": details,
    }
    one = Direct.begun(priced=True, turns=[turn])
    answer = one.send()
    assert (answer["stop_reason"], answer["stop_details"]) == ("refusal", details)
    assert answer["usage"]["output_tokens_details"] == {"thinking_tokens": 100}
    start, *_, delta, _ = events_of({**turn, "usage": answer["usage"]}, 0, "m")
    assert "output_tokens_details" not in start["message"]["usage"]
    assert delta["delta"]["stop_details"] == details
    assert delta["usage"]["output_tokens_details"] == {"thinking_tokens": 100}
    assert "cache_creation" not in delta["usage"]


async def test_an_error_has_a_code_and_a_list_has_pages() -> None:
    busy = {"status": 529, "type": "overloaded_error", "error_code": "compaction_unavailable"}
    script = {"catalogue": True, "compactions": [busy]}
    async with (
        LoopbackServer(script) as server,
        AsyncAnthropic(api_key="k", base_url=server.url, max_retries=0) as sdk,
    ):
        first = await sdk.models.list(limit=7)
        assert first.has_more
        assert [model.id for model in first.data] == list(MODELS)[:7]
        assert [model.id async for model in sdk.models.list(limit=7)] == list(MODELS)
        back = await sdk.models.list(limit=2, before_id=list(MODELS)[7])
        assert [model.id for model in back.data] == list(MODELS)[5:7]
        with pytest.raises(APIStatusError):
            await sdk.models.list(limit=0)
        with pytest.raises(APIStatusError):
            await sdk.models.list(after_id="nothing")
        with pytest.raises(APIStatusError) as caught:
            await sdk.beta.messages.create(
                model="claude-sonnet-5-5",
                max_tokens=100,
                messages=[{"role": "user", "content": "hello"}],
                betas=[COMPACTION],
                extra_body={"compaction": {"type": "summarize"}},
            )
        assert caught.value.error_code == "compaction_unavailable"


def test_every_model_is_described() -> None:
    sonnet = listed("claude-sonnet-5-5")
    assert sonnet["line"] == "sonnet"
    assert sonnet["lifecycle"] == "active"
    assert sonnet["capabilities"]["thinking"]["types"]["between_tools"] == {"supported": True}
    assert "compaction" not in sonnet["capabilities"]
    able = listed("claude-sonnet-5-5", frozenset({COMPACTION}))["capabilities"]
    assert able["compaction"]["summarize"] == {"supported": True}
    old = listed("claude-sonnet-4-5")
    assert (old["lifecycle"], old["retires_at"]) == ("deprecated", "2026-11-30T00:00:00Z")
    assert old["capabilities"]["effort"]["supported"] is False
