"""Names as git prints them among other words: in quotes, with escapes, where they are odd."""

from __future__ import annotations

import os
import re
from typing import Final

from tui.core.late_pattern import late_pattern

_ESCAPES: Final = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))
_CODES: Final = {code: chr(letter) for letter, code in _ESCAPES.items()}
_ESCAPED: Final = late_pattern(rb'\\(?:([abtnvfr"\\])|([0-3][0-7]{2}))')
_ODD: Final = late_pattern(rb'[\x00-\x1f"\\\x7f-\xff]')


def quoted(name: str) -> str:
    """Return a name as git prints it by default: one with quotes, backslashes, control characters
    or anything beyond ASCII in quotes."""
    data = os.fsencode(name)
    if not _ODD.search(data):
        return name
    text = _ODD.sub(lambda odd: b"\\" + _code(odd[0][0]), data)
    return f'"{text.decode("ascii")}"'


def _code(byte: int) -> bytes:
    return _CODES[byte].encode() if byte in _CODES else b"%03o" % byte


def unquoted(text: str) -> str:
    """Return the name that git has printed, odd bytes as `os.fsdecode` has them."""
    if len(text) < 2 or not text.startswith('"') or not text.endswith('"'):
        return text
    data = text[1:-1].encode("utf-8", "surrogateescape")
    return os.fsdecode(_ESCAPED.sub(lambda one: bytes([_byte(one)]), data))


def _byte(escape: re.Match[bytes]) -> int:
    return _ESCAPES[escape[1][0]] if escape[1] else int(escape[2], 8)
