"""The requests of a turn on their way to the model, and what streams back."""

from __future__ import annotations

from contextlib import aclosing

from msgspec import UNSET, structs

from tui.agent.agent_context import AgentContext
from tui.agent.request.state import RequestState
from tui.core import facts
from tui.core.config import profile_of
from tui.core.dataclass import dataclass, field
from tui.core.errors import ProviderError
from tui.core.facts import ModelSwitched, RetryScheduled, TextDelta, ThinkingDelta
from tui.core.messages import Block, string_of
from tui.core.server_results import result_of
from tui.provider.base import (
    AttemptStarted,
    Completed,
    Request,
    ServerToolCalled,
    ServerToolReturned,
)


@dataclass(slots=True)
class ModelStream:
    """Sends the requests of one turn.

    `model` is the one asked last. After an interruption or an error `text` and `thinking` are
    what had been streamed of the answer that never came.
    """

    ctx: AgentContext
    requests: RequestState
    model: str = ""
    _text: list[str] = field(default_factory=list[str])
    _thinking: list[str] = field(default_factory=list[str])
    _called: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def thinking(self) -> str:
        return "".join(self._thinking)

    async def _measure_fallback(self) -> None:
        """Keep the window of a model that answers in the place of another."""
        ctx, other = self.ctx, self.model != self.ctx.link.model.id
        info = await ctx.link.provider.model_info(self.model) if other else None
        ctx.link.fallback_window = info.window if info else None

    async def ask(self, request: Request) -> Completed:
        """Send a request and publish what comes back, until the answer is complete.

        What became of an attempt that failed is recorded, then shown. Raises what
        `Provider.stream` raises.
        """
        async with aclosing(self.ctx.link.provider.stream(request)) as parts:
            async for part in parts:
                match part:
                    case Completed():
                        # the text was shown as it came; the complete answer replaces it
                        self.forget()
                        return part
                    case AttemptStarted(attempt, model):
                        # the text of the attempt before it is void
                        self.forget()
                        self.model = model
                        await self._measure_fallback()
                        size = len(request.messages), self.ctx.ledger.tokens
                        self.ctx.publish(facts.RequestSent(*size, model, attempt))
                        if self.ctx.checkpoints:
                            self.ctx.checkpoints.request_sent()
                        continue
                    case TextDelta(text):
                        self._text.append(text)
                    case ThinkingDelta(text):
                        self._thinking.append(text)
                    case ServerToolCalled(id_, name, input_):
                        self._called[id_] = self.ctx.clock.monotonic()
                        label = string_of(input_.get("query"))
                        self.ctx.publish(facts.ToolStarted(id_, name, input_, label))
                        continue
                    case ServerToolReturned(block):
                        self.ctx.publish(self._returned(block))
                        continue
                    case RetryScheduled() | ModelSwitched():
                        # the streamed text is recorded before it is forgotten
                        said = structs.replace(part, streamed=self.text)
                        if isinstance(said, ModelSwitched):
                            said = await self._with_price(said)
                        self.ctx.record(said)
                        self.forget()
                        continue
                    case _:
                        pass
                self.ctx.publish(part)
        raise ProviderError(
            "stream_broken", "The answer ended early.", hint="Send the prompt again."
        )

    async def _with_price(self, switched: ModelSwitched) -> ModelSwitched:
        """Add what it costs to go on through another profile."""
        if profile_of(switched.old) == profile_of(switched.new):
            return switched
        from tui.agent.request.next_prompt import (  # noqa: PLC0415 - seldom needed
            next_prompt,
            thoughts_elsewhere,
        )

        info = await self.ctx.link.provider.model_info(switched.new)
        due = next_prompt(self.requests, info)
        usd = UNSET if due.usd is None else due.usd
        lost = thoughts_elsewhere(self.requests, switched.new)
        return structs.replace(switched, again=due.tokens - due.cached, usd=usd, thoughts=lost)

    def _returned(self, block: Block) -> facts.ToolFinished:
        """The end of a call of the server's, which may have begun in the answer before."""
        result, now = result_of(block), self.ctx.clock.monotonic()
        return structs.replace(result, seconds=now - self._called.pop(result.id, now))

    def forget(self) -> None:
        """Forget what was streamed: it is void, or complete."""
        self._text.clear()
        self._thinking.clear()
