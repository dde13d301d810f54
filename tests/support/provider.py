"""A provider whose answers a test writes down, one per request; exhausted, it raises."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeAlias

from tui.core.errors import ProviderError
from tui.core.facts import TextDelta, ThinkingDelta, ToolInputDelta
from tui.core.messages import Block, Usage, text_block, text_of
from tui.provider.base import AttemptStarted, Completed, ModelInfo, Request, StreamPart

Answer: TypeAlias = list[Block] | ProviderError | Callable[[Request], list[Block]]


def say(text: str) -> list[Block]:
    return [text_block(text)]


def call(name: str, /, id_: str = "", **arguments: Any) -> Block:
    return {"type": "tool_use", "id": id_ or f"toolu_{name}", "name": name, "input": arguments}


class Hang(Exception):  # noqa: N818 - a word of the script, not an error
    """In a script: stream the text, then never end."""

    def __init__(self, text: str = "") -> None:
        self.text = text


class ScriptedProvider:
    """Answers from a list. `requests` holds what was asked; `waiting` is set while it hangs."""

    def __init__(self, *answers: Answer | Hang) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.waiting = asyncio.Event()
        self.closed = False
        self.window = 200_000

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        self.requests.append(request)
        if not self.answers:
            raise AssertionError("the script is exhausted")
        answer = self.answers.pop(0)
        yield AttemptStarted(1, request.model)
        if isinstance(answer, Hang):
            yield TextDelta(answer.text)
            self.waiting.set()
            await asyncio.Event().wait()
        if isinstance(answer, ProviderError):
            raise answer
        assert not isinstance(answer, Hang)
        content = answer(request) if callable(answer) else answer
        for block in content:
            match block["type"]:
                case "text":
                    yield TextDelta(str(block["text"]))
                case "thinking":
                    yield ThinkingDelta(str(block["thinking"]))
                case "tool_use":
                    yield ToolInputDelta(block["id"], block["name"], json.dumps(block["input"]))
                case _:
                    pass
        calls = any(block["type"] == "tool_use" for block in content)
        yield Completed(
            content,
            request.model,
            "tool_use" if calls else "end_turn",
            Usage(input_tokens=100, output_tokens=10),
            "req_test",
        )

    async def count_tokens(self, request: Request) -> int:
        return len(request.messages)

    async def load(self) -> None:
        pass

    async def model_info(self, model: str) -> ModelInfo:
        return ModelInfo(model, self.window, 8192, "server")

    async def aclose(self) -> None:
        self.closed = True


def last_user_text(request: Request) -> str:
    return text_of(request.messages[-1]["content"])
