"""A long session that is compacted as it goes, before a priced server."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from tests.agent.test_binding import done
from tests.agent.test_requests_grow import program
from tests.support.ideal_client import ideal_dollars
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.request.form import refuse_blocks
from tui.agent.side_question import WarmSummarizer
from tui.core.config import Cache, Compaction
from tui.core.facts import CompactionFinished

FILES = 10
READS = 3
SUMMARY = "What was asked, read and decided so far, by path and in short. " * 60
_THOUGHT = "I look at the file before I decide what to do about it, and why. " * 12


class Played(NamedTuple):
    """How it went, in US dollars."""

    dollars: float
    ideal: float
    compactions: int
    refused: int


def script(turns: int) -> Json:
    """Turns in which three files are read each, and answered about."""
    found: list[Json] = []
    for turn in range(turns):
        for number in range(READS):
            path = f"r{(turn * READS + number) % FILES}.txt"
            call: Json = {"name": "read_file", "input": {"path": path}}
            found.append({"thinking": f"{turn}.{number} {_THOUGHT}", "tools": [call]})
        found.append({"thinking": f"{turn} {_THOUGHT}", "text": f"Turn {turn} is done. " * 40})
    return {"turns": found, "catalogue": True, "priced": True, "summary": SUMMARY}


def make_files(root: Path) -> None:
    """What is read."""
    for number in range(FILES):
        (root / f"r{number}.txt").write_text(f"line {number} of a file that is read\n" * 90)


async def play(root: Path, turns: int, window: int) -> Played:
    """The default model in one process, with a window so small that it compacts."""
    make_files(root)
    async with LoopbackServer(script(turns)) as server:
        config, five = Compaction(memory_flush=False), Cache(ttl="5m")
        async with program(
            root, server, api_features="all", cache=five, compaction=config, context_window=window
        ) as agent:
            for number in range(turns):
                await done(agent, f"Go on with part {number}.")
            count = sum(record.type == "compaction" for record in agent.session.records)
        exchanges = server.api.exchanges
        return Played(
            server.cache.dollars,
            ideal_dollars(exchanges),
            count,
            len(server.posts) - len(exchanges),
        )


async def compaction_cost(root: Path, way: str, turns: int = 20) -> float:
    """What one compaction of a long conversation costs: by the "server", "warm", or "cold"."""
    make_files(root)
    played = script(turns)
    played["turns"] += [{"thinking": "sum", "text": SUMMARY}] * (way != "server")
    async with LoopbackServer(played) as server:
        config, five = Compaction(memory_flush=False), Cache(ttl="5m")
        async with program(
            root, server, api_features="all", cache=five, compaction=config
        ) as agent:
            for number in range(turns):
                await done(agent, f"Go on with part {number}.")
            if way != "server":
                refuse_blocks(agent._requests, "measured without")  # pyright: ignore[reportPrivateUsage]
            before = server.cache.dollars
            with nullcontext() if way != "cold" else patch.object(WarmSummarizer, "fits", _never):
                found = [event async for event in agent.context.compact()]
            assert any(isinstance(e, CompactionFinished) and not e.problem for e in found)
            return server.cache.dollars - before


def _never(_: WarmSummarizer) -> bool:
    return False
