"""Draws a unified diff: line numbers, + and −, changed words, quiet marks between hunks.

One drawing for the conversation, the output beside it, the question before an edit, and the view of
all changes. Where there is room, old and new are side by side; a file that is only added or only
removed has one column. No text is left out: what is no part of a diff is drawn as it is.

Words are compared, and rows are drawn, when they are seen: a long diff takes no time at once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, groupby, zip_longest
from typing import ClassVar, TypeAlias

from rich.style import Style
from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui.app.dialog_data import ShownLine
from tui.core.dataclass import dataclass
from tui.core.text_cleaning import clean, visible
from tui.tools.diff import count_changes, signs
from tui.ui.widgets.conversation import style
from tui.ui.widgets.line_view import strips
from tui.ui.widgets.line_view.strips import copied
from tui.ui.widgets.markdown.text import (
    BLANK,
    Line,
    Span,
    Styles,
    clip,
    decoration,
    fold,
    line,
    prefixed,
    wrap,
)

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")
_WORD = re.compile(r"\w")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_NONE = "/dev/null"
ROWS_MAX = 1_000
"""Rows of a diff that are drawn; the rest is counted."""
WHOLE_ROWS_MAX = 20_000
"""Rows that are drawn of a diff that a person decides about, from both of its ends."""
SIDE_BY_SIDE = 140
"""Columns of a screen from which old and new are side by side: a few less are left for the diff."""
_TWO_SIDES = SIDE_BY_SIDE - 12
TWO_COLUMNS = 72
"""Cells from which the old line numbers are shown beside the new ones."""
_COMPARED = 100
"""Pairs of lines whose words are compared, and the most words of each."""
_ALIKE = 0.5
"""Lines less alike than this count as different: no words in them are marked."""
_BETWEEN = " │ "
_CHANGED = {"+", "-"}
_AT_ONCE = 20
"""Long rows that are measured before other work gets its turn."""


@dataclass(slots=True)
class _Row:
    """A line of a hunk: `sign` is "+", "-" or " ", `spots` are the characters that changed since
    `mate`, which this is compared with when one of them is drawn. `path` is its file's."""

    sign: str
    old: int
    new: int
    text: str
    path: str = ""
    spots: Sequence[tuple[int, int]] = ()
    mate: _Row | None = None


@dataclass(slots=True)
class _Mark:
    """A line around hunks; `source` is its text in the diff."""

    kind: str
    text: str
    source: str


_Sides: TypeAlias = "tuple[_Row | None, _Row | None]"
"""The old line and the new one, side by side in one row."""


