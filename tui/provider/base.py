"""The provider port: a request goes in, stream parts come out.

A stream yields, per attempt, one `AttemptStarted`, then deltas, and ends with one `Completed`.
When an attempt fails and another will follow, a `RetryScheduled` stands between them, and every
delta since the last `AttemptStarted` is void. When no other follows, `ProviderError` is raised.
Closing the iterator (or cancelling its task) ends the request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from tui.errors import ErrorClass
from tui.messages import Block, Message, Usage


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as the Messages API has it. Providers read it and never change it."""

    model: str
    system: list[Block]
    messages: list[Message]
    tools: list[dict[str, Any]]
    max_tokens: int
    thinking: dict[str, Any] | None = None
    effort: str | None = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model. `window` and `max_output` are in tokens."""

    id: str
    window: int
    max_output: int
    source: Literal["config", "server", "catalogue", "assumed"]
    adaptive_thinking: bool = False


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """The request is being sent. `attempt` counts from 1."""

    attempt: int
    model: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolInputDelta:
    """A piece of the JSON of a tool call's input. The first piece of a call may be empty."""

    id: str
    name: str
    json: str


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """An attempt failed and the next starts in `delay_s` seconds.

    `attempt` is the number of the coming retry, 1 to `max_attempts`; `status` is None without
    an HTTP answer.
    """

    attempt: int
    max_attempts: int
    delay_s: float
    reason: str
    status: int | None
    error_class: ErrorClass


@dataclass(frozen=True, slots=True)
class Completed:
    """The whole answer. `content` is kept verbatim, thinking and signatures included.

    The input of every tool_use block is an object; JSON that could not be parsed is
    `{"raw_input": "…"}`.
    """

    content: list[Block]
    model: str
    stop_reason: str
    usage: Usage
    request_id: str | None = None


StreamPart: TypeAlias = (
    AttemptStarted | TextDelta | ThinkingDelta | ToolInputDelta | RetryScheduled | Completed
)


class Provider(Protocol):
    """A model that can be asked."""

    def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        """Send a request and yield its parts; see the module's text for the order.

        Raises ProviderError, or CredentialsError before anything is sent.
        """
        ...

    async def load(self) -> None:
        """Load what is heavy ahead of the first request. Raises what `stream` would."""
        ...

    async def model_info(self, model: str) -> ModelInfo:
        """What is known of a model. Never raises: falls back to catalogue and assumption."""
        ...

    async def aclose(self) -> None: ...
