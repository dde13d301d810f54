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
from tui.provider.base import Completed, StreamPart

STREAMS: Final = Path(__file__).parent / "streams"
NAMES: Final = sorted(path.stem for path in STREAMS.glob("*.json"))


def _head(name: str) -> dict[str, Any]:
    return json.loads((STREAMS / f"{name}.json").read_text(encoding="utf-8"))


async def read(*pieces: bytes, kind: str = "text/event-stream") -> dict[str, Any]:
    """The record of an answer that comes in these reads: its content and end, or its error.

    Asserts that nothing was shown which is not in the record, in its order.
    """
    parts: list[StreamPart] = []
    error: ProviderError | None = None
    async with ByteServer(pieces, kind) as server:
        provider = provider_for(server)
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
async def test_48_an_answer_of_a_real_server_has_its_record(name: str) -> None:
    head, body = _head(name), (STREAMS / f"{name}.sse").read_bytes()
    assert await read(body, kind=head["content_type"]) == head["record"]


@pytest.mark.parametrize("name", NAMES)
async def test_48_an_answer_has_the_same_record_wherever_it_is_cut(name: str) -> None:
    head, body = _head(name), (STREAMS / f"{name}.sse").read_bytes()
    dice = random.Random(name)  # noqa: S311 - the same cuts in every run
    for places in (12, 40):
        edges = [0, *sorted(dice.randrange(len(body) + 1) for _ in range(places)), len(body)]
        pieces = [body[a:b] for a, b in itertools.pairwise(edges)]
        assert await read(*pieces, kind=head["content_type"]) == head["record"]


@pytest.mark.parametrize("name", NAMES)
async def test_48_an_answer_has_the_same_record_byte_by_byte(name: str) -> None:
    head, body = _head(name), (STREAMS / f"{name}.sse").read_bytes()
    pieces = [body[at : at + 1] for at in range(len(body))]
    assert await read(*pieces, kind=head["content_type"]) == head["record"]
