"""Turns terminal input into Textual's events: keys, pastes, the mouse, and reports.

`core/terminal_input.py` cuts the input into parts, in place of Textual's own parser. That one types
what it does not know: a reply about a color approves the current question, the bell at its end
opens the editor, and keys with colons end the program. From Textual only the names of keys, the
mouse parser and the event classes are used.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from threading import Event
from typing import Final

from textual import constants, events, messages
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS, MODIFIER_FUNCTIONAL_KEYS
from textual._xterm_parser import IS_ITERM, SPECIAL_KEY_TO_CHARACTER, XTermParser
from textual.keys import KEY_NAME_REPLACEMENTS
from textual.keys import _character_to_key as character_to_key  # pyright: ignore[reportPrivateUsage]
from textual.message import Message

from tui.core.characters import clusters
from tui.core.terminal_input import ESC, PASTE_END, PASTE_S, InputPart, TerminalInput, is_text
from tui.ui.toolkit.frame_pacing import ANSWER, FramePacing

log = logging.getLogger(__name__)

SETTLED_S: Final = 1.0
"""Seconds after something unclassified in which a key may be part of it."""

_FOCUS: Final = {"\x1b[I": events.AppFocus, "\x1b[O": events.AppBlur}
_MOUSE: Final = re.compile(r"\x1b\[<\d{1,3};-?\d{1,5};-?\d{1,5}[Mm]")
_CURSOR: Final = re.compile(r"\x1b\[(\d{1,5});(\d{1,5})R")
_MODE: Final = re.compile(r"\x1b\[\?(\d{1,5});(\d)\$y")
_SIZE: Final = re.compile(r"\x1b\[48" + r";(\d{1,5})(?::\d*)*" * 4 + "t")
_KEY: Final = re.compile(
    r"\x1b\[(\d{0,7})(?::(\d{0,7}))?(?::(\d{0,7}))?(?:;(\d{0,3})(?::(\d?))?(?:;([\d:]*))?)?"
    r"([u~ABCDEFHPQRS])"
)
"""Keys of the kitty protocol, and xterm's similar ones: the key, the same with Shift and on the
base layout; modifiers, event type; text."""
_OTHER_KEY: Final = re.compile(r"\x1b\[27;(\d{1,3});(\d{1,7})~")
"""Keys of xterm's modifyOtherKeys: modifiers, the key."""
_REPORT: Final = re.compile(
    r"\x1b\[(?:[<=>?].*|[\d;:]*[ -/]+[@-~]|[\d;]*[nt]|\d+(?:;\d+){2}M|\d+(?:;\d+){4,}x)", re.DOTALL
)
"""Reports about the terminal, and rxvt's mouse reports."""

_SHIFT, _ALT, _CTRL, _CAPS_LOCK = 1, 2, 4, 64
_MODIFIERS: Final = ((_ALT, "alt"), (_CTRL, "ctrl"), (8, "super"), (16, "hyper"), (32, "meta"))
_RELEASE: Final = "3"
_REPEAT: Final = "2"
"""The event of a key that is held down, where a terminal reports it."""
_LARGEST: Final = 2_000
"""No terminal has more columns or rows."""
_LEGACY: Final[Mapping[str, str]] = {
    "ctrl+shift+minus": "ctrl+underscore",
    "ctrl+shift+underscore": "ctrl+underscore",
    "ctrl+slash": "ctrl+underscore",
}
"""Keys that have always been one, although a protocol has distinct names for them."""
_LINES: Final = re.compile(r"[^\r\n][\r\n]+[^\r\n]")
"""A line, and the beginning of the next one."""
_LAST: Final = 0x10FFFF
_ALT_KEYS: Final = "fb\x7f\t"
"""Characters that are other keys with Alt, by Textual's table."""


class Unclassified(events.Event, bubble=False):
    """Terminal input that is neither a key nor a known report, and was dropped.

    Sent right before the key that ended it, or that follows it. What comes next may be part of it,
    so for a moment a single key answers nothing.

    `kind` is `unknown`; `unfinished`; `late`, the rest of an unfinished one; `key`, a lone
    introducer, sent before Alt and that key; or `waits`, for a sequence that has been keeping keys
    back, or has just ended. `held_back_s` is for how long.
    """

    def __init__(self, kind: str, held_back_s: float = 0.0) -> None:
        super().__init__()
        self.kind, self.held_back_s = kind, held_back_s


