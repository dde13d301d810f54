"""Keeps what a crash would take: what is typed, what waits, and the answer that streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tui.app.ports import Session

EVERY_S: Final = 0.5
"""How often it is looked at what is typed: nobody tells that a key was pressed."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """What no record has yet: what is typed, the prompts and commands that wait, and the answer
    that streams."""

    prompt: str
    queue: tuple[str, ...]
    commands: tuple[str, ...]
    answer: str


class Drafts:
    """Writes drafts into the session that `follow` names. `unsent` says how things stand."""

    def __init__(self, unsent: Callable[[], Unsent]) -> None:
        self._unsent = unsent
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
            if typed:
                now = self._unsent()
                self._session.draft(now.prompt, now.queue, commands=now.commands)
            else:
                self._session.draft("", ())
        self.follow(None)

    def _note(self) -> None:
        self._timer = None
        if self._session is not None and not self._session.read_only:
            now = self._unsent()
            self._session.draft(now.prompt, now.queue, now.answer, commands=now.commands)
            self.touch()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
