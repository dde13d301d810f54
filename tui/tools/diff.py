"""The unified diff that the person sees, limited in size and in the time it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeAlias

MAX_LINES = 2000
MAX_LINE_CHARS = 1000
CONTEXT = 3

_SEARCHED = 3000
"""Up to this many changed lines on a side are compared with difflib, whose time is quadratic."""

_Op: TypeAlias = tuple[bool, int, int, int, int]
"""Whether the lines are the same, then old[i1:i2] and new[j1:j2]."""


@dataclass(frozen=True, slots=True)
class UnifiedDiff:
    text: str
    added: int
    removed: int

    @property
    def summary(self) -> str:
        return f"+{self.added} −{self.removed}"


def unified(old: str | None, new: str, name: str) -> UnifiedDiff:
    """How `old` becomes `new`; None for a file that did not exist. Lines end at `\\n` only.

    Line endings that all are CRLF on both sides are not shown; otherwise a CR is shown as `␍`.
    """
    if old is not None and _all_crlf(old) and _all_crlf(new):
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    before, after = _lines(old or ""), _lines(new)
    ops = _operations(before, after)
    added = sum(j2 - j1 for same, _, _, j1, j2 in ops if not same)
    removed = sum(i2 - i1 for same, i1, i2, _, _ in ops if not same)
    head = [f"--- {'/dev/null' if old is None else f'a/{name}'}", f"+++ b/{name}"]
    shown = head if added or removed else []
    for line in _hunks(ops, before, after):
        if len(shown) == MAX_LINES:
            shown.append("… the rest of the diff is not shown")
            break
        shown.append(line)
    return UnifiedDiff("\n".join(shown), added, removed)


def _all_crlf(text: str) -> bool:
    return 0 < text.count("\n") == text.count("\r\n")


def _lines(text: str) -> list[str]:
    """Lines without their newline; a last line that has none bears a mark."""
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
    else:
        lines.pop()
    return lines


def _operations(old: Sequence[str], new: Sequence[str]) -> list[_Op]:
    """The stretches that are the same and those that are not, in turn."""
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    shorter -= head
    tail = next((n for n in range(shorter) if old[-1 - n] != new[-1 - n]), shorter)
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    ops: list[_Op] = [(True, 0, head, 0, head)] if head else []
    for same, i1, i2, j1, j2 in _middle(middle_old, middle_new):
        ops.append((same, head + i1, head + i2, head + j1, head + j2))
    if tail:
        ops.append((True, len(old) - tail, len(old), len(new) - tail, len(new)))
    return ops


def _middle(old: Sequence[str], new: Sequence[str]) -> Iterator[_Op]:
    if max(len(old), len(new)) <= _SEARCHED:
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new).get_opcodes():
            yield tag == "equal", i1, i2, j1, j2
    elif len(old) == len(new):  # as many lines as before: compare them one by one
        start = 0
        for n in range(1, len(old) + 1):
            same = old[start] == new[start]
            if n == len(old) or (old[n] == new[n]) != same:
                yield same, start, n, start, n
                start = n
    else:
        yield False, 0, len(old), 0, len(new)


def _hunks(ops: Sequence[_Op], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for hunk in _grouped(ops):
        i1, i2, j1, j2 = hunk[0][1], hunk[-1][2], hunk[0][3], hunk[-1][4]
        yield f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@"
        for same, a1, a2, b1, b2 in hunk:
            if same:
                yield from _shown(" ", old[a1:a2])
            else:
                yield from _shown("-", old[a1:a2])
                yield from _shown("+", new[b1:b2])


def _grouped(ops: Sequence[_Op]) -> Iterator[list[_Op]]:
    """Changes with CONTEXT lines around them; a longer stretch of sameness parts two hunks."""
    hunk: list[_Op] = []
    for index, (same, i1, i2, j1, j2) in enumerate(ops):
        if not same:
            hunk.append((same, i1, i2, j1, j2))
            continue
        first, last = index == 0, index == len(ops) - 1
        if not first and (last or i2 - i1 > 2 * CONTEXT):
            stop = min(CONTEXT, i2 - i1)
            hunk.append((True, i1, i1 + stop, j1, j1 + stop))
            yield hunk
            hunk = []
            if last:
                return
        if first or i2 - i1 > 2 * CONTEXT:
            start = max(i1, i2 - CONTEXT)
            hunk = [(True, start, i2, j2 - (i2 - start), j2)]
        else:
            hunk.append((True, i1, i2, j1, j2))
    if any(not same for same, *_ in hunk):
        yield hunk


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _shown(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        text, *mark = line.split("\n")
        text = text.replace("\r", "␍")
        if len(text) > MAX_LINE_CHARS:
            text = f"{text[:MAX_LINE_CHARS]}… ({len(text):,} characters)"
        yield sign + text
        yield from mark
