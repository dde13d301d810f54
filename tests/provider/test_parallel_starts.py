"""Equal starts at the same time: one goes ahead, and the others wait for its answer to begin."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.clock import ManualClock
from tui.core.messages import text_block
from tui.provider.anthropic.parallel_starts import LONGEST_WAIT_S, ParallelStarts, Start
from tui.provider.base import Request

MARK = {"cache_control": {"type": "ephemeral"}}
FIRST = Request("m", [{**text_block("shared"), **MARK}, text_block("here")], [], [], 10)
LATER = replace(FIRST, system=[text_block("shared"), {**text_block("here"), **MARK}])


class Starts:
    """Attempts that each go on until they are told."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.sent: dict[str, Start] = {}
        self._starts = ParallelStarts(self.clock)
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, *names: str, request: Request = FIRST) -> list[str]:
        """Start attempts; returns the names of all that are sent."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._attempt(name, request))
        return await self.settled()

    async def settled(self) -> list[str]:
        for _ in range(20):
            await asyncio.sleep(0)
        return sorted(self.sent)

    async def end(self, name: str) -> list[str]:
        self._ends[name].set()
        return await self.settled()

    async def cancel(self, name: str) -> list[str]:
        self._tasks[name].cancel()
        return await self.settled()

    async def _attempt(self, name: str, request: Request) -> None:
        async with self._starts.start(request) as start:
            self.sent[name] = start
            await self._ends[name].wait()


@pytest.fixture
def starts() -> Starts:
    return Starts()


async def test_the_others_wait_until_the_first_answer_begins(starts: Starts) -> None:
    assert await starts.begin("a", "b", "c") == ["a"]
    starts.sent["a"].begin()
    assert await starts.settled() == ["a", "b", "c"]
    assert await starts.begin("d") == ["a", "b", "c", "d"]  # it can be read by now


async def test_an_answer_that_ends_at_once_has_begun(starts: Starts) -> None:
    await starts.begin("a", "b", "c")
    starts.sent["a"].begin()
    assert await starts.end("a") == ["a", "b", "c"]


async def test_what_begins_otherwise_or_is_no_first_request_waits_for_nobody(
    starts: Starts,
) -> None:
    await starts.begin("a")
    await starts.begin("model", request=replace(FIRST, model="n"))
    await starts.begin("tools", request=replace(FIRST, tools=[{"name": "t"}]))
    await starts.begin("later", "latest", request=LATER)
    folder = replace(FIRST, system=[FIRST.system[0], text_block("there")])
    sent = await starts.begin("another folder", request=folder)
    assert sent == ["a", "later", "latest", "model", "tools"]


async def test_where_the_first_fails_the_next_goes_ahead(starts: Starts) -> None:
    await starts.begin("a", "b", "c")
    assert await starts.end("a") == ["a", "b"]
    starts.sent["b"].begin()
    assert await starts.settled() == ["a", "b", "c"]


async def test_one_that_is_cancelled_holds_nobody_up(starts: Starts) -> None:
    await starts.begin("a", "b", "c")
    await starts.cancel("b")
    assert await starts.cancel("a") == ["a", "c"]


async def test_nobody_waits_for_long(starts: Starts) -> None:
    await starts.begin("a", "b", "c")
    starts.clock.advance(LONGEST_WAIT_S - 1)
    assert await starts.settled() == ["a"]
    starts.clock.advance(1)
    assert await starts.settled() == ["a", "b", "c"]
