"""What the keys of the Linux console send, from its keymap's tables:

    ckbcomp -layout us,ru > ru.map
    loadkeys -u --mktable ./ru.map | python -m tests.terminals.linux_console VERSION LAYOUT

A console could not be had for the recording. `loadkeys` prints the kernel's tables as they are when
the map is loaded; this does with them what the kernel's keyboard does, in
`drivers/tty/vt/keyboard.c`, with Num Lock on and Alt as Esc. Rows are those of `record_keys`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping

from tests.terminals.record_keys import ELSEWHERE, KEYS, PLACES

CODES = {
    "escape": 1, "backspace": 14, "tab": 15, "enter": 28, "space": 57, "kp_enter": 96, "home": 102,
    "up": 103, "pageup": 104, "left": 105, "right": 106, "end": 107, "down": 108, "pagedown": 109,
    "insert": 110, "delete": 111, "kp_1": 79, "f11": 87, "f12": 88,
    **{f"f{number}": 58 + number for number in range(1, 11)},
    **{char: code - 8 for char, code in PLACES.items()},
}  # fmt: skip
SIGNS = {
    "slash": "/", "full_stop": ".", "comma": ",", "minus": "-", "left_square_bracket": "[",
    "right_square_bracket": "]", "backslash": "\\", "question_mark": "?", "exclamation_mark": "!",
    "at": "@", "number_sign": "#", "less_than_sign": "<", "greater_than_sign": ">",
    "underscore": "_", "circumflex_accent": "^",
}  # fmt: skip
SHIFTED = dict(zip("?!@#<>_^", "/123,.-6", strict=True))
PAD = "0123456789+-*/\r,.?()#"


class Tables:
    """The maps of `loadkeys --mktable`, and its strings."""

    def __init__(self, source: str) -> None:
        self.maps: Mapping[str, list[int]] = {
            name: [int(one, 16) for one in re.findall(r"0x[0-9a-f]+", body)]
            for name, body in re.findall(r"(\w+)_map\[NR_KEYS\] = \{(.*?)\};", source, re.DOTALL)
        }
        (buffer,) = re.findall(r"func_buf\[\] = \{(.*?)\};", source, re.DOTALL)
        shown = re.findall(r"'(\\033|[^'])'|\b(0), ", buffer)
        text = "".join("\0" if end else "\x1b" if char == r"\033" else char for char, end in shown)
        self.strings = text.split("\0")

    def sent(self, code: int, held: set[str]) -> str:
        """What a key sends; `shl` is held while the second layout is on."""
        name = "_".join(one for one in ("shift", "ctrl", "alt", "shl") if one in held) or "plain"
        if name not in self.maps:
            return ""
        value = self.maps[name][code]
        kind, low = (value >> 8) - 0xF0, value & 0xFF
        if kind < 0:
            return chr(value)
        match kind:
            case 0 | 11:
                return chr(low)
            case 1:
                return self.strings[low]
            case 2 if low == 1:
                return "\r"
            case 3:
                return PAD[low]
            case 6:
                return f"\x1b[{'BDCA'[low]}"
            case 8:
                return f"\x1b{chr(low)}"
            case _:
                return ""


def strike(tables: Tables, key: str, *, by_place: bool) -> str:
    *held, name = key.split("+")
    char = SIGNS.get(name, name)
    also = "shl" if by_place else "shift" if char in SHIFTED or char.isupper() else ""
    code = CODES[SHIFTED.get(char, char if len(char) > 1 else char.lower())]
    return tables.sent(code, {*held, also})


def main(version: str, layout: str) -> None:
    tables = Tables(sys.stdin.read())
    keys = KEYS if layout == "us" else ELSEWHERE
    sent = {key: strike(tables, key, by_place=layout != "us").encode().hex() for key in keys}
    for mode in ("legacy", "asked"):
        told = {"terminal": "linux", "version": version, "mode": mode, "layout": layout}
        print(json.dumps({**told, "sent": sent}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
