"""Wherever a cost is told it is the same figure, and the server's own bill."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from math import isclose
from pathlib import Path
from typing import Any

from tests.agent.test_binding import done, read, said
from tests.agent.test_requests_grow import program
from tests.support.clock import PATIENCE_S
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.app.outcome import Outcome
from tui.app.reports import Row
from tui.app.reports.usage import usage_report
from tui.app.session_report import session_report
from tui.core import facts
from tui.core.config import Compaction
from tui.core.facts import Fact
from tui.core.formatting import money
from tui.provider import catalogue
from tui.session.reader import read as read_session

TASK: Json = {
    "name": "task",
    "input": {"agent": "explore", "description": "look", "prompt": "Look at r0.txt."},
}
OPUS, HAIKU = "claude-opus-5-5", "claude-haiku-5-5"
TURNS: list[Json] = [
    said("s0"),
    {"text": '"A title of some words."'},  # by the small model
    {"thinking": "t0", "tools": [TASK]},
    read("r0"),  # by the sub-agent
    said("found"),
    read("r1"),
    said("s1"),
    {"text": "What was done so far, in short. " * 2000},  # a summary that is too long
    said("s2"),
    {"text": "What was done so far, in short. " * 20},  # and one that is not
    said("s3"),
    {"thinking": "o1", "text": "By another model.", "faults": [{"status": 529}]},
]


async def titled(agent: Agent) -> None:
    while tasks := [one for one in asyncio.all_tasks() if one.get_name() == "title"]:
        await asyncio.wait(tasks, timeout=PATIENCE_S)
    assert agent.session.title


async def test_every_place_tells_the_cost_that_the_server_bills(
    own_folders: Path, tmp_path: Path
) -> None:
    for n in range(2):
        (tmp_path / f"r{n}.txt").write_text(f"alpha beta {n}\n" * 300)
    script: Json = {"turns": TURNS, "catalogue": True, "priced": True, "any_calls": True}
    config: dict[str, Any] = {"api_features": "basic", "fallback_models": (OPUS,)}
    config |= {"titles": "model"}
    config["compaction"] = Compaction(memory_flush=False, keep_messages=2)
    async with LoopbackServer(script) as server, program(tmp_path, server, **config) as agent:
        outcome, seen = Outcome(), list[Fact]()
        agent._ctx.link.small_model = catalogue.model_info(HAIKU)  # pyright: ignore[reportPrivateUsage] - as the first party's
        agent.watch(seen.append)
        agent.title_session()

        async def turn(prompt: str) -> None:
            for fact in await done(agent, prompt):
                seen.append(fact)
                outcome.see(fact)

        await turn("Have a look at calc.py. Why do the tests fail?")
        await titled(agent)
        await turn("Look.")
        for prompt in ("Go on.", "And on."):
            async with aclosing(agent.context.compact()) as told:
                seen += [fact async for fact in told]
            await turn(prompt)
        await turn("And now?")
        assert agent.session.path
        await agent.session.sync()
        models = {post.body["model"] for post in server.posts}
        bill = server.cache.dollars
        session = agent.spending().session.usd
        kinds = {record.type for record in agent.session.records}
        loaded = read_session(agent.session.path)
        usage = usage_report(agent)
    assert {"title", "sub_agent", "compaction", "unused", "failover"} <= kinds
    assert OPUS in models
    assert len(models) >= 3
    paid = [one for one in seen if isinstance(one, facts.RequestPaid)][-1].total_usd
    meter = [one for one in seen if isinstance(one, facts.ContextMeasured)][-1].cost_usd
    # `outcome` is what `-p` tells, and `logs` turn by turn
    for told in (session, outcome.cost_usd, paid, meter):
        assert told is not None
        assert isclose(told, bill)
    (shown,) = [row.values for row in usage.rows if isinstance(row, Row) and row.name == "cost"]
    assert shown[-1] == money(bill)
    report = session_report(loaded, {})
    assert f"{money(bill)} in all" in report.text
