"""What the practice model streams: deltas, usage, ids, and the limits of its window."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.provider.practice_world import World, parts_of
from tests.support.clock import FakeClock
from tui.core.errors import ProviderError
from tui.core.facts import TextDelta, ThinkingDelta, ToolInputDelta
from tui.core.messages import Message, text_block, text_of
from tui.provider.base import AttemptStarted, Completed, Request, StreamPart
from tui.provider.practice.provider import PracticeModel
from tui.provider.practice.stream import count_input
from tui.tokens.estimate import weight


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def completed(parts: list[StreamPart]) -> Completed:
    last = parts[-1]
    assert isinstance(last, Completed)
    return last


def thought(answer: Completed) -> str:
    return "".join(b["thinking"] for b in answer.content if b["type"] == "thinking")


async def test_the_parts_come_in_order_and_add_up_to_the_answer(world: World):
    world.type("create notes.txt with a somewhat longer text that is more than one delta long")
    parts = await parts_of(world.model, world.request())
    answer = completed(parts)
    assert parts[0] == AttemptStarted(1, "practice")
    kinds = [type(part).__name__ for part in parts[1:-1]]
    assert list(dict.fromkeys(kinds)) == ["ThinkingDelta", "TextDelta", "ToolInputDelta"]
    assert kinds == sorted(kinds, key=["ThinkingDelta", "TextDelta", "ToolInputDelta"].index)
    assert "".join(p.text for p in parts if isinstance(p, ThinkingDelta)) == thought(answer)
    text = "".join(p.text for p in parts if isinstance(p, TextDelta))
    assert text == text_of(answer.content)
    assert kinds.count("TextDelta") == len(text.split())
    deltas = [p for p in parts if isinstance(p, ToolInputDelta)]
    assert len(deltas) > 2
    assert deltas[0].text == ""
    call = answer.content[-1]
    assert {(d.id, d.name) for d in deltas} == {(call["id"], "write_file")}
    assert json.loads("".join(d.text for d in deltas)) == call["input"]
    assert answer.stop_reason == "tool_use"


async def test_the_same_request_gives_the_same_answer_and_others_give_other_ids(world: World):
    world.type("run echo a")
    first = await parts_of(world.model, world.request())
    assert first == await parts_of(PracticeModel(FakeClock()), world.request())
    await world.go_on()
    await world.ask("run echo a")  # the world refuses an id that was there before
    assert len(world.calls) == 2


async def test_a_delay_passes_between_deltas_on_the_clock(world: World):
    clock = FakeClock()
    world.type("hello")
    parts = await parts_of(PracticeModel(clock, delay_s=0.008), world.request())
    assert clock.slept == [0.008] * (len(parts) - 2)
    assert len(parts) > 20


async def test_usage_is_counted_over_everything_that_was_sent(world: World):
    world.type("hello")
    request = world.request()
    answer = completed(await parts_of(world.model, request))
    usage = answer.usage
    expected = await count_input(request)
    assert usage.input_tokens == expected > weight(json.dumps(request.tools)) // 2
    assert usage.output_tokens == round(weight(text_of(answer.content)))
    assert usage.prompt_tokens == usage.input_tokens
    world.messages.append(Message(role="assistant", content=answer.content))
    world.type("x" * 4000)
    longer = completed(await parts_of(world.model, world.request())).usage
    assert longer.input_tokens >= expected + usage.output_tokens + 1000


async def test_it_thinks_at_the_start_of_a_turn_unless_thinking_is_off(world: World):
    world.write("a.txt", "alpha")
    world.type("read a.txt")
    first = await world.step()
    assert thought(first) == "The prompt asks for one thing: read `a.txt`."
    assert first.content[0]["signature"]
    assert thought(await world.step()) == ""
    world.thinking = {"type": "disabled"}
    world.type("list")
    assert thought(await world.step()) == ""


async def test_a_request_over_the_window_overflows_in_the_words_of_the_api(world: World):
    world.type("read " + "word " * 40_000)
    with pytest.raises(ProviderError) as failed:
        await parts_of(world.model, world.request())
    error, request = failed.value, world.request()
    size = await count_input(request)
    assert error.error_class == "context_overflow"
    assert error.message == f"prompt is too long: {size} tokens > 32000 maximum"
    assert error.status == 400
    assert not error.retryable


async def test_a_window_with_no_room_at_all_overflows(world: World):
    world.type("help")
    request = world.request()
    size = await count_input(request)
    with pytest.raises(ProviderError, match="prompt is too long"):
        await parts_of(PracticeModel(FakeClock(), window=size), request)


async def test_what_is_known_of_it():
    model = PracticeModel(FakeClock())
    info = await model.model_info("practice")
    assert (info.id, info.window, info.max_output) == ("practice", 32_000, 4096)
    assert info.source == "catalogue"
    await model.aclose()


async def test_odd_requests_get_an_answer():
    model = PracticeModel(FakeClock())
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}
    for content in ([], [image], [text_block("")], [text_block("\ud800")], [{"type": "novel"}]):
        request = Request("practice", [], [Message(role="user", content=content)], [], 100)
        assert text_of(completed(await parts_of(model, request)).content)
    assert completed(await parts_of(model, Request("practice", [], [], [], 100))).content
