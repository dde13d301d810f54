"""Usage by price class, of the session and of its last prompt; limits that stop a run cleanly."""

from __future__ import annotations

from math import isclose
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.limits import (
    Limits,
    SessionCost,
    SpendingCounter,
    Spent,
    session_cost,
    spent_by_model,
)
from tui.app.reports import Report
from tui.app.reports.session import status_rows
from tui.context.timeline import SessionTimeline
from tui.context.usage import Amount, bills_of
from tui.context.validate import check
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Compaction, Config, Price
from tui.core.messages import Usage, text_block
from tui.provider.prices import price_of
from tui.session.records import Record
from tui.session.session import Session

PRICE = Price(input=3.0, output=15.0, cache_write=3.75, cache_read=0.3)
USE = {
    "input_tokens": 10,
    "output_tokens": 20,
    "cache_creation_input_tokens": 300,
    "cache_read_input_tokens": 4000,
}


def answered(session: Session, model: str = "test-model", **usage: int) -> None:
    content = [text_block("yes")]
    session.append("assistant", content=content, model=model, usage=USE | usage)


def test_classes_add_up_by_session_and_last_prompt(tmp_path: Path) -> None:
    session = Session.in_memory(tmp_path, clock=SystemClock())
    assert session_cost(session.records, {}) == SessionCost()
    for number in range(3):
        session.append("user", content=[text_block(f"q{number}")], text=f"q{number}")
        answered(session)
        answered(session, output_tokens=5)
    session.append("compaction", summary="s", model="test-model", usage={"input_tokens": 7})
    found = session_cost(session.records, {"test-model": PRICE})
    assert found.session.usage == Usage(67, 75, 1800, 24_000)
    assert found.prompt.usage == Usage(27, 25, 600, 8000)
    assert found.session.requests == 7
    usd = (67 * 3 + 75 * 15 + 1800 * 3.75 + 24_000 * 0.3) / 1e6
    assert found.session.usd is not None
    assert abs(found.session.usd - usd) < 1e-9


def test_no_price_is_invented(tmp_path: Path) -> None:
    session = Session.in_memory(tmp_path, clock=SystemClock())
    session.append("user", content=[text_block("q")], text="q")
    answered(session)
    answered(session, model="another")
    assert session_cost(session.records, {"test-model": PRICE}).session.usd is None
    assert session_cost(session.records, {}).prompt.usd is None


async def test_the_meter_tells_the_share_of_the_last_request_and_the_cost_of_the_session(
    tmp_path: Path,
) -> None:
    session = Session.in_memory(tmp_path, clock=SystemClock())
    session.append("user", content=[text_block("q")], text="q")
    answered(session)
    answered(
        session, input_tokens=100, cache_creation_input_tokens=200, cache_read_input_tokens=9700
    )
    config = Config(prices={"test-model": PRICE})
    agent = make_agent(tmp_path, ScriptedProvider(), session=session, config=config)
    found = agent.spending()
    assert found.last.cache_share == 0.97
    lines = list(Report("Status", list(status_rows(agent, tmp_path, Config()))).lines)
    assert lines[-2:] == ["cache    97 % of the last request", "cost     $0.0069"]
    await agent.close()


async def test_the_meter_tells_what_the_session_has_cost(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("one"), say("two"))
    agent = make_agent(tmp_path, provider, config=Config(prices={"test-model": PRICE}))
    await events_of(agent, "first")
    seen = await events_of(agent, "second")
    measured = [e for e in seen if isinstance(e, facts.ContextMeasured)][-1]
    assert measured.cache_share == 0.0
    assert measured.cost_usd == agent.spending().session.usd == 2 * (100 * 3 + 10 * 15) / 1e6
    await agent.close()


def test_costs_are_added_up_as_records_come_and_anew_for_another_branch(tmp_path: Path) -> None:
    session, counter = Session.in_memory(tmp_path, clock=SystemClock()), SpendingCounter()
    prices = {"test-model": PRICE}
    assert counter.count(session.records, prices) == SessionCost()
    for _ in range(4):
        session.append("user", content=[text_block("q")], text="q")
        answered(session)
        assert counter.count(session.records, prices) == session_cost(session.records, prices)
    shorter = session.records[:3]
    assert counter.count(shorter, prices) == session_cost(shorter, prices)
    assert counter.count((), prices) == SessionCost()


