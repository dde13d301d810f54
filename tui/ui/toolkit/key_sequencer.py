"""Makes keys take effect one after the other, in the order in which they were pressed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial
from time import monotonic
from typing import Any, TypeAlias

from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tui.core.clock import Clock, SystemClock

CHECK_S = 0.05
"""Seconds between checks that a key can still arrive while others wait for it."""
LONGEST_S = 5.0
"""Seconds that a key is waited for; its action then continues alongside the next ones."""


class CommandLine(events.Event, bubble=False):
    """A command that was clicked or chosen, in the order of the keys around it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


Pressed: TypeAlias = events.Key | events.Paste | CommandLine


class KeySequencer(App[None]):
    """An app in which no key overtakes another, however fast they come.

    Textual gives a key to the focused widget; if that has no use for it, the key climbs from queue
    to queue up to the app, and only there the bindings are searched. A letter after it in the same
    burst needs no binding: it would be in the text before the Backspace that came first was even
    found, and it would go to the field that an earlier key leaves. So a key that may climb is
    followed by a message on the same path, and typing waits until that has arrived: then the key
    has taken effect.
    """

    class Arrived(Message):
        """Follows a key from `start` up to the app; `screen` was on top then. The `last` one also
        follows what the first widget posted because of the key, such as the text that Enter sends.
        """

        def __init__(self, start: Widget, screen: Screen[Any], *, last: bool) -> None:
            super().__init__()
            self.start, self.screen, self.last = start, screen, last
            self.sent = monotonic()

    def __init__(self, *, clock: Clock | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.clock: Clock = clock or SystemClock()
        self.arrived_at = float("-inf")
        """Time at which the current key came."""
        self._key_ahead: KeySequencer.Arrived | None = None
        self._keys_behind: deque[tuple[Pressed, float]] = deque()

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

    async def take_up(self, held: Iterable[tuple[Pressed, float]]) -> None:
        """Handle keys that the app has held back, before those that wait for their turn."""
        self._keys_behind.extendleft(reversed(list(held)))
        if self._key_ahead is None:
            await self._go_on()

    async def pass_on(self, event: Pressed) -> None:
        """Handle a key in its turn, or send it on to the widgets.

        An app that wants a key before everything else extends this method, not `on_event`.
        """
        await super().on_event(event)
        start = self.focused or self.screen
        if event.is_forwarded and not _is_text(event, start):
            self._follow(start)

    @property
    def key_acts(self) -> bool:
        """True until the current key has taken effect."""
        return self._key_ahead is not None

    def wait_for_mount(self, event: Pressed) -> bool:
        """Let a key and those after it wait until the screen on top is mounted. True if it was
        not."""
        if self.screen.is_mounted:
            return False
        self._follow(self.screen)
        if self._key_ahead is None:
            return False
        self._keys_behind.appendleft((event, self.arrived_at))
        self.set_timer(CHECK_S, partial(self._check_arrival, self._key_ahead))
        return True

    def _follow(self, start: Widget, *, last: bool = False) -> None:
        arrived = self.Arrived(start, self.screen, last=last)
        self._key_ahead = arrived if start.post_message(arrived) else None

    def on_key_sequencer_arrived(self, event: Arrived) -> None:
        event.stop()
        self.call_later(self._done, event)  # after a change of focus, which is deferred too

    async def _done(self, arrived: Arrived) -> None:
        if arrived is not self._key_ahead:
            return
        if arrived.screen is not self.screen:  # its focus is set after earlier messages
            self._follow(self.screen, last=True)
        elif not arrived.last and arrived.start.is_attached:
            self._follow(arrived.start, last=True)
        else:
            self._key_ahead = None
        if self._key_ahead is None:
            await self._go_on()

    async def _go_on(self) -> None:
        """Handle the waiting keys, up to one that may climb: the current one has taken effect."""
        self._key_ahead = None
        while self._keys_behind and self._key_ahead is None:
            event, self.arrived_at = self._keys_behind.popleft()
            await self.pass_on(event)
        if self._keys_behind:
            self.set_timer(CHECK_S, partial(self._check_arrival, self._key_ahead))

    async def _check_arrival(self, climbing: Arrived | None) -> None:
        """Continue without a key that was lost with its widget, or that takes too long."""
        if climbing is None or climbing is not self._key_ahead:
            return
        if climbing.start.is_attached and monotonic() - climbing.sent < LONGEST_S:
            self.set_timer(CHECK_S, partial(self._check_arrival, climbing))
        else:
            await self._go_on()


def _is_text(event: Pressed, taker: Widget) -> bool:
    """True if a field inserts it as text: then the field's own queue keeps the order."""
    if not isinstance(taker, (Input, TextArea)) or taker.disabled:
        return False
    if isinstance(taker, TextArea) and taker.read_only:
        return False
    if not isinstance(event, events.Key):
        return True
    return event.is_printable and taker.check_consume_key(event.key, event.character)


class DoublePress:
    """Detects a second press within `within_s`: Ctrl+C to quit, Esc to rewind."""

    def __init__(self, clock: Clock, within_s: float) -> None:
        self._within_s, self._clock = within_s, clock
        self._asked = float("-inf")

    def asked(self) -> bool:
        """Count a press; true if it is the second one."""
        now, before = self._clock.monotonic(), self._asked
        self._asked = now
        return now - before <= self._within_s

    def forget(self) -> None:
        """Make the next press the first one again."""
        self._asked = float("-inf")
