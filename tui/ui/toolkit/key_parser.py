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
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from tui.core.keyboard_layouts import latin
from tui.core.keymap import ALIKE
from tui.core.terminal_input import (
    ESC,
    PASTE_END,
    PASTE_S,
    SHIFT_ENTER,
    InputPart,
    TerminalInput,
    is_text,
)
from tui.ui.toolkit.frame_pacing import ANSWER, FramePacing

log = logging.getLogger(__name__)

SETTLED_S: Final = 1.0
"""Seconds after something unclassified in which a key may be part of it."""

_FOCUS: Final = {"\x1b[I": events.AppFocus, "\x1b[O": events.AppBlur}
_MOUSE: Final = re.compile(r"\x1b\[<\d{1,3};-?\d{1,5};-?\d{1,5}[Mm]")
_CURSOR: Final = re.compile(r"\x1b\[(\d{1,5});(\d{1,5})R")
_STATUS: Final = re.compile(r"\x1b\]7501;\?(?::.*)?")
"""The answer to `ui/program_status.py:QUERY`. Since its revision 0.4 it may name the states that
the terminal knows."""
_ATTRIBUTES: Final = re.compile(r"\x1b\[\?[\d;]*c")
"""Primary device attributes, asked for behind the question about program status: if they come
first, the terminal did not know it."""
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
_MODIFIERS: Final = (
    *((_SHIFT, "shift"), (_ALT, "alt"), (_CTRL, "ctrl")),
    *((8, "super"), (16, "hyper"), (32, "meta")),
)
_IN_TEXT: Final = _SHIFT | _ALT
"""Modifiers that a text includes."""
_RELEASE: Final = "3"
_REPEAT: Final = "2"
"""The event of a key that is held down, where a terminal reports it."""
_LARGEST: Final = 2_000
"""No terminal has more columns or rows."""
_LINES: Final = re.compile(r"[^\r\n][\r\n]+[^\r\n]")
"""A line, and the beginning of the next one."""
_LAST: Final = 0x10FFFF
_SILENT: Final = frozenset(
    code
    for code, name in FUNCTIONAL_KEYS.items()
    if name in MODIFIER_FUNCTIONAL_KEYS or name.endswith("_lock")
)
"""Keys that do nothing alone. Only a protocol reports them."""
_LATIN_END: Final = "\u0370"
"""The first letter of another script."""


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


class StatusAnswer(events.Event, bubble=False):
    """The terminal's answer about program status: whether it has `known` the question."""

    def __init__(self, *, known: bool) -> None:
        super().__init__()
        self.known = known


class TypedKey(events.Key):
    """A key that types its character, whatever that is; it may be several code points."""

    @property
    def is_printable(self) -> bool:
        return self.character is not None and is_text(self.character)


TypedKey.handler_name = events.Key.handler_name


class AltKey(events.Key):
    """A key that came right after Esc, as most terminals send one with Alt.

    `types` is what it types if Esc was a key of its own.
    """

    def __init__(self, key: str, types: str) -> None:
        super().__init__(key, None)
        self.types = types


AltKey.handler_name = events.Key.handler_name


class DoubtfulKey(TypedKey):
    """A key that may not have been pressed as one.

    It came in one read with other keys, one of which types something, as a paste without marks or
    the words of an input method do; it is held down, or, if it `follows`, it came soon after
    something unclassified. That depends on when it was read, however
    late the app handles it.
    """

    def __init__(self, key: events.Key, *, follows: bool) -> None:
        super().__init__(key.key, key.character)
        _keep_raw(self, raw_of(key))
        self.follows = follows
        self.types = key.types if isinstance(key, AltKey | DoubtfulKey) else ""


DoubtfulKey.handler_name = events.Key.handler_name


def raw_of(event: events.Key) -> str:
    """Return what the terminal sent for a key that is no text; "" if it isn't known."""
    return str(vars(event).get("raw", ""))


