"""The lines that two versions of a text share, in their order. Pure.

Common ends go first; then lines that are there once in both are the anchors (a patience diff), and
what lies between two of them is matched by itself. Where no line is unique, a short part is
compared as a whole, and a long one counts as replaced: time stays about linear.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

_CHANCE: Final = 2
"""So many lines that are alike all over a file are shared by chance, amid changed ones."""
_COMPARED: Final = 250_000
"""Pairs of lines up to which a part without unique lines is compared as a whole."""


class Block(NamedTuple):
    """`size` equal lines: old[old:old + size] and new[new:new + size]."""

    old: int
    new: int
    size: int


class Hunk(NamedTuple):
    """old[old:old_end] was replaced by new[new:new_end]."""

    old: int
    old_end: int
    new: int
    new_end: int


def matching_blocks(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """The runs of lines that both versions have, in order, as long as they can be."""
    found: list[Block] = []
    waiting = [Hunk(0, len(old), 0, len(new))]
    while waiting:
        low, high, start, end = waiting.pop()
        head = low
        while low < high and start < end and old[low] == new[start]:
            low, start = low + 1, start + 1
        if low > head:
            found.append(Block(head, start - (low - head), low - head))
        tail = high
        while low < high and start < end and old[high - 1] == new[end - 1]:
            high, end = high - 1, end - 1
        if tail > high:
            found.append(Block(high, end, tail - high))
        if low == high or start == end:
            continue
        if anchors := _anchors(old, new, Hunk(low, high, start, end)):
            at, place = low, start
            for i, j in anchors:
                waiting.append(Hunk(at, i, place, j))
                found.append(Block(i, j, 1))
                at, place = i + 1, j + 1
            waiting.append(Hunk(at, high, place, end))
        elif (high - low) * (end - start) <= _COMPARED:
            matcher = SequenceMatcher(None, old[low:high], new[start:end], autojunk=False)
            found += [
                Block(low + i, start + j, n) for i, j, n in matcher.get_matching_blocks() if n
            ]
    return _telling(old, new, _joined(sorted(found)))


def hunks(old: Sequence[str], new: Sequence[str], blocks: Sequence[Block]) -> list[Hunk]:
    """The parts between matching blocks: what was replaced, added or removed."""
    found: list[Hunk] = []
    i = j = 0
    for block in (*blocks, Block(len(old), len(new), 0)):
        if i < block.old or j < block.new:
            found.append(Hunk(i, block.old, j, block.new))
        i, j = block.old + block.size, block.new + block.size
    return found


def _anchors(old: Sequence[str], new: Sequence[str], part: Hunk) -> list[tuple[int, int]]:
    """The longest run of lines, rising in both, that each side of a part has once."""
    low, high, start, end = part
    before, after = Counter(old[low:high]), Counter(new[start:end])
    place = {old[i]: i for i in range(low, high) if before[old[i]] == 1}
    pairs = [
        (place[new[j]], j) for j in range(start, end) if after[new[j]] == 1 and new[j] in place
    ]
    # patience sorting: the ends of the best runs by their length, and what each one follows
    ends: list[int] = []
    last: list[int] = []
    follows: list[int] = []
    for number, (i, _) in enumerate(pairs):
        length = bisect_left(ends, i)
        ends[length : length + 1] = [i]
        last[length : length + 1] = [number]
        follows.append(last[length - 1] if length else -1)
    chain: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = follows[number]
    return chain[::-1]


def _joined(blocks: Sequence[Block]) -> list[Block]:
    joined: list[Block] = []
    for block in blocks:
        before = joined[-1] if joined else None
        if before and (before.old + before.size, before.new + before.size) == block[:2]:
            joined[-1] = Block(before.old, before.new, before.size + block.size)
        else:
            joined.append(block)
    return joined


def _telling(old: Sequence[str], new: Sequence[str], blocks: list[Block]) -> list[Block]:
    """Leave out what is shared by chance: a blank line or a bracket between lines that were all
    replaced is a new one."""
    ends = [Block(0, 0, 0), *blocks, Block(len(old), len(new), 0)]
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


def _amid_changes(before: Block, block: Block, after: Block) -> bool:
    """True if there are new lines on both sides of a block, and old ones on one."""
    added = before.new + before.size < block.new and block.new + block.size < after.new
    gone = before.old + before.size < block.old or block.old + block.size < after.old
    return added and gone
