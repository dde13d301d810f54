"""The lines that two versions of a text share, in their order. Pure.

Common ends go first, then what goes on alike soon after a change; then lines that are there once in
both are the anchors (a patience diff), and what lies between two of them is matched by itself.
Where no line is unique, a short part is compared as a whole, and a long one counts as replaced:
time stays about linear.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

_CHANCE: Final = 2
"""So many lines that are alike all over a file are shared by chance, amid changed ones."""
_AT_ONCE: Final = 64
"""So many lines are compared in one piece."""
_NEAR: Final = 256
"""Lines after a change among which both versions may go on alike."""
_RUN: Final = 24
"""Equal lines, half of them unlike each other, that no chance gives."""
_COMPARED: Final = 250_000
"""Pairs of lines up to which a part without unique lines is compared as a whole."""
_BLANKS: Final = " \t,;:"
_CLOSING: Final = f")]}}{_BLANKS}"


class LineBlock(NamedTuple):
    """`size` equal lines: old[old:old + size] and new[new:new + size]."""

    old: int
    new: int
    size: int


class LineHunk(NamedTuple):
    """old[old:old_end] was replaced by new[new:new_end]."""

    old: int
    old_end: int
    new: int
    new_end: int


def matching_blocks(old: Sequence[str], new: Sequence[str]) -> list[LineBlock]:
    """The runs of lines that both versions have, in order, as long as they can be."""
    found: list[LineBlock] = []
    waiting = [LineHunk(0, len(old), 0, len(new))]
    while waiting:
        part = waiting.pop()
        head = _common_start(old, new, part)
        if head:
            found.append(LineBlock(part.old, part.new, head))
            part = LineHunk(part.old + head, part.old_end, part.new + head, part.new_end)
        if tail := _common_end(old, new, part):
            part = LineHunk(part.old, part.old_end - tail, part.new, part.new_end - tail)
            found.append(LineBlock(part.old_end, part.new_end, tail))
        low, high, start, end = part
        if low == high or start == end:
            continue
        if again := _going_on(old, new, part):
            i, j = again
            waiting += [LineHunk(low, i, start, j), LineHunk(i, high, j, end)]
        elif anchors := _anchors(old, new, part):
            found += anchors
            for i, j, size in anchors:
                if i > low or j > start:
                    waiting.append(LineHunk(low, i, start, j))
                low, start = i + size, j + size
            waiting.append(LineHunk(low, high, start, end))
        elif (high - low) * (end - start) <= _COMPARED:
            matcher = SequenceMatcher(None, old[low:high], new[start:end], autojunk=False)
            found += [
                LineBlock(low + i, start + j, n) for i, j, n in matcher.get_matching_blocks() if n
            ]
    return _closed(old, new, _significant(old, new, _joined(sorted(found))))


def _common_start(old: Sequence[str], new: Sequence[str], part: LineHunk) -> int:
    """The number of lines with which both sides of a part begin."""
    low, start, most = part.old, part.new, min(part.old_end - part.old, part.new_end - part.new)
    size = 0
    while size + _AT_ONCE <= most and (
        old[low + size : low + size + _AT_ONCE] == new[start + size : start + size + _AT_ONCE]
    ):
        size += _AT_ONCE
    while size < most and old[low + size] == new[start + size]:
        size += 1
    return size


def _common_end(old: Sequence[str], new: Sequence[str], part: LineHunk) -> int:
    """The number of lines with which both sides of a part end."""
    high, end, most = (
        part.old_end,
        part.new_end,
        min(part.old_end - part.old, part.new_end - part.new),
    )
    size = 0
    while size + _AT_ONCE <= most and (
        old[high - size - _AT_ONCE : high - size] == new[end - size - _AT_ONCE : end - size]
    ):
        size += _AT_ONCE
    while size < most and old[high - 1 - size] == new[end - 1 - size]:
        size += 1
    return size


def _going_on(old: Sequence[str], new: Sequence[str], part: LineHunk) -> tuple[int, int] | None:
    """Find the place from which both versions are alike after a change: most parts of a large file
    needn't be compared line by line."""
    low, high, start, end = part
    places: dict[str, int] = {}
    for i in range(low, min(low + _NEAR, high - _RUN + 1)):
        places.setdefault(old[i], i)
    for j in range(start, min(start + _NEAR, end - _RUN + 1)):
        i = places.get(new[j], len(old))
        run = old[i : i + _RUN]
        if run == new[j : j + _RUN] and 2 * len(set(run)) >= _RUN:
            return i, j
    return None


