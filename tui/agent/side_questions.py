"""Asks a person's side questions (/btw), which never become part of the conversation.

The request is the conversation as the server has it, with the question at its end, so that the
cache holds nearly all of it. The tools stay in it for that reason, and so does `tool_choice`, which
the cache of the messages depends on, too. But no call runs: the question says so, and a call in the
answer gets a refusal, once; then the model answers without.

A running turn continues unchanged: it neither waits for the answer nor sees it. The answer is
recorded, by `SideQuestion`, in no request; what it cost is in every sum. It counts for the limits
on tokens and cost, not for the number of requests of the run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final

from tui.agent.agent_context import AgentContext
from tui.agent.limits import Spent
from tui.agent.request.side_requests import AsideRequest, aside_request
from tui.agent.request.state import RequestState
from tui.context.summary_prompts import prose
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError, ProviderError
from tui.core.facts import RetryScheduled, SideQuestion, TextDelta, ThinkingDelta
from tui.core.formatting import money, tokens
from tui.core.messages import Block, Message, Usage, string_of, text_of, tool_calls
from tui.provider.base import AttemptStarted, Completed, Request
from tui.tokens import estimate

log = logging.getLogger(__name__)

ANSWER_TOKENS: Final = 8192
"""The most of an answer, thinking included."""
LEAST_USD: Final = 0.01
"""The most that a question costs without a word before it, however little of it is cached."""
_EXPECTED: Final = 400
"""Tokens of an answer, as its price before it is estimated."""

_REFUSED: Final = (
    "Refused: no tool runs in a side question. Answer from what you know, or say what is missing."
)
_CUT: Final = {
    "max_tokens": "The answer was cut at its limit.",
    "refusal": "The model declined to answer.",
    "model_context_window_exceeded": "The context window is full: the answer was cut.",
}
_ONLY_CALLS: Final = "The model only called tools and gave no answer."
_EMPTY: Final = "The model gave no answer."
NOTHING_SENT: Final = "There is no conversation to ask about yet."
_STOPPED: Final = "Stopped."


@dataclass(frozen=True, slots=True)
class SidePrice:
    """The expected cost of a side question: the tokens that it reads, those of them that come from
    the cache, and the price in all, None where that isn't known."""

    model: str
    tokens: int
    cached: int
    usd: float | None

    @property
    def cheap(self) -> bool:
        """True if it needs no confirmation: most comes from the cache, or it costs next to
        nothing."""
        return 2 * self.cached >= self.tokens or (self.usd is not None and self.usd < LEAST_USD)

    @property
    def sentence(self) -> str:
        """The price as part of a line."""
        share = 100 * self.cached // self.tokens if self.tokens else 0
        usd = f" · ≈ {money(self.usd)}" if self.usd is not None else ""
        return f"{tokens(self.tokens)} tokens, {share} % from the cache{usd}"


@dataclass(frozen=True, slots=True)
class SideText:
    """The answer so far, without what doesn't count, and whether the model thinks."""

    text: str
    thinks: bool = False


@dataclass(slots=True)
class _Answer:
    """The answer to one question, as far as it has come."""

    question: str
    asked: AsideRequest
    begun: float
    sent: bool = False
    """True once a request went out that has no usage yet."""
    texts: list[str] = field(default_factory=list[str])
    streamed: list[str] = field(default_factory=list[str])
    """The text of the attempt that runs."""
    usage: Usage = field(default_factory=Usage)
    rounds: int = 0
    refused: list[str] = field(default_factory=list[str])
    problem: str = ""

    @property
    def text(self) -> str:
        parts = [*self.texts, "".join(self.streamed)]
        return "\n\n".join(part.strip() for part in parts if part.strip())


