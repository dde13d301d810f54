"""Keeps what a crash would take: what is typed, what is queued, and the answer that streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from tui.live.services import Session

EVERY_S: Final = 1.0
"""How often it is looked at what is typed: nobody tells that a key was pressed."""


class Drafts:
    """Writes drafts into the session that `follow` names. `state` says how things stand."""

    def __init__(self, state: Callable[[], tuple[str, tuple[str, ...], str]]) -> None:
        self._state = state
        self._session: Session | None = None
        self._timer: asyncio.TimerHandle | None = None

    def follow(self, session: Session | None) -> None:
        """From now on in this session; None in none."""
        self._session = session
        self._stop()
        self.touch()

    def touch(self) -> None:
        """Something has changed: it is kept in a moment."""
        if self._timer is None and self._session is not None and not self._session.read_only:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(EVERY_S, self._note)

    def leave(self, *, typed: bool = True) -> None:
        """Keep how things stand now, before the session is closed. Without `typed` nothing is
        typed there any more: the person takes it along."""
        if self._session is not None and not self._session.read_only:
            prompt, queue, _ = self._state()
            self._session.draft(*((prompt, queue) if typed else ("", ())))
        self.follow(None)

    def _note(self) -> None:
        self._timer = None
        if self._session is not None and not self._session.read_only:
            self._session.draft(*self._state())
            self.touch()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
