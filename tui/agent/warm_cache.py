"""Keeps the server's cache through a pause (`cache.keep_warm`), while that is cheaper.

A server drops its cache of a conversation some time after it was last read. So shortly before
that, a request of one token reads it again, as long as all such requests of the pause together cost
less than it would to write it once more, and no longer than the setting says. It extends the
conversation as a side question does, and is no part of it. (`max_tokens: 0` would do the same
without its one token of output, but not in a stream, the only form in which requests go out here.)

How often it was read in this pause, and at what price, is counted from the record. Nothing is sent
before `begin`, while a request is under way, or where the price of the model is not known.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

from tui.agent.agent_context import AgentContext
from tui.agent.limits import Spent
from tui.agent.request.side_requests import AsideRequest, aside_request
from tui.agent.request.state import RequestState
from tui.context.interrupted_calls import open_calls
from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError, ProviderError
from tui.core.facts import CacheWarmed, Fact, Notice, RetryScheduled
from tui.core.formatting import moment_of
from tui.core.messages import Usage
from tui.provider.base import Completed
from tui.session.records import WARMED
from tui.session.request_numbers import REQUEST

log = logging.getLogger(__name__)

MARGIN_S: Final = 30.0
"""Seconds before the end of the cache's life at which it is read again."""
LOOK_S: Final = 15.0
"""Seconds between two looks: a machine may sleep meanwhile, and a turn may begin."""
PATIENCE_S: Final = 25.0
"""Less than the margin: what comes later would be written, not read."""
_SHORT = "."
_ACTIVE: Final = frozenset({REQUEST, "side_question"})


@dataclass(frozen=True, slots=True)
class IdlePeriod:
    """The time since the conversation asked anything: its start (seconds), how often the cache was
    read again since, the cost of that, and the tokens that were read. What the first of them wrote
    is no cost of the pause: the next prompt would have written it."""

    begun: float
    times: int = 0
    usd: float = 0.0
    read: int = 0


class CacheWarmer:
    """Keeps the cache of one agent's conversation warm, from `begin` to `close`."""

    def __init__(self, ctx: AgentContext, requests: RequestState) -> None:
        self._ctx, self._requests = ctx, requests
        self._task: asyncio.Task[None] | None = None
        self._failed_at = 0.0
        """The start of the pause in which it failed: it isn't tried again in that one."""

    def begin(self) -> None:
        """Watch from now on."""
        ctx = self._ctx
        if self._task is None and not ctx.session.read_only:
            self._task = asyncio.create_task(self._watch(), name="warm cache")

    def close(self) -> None:
        """Send nothing more; what is under way is given up."""
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while True:
            await self._ctx.clock.sleep(LOOK_S)
            try:
                if (due := self._due()) is not None:
                    await self._read(*due)
            except Exception:
                log.exception("the cache wasn't kept warm")
                self._failed_at = self._pause().begun

    def _pause(self) -> IdlePeriod:
        times, usd, read = 0, 0.0, 0
        for record in reversed(self._ctx.records):
            if record.type in _ACTIVE:
                begun = moment_of(record.time)
                return IdlePeriod(begun.timestamp() if begun else 0.0, times, usd, read)
            if record.type == WARMED:
                times += 1
                cost = record.data.get("cost_usd")
                usd += cost if isinstance(cost, int | float) else 0.0
                read += Usage.from_json(record.data.get("usage")).cache_read_input_tokens
        return IdlePeriod(0.0)

    def _due(self) -> tuple[IdlePeriod, AsideRequest] | None:
        """The pause, and the request that is due in it; None where none is."""
        ctx, now = self._ctx, self._ctx.clock.now().timestamp()
        if ctx.session.read_only or self._is_asking() or ctx.price is None:
            return None
        cached = self._requests.sent.cached(ctx.link.model)
        if cached.last is None or not 0 <= cached.last.until - now <= MARGIN_S:
            return None
        pause = self._pause()
        if pause.begun in {0.0, self._failed_at}:
            return None
        if now - pause.begun > 60 * ctx.config.cache.keep_warm:
            return None
        asked = aside_request(self._requests, (), _SHORT, 1)
        if asked is None or not self._pays(pause, asked) or self._over_limit():
            return None
        return pause, asked

    def _is_asking(self) -> bool:
        """True while a request of the conversation is on its way, which renews the cache itself. A
        turn that waits for its calls has none."""
        return self._ctx.events.busy and not open_calls(self._ctx.records)

    def _pays(self, pause: IdlePeriod, asked: AsideRequest) -> bool:
        """True if all reads of this pause, the next one included, cost less than to write once what
        they read."""
        due, price = asked.forecast, self._ctx.price
        if price is None or not due.read:
            return False
        prompt, outputs = due.prompt, pause.times + 1
        reads = price.forecast(read=pause.read + due.read, output=outputs, prompt=prompt)
        written = price.forecast(written=due.read, life=asked.life, prompt=prompt)
        return reads < written - price.forecast(read=due.read, prompt=prompt)

    def _over_limit(self) -> bool:
        top = self._ctx.parent or self._ctx
        limits = replace(top.rules.limits, max_turns=None)
        try:
            limits.check(top.state.spent_in_run, priced=True)
        except HoldfastError:
            return True
        return False

    async def _read(self, pause: IdlePeriod, asked: AsideRequest) -> None:
        begun = self._ctx.clock.monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                usage = await self._ask(asked)
        except (HoldfastError, TimeoutError) as error:
            self._failed_at = pause.begun
            why = error.message if isinstance(error, HoldfastError) else "no answer in time."
            self._show(Notice(f"The cache isn't kept warm any longer: {why}"))
            return
        await self._record(pause, asked, usage, self._ctx.clock.monotonic() - begun)

    async def _ask(self, asked: AsideRequest) -> Usage:
        """Read the cache once. Raises ProviderError, CredentialsError; nothing is sent twice."""
        async with aclosing(self._ctx.link.direct.stream(asked.request)) as parts:
            async for part in parts:
                match part:
                    case Completed(usage=usage):
                        return usage
                    case RetryScheduled(reason=reason):
                        raise ProviderError("unknown", reason)
                    case _:
                        pass
        raise ProviderError("stream_broken", "The answer ended early.")

    async def _record(
        self, pause: IdlePeriod, asked: AsideRequest, usage: Usage, seconds: float
    ) -> None:
        ctx = self._ctx
        spent = Spent.on(usage, ctx.price_of(asked.request.model))
        ctx.state.spend(replace(spent, requests=0))
        life = 3600 if asked.life == "1h" else 300
        until = datetime.fromtimestamp(ctx.clock.now().timestamp() - seconds + life, UTC)
        fact = CacheWarmed(
            pause.times + 1,
            pause.usd + (spent.usd or 0.0),
            until.isoformat(timespec="seconds"),
            asked.request.model,
            usage,
            spent.usd,
            ctx.link.server,
            round(seconds, 3),
            {"kept": [one.to_json() for one in asked.kept], "life": asked.life},
        )
        ctx.record_payer()
        ctx.recorder.write(fact)
        await ctx.recorder.sync()
        self._show(*ctx.events.take(), fact, self._requests.meter.measure())

    def _show(self, *events: Fact) -> None:
        if (show := self._ctx.events.aside) is not None:
            for event in events:
                show(event)
