"""Connects the two threads: the conversation's requests to the terminal, and the terminal's calls.

The conversation runs in an event loop in a thread of its own; the terminal is read in the main
thread.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, TypeAlias

from tui.core.dataclass import dataclass, field

Kind: TypeAlias = Literal["prompt", "answer", "hidden"]

_READ = 65_536


@dataclass(slots=True)
class LineRequest:
    """A line that the conversation waits for. `cancelled` is true once it no longer waits."""

    text: str
    kind: Kind
    done: asyncio.Future[str | None]
    cancelled: bool = False


@dataclass(slots=True)
class ThreadBridge:
    """A bridge that is open from its creation until `close`."""

    _loop: asyncio.AbstractEventLoop | None = None
    _requests: deque[LineRequest] = field(default_factory=deque[LineRequest])
    _wake: tuple[int, int] = field(default_factory=os.pipe)

    # In the loop's thread

    def meet(self) -> None:
        """Let `call` call into the running loop from now on."""
        self._loop = asyncio.get_running_loop()

    async def want(self, text: str, kind: Kind) -> str | None:
        """Wait for a line. Cancelling the wait withdraws the request."""
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
        """True if a request waits to be served."""
        return bool(self._requests)

    # In the main thread

    def next(self) -> LineRequest | None:
        """Return the request to serve now."""
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
        """Wait for the other thread, and with `keys` for input. True if there is input, None after
        the time limit."""
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
        """Call a function in the loop's thread, unless the loop has ended."""
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(function, *given)

    def part(self) -> None:
        """Note that the loop has ended."""
        self._loop = None
        self.poke()

    def poke(self) -> None:
        """End a wait of the main thread."""
        with suppress(OSError):
            os.write(self._wake[1], b"x")
