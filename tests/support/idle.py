"""Waiting for Textual's message pumps, decided by the event loop and not by a clock."""

from __future__ import annotations

import asyncio
from typing import Any, cast

QUIET = 3
"""Rounds of the loop without anything to do, after which nothing more is to come."""
SOON_S = 0.02
"""What a timer does within this time is waited for, as Textual's own waiting does."""
TIMERS = 100
"""So many of them; an app that is on its way out redraws without end."""


async def idle(min_sleep: float = 0.0, max_sleep: float = 5.0) -> None:
    """Return when no callback is ready and no timer is due soon.

    Takes the place of `textual._wait.wait_for_idle`, which sleeps 20 ms at a time and takes a
    process that gets no processor for an idle one.
    """
    loop = cast("Any", asyncio.get_running_loop())
    deadline = loop.time() + max_sleep
    quiet = timers = 0
    while quiet < QUIET and timers < TIMERS and loop.time() < deadline:
        await asyncio.sleep(0)
        if loop._ready:
            quiet = 0
            continue
        horizon = loop.time() + SOON_S
        due = [handle.when() for handle in loop._scheduled if not handle.cancelled()]
        if due and min(due) <= horizon:
            quiet = 0
            timers += 1
            await asyncio.sleep(max(0.0, min(due) - loop.time()))
        else:
            quiet += 1
