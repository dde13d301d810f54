"""One question to a model beside the conversation: no tools, no history, one answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from tui.agent import events
from tui.agent.events import Event
from tui.core.errors import ProviderError
from tui.core.messages import Usage, text_block, text_of
from tui.provider.base import (
    AttemptStarted,
    Completed,
    ModelInfo,
    Provider,
    Request,
    RetryScheduled,
    TextDelta,
)


@dataclass(frozen=True, slots=True)
class Question:
    """`max_tokens` bounds the answer; the model's own bound holds as well."""

    model: ModelInfo
    prompt: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """`whole`: the answer came to its end, and not to the bound."""

    text: str
    usage: Usage
    whole: bool = True


async def ask(
    provider: Provider,
    question: Question,
    *,
    hear: Callable[[str], None] = lambda _text: None,
    publish: Callable[[Event], None] = lambda _event: None,
) -> Reply:
    """Ask and wait for the answer; `hear` takes its text as it comes, "" when it begins anew.

    Raises ProviderError or CredentialsError.
    """
    request = Request(
        model=question.model.id,
        system=[],
        messages=[{"role": "user", "content": [text_block(question.prompt)]}],
        tools=[],
        max_tokens=max(1, min(question.max_tokens, question.model.max_output)),
    )
    async with aclosing(provider.stream(request)) as parts:
        async for part in parts:
            match part:
                case AttemptStarted():
                    hear("")
                case TextDelta(text):
                    hear(text)
                case RetryScheduled():
                    publish(
                        events.RetryScheduled(
                            part.attempt,
                            part.max_attempts,
                            part.delay_s,
                            part.reason,
                            part.status,
                            part.error_class,
                        )
                    )
                case Completed(content=content, usage=usage, stop_reason=stop):
                    return Reply(text_of(content), usage, stop != "max_tokens")
                case _:
                    pass
    raise ProviderError("stream_broken", "The answer ended before it was complete.")
