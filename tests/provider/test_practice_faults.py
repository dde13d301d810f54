"""Faults raise what a real adapter raises, after the characters that came before them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.provider.conversation import ask, provider_for
from tests.provider.practice_world import parts_of
from tests.provider.statuses import STATUSES
from tests.support.clock import FakeClock
from tests.support.rejections import REJECTIONS
from tests.support.server import LoopbackServer
from tui.core.errors import ErrorClass, Overflow, ProviderError
from tui.core.facts import TextDelta, ThinkingDelta, ToolInputDelta
from tui.core.messages import Message, text_block, text_of
from tui.demo.drill_steps import STEPS
from tui.provider.base import AttemptStarted, Completed, Provider, Request, StreamPart
from tui.provider.practice.faults import FaultQueue, FaultyProvider
from tui.provider.practice.provider import PracticeModel
from tui.provider.practice.script import Fault, Script, ScriptedTurn, ToolUse

DRILL_OVER_HTTP: list[dict[str, Any]] = [
    {"status": 429, "retry_after": 2},
    {"status": 529},
    {"status": 401},
    {"cut_after": 3},
    {"eof_after": 3},
    {"bad_json": True},
    {"overflow": True},
    {"overflow": "until_smaller"},
    {"overflow": "max_tokens"},
    {"status": 400, "message": "messages.1: `tool_use` ids must be unique"},
    {"status": 502, "html": "Bad Gateway"},
]

TOOLS = [{"name": "list_dir"}, {"name": "read_file"}]


def request(text: str) -> Request:
    return Request("practice", [], [Message(role="user", content=[text_block(text)])], TOOLS, 4096)


async def failing(model: Provider, text: str = "list") -> tuple[list[StreamPart], ProviderError]:
    """What came before the error, and the error."""
    parts: list[StreamPart] = []
    try:
        async for part in model.stream(request(text)):
            parts.append(part)  # noqa: PERF401 - kept when the stream fails
    except ProviderError as error:
        return parts, error
    raise AssertionError("nothing failed")


def chars(parts: list[StreamPart]) -> str:
    text = ""
    for part in parts:
        if isinstance(part, TextDelta | ThinkingDelta):
            text += part.text
        if isinstance(part, ToolInputDelta):
            text += part.text
    return text


def with_fault(
    *faults: Fault, clock: FakeClock | None = None, script: Script | None = None
) -> FaultyProvider:
    clock = clock or FakeClock()
    return FaultyProvider(PracticeModel(clock, script=script), FaultQueue(faults).take, clock)


@pytest.mark.parametrize(("status", "error_class", "retryable"), STATUSES)
async def test_R17_statuses_have_their_class_and_are_retryable_as_the_rule_says(
    status: int, error_class: ErrorClass, retryable: bool
):
    parts, error = await failing(with_fault(Fault(status=status)))
    assert (error.error_class, error.status, error.retryable) == (error_class, status, retryable)
    assert "practice fault" in error.message
    assert parts == [AttemptStarted(1, "practice")]


async def test_retry_after_is_handed_on():
    _, error = await failing(with_fault(Fault(status=429, retry_after=7)))
    assert error.retry_after == 7
    _, error = await failing(with_fault(Fault(status=429)))
    assert error.retry_after is None


@pytest.mark.parametrize("after", [0, 1, 17, 40, 60, 10_000])
@pytest.mark.parametrize("lost", [True, False])
async def test_a_broken_stream_breaks_after_exactly_so_many_characters(lost: bool, after: int):
    whole = chars(await parts_of(PracticeModel(FakeClock()), request("list")))
    parts, error = await failing(
        with_fault(Fault(cut_after=after) if lost else Fault(eof_after=after))
    )
    assert error.error_class == "stream_broken"
    assert error.retryable
    assert chars(parts) == whole[:after]
    assert not any(isinstance(part, Completed) for part in parts)


async def test_any_fault_may_strike_in_mid_stream():
    for fault in (Fault(status=529, after=10), Fault(overflow=True, after=10)):
        parts, _ = await failing(with_fault(fault))
        assert len(chars(parts)) == 10


async def test_a_stall_is_a_silence_and_then_a_timeout():
    clock = FakeClock()
    parts, error = await failing(with_fault(Fault(stall_s=5, after=3), clock=clock))
    assert clock.slept == [5]
    assert (error.error_class, error.retryable) == ("timeout", True)
    assert len(chars(parts)) == 3


async def test_slow_is_only_slow():
    clock = FakeClock()
    parts = await parts_of(with_fault(Fault(slow_s=8), clock=clock), request("hello"))
    assert clock.slept == [8]
    assert isinstance(parts[-1], Completed)


async def test_an_overflow_names_a_size_above_the_window():
    _, error = await failing(with_fault(Fault(overflow=True)))
    assert (error.error_class, error.status) == ("context_overflow", 400)
    assert error.message == "prompt is too long: 32001 tokens > 32000 maximum"
    assert not error.retryable


async def test_bad_json_breaks_the_last_call_alone():
    calls = tuple(ToolUse(name="read_file", input={"path": path}) for path in ("a.py", "b.py"))
    model = with_fault(Fault(bad_json=True), script=Script(turn=(ScriptedTurn(tools=calls),)))
    parts = await parts_of(model, request("read both"))
    answer = parts[-1]
    assert isinstance(answer, Completed)
    good, bad = (b for b in answer.content if b["type"] == "tool_use")
    assert good["input"] == {"path": "a.py"}
    assert set(bad["input"]) == {"raw_input"}
    streamed = [p for p in parts if isinstance(p, ToolInputDelta) and p.id == bad["id"]]
    assert "".join(p.text for p in streamed) == bad["input"]["raw_input"]
    assert '{"path": "b.py"}'.startswith(bad["input"]["raw_input"])


async def test_bad_json_without_a_call_is_a_broken_event():
    parts, error = await failing(with_fault(Fault(bad_json=True)), "hello")
    assert error.error_class == "stream_broken"
    assert "JSON" in error.message
    assert chars(parts)


async def test_the_drill_plays_its_faults_in_order_and_then_the_answer():
    clock = FakeClock()
    names = ["429", "529", "cut", "eof", "stall", "overflow", "auth"]
    faults = [fault for name in names if (fault := STEPS[name].fault)]
    model = with_fault(*faults, clock=clock)
    classes = [(await failing(model, "hello"))[1].error_class for _ in range(7)]
    assert classes == [
        "rate_limit",
        "overloaded",
        "stream_broken",
        "stream_broken",
        "timeout",
        "context_overflow",
        "auth",
    ]
    answer = (await parts_of(model, request("hello")))[-1]
    assert isinstance(answer, Completed)
    assert "practice model" in text_of(answer.content)
    assert (await model.model_info("practice")).window == 32_000
    await model.aclose()


async def test_closing_the_stream_during_a_fault_ends_it():
    clock = FakeClock()
    stream = with_fault(Fault(stall_s=600, after=2), clock=clock).stream(request("hello"))
    await anext(stream)
    await stream.aclose()
    assert clock.slept == []


async def test_R12_a_rejection_has_the_text_of_the_api():
    _, error = await failing(with_fault(Fault(status=400, message=REJECTIONS["B01"])))
    assert (error.error_class, error.status, error.retryable) == ("invalid_request", 400, False)
    assert "`tool_use` ids were found without `tool_result` blocks" in error.message
    assert "practice" in error.hint


async def test_a_status_may_have_its_own_words_and_is_read_by_the_same_table():
    fault = Fault(status=400, message="prompt is too long: 9 tokens > 8 maximum")
    _, error = await failing(with_fault(fault))
    assert error.error_class == "context_overflow"
    assert error.overflow == Overflow(input_tokens=9, limit=8)
    _, error = await failing(with_fault(Fault(status=503, type="overloaded_error")))
    assert error.error_class == "overloaded"


@pytest.mark.parametrize(
    ("status", "error_class", "retryable"),
    [(502, "server", True), (200, "not_found", False), (511, "network", False)],
)
async def test_a_page_of_a_proxy_is_said_to_be_one(
    status: int, error_class: ErrorClass, retryable: bool
):
    _, error = await failing(with_fault(Fault(status=status, html="Bad Gateway")))
    assert (error.error_class, error.retryable) == (error_class, retryable)
    assert "a web page “Bad Gateway (practice fault)”" in error.message


async def test_O22_an_overflow_may_stay_until_the_request_is_smaller():
    model = with_fault(Fault(overflow="until_smaller"), Fault(status=529))
    for text in ("a long request " * 20, "a long request " * 20):
        _, error = await failing(model, text)
        assert error.error_class == "context_overflow"
    _, error = await failing(model, "short")
    assert error.error_class == "overloaded"
    assert isinstance((await parts_of(model, request("a long request " * 20)))[-1], Completed)


async def test_O28_an_overflow_by_max_tokens_goes_away_with_a_lower_one():
    model = with_fault(Fault(overflow="max_tokens"))
    await failing(model, "hello")
    _, error = await failing(model, "hello")
    assert error.overflow is not None
    room = error.overflow.output_room()
    assert room == 2048
    assert "exceed context limit" in error.message
    lower = replace(request("hello"), max_tokens=room)
    assert isinstance((await parts_of(model, lower))[-1], Completed)


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": 200},
        {"message": "x", "cut_after": 3},
        {"html": "x"},
        {"overflow": True, "status": 400},
        {},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match=r"goes with|exactly one|needs an html"):
        Fault(**wrong)


async def test_R14_tokens_are_counted_without_a_fault():
    model = with_fault(Fault(status=429))
    assert await model.count_tokens(request("hello")) > 0
    _, error = await failing(model)
    assert error.error_class == "rate_limit"


async def test_the_faults_over_http_are_of_the_same_classes():
    for fault in DRILL_OVER_HTTP:
        async with LoopbackServer({"turns": [{"text": "hi there", "faults": [fault]}]}) as server:
            provider = provider_for(server)
            with pytest.raises(ProviderError) as caught:
                await ask(provider)
            await provider.aclose()
        _, error = await failing(with_fault(Fault(**fault)), "hello")
        assert error.error_class == caught.value.error_class, fault
        assert error.retryable == caught.value.retryable, fault
        assert error.retry_after == caught.value.retry_after, fault
