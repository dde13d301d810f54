"""What a session costs as the server prices it: four turns of ten commands each, 44 requests.

The program without a screen, its default model and configuration, each turn in a process of its
own; beside it, an ideal client that only ever appends, with the same prompt. Figures are in US
dollars by the server's own cache, and the same in every run.

And a run of thirty groups, six at a time, against the same in order: an entry of the cache can be
read once its first answer has begun. What the first request of another folder costs is checked in
`tests/agent/test_frame_blocks.py`.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support import group_run
from tests.support.command_session import play

TURNS = 4
GOAL = 0.42
GROUPS = 30
AT_ONCE = 6


def run() -> list[tuple[str, float, float]]:
    """Rows of (what, figure, figure allowed)."""
    with TemporaryDirectory() as folder:
        one = play(Path(folder), TURNS)
    with TemporaryDirectory() as folder:
        in_order, together = (group_run.play(Path(folder), GROUPS, n) for n in (1, AT_ONCE))
    print(
        f"      {one.requests} requests, {one.refused} refused: ${one.dollars:.4f}; "
        f"an ideal client ${one.ideal:.4f}"
    )
    print(
        f"      {GROUPS} groups in order: ${in_order.dollars:.4f}; {AT_ONCE} at a time: "
        f"${together.dollars:.4f}, {together.cold} cold"
    )
    return [
        ("four turns of ten commands, in dollars", one.dollars, GOAL),
        ("four turns of ten commands / an ideal client", one.dollars / one.ideal, 1.05),
        ("thirty groups, six at a time / in order", together.dollars / in_order.dollars, 1.15),
    ]
