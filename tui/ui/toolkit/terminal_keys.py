"""Keys as the bytes that a terminal sends to its program: what the person's own terminal sent, in
the form of xterm, which programs in our terminals know (`TERM=xterm-256color`).

Most keys pass as they came. Keys of the kitty protocol and of modifyOtherKeys become what the same
terminal sends to a program that hasn't asked for these; the Linux console's and rxvt's forms become
xterm's; cursor keys follow the mode that the program has set (DECCKM).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS

from tui.core.terminal_input import ESC, PASTE_BEGIN, PASTE_END, SHIFT_ENTER
from tui.ui.toolkit.key_parser import raw_of

_CURSOR: Final = re.compile(r"\x1b[\[O]([A-DFH])")
_CONSOLE: Final = re.compile(r"\x1b\[\[([A-E])")
_PROTOCOL: Final = re.compile(
    r"\x1b\[(\d+)(?::(\d*))?(?::\d*)?(?:;(\d*)(?::\d?)?(?:;([\d:]*))?)?u|\x1b\[27;(\d+);(\d+)~"
)
_MODIFIED: Final = re.compile(
    r"\x1b\[(\d*)(?::[\d:]*)?(?:;(\d+)(?::\d?)?(?:;[\d:]*)?)?([~A-HPQRS])"
)
_RXVT: Final = re.compile(r"\x1b\[(\d+)([$^@])|\x1b([\[O])([a-d])")
_RXVT_MODIFIERS: Final[Mapping[str, int]] = {"$": 2, "^": 5, "@": 6}

_LETTERS: Final[Mapping[str, str]] = {
    "up": "A", "down": "B", "right": "C", "left": "D", "end": "F", "home": "H",
    "f1": "P", "f2": "Q", "f3": "R", "f4": "S",
}  # fmt: skip
_NUMBERS: Final[Mapping[str, int]] = {
    "insert": 2, "delete": 3, "pageup": 5, "pagedown": 6, "f5": 15, "f6": 17, "f7": 18, "f8": 19,
    "f9": 20, "f10": 21, "f11": 23, "f12": 24,
}  # fmt: skip
_SHIFTED_FROM: Final = 13
"""The function keys from this one on are those from F1 on with Shift."""
_CHARACTERS: Final[Mapping[str, str]] = {
    "enter": "\r", "tab": "\t", "backspace": "\x7f", "escape": ESC, "space": " ",
    "decimal": ".", "divide": "/", "multiply": "*", "subtract": "-", "add": "+", "equal": "=",
    "separator": ",", **{str(digit): str(digit) for digit in range(10)},
}  # fmt: skip
_CTRL: Final[Mapping[str, str]] = {
    " ": "\0", "@": "\0", "2": "\0", "`": "\0", "[": ESC, "3": ESC, "\\": "\x1c", "4": "\x1c",
    "]": "\x1d", "5": "\x1d", "^": "\x1e", "6": "\x1e", "~": "\x1e", "_": "\x1f", "/": "\x1f",
    "7": "\x1f", "-": "\x1f", "?": "\x7f", "8": "\x7f", "\x7f": "\b",
}  # fmt: skip
_SHIFT, _ALT, _CONTROL = 1, 2, 4


def key_bytes(event: events.Key, *, application: bool = False) -> bytes:
    """Return what a key sends to a program; `application` if that has asked for the application
    form of the cursor keys. Empty for a key that sends nothing."""
    raw = raw_of(event) or event.character or _of_name(event.key)
    return "".join(_forms(raw, application=application)).encode("utf-8", "surrogateescape")


def paste_bytes(text: str, *, bracketed: bool = False) -> bytes:
    """Return what a pasted text sends: lines end as Enter does; with marks around it if the program
    has asked for them. The text can't end its own marks."""
    lines = text.replace("\r\n", "\r").replace("\n", "\r").replace(ESC, "")
    marked = f"{PASTE_BEGIN}{lines}{PASTE_END}" if bracketed else lines
    return marked.encode("utf-8", "surrogateescape")


