"""The wait after a failure: a retry, a server's limit, a recovery step.

A countdown is updated once a second. The keys of the banner count only while it has the focus,
which it gets by Tab or a click and never by itself, so that it takes no typed key.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer

from tui.core.clock import Clock
from tui.core.dataclass import dataclass
from tui.core.errors import words
from tui.core.formatting import moment
from tui.core.text_cleaning import one_line
from tui.ui.toolkit.answer_guard import AnswerPlace
from tui.ui.widgets.keys import BANNER_KEYS, bindings
from tui.ui.widgets.panes import TextLines

if TYPE_CHECKING:
    from tui.core.facts import RetryScheduled

Wish: TypeAlias = Literal["now", "other"]

SOON_S = 120
"""Shorter waits are counted in seconds."""

_GAP = 2


@dataclass(frozen=True, slots=True)
class _Wait:
    """A wait to show. `due` is monotonic, `until` wall-clock time; at most one of them is set.

    `head` says what, `which` which of how many; `reason` is shown if there is room for all of it,
    and `tail` goes first.
    """

    glyph: str
    head: str
    which: str = ""
    reason: str = ""
    tail: str = ""
    due: float | None = None
    until: datetime | None = None

    @property
    def counts(self) -> bool:
        return self.due is not None or self.until is not None


class RetryBanner(TextLines, AnswerPlace, can_focus=True):
    """Hidden unless something is waited for. `other` is the model that f continues with, "" for
    none."""

    takes_text = True

    DEFAULT_CSS = """
    RetryBanner { height: auto; max-height: 2; width: 1fr; padding: 0 1; display: none;
        background: $warning-muted; }
    RetryBanner.-waiting { display: block; }
    RetryBanner:focus { background: $primary-muted; }
    """
    BINDINGS = bindings(BANNER_KEYS)  # pyright: ignore[reportAssignmentType]

    remaining: reactive[int] = reactive(0)
    other: reactive[str] = reactive("", layout=True)

    @dataclass
    class Asked(Message):
        """The person will not wait: continue `now`, or with the `other` model."""

        wish: Wish

    def __init__(self, clock: Clock, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._clock = clock
        self._wait: _Wait | None = None
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        self._timer = self.set_interval(1, self.tick, pause=True)

    def wait(self, event: RetryScheduled) -> None:
        """Show a coming retry: which of how many, when, and why."""
        due = self._clock.monotonic() + event.delay_s
        head, reason = words(event.error_class), one_line(event.reason)
        reason = "" if reason == head else reason
        which = f"retry {event.attempt} of {event.max_attempts}"
        self._show(_Wait("↻", head, which, reason, due=due))

    def park(self, until: datetime, error_class: str = "rate_limit") -> None:
        """Show that the turn continues by itself at a wall-clock time."""
        tail = "you can close the program"
        self._show(
            _Wait("‖", words(error_class), reason="continues by itself", tail=tail, until=until)
        )

    def recover(self, what: str, step: str) -> None:
        """Show a step that recovers a failed request: why, and what is being done."""
        self._show(_Wait("↻", one_line(what), reason=one_line(step)))

    def done(self) -> None:
        """Hide, since the wait is over, and return the focus to the prompt."""
        self._wait = None
        self.remove_class("-waiting", "-counts")
        if self._timer:
            self._timer.pause()
        if self.has_focus:
            for prompt in self.screen.query("#prompt"):
                prompt.focus()

    def tick(self) -> None:
        """Update the countdown."""
        wait = self._wait
        if wait is None:
            return
        seconds_left = 0.0
        if wait.due is not None:
            seconds_left = wait.due - self._clock.monotonic()
        elif wait.until is not None:  # the monotonic clock stops while a laptop sleeps
            seconds_left = (wait.until - self._clock.now()).total_seconds()
        self.remaining = max(0, math.ceil(seconds_left))

    def moment(self, until: datetime) -> str:
        """Return a wall-clock time as a person reads it, in their time zone."""
        return moment(until, self._clock.now())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave a key that has no meaning now to the prompt."""
        if action != "ask":
            return True
        counting = self._wait is not None and self._wait.counts
        return counting and (parameters != ("other",) or bool(self.other))

    def answers_key(self, event: events.Key) -> bool:
        wish = {"r": "now", "f": "other"}.get(event.key)
        return wish is not None and bool(self.check_action("ask", (wish,)))

    def action_ask(self, wish: Wish) -> None:
        self.post_message(self.Asked(wish))

    def on_click(self) -> None:
        self.focus()

    def on_focus(self) -> None:
        self.refresh(layout=True)

    def on_blur(self) -> None:
        self.refresh(layout=True)

    def _show(self, wait: _Wait) -> None:
        self._wait = wait
        self.add_class("-waiting")
        self.set_class(wait.counts, "-counts")
        self.tick()
        if self._timer:
            self._timer.reset()
            if wait.counts:
                self._timer.resume()
            else:
                self._timer.pause()
        self.refresh(layout=True)

    def lines(self, width: int) -> list[Content]:
        """Return one line if it fits, else two: the keys are never cut."""
        wait = self._wait
        if wait is None or width <= 0:
            return [Content("")]
        head = Content.assemble((f"{wait.glyph} ", "bold $text-warning"), self._when(wait))
        keys = self._keys(wait)
        reason, tail = (f" · {text}" if text else "" for text in (wait.reason, wait.tail))
        room = width - head.cell_length
        details = reason + tail
        spare = room - _GAP - keys.cell_length
        if len(details) <= spare:
            return [_in_row(Content.assemble(head, (details, "$foreground")), keys, width)]
        shown = reason if len(reason) <= room else ""
        first = Content.assemble(head, (shown, "$foreground")).truncate(width, ellipsis=True)
        if wait.tail:  # must be known before the program is closed: a line of its own
            return [first, _in_row(Content.styled(wait.tail, "$foreground"), keys, width)]
        if spare < 0:
            return [first, _in_row(Content(""), keys.truncate(width, ellipsis=True), width, gap=0)]
        fitting = reason if len(reason) <= spare else ""
        return [_in_row(Content.assemble(head, (fitting, "$foreground")), keys, width)]

    def _when(self, wait: _Wait) -> Content:
        if wait.until is not None:
            text = f"{wait.head} until {self.moment(wait.until)}"
            return Content.styled(f"{text} ({span(self.remaining)})", "bold $text-warning")
        if wait.due is None:
            return Content.styled(wait.head, "bold $text-warning")
        when = f"in {self.remaining} s" if self.remaining else "now"
        return Content.styled(f"{wait.head} · {wait.which} {when}", "bold $text-warning")

    def _keys(self, wait: _Wait) -> Content:
        """Return the keys that count now: those of the banner only while it has the focus."""
        if not wait.counts:
            pairs = [("esc", "stops")]
        elif self.has_focus:
            pairs = [("r", "now"), *([("f", self.other)] if self.other else []), ("esc", "stops")]
        else:
            switch = [("/retry other", "")] if self.other else []
            pairs = [("/retry", "now"), *switch, ("esc", "stops")]
        if wait.until is not None and not self.has_focus:
            pairs = pairs[:-1]  # closing the program does no harm, and the line is full
        return Content(" · ").join(
            Content.assemble(
                (key, "bold $text-accent"), (f" {text}" if text else "", "$text-muted")
            )
            for key, text in pairs
        )


def span(seconds: int) -> str:
    """Say how far away a time is: `now`, `in 40 s`, `in 23 min`, `in 3 h 20 min`, `in 4 days`."""
    if seconds <= 0:
        return "now"
    if seconds < SOON_S:
        return f"in {seconds} s"
    minutes = -(-seconds // 60)
    if minutes < 60:
        return f"in {minutes} min"
    hours, minutes_left = divmod(minutes, 60)
    if hours >= 48:
        return f"in {-(-hours // 24)} days"
    return f"in {hours} h {minutes_left} min" if minutes_left else f"in {hours} h"


def _in_row(left: Content, right: Content, width: int, *, gap: int = _GAP) -> Content:
    gap = max(gap, width - left.cell_length - right.cell_length)
    return Content.assemble(left, " " * gap, right)
