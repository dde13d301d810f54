"""The bytes that a terminal sends for a key, by xterm's table."""

from __future__ import annotations

import re
from typing import Final

from tui.core.errors import ToolError

_PLAIN: Final = {
    "enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "space": " ",
    "shift+tab": "\x1b[Z", "ctrl+space": "\0", "ctrl+@": "\0", "ctrl+[": "\x1b",
    "ctrl+\\": "\x1c", "ctrl+]": "\x1d", "ctrl+^": "\x1e", "ctrl+_": "\x1f", "ctrl+/": "\x1f",
    "ctrl+?": "\x7f",
}  # fmt: skip
_CURSOR: Final = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_NUMBERED: Final = {
    "insert": 2, "delete": 3, "pageup": 5, "pagedown": 6, "f5": 15, "f6": 17, "f7": 18, "f8": 19,
    "f9": 20, "f10": 21, "f11": 23, "f12": 24,
}  # fmt: skip
_FUNCTION: Final = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_MODIFIERS: Final = {"shift": 1, "alt": 2, "ctrl": 4}
_ALIASES: Final = {
    "return": "enter", "esc": "escape", "del": "delete", "ins": "insert", "pgup": "pageup",
    "pgdn": "pagedown", "page_up": "pageup", "page_down": "pagedown", "backtab": "shift+tab",
}  # fmt: skip
_HELD: Final = {
    "control": "ctrl", "c": "ctrl", "meta": "alt", "m": "alt", "option": "alt", "s": "shift",
}  # fmt: skip
_PASTED: Final = "\x1b[200~", "\x1b[201~"


def key_code(name: str, *, application_cursor: bool = False) -> str:
    """Return what a key sends, by its name (`enter`, `ctrl+c`, `shift+up`, `q`). Raises ToolError
    for a name that is none."""
    if len(name) == 1 and name.isprintable():
        return name
    parts = re.split(r"[+-](?=.)", name.strip())
    held = [_HELD.get(one, one) for one in map(str.lower, parts[:-1])]
    key = parts[-1] if len(parts[-1]) == 1 else parts[-1].lower()
    key = _ALIASES.get(key, key)
    if key == "shift+tab":
        return _PLAIN[key]
    if unknown := [one for one in held if one not in _MODIFIERS]:
        raise _unknown(name, unknown[0])
    return _code(name, frozenset(held), key, application_cursor=application_cursor)


def _code(name: str, held: frozenset[str], key: str, *, application_cursor: bool) -> str:
    whole = "+".join([*sorted(held), key])
    if whole in _PLAIN:
        return _PLAIN[whole]
    if key in _CURSOR or key in _FUNCTION:
        letter = _CURSOR.get(key) or _FUNCTION[key]
        if held:
            return f"\x1b[1;{_bits(held)}{letter}"
        return f"\x1b{'O' if application_cursor or key in _FUNCTION else '['}{letter}"
    if key in _NUMBERED:
        return f"\x1b[{_NUMBERED[key]}{f';{_bits(held)}' if held else ''}~"
    if "alt" in held:
        return f"\x1b{_code(name, held - {'alt'}, key, application_cursor=application_cursor)}"
    if len(key) == 1 and key.isprintable():
        if held == frozenset({"ctrl"}) and key.isascii() and key.isalpha():
            return chr(ord(key.lower()) & 0x1F)
        if held <= {"shift"}:
            return key.upper() if held else key
    raise _unknown(name, key)


def text_code(text: str, *, bracketed_paste: bool) -> str:
    """Return what typing a text sends; one of several lines is pasted where the program asked to
    hear of that, with Enter after it for each line end at its own end. Raises ToolError for control
    characters."""
    wrong = next((char for char in text if not char.isprintable() and char not in "\n\t"), "")
    if wrong:
        raise ToolError(
            f"The text has the control character {wrong!r}.", hint="Send keys by their names."
        )
    lines = text.rstrip("\n")
    if "\n" in lines and bracketed_paste:
        enters = len(text) - len(lines)
        return f"{_PASTED[0]}{lines}{_PASTED[1]}{enters * chr(10)}".replace("\n", "\r")
    return text.replace("\n", "\r")


def readable(text: str) -> str:
    """Return the characters that are sent, so that each is seen: `ls⏎`, `^C`, `⎋[A`."""
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    if char == "\r":
        return "⏎\n"
    if char == "\x1b":
        return "⎋"
    if char == "\x7f":
        return "^?"
    if char < " ":
        return f"^{chr(ord(char) + 64)}"
    return char


def _bits(held: frozenset[str]) -> int:
    return 1 + sum(_MODIFIERS[one] for one in held)


def _unknown(name: str, part: str) -> ToolError:
    return ToolError(
        f"There is no key {name!r}: {part!r} isn't known.",
        hint="Keys are such as enter, tab, escape, up, f1, ctrl+c, alt+x, shift+tab, q.",
    )
