"""Holds frames while the terminal is still drawing earlier ones, so that none queues behind others.

Frames pile up wherever a line is slower than the program: in the terminal, in ssh, in the network.
A key's echo would wait behind all of them, and a terminal that has stopped reading (a sleeping
laptop, text being selected) would stop the program, answer and commands included.

A frame is followed by a question that a terminal answers once it has drawn what came before (DSR,
ECMA-48). While the answer is late, frames are held; then one frame shows the current screen. A
terminal that does not answer is asked once, and only a full pipe holds its frames.
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
"""Characters after which it asks again: a second on a line of 2,400 baud."""
_LATE_S: Final = 0.1
"""Seconds that an answer may take longer than the fastest one did."""
_UNHINDERED: Final = 64
"""Questions that may be open while answers come in time: more than a second of frames."""
_PATIENCE_S: Final = 1.0
_LONGEST_S: Final = 8.0
_LOST_S: Final = 20.0
_SILENT_AFTER: Final = 4
"""Frames sent in a row without the answer that was due before the terminal counts as silent."""
_LEAVING_S: Final = 1.0
"""Seconds without anything from the terminal before leaving stops waiting for it."""


class FramePacing:
    """Tracks what was sent and how far the terminal is with it.

    The app's thread sends and asks `ready`; the writer's thread reports `drained`, the reader's
    thread `answered`. `now` counts seconds.

    `wake` is called, in those threads, when held frames may be ready.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._fastest = inf
        self.wake: Callable[[], object] = bool
        self.restart()

    def restart(self) -> None:
        """Start over with a terminal that was taken (again): what was sent before does not
        count."""
        self._sent = self._drained = 0
        self._full_since = 0.0
        self._unasked = _ASK_EACH
        self._asked: deque[float] = deque()
        """Send times of the questions that may still be answered."""
        self._not_awaited = 0
        """Number of the oldest questions that no frame waits for any more."""
        self._unheard = 0
        """Number of frames in a row that have stopped waiting."""
        self._heard = Event()
        self._leaving = False
        self._may_be_open = _UNHINDERED
        self._held_until: float | None = None
        self._sure = True
        """True while each answer belongs to the oldest open question: none was lost."""
        self.patience_s = _PATIENCE_S

    def sent(self, size: int) -> None:
        """Count characters that go to the writer."""
        if self._sent == self._drained:
            self._full_since = self._now()
        self._sent += 1
        self._unasked += size

    @property
    def idle(self) -> bool:
        """True if the terminal's pipe has taken everything."""
        return self._sent == self._drained

    def drained(self, count: int) -> None:
        """Note how many writes in all the terminal's pipe has taken."""
        self._drained, self._full_since = count, self._now()
        self.wake()

    def asks(self) -> bool:
        """True if a question goes out now, after a frame; it then counts as asked."""
        hindered = self._may_be_open < _UNHINDERED
        if self._leaving or (not hindered and self._unasked < _ASK_EACH):
            return False
        if self._asked and self._fastest == inf:
            return False
        self._unasked = 0
        self._asked.append(self._now())
        return True

    def answered(self) -> None:
        """Note that the terminal has drawn everything up to the oldest open question."""
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
        """True if a frame would be drawn soon.

        If not, ask again when `wake` is called, or after `patience_s`, since an answer can get
        lost.
        """
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
        # The terminal no longer answers: ask once more, and hold frames only for a full pipe.
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
        """True if the terminal has taken or drawn nothing for too long."""
        patience = self._now() - _LEAVING_S
        full = self._sent != self._drained and self._full_since < patience
        return full or (self._fastest < inf and bool(self._asked) and self._asked[0] < patience)

    def leave(self) -> None:
        """Stop asking, and wait while answers still come: a shell would read late ones as keys.

        Something has to read them until then.
        """
        self._leaving = True
        while self._fastest < inf:
            self._heard.clear()
            if not self._asked or not self._heard.wait(_LEAVING_S):
                return