class Received(events.Event, bubble=False):
    """A part of the input as the terminal sent it, and what was made of it.

    Sent before that, while somebody watches (`/keys`).
    """

    def __init__(self, part: InputPart, messages: Sequence[Message]) -> None:
        super().__init__()
        self.part = part
        self.messages = tuple(messages)


class TypedKey(events.Key):
    """A key that types its character, whatever that is; it may be several code points."""

    @property
    def is_printable(self) -> bool:
        return self.character is not None and is_text(self.character)


TypedKey.handler_name = events.Key.handler_name


class DoubtfulKey(TypedKey):
    """A key that may not have been pressed as one.

    It came in one read with a text, as a paste without marks does, it is held down, or, if it
    `follows`, it came soon after something unclassified. That depends on when it was read, however
    late the app handles it.
    """

    def __init__(self, key: events.Key, *, follows: bool) -> None:
        super().__init__(key.key, key.character)
        self.follows = follows


DoubtfulKey.handler_name = events.Key.handler_name


class KeyParser:
    """Parses input that was read in pieces cut anywhere.

    `clean` makes a pasted text safe to draw; `pacing` is told when the terminal has drawn what it
    was asked about. `source` is given if something was read before. While `watched` is set, each
    part is also sent as `Received`.
    """

    def __init__(
        self,
        clean: Callable[[str], str],
        pacing: FramePacing | None = None,
        *,
        source: TerminalInput | None = None,
        now: Callable[[], float] = time.monotonic,
        watched: Event | None = None,
    ) -> None:
        self._clean, self._pacing = clean, pacing
        self._watched = watched or Event()
        self._source = source or TerminalInput(now)
        self._now = now
        self._unclassified_at = float("-inf")
        self._unmarked_at = float("-inf")
        self._mouse = XTermParser()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Return the messages that this input completes."""
        parts = list(self._source.feed(data))
        if pasted := self._unmarked(parts):
            parts = [InputPart("paste", pasted)]
        return self.take(parts)

    @property
    def patience_s(self) -> float | None:
        """Seconds to wait for more before `tick`; None for no limit."""
        return self._source.patience_s

    def tick(self) -> Iterator[Message]:
        """Return the messages that a pause completes."""
        return self.take(list(self._source.tick()))

    def take(self, parts: Sequence[InputPart]) -> Iterator[Message]:
        """Return the messages of parts that were read together."""
        text = "".join(part.text for part in parts if part.kind == "text")
        many = bool(text) and len(text) + sum(part.kind == "control" for part in parts) > 1
        for message in chain.from_iterable(map(self._messages, parts)):
            if isinstance(message, Unclassified):
                self._unclassified_at = self._now()
            follows = self._now() - self._unclassified_at < SETTLED_S
            if isinstance(message, events.Key) and (many or follows):
                yield DoubtfulKey(message, follows=follows)
            else:
                yield message

    def _messages(self, part: InputPart) -> Iterable[Message]:
        made = self._events(part)
        if not self._watched.is_set():
            return made
        messages = tuple(made)
        return [Received(part, messages), *messages]

    def _unmarked(self, parts: Sequence[InputPart]) -> str:
        """Return what was read, if lines follow each other in it: a paste without marks, as some
        programs and serial lines send it. "" if it is keys."""
        if not all(
            part.kind == "text" or (part.kind == "control" and part.text in "\r\n\t")
            for part in parts
        ):
            return ""
        text = "".join(part.text for part in parts)
        more = self._now() - self._unmarked_at < PASTE_S
        if not (text and more) and not _LINES.search(text):
            return ""
        self._unmarked_at = self._now()
        return text

    def _events(self, part: InputPart) -> Iterable[Message]:
        match part.kind:
            case "text":
                return map(_typed, clusters(part.text))
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
        """Return the app's messages for a report, if it has any."""
        if sequence == ANSWER:
            if self._pacing is not None:
                self._pacing.answered()
        elif focus := _FOCUS.get(sequence):
            return [focus()]
        elif _MOUSE.fullmatch(sequence):
            moved = self._mouse.parse_mouse_code(sequence)
            return [moved] if moved else []
        elif match := _CURSOR.fullmatch(sequence):
            return [events.CursorPosition(int(match[2]) - 1, int(match[1]) - 1)]
        elif match := _SIZE.fullmatch(sequence):
            return self._resized(*map(int, match.groups()))
        elif match := _MODE.fullmatch(sequence):
            return _mode(match[1], int(match[2]))
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
    """Return the message for a terminal's report about a mode."""
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
    """Return the key of a character, including control characters."""
    named = ANSI_SEQUENCES_KEYS.get(char)
    if isinstance(named, tuple):
        return events.Key(named[0].value, char)
    # A keycap must not be the key of its digit.
    return TypedKey(char if len(char) > 1 else _name(char), char)


