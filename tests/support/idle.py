"""Waiting for an app to be at rest, decided by its event loop and not by a clock."""

from __future__ import annotations

import asyncio
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

import pytest
import textual.app
import textual.pilot
import textual.screen

QUIET = 3
"""Rounds of the loop without anything to do, after which nothing more is to come."""
SOON_S = 0.02
"""What a timer does within this time is waited for, as Textual's own waiting does."""
TIMERS = 100
"""So many of them; an app that is on its way out redraws without end."""

_in_threads: Final[WeakKeyDictionary[Any, set[asyncio.Future[Any]]]] = WeakKeyDictionary()


_held: Final[list[None]] = []


@contextmanager
def threads_held() -> Generator[None]:
    """Within, an app is at rest although threads work for it: the test holds them up."""
    _held.append(None)
    try:
        yield
    finally:
        _held.pop()


async def idle(min_sleep: float = 0.0, max_sleep: float = 5.0) -> None:
    """Return when no callback is ready, no thread works for the loop and no timer is due soon.

    Takes the place of `textual._wait.wait_for_idle`, which sleeps 20 ms at a time and takes a
    process that gets no processor for an idle one. A thread that the test holds up is waited for
    as long as `max_sleep`, unless it says so with `threads_held`.
    """
    loop = cast("Any", asyncio.get_running_loop())
    deadline = loop.time() + max_sleep
    quiet = timers = 0
    while quiet < QUIET and timers < TIMERS and loop.time() < deadline:
        await asyncio.sleep(0)
        if loop._ready:
            quiet = 0
            continue
        if working := not _held and _in_threads.get(loop):
            quiet = 0
            await asyncio.wait(working, timeout=deadline - loop.time())
            continue
        horizon = loop.time() + SOON_S
        due = [handle.when() for handle in loop._scheduled if not handle.cancelled()]
        if due and min(due) <= horizon:
            quiet = 0
            timers += 1
            await asyncio.sleep(max(0.0, min(due) - loop.time()))
        else:
            quiet += 1


def wait_until_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pilot wait until the app is at rest: no longer than that takes, and no shorter."""
    monkeypatch.setattr(textual.app, "wait_for_idle", idle)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", idle)
    monkeypatch.setattr(textual.screen, "UPDATE_PERIOD", 1 / 1000)
    _watch_threads(monkeypatch)


def _watch_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Know what every loop has threads do."""
    run = BaseEventLoop.run_in_executor

    def noted(loop: BaseEventLoop, executor: Any, work: Callable[..., Any], *args: Any) -> Any:
        future = run(loop, executor, work, *args)
        working = _in_threads.setdefault(loop, set())
        working.add(future)
        future.add_done_callback(working.discard)
        return future

    monkeypatch.setattr(BaseEventLoop, "run_in_executor", noted)
