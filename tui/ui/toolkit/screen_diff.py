"""Sends only the parts of a frame that the terminal doesn't show yet: on a slow line each byte
counts.

Textual sends every row that a widget marks as dirty, completely. Most of it is there already: an
answer that grows by a word has its widget drawn again from top to bottom, and one that grows by a
line has each of its rows drawn again one row higher. The terminal moves those itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import ne
from typing import Final, NamedTuple, TypeAlias

from rich.cells import get_character_cell_size
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

from tui.core.text_cleaning import controls_removed

_SYSTEMS: Mapping[str | None, ColorSystem] = {
    None: ColorSystem.TRUECOLOR,
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
    "windows": ColorSystem.WINDOWS,
}
"""Color systems by a console's names for them; without colors the styles have none."""


_WORTH_MOVING: Final = 6
"""Rows that a move has to bring to their places to be worthwhile."""

Placed: TypeAlias = tuple[int, int, Strip]
"""Column, row, and the strip there."""


class PaintedScreen:
    """Remembers what was sent to the terminal, by row and column."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, Strip]] = {}

    def forget(self) -> None:
        """Send the next frame completely: the terminal may show anything now."""
        self._rows.clear()

    def difference(self, update: CompositorUpdate) -> CompositorUpdate:
        """Return an update that sends only the changes. It counts as sent once it is rendered."""
        if isinstance(update, LayoutUpdate | ChopsUpdate):
            return _Difference(self, update)
        self.forget()
        return update

    def move(self, placed: Sequence[Placed], console: Console) -> str:
        """Return the bytes that scroll rows to their places in `placed`, "" if that would not pay.
        What must not move with them is painted again."""
        if len(placed) < _WORTH_MOVING:
            return ""
        changed = [one for one in placed if not self._shows(*one, console)]
        if len(changed) < _WORTH_MOVING:
            return ""
        by, rows = self._offset(changed, console)
        if len(rows) < max(_WORTH_MOVING, len(changed) // 2):
            return ""
        top, bottom = min(rows) + min(by, 0), max(rows) + max(by, 0)
        before = {y: self._rows.get(y, {}) for y in range(top, bottom + 1)}
        widths = {sum(strip.cell_length for strip in row.values()) for row in before.values()}
        if widths != {console.width}:  # these rows hold more than is remembered
            return ""
        # From here on, remember the rows as the terminal will have them after the move.
        for y in before:
            self._rows[y] = dict(before.get(y + by, {}))
        replaced = {(x, y, strip.cell_length) for x, y, strip in placed}
        stay = "".join(
            self.paint(x, y, strip, console)
            for y, row in before.items()
            for x, strip in row.items()
            if (x, y, strip.cell_length) not in replaced
        )
        return f"\x1b[{top + 1};{bottom + 1}r\x1b[{abs(by)}{'S' if by > 0 else 'T'}\x1b[r{stay}"

    def _shows(self, x: int, y: int, strip: Strip, console: Console) -> bool:
        before = self._rows.get(y, {}).get(x)
        return before is strip or (
            before is not None and before.render(console) == strip.render(console)
        )

    def _offset(self, changed: Sequence[Placed], console: Console) -> tuple[int, set[int]]:
        """Find the move that fits most of the changed strips: how many rows below their new place
        they are, and the rows that it brings to their places."""
        rows_of: dict[tuple[int, str], list[int]] = {}
        for y, row in self._rows.items():
            for x, strip in row.items():
                rows_of.setdefault((x, strip.render(console)), []).append(y)
        rows: dict[int, set[int]] = {}
        for x, y, strip in changed:
            if strip.text.strip():
                for old in rows_of.get((x, strip.render(console)), ()):
                    rows.setdefault(old - y, set()).add(y)
        rows.pop(0, None)
        return max(rows.items(), key=lambda one: len(one[1]), default=(0, set[int]()))

    def paint(self, x: int, y: int, strip: Strip, console: Console) -> str:
        """Return the bytes that bring a strip to a place, "" if it is there already."""
        row = self._rows.setdefault(y, {})
        before, width = row.get(x), strip.cell_length
        if before is strip or not width:
            return ""
        if before and before.cell_length > width and _single(before.text):
            row[x + width], before = before.crop(width), before.crop(0, width)
        if before is None or before.cell_length != width:
            covered = [at for at, old in row.items() if at < x + width and x < at + old.cell_length]
            for at in covered:
                del row[at]
            row[x] = strip
            return _move(x, y) + strip.render(console)
        row[x] = strip
        if before.render(console) == strip.render(console):
            return ""
        if not (_single(before.text) and _single(strip.text)):  # terminals differ in such widths
            return _move(x, y) + strip.render(console)
        system = _SYSTEMS[console.color_system]
        start, changed = _changed(_pieces(before, system), _pieces(strip, system))
        return _move(x + start, y) + "".join(changed)


class _Difference(CompositorUpdate):
    def __init__(self, painted: PaintedScreen, update: LayoutUpdate | ChopsUpdate) -> None:
        self._painted, self._update = painted, update

    def render_segments(self, console: Console) -> str:
        paint, placed = self._painted.paint, list(_placed(self._update))
        moved = self._painted.move(placed, console)
        return moved + "".join([paint(x, y, strip, console) for x, y, strip in placed])


class _Piece(NamedTuple):
    """Text of one style; `begin` and `end` are the codes that switch the style on and off."""

    begin: str
    text: str
    end: str

    def __str__(self) -> str:
        return f"{self.begin}{self.text}{self.end}"


def _placed(update: LayoutUpdate | ChopsUpdate) -> Iterator[Placed]:
    """Yield the strips of an update with their columns and rows."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in strips:
                yield x, y, _drawable(strip)
                x += strip.cell_length
        return
    for y, first, last in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x < last and end > first:
                yield x, y, _drawable(strip if end <= last else strip.crop(0, last - x))