def _with_alt(char: str) -> events.Key:
    """Return a key pressed with Alt, which types nothing.

    Most terminals send it as Esc and the key together; Enter or a Ctrl key pressed right after Esc
    looks the same.
    """
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
    """Return the keys that Textual knows by a whole sequence."""
    named = ANSI_SEQUENCES_KEYS.get(sequence)
    if isinstance(named, str):
        return [_typed(named)]
    return [events.Key(key.value, None) for key in named] if isinstance(named, tuple) else []


def _keys(sequence: str) -> Iterable[Message]:
    """Return the keys that a sequence stands for; empty if it is known but no key."""
    if match := _OTHER_KEY.fullmatch(sequence):
        return _pressed(int(match[2]), int(match[1]), "u") or [_unknown(sequence)]
    if match := _KEY.fullmatch(sequence):
        code, shifted, base, modifiers, happened, text, final = match.groups(default="")
        if happened == _RELEASE:
            return []
        chars = _text_of(text)
        alike = (_char(int(shifted or 0)), _char(int(base or 0)))
        if pressed := _pressed(int(code or 1), int(modifiers or 1), final, alike, chars):
            held = happened == _REPEAT
            return [DoubtfulKey(key, follows=False) for key in pressed] if held else pressed
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
    """Return a key by its number, and the text that it types if that was sent; empty for no key.

    `alike` are the characters of the same key with Shift and on the base layout.
    """
    bits = max(modifiers - 1, 0)
    name, char = FUNCTIONAL_KEYS.get(f"{code}{final}", ""), _char(code)
    if not all(text) or not (name or (final == "u" and (char or text))):
        return []
    if text:
        return [_typing(one, name, bits) for one in text]
    if name in MODIFIER_FUNCTIONAL_KEYS:
        return [events.Key(name, None)]
    # The text was not sent: derive it, or name the key with its modifiers.
    held = ["shift"] * (bits & _SHIFT) + [name for bit, name in _MODIFIERS if bits & bit]
    if name:
        char_typed = None if held else SPECIAL_KEY_TO_CHARACTER.get(name)
        return [events.Key("+".join((*sorted(held), name)), char_typed)]
    if held in ([], ["shift"]) and (typed := _shifted(char, alike[0], bits)):
        return [_typing(typed, "", bits)]
    if not char.isascii():
        char = alike[1] or char
    named = "+".join((*sorted(held), _name(char.lower())))
    return [events.Key(_LEGACY.get(named, named), None)]


def _typing(char: str, name: str, bits: int) -> events.Key:
    """Return a key that types a character, with the modifiers that the character does not
    include."""
    held = [modifier for bit, modifier in _MODIFIERS if bits & bit and bit != _ALT]
    held += ["shift"] * (char.isspace() and bits & _SHIFT)
    named = name or (char if len(char) > 1 else _name(char))
    return TypedKey("+".join((*sorted(held), named)), char)


def _shifted(char: str, shifted: str, bits: int) -> str:
    """Return the text of a key that came without it; "" if only the layout knows."""
    if char.isalpha() and bool(bits & _SHIFT) != bool(bits & _CAPS_LOCK):
        return shifted or char.upper()
    return char if not bits & _SHIFT or char.isspace() or char.isalpha() else shifted


def _text_of(codes: str) -> list[str]:
    """Return the characters that a key has typed; "" among them if nobody types that."""
    numbers = [int(one) for one in codes.split(":") if one]
    if not all(number <= _LAST and is_text(chr(number)) for number in numbers):
        return [""]
    return clusters("".join(map(chr, numbers)))


def _char(code: int) -> str:
    """Return the character of a number; "" for one that nobody types."""
    control = code < 32 or 127 <= code < 160
    if control or 0xD800 <= code <= 0xF8FF or code > _LAST:  # surrogates, function keys
        return ""
    return chr(code)
