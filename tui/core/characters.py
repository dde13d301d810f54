"""The one rule for what a person takes for a character: a grapheme cluster (UAX #29).

An accent, a variation selector, a joiner or the second half of a flag belongs to the character
before it. No field puts its cursor inside one, and each key moves over a whole one or deletes it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SINGLE: Final = (
    r"[ -~\t\xa0-\u02ff\u0370-\u0482\u048a-\u0590\u2010-\u2027\u2030-\u205e\u20a0-\u20cf"
    r"\u2100-\u27bf\u2e80-\u3029\u3030-\u3098\u309b-\u312f\u3190-\u4dbf\u4e00-\ua4cf"
    r"\uac00-\ud7a3\uf900-\ufaff\uff01-\uff9d\U0001f300-\U0001f3fa\U0001f400-\U0001fbff]*"
)
"""Characters that join no other of these: most texts hold nothing else, and need no library."""
_compiled = cache(re.compile)


def all_single(text: str) -> bool:
    """True if each code point of a text is a character."""
    return _plain(text) or bool(_compiled(SINGLE).fullmatch(text))


def _plain(text: str) -> bool:
    return text.isascii() and "\r" not in text


def clusters(text: str) -> list[str]:
    """Return the characters of a text."""
    if all_single(text):
        return list(text)
    return _finder()(text)


def skeleton(text: str) -> str:
    """Return one code point for each character of a text, the one that says what it is: a letter
    with its accents is a letter."""
    return text if all_single(text) else "".join(cluster[0] for cluster in _finder()(text))


def next_end(text: str, at: int) -> int:
    """Return where the character that follows a place ends; the end of the text at the latest."""
    if _plain(text):
        return min(len(text), at + 1)
    start, ends = _line(text, at)
    place = bisect_right(ends, at - start)
    return start + ends[place] if place < len(ends) else min(len(text), at + 1)


def previous_start(text: str, at: int) -> int:
    """Return where the character before a place begins; 0 at the earliest."""
    if at <= 0 or text[at - 1 : at] == "\n" or _plain(text):
        return max(0, at - 1)
    start, ends = _line(text, at)
    place = bisect_left(ends, at - start)
    return start + ends[place - 1] if place > 0 else start


def whole_before(text: str, at: int) -> int:
    """Return a place as it is between two characters, or else where the one around it begins."""
    if at <= 0 or at >= len(text) or _plain(text):
        return max(0, min(at, len(text)))
    start, ends = _line(text, at)
    return start + ends[bisect_right(ends, at - start) - 1]


def whole_after(text: str, at: int) -> int:
    """Like `whole_before`, or else where the character around the place ends."""
    before = whole_before(text, at)
    return before if before == at else next_end(text, at)


def _line(text: str, at: int) -> tuple[int, tuple[int, ...]]:
    """Return where the line around a place begins, and its boundaries; a newline ends any
    character."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return start, boundaries(text[start:] if end < 0 else text[start:end])


@lru_cache(256)
def boundaries(line: str) -> tuple[int, ...]:
    """Return the places between the characters of a line, from 0 to its end."""
    if all_single(line):
        return tuple(range(len(line) + 1))
    places = [0]
    for cluster in _finder()(line):
        places.append(places[-1] + len(cluster))
    return tuple(places)


@cache
def _finder() -> Callable[[str], list[str]]:
    import regex  # noqa: PLC0415 - 12 ms, and few texts need it

    return regex.compile(r"\X").findall