def _drawable(strip: Strip) -> Strip:
    """Return a strip without characters that control the terminal, since everything drawn leaves
    here. They have no width, so the rest stays where it is."""
    if strip.text.isprintable():
        return strip
    parts = [Segment(controls_removed(text), style, control) for text, style, control in strip]
    return Strip(parts, strip.cell_length) if any(map(ne, parts, strip)) else strip


def _move(x: int, y: int) -> str:
    return f"\x1b[{y + 1};{x + 1}H"


@lru_cache(512)
def _single(text: str) -> bool:
    """True if each character takes one cell."""
    return text.isascii() or all(get_character_cell_size(char) == 1 for char in text)


def _pieces(strip: Strip, system: ColorSystem) -> list[_Piece]:
    """Split a strip into pieces of one style; neighbors with the same style are joined."""
    pieces: list[_Piece] = []
    for text, style, _ in strip:
        begin, end = _codes(style, system) if style else ("", "")
        if pieces and pieces[-1].begin == begin:
            text = pieces.pop().text + text  # noqa: PLW2901
        pieces.append(_Piece(begin, text, end))
    return pieces


@lru_cache(4096)
def _codes(style: Style, system: ColorSystem) -> tuple[str, str]:
    begin, _, end = Strip.render_style(style, "\0", color_system=system).partition("\0")
    return begin, end


def _changed(old: list[_Piece], new: list[_Piece]) -> tuple[int, list[str]]:
    """Return the cell at which two rows of the same width begin to differ, and the text of the new
    row from there to where they are the same again."""
    start = 0
    while old and new and old[0] == new[0]:
        start += len(new[0].text)
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    if old and new and old[0].begin == new[0].begin:
        same = _common(old[0].text, new[0].text)
        start += same
        old, new = [_from(old[0], same), *old[1:]], [_from(new[0], same), *new[1:]]
    if old and new and old[-1].begin == new[-1].begin:
        same = _common(old[-1].text[::-1], new[-1].text[::-1])
        new = [*new[:-1], new[-1]._replace(text=new[-1].text[: len(new[-1].text) - same])]
    return start, [str(piece) for piece in new if piece.text]


def _common(one: str, other: str) -> int:
    """Return how many characters two texts have in common at the start."""
    same, most = 0, min(len(one), len(other))
    while same < most:  # bisects: comparing slices is quicker than characters
        middle = (same + most + 1) // 2
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            most = middle - 1
    return same


def _from(piece: _Piece, start: int) -> _Piece:
    return piece._replace(text=piece.text[start:])
