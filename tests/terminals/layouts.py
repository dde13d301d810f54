"""Write the rows of `tui/core/keyboard_layouts.py` from xkb's data, by hand:
`python -m tests.terminals.layouts`.

Needs libxkbcommon0 and xkb-data (read with 1.5.0 and 2.35.1). Not a part of the suite.
"""

from __future__ import annotations

import ctypes
from typing import Any

from tests.terminals.record_keys import PLACES

LAYOUTS = {
    "ru": "ru", "uk": "ua", "be": "by", "kk": "kz", "ky": "kg", "tg": "tj", "mn": "mn",
    "bg": "bg", "sr": "rs", "mk": "mk", "el": "gr", "he": "il", "ar": "ara", "fa": "ir",
    "ka": "ge", "hy": "am", "th": "th",
}  # fmt: skip
"""The language of each layout."""


class _Names(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_char_p) for name in ("rules", "model", "layout", "variant", "options")
    ]


def row(layout: str) -> str:
    """What the places of `PLACES` type without Shift; a space where that is nothing of its own."""
    xkb: Any = ctypes.CDLL("libxkbcommon.so.0")
    for name in ("xkb_context_new", "xkb_keymap_new_from_names", "xkb_state_new"):
        getattr(xkb, name).restype = ctypes.c_void_p
    names = _Names(b"evdev", b"pc105", layout.encode(), None, None)
    context = ctypes.c_void_p(xkb.xkb_context_new(0))
    keymap = ctypes.c_void_p(xkb.xkb_keymap_new_from_names(context, ctypes.byref(names), 0))
    state = ctypes.c_void_p(xkb.xkb_state_new(keymap))
    chars = [chr(xkb.xkb_state_key_get_utf32(state, code)) for code in PLACES.values()]
    return "".join(char if char.isalpha() and not char.isascii() else " " for char in chars)


if __name__ == "__main__":
    print("latin", "".join(PLACES))
    for language, layout in LAYOUTS.items():
        print(language, row(layout))
