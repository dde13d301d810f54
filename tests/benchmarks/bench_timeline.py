"""A session seen at a glance: its timeline, its page, and what it costs to watch it live.

Figures are processor time, of a session of 50,000 messages (`--messages`): the fold beside the
reading of its file, a redraw and a step of the cursor at 200x50 and the page as shares of what they
may take on a quiet machine. The page is made from its file, in two processes, and both count;
the time by the clock is said. Live, the same answer streams with the timeline open and without.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tests.benchmarks.bench_usage import START, session_records
from tests.benchmarks.pace import slowness
from tests.benchmarks.process_cost import cpu_s, own_and_children_s
from tests.benchmarks.streamed import streaming
from tests.support.terminal import HOLDFAST, Terminal
from tests.ui.screens.test_timeline import looking
from tui.app.session_page import session_page
from tui.context.timeline import SessionTimeline
from tui.core.clock import timestamp
from tui.core.dataclass import replace
from tui.session.chain import all_linked
from tui.session.reader import read
from tui.session.records import Header, Record

MESSAGES = 50_000
SIZE = (200, 50)
FRAME_S, PAGE_S, PAGE_BYTES = 0.016, 6.0, 3_000_000
TOKENS, PER_SECOND = 1500, 100
STEPS = 15
_Made = TypeVar("_Made")


def run() -> list[tuple[str, float, float]]:
    """(name, ratio measured, ratio allowed) of each measurement."""
    return _measured(MESSAGES)


def _measured(messages: int) -> list[tuple[str, float, float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "20261101T090000Z-abcdefabcdef.jsonl")
        header = Header("abcdefabcdef", timestamp(START), "/w", "holdfast 1")
        lines = [header.to_line(), *(one.to_line() for one in long_session(messages))]
        path.write_bytes(b"".join(all_linked(lines)))
        reading, loaded = _timed(lambda: read(path))
        folding, _ = _timed(lambda: SessionTimeline({}).extend(loaded.branch))
        drawing, stepping = asyncio.run(_drawn(loaded.branch))
        begun, cpu = time.monotonic(), own_and_children_s()
        page = session_page(read(path), {})
        wall, paging = time.monotonic() - begun, own_and_children_s() - cpu
        slow = slowness()
        alone, watched = _streamed(Path(folder), watch=False), _streamed(Path(folder), watch=True)
    told = f"{messages:,} messages"
    size = len(page.text.encode())
    return [
        (f"folding {told}, {folding:.2f} CPU s ÷ reading {reading:.2f}", folding / reading, 2.2),
        _within(f"a redraw of {told}", drawing, FRAME_S * slow),
        _within(f"a step of the cursor in {told}", stepping, FRAME_S * slow),
        _within(
            f"the page of {told} in two processes, {wall:.1f} s by the clock",
            paging,
            PAGE_S * slow,
        ),
        (f"the page of {told}, {size / 1e6:.2f} MB of 3", size / PAGE_BYTES, 1),
        (
            f"{TOKENS:,} tokens with F9 open, {watched:.2f} CPU s ÷ {alone:.2f} without",
            watched / alone,
            1.03,
        ),
    ]


def _within(what: str, measured: float, allowed: float) -> tuple[str, float, float]:
    return f"{what}, {measured * 1000:,.1f} ms CPU of {allowed * 1000:,.0f}", measured / allowed, 1


def long_session(messages: int) -> list[Record]:
    """The records of a session with so many messages: with requests and intents, as real ones."""
    made: list[Record] = []

    def put(kind: str, like: Record, **data: object) -> None:
        parent = made[-1].id if made else None
        made.append(Record(kind, f"{like.id}-{kind}", parent, like.time, data))

    for n, one in enumerate(session_records(random.Random(3), messages)):
        data = one.data
        if one.type == "assistant":
            put("request", one, n=n, model=data["model"], server="s", max_tokens=32_000)
        if one.type == "tool_result":
            put("intent", one, call_id=data["call_id"], tool="read_file", label=f"m{n % 40}.py")
        made.append(replace(one, parent=made[-1].id if made else None))
    return made


async def _drawn(records: Sequence[Record]) -> tuple[float, float]:
    """Median seconds of a redraw, and of a step of the cursor."""
    async with looking(records, SIZE) as (screen, pilot, _):
        while screen.timeline.count < len(records):
            await pilot.pause()
        view = screen.view
        gc.collect()

        def shown(action: Callable[[], object]) -> float:
            def both() -> None:
                action()
                view.render_lines(view.size.region)

            return _timed(both)[0]

        draws = [shown(view.draw) for _ in range(STEPS)]
        steps = [shown(lambda: view.move(-1)) for _ in range(STEPS)]
    return statistics.median(draws), statistics.median(steps)


def _streamed(home: Path, *, watch: bool) -> float:
    """CPU seconds of the program while an answer comes, with the timeline open or without."""
    work = home / "work"
    work.mkdir(exist_ok=True)
    with streaming(home, tokens=TOKENS, piece=4, every_s=1 / PER_SECOND) as url:
        env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
        env |= {"HOLDFAST_HOME": str(home), "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
        with Terminal(HOLDFAST, cwd=work, env=env, columns=SIZE[0], rows=SIZE[1]) as screen:
            screen.wait_for("Ask for anything")
            screen.type("hello\r")
            screen.wait_for("1 prompt")
            if watch:  # its modules are loaded once, not for each answer
                for key, words in (("\x1b[20~", "timeline"), ("\x1b", "Ask for anything")):
                    screen.forget()
                    screen.type(key)
                    screen.wait_for(words)
            screen.type("go\r")
            screen.wait_for("Part 0")
            if watch:
                screen.type("\x1b[20~")
                screen.wait_for("2 prompts")
            before = cpu_s(screen.process.pid)
            until = time.monotonic() + TOKENS / PER_SECOND
            while (left := until - time.monotonic()) > 0:
                screen.read(left)
            return cpu_s(screen.process.pid) - before


def _timed(work: Callable[[], _Made]) -> tuple[float, _Made]:
    start = time.process_time()
    made = work()
    return time.process_time() - start, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    for name, measured, allowed in _measured(parser.parse_args().messages):
        print(f"{name:<90} {measured:8.3f}  (allowed {allowed})")


if __name__ == "__main__":
    main()