def _forms(raw: str, *, application: bool) -> Iterator[str]:
    """Yield the forms of what was sent, in which an Esc may come before a key (Alt)."""
    if raw in SHIFT_ENTER:
        yield "\r"
    elif match := _CURSOR.fullmatch(raw):
        yield f"\x1b{'O' if application else '['}{match[1]}"
    elif match := _CONSOLE.fullmatch(raw):
        yield _named(f"f{ord(match[1]) - 64}", 0, application=application)
    elif match := _PROTOCOL.fullmatch(raw):
        code, shifted, modifiers, text, other_modifiers, other = match.groups(default="")
        bits = max(int(modifiers or other_modifiers or 1) - 1, 0)
        yield _numbered(int(code or other), bits, shifted, text, application=application)
    elif match := _RXVT.fullmatch(raw):
        number, mark, introducer, letter = match.groups(default="")
        if letter:
            yield f"\x1b[1;{2 if introducer == '[' else 5}{letter.upper()}"
        else:
            yield _named(FUNCTIONAL_KEYS.get(f"{number}~", ""), _RXVT_MODIFIERS[mark] - 1)
    elif (match := _MODIFIED.fullmatch(raw)) and (
        name := FUNCTIONAL_KEYS.get(f"{match[1] or '1'}{match[3]}", "")
    ):
        bits = max(int(match[2] or 1) - 1, 0) & 0b111
        yield _named(name, bits, application=application)
    elif raw[:1] == ESC and len(raw) > 2 and raw[1] == ESC:  # Alt with a key that has a sequence
        yield ESC
        yield from _forms(raw[1:], application=application)
    else:
        yield raw


def _numbered(code: int, bits: int, shifted: str, text: str, *, application: bool) -> str:
    """Return the form of a key that came by its number."""
    alt = ESC if bits & _ALT else ""
    if text and not bits & _CONTROL:
        return "".join(chr(int(one)) for one in text.split(":") if one)
    name = FUNCTIONAL_KEYS.get(f"{code}u", "")
    char = _CHARACTERS.get(name, "") if name else _char(code)
    if name and not char:
        return _named(name, bits, application=application)
    if char == "\t" and bits & _SHIFT:
        return f"{alt}\x1b[Z"
    if bits & _CONTROL:
        control = chr(ord(char.lower()) & 0x1F) if char.isascii() and char.isalpha() else ""
        return f"{alt}{control or _CTRL.get(char, char)}"
    if bits & _SHIFT and char.isprintable():
        char = _char(int(shifted)) if shifted else char.upper()
    return f"{alt}{char}"


def _named(name: str, bits: int, *, application: bool = False) -> str:
    """Return xterm's form of a key with a name, such as `f5`, with modifiers; "" for one that it
    has none for."""
    number = int(name[1:]) if name[:1] == "f" and name[1:].isdecimal() else 0
    if _SHIFTED_FROM <= number < 2 * _SHIFTED_FROM - 1:
        name, bits = f"f{number - _SHIFTED_FROM + 1}", bits | _SHIFT
    modifiers = f";{bits + 1}" if bits else ""
    if letter := _LETTERS.get(name):
        if bits:
            return f"\x1b[1{modifiers}{letter}"
        return f"\x1b{'O' if application or letter in 'PQRS' else '['}{letter}"
    if name in _NUMBERS:
        return f"\x1b[{_NUMBERS[name]}{modifiers}~"
    return ""


def _char(code: int) -> str:
    return chr(code) if code < 0x110000 and not 0xD800 <= code <= 0xF8FF else ""


def _of_name(key: str) -> str:
    """Return what a key sends of which only the name is known."""
    *held, name = key.split("+")
    bits = sum(
        bit for bit, one in ((_SHIFT, "shift"), (_ALT, "alt"), (_CONTROL, "ctrl")) if one in held
    )
    for sequence, keys in ANSI_SEQUENCES_KEYS.items():
        if len(sequence) == 1 and isinstance(keys, tuple) and keys[0].value == key:
            return sequence
    if name in _LETTERS or name in _NUMBERS or name[1:].isdecimal():
        return _named(name, bits)
    char = _CHARACTERS.get(name, name)
    return _numbered(ord(char), bits, "", "", application=False) if len(char) == 1 else ""
