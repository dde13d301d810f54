"""The desk's view of one machine with 200 open sessions, of which 20 stream: the CPU that watching
them takes, the work that it does, and how soon a question is seen.

`watching` has the whole desk over real sessions. Here the owners are fake ones in a few processes
of their own, on real sockets, each of the streaming ones with 20 changes of its status a second.
The CPU is that of the watching process alone, over ten seconds, in percent of one processor. A
question counts from the order to ask it, which goes to its owner through a pipe, to the call that
says that the rows have it.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from tests.support.desk_world import Desk, home_in
from tests.support.owner import owner_process
from tui.desk.local_host import LocalHost

SESSIONS, STREAMING, PROCESSES = 200, 20, 4
PER_SECOND = 20.0
WATCHED_S = 10.0
QUESTIONS = 15
CPU_PERCENT = 5.0
SEEN_S = 0.3
"""Seconds in which a question has to be seen."""
CHANGES_PER_SECOND = 6.0


def run() -> list[tuple[str, float, float]]:
    """Return the rows."""
    ids = [f"{number:012x}" for number in range(SESSIONS)]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home = home_in(Path(folder))
        streams: list[IO[str]] = []
        for number in range(PROCESSES):
            process = stack.enter_context(
                owner_process(
                    home.data,
                    ids[number::PROCESSES],
                    streaming=STREAMING // PROCESSES,
                    per_second=PER_SECOND,
                )
            )
            assert process.stdin is not None
            streams.append(process.stdin)

        def ask(session: int) -> None:
            stream = streams[session % PROCESSES]
            stream.write(f"ask {ids[session]} q{session}\n")
            stream.flush()

        return asyncio.run(_measured(LocalHost(home), ids, ask))


async def _measured(
    host: LocalHost, ids: list[str], ask: Callable[[int], None]
) -> list[tuple[str, float, float]]:
    desk = Desk(host)
    try:
        await desk.until(lambda: sum(row.kind == "background" for row in host.rows) == len(ids))
        changes, cpu, began = desk.changes, time.process_time(), time.monotonic()
        await asyncio.sleep(WATCHED_S)
        seconds = time.monotonic() - began
        share = 100 * (time.process_time() - cpu) / seconds
        told = (desk.changes - changes) / seconds
        waits: list[float] = []
        for number in range(QUESTIONS):
            session = number * len(ids) // QUESTIONS
            asked = time.monotonic()
            ask(session)
            await desk.row_that(ids[session], lambda row: row.questions)
            waits.append(time.monotonic() - asked)
            await asyncio.sleep(0.05)
    finally:
        await host.close()
    about = f"with {len(ids)} sessions, {STREAMING} of them streaming"
    return [
        (f"the watching process's CPU in percent, {about}", share, CPU_PERCENT),
        (f"changes told in a second, {about}", told, CHANGES_PER_SECOND),
        (
            f"the time until a question is seen over {SEEN_S} s, median of {QUESTIONS}",
            statistics.median(waits) / SEEN_S,
            1.0,
        ),
        (f"the same, the longest of {QUESTIONS}", max(waits) / SEEN_S, 1.0),
    ]
