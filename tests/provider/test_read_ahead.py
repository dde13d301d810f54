"""The body of an answer is read as it comes, and handled in as few pieces as it can be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.provider.conversation import a_request, provider_for
from tests.support.byte_server import ByteServer
from tests.support.clock import PATIENCE_S, ManualClock
from tui.core import gc_pause
from tui.core.errors import ProviderError
from tui.core.facts import TextDelta
from tui.provider.anthropic.read_ahead import BUFFER_BYTES, PIECE_BYTES, ReadAhead
from tui.provider.base import StreamPart


def _event(type_: str, **fields: object) -> bytes:
    return f"event: {type_}\ndata: {json.dumps({'type': type_} | fields)}\n\n".encode()


def _word(text: str) -> bytes:
    return _event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


_BEGUN = [
    _event("message_start", message={"id": "m"}),
    _event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
]
_ENDED = [
    _event("message_delta", delta={"stop_reason": "end_turn"}),
    _event("message_stop"),
]


async def _parts(chunks: Sequence[bytes]) -> tuple[list[StreamPart], ProviderError | None]:
    """What an answer in these chunks shows, and its error."""
    parts: list[StreamPart] = []
    async with ByteServer(chunks) as server:
        provider = provider_for(server)
        try:
            async for part in provider.stream(a_request()):
                parts.append(part)  # noqa: PERF401 - what came before the error counts
        except ProviderError as error:
            return parts, error
        finally:
            await provider.aclose()
    return parts, None


def _shown(parts: list[StreamPart]) -> list[str]:
    return [part.text for part in parts if isinstance(part, TextDelta)]


async def test_events_that_come_together_are_few_deltas() -> None:
    words = [_word("word ") for _ in range(500)]
    parts, error = await _parts([*_BEGUN, *words, *_ENDED])
    assert error is None
    assert "".join(_shown(parts)) == "word " * 500
    assert len(_shown(parts)) < 50  # one, unless the machine is busy


async def test_what_comes_before_an_error_is_shown() -> None:
    cut = _event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    parts, error = await _parts([*_BEGUN, *(_word("w") for _ in range(50)), cut])
    assert "".join(_shown(parts)) == "w" * 50
    assert error is not None
    assert error.error_class == "overloaded"


class _Chunks:
    """Chunks of a body that are all there, and then perhaps an error. Counts those that were read;
    `closed` once nobody reads on."""

    def __init__(self, *chunks: bytes, error: Exception | None = None, wait: bool = False) -> None:
        self.chunks, self.error, self.wait = chunks, error, wait
        self.read, self.closed = 0, False

    async def __call__(self) -> AsyncGenerator[bytes]:
        try:
            for chunk in self.chunks:
                self.read += 1
                yield chunk
            if self.error is not None:
                raise self.error
            if self.wait:
                await asyncio.Event().wait()
        finally:
            self.closed = True


async def _all(ahead: ReadAhead) -> list[bytes]:
    pieces: list[bytes] = []
    while piece := await ahead.read():
        pieces.append(piece)
    return pieces


async def test_an_error_is_raised_after_the_bytes_before_it() -> None:
    chunks = _Chunks(b"a", b"b", error=OSError("reset"))
    async with ReadAhead(chunks(), ManualClock()) as ahead:
        assert await ahead.read() == b"ab"
        for _ in range(2):
            with pytest.raises(OSError, match="reset"):
                await ahead.read()


@given(st.lists(st.integers(0, 3 * PIECE_BYTES), max_size=40))
async def test_every_byte_comes_once_in_pieces_of_a_limited_size(sizes: list[int]) -> None:
    chunks = [bytes([n % 251]) * size for n, size in enumerate(sizes)]
    async with ReadAhead(_Chunks(*chunks)(), ManualClock()) as ahead:
        pieces = await _all(ahead)
        assert await ahead.read() == b""
    assert b"".join(pieces) == b"".join(chunks)
    assert all(len(piece) <= PIECE_BYTES for piece in pieces)


async def test_no_more_is_read_than_fits_the_buffer() -> None:
    chunks = _Chunks(*[b"x" * 1000] * 5000)
    async with ReadAhead(chunks(), ManualClock()) as ahead:
        first = await ahead.read()
        for _ in range(5000):
            await asyncio.sleep(0)
        assert chunks.read * 1000 <= BUFFER_BYTES + PIECE_BYTES + 1000
        assert sum(map(len, await _all(ahead))) == 5_000_000 - len(first)


async def test_pieces_are_full_while_each_turn_of_the_loop_brings_more() -> None:
    async def chunks() -> AsyncGenerator[bytes]:
        for _ in range(1000):
            yield b"x" * 100
            await asyncio.sleep(0)

    async with ReadAhead(chunks(), ManualClock()) as ahead:
        assert [len(piece) for piece in await _all(ahead)][:3] == [PIECE_BYTES] * 3


async def test_reading_gives_way() -> None:
    """Keys are processed meanwhile."""
    chunks = _Chunks(*[b"x"] * BUFFER_BYTES)
    async with ReadAhead(chunks(), ManualClock()):
        await asyncio.sleep(0)
        assert 0 < chunks.read < BUFFER_BYTES


async def test_a_key_on_its_way_has_the_turns_of_the_loop_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    monkeypatch.setattr(gc_pause, "monotonic", clock.monotonic)
    gc_pause.key_read()
    chunks = _Chunks(*[b"x" * PIECE_BYTES] * 20)
    async with ReadAhead(chunks(), clock) as ahead:
        reading = asyncio.create_task(ahead.read())
        for turn in range(1, 10):
            await asyncio.sleep(0)
            assert chunks.read <= turn
        assert not reading.done()
        clock.elapsed += 0.001
        gc_pause.key_drawn()
        assert await reading == b"x" * PIECE_BYTES


async def test_what_was_waited_for_comes_alone_and_nothing_is_read_until_the_next() -> None:
    """So that the rest of a slow stream gathers in the socket."""
    clock, came = ManualClock(), asyncio.Event()

    async def slow() -> AsyncGenerator[bytes]:
        await came.wait()
        yield b"a"
        yield b"b"
        yield b"c"

    async with ReadAhead(slow(), clock) as ahead:
        reading = asyncio.create_task(ahead.read())
        await asyncio.sleep(0)
        clock.elapsed += 0.01
        came.set()
        assert await reading == b"a"
        assert ahead.waited
        assert await ahead.read() == b"bc"
        assert not ahead.waited


@pytest.mark.parametrize(
    "chunks", [_Chunks(*[b"x" * 1000] * 5000), _Chunks(b"x", wait=True)], ids=["full", "waiting"]
)
async def test_nothing_is_left_once_it_is_closed(chunks: _Chunks) -> None:
    before = asyncio.all_tasks()
    async with ReadAhead(chunks(), ManualClock()) as ahead:
        await ahead.read()
    assert chunks.closed
    assert asyncio.all_tasks() == before


async def test_closing_in_the_middle_of_a_fast_answer_closes_the_connection() -> None:
    words = [_word("word " * 200) for _ in range(20_000)]  # more than the sockets hold
    async with ByteServer([*_BEGUN, *words, *_ENDED]) as server:
        provider = provider_for(server)
        before = asyncio.all_tasks()
        async with aclosing(provider.stream(a_request())) as stream:
            async for part in stream:
                if isinstance(part, TextDelta):
                    break
        async with asyncio.timeout(PATIENCE_S):
            await server.served.wait()
        left = [task for task in asyncio.all_tasks() - before if "_serve" not in repr(task)]
        await provider.aclose()
    assert not left
