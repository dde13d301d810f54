"""The provider port: a request goes in, stream parts come out.

    failover(retry(adapter | practice))        the order of the decorators

A stream yields, per attempt, one `AttemptStarted`, then deltas, and ends with one `Completed`.
`Alive` may occur anywhere after the `AttemptStarted`. Parts with a `type` are events: an agent
publishes them as they are (see `tui.core.facts`).

When an attempt fails and another will follow, a `RetryScheduled` is between them; when another
model follows, a `ModelSwitched`. Every delta since the last `AttemptStarted` is then void, and the
part describes the failed attempt (class, request id, characters received), enough for one line.
When nothing follows, `ProviderError` is raised, with the same information. Closing the iterator (or
cancelling its task) ends the request.

The caller handles the error by its fields, never by its text:

- `park_until` is set: the server does not accept the request any sooner, and the policy does not
  wait that long. Record the moment and send the same request again then.
- `error_class` "context_overflow": first, if `overflow.output_room(margin)` gives a number, send
  the request again with that `max_tokens`; otherwise `overflow.input_tokens` and `.limit` are the
  true sizes to shorten to, if the server named them. An error of a fallback model comes up only
  with a `feature`: else the error is that of the model first asked for.
- "payload_too_large": bytes, not tokens: images first.
- "invalid_request": the same request fails again; change it before it is sent. With
  `thinking_refused` it can be sent without any thinking, which then stays left out; with a
  `feature` (one of those in `tui.provider.anthropic.convert`) without that.

For a person who does not want to wait: `tui.provider.retry.RetryControl`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.facts import (
    Alive,
    ModelSwitched,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from tui.core.messages import Block, Message, Usage


@dataclass(frozen=True, slots=True)
class Request:
    """One request, in the terms of the Messages API. Providers read it and never change it."""

    model: str
    system: list[Block]
    messages: list[Message]
    tools: list[dict[str, Any]]
    max_tokens: int
    thinking: dict[str, Any] | None = None
    effort: str | None = None
    compaction: dict[str, Any] | None = None
    """Asks the server for a compaction block instead of an answer (its own summary)."""
    diagnostics: dict[str, Any] | None = None
    """The answer that this request continues from; the server then says why the cache was
    missed."""
    binding_reports: bool = False
    """True if the server is to report what it did with earlier thinking."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The properties of a model. `window` and `max_output` are in tokens.

    The other fields are empty if not known: then nothing special is asked of the model.

    `efforts` are the levels that a request may ask for, the lowest first; `effort` is the default
    level. `thinking_types` are the types of thinking that a request may name, `thinks`: the model
    thinks without being asked; `display` is the way that thinking is then shown.

    `system_messages`: messages of the role "system" may be in the middle of a conversation;
    `tool_additions`: they may bring tools; `turn_effort`: they may set the effort. `binds`: its
    thinking is bound to everything before it. `compacts`: the server summarizes on request.
    `documents`: it reads PDFs. `web_search`: its server searches the web for it. `batches`: it may
    be used in message batches, as far as is known.

    `cached_from` is the size of the smallest prompt that is cached. `retires_at` is the day or
    moment (ISO 8601) of its retirement, once one is set. `line` is haiku, sonnet, …
    """

    id: str
    window: int
    max_output: int
    source: Literal["config", "server", "catalogue", "assumed"]
    efforts: tuple[str, ...] = ()
    effort: str = ""
    thinking_types: tuple[str, ...] = ()
    thinks: bool = False
    display: str = ""
    system_messages: bool = False
    tool_additions: bool = False
    turn_effort: bool = False
    binds: bool = False
    compacts: bool = False
    documents: bool = False
    web_search: bool = False
    batches: bool = True
    cached_from: int = 0
    retires_at: str = ""
    line: str = ""

    @property
    def adaptive_thinking(self) -> bool:
        """True if the model itself decides how much it thinks."""
        return "adaptive" in self.thinking_types


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """The request is being sent. `attempt` counts from 1."""

    attempt: int
    model: str


@dataclass(frozen=True, slots=True)
class ServerToolCalled:
    """The server runs a tool of its own (see `tui.core.server_results`)."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServerToolReturned:
    """The result block of one of the server's tools. Its call may be in an answer before this
    one."""

    block: Block


@dataclass(frozen=True, slots=True)
class Completed:
    """The whole answer. `content` is kept verbatim, including thinking and signatures.

    The input of every tool_use block is an object; JSON that could not be parsed is `{"raw_input":
    "…"}`.
    """

    content: list[Block]
    model: str
    stop_reason: str
    usage: Usage
    request_id: str | None = None
    message_id: str = ""
    stop_details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The reason why the model declined: `category` and `explanation`, each text or null."""
    cache_miss: str = ""
    """The type of the server's reason why not everything was read from the cache."""
    missed_tokens: int = 0
    transformations: Sequence[Mapping[str, Any]] = ()
    """Reports of what the server did with earlier thinking: `type`, `path` and `reason`."""
    says_why: bool = True
    """False if the server gave no stop reason; `stop_reason` is then what the content suggests."""


StreamPart: TypeAlias = (
    AttemptStarted
    | TextDelta
    | ThinkingDelta
    | ToolInputDelta
    | ServerToolCalled
    | ServerToolReturned
    | Alive
    | RetryScheduled
    | ModelSwitched
    | Completed
)


def characters(part: StreamPart) -> int:
    """Count the characters of an answer in a part."""
    match part:
        case TextDelta(text) | ThinkingDelta(text) | ToolInputDelta(text=text):
            return len(text)
        case _:
            return 0


class Provider(Protocol):
    """A model that can be asked."""

    def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        """Send a request and yield its parts; see the module's text for the order.

        Raises ProviderError, or CredentialsError before anything is sent.
        """
        ...

    async def count_tokens(self, request: Request) -> int:
        """Return the input tokens of a request, counted on the model's side.

        Raises the same errors as `stream`. Not every server can count: callers that only want a
        figure fall back on an estimate.
        """
        ...

    async def load(self) -> None:
        """Load heavy modules ahead of the first request. Raises the same errors as `stream`."""
        ...

    async def model_info(self, model: str) -> ModelInfo:
        """Return what is known of a model. Never raises: falls back to catalogue and assumption."""
        ...

    async def aclose(self) -> None: ...