class Diff:
    """A unified diff in parts, each of which is drawn by itself.

    A part is a line of it, or a mark around hunks; those that draw nothing are left out. Side by
    side, the first parts of a change draw its lines in pairs and the others nothing. Files are
    named if there are several, or with `names`. Rows beyond `rows_max` are one part that counts
    them, at the end, or with `ends` in the middle.
    """

    def __init__(
        self, diff: str, *, names: bool = False, rows_max: int = ROWS_MAX, ends: bool = False
    ) -> None:
        rows = clean(diff).removesuffix("\n").split("\n")
        parsed = list(_parse(rows if ends else rows[:rows_max]))
        files = sum(isinstance(row, _Mark) and row.kind == "file" for row in parsed)
        names = names or files > 1
        more = len(parsed) - rows_max if ends else 0
        if more > 0:
            half = rows_max // 2
            omission = _omission(parsed[half : half + more])
            parsed = [*parsed[:half], _Mark("rest", omission, ""), *parsed[half + more :]]
        _find_mates(parsed)
        numbers = [n for row in parsed if type(row) is _Row for n in (row.old, row.new)]
        self._digits = len(str(max(numbers, default=1)))
        self._parts = [
            row
            for before, row in zip([None, *parsed], parsed, strict=False)
            if isinstance(row, _Row)
            or row.kind in {"other", "rest"}
            or (row.kind == "file" and names)
            or (row.kind == "hunk" and isinstance(before, _Row))
        ]
        if not ends and (more := len(rows) - rows_max) > 0:
            self._parts.append(_Mark("rest", f"… +{more:,} lines", ""))
        self._sides: dict[int, _Sides | None] | None = None

    def __len__(self) -> int:
        return len(self._parts)

    def height(self, index: int, width: int) -> tuple[int, bool]:
        """Return how many lines a part has in `width` cells, and False if that is an estimate."""
        part = self._parts[index]
        if not isinstance(part, _Row):
            return 1 + (part.kind == "file" and index > 0), part.kind != "other"
        sides = self._side_by_side(width).get(index, ...)
        if sides is None:
            return 0, True
        digits = self._digits + 3
        room = width - digits - (self._digits + 1 if width >= TWO_COLUMNS else 0)
        rows = [part] if sides is ... else [row for row in sides if row is not None]
        room = max(2, room if sides is ... else _half(width) - digits)
        longest = max(len(row.text) for row in rows)
        exact = longest <= room and all(r.text.isascii() and "\t" not in r.text for r in rows)
        return max(1, -(-longest // room)), exact

    def lines(self, index: int, width: int, styles: Styles) -> list[Line]:
        """Return one part in `width` cells."""
        part = self._parts[index]
        if isinstance(part, _Row):
            sides = self._side_by_side(width).get(index, ...)
            if sides is None:
                return []
            if sides is not ...:
                return _two_columns(sides, self._digits, width, styles)
            return _draw(part, _numbers(part, self._digits, width), width, styles)
        match part.kind:
            case "file":
                name: list[Span] = [(clip(part.text, width), styles["c-tool"])]
                apart = [decoration([])] if index else []
                return [*apart, decoration(name, source=part.source)]
            case "hunk":
                text = clip(f"{'⋯':>{self._digits}} {part.text}", width)
                return [decoration([(text, styles["c-hunk"])], source=part.source)]
            case "rest":
                return [decoration([(part.text, styles["c-fold"])])]
            case _:
                return wrap([(part.text.expandtabs(4), styles["c-hunk"])], width)

    def part_at(self, row: int, width: int, styles: Styles) -> int:
        """Return the part that a row shows of the whole diff, drawn in `width` cells."""
        for index in range(len(self._parts)):
            height, exact = self.height(index, width)
            row -= height if exact else len(self.lines(index, width, styles))
            if row < 0:
                return index
        return max(0, len(self._parts) - 1)

    def asked_line(self, parts: Iterable[int], *, sign: str = "+") -> ShownLine | None:
        """Return the line that a person asks about who sees these parts: the first of that sign
        with a word in it, else the first that has one; None where no line is in sight."""
        rows = [row for part in parts if isinstance(row := self._parts[part], _Row)]
        with_words = [row for row in rows if _WORD.search(row.text)] or rows
        chosen = next((row for row in with_words if row.sign == sign), *with_words[:1] or [None])
        if chosen is None:
            return None
        removed = chosen.sign == "-"
        number = chosen.old if removed else chosen.new
        return ShownLine(chosen.path, number, chosen.text, removed)

    def _side_by_side(self, width: int) -> dict[int, _Sides | None]:
        """Return what is side by side, by parts; None for those of a change that are drawn by the
        others. Nothing if there is no room for it."""
        if width < _TWO_SIDES:
            return {}
        if self._sides is None:
            self._sides = dict(_paired(self._parts))
        return self._sides


def _omission(rows: Sequence[_Row | _Mark]) -> str:
    """Say how many lines are not drawn, and how many of them changed."""
    changed = sum(not isinstance(row, _Row) or row.sign in _CHANGED for row in rows)
    if not changed:
        return f"… {len(rows):,} unchanged lines"
    return f"… {len(rows):,} lines aren't shown here, {changed:,} of them changed"


def draw_diff(
    diff: str,
    width: int,
    styles: Styles,
    *,
    names: bool = False,
    rows_max: int = ROWS_MAX,
    ends: bool = False,
) -> list[Line]:
    """Return the lines of a unified diff; see `Diff`."""
    parts = Diff(diff, names=names, rows_max=rows_max, ends=ends)
    return [line for index in range(len(parts)) for line in parts.lines(index, width, styles)]


def _parse(rows: Sequence[str]) -> Iterator[_Row | _Mark]:
    old = new = 0
    before = path = ""
    for place, (sign, row) in enumerate(zip(signs(rows), rows, strict=True)):
        if sign:
            yield _Row(sign, old, new, row[1:], path)
            old, new = old + (sign != "+"), new + (sign != "-")
        elif hunk := _HUNK.match(row):
            old, new = int(hunk[1]), int(hunk[2])
            yield _Mark("hunk", hunk[3], row)
        elif row.startswith("--- ") and any(map(_plus, rows[place + 1 : place + 2])):
            before = row[4:]
        elif _plus(row) and place and rows[place - 1].startswith("--- "):
            path = _path(before, row[4:])
            yield _Mark("file", _name(before, row[4:]), row)
        elif row:
            yield _Mark("other", row, row)


def _plus(row: str) -> bool:
    return row.startswith("+++ ")


def _name(before: str, after: str) -> str:
    """Return the name of a file; both names if it was moved."""
    before, after = before.split("\t", maxsplit=1)[0], after.split("\t", maxsplit=1)[0]
    if before == _NONE:
        return f"{after.removeprefix('b/')}  new"
    if after == _NONE:
        return f"{before.removeprefix('a/')}  removed"
    if before == after:
        return after
    old, new = before.removeprefix("a/"), after.removeprefix("b/")
    return new if old == new else f"{old} → {new}"


def _path(before: str, after: str) -> str:
    """Return the path of a file, which a removed one had before."""
    before, after = before.split("\t", maxsplit=1)[0], after.split("\t", maxsplit=1)[0]
    if after == _NONE:
        return before.removeprefix("a/")
    return after if before == after else after.removeprefix("b/")


def _paired(parts: Sequence[_Row | _Mark]) -> Iterator[tuple[int, _Sides | None]]:
    """Yield what is side by side, by the places of the parts; nothing of a file that was only added
    or only removed."""
    end = 0
    for of_file, group in groupby(
        parts, lambda part: isinstance(part, _Mark) and part.kind == "file"
    ):
        start, end = end, end + len(list(group))
        signs_here = {part.sign for part in parts[start:end] if isinstance(part, _Row)}
        if not of_file and len(signs_here) > 1:
            yield from _of_file(parts, start, end)


def _of_file(
    parts: Sequence[_Row | _Mark], start: int, end: int
) -> Iterator[tuple[int, _Sides | None]]:
    removed: list[_Row] = []
    added: list[_Row] = []
    first = start
    for at in range(start, end + 1):
        part = parts[at] if at < end else None
        sign = part.sign if isinstance(part, _Row) else ""
        if sign not in _CHANGED or (sign == "-" and added):
            pairs: list[_Sides | None] = list(zip_longest(removed, added))
            pairs += [None] * (len(removed) + len(added) - len(pairs))
            yield from enumerate(pairs, first)
            removed, added, first = [], [], at
        if isinstance(part, _Row):
            if sign == " ":
                yield at, (part, part)
                first = at + 1
            else:
                (removed if sign == "-" else added).append(part)
        else:
            first = at + 1


def _find_mates(rows: Sequence[_Row | _Mark]) -> None:
    """Find lines that were removed and added again, slightly different."""
    pairs_left = _COMPARED
    before: list[_Row] = []
    for sign, group in groupby(rows, lambda row: row.sign if isinstance(row, _Row) else ""):
        run = [row for row in group if isinstance(row, _Row)]
        if sign == "+":
            for old, new in zip(before, run, strict=False):
                if pairs_left <= 0:
                    return
                pairs_left -= 1
                old.mate, new.mate = new, old
        before = run if sign == "-" else []


def _changed(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the characters of two lines that differ, by words; none if little is the same."""
    if max(len(old), len(new)) > 8 * _COMPARED:
        return [], []
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(one), len(other)) > _COMPARED:
        return [], []
    match = SequenceMatcher(None, one, other, autojunk=False)
    if match.ratio() < _ALIKE:
        return [], []
    changed = [code for code in match.get_opcodes() if code[0] != "equal"]
    return (
        [_span(one, low, high) for _, low, high, _, _ in changed if low < high],
        [_span(other, low, high) for _, _, _, low, high in changed if low < high],
    )


def _span(words: Sequence[str], low: int, high: int) -> tuple[int, int]:
    """Return the place of some words, without the spaces around them."""
    while high - low > 1 and words[high - 1].isspace():
        high -= 1
    while high - low > 1 and words[low].isspace():
        low += 1
    start = sum(map(len, words[:low]))
    return start, start + sum(map(len, words[low:high]))


def _compare(row: _Row) -> None:
    """Find what changed within a line."""
    if (mate := row.mate) is not None:
        old, new = (row, mate) if row.sign == "-" else (mate, row)
        old.spots, new.spots = _changed(old.text, new.text)
        old.mate = new.mate = None


def _numbers(row: _Row, digits: int, width: int) -> str:
    """Return the numbers of a line: both if there is room."""
    old = f"{row.old:>{digits}} " if row.sign != "+" else " " * (digits + 1)
    new = f"{row.new:>{digits}} " if row.sign != "-" else " " * (digits + 1)
    return old + new if width >= TWO_COLUMNS else old if row.sign == "-" else new


def _half(width: int) -> int:
    """Return the cells of each side: there are three between them."""
    return (width - len(_BETWEEN)) // 2


def _two_columns(sides: _Sides, digits: int, width: int, styles: Styles) -> list[Line]:
    """Return the old line and the new one side by side. Copied, they are rows of a diff again."""
    half, plain = _half(width), styles["c-label"]
    drawn: list[list[Line]] = []
    for side, row in enumerate(sides):
        number = f"{(row.new if side else row.old):>{digits}} " if row is not None else ""
        drawn.append(_draw(row, number, half, styles) if row is not None else [])
    rows = dict.fromkeys(f"{row.sign}{row.text}" for row in sides if row is not None)
    source, lines = "\n".join(rows), list[Line]()
    for left, right in zip_longest(*drawn, fillvalue=BLANK):
        space: Span = (" " * (half - left.cells), left.fill or plain)
        between: Span = (_BETWEEN, styles["c-rail"])
        whole = line(
            [*_spans(left), space, between, *_spans(right)], source=source, fill=right.fill
        )
        lines.append(whole if not lines else whole._replace(source="", join=""))
    return lines


def _spans(drawn: Line) -> list[Span]:
    return [(text, look or Style.null()) for text, look, _ in drawn.segments]


def _draw(row: _Row, number: str, width: int, styles: Styles) -> list[Line]:
    """Return a line after its number."""
    _compare(row)
    sign = row.sign
    name = {"+": "c-added", "-": "c-removed"}.get(sign, "c-label")
    look = styles[name]
    fill = None if sign == " " else look
    spans: list[Span] = []
    at = 0
    for start, end in row.spots:
        spans += [(row.text[at:start], look), (row.text[start:end], styles[f"{name}-word"])]
        at = end
    spans.append((row.text[at:], look))
    parts = fold(_untabbed(spans), width - len(number) - 2, look)
    drawn: list[Line] = []
    for index, part in enumerate(parts):
        head = number if not index else " " * len(number)
        mark = f"{'−' if sign == '-' else sign} " if not index else "  "
        line = prefixed(part, [(head, styles["c-hunk"]), (mark, look)], sign)
        drawn.append(line._replace(fill=fill))
    if len(drawn) == 1:
        drawn[0] = drawn[0]._replace(source=sign + row.text)
    return drawn


def _untabbed(spans: Sequence[Span]) -> list[Span]:
    """Return the spans with tabs expanded as they are in the whole line."""
    column, widened = 0, list[Span]()
    for text, own in spans:
        part = (" " * column + text).expandtabs(4)[column:] if "\t" in text else text
        column += len(part)
        widened.append((part, own))
    return widened


def counts(diff: str) -> str:
    """Return added and removed lines: +3 −1."""
    added, removed = count_changes(diff)
    return f"+{added} −{removed}"


class DiffView(Widget):
    """As high as its diff is at its width. Hidden characters in the text are spelled out.

    A single file is named with `names`.
    """

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = style.components(style.DIFF_RULES)
    DEFAULT_CSS = """
    DiffView { width: 1fr; height: auto; background: $background; }
    """ + style.css("DiffView", style.DIFF_RULES)

    def __init__(self, diff: str, *, names: bool = True) -> None:
        super().__init__()
        self._diff = Diff(visible(diff), names=names, rows_max=WHOLE_ROWS_MAX, ends=True)
        self._width = 0
        self._heights: list[int] = []
        self._tops: list[int] = []
        self._estimated: list[int] = []
        self._drawn: dict[int, list[Line]] = {}

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        self._lay(max(8, width))
        return self._tops[-1]

    def _lay(self, width: int) -> None:
        """Find the height of each part; those that take time to measure are estimated first."""
        if width == self._width:
            return
        self._width, self._drawn = width, {}
        found = [self._diff.height(index, width) for index in range(len(self._diff))]
        self._heights = [height for height, _ in found]
        self._estimated = [index for index, (_, exact) in enumerate(found) if not exact]
        self._measure()

    def _measure(self) -> None:
        """Measure some of what was estimated, and the others when there is time."""
        now, self._estimated = self._estimated[:_AT_ONCE], self._estimated[_AT_ONCE:]
        for index in now:
            self._heights[index] = len(self._part(index))
        self._tops = [0, *accumulate(self._heights)]
        if self._estimated:
            self.call_later(self._measure_more, self._width)

    def _measure_more(self, width: int) -> None:
        if width == self._width:
            self._measure()
            if not self._estimated:
                self.refresh(layout=True)

    def _part(self, index: int) -> list[Line]:
        """Return the lines of a part."""
        if index not in self._drawn:
            look = style.styles(self, style.DIFF_RULES)
            self._drawn[index] = self._diff.lines(index, self._width, look)
        return self._drawn[index]

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._drawn = {}

    def asked_line(self, top: int, rows: int, *, sign: str = "+") -> ShownLine | None:
        """Return the line that a person asks about who sees so many rows from `top`; see `Diff`."""
        if len(self._tops) < 2:
            return None
        first, last = (bisect_right(self._tops, y) - 1 for y in (top, top + max(1, rows) - 1))
        return self._diff.asked_line(range(first, min(last + 1, len(self._diff))), sign=sign)

    def render_line(self, y: int) -> Strip:
        width = max(8, self.content_size.width)
        self._lay(width)
        index = bisect_right(self._tops, y) - 1
        lines = self._part(index) if 0 <= index < len(self._diff) else []
        row = y - self._tops[index]
        if row >= len(lines):
            return Strip.blank(width, self.rich_style)
        drawn, selection = lines[row], self.text_selection
        span = selection.get_span(y) if selection is not None else None
        if span is not None:
            drawn = strips.selected(drawn, span, self.selection_style)
        return strips.make(drawn, width, self.rich_style).apply_offsets(0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        start, end = selection
        lines = [line for index in range(len(self._diff)) for line in self._part(index)]
        last = (end.y, end.x) if end else (len(lines), 1 << 30)
        return copied(lines, (start.y, start.x) if start else (0, 0), last), "\n"
