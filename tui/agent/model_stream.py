"""Sending a request: what comes back is told as it comes, what went wrong is recorded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from tui.agent import events
from tui.agent.events import Event
from tui.agent.recorder import Recorder
from tui.core.clock import timestamp
from tui.core.errors import ProviderError
from tui.provider.base import (
    Alive,
    AttemptStarted,
    Completed,
    ModelSwitched,
    Provider,
    Request,
    RetryScheduled,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)


@dataclass(slots=True)
class Asking:
    """Sends the requests of one turn.

    `tokens` tells how large the next request is; `model` is the one asked last. After an
    interruption or an error `partial_text` and `partial_thinking` hold what had been streamed of
    the answer that never came.
    """

    provider: Provider
    recorder: Recorder
    publish: Callable[[Event], None]
    tokens: Callable[[], int]
    model: str = ""
    partial_text: list[str] = field(default_factory=list[str])
    partial_thinking: list[str] = field(default_factory=list[str])

    @property
    def said(self) -> str:
        """The text of the answer that never came."""
        return "".join(self.partial_text)

    async def ask(self, request: Request) -> Completed:
        """Send a request and publish what comes back, until the answer is complete.

        Raises what `Provider.stream` raises.
        """
        async with aclosing(self.provider.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, Completed):
                    self.forget()
                    return part
                self._take(part, request)
        raise ProviderError(
            "stream_broken",
            "The answer ended before it was complete.",
            hint="Send the prompt again.",
        )

    def forget(self) -> None:
        """What was streamed is void, or complete."""
        self.partial_text.clear()
        self.partial_thinking.clear()

    def _take(self, part: StreamPart, request: Request) -> None:
        match part:
            case AttemptStarted(attempt, model):
                self.forget()
                self.model = model
                sent = events.RequestSent(len(request.messages), self.tokens(), model, attempt)
                self.publish(sent)
            case TextDelta(text):
                self.partial_text.append(text)
                self.publish(events.TextDelta(text))
            case ThinkingDelta(text):
                self.partial_thinking.append(text)
                self.publish(events.ThinkingDelta(text))
            case ToolInputDelta(id_, name, json):
                self.publish(events.ToolInputDelta(id_, name, json))
            case Alive():
                self.publish(events.Alive())
            case RetryScheduled():
                self._retry(part)
            case ModelSwitched():
                self._switch(part)
            case Completed():
                pass

    def _retry(self, part: RetryScheduled) -> None:
        self.recorder.append(
            "retry",
            attempt=part.attempt,
            max_attempts=part.max_attempts,
            delay_s=part.delay_s,
            reason=part.reason,
            status=part.status,
            error_class=part.error_class,
            request_id=part.request_id,
            received=part.received,
            text=self.said,
        )
        self.forget()
        self.publish(
            events.RetryScheduled(
                part.attempt,
                part.max_attempts,
                part.delay_s,
                part.reason,
                part.status,
                part.error_class,
                part.request_id,
                part.received,
            )
        )

    def _switch(self, part: ModelSwitched) -> None:
        error, back_at = part.error, part.back_at and timestamp(part.back_at)
        told = events.ModelSwitched(part.old, part.new, part.reason, back_at)
        if error is not None:
            told = events.ModelSwitched(
                part.old,
                part.new,
                part.reason,
                back_at,
                error.error_class,
                error.status,
                error.request_id,
                error.received,
            )
        fields = events.to_json(told)
        del fields["type"]
        self.recorder.append("failover", **fields, text=self.said)
        self.forget()
        self.publish(told)
