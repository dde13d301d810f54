"""Keeps what a crash would take: what is typed, what is queued, and the answer that streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from textual.app import App
from textual.timer import Timer

from tui.live.services import Session

TYPED_FOR_S = 1.0
"""How long after a change it is kept; what comes meanwhile is kept with it."""

CHARS_PER_S = 100_000
"""Of a prompt that is longer, less often: the record must not grow by a paste every second."""

State: TypeAlias = tuple[str, tuple[str, ...], str, Mapping[str, str]]
"""What is typed, queued and streamed; by their words the files of the images in it."""


class Drafting:
    """Writes drafts into the session that `follow` names. `state` says how things stand."""

    def __init__(self, app: App[Any], state: Callable[[], State]) -> None:
        self._app = app
        self._state = state
        self._session: Session | None = None
        self._timer: Timer | None = None

    def follow(self, session: Session | None) -> None:
        """From now on in this session; None in none."""
        self._session = session
        self._stop()

    def touch(self) -> None:
        """Something has changed: it is kept in a moment."""
        if self._timer is None and self._session is not None:
            self._again(max(TYPED_FOR_S, len(self._state()[0]) / CHARS_PER_S))

    def leave(self, *, typed: bool = True) -> None:
        """Keep how things stand now, before the session is closed. Without `typed` nothing is
        typed there any more: the person takes it along."""
        if self._session is not None and not self._session.read_only:
            prompt, queue, _, images = self._state()
            if typed:
                self._session.draft(prompt, queue, images=images)
            else:
                self._session.draft("", ())
        self.follow(None)

    def _note(self) -> None:
        self._timer = None
        if self._session is None or self._session.read_only:
            return
        prompt, queue, answer, images = self._state()
        wait = self._session.draft(prompt, queue, answer, images)
        if wait:
            self._again(wait)

    def _again(self, seconds: float) -> None:
        self._timer = self._app.set_timer(seconds, self._note)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
