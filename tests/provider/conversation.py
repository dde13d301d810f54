"""What the tests of the adapter ask, and how they listen."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from tests.support.byte_server import ByteServer
from tests.support.clock import ManualClock
from tests.support.server import LoopbackServer
from tui.core.messages import Message, text_block
from tui.provider.anthropic import AnthropicProvider
from tui.provider.base import Completed, Provider, Request, StreamPart

MODEL = "claude-sonnet-5-5"


def user(text: str) -> Message:
    return {"role": "user", "content": [text_block(text)]}


def a_request(*messages: Message, **options: Any) -> Request:
    given: dict[str, Any] = {
        "model": MODEL,
        "system": [],
        "messages": list(messages) or [user("hello")],
        "tools": [],
        "max_tokens": 1000,
    }
    return Request(**given | options)


def provider_for(server: LoopbackServer | ByteServer, **options: Any) -> AnthropicProvider:
    """The adapter before a server; its clock stands still unless a test moves it."""
    given: dict[str, Any] = {"api_key": "k", "base_url": server.url, "clock": ManualClock()}
    return AnthropicProvider(**given | options)


async def parts_of(stream: AsyncGenerator[StreamPart]) -> list[StreamPart]:
    return [part async for part in stream]


async def ask(provider: Provider, request: Request | None = None) -> Completed:
    """The complete answer to a request."""
    parts = await parts_of(provider.stream(request or a_request()))
    last = parts[-1]
    assert isinstance(last, Completed)
    return last
