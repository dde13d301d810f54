"""Guards every place where a single key answers, so that only deliberate keys do.

A key answers at once only if the place was there for half a second without a key, nothing
unclassified came from the terminal in the last second, and no draft is in the prompt. Otherwise the
first press only marks the answer and shows "Press 1 again"; a second press, half a second later,
answers. Anything else that is typed shows that the first press was text too: both go into the
draft. So someone who types a sentence never answers with it, neither by a digit nor by Enter.

A key that is held too long on one screen answers nothing on the next, and neither sends nor stops
anything there. A key that came before a question was there only marks an answer: nobody can have
read it. In a list, what follows within half a second of a letter that means nothing is text too.

Nothing is sent by a key that may have been meant for a dialog: while a command that had one still
runs, and for half a second after one has closed by itself. The text stays; a second press sends it.

Ctrl+C and function keys are no answers and always pass. Times are those at which keys arrive, so a
key that waits for its turn gets no older meanwhile.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Final, Protocol, cast

from textual import events
from textual.app import App
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.keymap import shown
from tui.ui.toolkit.key_parser import SETTLED_S, DoubtfulKey

QUIET_S: Final = 0.5
"""Seconds without a key before a place that opened by itself accepts an answer, and before a second
press counts."""
HELD_S: Final = 2.0
"""If reports hold keys back for longer, the screen says so."""
REPEAT_S: Final = 1.0
"""Seconds within which a key that is held down comes again for the first time."""
TYPING_S: Final = 2.0
"""Seconds after a letter for the draft in which the next one belongs to it too."""
AT_ONCE_S: Final = 0.1
"""Seconds that nobody notices."""
USELESS_S: Final = 3.0
"""Seconds for which it is said that a key does nothing."""

REPORTS: Final = "Terminal reports hold keys back; Ctrl+C works."
INTO_DRAFT: Final = "Typing goes into your draft; pause to answer."
PASTED: Final = "Pasted into your draft."
DRAFTED: Final = "Draft below: press a key twice"
SEND_AGAIN: Final = "Press again to send."
_ANSWERING: Final = {"enter", "escape"}
_ACTING: Final = {"enter", "delete"}
_ERASING: Final = {"backspace", "delete", "ctrl+w", "ctrl+u", "ctrl+k"}
_NEVER: Final = float("-inf")
_ALWAYS: Final = float("inf")


class Draft(Protocol):
    """The prompt, which may hold text that was not sent."""

    @property
    def text(self) -> str: ...
    @property
    def screen(self) -> object: ...
    def insert(self, text: str) -> object: ...
    def add_paste(self, text: str) -> None: ...
    def action_delete_left(self) -> None: ...


class Noting(Protocol):
    """A screen that shows a line about the keys; "" removes it."""

    def note(self, text: str) -> None: ...


@dataclass(slots=True)
class Presses:
    """The keys pressed at a place that have not answered."""

    quiet_from: float = _NEVER
    key: str = ""
    """The key whose answer is marked."""
    again: str = ""
    """The message that asks for it again."""
    text: str = ""
    """Characters pressed since, in case they begin a text."""
    typing_until: float = _NEVER
    confirmed: bool = False
    """True if a second press has answered here: the person is reading the questions."""
    focus_before: Widget | None = None


@dataclass(frozen=True, slots=True)
class _LastKey:
    """The last key, when it came, and on which screen. `held` is true if it has been held since
    another screen, `may_be_held` also if it comes again for the first time, `deliberate` if it was
    neither held nor part of a text."""

    name: str = ""
    at: float = _NEVER
    over: Widget | None = None
    held: bool = False
    may_be_held: bool = False
    deliberate: bool = True

    def next(self, event: events.Key, at: float, over: Widget) -> _LastKey:
        name, since = event.key, at - self.at
        same, elsewhere = name == self.name, over is not self.over
        again, repeated = same and since < QUIET_S, same and since < REPEAT_S
        held = again and (self.held or elsewhere)
        may_be_held = (again and self.may_be_held) or (repeated and elsewhere)
        deliberate = not (repeated or isinstance(event, DoubtfulKey))
        return _LastKey(name, at, over, held, may_be_held, deliberate)


@dataclass(slots=True)
class AnswerGuard:
    """The guard of an app. `draft` receives text that is no answer; None without a prompt."""

    clock: Clock
    draft: Draft | None = None
    sends_from: float = _NEVER
    """The time from which a key sends the draft at its first press."""
    _sending_held_at: float = _NEVER
    _in_vain_at: float = _NEVER
    _unclassified_at: float = _NEVER
    _held_since: float = field(default=_NEVER)
    _last: _LastKey = field(default_factory=_LastKey)

    def unclassified(self, held_back_s: float, place: AnswerPlace | None) -> None:
        """Note that the terminal sent something that is neither a key nor a known report."""
        now = self.clock.monotonic()
        if now - self._unclassified_at >= SETTLED_S:
            self._held_since = now
        self._held_since = min(self._held_since, now - held_back_s)
        self._unclassified_at = now
        if place is not None and now - self._held_since > HELD_S:
            self._tell_held(place)

    def unsettled(self, at: float, event: events.Key | None = None) -> bool:
        """True if something unclassified came just before a key, or before a click."""
        follows = isinstance(event, DoubtfulKey) and event.follows
        return follows or at - self._unclassified_at < SETTLED_S

    def counts_clicks(self, place: AnswerPlace) -> bool:
        """True if a click answers by now."""
        now = self.clock.monotonic()
        return now - place.presses.quiet_from >= QUIET_S and not self.unsettled(now)

    def press(self, event: events.Key, at: float, over: Widget) -> None:
        """Note a key before anything gets it."""
        if over is not self._last.over:
            self._in_vain_at = _NEVER
        self._last = self._last.next(event, at, over)

    def pressed_in_vain(self, event: events.Key, at: float) -> None:
        """Note a key that means nothing where it was pressed: a letter may begin a text."""
        if event.is_printable:
            self._in_vain_at = at

    def hold_sending(self, until: float = _ALWAYS) -> None:
        """Let no key that comes before then send the draft at its first press."""
        self.sends_from = max(self.sends_from, until)
        self._sending_held_at = self.clock.monotonic()

    def command_done(self) -> None:
        """Let keys send again: the command whose dialogs they were meant for is over. If it went
        on for a while after one, nobody knows that yet."""
        if self.sends_from == _ALWAYS:
            now = self.clock.monotonic()
            at_once = now - self._sending_held_at < AT_ONCE_S
            self.sends_from = now if at_once else now + QUIET_S

    def sends(self, at: float) -> bool:
        """True if a key that came `at` that time sends the draft; else its next press does."""
        if at >= self.sends_from:
            return True
        self.sends_from = at + QUIET_S
        return False

    def greet(self, place: AnswerPlace, focused: Widget | None) -> None:
        """Say at once if an answer will need a second press."""
        if self._drafting and not place.told and not writes(focused):
            place.tell(self.usual(place))

    def usual(self, place: AnswerPlace) -> str:
        """Return what is said about the keys while none waits for a second press."""
        waits = self._drafting and not place.presses.confirmed and isinstance(place, Screen)
        return DRAFTED if waits else ""

    def takes(self, event: events.Key, at: float, focused: Widget | None, over: Widget) -> bool:
        """True if a key is no answer here, so that nothing else is done with it.

        `over` is the screen on top; `at` is when the key arrived.
        """
        place = place_of(focused or over)
        if place is None:
            return self._holds_action(event, at, focused, over)
        if writes(focused):
            return self._holds_field(place, event, at)
        if place.unseen:
            return self._is_early(event)
        if event.key in _ERASING:  # meant for the prompt, so the next key may be too
            place.presses.quiet_from = at
        if event.key == "backspace":
            return self._rubs_out(place)
        text = event.character if event.is_printable and event.character else ""
        if not text and event.key not in _ANSWERING:
            return False
        if not place.answers_key(event) or (text and at < place.presses.typing_until):
            return bool(text) and self._types(place, text, at)
        return not self._answers(place, event, text, at)

    def _is_early(self, event: events.Key) -> bool:
        """True if a key would answer what nobody has seen yet. Text goes into the draft."""
        if event.is_printable and event.character and self.draft is not None:
            self.draft.insert(event.character)
        return event.is_printable or event.key in _ANSWERING

    def takes_paste(self, event: events.Paste, focused: Widget | None, over: Widget) -> bool:
        """Put a pasted text into the draft, since it answers nothing, and nothing else takes it.
        True if that was done."""
        place = place_of(focused or over)
        taken = writes(focused) or (place is not None and place.takes_text)
        if taken or self.draft is None or (place is None and over is self.draft.screen):
            return False
        if place is not None:
            self._flush(place)
        self.draft.add_paste(event.text)
        if place is not None:
            place.tell(PASTED)
        else:
            cast("Noting", over).note(PASTED)
        return True

    def _answers(self, place: AnswerPlace, event: events.Key, text: str, at: float) -> bool:
        """True if a key that means an answer gives it. Otherwise it only marks the answer."""
        presses, name = place.presses, event.key
        quiet = at - presses.quiet_from >= QUIET_S
        # A different letter right after the first means that both are text.
        if text and presses.text and name != presses.key and not quiet:
            self._types(place, text, at)
            return False
        sure = name == presses.key or presses.confirmed or not (presses.key or self._drafting)
        alone = not isinstance(event, DoubtfulKey)
        if quiet and alone and sure and not (self._last.may_be_held or self.unsettled(at)):
            place.presses = Presses(confirmed=presses.confirmed or name == presses.key)
            place.tell(self.usual(place))
            return True
        if not presses.key:
            presses.focus_before = place.widget.screen.focused
        presses.key, presses.quiet_from = name, at
        presses.text += text
        marked = place.mark_answer(event)
        held = self.unsettled(at) and at - self._held_since > HELD_S
        presses.again = _press_again(event, marked)
        if held:
            self._tell_held(place)
        else:
            place.tell(presses.again)
        return False

    def _tell_held(self, place: AnswerPlace) -> None:
        """Say that reports hold the keys back, for as long as they do."""
        if place.told != REPORTS:
            place.tell(REPORTS)
            self._release_later(place)

    def _release_later(self, place: AnswerPlace) -> None:
        place.widget.set_timer(SETTLED_S, partial(self._release, place))

    def _release(self, place: AnswerPlace) -> None:
        if self.unsettled(self.clock.monotonic()):
            self._release_later(place)
        elif place.told == REPORTS:
            place.tell(place.presses.again or self.usual(place))

    def _types(self, place: AnswerPlace, text: str, at: float) -> bool:
        """Put a text into the draft, after what was pressed before it. False if it gets there by
        itself."""
        presses = place.presses
        if not (place.unasked or presses.text or self._drafting):
            return False
        self._flush(place)
        presses.typing_until, presses.quiet_from = at + TYPING_S, at
        if place.takes_text:
            place.tell("")
            return False
        if self.draft is not None:
            self.draft.insert(text)
            place.tell(INTO_DRAFT)
        return True

    def _flush(self, place: AnswerPlace) -> None:
        """Put what was pressed before into the draft, since it was text, and mark nothing."""
        presses = place.presses
        if self.draft is not None and presses.text:
            self.draft.insert(presses.text)
        if presses.key and presses.focus_before is not None and presses.focus_before.is_attached:
            place.widget.screen.set_focus(presses.focus_before)
        presses.key = presses.again = presses.text = ""
        presses.focus_before = None

    def give_up(self, place: AnswerPlace) -> None:
        """Put what was just typed into the draft: the place closes by itself, or another covers
        it."""
        if self.clock.monotonic() - self._last.at < REPEAT_S:
            self._flush(place)

    def _rubs_out(self, place: AnswerPlace) -> bool:
        presses = place.presses
        if presses.key:
            presses.text = presses.text[:-1]
            self._flush(place)
            place.tell(self.usual(place))
        elif self.draft is not None and self._drafting and not place.takes_text:
            self.draft.action_delete_left()
            place.tell(INTO_DRAFT)
        else:
            return False
        return True

    def _holds_field(self, place: AnswerPlace, event: events.Key, at: float) -> bool:
        """True for an accidental Enter or Esc in a question's field, where they end the writing."""
        ahead = event.key == "enter" and at - place.field_from < QUIET_S
        accident = ahead or self._last.held or isinstance(event, DoubtfulKey) or self.unsettled(at)
        if event.key not in _ANSWERING or not accident:
            return False
        place.tell(_press_again(event, ""))
        return True

    def _holds_action(
        self, event: events.Key, at: float, focused: Widget | None, over: Widget
    ) -> bool:
        """True for a key that must not act.

        Elsewhere a key acts at once, but not right after something unclassified, nor within a text,
        nor if it was held since another screen; and a held Enter that has answered sends no draft,
        a held Esc stops nothing.
        """
        acts = event.key in _ACTING or event.is_printable
        consumed = focused is not None and focused.check_consume_key(event.key, event.character)
        in_chat = self.draft is not None and over is self.draft.screen
        if event.key == "escape":
            held = in_chat and self._last.may_be_held
        elif isinstance(focused, TextArea):
            held = event.key == "enter" and self._last.may_be_held
        else:
            in_text = at - self._in_vain_at < QUIET_S or _may_be_between_words(event)
            accident = self._last.held or in_text or self.unsettled(at, event)
            held = acts and not consumed and accident
        if not held:
            return False
        if at - self._in_vain_at < QUIET_S:
            self.pressed_in_vain(event, at)
        cast("Noting", over).note(_press_again(event, ""))
        return True

    @property
    def deliberate(self) -> bool:
        """True unless the last key may have been held down, or part of a text."""
        return self._last.deliberate

    def drafts(self, now: float) -> bool:
        """True if the person was typing the prompt a moment ago."""
        typed = self._drafting and self.draft is not None and self._last.over is self.draft.screen
        return typed and now - self._last.at < QUIET_S

    @property
    def _drafting(self) -> bool:
        return self.draft is not None and bool(self.draft.text)


