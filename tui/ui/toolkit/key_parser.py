"""What a terminal sends, as Textual's events: keys, pastes, the mouse, and what the terminal says.

`core/terminal_input.py` cuts it into parts, in the place of Textual's own parser. That one types
what it does not know: a reply about a color approves what is asked just then, the bell at its end
opens the editor, and keys with colons end the program. Of Textual's only the names of keys and
its mouse are used here, and the kinds of its events.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from textual import constants, events, messages
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS, MODIFIER_FUNCTIONAL_KEYS
from textual._xterm_parser import IS_ITERM, SPECIAL_KEY_TO_CHARACTER, XTermParser
from textual.keys import KEY_NAME_REPLACEMENTS
from textual.keys import _character_to_key as character_to_key  # pyright: ignore[reportPrivateUsage]
from textual.message import Message

from tui.core.terminal_input import ESC, PASTE_END, InputPart, TerminalInput
from tui.ui.toolkit.frame_pacing import ANSWER

log = logging.getLogger(__name__)

SETTLED_S: Final = 1.0
"""How long after something unclassified a key may be a part of it."""

_FOCUS: Final = {"\x1b[I": events.AppFocus, "\x1b[O": events.AppBlur}
_MOUSE: Final = re.compile(r"\x1b\[<\d{1,3};-?\d{1,5};-?\d{1,5}[Mm]")
_CURSOR: Final = re.compile(r"\x1b\[(\d{1,5});(\d{1,5})R")
_MODE: Final = re.compile(r"\x1b\[\?(\d{1,5});(\d)\$y")
_SIZE: Final = re.compile(r"\x1b\[48" + r";(\d{1,5})(?::\d*)*" * 4 + "t")
_KEY: Final = re.compile(
    r"\x1b\[(\d{0,7})(?::(\d{0,7}))?(?::(\d{0,7}))?(?:;(\d{0,3})(?::(\d?))?(?:;([\d:]*))?)?"
    r"([u~ABCDEFHPQRS])"
)
"""Of the kitty protocol, and xterm's that look alike: the key, the same with Shift and on the base
layout; modifiers, what happened; the text."""
_OTHER_KEY: Final = re.compile(r"\x1b\[27;(\d{1,3});(\d{1,7})~")
"""Of xterm's modifyOtherKeys: modifiers, the key."""
_REPORT: Final = re.compile(
    r"\x1b\[(?:[<=>?].*|[\d;:]*[ -/]+[@-~]|[\d;]*[nt]|\d+(?:;\d+){2}M|\d+(?:;\d+){4,}x)", re.DOTALL
)
"""What terminals say of themselves, and the mouse in rxvt's way."""

_SHIFT, _ALT, _CTRL, _CAPS_LOCK = 1, 2, 4, 64
_MODIFIERS: Final = ((_ALT, "alt"), (_CTRL, "ctrl"), (8, "super"), (16, "hyper"), (32, "meta"))
_RELEASE: Final = "3"
_LARGEST: Final = 2_000
"""More columns or rows no terminal has."""
_LEGACY: Final[Mapping[str, str]] = {
    "ctrl+shift+minus": "ctrl+underscore",
    "ctrl+shift+underscore": "ctrl+underscore",
    "ctrl+slash": "ctrl+underscore",
}
"""Keys that have always been one, and have names of their own where a protocol tells them apart."""
_ALT_KEYS: Final = "fb\x7f\t"
"""With Alt they are other keys in Textual's table."""


class Unclassified(events.Event, bubble=False):
    """Something came from the terminal that is no key and no report that is known: it was dropped.

    It is sent right before the key that ended it, or that follows it. What comes next may be a
    part of it, so a single key answers nothing for a moment.

    `kind` says what it was: `unknown`; `unfinished`; `late`, the rest of such a one; `key`, an
    introducer alone, sent before Alt and that key; `waits`, for a sequence that has kept keys back
    for so long and still does, or has just come to its end. `held_back_s` is for how long.
    """

    def __init__(self, kind: str, held_back_s: float = 0.0) -> None:
        super().__init__()
        self.kind, self.held_back_s = kind, held_back_s


class DoubtfulKey(events.Key):
    """A key that may not have been pressed as one: it came in one read with a text, as a paste
    without marks does, or, where it `follows`, soon after something unclassified. This goes by when
    it was read, however late the app gets to it."""

    def __init__(self, key: events.Key, *, follows: bool) -> None:
        super().__init__(key.key, key.character)
        self.follows = follows