async def test_a_resumed_session_knows_what_it_has_cost(own_folders: Path, tmp_path: Path) -> None:
    from tui.core.paths import folders  # noqa: PLC0415 - behind the fixture

    assert own_folders
    session = Session.create(tmp_path, folders=folders(), clock=SystemClock())
    config = Config(prices={"test-model": PRICE}, compaction=Compaction(memory_flush=True))
    provider = ScriptedProvider(say("one"), say("two"), say("- a note"))
    agent = make_agent(tmp_path, provider, session=session, config=config)
    await events_of(agent, "first")
    await events_of(agent, "second")
    [event async for event in agent.context.flush_memory()]
    before = agent.spending()
    assert before.session.usage == Usage(input_tokens=300, output_tokens=30)
    await agent.close()
    assert session.path
    again = Session.open(session.path, clock=SystemClock())
    resumed = make_agent(tmp_path, ScriptedProvider(say("three")), session=again, config=config)
    assert resumed.spending() == before
    assert resumed.spent == Spent(), "the limits of a run count that run"
    await events_of(resumed, "third")
    assert resumed.spending().session.usage == Usage(input_tokens=400, output_tokens=40)
    assert resumed.spending().prompt.usage == Usage(input_tokens=100, output_tokens=10)
    await resumed.close()


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (Limits(max_turns=2), "limit of 2 requests"),
        (Limits(max_tokens=150), "limit of 150 tokens"),
        (Limits(max_cost=0.0008), "limit of $0.00"),
    ],
    ids=["turns", "tokens", "cost"],
)
async def test_a_limit_stops_a_turn_cleanly(tmp_path: Path, limits: Limits, says: str) -> None:
    calls: list[Any] = [[call("todo_write", id_=f"t{n}", todos=[])] for n in range(6)]
    config = Config(prices={"test-model": PRICE})
    agent = make_agent(tmp_path, ScriptedProvider(*calls), limits=limits, config=config)
    seen = await events_of(agent, "go")
    end = seen[-1]
    assert isinstance(end, facts.TurnFinished)
    assert end.outcome == "limit"
    assert any(says in e.text for e in seen if isinstance(e, facts.Notice)), seen
    assert end.usage == Usage(input_tokens=200, output_tokens=20)
    assert agent.spent.requests == 2
    assert check(agent.context.next_request().messages) == [], "no call is left without a result"


def ran(spent: list[dict[str, Any]]) -> Record:
    """The record of a sub-agent that has ended."""
    return Record("sub_agent", "a", None, "2026-11-21T12:00:00Z", {"state": "done", "spent": spent})


@pytest.mark.parametrize("prompts", [[20_000] * 10, [30_000, 100_001, 40_000, 150_000]])
def test_a_sub_agent_costs_what_its_requests_cost_and_not_one_with_all_their_tokens(
    tmp_path: Path, prompts: list[int]
) -> None:
    model, session = "claude-haiku-5-5", Session.in_memory(tmp_path, clock=SystemClock())
    for tokens in prompts:
        answered(session, model, input_tokens=tokens, cache_read_input_tokens=0)
    price = price_of(model, {})
    assert price is not None
    each = [Usage.from_json(one.data["usage"]) for one in session.records]
    whole = sum(map(price.cost, each))
    record = ran(spent_by_model(session.records))
    told = Spent.of_sub_agent(record, {})
    assert (told.requests, told.usage.input_tokens) == (len(prompts), sum(prompts))
    bills = [Amount.of(bill, bill.price({})) for bill in bills_of(record)]
    timeline = SessionTimeline()
    timeline.add(record)
    for usd in (told.usd, sum(one.usd for one in bills), timeline.spent.total):
        assert usd is not None
        assert isclose(usd, whole)


def test_a_sum_of_before_that_names_no_prompt_counts_as_of_equal_ones() -> None:
    usage = Usage(200_000, 1_000)
    record = ran([{"model": "claude-haiku-5-5", "requests": 10, "usage": usage.to_json()}])
    told = Spent.of_sub_agent(record, {})
    assert told.usd is not None
    assert isclose(told.usd, 0.2 * 0.1 + 0.001 * 0.5)
