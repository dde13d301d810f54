"""What a session of 200 turns costs: pruning that waits until it pays, beside the alternatives.

Costs are in tokens of plain input, by the cache's prices (write 1.25, read 0.1, five minutes);
the tokens by class are printed. Where pruning every turn loses against caching alone, it is said.
Two sessions that the rules were not found on are played as well, one of them without a break:
on these, pruning when it pays is held to be about even with caching alone, not better.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.prompt_cache import (
    EVERY_TURN,
    HASTY,
    NEVER,
    PAYS,
    UNBROKEN,
    Outcome,
    play,
)

TURNS = 200
ALONE = "200 turns: pruned when it pays / caching alone"


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
        _print(pays, every, alone, uncached, neither)
        verdict = "loses" if every.cost > alone.cost else "wins"
        share = every.cost / alone.cost
        print(f"      pruning every turn {verdict} against caching alone: {share:.2f} of its cost")
        hasty = await play(root, "others, pays", TURNS, PAYS, habits=HASTY)
        hasty_alone = await play(root, "others, alone", TURNS, NEVER, habits=HASTY)
        unbroken = await play(root, "no break, pays", TURNS, PAYS, habits=UNBROKEN)
        unbroken_alone = await play(root, "no break, alone", TURNS, NEVER, habits=UNBROKEN)
        _print(hasty, hasty_alone, unbroken, unbroken_alone)
        print("      there pruning is about even: compactions make room as well, and cost little;")
        print("      what it saves is words: fewer summaries stand for the conversation")
    return [
        (ALONE, pays.cost / alone.cost, 1.0),
        (f"{ALONE}, other sizes and breaks", hasty.cost / hasty_alone.cost, 1.05),
        (f"{ALONE}, no break at all", unbroken.cost / unbroken_alone.cost, 1.15),
        ("200 turns: pruned when it pays / pruned every turn", pays.cost / every.cost, 1.0),
        ("200 turns: pruned when it pays / neither", pays.cost / neither.cost, 0.5),
    ]


def _print(*outcomes: Outcome) -> None:
    for outcome in outcomes:
        print(f"      {outcome.line()}")
