"""The server's own count of the next request, asked for between turns, in the background.

The meter goes by the usage of the last answer and an estimate of what changed since. Where that
estimate is large (another model was chosen, a summary or masks were put in force, a turn stopped
before its answer), the server can say it exactly. The question extends the last request as a prompt
would; it is no part of the conversation, and nothing depends on its answer.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, TypeAlias

from tui.agent.agent_context import AgentContext
from tui.agent.request.side_requests import PROMPT_TOKENS, count_request
from tui.agent.request.state import RequestState
from tui.core.errors import HoldfastError, ProviderError
from tui.core.facts import Debug, Fact

log = logging.getLogger(__name__)

COUNTS: Final = "count_tokens"
"""The name by which it is recorded that a server does not count."""
LEAST_TOKENS: Final = 2000
"""Less than this estimated is not worth a question."""
DELAY_S: Final = 2.0
"""Seconds between a change and its count: several in a row are one question."""
DISTANCE_S: Final = 15.0
"""Between two questions."""
FAILED_S: Final = 60.0
"""After the first failure; each one in a row doubles it."""
LONGEST_S: Final = 3600.0

_NOT_IMPLEMENTED: Final = 501

_State: TypeAlias = tuple[str, int, int]


class TokenCounter:
    """Counts for one agent, one question at a time; what came meanwhile makes an answer void.

    Only the servers that know all of the API are asked, and only about what this server was sent
    already. Nothing is asked before `begin`, while a turn runs, or twice about the same.
    """

    def __init__(self, ctx: AgentContext, requests: RequestState) -> None:
        self._ctx = ctx
        self._requests = requests
        self._on = False
        self._task: asyncio.Task[None] | None = None
        self._asked: _State | None = None
        self._not_before = 0.0
        self._failed_s = FAILED_S
        ctx.events.at_rest.append(self.schedule)

    def begin(self) -> None:
        """Count from now on."""
        self._on = True
        self.schedule()

    def schedule(self) -> None:
        """Ask soon, where that is worth it and no question is under way."""
        if self._task is None and self._is_due():
            self._task = asyncio.create_task(self._count(), name="count of tokens")
            self._task.add_done_callback(self._over)

    def close(self) -> None:
        """Ask no more; a question that is under way is given up."""
        self._on = False
        if self._task is not None:
            self._task.cancel()

    def _is_due(self) -> bool:
        ctx, model = self._ctx, self._ctx.link.model.id
        return (
            self._on
            and ctx.link.first_party
            and not ctx.events.busy
            and not ctx.session.read_only
            and abs(ctx.ledger.measure().estimated) >= LEAST_TOKENS
            and self._state() != self._asked
            and COUNTS not in self._requests.features.off(model)
        )

    def _state(self) -> _State:
        """Return the state that a count holds for."""
        now = self._ctx.ledger.measure()
        return self._ctx.link.model.id, now.measured, now.tokens

    async def _count(self) -> None:
        ctx = self._ctx
        await ctx.clock.sleep(max(DELAY_S, self._not_before - ctx.clock.monotonic()))
        if not self._is_due():
            return
        request = count_request(self._requests)
        state = self._asked = self._state()
        if request is None:
            return
        self._not_before = ctx.clock.monotonic() + DISTANCE_S
        try:
            counted = await ctx.link.provider.count_tokens(request)
        except HoldfastError as error:
            self._fail(error)
            return
        self._failed_s = FAILED_S
        if ctx.events.busy or self._state() != state:
            return  # something newer is known
        estimated = ctx.ledger.tokens
        ctx.ledger.count(max(0, counted - PROMPT_TOKENS))
        now = ctx.ledger.tokens
        self._debug(f"The server counts {now:,} tokens; the estimate was {estimated:,}.")
        self._publish(self._requests.meter.measure())
        await self._requests.meter.save_ratio()

    def _fail(self, error: HoldfastError) -> None:
        """The estimate stays, and for some time nothing is asked."""
        self._debug(f"The server didn't count the tokens: {error.message}")
        if not isinstance(error, ProviderError):
            return
        if error.error_class == "not_found" or error.status == _NOT_IMPLEMENTED:
            self._requests.features.note_with_prompt(COUNTS, self._ctx.link.model.id, error)
        wait = max(self._failed_s, error.retry_after or 0.0)
        self._not_before = self._ctx.clock.monotonic() + wait
        self._failed_s = min(2 * self._failed_s, LONGEST_S)

    def _publish(self, event: Fact) -> None:
        if self._on and (show := self._ctx.events.aside) is not None:
            show(event)

    def _debug(self, text: str) -> None:
        if self._ctx.state.verbose:
            self._publish(Debug(f"[DEBUG] {text}"))

    def _over(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            log.error("couldn't count the tokens", exc_info=error)
            return
        self.schedule()  # about what changed meanwhile
