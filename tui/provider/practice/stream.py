"""Streaming of a turn: word by word, counted honestly, within the window."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from hashlib import blake2b

import msgspec

from tui.core.clock import Clock
from tui.core.errors import Overflow, ProviderError
from tui.core.facts import TextDelta, ThinkingDelta, ToolInputDelta
from tui.core.messages import Block, Usage, text_block
from tui.provider.base import AttemptStarted, Completed, Request, StreamPart
from tui.provider.practice.script import ScriptedTurn
from tui.tokens.estimate import request_weight, weight

MODEL = "practice"
WINDOW = 32_000

_WORDS = re.compile(r"\S{1,80}\s{0,80}|\s{1,80}")
_JSON_CHARS = 48


async def count_input(request: Request) -> int:
    """Count the input tokens of a request, off the event loop."""
    tokens = await asyncio.to_thread(
        request_weight, request.system, request.tools, request.messages
    )
    return round(tokens)


def overflow(found: int, window: int, *, asked: int | None = None) -> ProviderError:
    """The error of a prompt that does not fit, in the words of the Messages API.

    With `asked`, of one that does not fit together with that much output; the window that it names
    is then small enough for that to be true, and still leaves room for half of it.
    """
    if asked is None:
        text = f"prompt is too long: {found} tokens > {window} maximum"
        sizes = Overflow(input_tokens=found, limit=window)
    else:
        window = min(window, found + max(1, asked // 2))
        text = (
            f"input length and `max_tokens` exceed context limit: {found} + {asked} > {window}, "
            "decrease input length or `max_tokens` and try again"
        )
        sizes = Overflow(found, asked, window)
    return ProviderError(
        "context_overflow",
        text,
        hint="The practice model has a small window. Start a new session with /new.",
        status=400,
        overflow=sizes,
    )


async def stream(
    turn: ScriptedTurn, request: Request, *, clock: Clock, delay_s: float, window: int
) -> AsyncGenerator[StreamPart]:
    """Stream a turn as the answer to a request. `delay_s` passes between deltas.

    Raises ProviderError (`context_overflow`) for a request that fills the window.
    """
    yield AttemptStarted(1, request.model)
    if turn.delay_s:
        await clock.sleep(turn.delay_s)
    prompt = await count_input(request)
    if prompt >= window:  # an answer needs room for a token, too
        raise overflow(max(prompt, window + 1), window)
    digest = _digest(request)
    for part in _deltas(turn, digest):
        yield part
        await (clock.sleep(delay_s) if delay_s else asyncio.sleep(0))
    yield Completed(
        content=_content(turn, digest),
        model=request.model,
        stop_reason=turn.stop_reason or ("tool_use" if turn.tools else "end_turn"),
        usage=_usage(turn, prompt),
        request_id=f"req_{MODEL}_{digest}",
    )


def _deltas(turn: ScriptedTurn, digest: str) -> Iterator[StreamPart]:
    yield from (ThinkingDelta(word) for word in _WORDS.findall(turn.thinking))
    yield from (TextDelta(word) for word in _WORDS.findall(turn.text))
    for index, tool in enumerate(turn.tools):
        call_id, whole = _call_id(digest, index), _json(tool.input)
        yield ToolInputDelta(call_id, tool.name, "")
        for start in range(0, len(whole), _JSON_CHARS):
            yield ToolInputDelta(call_id, tool.name, whole[start : start + _JSON_CHARS])


def _content(turn: ScriptedTurn, digest: str) -> list[Block]:
    thinking = {
        "type": "thinking",
        "thinking": turn.thinking,
        "signature": f"{MODEL}_{digest}",
    }
    calls = (
        {"type": "tool_use", "id": _call_id(digest, index), "name": tool.name, "input": tool.input}
        for index, tool in enumerate(turn.tools)
    )
    texts = [text_block(turn.text)] if turn.text else []
    return [*([thinking] if turn.thinking else []), *texts, *calls]


def _usage(turn: ScriptedTurn, prompt: int) -> Usage:
    if turn.usage is not None:
        return Usage(**msgspec.structs.asdict(turn.usage))
    written = (turn.thinking, turn.text, *(_json(tool.input) for tool in turn.tools))
    return Usage(input_tokens=prompt, output_tokens=round(sum(map(weight, written))))


def _json(arguments: object) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _call_id(digest: str, index: int) -> str:
    return f"toolu_{MODEL}_{digest}_{index}"


def _digest(request: Request) -> str:
    """Distinguish this request's calls from those of every other request of the session."""
    messages = json.dumps(request.messages, default=str).encode()
    return blake2b(messages, digest_size=8).hexdigest()
