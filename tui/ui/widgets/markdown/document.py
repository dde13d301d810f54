"""Draws Markdown as it arrives: a block is drawn for good when the next one begins.

Rows of source are taken in when they are complete, and only the block that may still grow is parsed
again; the result depends on the text alone, never on the pieces in which it came. The row being
written is shown as it would be if it ended here, and held back while a few more characters could
turn it into something quite different.

Three rules keep the cost of a token independent of what came before: fenced code is settled in
pieces (`code.pieces`), a list item by item, and a block longer than CAP is cut at a row's end.
Settled code and short texts are drawn when they become visible: of an answer that arrives all at
once, most is never seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count

from tui.core.dataclass import dataclass
from tui.ui.widgets.markdown import code, flow
from tui.ui.widgets.markdown.lazy import LazyLines
from tui.ui.widgets.markdown.parse import BLOCKS, Intake, References, Unit, as_if_ended, parse
from tui.ui.widgets.markdown.text import BLANK, Line, Styles

CAP = 8_000
"""Characters of a paragraph or a table that are drawn as one; four times as many of other
blocks."""


@dataclass(slots=True)
class _Block:
    """A settled block, kept so that it can be drawn again when a link it names is defined later."""

    start: int
    count: int
    rows: list[str]
    number: int | None
    known: int
    before: int  # code blocks before it


class Document:
    """`feed` text, `draw` when a frame is due, `finish` at the end; `lines` is the picture.

    `lines[:settled]` stays as it is (the same objects) until `finish`.
    """

    def __init__(self, styles: Styles, width: int) -> None:
        self.lines = LazyLines()
        self.settled = 0
        self._styles = styles
        self._width = max(8, width)
        self._intake = Intake()
        self._rows: list[str] = []
        self._new = False
        self._references: References = {}
        self._blocks: list[_Block] = []
        self._fence: code.OpenFence | None = None
        self._carry: list[str] = []  # the head of a table that was cut
        self._list: tuple[str, int | None] | None = None  # the list that continues
        self._before = ""  # the type of the last settled block
        self._cut = ""  # the kind of block that was just cut
        self._blank = False  # the last row taken was blank
        self._codes = 0  # code blocks that are settled

    def feed(self, text: str) -> None:
        """Add text; nothing is drawn yet."""
        self._intake.feed(text)

    def draw(self) -> None:
        """Update `lines`."""
        self.advance()
        self.lines.extend(self._tail())

    def advance(self) -> None:
        """Settle what is complete, without drawing the rest."""
        self._take(final=False)
        self._advance(final=False)

    def finish(self) -> int:
        """Settle the rest, and draw blocks again that name links defined after them. Returns how
        many lines are unchanged."""
        before = self.settled
        self._take(final=True)
        self._new = True
        self._advance(final=True)
        if self._fence is not None:
            self._close_fence()
        return min(before, self._relink())

    def _take(self, *, final: bool) -> None:
        rows = self._intake.take(final=final)
        self._rows += rows
        self._new = self._new or bool(rows)
        self.lines.cut(self.settled)

    # Settling

    def _advance(self, *, final: bool) -> None:
        while self._new or (self._fence is not None and self._rows):
            self._new = False
            if self._fence is not None:
                self._rows = self._feed_fence(self._rows)
                self._new = bool(self._rows)
            elif self._rows:
                self._new = self._advance_flow(final=final)

    def _advance_flow(self, *, final: bool) -> bool:
        """Settle what is complete. True if the rest has to be parsed again."""
        rows = self._carry + self._rows
        references = dict(self._references)
        units = parse(rows, references)
        if not units:
            if final:
                self._consume(rows, len(rows), references)
                self._rows = []
            return False
        ends = [unit.start for unit in units[1:]] + [len(rows)]
        numbers = self._numbers(units)
        # Without more text, the last row may still become something else.
        sure = len(rows) - (0 if final else 1)
        at = 0
        for index, (unit, end) in enumerate(zip(units, ends, strict=True)):
            last = index == len(units) - 1
            # A fence is read row by row; parsing continues after its end.
            if unit.kind == "fence":
                self._consume(rows[at:], unit.start + 1 - at, references)
                self._open_fence(unit, rows)
                inside = rows[unit.start + 1 : end]
                after_fence = [] if last else self._feed_fence(inside)
                if last or self._fence is not None or any(row.strip() for row in after_fence):
                    self._rows = rows[unit.start + 1 :] if last else after_fence + rows[end:]
                    return True
                self._blank = not rows[end - 1].strip()
                at = end
                continue
            # A block that is too long is cut, and the rest parsed as a block of its own.
            size = self._overlong(unit, rows, min(end, sure))
            if size:
                self._settle_cut(unit, rows[at : unit.start + size], numbers[index])
                self._consume(rows[at:], unit.start + size - at, references)
                self._rows = rows[unit.start + size :]
                if unit.kind == "table":
                    self._carry = rows[unit.start : unit.start + 2]
                self._cut, self._list = unit.kind, None
                return True
            # The last block may still grow.
            if last and not final:
                break
            self._settle(unit, rows, at, end, numbers[index])
            self._consume(rows[at:], end - at, references)
            at = end
            # The list continues if the next item belongs to it.
            follower = None if last else units[index + 1]
            goes_on = follower is not None and follower.kind == "item" and not follower.first
            self._list = (unit.mark, numbers[index + 1]) if goes_on else None
        self._rows = rows[at:] if at or not self._carry else self._rows
        return False

    def _numbers(self, units: list[Unit]) -> list[int | None]:
        """Return the number of every item; those of a list that continues continue it."""
        numbers = [unit.number for unit in units]
        opening = units[0]
        if self._list is None or opening.number is None or self._list[1] is None:
            return numbers
        shift = self._list[1] - opening.number
        for index, unit in enumerate(units):
            if unit.number is None or (index and unit.first):
                break
            numbers[index] = unit.number + shift
        return numbers

    def _consume(self, rows: list[str], count: int, references: References) -> None:
        """Note that the first `count` rows are done, and the links they define."""
        self._carry = []
        self._cut = ""
        if count:
            self._blank = not rows[count - 1].strip()
        if len(references) > len(self._references):
            parse(rows[:count], self._references)

    def _gap(self, unit: Unit, rows: list[str]) -> bool:
        """True if a blank line comes before `unit`."""
        if not self._before:
            return False
        start = unit.start
        blank = not rows[start - 1].strip() if start else self._blank
        if unit.kind == "item":
            goes_on = not unit.first or (start == 0 and self._list is not None)
            if goes_on or self._before == "paragraph_open":
                return blank
        return bool(start or self._carry or unit.kind != self._cut)

    def _overlong(self, unit: Unit, rows: list[str], end: int) -> int:
        """Return how many rows of `unit` have to be drawn alone, 0 if it is short enough."""
        cap = CAP if unit.kind in {"flow", "table"} else 4 * CAP
        total = 0
        for index in range(unit.start, end):
            total += len(rows[index]) + 1
            if total > cap:
                least = 3 if unit.kind == "table" else 1
                count = max(index - unit.start, least)
                return count if unit.start + count < end else 0
        return 0

    def _settle(self, unit: Unit, rows: list[str], at: int, end: int, number: int | None) -> None:
        count = flow.height(unit.tokens, pen := self._pen(rows, self._references))
        if count is not None:
            if self._gap(unit, rows):
                self.lines.append(BLANK)
            self.lines.defer(count, partial(flow.unit, unit.tokens, number, pen))
            self.settled = len(self.lines)
            self._before = unit.tokens[0].type
            return
        drawn = self._draw_unit(unit, rows, number, self._references, self._codes)
        start = len(self.lines)
        self.lines.extend(drawn)
        gap = len(drawn) > 0 and drawn[0] is BLANK
        source = rows[at:end]
        if drawn and any("[" in row for row in source):
            known = len(self._references)
            place = (start + gap, len(drawn) - gap)
            self._blocks.append(_Block(*place, source, number, known, self._codes))
        self._codes += _codes_in(unit)
        self.settled = len(self.lines)
        if drawn:
            self._before = unit.tokens[0].type

    def _settle_cut(self, unit: Unit, rows: list[str], number: int | None) -> None:
        """Settle the first rows of a block that is too long, as blocks of their own."""
        parts = parse(rows, {})
        ends = [part.start for part in parts[1:]] + [len(rows)]
        for part, end in zip(parts, ends, strict=True):
            at = part.start
            if part is parts[0]:
                at, part.first = 0, unit.first
                part.number = number if part.kind == "item" else part.number
            self._settle(part, rows, at, end, part.number)

    def _draw_unit(
        self,
        unit: Unit,
        rows: list[str],
        number: int | None,
        references: References,
        before: int,
    ) -> list[Line]:
        if self._carry and unit.start == 0 and all(t.type != "tbody_open" for t in unit.tokens):
            return []  # nothing followed the cut part
        drawn = flow.unit(unit.tokens, number, self._pen(rows, references, before))
        return [BLANK, *drawn] if drawn and self._gap(unit, rows) else drawn

    def _pen(self, rows: list[str], references: References, before: int = 0) -> flow.Pen:
        """Return a pen for what follows `before` code blocks."""
        base, numbers = self._styles["text"], count(before + 1)
        return flow.Pen(rows, self._width, self._styles, references, base, numbers=numbers)

    def _relink(self) -> int:
        """Draw blocks again that were drawn before all links were known. Returns how many lines
        precede the first of them."""
        first = len(self.lines)
        for block in reversed(self._blocks):
            if block.known == len(self._references):
                continue
            pen = self._pen(block.rows, self._references, block.before)
            units = parse(block.rows, {})
            drawn = [row for one in units for row in flow.unit(one.tokens, block.number, pen)]
            self.lines.replace(block.start, block.count, drawn)
            first = block.start
        self._blocks.clear()
        self.settled = len(self.lines)
        return first

    # Fenced code

    def _open_fence(self, unit: Unit, rows: list[str]) -> None:
        opening, row = unit.tokens[0], rows[unit.start]
        if self._gap(unit, rows):
            self.lines.append(BLANK)
        self._codes += 1
        top = code.draw_top(opening.info, self._width, self._styles, self._codes)
        self.lines.extend(top)
        self.settled = len(self.lines)
        self._before = "fence"
        self._list = None
        indent, number = len(row) - len(row.lstrip(" ")), 0 if top else self._codes
        self._fence = code.OpenFence(opening.markup, opening.info, indent, number)

    def _feed_fence(self, rows: list[str]) -> list[str]:
        """Settle code, and return the rows after the fence once it is closed."""
        fence = self._fence
        assert fence is not None
        for index, row in enumerate(rows):
            if fence.closes(row):
                self._close_fence()
                return rows[index + 1 :]
            stripped = fence.strip(row)
            if fence.full(stripped):
                self._settle_piece(fence)
            fence.rows.append(stripped)
            fence.chars += len(stripped) + 1
        return []

    def _settle_piece(self, fence: code.OpenFence) -> None:
        look = (self._width, self._styles, fence.number)
        draw = partial(code.draw_rows, fence.rows, fence.info, *look)
        self.lines.defer(code.height(fence.rows, self._width), draw)
        self.settled = len(self.lines)
        fence.rows, fence.chars, fence.drawn, fence.seen, fence.number = [], 0, [], 0, 0

    def _close_fence(self) -> None:
        fence = self._fence
        assert fence is not None
        if fence.rows:
            self._settle_piece(fence)
        self.settled = len(self.lines)
        self._fence = None
        self._blank = False

    # The end that may still change

    def _tail(self) -> list[Line]:
        partial = self._intake.partial
        if self._fence is not None:
            return self._fence.tail(partial, self._width, self._styles)
        rows = as_if_ended([*self._carry, *self._rows], partial)
        if not any(row.strip() for row in rows):
            return []
        references = dict(self._references)
        units = parse(rows, references)
        if units and units[-1].kind == "flow" and rows[-1].startswith("|"):
            while rows and rows[-1].startswith("|"):  # perhaps the head of a table
                rows.pop()
            units = parse(rows, references)
        drawn: list[Line] = []
        before, codes = self._before, self._codes
        for unit, number in zip(units, self._numbers(units) if units else [], strict=True):
            drawn += self._draw_unit(unit, rows, number, references, codes)
            codes += _codes_in(unit)
            self._before = unit.tokens[0].type
        self._before = before
        return drawn


def _codes_in(unit: Unit) -> int:
    """Count the code blocks of a unit."""
    return sum(token.type in BLOCKS for token in unit.tokens)


def render(text: str, styles: Styles, width: int) -> Sequence[Line]:
    """Return the lines of a whole text, the same as for feeding it in any pieces. Some are drawn
    when they are read."""
    document = Document(styles, width)
    for start in range(0, len(text), 2 * CAP):
        document.feed(text[start : start + 2 * CAP])
        document.advance()
    document.finish()
    return document.lines
