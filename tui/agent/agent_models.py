"""The model that one agent asks: what it is, how deep it thinks, and another in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tui.agent.agent_context import AgentContext
from tui.agent.directive_state import DirectiveState
from tui.agent.model_link import ModelServer
from tui.agent.recovery import DeferredRetry
from tui.agent.request.break_cost import effort_cost
from tui.agent.request.due import adapt
from tui.agent.request.form import effort_in_force
from tui.agent.request.state import Fit, RequestState
from tui.agent.token_counter import TokenCounter
from tui.core import facts
from tui.core.config import Price
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.core.facts import Fact
from tui.provider.base import ModelInfo, Provider
from tui.provider.prices import Payer
from tui.provider.retry import RetryControl

if TYPE_CHECKING:
    from tui.agent.request.next_prompt import NextPrompt
    from tui.agent.warm_cache import CacheWarmer


@dataclass(slots=True)
class AgentModels:
    """Shows and changes which model one agent asks. What is changed counts from the next request.

    It loads the SDK in the background, and owns that task.
    """

    _ctx: AgentContext
    _requests: RequestState
    _directives: DirectiveState
    _deferred: DeferredRetry
    _counter: TokenCounter
    _loading: asyncio.Task[None] | None = field(init=False)
    _warmer: CacheWarmer | None = field(init=False)

    def __post_init__(self) -> None:
        self._loading = self._warmer = None
        self._ctx.link.provider = self._with_fallbacks(self._ctx.link.provider)

    def load(self) -> None:
        """Begin to load what the first request needs, once: the SDK, in a thread."""
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())

    async def loaded(self) -> None:
        """Wait until that is loaded, or cannot be."""
        self.load()
        if self._loading is not None:
            await asyncio.wait([self._loading])

    def keep_cache_warm(self) -> None:
        """Keep the server's cache over pauses, where the setting says so and it pays, until
        `close`."""
        if self._ctx.config.cache.keep_warm and self._warmer is None:
            from tui.agent.warm_cache import CacheWarmer  # noqa: PLC0415 - on demand

            self._warmer = CacheWarmer(self._ctx, self._requests)
            self._warmer.begin()

    def close(self) -> None:
        if self._warmer is not None:
            self._warmer.close()
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None

    @property
    def current(self) -> str:
        """The id of the model that is asked."""
        return self._ctx.link.model.id

    @property
    def fallbacks(self) -> Sequence[str]:
        """The models that are asked where it can't answer, in their order."""
        return self._ctx.link.fallbacks

    @property
    def profile(self) -> str:
        """The person's profile whose key is used; "" for none."""
        return self._ctx.config.profile

    @property
    def prices(self) -> Mapping[str, Price]:
        """The prices that the person has set, by model."""
        return self._ctx.config.prices

    @property
    def server(self) -> str:
        """The server that is asked."""
        return self._ctx.link.server

    @property
    def takes_key(self) -> bool:
        """True if a key signs the requests; a cloud signs by the person's account."""
        return self._ctx.settings_of(self.current).kind == "anthropic"

    @property
    def window(self) -> int:
        """The tokens that the model takes."""
        return self._ctx.link.model.window

    @property
    def control(self) -> RetryControl:
        """Ends the waits of whatever provider is asked."""
        return self._ctx.link.control

    @property
    def efforts(self) -> tuple[str, ...]:
        """The levels of effort that the model offers, the lowest first."""
        return self._ctx.link.model.efforts

    @property
    def effort(self) -> str:
        """The level in force; "" where the model has none."""
        return effort_in_force(self._requests)

    @property
    def effort_to_come(self) -> str:
        """The level that waits for the next break; "" where none does."""
        wanted = self._requests.frame.level(self._ctx.link.model)
        return "" if wanted == self.effort else wanted

    @property
    def own_effort(self) -> str:
        """The level that the model has if none is named."""
        return self._ctx.link.model.effort

    def effort_cost(self, level: str) -> facts.ContextBroken | None:
        """The break that `use_effort` would cause; None where it costs nothing."""
        return effort_cost(self._requests, level)

    def think_cost(self, on: bool) -> facts.ContextBroken | None:
        """The break that /think would cause; None where it costs nothing."""
        return effort_cost(self._requests, think=on)

    async def use_effort(self, level: str, *, wait: bool = False) -> Sequence[Fact]:
        """Think as deep as a level says, or with `wait` from the next break on that restarts the
        cache; kept with the session."""
        self._directives.apply({"effort": level}, wait=wait)
        await self._ctx.recorder.show(facts.DirectivesChanged(**self._directives.now.to_json()))
        return self._ctx.events.take()

    def fits(self, info: ModelInfo) -> Fit:
        """Check that the session as it is fits a model; to be called before switching."""
        return self._requests.fits(info)

    def next_prompt(self, info: ModelInfo, payer: Payer | None = None) -> NextPrompt:
        """Return what the next prompt costs if a model gets it with the conversation so far. Each
        model has its own cache, for each `payer`; None is the one in use."""
        from tui.agent.request.next_prompt import next_prompt  # noqa: PLC0415 - on demand

        return next_prompt(self._requests, info, payer)

    def use(self, info: ModelInfo) -> Sequence[Fact]:
        """Ask another model; a parked turn resumes with it at once."""
        self._requests.use(info)
        self._ctx.publish(self._requests.meter.measure())
        self._counter.schedule()
        if self._deferred.waiting:
            self.control.retry_now()
        return self._ctx.events.take()

    async def use_server(
        self,
        provider: Provider,
        info: ModelInfo,
        small_model: ModelInfo | None,
        *,
        own: ModelServer,
        others: Mapping[str, ModelServer],
    ) -> Sequence[Fact]:
        """Ask through another provider. Raises RuntimeError while a turn runs."""
        self._ctx.refuse_in_turn()
        link, before = self._ctx.link, self._ctx.link.provider
        link.provider, link.direct = self._with_fallbacks(provider), provider
        link.small_model = small_model
        link.own, link.others = own, others
        changes = self.use(info)
        self.close()
        self.load()
        await before.aclose()
        return changes

    def record_payer(self) -> Sequence[Fact]:
        """Record whose key pays from the next request on, where that has changed."""
        self._ctx.record_payer()
        return self._ctx.events.take()

    def retry_now(self) -> bool:
        """Wait no longer, for a retry or a parked turn. False where nothing was waited for."""
        return self.control.retry_now()

    def use_fallback(self) -> bool:
        """Continue with a fallback model. False where there is none, or nothing was waited for."""
        return bool(self._ctx.link.fallbacks) and self.control.other_model()

    def _with_fallbacks(self, provider: Provider) -> Provider:
        link = self._ctx.link
        if not link.fallbacks:
            return provider
        from tui.provider.failover import Failover  # noqa: PLC0415 - if there are any

        return Failover(
            provider, link.fallbacks, clock=self._ctx.clock, adapt=partial(adapt, self._requests)
        )

    async def _load(self) -> None:
        """The request says what fails. The token ranks (40 MB) wait for the first result that is
        large enough to be counted."""
        with suppress(HoldfastError):
            await self._ctx.link.provider.load()