def hunks(old: Sequence[str], new: Sequence[str], blocks: Sequence[LineBlock]) -> list[LineHunk]:
    """The parts between matching blocks: what was replaced, added or removed."""
    found: list[LineHunk] = []
    i = j = 0
    for block in (*blocks, LineBlock(len(old), len(new), 0)):
        if i < block.old or j < block.new:
            found.append(LineHunk(i, block.old, j, block.new))
        i, j = block.old + block.size, block.new + block.size
    return found


def _anchors(old: Sequence[str], new: Sequence[str], part: LineHunk) -> list[LineBlock]:
    """The longest series of lines, rising in both, that each side of a part has once."""
    low, high, start, end = part
    before, after = Counter(old[low:high]), Counter(new[start:end])
    place = {line: i for i, line in enumerate(old[low:high], low) if before[line] == 1}
    pairs = [
        (place[line], j)
        for j, line in enumerate(new[start:end], start)
        if line in place and after[line] == 1
    ]
    # patience sorting: the ends of the best series by their length, and what each one follows
    ends: list[int] = []
    last: list[int] = []
    follows: list[int] = []
    for number, (i, _) in enumerate(pairs):
        length = len(ends) if not ends or i > ends[-1] else bisect_left(ends, i)
        ends[length : length + 1] = [i]
        last[length : length + 1] = [number]
        follows.append(last[length - 1] if length else -1)
    chain: list[LineBlock] = []
    number = last[-1] if last else -1
    while number >= 0:
        i, j = pairs[number]
        next_ = chain[-1] if chain else LineBlock(-1, -1, 0)
        gap = next_.old - i
        if gap == next_.new - j and old[i : next_.old] == new[j : next_.new] and chain:
            chain[-1] = LineBlock(i, j, next_.size + gap)
        else:
            chain.append(LineBlock(i, j, 1))
        number = follows[number]
    return chain[::-1]


def _joined(blocks: Sequence[LineBlock]) -> list[LineBlock]:
    joined: list[LineBlock] = []
    for block in blocks:
        before = joined[-1] if joined else None
        if before and (before.old + before.size, before.new + before.size) == block[:2]:
            joined[-1] = LineBlock(before.old, before.new, before.size + block.size)
        else:
            joined.append(block)
    return joined


def _significant(
    old: Sequence[str], new: Sequence[str], blocks: list[LineBlock]
) -> list[LineBlock]:
    """Leave out what is shared by chance: a blank line or a bracket between lines that were all
    replaced is a new one."""
    ends = [LineBlock(0, 0, 0), *blocks, LineBlock(len(old), len(new), 0)]
    chance = {
        number
        for number, block in enumerate(blocks)
        if block.size <= _CHANCE and _amid_changes(*ends[number : number + 3])
    }
    if not chance:
        return blocks
    often = Counter(old) + Counter(new)
    return [
        block
        for number, block in enumerate(blocks)
        if number not in chance
        or any(often[line] == 2 for line in new[block.new : block.new + block.size])
    ]


def _closed(old: Sequence[str], new: Sequence[str], blocks: list[LineBlock]) -> list[LineBlock]:
    """Let a bracket go with what it closes: one behind lines that are all new, its opening line
    among them, is a new one, though an old one may be like it."""
    found: list[LineBlock] = []
    i = j = 0
    for block in blocks:
        begun, size = j, 0
        while size < block.size and _closes(new, begun, block.new + size):
            if block.old == i and old[i + size] == new[begun]:  # the old one is before them
                found.append(LineBlock(i + size, begun, 1))
                begun += 1
            size += 1
        if size < block.size:
            found.append(LineBlock(block.old + size, block.new + size, block.size - size))
        i, j = block.old + block.size, block.new + block.size
    return _joined(found) if found != blocks else blocks


def _closes(new: Sequence[str], begun: int, at: int) -> bool:
    """True if a line is nothing but brackets that close what was opened from `begun` on."""
    line = new[at]
    if at == begun or not line or not line.strip(_BLANKS) or line.strip(_CLOSING):
        return False
    depth = len(line) - len(line.lstrip())
    for before in range(at - 1, begun - 1, -1):
        text = new[before].lstrip()
        if text and len(new[before]) - len(text) <= depth:
            return _leaves_open(text)
    return False


def _leaves_open(text: str) -> bool:
    """True if a line opens a bracket that it doesn't close itself."""
    depth = 0
    for one in text:
        if one in "([{":
            depth += 1
        elif depth and one in ")]}":
            depth -= 1
    return depth > 0


def _amid_changes(before: LineBlock, block: LineBlock, after: LineBlock) -> bool:
    """True if there are new lines on both sides of a block, and old ones on one."""
    added = before.new + before.size < block.new and block.new + block.size < after.new
    gone = before.old + before.size < block.old or block.old + block.size < after.old
    return added and gone
