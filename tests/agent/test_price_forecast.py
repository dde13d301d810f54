"""What a change is said to cost, beside what the server then charges for it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest

from tests.agent.test_binding import done
from tests.agent.test_requests_grow import program
from tests.support.long_session import make_files, script
from tests.support.server import LoopbackServer
from tests.support.server_api import Exchange
from tests.support.server_bodies import bare
from tests.support.server_cache import ServerCache
from tests.support.server_models import MODELS
from tests.support.server_script import Json
from tests.support.server_view import shown
from tui.agent.agent import Agent
from tui.context import masks
from tui.context.masks import MaskPlan
from tui.core import facts
from tui.core.config import Compaction
from tui.provider import catalogue

OK: Json = {"type": "text", "text": "ok", "cache_control": {"type": "ephemeral"}}
SONNET, HAIKU = "claude-sonnet-5-5", "claude-haiku-5-5"


class Forecast(NamedTuple):
    """US dollars, as said before and as charged."""

    said: float
    charged: float

    @property
    def error(self) -> float:
        return abs(self.said - self.charged) / self.charged


def dollars(before: Exchange, cache: ServerCache, after: Exchange) -> float:
    """What a request cost because it did not extend the one before: what it wrote to the cache,
    less what a request would have written that extends it. `cache` is as it was before."""
    model = after.body["model"]
    answer = {"role": "assistant", "content": before.message["content"]}
    told = bare([*before.body["messages"], answer])
    messages = [*told, {"role": "user", "content": [OK]}]
    last = before.body["messages"][-1]["content"]
    messages[len(told) - 2] = {"role": "user", "content": last}
    body = {**before.body, "messages": messages}
    usage, other = after.message["usage"], cache.read(shown(body), after.begun)
    prompt = sum(usage[name] for name in usage if name.endswith("input_tokens"))
    rates = MODELS[model].price_of(prompt)
    written = usage["cache_creation_input_tokens"] - other["cache_creation_input_tokens"]
    hour = usage["cache_creation"]["ephemeral_1h_input_tokens"]
    return written * ((rates.write_1h if hour else rates.write_5m) - rates.read) / 1_000_000


def plan_of(agent: Agent, every: int) -> MaskPlan:
    """A plan to mask one result of `every`."""
    stands, weigh = agent.context.view().stands, agent.context.ledger.would
    found = masks.results(list(agent.session.records), stands=stands, weigh=weigh)
    return masks.larger(found[every::every], 0)


async def forecast(root: Path, model: str, turns: int, *, large: bool = False) -> Forecast:
    """Masks in a session of so many turns. Large: with a prompt in the higher price tier."""
    config: dict[str, Any] = {"api_features": "all"}
    config["compaction"] = Compaction(memory_flush=False)
    async with (
        LoopbackServer(script(turns + 2)) as server,
        program(root, server, **config) as agent,
    ):
        agent.models.use(catalogue.model_info(model))
        await done(agent, "word " * 90_000 if large else "Begin.")
        for number in range(turns):
            await done(agent, f"Go on with part {number}.")
        plan = plan_of(agent, turns % 3 + 1)
        said = await agent.context.price_of_changes(plan.overlays(), plan.saves)
        assert said.cost_usd is not None
        await agent.context.overlay(plan.overlays())
        place, cache = len(server.api.priced), deepcopy(server.cache)
        await done(agent, "ok")
        before, after = server.api.priced[place - 1 : place + 1]
        return Forecast(said.cost_usd, dollars(before, cache, after))


@pytest.mark.slow
@pytest.mark.parametrize(("model", "large"), [(SONNET, False), (HAIKU, False), (HAIKU, True)])
async def test_a_forecast_of_masks_is_near_the_charge(
    own_folders: Path, tmp_path: Path, model: str, large: bool
) -> None:
    """Every growth here holds a thought, and the same kinds of text: what a thought takes of the
    tokens can't be told from them as well as in `tests.agent.test_break_bills`."""
    make_files(tmp_path)
    found = [await forecast(tmp_path, model, turns, large=large) for turns in range(2, 9)]
    assert median(one.error for one in found) <= 0.06, found


SUMMARY: Json = {"text": "What was asked, read and decided so far, by path and in short. " * 60}


async def compaction_forecast(root: Path, model: str, turns: int, *, own: bool) -> Forecast:
    """The second compaction of a session, which is so many turns behind the first. `own`: the
    server makes no summaries, so that one is asked for in the conversation."""
    played = script(2 + turns + 1)
    if own:
        steps = played["turns"]
        per_turn = len(steps) // (3 + turns)
        steps.insert(2 * per_turn, SUMMARY)
        steps.insert((2 + turns) * per_turn + 1, SUMMARY)
    config: dict[str, Any] = {} if own else {"api_features": "all"}
    config["compaction"] = Compaction(memory_flush=False)
    async with LoopbackServer(played) as server, program(root, server, **config) as agent:
        agent.models.use(catalogue.model_info(model))

        async def compact() -> None:
            told = [event async for event in agent.context.compact()]
            (finished,) = [e for e in told if isinstance(e, facts.CompactionFinished)]
            assert not finished.problem

        for number in range(2):
            await done(agent, f"Begin with part {number}.")
        await compact()
        for number in range(turns):
            await done(agent, f"Go on with part {number}.")
        planned = await agent.context.plan_compaction()
        assert planned is not None
        assert planned.price is not None
        assert planned.price.cost_usd is not None
        before, cache, paid = server.api.priced[-1], deepcopy(server.cache), server.cache.dollars
        await compact()
        asked = server.cache.dollars - paid
        await done(agent, "ok")
        after = next(one for one in server.api.priced if is_last(one))
        charged = asked + dollars(before, cache, after)
        return Forecast(planned.price.cost_usd, charged)


def is_last(exchange: Exchange) -> bool:
    """Whether a request asks what was typed last."""
    said = exchange.body["messages"][-1]["content"]
    return any(block.get("text") == "ok" for block in said)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "own"), [(SONNET, False), (HAIKU, False), (SONNET, True)])
async def test_a_forecast_of_a_compaction_is_within_a_twentieth(
    own_folders: Path, tmp_path: Path, model: str, own: bool
) -> None:
    make_files(tmp_path)
    found = [await compaction_forecast(tmp_path, model, turns, own=own) for turns in range(2, 7)]
    assert median(one.error for one in found) <= 0.05, found
