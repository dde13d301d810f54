"""Silence ends an attempt, by the program's clock; signs of life do not, and are shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.provider.conversation import a_request, parts_of, provider_for
from tests.support.clock import PATIENCE_S, ManualClock
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.core.errors import ProviderError
from tui.core.facts import Alive, TextDelta
from tui.provider.anthropic.stall_timeout import (
    ALIVE_BYTES,
    LIFE,
    LONGEST_PINGING_S,
    NOTHING,
    PROGRESS,
    Silence,
)
from tui.provider.base import Completed, StreamPart


@dataclass
class _Attempt:
    """A request under way, and the hands of its clock."""

    server: LoopbackServer
    clock: ManualClock
    task: asyncio.Task[list[StreamPart]]
    parts: list[StreamPart]

    async def settled(self) -> None:
        """Let everything that can happen without time happen."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def after(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.settled()

    async def error(self) -> ProviderError:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ProviderError) as caught:
                await self.task
        return caught.value


async def _begun(attempt: _Attempt, kind: type[object] = TextDelta) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not any(isinstance(part, kind) for part in attempt.parts):  # noqa: ASYNC110 - a list
            await asyncio.sleep(0.001)


@asynccontextmanager
async def _attempt(fault: Json) -> AsyncGenerator[_Attempt]:
    """One request to a server with a fault; 600 s to the first byte, 120 s of silence."""
    clock, parts = ManualClock(), list[StreamPart]()
    async with LoopbackServer({"turns": [{"text": "a long answer", "faults": [fault]}]}) as server:
        provider = provider_for(server, clock=clock)

        async def listen() -> list[StreamPart]:
            async for part in provider.stream(a_request()):
                parts.append(part)
            return parts

        task = asyncio.create_task(listen())
        async with asyncio.timeout(PATIENCE_S):
            await server.post(1)
        try:
            yield _Attempt(server, clock, task, parts)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await provider.aclose()


async def test_late_first_byte_is_a_timeout() -> None:
    async with _attempt({"slow_s": 60}) as attempt:
        for _ in range(5):
            await attempt.after(119)
        assert not attempt.task.done()
        await attempt.after(5)
        error = await attempt.error()
        assert (error.error_class, error.retryable) == ("timeout", True)
        assert "within 600 s" in error.message
        assert "first_byte_timeout_s" in error.hint


async def test_a_header_and_nothing_is_a_timeout_too() -> None:
    async with _attempt({"stall_s": 60, "after": 0}) as attempt:
        for _ in range(5):
            await attempt.after(119)
        assert not attempt.task.done()
        await attempt.after(5)
        assert "within 600 s" in (await attempt.error()).message


async def test_silence_in_the_answer_is_a_timeout() -> None:
    async with _attempt({"stall_s": 60, "after": 4}) as attempt:
        await _begun(attempt)
        await attempt.settled()
        await attempt.after(119)
        assert not attempt.task.done()
        await attempt.after(1)
        error = await attempt.error()
        assert (error.error_class, error.retryable) == ("timeout", True)
        assert "nothing came for 120 s" in error.message
        async with asyncio.timeout(PATIENCE_S):
            await (await attempt.server.post(1)).gone.wait()


async def test_bytes_that_become_no_event_are_silence() -> None:
    async with _attempt({"drip_s": 0.005, "after": 4}) as attempt:
        await _begun(attempt)
        for _ in range(2):
            async with asyncio.timeout(PATIENCE_S):
                for _ in range(5):
                    await attempt.server.dripped.acquire()
            await attempt.after(60)
        assert "nothing came for 120 s" in (await attempt.error()).message


@pytest.mark.parametrize("comments", [False, True])
async def test_pings_and_comments_count_as_life_and_are_shown(comments: bool) -> None:
    fault = {"stall_s": 60, "ping_every_s": 0.01, "comments": comments, "after": 4}
    async with _attempt(fault) as attempt:
        await _begun(attempt)
        for _ in range(6):
            attempt.parts.clear()
            attempt.clock.advance(60)
            await _begun(attempt, Alive)
        assert not attempt.task.done()


async def test_life_is_shown_at_most_once_a_second() -> None:
    fault = {"stall_s": 0.1, "ping_every_s": 0.005, "after": 4}
    async with _attempt(fault) as attempt:
        async with asyncio.timeout(PATIENCE_S):
            await attempt.task
        assert isinstance(attempt.parts[-1], Completed)
        assert Alive() not in attempt.parts  # the clock stood still


async def test_a_connection_that_is_never_closed_does_not_hold_the_answer() -> None:
    async with _attempt({"open": True, "after": 2}) as attempt:
        async with asyncio.timeout(PATIENCE_S):
            parts = await attempt.task
        assert isinstance(parts[-1], Completed)


async def test_a_count_that_does_not_come_is_a_timeout() -> None:
    clock = ManualClock()
    async with LoopbackServer({"count_faults": [{"slow_s": 60}]}) as server:
        provider = provider_for(server, clock=clock)
        await provider.load()
        task = asyncio.create_task(provider.count_tokens(a_request()))
        async with asyncio.timeout(PATIENCE_S):
            while not server.requests:  # noqa: ASYNC110 - `post` waits for answers only
                await asyncio.sleep(0.001)
        clock.advance(30)
        with pytest.raises(ProviderError, match="within 30 s"):
            await task
        await provider.aclose()


async def _silent_for(clock: ManualClock, silence: Silence, seconds: float) -> bool:
    """Whether a wait of so many seconds is ended."""
    released = asyncio.Event()

    async def wait() -> bool:
        try:
            await silence.wait(released.wait())
        except TimeoutError:
            return True
        return False

    task = asyncio.create_task(wait())
    for _ in range(5):
        await asyncio.sleep(0)
    clock.advance(seconds)
    for _ in range(5):
        await asyncio.sleep(0)
    released.set()
    return await task


async def test_nothing_but_pings_for_an_hour_is_no_answer() -> None:
    clock = ManualClock()
    async with Silence(clock, 600, 120) as silence:
        for _ in range(int(LONGEST_PINGING_S / 100)):
            assert not silence.expired
            await _silent_for(clock, silence, 100)
            silence.heard(LIFE, 20)
        assert await _silent_for(clock, silence, 1)
        assert silence.only_pings


async def test_progress_starts_the_hour_anew_and_reading_slowly_is_no_silence() -> None:
    clock = ManualClock()
    async with Silence(clock, 600, 120) as silence:
        for _ in range(100):
            assert not await _silent_for(clock, silence, 100)
            silence.heard(PROGRESS, 20)
            clock.advance(1000)  # whoever reads takes its time
            await asyncio.sleep(0)


async def test_a_large_event_on_its_way_is_life() -> None:
    clock = ManualClock()
    async with Silence(clock, 600, 120) as silence:
        silence.heard(PROGRESS, 20)
        for _ in range(5):
            assert not await _silent_for(clock, silence, 80)
            assert silence.heard(NOTHING, ALIVE_BYTES)
        assert not silence.heard(NOTHING, 1)


async def test_after_a_stop_of_the_program_what_waits_in_the_socket_is_read_first() -> None:
    clock = ManualClock()
    async with Silence(clock, 600, 120) as silence:
        silence.heard(PROGRESS, 20)
        assert not await _silent_for(clock, silence, 10_000)
        assert silence.heard(PROGRESS, 20)


async def test_parts_of_a_fast_answer_are_as_ever() -> None:
    async with LoopbackServer({"turns": [{"text": "ok"}]}) as server:
        provider = provider_for(server)
        parts = await parts_of(provider.stream(a_request()))
        await provider.aclose()
    assert Alive() not in parts
