"""One turn: ask the model, run what it calls, until it has nothing left to do.

Whatever happens inside, the record is closed and the end is published: nothing is raised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from tui.agent import events
from tui.agent.agent_context import AgentContext
from tui.agent.compaction import Compactor
from tui.agent.limits import LOOP_REPEATS, LoopDetector, Spent
from tui.agent.mcp_tools import McpTools
from tui.agent.model_stream import ModelStream, debug_line, unique_ids
from tui.agent.overflow_recovery import OverflowRecovery
from tui.agent.prompts import AgentPrompt, PromptIntake
from tui.agent.pruning import PruneSchedule
from tui.agent.recovery import DeferredRetry, RequestRepair
from tui.agent.request_builder import RequestBuilder
from tui.agent.tool_dispatch import ToolDispatcher
from tui.context.binding import BOUND_TO, BREAK, has_thinking
from tui.core.errors import CredentialsError, HoldfastError, LimitReachedError, ProviderError
from tui.core.messages import Block, blocks_of, text_of, tool_calls
from tui.provider.base import Completed, Request

log = logging.getLogger(__name__)

_THINKING_REFUSED = (
    "The server refused the reasoning of earlier answers. The request is sent again without it, "
    "and it stays left out."
)


@dataclass(slots=True)
class TurnRunner:
    """Runs the turns of one agent, one at a time.

    `spent` is what all turns have cost. `closing` is set when the program goes: a parked turn
    then stays parked.
    """

    ctx: AgentContext
    requests: RequestBuilder
    prompts: PromptIntake
    dispatcher: ToolDispatcher
    compactor: Compactor
    pruning: PruneSchedule
    mcp: McpTools
    repair: RequestRepair
    deferred: DeferredRetry
    spent: Spent = field(default_factory=Spent)
    closing: bool = False
    _call_ids: set[str] = field(default_factory=set[str])
    """Of all calls of the session."""
    # Of the turn that runs:
    _stream: ModelStream = field(init=False)
    _overflow: OverflowRecovery = field(init=False)
    _loops: LoopDetector = field(init=False)
    _turn_spent: Spent = field(init=False)

    def __post_init__(self) -> None:
        for record in self.ctx.records:
            if record.type == "assistant":
                calls = tool_calls(blocks_of(record.data.get("content")))
                self._call_ids.update(str(call.get("id")) for call in calls)

    async def run(self, prompt: AgentPrompt | None, again: Sequence[Block] = ()) -> None:
        """One turn. Nothing is raised: a failure is an event.

        Without a prompt it goes on where the session stands, once its time has come; the calls
        `again`, which have no result yet, are run before.
        """
        self._stream = ModelStream(self.ctx)
        self._overflow = OverflowRecovery(self.ctx, self.requests, self.repair, self.compactor)
        self._loops, self._turn_spent = LoopDetector(), Spent()
        self.requests.most_output = None
        self.deferred.begin()
        outcome = "done"
        try:
            with self.ctx.events.interruptible():
                if await self._begin(prompt, again):
                    await self._go_on()
        except asyncio.CancelledError:
            outcome = "interrupted"
            self._record_interrupt()
        except LimitReachedError as reached:
            outcome = "limit"
            self.ctx.recorder.append("note", text=str(reached))
            self.ctx.publish(events.Notice(str(reached)))
        except HoldfastError as error:
            outcome = "failed"
            self._fail(error)
        except Exception as error:
            log.exception("the turn failed")
            outcome = "failed"
            what = "; ".join([f"{type(error).__name__}: {error}", *_notes(error)])
            self._fail(
                HoldfastError(
                    f"Something went wrong inside the program ({what}).",
                    hint="Nothing is lost. The details are in the log file.",
                )
            )
        spent = self._turn_spent + self.ctx.side_spent
        self.ctx.side_spent = Spent()
        self.spent += spent
        known = spent.requests or self.ctx.price is not None
        usd = spent.usd if known else None
        await self.requests.save_ratio()
        await self.ctx.recorder.show(events.TurnFinished(outcome, spent.usage, usd))

    async def _begin(self, prompt: AgentPrompt | None, again: Sequence[Block]) -> bool:
        """Whether there is anything to ask the model."""
        if prompt is not None:
            return await self.prompts.take(prompt)
        if not any(record.type == "user" for record in self.ctx.records):
            self.ctx.publish(events.Notice("There is nothing to go on with yet."))
            return False
        await self.deferred.resume()
        if again:
            await self.dispatcher.run_all(again)
        return True

    async def _go_on(self) -> None:
        """Until the model is done and nothing is queued."""
        while True:
            answer = await self._answer()
            price = self.ctx.config.prices.get(self._stream.model)
            self._turn_spent += Spent.on(answer.usage, price)
            calls = tool_calls(await self._record(answer))
            if calls:
                await self.dispatcher.run_all(calls)
                self._check_for_loop(calls)
            cut = await self._check_stop_reason(answer, has_calls=bool(calls))
            for event in self.requests.measured():
                self.ctx.publish(event)
            queued = await self.prompts.take_queued()
            if not calls and not queued and not cut and answer.stop_reason != "pause_turn":
                return

    async def _answer(self) -> Completed:
        """Ask until there is an answer, with other requests where that helps."""
        while True:
            request = await self._next_request()
            try:
                return await self._stream.ask(request)
            except ProviderError as error:
                if not await self._recover(error, request):
                    raise
            self._stream.forget()

    async def _next_request(self) -> Request:
        """The next request, checked: no record can make one that the API rejects."""
        ctx = self.ctx
        spent = self.spent + self._turn_spent + ctx.side_spent
        ctx.limits.check(spent, priced=ctx.price is not None)
        self.requests.learn()
        await self.mcp.before_request()
        view = self.requests.view()
        view = await self._overflow.before_request(view)
        view = await self.pruning.before_request(view)
        request, view = self.requests.ask(view)
        if ctx.records[-1].type == BREAK:
            ctx.debug("[DEBUG] Thinking: what there is so far is left out from here on")
        if ctx.verbose:
            self.pruning.explain(request, view)
        return request

    async def _recover(self, error: ProviderError, request: Request) -> bool:
        """Do or wait for what makes another request worthwhile. False where nothing does."""
        if error.park_until is not None:
            return await self.deferred.park(error, self._stream.text)
        if self.repair.without_thinking(error, request):
            await self.ctx.recorder.show(events.Notice(_THINKING_REFUSED))
            return True
        return await self._overflow.after_error(error, request, self._stream.text)

    async def _record(self, answer: Completed) -> list[Block]:
        """Record the answer, then show it. Returns its content as recorded.

        Cancelled meanwhile, it closes the calls of the answer, which are in the record now.
        """
        content = unique_ids(answer.content, self._call_ids)
        bound: dict[str, str] = {}
        if has_thinking(content):
            bound = {BOUND_TO: self.requests.hash_of(self._stream.model)}
        self.ctx.recorder.append(
            "assistant",
            content=content,
            model=answer.model,
            usage=answer.usage.to_json(),
            stop_reason=answer.stop_reason,
            request_id=answer.request_id,
            **bound,
        )
        message = events.AssistantMessage(
            text_of(content), answer.stop_reason, answer.usage, answer.request_id
        )
        try:
            await self.ctx.recorder.show(message, *self.requests.measured())
        except asyncio.CancelledError:
            await self.dispatcher.close(tool_calls(content))
            raise
        self.ctx.debug(debug_line(answer))
        return content

    async def _check_stop_reason(self, answer: Completed, *, has_calls: bool) -> bool:
        """An answer that did not end by itself is said to be so, with what to do.

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
                if await self._overflow.window_full():
                    return True
                raise ProviderError(
                    "context_overflow",
                    "The context window is full.",
                    hint="Start a new session with /new.",
                )
            case "max_tokens" if not has_calls:
                self.ctx.publish(
                    events.Notice("The answer was cut at the output limit. Say “continue”.")
                )
            case _:
                pass
        return False

    def _check_for_loop(self, calls: Sequence[Block]) -> None:
        """Raises HoldfastError where the model makes the same call again and again."""
        call = self._loops.repeated(calls, self.ctx.records[-4 * len(calls) - 64 :])
        if call is None:
            return
        name = str(call.get("name"))
        self.ctx.publish(events.LoopStopped(name, call["input"], LOOP_REPEATS))
        raise HoldfastError(
            f"{name} was called {LOOP_REPEATS} times with the same result, so the turn was "
            "stopped.",
            hint="Say what to do differently, or /retry to let it go on.",
        )

    def _record_interrupt(self) -> None:
        if self.closing and self.deferred.waiting:
            return
        self.ctx.recorder.append(
            "interrupt",
            reason="cancelled",
            text=self._stream.text,
            thinking=self._stream.thinking,
        )

    def _fail(self, error: HoldfastError) -> None:
        kind = "auth" if isinstance(error, CredentialsError) else "unknown"
        status = request_id = None
        if isinstance(error, ProviderError):
            kind, status, request_id = error.error_class, error.status, error.request_id
        message = "; ".join([error.message, *_notes(error)])
        self.ctx.recorder.append(
            "error",
            error_class=kind,
            message=message,
            hint=error.hint,
            status=status,
            request_id=request_id,
            text=self._stream.text,
        )
        offers = self.repair.offers()
        self.ctx.publish(events.ErrorRaised(kind, message, True, error.hint, offers))


def _notes(error: Exception) -> list[str]:
    """What was added to an error on its way here."""
    return list(getattr(error, "__notes__", []))
