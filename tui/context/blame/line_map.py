"""The lines of one version of a text that those of the next come from. Pure.

Lines that both share are kept; blocks that were taken away in one place and put in another have
moved; what a formatter may have made of others was rewritten.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from tui.context.blame.line_match import LineHunk, hunks, matching_blocks
from tui.context.blame.reformatting import made_of, same_substance, substance

_MOVED_LINES: Final = 2
MOVED_CHARS: Final = 40
"""Letters and digits of a block that is told to have moved, as in git's own blame."""
_PLACES: Final = 50
"""Places of a line from which a block may have moved."""

_WRAPPED_PAIRS: Final = 40_000
"""Pairs of lines of a part among which broken ones are looked for."""
_SUBSTANCE_CHARS: Final = 6
"""Characters of a line, without what belongs to its form, that tell it from others."""

_ALIKE: Final = 0.5
"""The share of its text that a file with another name has in common with what it was."""

Reformatted: TypeAlias = Literal["nothing", "lines", "all"]
"""What is compared without regard to its form: the whole if nothing but its form has changed, else
every part that was replaced, and the lines in it; the whole."""


class LineRun(NamedTuple):
    """new[new:new + size] comes from old[old:old + size]; `rewritten` in another form."""

    new: int
    old: int
    size: int
    rewritten: bool = False


class LineMap(NamedTuple):
    """The runs of a version of `length` lines, in no order; lines in none of them are new."""

    length: int
    runs: list[LineRun]


def line_map(old: Sequence[str], new: Sequence[str], reformatted: Reformatted) -> LineMap:
    """Find where each line of the new version comes from."""
    if reformatted == "all":
        return LineMap(len(new), _reformatted(old, new))
    blocks = matching_blocks(old, new)
    parts = hunks(old, new, blocks)
    if reformatted == "lines" and parts:
        first, last = parts[0], parts[-1]
        if same_substance(old[first.old : last.old_end], new[first.new : last.new_end]):
            return LineMap(len(new), _reformatted(old, new))
    runs = [LineRun(block.new, block.old, block.size) for block in blocks]
    rewritten: list[LineRun] = []
    if reformatted != "nothing":
        for part in parts:
            if _is_rewritten(old, new, part):
                rewritten += _rewritten(old, new, part)
            else:
                rewritten += _rewritten_lines(old, new, part)
    gone = {i for part in parts for i in range(part.old, part.old_end)}
    taken = {n for run in rewritten for n in _range(run)}
    added = [j for part in parts for j in range(part.new, part.new_end) if j not in taken]
    moved = _moved(old, new, gone, added)
    if reformatted != "nothing":
        taken = {n for run in moved for n in _range(run)}
        gone -= {n for run in moved for n in range(run.old, run.old + run.size)}
        gone -= {run.old for run in rewritten}
        moved += _moved_in_another_form(old, new, gone, [j for j in added if j not in taken])
    return LineMap(len(new), [*runs, *rewritten, *moved])


def composed(first: LineMap, second: LineMap) -> LineMap:
    """Find where each line comes from that went through two steps, each with its map."""
    sources = {
        run.new + k: (run.old + k, run.rewritten) for run in first.runs for k in range(run.size)
    }
    runs = [
        LineRun(run.new + k, old, 1, run.rewritten or rewritten)
        for run in second.runs
        for k in range(run.size)
        if (at := run.old + k) in sources
        for old, rewritten in [sources[at]]
    ]
    return LineMap(second.length, runs)


def letters(lines: Iterable[str]) -> int:
    """The number of letters and digits."""
    return sum(map(str.isalnum, "".join(lines)))


