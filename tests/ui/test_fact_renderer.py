"""From records to the items of a resumed conversation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.world import record
from tui.core.facts import Debug, HookFinished, RepairApplied
from tui.session.records import Record
from tui.ui.widgets.conversation.item_renderer import source
from tui.ui.widgets.conversation.items import (
    AssistantItem,
    AttemptItem,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tui.ui.widgets.record_items import fact_item, items_of, result_text


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def _call(id_: str, **input_: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "run_command", "input": input_}


def _result(id_: str, text: str, **more: Any) -> Record:
    return record("tool_result", call_id=id_, name="run_command", content=_text(text), **more)


def test_what_was_said_comes_back_in_order() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    found = items_of(
        [
            record("user", content=_text("hi"), text="hi"),
            record("assistant", content=[thinking, *_text("Hello."), *_text("  ")]),
        ]
    )
    assert [type(item) for item in found] == [UserItem, ThinkingItem, AssistantItem]
    assert [getattr(item, "text", "") for item in found] == ["hi", "Hm.", "Hello."]


def test_text_that_nobody_typed_is_no_prompt() -> None:
    (item,) = items_of([record("user", content=_text("(continue)"))])
    assert isinstance(item, NoticeItem)
    assert item.text == "(continue)"


def test_a_call_meets_its_result() -> None:
    (item,) = items_of(
        [
            record("assistant", content=[_call("c1", command="pytest -q")]),
            _result(
                "c1",
                "1 failed",
                is_error=True,
                seconds=2.5,
                summary="exit 1",
                display="--- a\n+++ b\n",
                receipt={"bytes_total": 9},
            ),
        ]
    )
    assert isinstance(item, ToolItem)
    assert (item.label, item.state, item.seconds) == ("pytest -q", "error", 2.5)
    assert (item.summary, item.preview, item.diff) == ("exit 1", "1 failed", "--- a\n+++ b\n")
    assert item.receipt == {"bytes_total": 9}


def test_a_call_without_a_result_was_interrupted() -> None:
    (item,) = items_of([record("assistant", content=[_call("c1", command="sleep 9")])])
    assert isinstance(item, ToolItem)
    assert item.state == "interrupted"


def _after(*records: Record) -> ToolItem:
    made = record("assistant", content=[_call("c1", command="pytest -q")])
    item = items_of([made, *records])[0]
    assert isinstance(item, ToolItem)
    return item


def test_a_call_that_was_cut_off_says_how_far_it_came() -> None:
    began = record("intent", call_id="c1", tool="run_command", effect="run")
    partial = {"interrupted": True, "partial": "....\n.."}
    closed = _result("c1", "for the model", is_error=True, seconds=9.0, summary="interrupted",
                     details=partial)  # fmt: skip
    item = _after(began, closed)
    assert (item.state, item.seconds, item.summary) == ("interrupted", 9.0, "2 lines printed")
    assert item.preview == "....\n.."
    silent = _result("c1", "for the model", is_error=True, seconds=0.0, summary="interrupted",
                     details={"interrupted": True, "partial": ""})  # fmt: skip
    assert _after(began, silent).summary == "may have run, end unknown"
    assert _after(silent).summary == "never started"


def test_a_call_that_nobody_closed_says_what_is_known_of_it() -> None:
    began = record("intent", call_id="c1", tool="run_command", effect="run")
    elsewhere = _result("c9", "of an earlier call")
    assert _after().summary == "never started"
    assert _after(began).summary == "may have run, end unknown"
    assert _after(elsewhere).summary == "end unknown"
    later = record("assistant", content=_text("Going on."))
    assert _after(began, later).summary == "finished, result lost"


def test_k47_refusals_and_elevated_calls_stay_marked() -> None:
    refused, elevated = items_of(
        [
            record("assistant", content=[_call("c1", command="a"), _call("c2", command="b")]),
            record("permission", call_id="c1", answer="no", by="person", reason="not now"),
            _result("c1", "not allowed", is_error=True, summary="denied"),
            record("permission", call_id="c2", answer="allow", by="elevated"),
            _result("c2", "fine", summary="exit 0"),
        ]
    )
    assert isinstance(refused, ToolItem)
    assert isinstance(elevated, ToolItem)
    assert (refused.state, refused.summary) == ("denied", "not now")
    assert (elevated.state, elevated.summary, elevated.elevated) == ("ok", "exit 0", True)


@pytest.mark.parametrize("count", [13, 14, 100, 5_000])
@pytest.mark.parametrize("cut", [False, True])
def test_a_long_result_is_previewed_by_its_ends(count: int, cut: bool) -> None:
    text = "\n".join(f"line {n}" for n in range(count))
    result = _result("c1", text, receipt={"bytes_total": 1} if cut else None)
    (item,) = items_of([record("assistant", content=[_call("c1")]), result])
    assert isinstance(item, ToolItem)
    lines = item.preview.splitlines()
    assert lines[0] == "line 0"
    assert lines[-1] == f"line {count - 1}"
    more = [f"… +{count - 12:,} lines" + ("" if cut else " · F4 shows all")]
    assert [line for line in lines if "…" in line] == (more if count > 13 else [])
    assert result_text([result], "c1") == text
    assert result_text([result], "c2") == ""


def test_an_interruption_keeps_what_was_said() -> None:
    said, stopped = items_of([record("interrupt", reason="cancelled", text="I was about")])
    assert isinstance(said, AssistantItem)
    assert isinstance(stopped, NoticeItem)
    assert said.text == "I was about"
    assert len(items_of([record("interrupt", reason="cancelled", text=" ")])) == 1


def test_troubles_are_not_hidden() -> None:
    error, retry, note, repair = items_of(
        [
            record("error", message="No key.", hint="Paste one."),
            record(
                "retry",
                attempt=1,
                max_attempts=3,
                delay_s=2.0,
                reason="The server is busy.",
                error_class="overloaded",
                request_id="req_1",
                received=4,
                text="half",
            ),
            record("note", text="The limit is reached."),
            record("repair", findings=[{"code": "B1", "where": "line 3", "action": "left out"}]),
        ]
    )
    for item in (error, note, repair):
        assert isinstance(item, NoticeItem)
    assert isinstance(retry, AttemptItem)
    assert isinstance(repair, NoticeItem)
    assert source(error) == "No key. Paste one."
    assert isinstance(error, NoticeItem)
    assert error.hint == "Paste one."
    assert source(retry).split("\n") == [
        "attempt 1 failed: overloaded · next after 2 s · req_1 · 4 characters received",
        "The server is busy.",
        "half",
    ]
    assert repair.detail == "line 3: left out"


def test_a_switch_and_a_wait_of_a_request_are_told() -> None:
    there: dict[str, Any] = {"from": "a", "to": "b", "error_class": "overloaded"}
    again: dict[str, Any] = {"from": "b", "to": "a", "error_class": None}
    there["reason"], again["reason"] = "overloaded", "the wait is over"
    switched, back, parked = items_of(
        [
            record("failover", **there),
            record("failover", **again),
            record(
                "parked", until="2026-11-21T17:00:00Z", reason="Slow.", error_class="rate_limit"
            ),
        ]
    )
    assert source(switched) == ("overloaded. Switched to b. Back to a by itself, or with /model a.")
    assert source(back) == "Back to the model a: the wait is over."
    assert source(parked).startswith("Parked until ")
    assert source(parked).endswith(":00 (rate limited): Slow. It continues by itself.")


def test_a_damaged_record_of_an_attempt_is_told_as_far_as_it_goes() -> None:
    (item,) = items_of([record("retry", attempt="x", delay_s=None, received=[], status="")])
    assert source(item) == "attempt 1 failed: failed · next at once"


def test_records_of_other_kinds_and_odd_shapes_are_passed_over() -> None:
    odd = {"type": "tool_use", "id": "c9", "name": "x", "input": "no object"}
    found = items_of(
        [
            record("something_new", a=1),
            record("tool_result", call_id="never called", content=None),
            record("assistant", content=[odd, {"type": "later_block"}]),
        ]
    )
    assert [type(item) for item in found] == [ToolItem]


def test_one_repair_and_many() -> None:
    one = fact_item(RepairApplied(({"where": "a", "action": "b"},)), None)
    two = fact_item(RepairApplied(({"where": "a"}, {"action": "b"})), None)
    assert isinstance(one, NoticeItem)
    assert isinstance(two, NoticeItem)
    assert "in one place" in one.text
    assert "in 2 places" in two.text


def test_a_command_that_a_hook_changed_comes_back_as_it_ran() -> None:
    (item,) = items_of(
        [
            record("assistant", content=[_call("c1", command="make all")]),
            record(
                "permission",
                call_id="c1",
                tool="run_command",
                subject="make -n all",
                answer="allow",
                by="safe",
                reason="",
            ),
            _result("c1", "ok"),
        ]
    )
    assert isinstance(item, ToolItem)
    assert item.label == "make -n all"


def test_a_long_hook_is_named_in_short_with_the_whole_below() -> None:
    fact = HookFinished("PreToolUse", "npx guard " + "--x " * 90, "failed", 1, 5, "no such " * 90)
    item = fact_item(fact, None)
    assert isinstance(item, NoticeItem)
    assert len(item.text) < 520
    assert "(exit 1)" in item.text
    assert fact.command in item.detail
    assert fact.text.strip() in item.detail
    assert item.folded


def test_a_debug_block_is_opened() -> None:
    item = fact_item(Debug("\n\n[DEBUG] Tool: x\n[DEBUG] Tokens: 3\n"), None)
    assert isinstance(item, NoticeItem)
    assert (item.text, item.detail, item.folded) == ("[DEBUG] Tool: x", "[DEBUG] Tokens: 3", False)


def test_9_what_went_along_with_a_prompt_is_seen_when_the_session_is_resumed() -> None:
    prompt = _text("fix it\n\n$ pytest\n1 failed")
    said, along = items_of([record("user", content=prompt, text="fix it")])
    assert isinstance(said, UserItem)
    assert isinstance(along, NoticeItem)
    assert (said.text, along.text, along.detail) == (
        "fix it",
        "Included your shell output (2 lines)",
        "$ pytest\n1 failed",
    )
    command = {"name": "fix", "path": "/x/fix.md"}
    line = record("user", content=prompt, text="fix it", command=command)
    assert "Included the command's text (2 lines)" in [
        one.text for one in items_of([line]) if isinstance(one, NoticeItem)
    ]
