"""The unified diff that the person sees, limited in size and in the time it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Literal, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern

MAX_LINES = 2000
MAX_LINE_CHARS = 1000
CONTEXT = 3

_SEARCHED = 3000
"""Maximum changed lines on a side that are compared with difflib, whose time is quadratic."""

_Op: TypeAlias = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]
"""An operation of difflib: it turns old[i1:i2] into new[j1:j2]."""


@dataclass(frozen=True, slots=True)
class UnifiedDiff:
    text: str
    added: int
    removed: int

    @property
    def summary(self) -> str:
        return f"+{self.added} −{self.removed}"


def unified(
    old: str | None, new: str | None, name: str, *, whole: bool = False, moved_from: str = ""
) -> UnifiedDiff:
    """Return the diff from `old` to `new`; None for a file that doesn't exist. Lines end at `\\n`
    only.

    If all line endings are CRLF on both sides, they are not shown; otherwise a CR is shown as `␍`.
    With `whole` nothing is cut: a person decides about it.
    """
    head = [
        f"--- {'/dev/null' if old is None else f'a/{moved_from or name}'}",
        f"+++ {'/dev/null' if new is None else f'b/{name}'}",
    ]
    always = moved_from != "" or new is None
    hidden = old is not None and all(_all_crlf(text) for text in (old, new) if text is not None)
    old, new = old or "", new or ""
    if hidden:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    before, after = _lines(old), _lines(new)
    matcher = LineMatcher(before, after)
    changes = [op for op in matcher.get_opcodes() if op[0] != "equal"]
    added = sum(j2 - j1 for _, _, _, j1, j2 in changes)
    removed = sum(i2 - i1 for _, i1, i2, _, _ in changes)
    shown = head if changes or always else []
    lines = _hunks(matcher, len(new) + len(old) if whole else MAX_LINE_CHARS)
    shown += lines if whole else islice(lines, MAX_LINES - len(shown))
    # The limit was reached before the last hunk.
    if next(lines, None) is not None:
        shown.append("… the rest of the diff isn't shown")
    return UnifiedDiff("\n".join(shown), added, removed)


def _all_crlf(text: str) -> bool:
    return 0 < text.count("\n") == text.count("\r\n")


def _lines(text: str) -> list[str]:
    """Return the lines without their newline; a last line that has none is marked."""
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
    else:
        lines.pop()
    return lines


class LineMatcher(SequenceMatcher[str]):
    """Compares lines as difflib does, but only those between the first change and the last, and in
    little time if there are many."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__()
        self.old = old
        self.new = new

    def get_opcodes(self) -> list[_Op]:
        # Equal lines at both ends need no search.
        old, new = self.old, self.new
        shorter = min(len(old), len(new))
        head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
        shorter -= head
        tail = next((n for n in range(shorter) if old[-1 - n] != new[-1 - n]), shorter)
        end_old, end_new = len(old) - tail, len(new) - tail
        ops: list[_Op] = [("equal", 0, head, 0, head)] if head else []
        for tag, i1, i2, j1, j2 in _middle(old[head:end_old], new[head:end_new]):
            ops.append((tag, head + i1, head + i2, head + j1, head + j2))
        if tail:
            ops.append(("equal", end_old, len(old), end_new, len(new)))
        return ops


def _middle(old: Sequence[str], new: Sequence[str]) -> Iterator[_Op]:
    if max(len(old), len(new)) <= _SEARCHED:
        yield from SequenceMatcher(None, old, new).get_opcodes()
    elif len(old) == len(new):  # as many lines as before: compare them one by one
        start = 0
        for n in range(1, len(old) + 1):
            same = old[start] == new[start]
            if n == len(old) or (old[n] == new[n]) != same:
                yield "equal" if same else "replace", start, n, start, n
                start = n
    else:
        yield "replace", 0, len(old), 0, len(new)


def _hunks(matcher: LineMatcher, chars: int) -> Iterator[str]:
    """Yield the lines of the hunks, each cut to that many characters."""
    for hunk in matcher.get_grouped_opcodes(CONTEXT):
        i1, i2, j1, j2 = hunk[0][1], hunk[-1][2], hunk[0][3], hunk[-1][4]
        yield f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@"
        for tag, a1, a2, b1, b2 in hunk:
            if tag == "equal":
                yield from _shown(" ", matcher.old[a1:a2], chars)
            else:
                yield from _shown("-", matcher.old[a1:a2], chars)
                yield from _shown("+", matcher.new[b1:b2], chars)


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _shown(sign: str, lines: Sequence[str], chars: int) -> Iterator[str]:
    for line in lines:
        text, *mark = line.split("\n")
        text = text.replace("\r", "␍")
        if len(text) > chars:
            text = f"{text[:chars]}… ({len(text):,} characters)"
        yield sign + text
        yield from mark


_HUNK = late_pattern(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def signs(rows: Sequence[str]) -> Iterator[str]:
    """Yield for each row of a unified diff "+", "-" or " " if it is a line of a file, otherwise "".

    The head of a hunk tells how many lines follow: the removed line `-- x` is no head of a file.
    """
    old = new = 0
    for row in rows:
        sign = row[:1] or " "
        if row.startswith("@@") and (head := _HUNK.match(row)):
            old, new = int(head[1] or 1), int(head[3] or 1)
        elif (old > 0 or new > 0) and sign in "+- ":
            old, new = old - (sign != "+"), new - (sign != "-")
            yield sign
            continue
        yield ""


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """The lines of one hunk, before and after. `line` is the number of the first; `created` is True
    if the file is new."""

    name: str
    line: int
    created: bool
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])


def hunks(diff: str) -> list[DiffHunk]:
    """Return the hunks of a unified diff, as `unified` makes it."""
    parsed: list[DiffHunk] = []
    before = after = ""
    rows = diff.split("\n")
    for row, sign in zip(rows, signs(rows), strict=True):
        if sign and parsed:
            if sign != "+":
                parsed[-1].old.append(row[1:])
            if sign != "-":
                parsed[-1].new.append(row[1:])
        elif row.startswith("--- "):
            before = row[4:]
        elif row.startswith("+++ "):
            after = row[4:]
        elif head := _HUNK.match(row):
            name = before if after == "/dev/null" else after
            parsed.append(DiffHunk(name[2:], max(1, int(head[2])), before == "/dev/null"))
    return parsed


def count_changes(diff: str) -> tuple[int, int]:
    """Return the number of lines that a unified diff adds, and that it removes."""
    marks = list(signs(diff.split("\n")))
    return marks.count("+"), marks.count("-")
