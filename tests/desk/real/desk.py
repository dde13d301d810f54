"""A desk as a process of its own, that can be stopped: it prints when its line is cut, and when it
has caught up with a session."""

from __future__ import annotations

import asyncio
import sys

from tests.desk.real.recorder import SessionRecorder
from tui.desk.far_host import FarHost


async def _main(session: str) -> None:
    host = FarHost("box")
    shown = ""

    def changed() -> None:
        nonlocal shown
        if host.problem != shown:
            shown = host.problem
            print(f"cut: {shown}" if shown else "reached", flush=True)

    host.follow(changed)
    follower = SessionRecorder(host, session)
    times = 0
    while True:
        await follower.until(lambda: follower.times > times, 10_000)  # noqa: B023 - awaited here
        times = follower.times
        print(f"caught up, {len(follower.faults)} faults", flush=True)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
