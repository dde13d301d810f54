"""Where the cache marks stand: each request reads all that the last one sent, whatever happens.

A server looks back 20 blocks from a mark at most. So the second mark stands exactly where the last
one of the request before stood, by its record: also after a restart, a repair and a compaction.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.agent.test_binding import done, said
from tests.agent.test_requests_grow import program
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.context.request_assembly import Mark
from tui.core import facts
from tui.core.config import Compaction

CALLS = 30
SMALL: dict[str, Any] = {
    "api_features": "all",
    "compaction": Compaction(memory_flush=False, keep_messages=2, keep_tokens=400),
}


def many(turn: int) -> list[Json]:
    """A turn of so many calls at once, and an answer."""
    calls = [{"name": "read_file", "input": {"path": f"r{n}.txt"}} for n in range(CALLS)]
    return [{"thinking": f"t{turn}", "tools": calls}, said(f"s{turn}")]


def make_files(root: Path) -> None:
    for n in range(CALLS):
        (root / f"r{n}.txt").write_text(f"file {n}\n" * 40)


def marks(body: Json) -> list[Mark]:
    """The marks in a request's messages."""
    return [
        (number, place)
        for number, message in enumerate(body["messages"])
        for place, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def prompt(usage: Json) -> int:
    return sum(usage[name] for name in usage if name.endswith("input_tokens"))


def check(server: LoopbackServer, first: int, last: int | None = None) -> None:
    """Each of these requests reads what the one before it sent, at exactly its last mark."""
    sent = server.api.priced[first:last]
    for before, after in zip(server.api.priced[first - 1 :], sent, strict=False):
        assert marks(before.body)[-1] in marks(after.body)
        read = after.message["usage"]["cache_read_input_tokens"]
        assert read >= 0.95 * prompt(before.message["usage"])


def requests(agent: Agent) -> list[Json]:
    return [record.data for record in agent.session.records if record.type == "request"]


async def test_thirty_results_at_once_never_outrun_the_lookback(
    own_folders: Path, tmp_path: Path
) -> None:
    make_files(tmp_path)
    turns = [step for turn in range(4) for step in many(turn)]
    script: Json = {"turns": turns, "catalogue": True, "priced": True, "binding": True}
    async with LoopbackServer(script) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            await done(agent, "read all")
            await done(agent, "read all again")
            path = agent.session.path
        async with program(tmp_path, server, path, api_features="all") as agent:
            await done(agent, "and again")
            await done(agent, "and a last time")
            assert [r for r in agent.session.records if r.type == "break"] == []
        check(server, 1)
        usages = [one.message["usage"] for one in server.api.priced]
    repeated = sum(prompt(usage) for usage in usages[:-1])
    assert sum(usage["cache_read_input_tokens"] for usage in usages[1:]) >= 0.95 * repeated


async def test_after_a_compaction_and_a_restart_the_next_request_reads_all(
    own_folders: Path, tmp_path: Path
) -> None:
    make_files(tmp_path)
    turns = [step for turn in range(6) for step in many(turn)]
    script: Json = {"turns": turns, "catalogue": True, "priced": True, "binding": True}
    async with LoopbackServer(script) as server:
        async with program(tmp_path, server, **SMALL) as agent:
            await done(agent, "read all")
            await done(agent, "read all again")
            told = [event async for event in agent.context.compact()]
            (finished,) = [e for e in told if isinstance(e, facts.CompactionFinished)]
            assert not finished.problem
            path, begun = agent.session.path, len(server.api.priced)
        async with program(tmp_path, server, path, **SMALL) as agent:
            await done(agent, "and again")
            path = agent.session.path
        async with program(tmp_path, server, path, **SMALL) as agent:
            await done(agent, "and a last time")
            (broken,) = [r.data["reason"] for r in agent.session.records if r.type == "break"]
            assert broken == "compaction"
        first = server.api.priced[begun].message["usage"]
        assert first["cache_read_input_tokens"] > 0  # the frame is the same
        check(server, begun + 1)


async def test_after_a_repair_the_next_request_reads_all(own_folders: Path, tmp_path: Path) -> None:
    make_files(tmp_path)
    turns = [step for turn in range(6) for step in many(turn)]
    script: Json = {"turns": turns, "catalogue": True, "priced": True, "binding": True}
    async with LoopbackServer(script) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            await done(agent, "read all")
            await agent.context.repair("drop_thinking")
            begun = len(server.api.priced)
            await done(agent, "read all again")
            path = agent.session.path
        async with program(tmp_path, server, path, api_features="all") as agent:
            await done(agent, "and again")
            assert [r.data["reason"] for r in agent.session.records if r.type == "break"] == [
                "repair"
            ]
            places = [tuple(one["marks"][0]) for one in requests(agent)]
        assert places == [marks(one.body)[-1] for one in server.api.priced]
        check(server, begun + 1)
