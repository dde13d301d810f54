"""A lock that many may share, or one has alone."""

from __future__ import annotations

import asyncio

from tui.core.shared_lock import SharedLock


async def test_many_share_it_and_one_waits_until_they_are_done() -> None:
    lock, done = SharedLock(), list[str]()

    def remove() -> None:
        with lock.alone():
            done.append("alone")

    async with lock.shared(), lock.shared():
        removing = asyncio.create_task(asyncio.to_thread(remove))
        while not lock._alone:  # noqa: ASYNC110 # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0)
        late = asyncio.create_task(_share(lock, done))
        for _ in range(10):
            await asyncio.sleep(0)
        assert done == []
    await asyncio.gather(removing, late)
    assert done == ["alone", "shared"], "who wants it alone comes first"


async def _share(lock: SharedLock, done: list[str]) -> None:
    async with lock.shared():
        done.append("shared")


async def test_who_gives_up_leaves_nothing_behind() -> None:
    lock, done = SharedLock(), list[str]()
    with lock.alone():
        waiting = asyncio.create_task(_share(lock, done))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    with lock.alone():
        done.append("alone")
    assert done == ["alone"]