def _keep_raw(event: events.Key, raw: str) -> None:
    vars(event)["raw"] = raw


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
        made = list(chain.from_iterable(map(self._messages, parts)))
        keys = [message for message in made if isinstance(message, events.Key)]
        many = len(keys) > 1 and any(key.is_printable for key in keys)
        for message in made:
            if isinstance(message, Unclassified):
                self._unclassified_at = self._now()
            follows = self._now() - self._unclassified_at < SETTLED_S
            if isinstance(message, events.Key) and (many or follows):
                yield DoubtfulKey(message, follows=follows)
            else:
                yield message

    def _messages(self, part: InputPart) -> Iterable[Message]:
        made = tuple(self._events(part))
        if part.kind != "text" and len(made) == 1 and isinstance(made[0], events.Key):
            _keep_raw(made[0], part.raw)
        return [Received(part, made), *made] if self._watched.is_set() else made

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
                return map(typed, clusters(part.text))
            case "control":
                return [typed(part.text)]
            case "escape":
                return [events.Key("escape", ESC)]
            case "alt":
                return [_with_alt(part.text)]
            case "paste":
                return [events.Paste(self._clean(part.text))]
            case "ss3":
                if part.text in SHIFT_ENTER:
                    return [events.Key("shift+enter", None)]
                return _named(part.text) or [_unknown(part.text)]
            case "csi":
                return self._report(part.text) or _keys(part.text)
            case "dropped":
                log.info("dropped from the terminal: %s after %.1f s", part.text, part.held_s)
                return [Unclassified(part.text, part.held_s)]
            case "string":
                return [StatusAnswer(known=True)] if _STATUS.fullmatch(part.text) else []
            case "mouse":
                return []

    def _report(self, sequence: str) -> list[Message]:
        """Return the app's messages for a report, if it has any."""
        if sequence == ANSWER:
            if self._pacing is not None:
                self._pacing.answered()
        elif _ATTRIBUTES.fullmatch(sequence):
            return [StatusAnswer(known=False)]
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


def typed(char: str) -> events.Key:
    """Return the key of a character, including control characters."""
    named = ANSI_SEQUENCES_KEYS.get(char)
    if isinstance(named, tuple):
        return events.Key(named[0].value, char)
    # A keycap must not be the key of its digit.
    return TypedKey(char if len(char) > 1 else _name(char), char)


def _with_alt(char: str) -> events.Key:
    """Return a key pressed with Alt, which types nothing.

    Most terminals send it as Esc and the key together; a Ctrl key pressed right after Esc looks the
    same.
    """
    key = typed(char)
    if key.is_printable:
        return AltKey(_combined({"alt"}, char).key, char)
    return _key({"alt"}, key.key) if key.key in SPECIAL_KEY_TO_CHARACTER else key


def _combined(held: set[str], char: str, shifted: str = "", base: str = "") -> events.Key:
    """Return a character's key pressed with modifiers, by its place on a Latin keyboard.

    `shifted` and `base` are the characters of the same key with Shift and on the base layout.
    """
    lower = char.lower()[:1]
    if char != lower:
        char, held = lower, held | {"shift"}
    elif shifted and "shift" in held and not char.isalpha():
        char, held = shifted, held - {"shift"}
    if char >= _LATIN_END:
        char = base or latin(char) or char
    return _key(held, _name(char))


def _key(held: set[str], name: str) -> events.Key:
    """Return a key pressed with modifiers, under the name that bindings have for it."""
    named = "+".join((*sorted(held), name))
    meant = ALIKE.get(named, named)
    return events.Key(meant, SPECIAL_KEY_TO_CHARACTER.get(meant))


def _named(sequence: str) -> list[events.Key]:
    """Return the keys that Textual knows by a whole sequence."""
    named = ANSI_SEQUENCES_KEYS.get(sequence)
    if isinstance(named, str):
        return [typed(named)]
    return [events.Key(key.value, None) for key in named] if isinstance(named, tuple) else []


def _keys(sequence: str) -> Iterable[Message]:
    """Return the keys that a sequence stands for; empty if it is known but no key."""
    if match := _OTHER_KEY.fullmatch(sequence):
        code = int(match[2])  # with Shift, if that changes the character
        return _pressed(code, int(match[1]), "u", (_char(code), "")) or [_unknown(sequence)]
    if match := _KEY.fullmatch(sequence):
        code, shifted, base, modifiers, happened, text, final = match.groups(default="")
        if happened == _RELEASE or code + final in _SILENT:
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
    bits, (shifted, base) = max(modifiers - 1, 0), alike
    name, char = FUNCTIONAL_KEYS.get(f"{code}{final}", ""), _char(code)
    if not code and bits & _SHIFT:  # a dead key that types a character with Shift
        char = shifted
    if not all(text) or not (name or (final == "u" and (char or text))):
        return []
    # Alt is in the text that it changed; otherwise the key was pressed with Alt and types nothing.
    unchanged = {name or char, char and shifted.lower()}
    if text and not (bits & _ALT and text[0].lower() in unchanged):
        return [_typing(one, name, bits) for one in text]
    # The text was not sent: derive it, or name the key with its modifiers.
    held = {modifier for bit, modifier in _MODIFIERS if bits & bit}
    if name:
        return [_key(held, name)]
    if held <= {"shift"} and (typed := _shifted(char, shifted, bits)):
        return [_typing(typed, "", bits)]
    return [_combined(held, char, shifted, base)]


def _typing(char: str, name: str, bits: int) -> events.Key:
    """Return a key that types a character, with the modifiers that the character does not
    include."""
    held = sorted(modifier for bit, modifier in _MODIFIERS if bits & bit & ~_IN_TEXT)
    named = name or (char if len(char) > 1 else _name(char))
    return TypedKey("+".join((*held, named)), char)


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
