"""Lines that a formatter has only written in another way: where each of them comes from. Pure.

What a formatter leaves is compared without blanks, quotes, trailing commas, semicolons and the
brackets that it adds around a wrapped expression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

_DROPPED: Final = str.maketrans("", "", " \t\r\n\f\v'\"`,;()")
_CHARS_MAX: Final = 4_000
"""Characters on a side above which two parts that aren't equal are not compared."""


def substance(line: str) -> str:
    """A line without all that a formatter may change."""
    return line.translate(_DROPPED)


def same_substance(old: Sequence[str], new: Sequence[str]) -> bool:
    """True if two parts differ only in what a formatter may change."""
    return "".join(map(substance, old)) == "".join(map(substance, new))


def made_of(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """For each new line the old one that most of it was made of; None where there is none."""
    before, owners = _joined(old)
    after, places = _joined(new)
    found: list[int | None] = [None] * len(new)
    if before == after:
        pairs = zip(owners, places, strict=True)
    elif max(len(before), len(after)) <= _CHARS_MAX:
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        pairs = (
            (owners[i + k], places[j + k])
            for i, j, n in matcher.get_matching_blocks()
            for k in range(n)
        )
    else:
        return found
    votes: dict[int, Counter[int]] = {}
    for owner, place in pairs:
        votes.setdefault(place, Counter())[owner] += 1
    for place, owner in votes.items():
        line, count = owner.most_common(1)[0]
        if 2 * sum(owner.values()) >= len(substance(new[place])) and count:
            found[place] = line
    _fill(old, new, found)
    return found


def _joined(lines: Sequence[str]) -> tuple[str, list[int]]:
    parts = [substance(line) for line in lines]
    return "".join(parts), [n for n, part in enumerate(parts) for _ in part]


def _fill(old: Sequence[str], new: Sequence[str], found: list[int | None]) -> None:
    """Give the lines that are all brackets and quotes the source of the line before or after them;
    blank lines are matched with blank ones."""
    blank = [n for n, line in enumerate(old) if not line.strip()]
    for place, line in enumerate(new):
        if found[place] is not None or substance(line):
            continue
        if line.strip():
            around = (found[place - 1] if place else None, *found[place + 1 : place + 2])
            found[place] = next((one for one in around if one is not None), None)
        elif place and (before := found[place - 1]) is not None and before + 1 in blank:
            found[place] = before + 1
        elif not place and blank[:1] == [0]:
            found[place] = 0
