"""The loop: ask the model, run what it calls, until it has nothing left to do.

`Turn` emits; it never yields. Whoever iterates does so at the edge (`Agent.send`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from tui.agent import events
from tui.agent.dispatch import Dispatcher
from tui.agent.events import Event
from tui.agent.limits import Spent
from tui.agent.recorder import Recorder
from tui.config import Price
from tui.context.ledger import Ledger
from tui.errors import ProviderError
from tui.messages import Block, text_of, tool_calls
from tui.provider.base import (
    AttemptStarted,
    Completed,
    Provider,
    Request,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)


@dataclass(slots=True)
class Turn:
    """One prompt's way through the model and the tools.

    `measured` tells how full the context is now; `prepare` makes the next request or raises
    LimitReachedError; `take_queued` records what was typed meanwhile and says whether there was
    any; `call_ids` are the ids of all calls of the session; `debug` shows a line while verbose is
    on. After an interruption `partial_text` and `partial_thinking` hold what the model had said of
    the answer that never came.
    """

    provider: Provider
    recorder: Recorder
    dispatcher: Dispatcher
    ledger: Ledger
    measured: Callable[[], Sequence[Event]]
    call_ids: set[str]
    prepare: Callable[[], Request]
    take_queued: Callable[[], Awaitable[bool]]
    publish: Callable[[Event], None]
    debug: Callable[[str], None]
    prices: Mapping[str, Price]
    spent: Spent = field(default_factory=Spent)
    partial_text: list[str] = field(default_factory=list[str])
    partial_thinking: list[str] = field(default_factory=list[str])

    async def run(self) -> None:
        """Go on until the model is done and nothing is queued."""
        while True:
            request = self.prepare()
            answer = await self._ask(request)
            self.spent += Spent.on(answer.usage, self.prices.get(request.model))
            content = await self._record(answer)
            calls = tool_calls(content)
            if calls:
                await self.dispatcher.run_all(calls)
            self._stop_if_cut(answer, has_calls=bool(calls))
            for fact in self.measured():
                self.publish(fact)
            queued = await self.take_queued()
            if not calls and not queued and answer.stop_reason != "pause_turn":
                return

    async def _ask(self, request: Request) -> Completed:
        """Send a request and publish what comes back, until the answer is complete."""
        async with aclosing(self.provider.stream(request)) as parts:
            async for part in parts:
                match part:
                    case AttemptStarted(attempt, model):
                        self._forget_partial()
                        self.publish(
                            events.RequestSent(
                                len(request.messages), self.ledger.tokens, model, attempt
                            )
                        )
                    case TextDelta(text):
                        self.partial_text.append(text)
                        self.publish(events.TextDelta(text))
                    case ThinkingDelta(text):
                        self.partial_thinking.append(text)
                        self.publish(events.ThinkingDelta(text))
                    case ToolInputDelta(id_, name, json):
                        self.publish(events.ToolInputDelta(id_, name, json))
                    case RetryScheduled():
                        self._retry(part)
                    case Completed():
                        self._forget_partial()
                        return part
                    case _:
                        pass
        raise ProviderError(
            "stream_broken",
            "The answer ended before it was complete.",
            hint="Send the prompt again.",
        )

    def _retry(self, part: RetryScheduled) -> None:
        self.recorder.append(
            "retry",
            attempt=part.attempt,
            max_attempts=part.max_attempts,
            delay_s=part.delay_s,
            reason=part.reason,
            status=part.status,
            error_class=part.error_class,
            text="".join(self.partial_text),
        )
        self._forget_partial()
        self.publish(
            events.RetryScheduled(
                part.attempt,
                part.max_attempts,
                part.delay_s,
                part.reason,
                part.status,
                part.error_class,
            )
        )

    async def _record(self, answer: Completed) -> list[Block]:
        """Record the answer, then show it. Returns its content as recorded.

        Cancelled meanwhile, it closes the calls of the answer, which stand in the record now.
        """
        content = unique_ids(answer.content, self.call_ids)
        self.recorder.append(
            "assistant",
            content=content,
            model=answer.model,
            usage=answer.usage.to_json(),
            stop_reason=answer.stop_reason,
            request_id=answer.request_id,
        )
        said = events.AssistantMessage(text_of(content), answer.stop_reason, answer.usage)
        try:
            await self.recorder.show(said, *self.measured())
        except asyncio.CancelledError:
            await self.dispatcher.close(tool_calls(content))
            raise
        self.debug(_described(answer))
        return content

    def _stop_if_cut(self, answer: Completed, *, has_calls: bool) -> None:
        """An answer that did not end by itself is said to be so, with the way on."""
        match answer.stop_reason:
            case "refusal":
                raise ProviderError(
                    "refusal",
                    "The model declined to answer.",
                    hint="Rephrase the prompt, or try another model with /model.",
                )
            case "model_context_window_exceeded":
                raise ProviderError(
                    "context_overflow",
                    "The context window is full.",
                    hint="Start a new session with /new.",
                )
            case "max_tokens" if not has_calls:
                self.publish(
                    events.Notice("The answer was cut at the output limit. Say “continue”.")
                )
            case _:
                pass

    def _forget_partial(self) -> None:
        self.partial_text.clear()
        self.partial_thinking.clear()


def _described(answer: Completed) -> str:
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