DoubtfulKey.handler_name = events.Key.handler_name


class KeyParser:
    """Takes what was read, in pieces cut anywhere. `clean` makes a pasted text fit to be drawn;
    `answered` hears that the terminal has drawn what it was asked about. `source` is given where
    something was read before."""

    def __init__(
        self,
        clean: Callable[[str], str],
        answered: Callable[[], object] = bool,
        *,
        source: TerminalInput | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clean, self._answered = clean, answered
        self._source = source or TerminalInput(now)
        self._now = now
        self._unclassified_at = float("-inf")
        self._mouse = XTermParser()

    def feed(self, data: bytes) -> Iterator[Message]:
        """What has come with this."""
        return self._messages_of(list(self._source.feed(data)))

    @property
    def patience_s(self) -> float | None:
        """How long to wait for more before `tick`; None for as long as it takes."""
        return self._source.patience_s

    def tick(self) -> Iterator[Message]:
        """What has come with a pause."""
        return self._messages_of(list(self._source.tick()))

    def _messages_of(self, parts: Sequence[InputPart]) -> Iterator[Message]:
        text = "".join(part.text for part in parts if part.kind == "text")
        many = bool(text) and len(text) + sum(part.kind == "control" for part in parts) > 1
        for message in chain.from_iterable(map(self._events, parts)):
            if isinstance(message, Unclassified):
                self._unclassified_at = self._now()
            follows = self._now() - self._unclassified_at < SETTLED_S
            if isinstance(message, events.Key) and (many or follows):
                yield DoubtfulKey(message, follows=follows)
            else:
                yield message

    def _events(self, part: InputPart) -> Iterable[Message]:
        match part.kind:
            case "text":
                return map(_typed, part.text)
            case "control":
                return [_typed(part.text)]
            case "escape":
                return [events.Key("escape", ESC)]
            case "alt":
                return [_with_alt(part.text)]
            case "paste":
                return [events.Paste(self._clean(part.text))]
            case "ss3":
                return _named(part.text) or [_unknown(part.text)]
            case "csi":
                return self._report(part.text) or _keys(part.text)
            case "dropped":
                log.info("dropped from the terminal: %s after %.1f s", part.text, part.held_s)
                return [Unclassified(part.text, part.held_s)]
            case "string" | "mouse":
                return []

    def _report(self, sequence: str) -> list[Message]:
        """What the app hears of a report, where that is anything."""
        if sequence == ANSWER:
            self._answered()
        elif focus := _FOCUS.get(sequence):
            return [focus()]
        elif _MOUSE.fullmatch(sequence):
            moved = self._mouse.parse_mouse_code(sequence)
            return [moved] if moved else []
        elif found := _CURSOR.fullmatch(sequence):
            return [events.CursorPosition(int(found[2]) - 1, int(found[1]) - 1)]
        elif found := _SIZE.fullmatch(sequence):
            return self._resized(*map(int, found.groups()))
        elif found := _MODE.fullmatch(sequence):
            return _mode(found[1], int(found[2]))
        return []

    def _resized(self, rows: int, columns: int, height: int, width: int) -> list[Message]:
        if not (0 < rows <= _LARGEST and 0 < columns <= _LARGEST):
            return [_unknown("size")]
        resized = events.Resize.from_dimensions((columns, rows), (width, height))
        self._mouse.terminal_size = resized.size
        self._mouse.terminal_pixel_size = resized.pixel_size if width and height else None
        self._mouse.mouse_pixels = True
        return [resized]


def _mode(mode: str, setting: int) -> list[Message]:
    """The terminal says whether it knows a mode."""
    if mode == "2026" and setting > 0:
        return [messages.TerminalSupportsSynchronizedOutput()]
    if mode == "2048" and constants.SMOOTH_SCROLL and not IS_ITERM:
        return [messages.InBandWindowResize.from_setting_parameter(setting)]
    return []


def _unknown(sequence: str) -> Unclassified:
    log.info("dropped from the terminal: unknown, %r", sequence)
    return Unclassified("unknown")


def _name(char: str) -> str:
    return KEY_NAME_REPLACEMENTS.get(name := character_to_key(char), name)


def _typed(char: str) -> events.Key:
    """The key of a character, also of a control character."""
    named = ANSI_SEQUENCES_KEYS.get(char)
    if isinstance(named, tuple):
        return events.Key(named[0].value, char)
    return events.Key(_name(char), char)


def _with_alt(char: str) -> events.Key:
    """A key with Alt types nothing. Most terminals send it as Esc and the key in one; an Enter or
    a Ctrl key that was pressed so fast after Esc comes alike."""
    if char == "\r":
        return events.Key("alt+enter", None)
    if char in _ALT_KEYS:
        return _named(ESC + char)[0]
    key = _typed(char)
    if not key.is_printable:
        return key
    shift = "shift+" if len(key.key) == 1 and key.key.isupper() else ""
    return events.Key(f"alt+{shift}{key.key.lower() if shift else key.key}", None)


def _named(sequence: str) -> list[events.Key]:
    """The keys that Textual knows by a whole sequence."""
    named = ANSI_SEQUENCES_KEYS.get(sequence)
    if isinstance(named, str):
        return [_typed(named)]
    return [events.Key(key.value, None) for key in named] if isinstance(named, tuple) else []


def _keys(sequence: str) -> Iterable[Message]:
    """What was pressed, if this says so; nothing for what is known and no key."""
    if found := _OTHER_KEY.fullmatch(sequence):
        return _pressed(int(found[2]), int(found[1]), "u") or [_unknown(sequence)]
    if found := _KEY.fullmatch(sequence):
        code, shifted, base, modifiers, happened, text, final = found.groups(default="")
        if happened == _RELEASE:
            return []
        chars = [_char(int(one)) for one in text.split(":") if one]
        alike = (_char(int(shifted or 0)), _char(int(base or 0)))
        if pressed := _pressed(int(code or 1), int(modifiers or 1), final, alike, chars):
            return pressed
    if named := _named(sequence):
        return named
    if sequence in ANSI_SEQUENCES_KEYS or sequence == PASTE_END or _REPORT.fullmatch(sequence):
        return []
    return [_unknown(sequence)]


def _pressed(
    code: int,
    modifiers: int,
    final: str,
    alike: tuple[str, str] = ("", ""),
    text: Sequence[str] = (),
) -> list[events.Key]:
    """A key by its number, and the text that it types, if that was told. `alike` are the characters
    of the same key with Shift and on the base layout. Empty where there is no such key."""
    bits = max(modifiers - 1, 0)
    name, char = FUNCTIONAL_KEYS.get(f"{code}{final}", ""), _char(code)
    if not all(text) or not (name or (final == "u" and (char or text))):
        return []
    if text:
        return [_typing(one, name, bits) for one in text]
    if name in MODIFIER_FUNCTIONAL_KEYS:
        return [events.Key(name, None)]
    held = ["shift"] * (bits & _SHIFT) + [name for bit, name in _MODIFIERS if bits & bit]
    if name:
        told = None if held else SPECIAL_KEY_TO_CHARACTER.get(name)
        return [events.Key("+".join((*sorted(held), name)), told)]
    if held in ([], ["shift"]) and (typed := _shifted(char, alike[0], bits)):
        return [_typing(typed, "", bits)]
    if not char.isascii():
        char = alike[1] or char
    named = "+".join((*sorted(held), _name(char.lower())))
    return [events.Key(_LEGACY.get(named, named), None)]


def _typing(char: str, name: str, bits: int) -> events.Key:
    """A key that types this. Modifiers count that are not in the character already."""
    held = [modifier for bit, modifier in _MODIFIERS if bits & bit and bit != _ALT]
    held += ["shift"] * (char.isspace() and bits & _SHIFT)
    return events.Key("+".join((*sorted(held), name or _name(char))), char)


def _shifted(char: str, shifted: str, bits: int) -> str:
    """The text of a key that came without it, "" where only the layout knows."""
    if char.isalpha() and bool(bits & _SHIFT) != bool(bits & _CAPS_LOCK):
        return shifted or char.upper()
    return char if not bits & _SHIFT or char.isspace() or char.isalpha() else shifted


def _char(code: int) -> str:
    """The character of a number, "" where that stands for none that anyone types."""
    control = code < 32 or 127 <= code < 160
    if control or 0xD800 <= code <= 0xF8FF or code > 0x10FFFF:  # half characters, function keys
        return ""
    return chr(code)
