"""No frame waits behind others: none is sent while the terminal is behind with what it was sent.

Frames pile up wherever a line is slower than the program: in the terminal, in ssh, in the network.
A key's echo would wait behind all of them, and a terminal that has stopped reading (a laptop that
sleeps, a text being marked) would stop the program, answer and commands included.

A frame is followed by a question that a terminal answers once it has drawn what came before (DSR,
ECMA-48). While the answer is late, frames are held; what the screen shows by then is one frame.
A terminal that does not answer is asked once, and only a full pipe holds its frames.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from math import inf
from threading import Event
from typing import Final

QUESTION: Final = "\x1b[5n"
ANSWER: Final = "\x1b[0n"

_ASK_EACH: Final = 256
"""After so many characters it asks again: a second of a line of 2,400 baud."""
_LATE_S: Final = 0.1
"""By so much an answer may take longer than the fastest one did."""
_UNHINDERED: Final = 64
"""Questions that may be open where answers come in time: a second of frames and more."""
_PATIENCE_S: Final = 1.0
_LONGEST_S: Final = 8.0
_LOST_S: Final = 20.0
_SILENT_AFTER: Final = 4
"""Frames sent without the answer that was due, one after the other: it answers no more."""
_LEAVING_S: Final = 1.0
"""How long nothing may come from the terminal before leaving stops waiting for it."""


class FramePacing:
    """What was sent, and how far the terminal is with it.

    The app's thread sends and asks `ready`; the writer's thread tells `drained`, the reader's
    `answered`. `now` counts seconds.

    `wake` is called, in those threads, when frames that are held may be ready.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._fastest = inf
        self.wake: Callable[[], object] = bool
        self.restart()

    def restart(self) -> None:
        """The terminal is taken (again): what was sent before does not count."""
        self._sent = self._drained = 0
        self._full_since = 0.0
        self._unasked = _ASK_EACH
        self._asked: deque[float] = deque()
        """When each question went out that may still be answered."""
        self._not_awaited = 0
        """How many of them, the oldest, no frame waits for any more."""
        self._unheard = 0
        """How often in a row a frame has not waited any longer."""
        self._heard = Event()
        self._leaving = False
        self._may_be_open = _UNHINDERED
        self._held_until: float | None = None
        self._sure = True
        """Whether each answer is to the oldest open question: none was lost."""
        self.patience_s = _PATIENCE_S

    def sent(self, size: int) -> None:
        """So many characters go to the writer."""
        if self._sent == self._drained:
            self._full_since = self._now()
        self._sent += 1
        self._unasked += size

    def drained(self, count: int) -> None:
        """The terminal's pipe has taken this many writes in all."""
        self._drained, self._full_since = count, self._now()
        self.wake()

    def asks(self) -> bool:
        """Whether a question goes out now, behind a frame. It counts as asked."""
        hindered = self._may_be_open < _UNHINDERED
        if self._leaving or (not hindered and self._unasked < _ASK_EACH):
            return False
        if self._asked and self._fastest == inf:
            return False
        self._unasked = 0
        self._asked.append(self._now())
        return True

    def answered(self) -> None:
        """The terminal has drawn all up to the oldest open question."""
        if not self._asked:
            return
        self._unheard = 0
        self._not_awaited = max(0, self._not_awaited - 1)
        took = self._now() - self._asked.popleft()
        if self._sure:
            self._fastest = min(self._fastest, took)
        in_time = took <= self._fastest + _LATE_S
        self._may_be_open = min(self._may_be_open + 1, _UNHINDERED) if in_time else 1
        self.patience_s = min(max(_PATIENCE_S, 2 * took), _LONGEST_S)
        self._heard.set()
        self.wake()

    def ready(self) -> bool:
        """Whether a frame would be drawn soon. Where it is not, ask again when `wake` is called,
        or after `patience_s`: an answer can get lost."""
        now = self._now()
        if self._sent != self._drained and now - self._full_since > _LATE_S:
            return False
        self._forget_lost(now)
        if self._asked and now - self._asked[0] > self._fastest + _LATE_S:
            self._may_be_open = 1
        if len(self._asked) - self._not_awaited < self._may_be_open:
            self._held_until = None
            return True
        if self._held_until is None:
            self._held_until = now + self.patience_s
        if now < self._held_until:
            return False
        self._held_until = None
        self.patience_s = min(self.patience_s * 2, _LONGEST_S)
        self._not_awaited = len(self._asked)
        self._unheard += 1
        if self._unheard == _SILENT_AFTER:
            self._asked.clear()
            self._fastest, self._not_awaited, self._may_be_open = inf, 0, _UNHINDERED
        return True

    def _forget_lost(self, now: float) -> None:
        while self._asked and now - self._asked[0] > _LOST_S:
            self._asked.popleft()
            self._not_awaited = max(0, self._not_awaited - 1)
            self._sure = False

    @property
    def stuck(self) -> bool:
        """Whether the terminal has taken or drawn nothing for longer than one would wait."""
        patience = self._now() - _LEAVING_S
        full = self._sent != self._drained and self._full_since < patience
        return full or (self._fastest < inf and bool(self._asked) and self._asked[0] < patience)

    def leave(self) -> None:
        """No question is asked from here on. Wait while answers come: a shell would take those
        that come later for keys. Until then somebody has to read them."""
        self._leaving = True
        while self._fastest < inf:
            self._heard.clear()
            if not self._asked or not self._heard.wait(_LEAVING_S):
                return
