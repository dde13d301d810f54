"""What real servers said (see `streams/README.md`), read by the adapter, wherever it is cut."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any, Final

import pytest

from tests.provider.conversation import a_request, provider_for
from tests.support.byte_server import ByteServer
from tui.core.errors import ProviderError
from tui.core.facts import TextDelta, ThinkingDelta, ToolInputDelta
from tui.provider.anthropic.read_ahead import PIECE_BYTES
from tui.provider.base import Completed, StreamPart

STREAMS: Final = Path(__file__).parent / "streams"
NAMES: Final = sorted(path.stem for path in STREAMS.glob("*.json"))


def _head(name: str) -> dict[str, Any]:
    return json.loads((STREAMS / f"{name}.json").read_text(encoding="utf-8"))


async def read(
    *chunks: bytes, kind: str = "text/event-stream", at_most: int = PIECE_BYTES
) -> dict[str, Any]:
    """The record of an answer that comes in these chunks: its content and end, or its error. No
    more than so many bytes are handled as one piece.

    Asserts that nothing was shown which is not in the record, in its order.
    """
    parts: list[StreamPart] = []
    error: ProviderError | None = None
    async with ByteServer(chunks, kind) as server:
        provider = provider_for(server)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tui.provider.anthropic.read_ahead.PIECE_BYTES", at_most)
            try:
                async for part in provider.stream(a_request()):
                    parts.append(part)  # noqa: PERF401 - what came before the error counts
            except ProviderError as caught:
                error = caught
        await provider.aclose()
    shown = {
        "text": "".join(part.text for part in parts if isinstance(part, TextDelta)),
        "thinking": "".join(part.text for part in parts if isinstance(part, ThinkingDelta)),
    }
    if error is not None:
        seen = {name: text for name, text in shown.items() if text}
        return {"error": error.error_class, "retryable": error.retryable, **seen}
    answer = parts[-1]
    assert isinstance(answer, Completed)
    for name, text in shown.items():
        blocks = [block for block in answer.content if block["type"] == name]
        assert "".join(block[name] for block in blocks) == text
    calls = [(part.id, part.name) for part in parts if isinstance(part, ToolInputDelta)]
    begun = [one for one, _ in itertools.groupby(calls)]
    known = [(str(b.get("id", "")), b["name"]) for b in answer.content if "name" in b]
    assert set(begun) == set(known)
    usage = {name: count for name, count in answer.usage.to_json().items() if count}
    return {
        "content": answer.content,
        "stop_reason": answer.stop_reason,
        "model": answer.model,
        "usage": usage,
    }


@pytest.mark.parametrize("name", NAMES)
async def test_an_answer_of_a_real_server_has_its_record(name: str) -> None:
    head, body = _head(name), (STREAMS / f"{name}.sse").read_bytes()
    assert await read(body, kind=head["content_type"]) == head["record"]


@pytest.mark.parametrize("name", NAMES)
async def test_an_answer_has_the_same_record_wherever_it_is_cut(name: str) -> None:
    head, body = _head(name), (STREAMS / f"{name}.sse").read_bytes()
    dice = random.Random(name)
    for places in (12, 40):
        edges = [0, *sorted(dice.randrange(len(body) + 1) for _ in range(places)), len(body)]
        chunks = [body[a:b] for a, b in itertools.pairwise(edges)]
        for at_most in (dice.randrange(2, 300), PIECE_BYTES):
            record = await read(*chunks, kind=head["content_type"], at_most=at_most)
            assert record == head["record"]


@pytest.mark.parametrize("name", NAMES)
async def test_an_answer_has_the_same_record_byte_by_byte(name: str) -> None:
    head, body = _head(name), (STREAMS / f"{name}.sse").read_bytes()
    chunks = [body[at : at + 1] for at in range(len(body))]
    for at_most in (1, PIECE_BYTES):
        record = await read(*chunks, kind=head["content_type"], at_most=at_most)
        assert record == head["record"]


_BEGUN: Final = (
    b'data: {"type": "content_block_start", "index": 0, "content_block": {"type": "text",'
    b' "text": "Half"}}\n\n'
)
_REASON: Final = b'data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}\n\n'
_STOP: Final = b'data: {"type": "message_stop"}\n\n'
_HALF_CALL: Final = (
    b'data: {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use",'
    b' "id": "a", "name": "t"}}\n\n'
)


@pytest.mark.parametrize("type_", ["invalid_request_error", "overloaded_error"])
async def test_an_error_within_an_answer_names_what_can_be_left_out(type_: str) -> None:
    words = "messages.0.content.0.cache_control: Extra inputs are not permitted"
    said = {"type": "error", "error": {"type": type_, "message": words}}
    marked = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    async with ByteServer([_BEGUN, b"data: %s\n\n" % json.dumps(said).encode()]) as server:
        provider = provider_for(server)
        with pytest.raises(ProviderError) as raised:
            _ = [part async for part in provider.stream(a_request(system=[marked]))]
        await provider.aclose()
    # trouble that passes is waited out, whatever it names
    assert raised.value.feature == ("" if raised.value.retryable else "cache_marks")
    assert raised.value.retryable == (type_ == "overloaded_error")


@pytest.mark.parametrize(
    "after",
    [
        b"data: [DONE]\n\n",
        b"data: {broken\n\n",
        b"<html>gateway</html>\n\n",
        b'data: {"type": "error", "error": {"type": "api_error"}}\n\n',
        _HALF_CALL,
        b'data: {"type": "message_start", "message": null}\n\n',
        b'data: {"type": "content_bl',
    ],
)
@pytest.mark.parametrize("one_read", [True, False])
async def test_what_comes_after_the_end_counts_for_nothing(after: bytes, one_read: bool) -> None:
    whole = _BEGUN + _REASON + _STOP
    record = await read(whole + after, at_most=PIECE_BYTES if one_read else len(whole))
    assert record["content"] == [{"type": "text", "text": "Half"}]
    assert record["stop_reason"] == "end_turn"


@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n", b"data: [DONE]"])
async def test_an_answer_whose_reason_came_is_whole_without_its_last_event(end: bytes) -> None:
    assert (await read(_BEGUN + _REASON + end))["stop_reason"] == "end_turn"
    cut = {"error": "stream_broken", "retryable": True, "text": "Half"}
    assert await read(_BEGUN + _HALF_CALL + end) == cut


@pytest.mark.parametrize("end", [b"", _REASON])
async def test_what_came_before_a_bad_event_is_shown_and_the_answer_is_broken(
    end: bytes,
) -> None:
    broken = {"error": "stream_broken", "retryable": True, "text": "Half"}
    assert await read(_BEGUN + _HALF_CALL + end + b"data: {broken\n\n" + _STOP) == broken


async def test_something_else_in_a_stream_is_told() -> None:
    page = b"<!doctype html>\n<title>Sign in</title>\n"
    assert (await read(page))["error"] == "not_found"
    chunks = b'data: {"object": "chat.completion.chunk", "choices": []}\n\ndata: [DONE]\n\n'
    assert (await read(chunks))["error"] == "stream_broken"
