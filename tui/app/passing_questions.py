"""Questions that close by themselves once what they are about is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

LOOK_S: Final = 1.0
"""Seconds between two looks at what another program may change."""


async def answer_while(
    asking: Coroutine[Any, Any, T], over: Coroutine[Any, Any, object], instead: T
) -> T:
    """The answer to a question; `instead` where what it is about is over before there is one."""
    asked, passed = asyncio.ensure_future(asking), asyncio.ensure_future(over)
    try:
        await asyncio.wait({asked, passed}, return_when=asyncio.FIRST_COMPLETED)
        return asked.result() if asked.done() else instead
    finally:
        asked.cancel()
        passed.cancel()
        await asyncio.gather(asked, passed, return_exceptions=True)


async def until(over: Callable[[], bool]) -> None:
    """Wait until something is over, as a look at it says that blocks."""
    while not await asyncio.to_thread(over):  # noqa: ASYNC110 - other processes change it
        await asyncio.sleep(LOOK_S)