class SideQuestions:
    """Asks side questions for one agent, one at a time."""

    def __init__(self, ctx: AgentContext, requests: RequestState) -> None:
        self._ctx, self._requests = ctx, requests
        self._task: asyncio.Task[SideQuestion] | None = None

    @property
    def busy(self) -> bool:
        """True while one is being answered."""
        return self._task is not None

    def price(self, said: Sequence[SideQuestion] = (), question: str = "") -> SidePrice:
        """Return what a question would cost now. Raises HoldfastError where none can be asked."""
        return self._price(self._asked(said, question))

    async def ask(
        self,
        question: str,
        said: Sequence[SideQuestion] = (),
        show: Callable[[SideText | RetryScheduled], None] | None = None,
    ) -> SideQuestion:
        """Ask, and return what came of it once it is recorded; `said` are earlier questions that
        the model is to know. `show` is given the answer as it comes.

        Raises HoldfastError where it can't be asked; once it is, a failure is in what is returned.
        """
        if self._task is not None:
            raise HoldfastError("A side question is being answered.", hint="Wait, or stop it.")
        asked = self._asked(said, question)
        self._check_limits()
        answer = _Answer(question, asked, self._ctx.clock.monotonic())
        task = self._task = asyncio.create_task(self._run(answer, show), name="side question")
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if not task.cancelled() or (current is not None and current.cancelling()):
                raise
            return await self._record(answer, "stopped")  # before it had begun
        finally:
            if task.done():
                self._task = None
            else:  # whoever asked is gone: what came so far is recorded all the same
                task.add_done_callback(self._over)
                task.cancel()

    def stop(self) -> bool:
        """Stop the one that is being answered; what came so far is recorded. False where none
        is."""
        if self._task is None:
            return False
        self._task.cancel()
        return True

    async def close(self) -> None:
        """Stop, and wait until what came is recorded."""
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait({task})

    def _over(self, _: object) -> None:
        self._task = None

    def _asked(self, said: Sequence[SideQuestion], question: str) -> AsideRequest:
        ctx = self._ctx
        if not self._requests.sent.all():
            raise HoldfastError(NOTHING_SENT, hint="Send it as a prompt.")
        before = [(one.question, one.answer) for one in said if one.answer.strip()]
        texts = [*(asked for asked, _ in before), question]
        texts[0] = f"{prose('side_question')}\n\n{texts[0]}"
        earlier = [(text, one[1]) for text, one in zip(texts, before, strict=False)]
        asked = aside_request(self._requests, earlier, texts[-1], ANSWER_TOKENS)
        if asked is None:
            why = "No side question can be asked now: "
            if not self._requests.frame.replays:
                raise HoldfastError(f"{why}the next prompt makes a new system prompt first.")
            raise HoldfastError(f"{why}the context is full.", hint="/compact makes room.")
        if ctx.session.read_only:
            raise HoldfastError(ctx.session.lost or "This session is read-only.")
        return asked

    def _price(self, asked: AsideRequest) -> SidePrice:
        due, model = asked.forecast, asked.request.model
        price = self._ctx.price_of(model)
        usd = None
        if price is not None:
            usd = price.forecast(
                fresh=due.fresh,
                written=due.written,
                read=due.read,
                output=_EXPECTED,
                life=asked.life,
            )
        return SidePrice(model, due.prompt, due.read, usd)

    def _check_limits(self) -> None:
        """Raise LimitReachedError where the run may cost no more."""
        top = self._ctx.parent or self._ctx
        limits = replace(top.rules.limits, max_turns=None)
        limits.check(top.state.spent_in_run, priced=self._ctx.price is not None)

    async def _run(
        self, answer: _Answer, show: Callable[[SideText | RetryScheduled], None] | None
    ) -> SideQuestion:
        outcome = "answered"
        try:
            await self._answer(answer, show or (lambda _: None))
        except asyncio.CancelledError:
            outcome, answer.problem = "stopped", _STOPPED
        except HoldfastError as error:
            outcome = "failed"
            answer.problem = " ".join(filter(None, (error.message, error.hint)))
            received = isinstance(error, ProviderError) and error.received
            # What was refused, or never got an answer, is no bill.
            answer.sent = answer.sent and bool(received or answer.streamed)
        except Exception as error:
            log.exception("a side question failed")
            outcome = "failed"
            answer.problem = f"Something went wrong inside Holdfast ({type(error).__name__})."
        return await self._record(answer, outcome)

    async def _answer(
        self, answer: _Answer, show: Callable[[SideText | RetryScheduled], None]
    ) -> None:
        """Ask, and once more where the model called tools. Raises ProviderError and others."""
        request = answer.asked.request
        done = await self._stream(answer, request, show)
        if calls := tool_calls(done.content):
            answer.refused += [str(call.get("name")) for call in calls]
            done = await self._stream(answer, _refusing(request, done.content, calls), show)
            answer.refused += [str(call.get("name")) for call in tool_calls(done.content)]
        if done.stop_reason in _CUT:
            answer.problem = _CUT[done.stop_reason]
        elif not answer.text:
            answer.problem = _ONLY_CALLS if answer.refused else _EMPTY

    async def _stream(
        self,
        answer: _Answer,
        request: Request,
        show: Callable[[SideText | RetryScheduled], None],
    ) -> Completed:
        """One request; what it streams is shown, and void where another attempt follows."""
        async with aclosing(self._ctx.link.direct.stream(request)) as parts:
            async for part in parts:
                match part:
                    case AttemptStarted():
                        answer.sent = True
                        answer.streamed.clear()
                        show(SideText(answer.text))
                    case TextDelta(text):
                        answer.streamed.append(text)
                        show(SideText(answer.text))
                    case ThinkingDelta():
                        show(SideText(answer.text, thinks=True))
                    case RetryScheduled():
                        answer.sent = False
                        answer.streamed.clear()
                        show(part)
                    case Completed():
                        self._take(answer, part)
                        show(SideText(answer.text))
                        return part
                    case _:
                        pass
        raise ProviderError("stream_broken", "The answer ended early.", hint="Ask again.")

    def _take(self, answer: _Answer, done: Completed) -> None:
        answer.sent = False
        answer.streamed.clear()
        answer.texts.append(text_of(done.content))
        answer.rounds += 1
        usage = done.usage
        if answer.rounds > 1:  # a price goes by the size of one request
            whole = usage.context
            usage = answer.usage + usage
            fields = {name: getattr(usage, name) for name in usage.__struct_fields__}
            usage = Usage(**{**fields, "context_tokens": whole})
        answer.usage = usage

    def _used(self, answer: _Answer) -> tuple[Usage, bool]:
        """The usage of the answer, and True if that is an estimate: a server whose answer is cut
        off reports none, and charges all the same."""
        if not answer.sent:
            return answer.usage, False
        due = answer.asked.forecast
        written = round(estimate.weight("".join(answer.streamed)) * self._ctx.ledger.ratio)
        hour = due.written if answer.asked.life == "1h" else 0
        streamed = Usage(due.fresh, written, due.written, due.read, hour)
        return answer.usage + streamed, True

    async def _record(self, answer: _Answer, outcome: str) -> SideQuestion:
        """Record what came of a question, then show it."""
        ctx, asked = self._ctx, answer.asked
        usage, estimated = self._used(answer)
        spent = Spent.on(usage, ctx.price_of(asked.request.model)) if usage.total else Spent()
        ctx.state.spend(replace(spent, requests=0))
        keeps = answer.rounds == 1 and not estimated
        cache = {"kept": [one.to_json() for one in asked.kept], "life": asked.life}
        fact = SideQuestion(
            answer.question,
            answer.text,
            outcome,
            asked.request.model,
            usage,
            int(self._requests.sent.all()[-1].data.get("n") or 0),
            round(ctx.clock.monotonic() - answer.begun, 3),
            answer.problem,
            tuple(answer.refused),
            estimated,
            spent.usd if usage.total else None,
            ctx.link.server,
            cache if keeps else {},
        )
        ctx.record_payer()
        ctx.recorder.write(fact)
        await ctx.recorder.sync()
        if (show := ctx.events.aside) is not None:
            for event in (*ctx.events.take(), fact, self._requests.meter.measure()):
                show(event)
        return fact


def _refusing(request: Request, content: list[Block], calls: Sequence[Block]) -> Request:
    """A request with an answer whose calls are refused."""
    results: list[Block] = [
        {
            "type": "tool_result",
            "tool_use_id": string_of(call.get("id")),
            "content": [{"type": "text", "text": _REFUSED}],
            "is_error": True,
        }
        for call in calls
    ]
    answered: Message = {"role": "assistant", "content": content}
    refused: Message = {"role": "user", "content": results}
    return replace(request, messages=[*request.messages, answered, refused])
