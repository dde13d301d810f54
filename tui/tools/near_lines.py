"""Lines of a text that nearly match a passage, described for the model."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from itertools import accumulate, islice

from tui.tools.text_match import TextMatch

_SHOWN_LINES = 12
_COMPARED_LINES = 20_000


def same_but_blanks(lines: list[str], old: str) -> tuple[int, int] | None:
    """Return the lines, as a half-open range, that hold `old` when all blanks are left out."""
    wanted = "".join(old.split())
    if not wanted:
        return None
    bare = ["".join(line.split()) for line in lines]
    at = "".join(bare).find(wanted)
    if at < 0:
        return None
    ends = list(accumulate(map(len, bare)))
    return bisect_left(ends, at + 1), bisect_left(ends, at + len(wanted)) + 1


def closest(lines: list[str], old: str) -> tuple[int, int] | None:
    """Return the range around the line that is closest to the longest one of `old`, with as many
    lines as `old` has."""
    wanted = old.replace("\r\n", "\n").split("\n")
    key = max(wanted, key=lambda line: len(line.strip())).strip()[:500]
    matcher = difflib.SequenceMatcher(autojunk=False, b=key)
    best, score = -1, 0.6
    for number, line in enumerate(islice(lines, _COMPARED_LINES)):
        matcher.set_seq1(line.strip()[:500])
        if matcher.real_quick_ratio() > score and matcher.quick_ratio() > score:
            ratio = matcher.ratio()
            if ratio > score:
                best, score = number, ratio
    if best < 0:
        return None
    start = max(0, best - [line.strip()[:500] for line in wanted].index(key))
    return start, min(start + len(wanted), len(lines))


def excerpt(lines: list[str], start: int, stop: int) -> str:
    shown = [line if len(line) <= 300 else f"{line[:300]}…" for line in lines[start:stop]]
    if len(shown) > _SHOWN_LINES:
        shown = [*shown[:_SHOWN_LINES], "…"]
    text = "\n".join(shown)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def near_miss(flat: str, match: TextMatch, passage: str) -> str:
    """Describe a passage that matched only nearly: where, how, and the original text."""
    first = flat.count("\n", 0, match.start)
    last = flat.count("\n", 0, max(match.start, match.end - 1))
    place, were = f"Lines {first + 1}-{last + 1}", "They were"
    if first == last:
        place, were = f"Line {first + 1}", "It was"
    sentence = f"{place} matched {passage}, though {' and '.join(match.differences)}."
    return f"{sentence} {were}:\n{excerpt(flat.split(chr(10)), first, last + 1)}"
