"""Keys take effect one after the other, in the order in which they were pressed."""

from __future__ import annotations

from collections import deque
from functools import partial
from time import monotonic
from typing import Any

from textual import events
from textual.app import App
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tui.core.clock import Clock, SystemClock

CHECK_S = 0.05
"""How often it is looked whether a key can still arrive, while others wait for it."""
LONGEST_S = 5.0
"""No key is waited for longer: what it does continues after the next one."""


class KeySequencer(App[None]):
    """An app in which no key overtakes another, however fast they come.

    Textual gives a key to the widget that has the focus; where that has no use for it, the key
    climbs from queue to queue up to the app, and only there is it looked for in the bindings. A
    letter after it in the same burst needs no binding: it would be in the text before the
    Backspace that came first was even found, and it would go to the field that a key before it
    leaves. So a key that may climb is followed by a message on the same way, and what is typed
    meanwhile waits until that has arrived: then the key has done what it does.
    """

    class Arrived(Message):
        """Follows a key from `start` up to the app; `screen` is the one that was on top."""

        def __init__(self, start: MessagePump, screen: Screen[Any]) -> None:
            super().__init__()
            self.start, self.screen = start, screen
            self.sent = monotonic()

    def __init__(self, *, clock: Clock | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.clock: Clock = clock or SystemClock()
        self.arrived_at = float("-inf")
        """When the key came whose turn it is."""
        self._key_ahead: KeySequencer.Arrived | None = None
        self._keys_behind: deque[tuple[events.Key | events.Paste, float]] = deque()

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, (events.Key, events.Paste)) or event.is_forwarded:
            await super().on_event(event)
            return
        if self._key_ahead is None:
            self.arrived_at = self.clock.monotonic()
            await self.pass_on(event)
        else:
            if not self._keys_behind:
                self.set_timer(CHECK_S, partial(self._check_arrival, self._key_ahead))
            self._keys_behind.append((event, self.clock.monotonic()))

    async def pass_on(self, event: events.Key | events.Paste) -> None:
        """It is this key's turn: let it do what it does, or send it on its way.

        An app that wants to know of a key before all others extends this, not `on_event`.
        """
        await super().on_event(event)
        start = self.focused or self.screen
        if event.is_forwarded and not _is_text(event, start):
            self._follow(start)

    def _follow(self, start: Widget) -> None:
        arrived = self.Arrived(start, self.screen)
        self._key_ahead = arrived if start.post_message(arrived) else None

    def on_key_sequencer_arrived(self, event: Arrived) -> None:
        event.stop()
        self.call_later(self._done, event)  # behind a change of the focus, which is put off too

    async def _done(self, arrived: Arrived) -> None:
        if arrived is not self._key_ahead:
            return
        if arrived.screen is not self.screen:  # its focus is set behind what it was sent before
            self._follow(self.screen)
        else:
            self._key_ahead = None
        if self._key_ahead is None:
            await self._go_on()

    async def _go_on(self) -> None:
        """The key has done what it does: the next ones, up to one that may climb."""
        self._key_ahead = None
        while self._keys_behind and self._key_ahead is None:
            event, self.arrived_at = self._keys_behind.popleft()
            await self.pass_on(event)
        if self._keys_behind:
            self.set_timer(CHECK_S, partial(self._check_arrival, self._key_ahead))

    async def _check_arrival(self, climbing: Arrived | None) -> None:
        """Go on without a key that was lost with the widget it was for, or that takes too long."""
        if climbing is None or climbing is not self._key_ahead:
            return
        if climbing.start.is_attached and monotonic() - climbing.sent < LONGEST_S:
            self.set_timer(CHECK_S, partial(self._check_arrival, climbing))
        else:
            await self._go_on()


def _is_text(event: events.Key | events.Paste, taker: Widget) -> bool:
    """Whether a field puts it into its text: then its own queue keeps the order."""
    if not isinstance(taker, (Input, TextArea)) or taker.disabled:
        return False
    if isinstance(taker, TextArea) and taker.read_only:
        return False
    if isinstance(event, events.Paste):
        return True
    return event.is_printable and taker.check_consume_key(event.key, event.character)


class DoublePress:
    """Ctrl+C to quit, Esc to rewind: the second time counts if it comes within `within_s`."""

    def __init__(self, clock: Clock, within_s: float) -> None:
        self._within_s, self._clock = within_s, clock
        self._asked = float("-inf")

    def asked(self) -> bool:
        """Whether it was asked for just before. It has been now."""
        now, before = self._clock.monotonic(), self._asked
        self._asked = now
        return now - before <= self._within_s

    def forget(self) -> None:
        """The next time is the first one again."""
        self._asked = float("-inf")
