"""Between the two threads: what the conversation asks of the terminal, what the terminal tells it.

The conversation runs in an event loop in a thread of its own, the terminal is read in the main
thread.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["prompt", "answer", "hidden"]

_READ = 65_536


@dataclass(slots=True)
class LineRequest:
    """A line that the conversation waits for. `cancelled`: it waits no longer."""

    text: str
    kind: Kind
    done: asyncio.Future[str | None]
    cancelled: bool = False


@dataclass(slots=True)
class ThreadBridge:
    """Open from its making until `close`."""

    _loop: asyncio.AbstractEventLoop | None = None
    _requests: deque[LineRequest] = field(default_factory=deque[LineRequest])
    _wake: tuple[int, int] = field(default_factory=os.pipe)

    # In the loop's thread

    def meet(self) -> None:
        """From now on `call` calls into the loop that runs."""
        self._loop = asyncio.get_running_loop()

    async def want(self, text: str, kind: Kind) -> str | None:
        """Wait for a line. Cancelling the wait takes the request back."""
        self.meet()
        request = LineRequest(text, kind, asyncio.get_running_loop().create_future())
        self._requests.append(request)
        self.poke()
        try:
            return await request.done
        finally:
            request.cancelled = True
            self.poke()

    @property
    def asked(self) -> bool:
        """Whether a request waits to be served."""
        return bool(self._requests)

    # In the main thread

    def next(self) -> LineRequest | None:
        """The request that is to be served now."""
        while self._requests:
            if not (request := self._requests.popleft()).cancelled:
                return request
        return None

    def give(self, request: LineRequest, line: str | None) -> None:
        """Serve a request."""

        def give() -> None:
            if not request.done.done():
                request.done.set_result(line)

        self.call(give)

    def wait(self, *, keys: bool, seconds: float | None = None) -> bool | None:
        """Wait for the other thread, and with `keys` for something to read. Returns whether there
        is, None when the time is over."""
        watched = [0, self._wake[0]] if keys else [self._wake[0]]
        ready = select.select(watched, [], [], seconds)[0]
        if self._wake[0] in ready:
            os.read(self._wake[0], _READ)
            return False
        return True if ready else None

    def close(self) -> None:
        for end in self._wake:
            os.close(end)

    # In both

    def call(self, function: Callable[..., object], *given: object) -> None:
        """Call something in the loop's thread, unless that has ended."""
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(function, *given)

    def part(self) -> None:
        """The loop has ended."""
        self._loop = None
        self.poke()

    def poke(self) -> None:
        """End a wait of the main thread."""
        with suppress(OSError):
            os.write(self._wake[1], b"x")
