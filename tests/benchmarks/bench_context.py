"""What a session of 200 turns costs: pruning that waits until it pays, beside the alternatives.

Costs are in tokens of plain input, by the cache's prices (write 1.25, read 0.1, five minutes);
the tokens by class are printed. Where pruning every turn loses against caching alone, it is said.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.prompt_cache import EVERY_TURN, NEVER, PAYS, play

TURNS = 200


def run() -> list[tuple[str, float, float]]:
    """Rows of (what, ratio measured, ratio allowed)."""
    return asyncio.run(_run())


async def _run() -> list[tuple[str, float, float]]:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        pays = await play(root, "caching, pruned when it pays", TURNS, PAYS)
        every = await play(root, "caching, pruned every turn", TURNS, EVERY_TURN)
        alone = await play(root, "caching alone", TURNS, NEVER)
        uncached = await play(
            root, "pruned every turn, no caching", TURNS, EVERY_TURN, caching=False
        )
        neither = await play(root, "neither", TURNS, NEVER, caching=False)
    for outcome in (pays, every, alone, uncached, neither):
        print(f"      {outcome.line()}")
    verdict = "loses" if every.cost > alone.cost else "wins"
    share = every.cost / alone.cost
    print(f"      pruning every turn {verdict} against caching alone: {share:.2f} of its cost")
    return [
        ("200 turns: pruned when it pays / caching alone", pays.cost / alone.cost, 1.0),
        ("200 turns: pruned when it pays / pruned every turn", pays.cost / every.cost, 1.0),
        ("200 turns: pruned when it pays / neither", pays.cost / neither.cost, 0.5),
    ]
