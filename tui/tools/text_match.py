"""Finds a passage in a text, exactly or nearly in a few safe respects, and replaces it.

If a passage does not occur exactly, it is tried with other whitespace at the ends of lines, with
another indentation, with other quotes, dashes and spaces, and without the line numbers of
read_file. The caller is shown what matched; nothing is chosen between two places.

Positions are those in the flat text, which has LF for every CRLF.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Final, TypeAlias

from tui.core.dataclass import dataclass, replace
from tui.tools.diff import LineMatcher
from tui.tools.paging import without_numbers

_BLANKS = " \t"
_COMPARED_LINES = 2000
"""Passages of more lines are replaced as a whole, without keeping equal lines."""
_MOST = 1000
"""Number of places of an ambiguous passage that are counted."""

_Convert: TypeAlias = Callable[[str], str | None]
"""Converts a line to the file's indentation; None if that is not known."""

CELL_MARK: Final = "\0"
"""Begins the line above each cell of a notebook's text: no passage reaches over it."""
TRAILING = "trailing whitespace differs"
INDENTATION = "indentation differs"
CHARACTERS = "quotes, dashes or spaces differ"
NUMBERS = "it had line numbers"

_FOLDED = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u202f\u205f\u3000", " "),
        **{chr(code): " " for code in range(0x2000, 0x200B)},
    }
)
"""One character for one, so that positions stay the same."""


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A place, its replacement, and the respects in which it differs from the passage."""

    start: int
    end: int
    new: str
    differences: tuple[str, ...] = ()


def flatten(text: str) -> str:
    """Return the text with LF for every CRLF."""
    return text.replace("\r\n", "\n")


def find_matches(text: str, old: str, new: str, *, whole_lines: bool = False) -> list[TextMatch]:
    """Return the places of `old` in a flat text, to be replaced by `new`; of near misses, more than
    one is ambiguous.

    Those that match exactly, otherwise those of the first respect in which any match nearly.
    Several of them are for the caller to refuse. With `whole_lines` a match is of lines from end to
    end.
    """
    starts = list(_starts(text, old, whole_lines=whole_lines))
    if starts or not old.strip():
        return [TextMatch(start, start + len(old), new) for start in starts]
    if matches := _near(text, old, new, whole_lines=whole_lines):
        return matches
    bare = without_numbers(old)
    numbered_new = _bare(new)
    if bare is None or numbered_new is None or not bare.strip():
        return []
    matches = find_matches(text, bare, numbered_new, whole_lines=True)
    return [replace(match, differences=(NUMBERS, *match.differences)) for match in matches]


def _starts(text: str, old: str, *, whole_lines: bool) -> Iterator[int]:
    """Yield the positions of `old`, overlapping ones too."""
    count, at = 0, text.find(old)
    while at >= 0 and count < _MOST:
        if not whole_lines or (_begins_line(text, at) and _ends_line(text, at + len(old))):
            count += 1
            yield at
        at = text.find(old, at + 1)


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def _ends_line(text: str, at: int) -> bool:
    return at == len(text) or text[at] == "\n" or _begins_line(text, at)


def _bare(new: str) -> str | None:
    """Return a replacement without line numbers; None if only some of its lines have one."""
    lines = new.split("\n")
    marks = [re.match(r"[0-9]{1,9}\t", line) for line in lines]
    blank = [not line or line.isdecimal() for line in lines]
    if not any(marks):
        return new
    if not all(mark or empty for mark, empty in zip(marks, blank, strict=True)):
        return None
    return "\n".join(
        line[mark.end() :] if mark else "" for line, mark in zip(lines, marks, strict=True)
    )


def _near(text: str, old: str, new: str, *, whole_lines: bool) -> list[TextMatch]:
    """Return the matches of the first respect in which there are any.

    Several are returned as they are. A single one is dropped if the replacement can't be indented
    as the text is.
    """
    steps: list[tuple[tuple[str, ...], str, str]] = [((), text, old)]
    folded, folded_old = text.translate(_FOLDED), old.translate(_FOLDED)
    if (folded, folded_old) != (text, old):
        steps.append(((CHARACTERS,), folded, folded_old))
    # First with the characters as they are, then with look-alikes folded.
    for differences, searched, wanted in steps:
        places: list[tuple[tuple[int, int], _Convert]] = []
        respects = differences
        if differences:
            starts = _starts(searched, wanted, whole_lines=whole_lines)
            places = [((start, start + len(wanted)), str) for start in starts]
        if not places:
            respects = (*differences, TRAILING)
            spans = _but_trailing(searched, wanted, whole_lines=whole_lines)
            places = [(span, str) for span in spans]
        if not places:
            respects = (*differences, INDENTATION)
            places = list(_but_indentation(searched, wanted))
        if len(places) > 1:
            return [TextMatch(*place, new, respects) for place, _ in places]
        if places:
            merged = _merged(text, places[0][0], old, new, places[0][1])
            return [] if merged is None else [TextMatch(*places[0][0], merged, respects)]
    return []


def _but_trailing(text: str, old: str, *, whole_lines: bool) -> Iterator[tuple[int, int]]:
    """Yield the places that differ from `old` in the blanks at the ends of lines."""
    lines = old.split("\n")
    parts = [re.escape(line.rstrip(_BLANKS)) for line in lines]
    inner = rf"[{_BLANKS}]*\n"
    first = r"\n" if not lines[0] else parts[0] + inner
    pattern = first + inner.join(parts[1:]) if lines[1:] else parts[0]
    if parts[-1] and (whole_lines or lines[-1] != lines[-1].rstrip(_BLANKS)):
        pattern += rf"[{_BLANKS}]*(?=\n|\Z)"
    if whole_lines or (lines[0] and not parts[0]):
        pattern = f"^{pattern}"
    compiled = re.compile(pattern, re.MULTILINE)
    count, match = 0, compiled.search(text)
    while match and count < _MOST:
        count += 1
        yield match.span()
        match = compiled.search(text, match.start() + 1)


def _but_indentation(text: str, old: str) -> Iterator[tuple[tuple[int, int], _Convert]]:
    """Yield whole lines that differ from `old` in their indentation, by the same amount for all."""
    wanted = old.split("\n")
    ends = len(wanted) > 1 and not wanted[-1]
    if ends:
        wanted.pop()
    bare = [line.strip(_BLANKS) for line in wanted]
    lines = text.split("\n")
    key = max(bare, key=len)
    offset, count = bare.index(key), len(bare)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    # The longest line is compared first, since it is probably the rarest.
    for number, line in enumerate(lines):
        first = number - offset
        if key not in line or line.strip(_BLANKS) != key or first < 0:
            continue
        passage = lines[first : first + count]
        if [line.strip(_BLANKS) for line in passage] != bare:
            continue
        if ends and first + count >= len(lines):
            continue
        convert = _shift(zip(wanted, passage, strict=True))
        if convert is not None:
            end = starts[first + count] - (not ends)
            yield (starts[first], end), convert


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def _shift(pairs: Iterable[tuple[str, str]]) -> _Convert | None:
    """Return a function that turns the indentation of each first line into that of its second; None
    if there is no rule."""
    indents = {(_indent(one), _indent(other)) for one, other in pairs if one.strip(_BLANKS)}
    for convert in (*_prefix_shifts(indents), *_tab_shifts(indents)):
        if all(convert(one + "x") == other + "x" for one, other in indents):
            return convert
    return None


def _prefix_shifts(indents: Iterable[tuple[str, str]]) -> Iterator[_Convert]:
    """Yield rules that put the same blanks before each line, or take them away."""
    one, other = min(indents, key=lambda pair: len(pair[0]))
    if other.endswith(one):
        yield partial(_deeper, other[: len(other) - len(one)])
    elif one.endswith(other):
        yield partial(_shallower, one[: len(one) - len(other)])


def _deeper(more: str, line: str) -> str:
    return more + line if line.strip(_BLANKS) else line


def _shallower(less: str, line: str) -> str | None:
    if not line.strip(_BLANKS):
        return line
    return line[len(less) :] if line.startswith(less) else None


def _tab_shifts(indents: Iterable[tuple[str, str]]) -> Iterator[_Convert]:
    """Yield rules with a number of spaces for each tab or the reverse, and perhaps some levels more
    or less."""
    pairs = sorted(indents, key=lambda pair: len(pair[0]))
    (first, first_other), (last, last_other) = pairs[0], pairs[-1]
    for one, other in ((" ", "\t"), ("\t", " ")):
        if any(pair[0].strip(one) or pair[1].strip(other) for pair in pairs):
            continue
        if len(pairs) > 1:
            steps = len(last) - len(first), len(last_other) - len(first_other)
        else:
            steps = len(first), len(first_other)
        spaces, tabs = steps if one == " " else steps[::-1]
        if tabs <= 0 or spaces <= 0 or spaces % tabs:
            continue
        unit = spaces // tabs
        scale = (1, unit) if one == " " else (unit, 1)
        base = len(first) * scale[0] // scale[1]
        yield partial(_tab_shift, one, other, scale, len(first_other) - base)


def _tab_shift(one: str, other: str, scale: tuple[int, int], more: int, line: str) -> str | None:
    rest = line.lstrip(_BLANKS)
    if not rest:
        return line
    indent = line[: len(line) - len(rest)]
    wide, odd = divmod(len(indent) * scale[0], scale[1])
    if indent.strip(one) or odd or wide + more < 0:
        return None
    return other * (wide + more) + rest


def _merged(text: str, place: tuple[int, int], old: str, new: str, convert: _Convert) -> str | None:
    """Return the replacement for a near miss; None if a line of it can't be indented.

    Lines that stay the same from `old` to `new` stay as the text has them.
    """
    if not new:
        return new
    start, end = place
    olds, news, passage = old.split("\n"), new.split("\n"), text[start:end].split("\n")
    before, after = list(map(convert, olds)), list(map(convert, news))
    codes = [("replace", 0, len(olds), 0, len(news))]
    if max(len(olds), len(news)) <= _COMPARED_LINES:
        codes = SequenceMatcher(None, olds, news, autojunk=False).get_opcodes()
    merged: list[str] = []
    for tag, i1, i2, j1, j2 in codes:
        if tag == "equal":
            merged += passage[i1:i2]
        elif j1 < j2:
            one = [line for line in before[i1:i2] if line is not None]
            other = [line for line in after[j1:j2] if line is not None]
            if len(one) + len(other) < i2 - i1 + j2 - j1:
                return None
            merged.append(_same_ends("\n".join(one), "\n".join(passage[i1:i2]), "\n".join(other)))
    return "\n".join(merged)


def _same_ends(old: str, passage: str, new: str) -> str:
    """Return `new` with its beginning and end as in the passage, as far as they are those of
    `old`."""
    if len(old) != len(passage) or old == passage:
        return new
    most = min(len(old), len(new))
    head = next((n for n in range(most) if old[n] != new[n]), most)
    most -= head
    tail = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    return passage[:head] + new[head : len(new) - tail] + passage[len(passage) - tail :]


def splice(text: str, matches: Sequence[TextMatch]) -> tuple[str, list[int]]:
    """Replace all matches. Returns the text, and the position of each replacement in the old one.

    The matches are in order and don't overlap. A replacement gets the line endings of its place,
    otherwise the first one of the text; everything outside the places is untouched.
    """
    crlf = [hit.start() - n for n, hit in enumerate(re.finditer("\r\n", text))]
    default = first_ending(text)
    pieces: list[str] = []
    spots: list[int] = []
    done = 0
    for match in matches:
        begin = match.start + bisect_left(crlf, match.start)
        end = match.end + bisect_left(crlf, match.end)
        pieces += (text[done:begin], with_endings(text[begin:end], match.new, default))
        spots.append(begin)
        done = end
    return "".join((*pieces, text[done:])), spots


def first_ending(text: str) -> str:
    """Return the line ending of a text's first line: CRLF or LF."""
    return "\r\n" if 0 <= text.find("\r\n") == text.find("\n") - 1 else "\n"


def with_endings(old: str, new: str, default: str) -> str:
    """Return a flat text with the line endings of the one that it replaces, which may be mixed: a
    line that stays keeps its own, others get that of the line in their place, or before it."""
    crlf = old.count("\r\n")
    if crlf in {0, old.count("\n")} or "\n" not in new:
        return new.replace("\n", "\r\n" if crlf else "\n" if "\n" in old else default)
    lines, news = old.split("\n"), new.split("\n")
    bare = [line.removesuffix("\r") for line in lines[:-1]] + lines[-1:]
    last = len(lines) - 2  # the last part has no ending
    pieces: list[str] = []
    for tag, i1, i2, j1, j2 in LineMatcher(bare, news).get_opcodes():
        for number, line in enumerate(news[j1:j2]):
            place = i1 + number if tag == "equal" else min(i1 + number, i2 - 1)
            place = max(0, min(place, last))
            pieces += (line, "\r\n" if lines[place] != bare[place] else "\n")
    return "".join(pieces[:-1])
