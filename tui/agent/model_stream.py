"""Asking the model: what comes back is published as it comes, what went wrong is recorded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from tui.agent import events
from tui.agent.agent_context import AgentContext
from tui.agent.limits import Spent
from tui.core.errors import ProviderError
from tui.core.messages import Block, Usage, text_block, text_of
from tui.provider.base import (
    Alive,
    AttemptStarted,
    Completed,
    ModelSwitched,
    Request,
    RetryScheduled,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)


@dataclass(slots=True)
class ModelStream:
    """Sends the requests of one turn.

    `model` is the one asked last. After an interruption or an error `text` and `thinking` are
    what had been streamed of the answer that never came.
    """

    ctx: AgentContext
    model: str = ""
    _text: list[str] = field(default_factory=list[str])
    _thinking: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def thinking(self) -> str:
        return "".join(self._thinking)

    async def ask(self, request: Request) -> Completed:
        """Send a request and publish what comes back, until the answer is complete.

        Raises what `Provider.stream` raises.
        """
        async with aclosing(self.ctx.provider.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, Completed):
                    self.forget()
                    return part
                self._publish(part, request)
        raise ProviderError(
            "stream_broken",
            "The answer ended before it was complete.",
            hint="Send the prompt again.",
        )

    def forget(self) -> None:
        """What was streamed is void, or complete."""
        self._text.clear()
        self._thinking.clear()

    def _publish(self, part: StreamPart, request: Request) -> None:
        match part:
            case AttemptStarted(attempt, model):
                self.forget()
                self.model = model
                size = len(request.messages), self.ctx.ledger.tokens
                self.ctx.publish(events.RequestSent(*size, model, attempt))
            case TextDelta(text):
                self._text.append(text)
                self.ctx.publish(part)
            case ThinkingDelta(text):
                self._thinking.append(text)
                self.ctx.publish(part)
            case ToolInputDelta() | Alive():
                self.ctx.publish(part)
            case RetryScheduled():
                self._fail("retry", part)
            case ModelSwitched():
                self._fail("failover", part)
            case Completed():
                pass

    def _fail(self, type_: str, part: RetryScheduled | ModelSwitched) -> None:
        """Record what became of an attempt, then show it."""
        fields = events.to_json(part)
        del fields["type"]
        self.ctx.recorder.append(type_, **fields, text=self.text)
        self.forget()
        self.ctx.publish(part)


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """The answer to a question beside the conversation."""

    text: str
    usage: Usage


async def ask_aside(
    ctx: AgentContext,
    question: str,
    max_tokens: int,
    *,
    hear: Callable[[str], None] = lambda _text: None,
) -> SideAnswer:
    """Ask the model beside the conversation: no tools, no history, one answer.

    `max_tokens` bounds the answer; the model's own bound holds as well. `hear` takes its text as
    it comes, "" when it begins anew. What it cost is added to `ctx.side_spent`.

    Raises ProviderError or CredentialsError.
    """
    request = Request(
        model=ctx.model.id,
        system=[],
        messages=[{"role": "user", "content": [text_block(question)]}],
        tools=[],
        max_tokens=max(1, min(max_tokens, ctx.model.max_output)),
    )
    async with aclosing(ctx.provider.stream(request)) as parts:
        async for part in parts:
            match part:
                case AttemptStarted():
                    hear("")
                case TextDelta(text):
                    hear(text)
                case RetryScheduled():
                    ctx.publish(part)
                case Completed(content=content, usage=usage):
                    ctx.side_spent += Spent.on(usage, ctx.price)
                    return SideAnswer(text_of(content), usage)
                case _:
                    pass
    raise ProviderError("stream_broken", "The answer ended before it was complete.")


def debug_line(answer: Completed) -> str:
    """What an answer cost, for the verbose view."""
    figures = ", ".join(f"{name} {count:,}" for name, count in answer.usage.to_json().items())
    return (
        f"[DEBUG] Answer: {answer.model}, {figures}, stop {answer.stop_reason}, "
        f"request {answer.request_id or '—'}"
    )


def unique_ids(content: list[Block], seen: set[str]) -> list[Block]:
    """The content with call ids that the session has not seen; some servers count from 0 again.

    Adds the ids to `seen`. Content without a clash is returned as it is.
    """
    renamed = content
    for index, block in enumerate(content):
        if block.get("type") != "tool_use":
            continue
        given = str(block.get("id") or "call")
        fresh, n = given, 1
        while fresh in seen:
            n += 1
            fresh = f"{given}_{n}"
        seen.add(fresh)
        if fresh != block.get("id"):
            renamed = list(content) if renamed is content else renamed
            renamed[index] = {**block, "id": fresh}
    return renamed
