"""What an edit waits for a ready language server: in seconds, by the delays of real ones.

Each recording of `tests/tools/lsp/seen` is played to our client; the figure is the longest wait of
all edits after the first one. In real time, one server that answers at once is asked: what our own
part costs.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.tools.lsp.checking import with_wild
from tests.tools.lsp.replay import Timeline, at_most, played
from tests.tools.lsp.seen.scenarios import SCENARIOS, SEEN
from tests.tools.lsp.test_seen import WAIT_S, lay, server_of
from tui.tools.lsp import FileEdit

EDITS = 20


def run() -> list[tuple[str, float, float]]:
    """Rows of (what, seconds, seconds allowed)."""
    waits = {name: asyncio.run(_longest(name)) for name in SCENARIOS}
    print("      " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in waits.items()))
    own = asyncio.run(_own())
    return [
        ("an edit with a ready server, the slowest of all, in seconds", max(waits.values()), 0.5),
        ("an edit with a server that answers at once, in seconds", own, 0.5),
    ]


async def _longest(name: str) -> float:
    scenario, clock = SCENARIOS[name], Timeline()
    longest = 0.0

    async def session(root: Path) -> None:
        nonlocal longest
        for number, step in enumerate(scenario.steps):
            path, began = root / step.file, clock.elapsed
            before = path.read_text()
            path.write_text(step.text)
            await at_most(WAIT_S, clock, checkers.begin([FileEdit(path, before, step.text)]))
            longest = max(longest, clock.elapsed - began if number else 0)
            await checkers.finish(60)
        await checkers.close()

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        root = Path(folder).resolve()
        lay(root, scenario)
        checkers = server_of(name, scenario, root, clock)
        with played(SEEN / f"{name}.jsonl", root, clock, patch):
            await clock.run(session(root))
    return round(longest, 3)


async def _own() -> float:
    with TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "a.txt"
        checkers = with_wild(path.parent, "pulled")
        path.write_text("")
        waits: list[float] = []
        for number in range(EDITS):
            before, after = path.read_text(), f"fine {number}\nBAD {number}\n"
            path.write_text(after)
            began = time.perf_counter()
            await checkers.begin([FileEdit(path, before, after)])
            waits.append(time.perf_counter() - began)
            assert len(checkers.take([path])) == 1
        await checkers.close()
    return max(waits[1:])
