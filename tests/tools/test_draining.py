"""What is left in a command's pipe is waited for, and stopping ends that at any moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tui.tools.process import Process


async def test_a_stop_is_not_lost_when_the_output_ends_at_that_very_moment(tmp_path: Path) -> None:
    process = await Process.start("sleep 30 & echo x", cwd=tmp_path, sink=lambda _: None)
    try:
        assert await process.wait(None)
        draining = asyncio.create_task(process.drain())
        for _ in range(5):
            await asyncio.sleep(0)
        process._drained.set()  # pyright: ignore[reportPrivateUsage] - as the thread would
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draining
    finally:
        process.close()
