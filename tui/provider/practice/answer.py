"""An answer, and how it is streamed: word by word, counted honestly, within the window."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from tui import tokens
from tui.clock import Clock
from tui.errors import Overflow, ProviderError
from tui.estimate import request_weight
from tui.messages import Block, Usage, text_block
from tui.provider.base import (
    AttemptStarted,
    Completed,
    ModelInfo,
    Request,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)

MODEL = "practice"
WINDOW = 32_000
MAX_OUTPUT = 4096

_WORDS = re.compile(r"\S{1,80}\s{0,80}|\s{1,80}")
_JSON_CHARS = 48
_THINKING_ROOM = 256
"""With less room for output than this there is no thinking, so that something is said."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, not yet with an id."""

    name: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says. None stands for what follows from the rest."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    stop_reason: str | None = None
    usage: Usage | None = None


INFO = ModelInfo(id=MODEL, window=WINDOW, max_output=MAX_OUTPUT, source="catalogue")
"""What is known of the practice model."""


def model_info(model: str, window: int = WINDOW) -> ModelInfo:
    """The same, under whatever name and with whatever window it is asked."""
    return replace(INFO, id=model, window=window)


async def count_input(request: Request) -> int:
    """The input tokens of a request, counted off the event loop."""
    await tokens.load()
    found = await asyncio.to_thread(
        request_weight, request.system, request.tools, request.messages, tokens.count
    )
    return round(found)


def overflow(found: int, window: int, *, asked: int | None = None) -> ProviderError:
    """The error of a prompt that does not fit, in the words of the Messages API.

    With `asked`, of one that does not fit together with that much output; the window that it
    names is then small enough for that to be true, and still leaves room for half of it.
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
    answer: Answer,
    request: Request,
    *,
    clock: Clock,
    delay_s: float = 0.0,
    first_delay_s: float = 0.0,
    window: int = WINDOW,
    max_output: int | None = MAX_OUTPUT,
) -> AsyncGenerator[StreamPart]:
    """Stream an answer to a request, as the provider port has it.

    `delay_s` passes between deltas, `first_delay_s` before the first. An answer longer than the
    request, `max_output` or the window allows is cut where a model's would be; with `max_output`
    None it is never cut. Raises ProviderError (`context_overflow`) for a request that is larger
    than the window.
    """
    yield AttemptStarted(1, request.model)
    if first_delay_s:
        await clock.sleep(first_delay_s)
    prompt = await count_input(request)
    if prompt >= window:  # an answer needs room for a token, too
        raise overflow(max(prompt, window + 1), window)
    digest = _digest(request)
    limit = None if max_output is None else min(max_output, request.max_tokens, window - prompt)
    output = _Output(limit)
    for part in output.parts(answer, digest):
        yield part
        await (clock.sleep(delay_s) if delay_s else asyncio.sleep(0))
    if output.cut:
        stop = "model_context_window_exceeded" if limit == window - prompt else "max_tokens"
    else:
        stop = answer.stop_reason or ("tool_use" if answer.calls else "end_turn")
    yield Completed(
        content=output.content,
        model=request.model,
        stop_reason=stop,
        usage=answer.usage or Usage(input_tokens=prompt, output_tokens=output.spent),
        request_id=f"req_{MODEL}_{digest}",
    )


@dataclass(slots=True)
class _Output:
    """The content of an answer as it grows, within `limit` tokens (None: all of it)."""

    limit: int | None
    spent: int = 0
    cut: bool = False
    content: list[Block] = field(default_factory=list[Block])

    def parts(self, answer: Answer, digest: str) -> Iterator[StreamPart]:
        """The deltas of an answer. Ends early where the limit is reached."""
        roomy = self.limit is None or self.limit >= _THINKING_ROOM
        if thinking := self._take(answer.thinking if roomy else ""):
            yield from (ThinkingDelta(word) for word in _WORDS.findall(thinking))
            self.content.append(
                {"type": "thinking", "thinking": thinking, "signature": f"{MODEL}_{digest}"}
            )
        if text := self._take(answer.text):
            yield from (TextDelta(word) for word in _WORDS.findall(text))
            self.content.append(text_block(text))
        for index, call in enumerate(answer.calls):
            if self.cut:
                return
            yield from self._call(call, f"toolu_{MODEL}_{digest}_{index}")

    def _call(self, call: Call, call_id: str) -> Iterator[StreamPart]:
        whole = json.dumps(call.input, ensure_ascii=False)
        kept = self._take(whole)
        yield ToolInputDelta(call_id, call.name, "")
        for start in range(0, len(kept), _JSON_CHARS):
            yield ToolInputDelta(call_id, call.name, kept[start : start + _JSON_CHARS])
        arguments = call.input if kept == whole else {"raw_input": kept}
        self.content.append(
            {"type": "tool_use", "id": call_id, "name": call.name, "input": arguments}
        )

    def _take(self, text: str) -> str:
        """As much of a text as there is room for; nothing more after the first cut."""
        if self.cut:
            return ""
        kept = text if self.limit is None else tokens.prefix_within(text, self.limit - self.spent)
        self.spent += tokens.count(kept)
        self.cut = len(kept) < len(text)
        return kept


def _digest(request: Request) -> str:
    """What tells this request's calls from those of every other request of the session."""
    messages = json.dumps(request.messages, default=str).encode()
    return blake2b(messages, digest_size=8).hexdigest()
