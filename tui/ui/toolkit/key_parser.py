"""What a terminal sends, as events: Textual's parser, where it takes one thing for another put
right.

- A pasted text is one `Paste`, whatever it holds. Textual's parser continues looking for keys in
  it: after an escape sequence that it does not know, as in a colored log, the text would be
  typed, Enter and all.
- Alt+Enter is a key of its own where the terminal sends it as Esc and Enter in one, as almost
  all do.
- A letter with Alt is a key that types nothing.
- The terminal's answer that it has drawn everything is no key at all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.keys import Keys
from textual.message import Message

from tui.ui.start.first_frame import partly
from tui.ui.toolkit.frame_pacing import ANSWER

_ALT_ENTER: Final = "\x1b\r"
_NOT_YET: Final = "[OPX]^_fb"
"""After Esc: what begins a longer sequence, and Alt+F and Alt+B, which Textual knows."""


class Unclassified(events.Event, bubble=False):
    """Something came from the terminal that is no key and no report that is known: it was dropped.

    It is sent right before the key that ended it, or that follows it. Until a person has seen to
    it, what comes next may be a part of it: a single key answers nothing for a moment.

    `kind` names what it was, for the log; `held_back_s` is for how long it kept what was typed
    from becoming keys.
    """

    def __init__(self, kind: str, held_back_s: float = 0.0) -> None:
        super().__init__()
        self.kind, self.held_back_s = kind, held_back_s


class KeyParser:
    """Takes what was read, in pieces cut anywhere. `clean` makes a pasted text fit to be drawn;
    `answered` hears that the terminal has drawn what it was asked about."""

    def __init__(self, clean: Callable[[str], str], answered: Callable[[], object] = bool) -> None:
        self._clean = clean
        self._parser = _Parser(answered)
        self._behind = ""
        """The end of what went to the parser, which may be the beginning of a paste's mark."""
        self._pasted: list[str] | None = None
        self._held = ""
        """The end of what was pasted so far, which may be the beginning of its end's mark."""

    def feed(self, text: str) -> Iterator[Message]:
        left = text
        while left:
            if self._pasted is None:
                left = yield from self._typed(left)
            else:
                left = yield from self._more(self._pasted, left)

    @property
    def waits(self) -> bool:
        """Whether an Esc came that may be the beginning of another key."""
        return self._parser.waits

    def tick(self) -> Iterable[Message]:
        """To be called now and then while it waits: an Esc that nothing followed is a key."""
        return self._parser.tick()

    def _typed(self, text: str) -> Generator[Message, None, str]:
        """Keys, up to the beginning of a paste. Returns what follows it."""
        seen = self._behind + text
        at = seen.find(BRACKETED_PASTE_START)
        if at < 0:
            self._behind = seen[1 - len(BRACKETED_PASTE_START) :]
            yield from self._parser.feed(text)
            return ""
        before = at - len(self._behind)
        if before > 0:
            yield from self._parser.feed(text[:before])
        elif before < 0:
            self._parser = self._parser.anew()  # it waits for the rest of the mark
        self._behind = ""
        self._pasted = []
        return seen[at + len(BRACKETED_PASTE_START) :]

    def _more(self, pasted: list[str], text: str) -> Generator[Message, None, str]:
        """More of a paste, up to its end. Returns what follows it."""
        text = self._held + text
        rest, mark, after = text.partition(BRACKETED_PASTE_END)
        if not mark:
            size = partly(text, BRACKETED_PASTE_END)
            pasted.append(text[: len(text) - size])
            self._held = text[len(text) - size :]
            return ""
        pasted.append(rest)
        self._pasted = None
        self._held = ""
        yield events.Paste(self._clean("".join(pasted)))
        return after


class _Parser(XTermParser):
    def __init__(self, answered: Callable[[], object]) -> None:
        super().__init__()
        self._answered = answered

    @property
    def waits(self) -> bool:
        return self._timeout_time is not None

    def anew(self) -> _Parser:
        """One that has read nothing and knows the mouse and the size as this one does."""
        fresh = _Parser(self._answered)
        fresh.last_x, fresh.last_y = self.last_x, self.last_y
        fresh.mouse_pixels = self.mouse_pixels
        fresh.terminal_size = self.terminal_size
        fresh.terminal_pixel_size = self.terminal_pixel_size
        return fresh

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if sequence == _ALT_ENTER:
            return [events.Key("alt+enter", None)]
        if sequence == ANSWER:
            self._answered()
            return [events.Key(Keys.Ignore, sequence)]
        if len(sequence) == 2 and sequence[1].isprintable() and sequence[1] not in _NOT_YET:
            # Textual would wait, type what another Esc follows, and take Alt+1 for "¡".
            sequence, alt = sequence[1], True
        keys = super()._sequence_to_key_events(sequence, alt)
        return [_silent(key) for key in keys] if alt else keys


def _silent(key: events.Key) -> events.Key:
    """A character with Alt is named as such and types nothing."""
    if not key.is_printable:
        return key
    return events.Key(f"alt+{key.key.removeprefix('alt+')}", None)
