"""What compactions cost as the server prices them: a warm one beside a cold one, and a session of
sixty turns that is compacted as it goes beside an ideal client that only ever appends.

In US dollars by the server's own cache, and the same in every run.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.long_session import compaction_cost, play

TURNS = 60
WINDOW = 100_000


def run() -> list[tuple[str, float, float]]:
    """Rows of (what, figure, figure allowed)."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        costs = {way: asyncio.run(compaction_cost(_in(root, way), way)) for way in _WAYS}
        one = asyncio.run(play(_in(root, "session"), TURNS, WINDOW))
    print(f"      {', '.join(f'{way} ${usd:.4f}' for way, usd in costs.items())}")
    print(
        f"      {TURNS} turns, {one.compactions} compactions, {one.refused} refused: "
        f"${one.dollars:.4f}; an ideal client ${one.ideal:.4f}"
    )
    return [
        ("a compaction by the server / a cold one", costs["server"] / costs["cold"], 0.25),
        ("a warm compaction / a cold one", costs["warm"] / costs["cold"], 0.25),
        ("sixty turns with compactions / an ideal client", one.dollars / one.ideal, 1.10),
    ]


_WAYS = ("server", "warm", "cold")


def _in(root: Path, name: str) -> Path:
    (root / name).mkdir()
    return root / name
