"""Draws a unified diff: line numbers, + and −, changed words, quiet marks between hunks.

One drawing for the conversation, the output beside it, the question before an edit, and the view of
all changes. No text is left out: what is no part of a diff is drawn as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import ClassVar

from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui.core.text_cleaning import clean, visible
from tui.tools.diff import count_changes, signs
from tui.ui.widgets.conversation import style
from tui.ui.widgets.line_view import strips
from tui.ui.widgets.line_view.strips import copied
from tui.ui.widgets.markdown.text import Line, Span, Styles, clip, decoration, fold, prefixed, wrap

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_NONE = "/dev/null"
ROWS_MAX = 1_000
"""Rows of a diff that are drawn; the rest is counted."""
WHOLE_ROWS_MAX = 20_000
"""Rows that are drawn of a diff that a person decides about, from both of its ends."""
TWO_COLUMNS = 72
"""Cells from which the old line numbers are shown beside the new ones."""
_COMPARED = 100
"""Pairs of lines whose words are compared, and the most words of each."""
_ALIKE = 0.5
"""Lines less alike than this count as different: no words in them are marked."""


@dataclass(slots=True)
class _Row:
    """A line of a hunk: `sign` is "+", "-" or " ", `spots` are the characters that changed."""

    sign: str
    old: int
    new: int
    text: str
    spots: Sequence[tuple[int, int]] = ()


@dataclass(slots=True)
class _Mark:
    """A line around hunks; `source` is its text in the diff."""

    kind: str
    text: str
    source: str


class Diff:
    """A unified diff in parts, each of which is drawn by itself.

    A part is a line of it, or a mark around hunks; those that draw nothing are left out. Files are
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
            count = f"… {more:,} unchanged lines"
            half = rows_max // 2
            parsed = [*parsed[:half], _Mark("rest", count, ""), *parsed[half + more :]]
        _compare(parsed)
        numbers = (max(row.old, row.new) for row in parsed if isinstance(row, _Row))
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

    def __len__(self) -> int:
        return len(self._parts)

    def lines(self, index: int, width: int, styles: Styles) -> list[Line]:
        """Return one part in `width` cells."""
        part = self._parts[index]
        if isinstance(part, _Row):
            return _draw(part, self._digits, width, styles)
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
    before = ""
    for place, (sign, row) in enumerate(zip(signs(rows), rows, strict=True)):
        if sign:
            yield _Row(sign, old, new, row[1:])
            old, new = old + (sign != "+"), new + (sign != "-")
        elif hunk := _HUNK.match(row):
            old, new = int(hunk[1]), int(hunk[2])
            yield _Mark("hunk", hunk[3], row)
        elif row.startswith("--- ") and any(map(_plus, rows[place + 1 : place + 2])):
            before = row[4:]
        elif _plus(row) and place and rows[place - 1].startswith("--- "):
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


def _compare(rows: Sequence[_Row | _Mark]) -> None:
    """Find what changed within lines that were removed and added again, slightly different."""
    pairs_left = _COMPARED
    before: list[_Row] = []
    for sign, group in groupby(rows, lambda row: row.sign if isinstance(row, _Row) else ""):
        run = [row for row in group if isinstance(row, _Row)]
        if sign == "+":
            for old, new in zip(before, run, strict=False):
                if pairs_left <= 0:
                    return
                pairs_left -= 1
                old.spots, new.spots = _changed(old.text, new.text)
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


def _draw(row: _Row, digits: int, width: int, styles: Styles) -> list[Line]:
    sign = row.sign
    name = {"+": "c-added", "-": "c-removed"}.get(sign, "c-label")
    look = styles[name]
    fill = None if sign == " " else look
    old = f"{row.old:>{digits}} " if sign != "+" else " " * (digits + 1)
    new = f"{row.new:>{digits}} " if sign != "-" else " " * (digits + 1)
    number = old + new if width >= TWO_COLUMNS else old if sign == "-" else new
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
    """As high as its diff is at its width. Hidden characters in the text are spelled out."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = style.components(style.DIFF_RULES)
    DEFAULT_CSS = """
    DiffView { width: 1fr; height: auto; background: $background; }
    """ + style.css("DiffView", style.DIFF_RULES)

    def __init__(self, diff: str) -> None:
        super().__init__()
        self._diff = diff
        self._lines: list[Line] = []
        self._width = 0

    def lines(self, width: int) -> list[Line]:
        """Return the lines drawn in `width` cells."""
        if width != self._width or not self._lines:
            self._width = width
            look = style.styles(self, style.DIFF_RULES)
            self._lines = draw_diff(
                visible(self._diff), width, look, names=True, rows_max=WHOLE_ROWS_MAX, ends=True
            )
        return self._lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self.lines(max(8, width)))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._lines = []

    def render_line(self, y: int) -> Strip:
        width = max(8, self.content_size.width)
        lines = self.lines(width)
        if y >= len(lines):
            return Strip.blank(width, self.rich_style)
        line, selection = lines[y], self.text_selection
        span = selection.get_span(y) if selection is not None else None
        if span is not None:
            line = strips.selected(line, span, self.selection_style)
        return strips.make(line, width, self.rich_style).apply_offsets(0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        start, end = selection
        last = (end.y, end.x) if end else (len(self._lines), 1 << 30)
        return copied(self._lines, (start.y, start.x) if start else (0, 0), last), "\n"
