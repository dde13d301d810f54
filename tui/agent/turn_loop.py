"""The loop: ask the model, run what it calls, until it has nothing left to do.

`Turn` emits; it never yields. Whoever iterates does so at the edge (`Agent.send`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tui.agent import events
from tui.agent.events import Event
from tui.agent.limits import Spent
from tui.agent.loop_detection import MOST, Repeats
from tui.agent.model_stream import Asking
from tui.agent.recorder import Recorder
from tui.agent.tool_dispatch import Dispatcher
from tui.context.binding import BOUND_TO, has_thinking
from tui.core.config import Price
from tui.core.errors import HoldfastError, ProviderError
from tui.core.messages import Block, text_of, tool_calls
from tui.provider.base import Completed, Request


@dataclass(slots=True)
class Turn:
    """One prompt's way through the model and the tools.

    `measured` tells how full the context is now; `hash_of` names the request that a model was sent
    last (see `tui.context.binding`); `prepare` makes the next request or raises
    LimitReachedError; `mend` says of an error and the request that it met whether to go on with
    another request, once it has done or waited for what makes that worthwhile; `room` whether it
    could make room after an answer that the window cut short. `take_queued` records what was
    typed meanwhile and says whether there was any; `call_ids` are the ids of all calls of the
    session; `debug` shows a line while verbose is on.
    """

    asking: Asking
    recorder: Recorder
    dispatcher: Dispatcher
    measured: Callable[[], Sequence[Event]]
    hash_of: Callable[[str], str]
    call_ids: set[str]
    prepare: Callable[[], Awaitable[Request]]
    mend: Callable[[ProviderError, Request], Awaitable[bool]]
    room: Callable[[], Awaitable[bool]]
    take_queued: Callable[[], Awaitable[bool]]
    publish: Callable[[Event], None]
    debug: Callable[[str], None]
    prices: Mapping[str, Price]
    spent: Spent = field(default_factory=Spent)
    _repeats: Repeats = field(default_factory=Repeats)

    async def run(self) -> None:
        """Go on until the model is done and nothing is queued."""
        while True:
            answer = await self._answer()
            self.spent += Spent.on(answer.usage, self.prices.get(self.asking.model))
            content = await self._record(answer)
            calls = tool_calls(content)
            if calls:
                await self.dispatcher.run_all(calls)
                self._stop_if_going_round(calls)
            cut = await self._stop_if_cut(answer, has_calls=bool(calls))
            for fact in self.measured():
                self.publish(fact)
            queued = await self.take_queued()
            if not calls and not queued and not cut and answer.stop_reason != "pause_turn":
                return

    async def _answer(self) -> Completed:
        """Ask until there is an answer, with other requests where that helps."""
        while True:
            request = await self.prepare()
            try:
                return await self.asking.ask(request)
            except ProviderError as error:
                if not await self.mend(error, request):
                    raise
            self.asking.forget()

    async def _record(self, answer: Completed) -> list[Block]:
        """Record the answer, then show it. Returns its content as recorded.

        Cancelled meanwhile, it closes the calls of the answer, which stand in the record now.
        """
        content = unique_ids(answer.content, self.call_ids)
        thought = has_thinking(content)
        bound = {BOUND_TO: self.hash_of(self.asking.model)} if thought else {}
        self.recorder.append(
            "assistant",
            content=content,
            model=answer.model,
            usage=answer.usage.to_json(),
            stop_reason=answer.stop_reason,
            request_id=answer.request_id,
            **bound,
        )
        said = events.AssistantMessage(
            text_of(content), answer.stop_reason, answer.usage, answer.request_id
        )
        try:
            await self.recorder.show(said, *self.measured())
        except asyncio.CancelledError:
            await self.dispatcher.close(tool_calls(content))
            raise
        self.debug(_described(answer))
        return content

    async def _stop_if_cut(self, answer: Completed, *, has_calls: bool) -> bool:
        """An answer that did not end by itself is said to be so, with the way on.

        Returns whether the model is to go on with it.
        """
        match answer.stop_reason:
            case "refusal":
                raise ProviderError(
                    "refusal",
                    "The model declined to answer.",
                    hint="Rephrase the prompt, or try another model with /model.",
                )
            case "model_context_window_exceeded":
                if await self.room():
                    return True
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
        return False

    def _stop_if_going_round(self, calls: Sequence[Block]) -> None:
        """The loop breaker. Raises HoldfastError."""
        records = self.recorder.session.records
        call = self._repeats.see(calls, records[-4 * len(calls) - 64 :])
        if call is None:
            return
        name = str(call.get("name"))
        self.publish(events.LoopStopped(name, call["input"], MOST))
        raise HoldfastError(
            f"{name} was called {MOST} times with the same result, so the turn was stopped.",
            hint="Say what to do differently, or /retry to let it go on.",
        )


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
