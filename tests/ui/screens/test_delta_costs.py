"""What one delta of a streamed answer takes in memory, in a short answer and in a long one."""

from __future__ import annotations

import statistics
import sys
import tracemalloc

from textual.pilot import Pilot

from tests.support.script import MODEL
from tests.support.world import World
from tests.ui.screens.driving import items, running, until
from tui.core import facts
from tui.ui.app import HoldfastApp
from tui.ui.widgets.conversation.items import AssistantItem

DELTAS, WARM = 8, 2
LONG = "".join(f"One of many sentences, number {number}.\n\n" for number in range(3_000))
BYTES = 40_000
"""At the height of one delta, until it is drawn. It may only fall."""
BLOCKS = 30
"""Of memory that are kept for one."""


async def stream(app: HoldfastApp, pilot: Pilot[None], text: str) -> None:
    """Show a delta, until it is drawn."""
    app.frontend.show(facts.TextDelta(text))
    await until(pilot, lambda: items(app, AssistantItem)[-1].text.endswith(text))


async def cost(app: HoldfastApp, pilot: Pilot[None]) -> tuple[float, float]:
    """The bytes that a delta takes at its height, and the blocks that it keeps, as medians."""
    heights, kept = list[int](), list[int]()
    tracemalloc.start()
    for number in range(WARM + DELTAS):
        before, blocks = tracemalloc.get_traced_memory()[0], sys.getallocatedblocks()
        tracemalloc.reset_peak()
        await stream(app, pilot, f"word{number} ")
        heights.append(tracemalloc.get_traced_memory()[1] - before)
        kept.append(sys.getallocatedblocks() - blocks)
    tracemalloc.stop()
    return statistics.median(heights[WARM:]), statistics.median(kept[WARM:])


async def test_a_delta_takes_little_memory_in_a_long_answer_too() -> None:
    async with running(World()) as (app, pilot):
        app.frontend.show(facts.RequestSent(1, 100, MODEL, 1))
        short, _ = await cost(app, pilot)
        await stream(app, pilot, f"\n\n{LONG}")
        long, kept = await cost(app, pilot)
        assert short <= BYTES
        assert long <= short + 1.2 * len(LONG), "the text may be copied once, and nothing else"
        assert kept <= BLOCKS