def most_alike(new: Sequence[str], others: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Find what a text was made of, by the names of the others: the one that has the most in common
    with it, in whatever form; "" where none has half of it."""
    best, share = "", _ALIKE
    words = _words(new)
    for name, old in others:
        before = _words(old)
        if 2 * (words & before).total() <= max(words.total(), before.total()):
            continue  # whoever formats it leaves the words
        found = _in_common(old, new)
        if found > share:
            best, share = name, found
    return best


def _words(lines: Sequence[str]) -> Counter[str]:
    return Counter(re.findall(r"\w+", "\n".join(lines)))


def _in_common(old: Sequence[str], new: Sequence[str]) -> float:
    """The smaller share of two texts that is in the other, too."""
    runs = line_map(old, new, "lines").runs
    kept = [new[n] for run in runs for n in _range(run)]
    used = {run.old + k for run in runs for k in range(run.size)}
    return min(
        letters(kept) / max(1, letters(new)),
        letters(old[i] for i in used) / max(1, letters(old)),
    )


def _sides(
    old: Sequence[str], new: Sequence[str], part: LineHunk
) -> tuple[Sequence[str], Sequence[str]]:
    return old[part.old : part.old_end], new[part.new : part.new_end]


def _range(run: LineRun) -> range:
    return range(run.new, run.new + run.size)


def _reformatted(old: Sequence[str], new: Sequence[str]) -> list[LineRun]:
    """The lines that a formatter has left, or written in another way."""
    before, after = list(map(substance, old)), list(map(substance, new))
    blocks = matching_blocks(before, after)
    runs: list[LineRun] = []
    for i, j, size in blocks:
        at = 0
        while at < size:
            end, same = at, old[i + at] == new[j + at]
            while end < size and (old[i + end] == new[j + end]) == same:
                end += 1
            runs.append(LineRun(j + at, i + at, end - at, not same))
            at = end
    for part in hunks(before, after, blocks):
        runs += _rewritten(old, new, part)
    return runs


def _rewritten(old: Sequence[str], new: Sequence[str], part: LineHunk) -> list[LineRun]:
    return [
        LineRun(part.new + n, part.old + source, 1, rewritten=True)
        for n, source in enumerate(made_of(*_sides(old, new, part)))
        if source is not None
    ]


def _is_rewritten(old: Sequence[str], new: Sequence[str], part: LineHunk) -> bool:
    return part.old < part.old_end and same_substance(*_sides(old, new, part))


def _rewritten_lines(old: Sequence[str], new: Sequence[str], part: LineHunk) -> list[LineRun]:
    """The lines of a part that have another form, beside others that are new: who formats a file
    may have edited it as well."""
    before, after = (list(map(substance, side)) for side in _sides(old, new, part))
    blocks = matching_blocks(before, after)
    runs = [
        LineRun(part.new + j + n, part.old + i + n, 1, rewritten=True)
        for i, j, size in blocks
        for n in range(size)
        if len(after[j + n]) >= _SUBSTANCE_CHARS
    ]
    for old_at, old_end, new_at, new_end in hunks(before, after, blocks):
        inner = LineHunk(
            part.old + old_at, part.old + old_end, part.new + new_at, part.new + new_end
        )
        if _is_rewritten(old, new, inner):
            runs += _rewritten(old, new, inner)
            continue
        before, after = _sides(old, new, inner)
        broken = [(j, i) for i, lines in _broken(before, after) for j in lines]
        joined = [(j, lines[0]) for j, lines in _broken(after, before)]
        runs += [
            LineRun(inner.new + j, inner.old + i, 1, rewritten=True)
            for j, i in sorted({**dict(joined), **dict(broken)}.items())
        ]
    return runs


def _broken(wholes: Sequence[str], pieces: Sequence[str]) -> Iterator[tuple[int, range]]:
    """The lines that a formatter has broken into several, each with these, beside others that have
    no such counterpart."""
    if len(wholes) * len(pieces) > _WRAPPED_PAIRS:
        return
    after = list(map(substance, pieces))
    begin = 0
    for i, whole in enumerate(map(substance, wholes)):
        if len(whole) < _SUBSTANCE_CHARS:
            continue
        for j in range(begin, len(after)):
            end, joined = j, ""
            while joined != whole and end < len(after) and whole.startswith(joined + after[end]):
                joined, end = joined + after[end], end + 1
            if after[j] and joined == whole:
                while end < len(after) and not after[end] and pieces[end].strip():
                    end += 1  # a bracket of its own
                yield i, range(j, end)
                begin = end
                break


def _moved(
    old: Sequence[str], new: Sequence[str], gone: Collection[int], added: Sequence[int]
) -> list[LineRun]:
    """Find blocks that were taken away in one place and put in another."""
    gone = set(gone)
    places: dict[str, list[int]] = {}
    for i in sorted(gone):
        if any(map(str.isalnum, old[i])):
            places.setdefault(old[i], []).append(i)
    found: list[LineRun] = []
    open_, end = set(added), 0
    for j in added:
        if j < end:
            continue
        best = LineRun(j, -1, 0)
        for i in places.get(new[j], ())[:_PLACES]:
            size = 0
            while i + size in gone and j + size in open_ and old[i + size] == new[j + size]:
                size += 1
            if size > best.size:
                best = LineRun(j, i, size)
        end = j + best.size
        if best.size >= _MOVED_LINES and letters(new[j:end]) >= MOVED_CHARS:
            found.append(best)
            gone.difference_update(range(best.old, best.old + best.size))
    return found


def _moved_in_another_form(
    old: Sequence[str], new: Sequence[str], gone: Collection[int], added: Sequence[int]
) -> list[LineRun]:
    """Find blocks that were put in another place and formatted there."""
    stream, owners, begins = "", list[int](), dict[str, list[int]]()
    last = -2
    for i in sorted(gone):
        text = substance(old[i]) if i == last + 1 else "\n" + substance(old[i])
        if any(map(str.isalnum, text)):
            at = len(stream) + text.startswith("\n")
            begins.setdefault(text.strip()[:_SUBSTANCE_CHARS], []).append(at)
        stream, last = stream + text, i
        owners += [i] * len(text)
    found: list[LineRun] = []
    open_, end = set(added), 0
    after = {j: substance(new[j]) for j in added}
    for j in added:
        if j < end or len(after[j]) < _SUBSTANCE_CHARS:
            continue
        best: list[LineRun] = []
        for begin in begins.get(after[j][:_SUBSTANCE_CHARS], ())[:_PLACES]:
            at, n, runs, whole = begin, j, list[LineRun](), 0
            while n in open_ and stream.startswith(after[n], at):
                runs.append(LineRun(n, owners[max(begin, at - (not after[n]))], 1, rewritten=True))
                at, n = at + len(after[n]), n + 1
                if at == len(stream) or owners[at] != owners[at - 1]:
                    whole = len(runs)  # it ends where a line ended
            best = max(best, runs[:whole], key=len)
        if letters(new[run.new] for run in best) >= MOVED_CHARS:
            found += best
            end = best[-1].new + 1
    return found
