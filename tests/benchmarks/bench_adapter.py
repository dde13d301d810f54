"""CPU per event of the adapter, beside a bare `create(stream=True)` loop that only iterates.

The server runs in a process of its own; what is measured is the CPU time of this one.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anthropic

from tui.core.clock import SystemClock
from tui.core.messages import text_block
from tui.provider.anthropic import AnthropicProvider
from tui.provider.base import Completed, Request

EVENTS = 20_000
PIECE = 14
ROUNDS = 5
ALLOWED = 1.5
MODEL = "claude-sonnet-5-5"

_REQUEST = Request(MODEL, [], [{"role": "user", "content": [text_block("hello")]}], [], 1000)


def _turns() -> list[dict[str, Any]]:
    text = "x" * (EVENTS * PIECE)
    call = json.dumps({"content": "y" * (EVENTS * PIECE - len('{"content": ""}'))})
    common = {"piece": PIECE, "burst": True}
    return [
        {"text": text, **common},
        {"tools": [{"name": "write_file", "json": call}], **common},
    ]


async def _cpu(work: Callable[[], Awaitable[None]]) -> float:
    started = time.process_time()
    await work()
    return time.process_time() - started


async def _measure(url: str) -> list[tuple[float, float]]:
    """CPU seconds of (ours, bare) for each kind of turn: the medians of rounds taken in turn."""
    provider = AnthropicProvider(api_key="k", base_url=url, clock=SystemClock())
    client = anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0)
    await provider.load()

    async def ours() -> None:
        completed = False
        async for part in provider.stream(_REQUEST):
            completed = isinstance(part, Completed)
        if not completed:
            raise RuntimeError("the answer did not complete")

    async def bare() -> None:
        events = 0
        stream = await client.messages.create(
            model=MODEL,
            max_tokens=1000,
            messages=[{"role": "user", "content": "hello"}],
            stream=True,
        )
        async for _ in stream:
            events += 1
        if events < EVENTS:
            raise RuntimeError(f"only {events} events came")

    found: list[tuple[float, float]] = []
    for _ in _turns():
        pairs = [(await _cpu(ours), await _cpu(bare)) for _ in range(ROUNDS + 1)][1:]
        found.append(
            (statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs))
        )
    await provider.aclose()
    await client.close()
    return found


def run() -> list[tuple[str, float, float]]:
    """Two rows: 20,000 text deltas and 20,000 deltas of a tool's input."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        repeated = [turn for turn in _turns() for _ in range(2 * (ROUNDS + 1))]
        script.write_text(json.dumps({"turns": repeated}))
        command = [sys.executable, "-m", "tests.support.server", "--script", str(script)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                measured = asyncio.run(_measure(server.stdout.readline().strip()))
            finally:
                server.terminate()
    rows: list[tuple[str, float, float]] = []
    for kind, (ours, bare) in zip(("text", "tool-input"), measured, strict=True):
        micro = 1e6 / EVENTS
        what = (
            f"adapter: CPU per event, {EVENTS:,} {kind} deltas, {ours * micro:.1f} µs ÷ bare SDK "
            f"stream {bare * micro:.1f} µs"
        )
        rows.append((what, ours / bare, ALLOWED))
    return rows
