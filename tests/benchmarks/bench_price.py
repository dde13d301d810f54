"""What a session costs as the server prices it: four turns of ten commands each, 44 requests.

The program without a screen, its default model and configuration, each turn in a process of its
own; beside it, an ideal client that only ever appends, with the same prompt. Figures are in US
dollars by the server's own cache, and the same in every run.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.command_session import play

TURNS = 4
GOAL = 0.42


def run() -> list[tuple[str, float, float]]:
    """Rows of (what, figure, figure allowed)."""
    with TemporaryDirectory() as folder:
        one = play(Path(folder), TURNS)
    print(
        f"      {one.requests} requests, {one.refused} refused: ${one.dollars:.4f}; "
        f"an ideal client ${one.ideal:.4f}"
    )
    return [
        ("four turns of ten commands, in dollars", one.dollars, GOAL),
        ("four turns of ten commands / an ideal client", one.dollars / one.ideal, 1.05),
    ]