class AnswerPlace:
    """Mixin that makes a screen or widget a place where a single key answers.

    It goes after the other bases of a class, since Textual takes styles and bindings from the
    first.
    """

    unasked: bool = False
    """True if it comes by itself, so that what is being typed is not meant for it."""
    takes_text: bool = False
    """True if text typed here that means no answer gets to its place by itself."""
    field_from: float = _NEVER
    """The time at which its field opened, if what was typed ahead must not send it."""
    told: str = ""
    """The line shown about the keys."""

    @cached_property
    def presses(self) -> Presses:
        """The keys that were pressed here. What comes by itself waits for `await_quiet` first."""
        return Presses(_ALWAYS if self.unasked else _NEVER)

    @property
    def unseen(self) -> bool:
        """True before it is on the screen, if it comes by itself."""
        return self.presses.quiet_from == _ALWAYS

    @property
    def widget(self) -> Widget:
        """The screen or widget that this is."""
        return cast("Widget", self)

    def await_quiet(self) -> None:
        """Ask something new: keys count only after half a second without one."""
        self.presses = Presses(guard_of(self.widget).clock.monotonic())

    @property
    def counts_clicks(self) -> bool:
        """True if a click answers by now."""
        return guard_of(self.widget).counts_clicks(self)

    def answers_key(self, event: events.Key) -> bool:
        """True if a key means something here; by default, if it is bound."""
        bound = self.widget.screen.active_bindings.keys()
        return event.key in _ANSWERING or bool(bound & {event.key, event.character})

    def mark_answer(self, event: events.Key) -> str:  # noqa: ARG002
        """Show which answer a key means, and return its label; "" if it has none."""
        return ""

    def tell_useless(self, key: str) -> None:
        """Say for a while that a key does nothing here."""
        before, text = self.told, f"{key} does nothing here."
        if before.endswith("does nothing here."):
            before = guard_of(self.widget).usual(self)

        def release() -> None:
            if self.told == text:
                self.tell(before)

        self.tell(text)
        self.widget.set_timer(USELESS_S, release)

    def tell(self, text: str) -> None:
        """Show a line about the keys; "" removes it."""
        if text != self.told:
            self.told = text
            cast("Noting", self.widget.screen).note(text)


def place_of(widget: Widget) -> AnswerPlace | None:
    """Return the place where a key would answer, for the widget that gets it."""
    for node in widget.ancestors_with_self:
        if isinstance(node, AnswerPlace):
            return node
    return None


def guard_of(widget: Widget) -> AnswerGuard:
    """Return the guard of a widget's app."""
    app = cast("App[object]", widget.app)  # pyright: ignore[reportUnknownMemberType] - Textual's App
    return cast("AnswerGuard", vars(app)["guard"])


def writes(focused: Widget | None) -> bool:
    """True if typing goes into a field."""
    return isinstance(focused, (Input, TextArea)) and not focused.disabled


def _may_be_between_words(event: events.Key) -> bool:
    return event.key == "space" and isinstance(event, DoubtfulKey)


def _press_again(event: events.Key, answer: str) -> str:
    key = shown(event.key) if not event.is_printable else event.character or ""
    key = key.strip() or "Space"
    return f"Press {key} again for “{answer}”." if answer else f"Press {key} again."
