"""Spans of a session: a trace a turn, the conventions' names, the true cost, and no content."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

from tests.core.test_otlp import read_by_the_package
from tests.support.odd_records import odd_session
from tests.support.spent_session import call, said, usage
from tui.agent.limits import session_cost
from tui.context.spans import CONVENTIONS, RunningCall, SpanFold, spans_of
from tui.core.otlp import Span, SpanContext, SpanSource, to_json, to_protobuf
from tui.session.records import COSTLY, Record

Json = dict[str, Any]
METHODS = import_module(
    "opentelemetry.semconv._incubating.attributes.mcp_attributes"
).McpMethodNameValues
SONNET, HAIKU = "claude-sonnet-5-5", "claude-haiku-5-5"
KEY = "sk-ant-" + "a1" * 12


def session(*given: Json, start: int = 0) -> list[Record]:
    """Records, a second apart unless a `wait` says how many; `at` is their place."""
    records: list[Record] = []
    second = start
    for number, one in enumerate(given):
        second += one.pop("wait", 1)
        time = f"2026-01-02T03:{second // 60:02d}:{second % 60:02d}.000Z"
        type_ = one.pop("type")
        records.append(Record(type_, f"r{start + number:04d}", None, time, one))
    return records


def prompt(text: str = "go on", **more: Any) -> Json:
    return {"type": "user", "content": said(text), "text": text, **more}


def request(n: int, model: str = SONNET) -> Json:
    server = "https://api.anthropic.com"
    return {"type": "request", "n": n, "model": model, "server": server, "max_tokens": 1000}


def answer(*content: Json, reason: str = "end_turn", model: str = SONNET, **more: Any) -> Json:
    blocks = [*content] or said("done")
    used = usage(100, 20, written=10, read=300)
    whole = {"type": "assistant", "content": blocks, "model": model, "usage": used}
    return whole | {"stop_reason": reason, "message_id": "msg_1", "request_id": "req_1"} | more


def calls(*blocks: Json) -> Json:
    return answer(*blocks, reason="tool_use")


def result(id_: str, **more: Any) -> Json:
    return {"type": "tool_result", "call_id": id_, "content": said("hidden output")} | more


def spans(records: Sequence[Record], **more: Any) -> list[Span]:
    return [*spans_of("5e55", records, {}, **more)]


def named(made: Sequence[Span], name: str) -> Span:
    (found,) = [one for one in made if one.name == name]
    return found


def cost(made: Sequence[Span]) -> float:
    """What the spans cost together, to a millionth of a dollar."""
    paid = (one.attributes.get("holdfast.cost_usd", 0.0) for one in made)
    return round(sum(one for one in paid if isinstance(one, float)), 6)


def bill(records: Sequence[Record]) -> float:
    """The same, by the record."""
    usd = session_cost(records, {}).session.usd
    assert usd
    return round(usd, 6)


def test_a_turn_is_a_trace_with_its_requests_and_calls() -> None:
    run = call("c1", "run_command", command="make")
    records = session(
        prompt(),
        request(1),
        {**calls(run), "wait": 3},
        {"type": "intent", "call_id": "c1", "tool": "run_command"},
        {**result("c1", seconds=2.0), "wait": 4},
        request(2),
        {**answer(), "wait": 5},
    )
    made = spans(records)
    assert [one.name for one in made] == [
        f"chat {SONNET}",
        "execute_tool run_command",
        f"chat {SONNET}",
        "invoke_agent holdfast",
    ]
    root = made[-1]
    assert root.parent == ""
    assert {one.context.trace_id for one in made} == {root.context.trace_id}
    assert {one.parent for one in made[:-1]} == {root.context.span_id}
    assert [one.kind for one in made] == ["client", "internal", "client", "internal"]
    seconds = [(one.end - one.start) / 1e9 for one in made]
    assert seconds == [3, 2, 5, 15]
    assert all(one.error is None for one in made)
    assert root.attributes["holdfast.turn.requests"] == 2
    assert root.attributes["holdfast.turn.tool_calls"] == 1


def test_a_request_has_what_the_conventions_want() -> None:
    made = spans(session(prompt(), request(1), answer()))[0]
    price = session_cost(session(prompt(), request(1), answer()), {}).session.usd
    assert made.attributes == {
        "gen_ai.conversation.id": "5e55",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": SONNET,
        "gen_ai.request.stream": True,
        "gen_ai.request.max_tokens": 1000,
        "gen_ai.response.model": SONNET,
        "gen_ai.response.id": "msg_1",
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.usage.input_tokens": 410,  # what came from the cache is input, too
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 300,
        "gen_ai.usage.cache_creation.input_tokens": 10,
        "server.address": "api.anthropic.com",
        "server.port": 443,
        "holdfast.request.number": 1,
        "holdfast.request.id": "req_1",
        "holdfast.cost_usd": price,
    }


def test_a_turn_is_in_the_trace_around_its_program() -> None:
    around = SpanContext("c1" * 16, "d2" * 8)
    inside = prompt(traceparent=around.traceparent)
    first = [inside, request(1), answer(), {**inside}, request(2), answer()]
    made = spans(session(*first, prompt(), request(3), answer()))
    *turns, last = (one for one in made if one.name == "invoke_agent holdfast")
    assert {(one.context.trace_id, one.parent) for one in turns} == {
        (around.trace_id, around.span_id)
    }
    assert {one.context.trace_id for one in made[:4]} == {around.trace_id}
    assert [one.links for one in turns] == [(), ()]  # they are in one trace
    assert (last.parent, last.links) == ("", (turns[-1].context,))
    calls_ = [RunningCall(SpanContext("e3" * 16, "f4" * 8), 1, "explore")]
    inside = prompt(traceparent=around.traceparent)
    (inner,) = spans(session(inside, request(1)), within=calls_)[1:]
    assert inner.context.trace_id == "e3" * 16  # a sub-agent is in its parent's


@pytest.mark.parametrize(
    ("block", "method"),
    [
        (call("c1", "mcp__time__now"), "tools/call"),
        (call("c1", "call_tool", name="mcp__time__now", input={}), "tools/call"),
        (call("c1", "read_mcp_resource", uri="time://now"), "resources/read"),
        (call("c1", "run_command", command="date"), None),
    ],
)
def test_a_call_to_an_mcp_server_says_what_it_is_there(block: Json, method: str | None) -> None:
    made = spans(session(prompt(), request(1), calls(block), result("c1")))
    (tool,) = (one for one in made if one.name.startswith("execute_tool"))
    assert tool.attributes.get("mcp.method.name") == method
    assert method is None or method in {one.value for one in METHODS}


def test_each_turn_is_linked_to_the_one_before() -> None:
    made = spans(session(prompt(), request(1), answer(), prompt(), request(2), answer()))
    first, second = (one for one in made if one.name == "invoke_agent holdfast")
    assert first.links == ()
    assert second.links == (first.context,)
    assert first.context.trace_id != second.context.trace_id


def test_a_wait_for_the_person_is_told_apart_from_the_work() -> None:
    made = spans(
        session(
            prompt(),
            request(1),
            calls(call("c1", "run_command", command="make")),
            {
                "type": "permission",
                "call_id": "c1",
                "tool": "run_command",
                "answer": "once",
                "by": "person",
                "subject": "make",
                "wait": 40,
            },
            {"type": "intent", "call_id": "c1", "tool": "run_command", "wait": 0},
            result("c1"),
            request(2),
            answer(),
        )
    )
    approval, tool = named(made, "approval"), named(made, "execute_tool run_command")
    assert (approval.end - approval.start) / 1e9 == 40
    assert approval.attributes["holdfast.approval.answer"] == "once"
    assert (tool.end - tool.start) / 1e9 == 1


def test_retries_are_events_and_failures_have_a_type() -> None:
    failed = {"error_class": "overloaded", "status": 529, "message": "secret words"}
    made = spans(
        session(
            prompt(),
            request(1),
            {"type": "retry", "attempt": 1, "delay_s": 2.0, **failed},
            {"type": "error", **failed},
        )
    )
    chat, root = made
    (event,) = chat.events
    assert event.name == "holdfast.retry"
    assert event.attributes["holdfast.retry.attempt"] == 1
    assert event.attributes["http.response.status_code"] == 529
    for one in (chat, root):
        assert one.attributes["error.type"] == "overloaded"
        assert one.error == ""


def test_a_refused_and_a_failed_call_are_told_apart_and_a_stop_is_no_error() -> None:
    made = spans(
        session(
            prompt(),
            request(1),
            calls(call("c1", "edit_file", path="a"), call("c2", "grep_search", text="b")),
            result("c1", is_error=True, summary="denied"),
            result("c2", is_error=True, summary="/w/private.txt isn't there"),
            {"type": "interrupt", "reason": "cancelled"},
        )
    )
    edit, grep, root = made[1:]
    assert (edit.attributes["error.type"], edit.error) == ("denied", "")
    assert (grep.attributes["error.type"], grep.error) == ("tool_error", "")
    assert root.attributes["holdfast.stopped"] is True
    assert root.error is None


def test_a_break_has_its_bill() -> None:
    told_twice = {"reason": "mask", "by": "person", "tokens": 900, "thoughts": 1}
    made = spans(
        session(
            prompt(),
            {"type": "break", **told_twice, "cost_usd": 0.02},
            request(1),
            answer(),
            {"type": "break_billed", **told_twice, "n": 1, "tokens": 1000, "billed_usd": 0.03},
        )
    )
    one = named(made, "break")
    assert one.attributes["holdfast.break.reason"] == "mask"
    assert one.attributes["holdfast.break.tokens"] == 1000
    assert one.attributes["holdfast.break.forecast_usd"] == 0.02
    assert one.attributes["holdfast.break.billed_usd"] == 0.03
    assert "holdfast.cost_usd" not in one.attributes  # its request has that


def test_costs_add_up_to_those_of_the_session() -> None:
    paid = {"model": HAIKU, "usage": usage(1000, 50)}
    records = session(
        prompt(),
        request(1),
        calls(call("c1", "task", prompt="look")),
        {"type": "sub_agent", "call_id": "c1", "session": "c0de", "state": "started"},
        {
            "type": "sub_agent",
            "call_id": "c1",
            "session": "c0de",
            "state": "done",
            "spent": [{**paid, "requests": 2}],
        },
        result("c1"),
        {"type": "compaction", "reason": "automatic", "tokens_before": 9000, **paid},
        request(2),
        answer(batch="b1"),
        {"type": "title", "title": "Looking", **paid},
        {"type": "unused", "reason": "too long", **paid},
    )
    assert cost(spans(records)) == bill(records)
    assert {one.attributes.get("holdfast.request.purpose") for one in spans(records)} >= {
        "summary",
        "title",
        "unused",
    }


@pytest.mark.parametrize("type_", sorted(COSTLY))
def test_each_record_that_was_paid_for_has_a_span_with_its_cost(type_: str) -> None:
    paid = {"type": type_, "model": HAIKU, "usage": usage(900, 80), "content": said("done")}
    records = session(prompt(), request(1), answer(), paid)
    made = [one for one in spans(records) if one.attributes.get("gen_ai.response.model") == HAIKU]
    (chat,) = made
    assert chat.name == f"chat {HAIKU}"
    assert chat.kind == "client"
    assert chat.attributes["gen_ai.usage.input_tokens"] == 900
    assert cost(made) == bill(records[-1:])
    assert cost(spans(records)) == bill(records)
    assert ("holdfast.request.purpose" in chat.attributes) == (type_ != "assistant")


def test_a_side_question_during_a_wait_makes_that_no_shorter() -> None:
    side = {
        "type": "side_question",
        "question": "secret?",
        "answer": "hidden",
        "model": HAIKU,
        "usage": usage(900, 80),
        "seconds": 4.0,
        "server": "https://api.anthropic.com",
        "wait": 20,
    }
    asked = {"type": "permission", "call_id": "c1", "tool": "run_command", "answer": "once"}
    records = session(
        prompt(),
        request(1),
        calls(call("c1", "run_command", command="make")),
        side,
        {**asked, "by": "person", "wait": 20},
        result("c1"),
    )
    made = spans(records)
    aside, approval = named(made, f"chat {HAIKU}"), named(made, "approval")
    assert (aside.end - aside.start) / 1e9 == 4
    assert (approval.end - approval.start) / 1e9 == 40
    assert aside.attributes["server.address"] == "api.anthropic.com"
    assert "secret" not in str(aside)
    assert "hidden" not in str(aside)
    shown = str(named(spans(records, content=True), f"chat {HAIKU}").attributes)
    assert "secret?" in shown
    assert "hidden" in shown


@pytest.mark.parametrize("by", ["every", "goal", "hook", "program"])
def test_a_turn_that_the_program_began_is_not_the_persons(by: str) -> None:
    made = spans(session(prompt(by=by), request(1), answer()))
    assert made[-1].attributes["holdfast.turn.by"] == by


@pytest.mark.parametrize(
    ("server", "provider"),
    [
        ("https://api.anthropic.com", "anthropic"),
        ("http://localhost:8080", "anthropic"),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com", "aws.bedrock"),
        ("https://bedrock-mantle.us-east-1.api.aws/anthropic", "aws.bedrock"),
        ("https://aiplatform.googleapis.com/v1", "gcp.vertex_ai"),
        ("https://aiplatform.eu.rep.googleapis.com/v1", "gcp.vertex_ai"),
        ("https://europe-west1-aiplatform.googleapis.com/v1", "gcp.vertex_ai"),
        ("https://mine.services.ai.azure.com/anthropic", "anthropic"),  # it has no name there
    ],
)
def test_the_provider_is_the_cloud_that_was_asked(server: str, provider: str) -> None:
    titled = {"type": "title", "model": HAIKU, "usage": usage(9, 8)}
    made = spans(session(prompt(), {**request(1), "server": server}, answer(), titled))
    assert {one.attributes["gen_ai.provider.name"] for one in made} == {provider}
    names = import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    assert provider in {one.value for one in names.GenAiProviderNameValues}


def test_a_sub_agent_is_in_its_parents_trace_and_pays_for_itself() -> None:
    paid = [{"model": HAIKU, "requests": 1, "usage": usage(100, 20, written=10, read=300)}]
    parent = session(
        prompt(),
        request(1),
        calls(call("c1", "task", prompt="look")),
        {"type": "intent", "call_id": "c1"},
        {
            "type": "sub_agent",
            "call_id": "c1",
            "session": "c0de",
            "agent": "explore",
            "state": "started",
        },
        {
            "type": "sub_agent",
            "call_id": "c1",
            "session": "c0de",
            "state": "done",
            "spent": paid,
            "wait": 9,
        },
        result("c1"),
        request(2),
        answer(),
    )
    child = session(prompt("look"), request(1, HAIKU), answer(model=HAIKU), start=6)
    made = spans(parent, sub_agents={"c0de": child})
    root, tool = named(made, "invoke_agent holdfast"), named(made, "execute_tool task")
    inner, chat = named(made, "invoke_agent explore"), named(made, f"chat {HAIKU}")
    assert {one.context.trace_id for one in made} == {root.context.trace_id}
    assert inner.parent == tool.context.span_id
    assert chat.parent == inner.context.span_id
    assert inner.attributes["gen_ai.conversation.id"] == "c0de"
    assert tool.attributes["holdfast.sub_agent.session"] == "c0de"
    assert cost(made) == bill(parent)
    assert cost(spans(parent)) == bill(parent)  # without its records, the call has its cost


def told(made: Sequence[Span]) -> str:
    return json.dumps(to_json(made, SpanSource({}, "", "", "")), ensure_ascii=False)


SECRETS = ("Zaphod", "/home/zaphod", "rm -rf", "Trillian", "Marvin", "Ford", "Slartibartfast")


def confidential() -> list[Record]:
    return session(
        prompt(f"Zaphod's key is {KEY}"),
        {"type": "hook", "event": "PreToolUse", "command": "rm -rf x", "outcome": "failed",
         "text": "Marvin", "exit_code": 1, "seconds": 0.5},
        request(1),
        calls(*said(f"Trillian {KEY}"), call("c1", "run_command", command=f"rm -rf {KEY}")),
        {"type": "permission", "call_id": "c1", "tool": "run_command", "by": "person",
         "answer": "no", "reason": "Ford", "subject": "rm -rf"},
        result("c1", content=said(f"/home/zaphod {KEY}"), is_error=True, summary="Marvin"),
        {"type": "break", "reason": "refused", "by": "server", "message": "Marvin", "tokens": 1},
        {"type": "recovery", "step": "digest", "action": "Ford", "error_class": "other"},
        {"type": "retry", "attempt": 1, "reason": "Slartibartfast", "text": "Trillian"},
        {"type": "job_ended", "command": "rm -rf", "text": "Marvin", "exit_code": 1, "job": "job-1",
         "state": "Ford", "seconds": 3.0},
        {"type": "compaction", "summary": "Zaphod", "reason": "manual", "model": HAIKU},
        {"type": "title", "title": "Zaphod", "model": HAIKU, "usage": usage(1, 1)},
        {"type": "error", "error_class": "auth", "message": f"Slartibartfast {KEY}"},
    )  # fmt: skip


def test_no_content_leaves_unless_it_is_asked_for() -> None:
    text = told(spans(confidential()))
    assert not [one for one in (*SECRETS, KEY) if one in text]


def test_with_content_keys_are_masked_all_the_same() -> None:
    text = told(spans(confidential(), content=True))
    assert [one for one in SECRETS if one not in text] == []
    assert KEY not in text
    assert "gen_ai.tool.call.arguments" in text
    chat = spans(confidential(), content=True)[1]
    (message,) = json.loads(str(chat.attributes["gen_ai.output.messages"]))
    assert message["role"] == "assistant"
    assert [part["type"] for part in message["parts"]] == ["text", "tool_call"]
    assert message["finish_reason"] == "tool_use"


def test_no_text_is_longer_than_it_may_be() -> None:
    long_ = "x" * 100_000
    run_ = call("c1", "write_file", content=long_)
    parts = [run_, {"type": "thinking", "thinking": long_}, *said(long_)]
    records = session(prompt(long_), request(1), calls(*parts), result("c1", content=said(long_)))
    attributes = [one.attributes for one in spans(records, content=True)]
    texts = [value for some in attributes for value in some.values() if isinstance(value, str)]
    assert sorted(len(text) // 65_536 for text in texts if len(text) > 200) == [1, 1, 1, 1, 3]
    (message,) = json.loads(str(attributes[0]["gen_ai.output.messages"]))
    assert (
        max(len(part.get("content", part.get("arguments"))) for part in message["parts"]) < 65_540
    )


def constants(module: ModuleType) -> set[str]:
    return {one for name, one in vars(module).items() if name.isupper() and isinstance(one, str)}


@cache
def conventions() -> set[str]:
    """The names of the conventions, by their own package."""
    base = "opentelemetry.semconv"
    inner = [
        f"{base}._incubating.attributes.{name}_attributes"
        for name in ("gen_ai", "server", "error", "http", "process", "mcp")
    ]
    more = [f"{base}.attributes.{name}_attributes" for name in ("server", "error", "http")]
    return set[str]().union(*(constants(import_module(one)) for one in (*inner, *more)))


def test_names_are_the_conventions_or_ours() -> None:
    records = [*confidential(), *session(prompt(), request(2), answer(), start=100)]
    made = spans(records, content=True)
    names = {name for one in made for name in one.attributes}
    names |= {name for one in made for event in one.events for name in event.attributes}
    foreign = {name for name in names if not name.startswith("holdfast.")}
    assert len(foreign) > 20
    assert foreign <= conventions()
    package = import_module("opentelemetry.semconv.schemas").Schemas
    assert package.V1_44_0.value == CONVENTIONS


def test_the_same_records_give_the_same_spans_one_by_one_or_later() -> None:
    records = confidential()
    fold = SpanFold("5e55")
    live = [one for record in records for one in fold.add(record)]
    assert live == spans(records)[: len(live)]
    assert spans(records) == spans(records)
    ids = [one.context for one in spans(records)]
    assert len({*ids}) == len(ids)
    for end in range(len(records)):
        fold = SpanFold("5e55")
        early = [one for record in records[:end] for one in fold.add(record)]
        assert early == live[: len(early)]  # what was sent stays true


def test_a_call_ends_in_the_turn_that_made_it() -> None:
    made = spans(
        session(
            prompt(),
            request(1),
            calls(call("c1", "run_command")),
            prompt(),
            result("c1", is_error=True, summary="interrupted"),
            request(2),
            answer(),
        )
    )
    tool = named(made, "execute_tool run_command")
    first, second = (one for one in made if one.name == "invoke_agent holdfast")
    assert (tool.context.trace_id, tool.parent) == (first.context.trace_id, first.context.span_id)
    assert second.context.trace_id != first.context.trace_id
    assert tool.attributes["error.type"] == "interrupted"


def test_a_turn_that_a_crash_cut_off_is_told_as_that() -> None:
    made = spans(session(prompt(), request(1), calls(call("c1", "run_command")), start=0))
    assert [one.attributes.get("holdfast.unfinished") for one in made] == [None, True, True]


def test_a_request_that_another_profile_is_asked_instead_is_one_span() -> None:
    other = "@aws/claude-sonnet-5-5"
    retry: Json = {"type": "retry", "attempt": 1, "error_class": "overloaded", "status": 529}
    answered = answer(call("c1", "run_command"), reason="tool_use", model=other)
    first = (request(1), retry, request(2, other), answered, result("c1"))
    made = spans(session(prompt(), *first, request(3), request(4, other), answer(model=other)))
    chats = [one for one in made if one.name.startswith("chat ")]
    assert [one.attributes["holdfast.request.number"] for one in chats] == [2, 4]
    assert [one.attributes["holdfast.profile"] for one in chats] == ["aws", "aws"]
    assert [[event.name for event in one.events] for one in chats] == [["holdfast.retry"], []]
    assert not any("holdfast.unfinished" in one.attributes for one in made)


@pytest.mark.parametrize("seed", range(300))
def test_any_value_in_a_record_is_borne(seed: int) -> None:
    lines, _ = odd_session(seed)
    records = [
        Record(
            str(one.get("type")),
            str(one.get("id")),
            None,
            one["time"] if isinstance(one.get("time"), str) else "",
            {key: value for key, value in one.items() if key not in {"type", "id", "time"}},
        )
        for one in lines[1:]
    ]
    made = to_json(spans(records, content=True), SpanSource({}, "", "", ""))
    read = service.ExportTraceServiceRequest.FromString(to_protobuf(made))
    assert read_by_the_package(json.dumps(made)) == read
