"""The text that a terminal would show in the end: lines written over, moves of the cursor, erasing.

A progress bar is its last state, a picture that was drawn again and again its last frame. What was
written over is counted, not shown; the file of an output has its bytes as they came.

The terminal has `HEIGHT` rows: moves reach no further up, and a row that has left them is final. A
row may be of any length, but one beyond `WIDTH` is no progress bar: it is final at once.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern
from tui.core.text_cleaning import COLOURS, without_colours

HEIGHT: Final = 50
WIDTH: Final = 4096
PICTURE_ROWS: Final = 5

MOVES: Final = r"\x1b(?:\[[0-9;]{0,20}[@A-HJKLMPXdf`su]|\[\?(?:47|1047|1049)[hl]|[78DEMc])"
"""Sequences that move the cursor, erase or insert."""

_MOVE = late_pattern(MOVES)
_PIECE = late_pattern(rf"(?P<text>[^\x1b\r\b\n]+)|(?P<colour>{COLOURS})|[\r\b\n]|{MOVES}")
_COLOUR = late_pattern(COLOURS)
_EDITS = frozenset({*"JKXP@LMhl", "\x1bc"})
_ROW_EDITS = frozenset({*"JLMhl", "\x1bc"})
_TAB = 8
_STYLE_CHARS = 200
_COMBINED: Final = 30
"""Characters that combine with one: as many as Unicode wants to be taken together (UAX 15)."""


class ShownText(NamedTuple):
    """`final` is text that nothing changes any more, without colors. `live` is for a person who
    watches, with colors: a carriage return in it starts its line over."""

    final: str
    live: str


@dataclass(slots=True)
class _Row:
    """One cell for each column: a character with what combines with it, "" behind a tab or a wide
    one; and the colors of each."""

    cells: list[str] = field(default_factory=list[str])
    styles: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        """The row with its colors."""
        if not any(self.styles):
            return "".join(self.cells)
        parts: list[str] = []
        now = ""
        for cell, style in zip(self.cells, self.styles, strict=True):
            if style != now and cell:
                parts.append(f"\x1b[0m{style}" if now else style)
                now = style
            parts.append(cell)
        return "".join([*parts, "\x1b[0m" if now else ""])

    def write(self, at: int, text: str, style: str) -> tuple[int, int]:
        """Write a text over what is there. Returns the column behind it, and the bytes that were
        there. A tab only moves, if something is there."""
        lost = 0
        for number, part in enumerate(text.split("\t")):
            if number:
                stop = (at // _TAB + 1) * _TAB
                if at >= len(self.cells):
                    self._put(at, ["\t", *[""] * (stop - at - 1)], style)
                at = stop
            cells = list(part) if part.isascii() else []
            for char in part if not cells else "":
                if not (width := _width(char)):
                    lost += self._combine(at, cells, char)
                else:
                    cells += [char, ""][:width]
            lost += self._put(at, cells, style)
            at += len(cells)
        return at, lost

    def _combine(self, at: int, cells: list[str], char: str) -> int:
        """Add to the character before. Returns the bytes that it has no room for."""
        before = cells or self.cells
        place = len(cells) - 1 if cells else min(at, len(before)) - 1
        while place > 0 and not before[place]:
            place -= 1
        if place < 0:
            return 0
        if len(before[place]) > _COMBINED:
            return len(char.encode())
        before[place] += char
        return 0

    def _put(self, at: int, cells: list[str], style: str) -> int:
        if at > len(self.cells) and cells:
            self.styles += [""] * (at - len(self.cells))
            self.cells += [" "] * (at - len(self.cells))
        lost = self.blank(at, at + len(cells)) if at < len(self.cells) else 0
        self.cells[at : at + len(cells)] = cells
        self.styles[at : at + len(cells)] = [style] * len(cells)
        return lost

    def remove(self, start: int, stop: int) -> None:
        self._spell_tabs(start)
        del self.cells[start:stop], self.styles[start:stop]

    def insert(self, at: int, count: int) -> int:
        """Insert blanks. Returns the bytes that leave the row at its end."""
        self._spell_tabs(at)
        if at >= len(self.cells):
            return 0
        self.blank(at, at)
        self.cells[at:at] = [" "] * count
        self.styles[at:at] = [""] * count
        lost = len("".join(self.cells[WIDTH:]).encode())
        del self.cells[WIDTH:], self.styles[WIDTH:]
        return lost

    def _spell_tabs(self, start: int) -> None:
        """Make blanks of tabs: what is behind them moves."""
        if "\t" not in self.cells:
            return
        in_tab = False
        for at, cell in enumerate(self.cells[start:], start):
            in_tab = cell == "\t" or (in_tab and not cell)
            if in_tab:
                self.cells[at] = " "

    def blank(self, start: int, stop: int) -> int:
        """Make blanks of these cells and of the other halves of wide ones."""
        while 0 < start < len(self.cells) and not self.cells[start]:
            start -= 1
        while stop < len(self.cells) and not self.cells[stop]:
            stop += 1
        gone = self.cells[start:stop]
        self.cells[start:stop] = [" "] * len(gone)
        self.styles[start:stop] = [""] * len(gone)
        return len("".join(gone).encode())


_AnyRow: TypeAlias = _Row | str
"""A row; a str, with its colors, as long as it was only appended to."""


class TerminalText:
    """Takes text in pieces; the result does not depend on how it is cut.

    The text has no control characters but newlines, tabs, `\\r`, `\\b`, colors and `MOVES`. What
    moves nothing stays as it is. `dropped` counts the bytes that were written over or erased.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._begin()

    def _begin(self) -> None:
        self._rows: list[_AnyRow] = [""]
        self._y = 0
        self._x = 0
        self._at_end = True  # of the last row, which is a str then
        self._style = ""
        self._saved = (0, 0)
        self._behind: list[_AnyRow] | None = None  # the rows of the other screen
        self._beyond = False  # in a row longer than the terminal: its text goes straight through
        self._returned = False  # a carriage return in that row
        self._final: list[str] = []
        self._live: list[str] = []
        self._told = 0  # whole rows that the person has seen
        self._begun = ""  # what the person has seen of the next one
        self._since_up = HEIGHT  # line ends since the cursor went up

    def feed(self, text: str) -> ShownText:
        if self._at_end and not self._returned and not _moves(text):
            self._append(text)
        else:
            for piece in _PIECE.finditer(text):
                self._take(piece[0], piece.lastgroup or "move")
        self._tell()
        return self._out()

    def close(self) -> ShownText:
        """End the text: all of it is final. What follows begins a new one."""
        if self._behind is not None:
            self._rows, self._behind = [*self._behind, *self._rows], None
            self._y = len(self._rows) - 1
        while len(self._rows) - 1 > self._y and not _plain(self._rows[-1]).strip():
            self._rows.pop()
        self._settle(len(self._rows) - 1)
        self._final.append(_plain(self._rows[0]))
        if not self._beyond:
            self._tell_row(self._rows[0])
        shown = self._out()
        self._begin()
        return shown

    @property
    def held(self) -> str:
        """The text that is not final yet."""
        return "\n".join(map(_plain, self._rows)) if not self._beyond else ""

    @property
    def picture(self) -> str:
        """The last rows of the screen, with colors, while something is drawn over several of them
        again and again: of those, `live` has only the cursor's. Otherwise ""."""
        if self._since_up >= HEIGHT or self._beyond:
            return ""
        rows = [text for row in self._rows if (text := str(row)).strip()]
        return "\n".join(rows[-PICTURE_ROWS:])

    def _out(self) -> ShownText:
        shown = ShownText("".join(self._final), "".join(self._live))
        self._final, self._live = [], []
        return shown

    # Text at the end of the last row, as nearly all of it is.

    def _append(self, text: str) -> None:
        if "\x1b" in text:
            reset = max(text.rfind("\x1b[0m"), text.rfind("\x1b[m"))
            for colour in _COLOUR.finditer(text, max(0, reset)):
                self._style = _styled(self._style, colour[0])
        whole, ended, rest = text.rpartition("\n")
        if ended:
            first, more, body = whole.partition("\n")
            self._grow(first)
            self._new_line()
            if more:
                self._append_lines(body)
        self._grow(rest)

    def _append_lines(self, body: str) -> None:
        """Add whole lines in the last row, which is empty."""
        lines: list[_AnyRow] = [*body.rsplit("\n", HEIGHT)]
        if len(lines) > HEIGHT:
            self._pass_through(f"{lines.pop(0)}\n")
        self._since_up += len(lines)
        above = len(self._rows) - 1
        out = max(0, above + len(lines) - (HEIGHT - 1))
        if len(body) > WIDTH:
            out = max(
                out,
                *(above + n for n, line in enumerate(map(str, lines), 1) if len(line) > WIDTH),
                0,
            )
        self._rows[-1:] = [*lines, ""]
        self._settle(out)
        self._y = len(self._rows) - 1

    def _pass_through(self, text: str) -> None:
        """Let whole lines, and all rows before, leave the screen."""
        self._settle(len(self._rows) - 1)
        self._keep(without_colours(text))
        self._live.append(text)
        self._since_up += HEIGHT

    def _grow(self, text: str) -> None:
        """Add to the last row."""
        if self._beyond:
            self._keep(without_colours(text))
            self._live.append(text)
            return
        self._rows[-1] = f"{self._rows[-1]}{text}"
        self._end_if_long()

    def _end_if_long(self) -> None:
        """Let the cursor's row go if it is longer than the terminal."""
        row = self._rows[self._y]
        if (len(row) if isinstance(row, str) else len(row.cells)) <= WIDTH:
            return
        self._settle(self._y)
        self._keep(_plain(self._rows[0]))
        self._tell_row(self._rows[0])
        # Rows below it, if there are any, stay.
        self._rows[0] = ""
        self._x, self._begun = 0, ""
        self._beyond = self._at_end = True

    def _new_line(self) -> None:
        self._since_up += 1
        self._x = 0
        if self._beyond:
            self._beyond = self._returned = False
            self._keep("\n")
            self._live.append("\n")
            del self._rows[0]
            self._rows = self._rows or [""]
        else:
            self._y += 1
        if self._y == len(self._rows):
            self._rows.append("")
        if len(self._rows) > HEIGHT:
            self._settle(1)
        self._at_end = self._y == len(self._rows) - 1 and self._rows[-1] == ""

    # Text that may be written over, and what moves the cursor.

    def _take(self, piece: str, kind: str) -> None:
        if self._beyond and kind == "move" and piece != "\n":
            if piece == "\r":
                self._returned = True
                return
            self._new_line()
        if kind == "text":
            if self._returned:
                self._new_line()
            if self._at_end:
                self._grow(piece)
            else:
                self._write(piece)
        elif kind == "colour":
            self._style = _styled(self._style, piece)
            if self._at_end:
                self._grow(piece)
        elif piece == "\n":
            self._new_line()
        else:
            self._control(piece)

    def _write(self, text: str) -> None:
        row = self._rows[self._y]
        if isinstance(row, str) and _is_plain(row) and _is_plain(text) and not self._style:
            end = self._x + len(text)
            self.dropped += len(row[self._x : end])
            self._rows[self._y] = f"{row[: self._x]:{self._x}}{text}{row[end:]}"
            self._x = end
            self._end_if_long()
            return
        self._x, lost = self._cells(self._y).write(self._x, text, self._style)
        self.dropped += lost
        self._end_if_long()

    def _control(self, sequence: str) -> None:
        if sequence == "\r":
            self._x, self._at_end = 0, self._at_end and not self._rows[-1]
            return
        row, before = self._cells(self._y), self._y
        if self._at_end:
            self._x, self._at_end = len(row.cells), False
        name = sequence if len(sequence) < 3 else sequence[-1]
        if name in _EDITS:
            self._edit(name, sequence, row)
        else:
            self._move(name, _numbers(sequence))
        if self._y < before or name in _ROW_EDITS:
            self._told, self._since_up = min(self._told, self._y), 0

    def _move(self, name: str, numbers: list[int]) -> None:
        """Move the cursor."""
        count = numbers[0] or 1
        match name:
            case "\b" | "D":
                self._x = max(0, self._x - count)
            case "C":
                self._x = min(WIDTH, self._x + count)
            case "G" | "`":
                self._x = count - 1
            case "\x1bM" if not self._y:
                self._shift_rows(1)
            case "A" | "F" | "\x1bM":
                self._down(-count)
            case "B" | "E" | "\x1bD" | "\x1bE":
                self._down(count)
            case "d" | "H" | "f":
                self._down(count - 1 - self._y)
            case "s" | "\x1b7":
                self._saved = (self._y, self._x)
            case _:  # u, \x1b8
                self._down(self._saved[0] - self._y)
                self._x = self._saved[1]
        if name in {"E", "F", "\x1bE"}:
            self._x = 0
        elif name in {"H", "f"}:
            self._x = (numbers[1] or 1) - 1 if len(numbers) > 1 else 0

    def _edit(self, name: str, sequence: str, row: _Row) -> None:
        """Erase, insert or remove."""
        how = _numbers(sequence)[0]
        count = how or 1
        match name:
            case "J":
                self._erase_screen(how)
            case "\x1bc":
                self._erase_screen(2)
                self._y, self._x, self._style = 0, 0, ""
            case "K":
                self._erase_line(row, how)
            case "X":
                self.dropped += row.blank(self._x, self._x + count)
            case "P":
                self.dropped += row.blank(self._x, self._x + count)
                row.remove(self._x, self._x + count)
            case "@":
                self.dropped += row.insert(self._x, count)
            case "L" | "M":
                self._shift_rows(count if name == "L" else -count)
            case _:  # h, l
                self._other_screen(on=name == "h")

    def _cells(self, at: int) -> _Row:
        row = self._rows[at]
        if isinstance(row, str):
            row = self._rows[at] = _row_of(row)
        return row

    def _down(self, count: int) -> None:
        """Move the cursor to another row of the screen; a negative count is up."""
        self._y = min(max(0, self._y + count), HEIGHT - 1)
        while len(self._rows) <= self._y:
            self._rows.append("")

    def _erase_line(self, row: _Row, how: int) -> None:
        end = len(row.cells)
        start, stop = {0: (self._x, end), 1: (0, self._x + 1)}.get(how, (0, end))
        self.dropped += row.blank(start, stop)
        if stop >= end:
            row.remove(start, end)

    def _erase_screen(self, how: int) -> None:
        below = self._rows[self._y + 1 :] if how != 1 else []
        above = self._rows[: self._y] if how else []
        self.dropped += sum(map(_size, [*above, *below]))
        del self._rows[len(self._rows) - len(below) :]
        self._rows[: len(above)] = [""] * len(above)
        self._erase_line(self._cells(self._y), min(how, 2))

    def _shift_rows(self, count: int) -> None:
        """Insert blank rows at the cursor, or remove some."""
        end = self._y - count if count < 0 else HEIGHT - count
        if count < 0:
            self.dropped += sum(map(_size, self._rows[self._y : end]))
            del self._rows[self._y : end]
        else:
            lost = self._rows[max(self._y, end) :]
            self.dropped += sum(map(_size, lost))
            del self._rows[max(self._y, end) :]
            self._rows[self._y : self._y] = [""] * min(count, HEIGHT - self._y)
        while len(self._rows) <= self._y:
            self._rows.append("")

    def _other_screen(self, *, on: bool) -> None:
        """Go to the screen that full-screen programs draw on, or back from it."""
        if on and self._behind is None:
            self._behind = self._rows
            self._rows = [""]
            self._y = self._x = 0
        elif not on and self._behind is not None:
            self.dropped += sum(map(_size, self._rows))
            self._rows, self._behind = self._behind, None
            self._y = len(self._rows) - 1
            self._x = len(self._cells(self._y).cells)

    # What is final, and what the person sees meanwhile.

    def _settle(self, count: int) -> None:
        """Let the first rows leave the screen."""
        for row in self._rows[:count]:
            self._keep(f"{_plain(row)}\n")
            if self._told:
                self._told -= 1
            else:
                self._tell_row(row)
                self._live.append("\n")
                self._begun = ""
        del self._rows[:count]
        self._y = max(0, self._y - count)
        self._saved = (max(0, self._saved[0] - count), self._saved[1])

    def _keep(self, text: str) -> None:
        if self._behind is None:
            self._final.append(text)
        else:  # that screen keeps nothing of what leaves it
            self.dropped += len(text.encode())

    def _tell(self) -> None:
        """Show the person what is new. While the cursor goes up and down, only its row is shown;
        the others follow once they are final."""
        if self._beyond:
            return
        while self._since_up >= HEIGHT and self._told < self._y:
            self._tell_row(self._rows[self._told])
            self._live.append("\n")
            self._told, self._begun = self._told + 1, ""
        self._tell_row(self._rows[self._y])

    def _tell_row(self, row: _AnyRow) -> None:
        text = str(row)
        if text.startswith(self._begun):
            self._live.append(text[len(self._begun) :])
        else:
            text = text or " "
            self._live.append(f"\r{text}")
        self._begun = text


def _numbers(sequence: str) -> list[int]:
    """Return the parameters of a sequence, at least one; 0 is one that is left out."""
    words = sequence[2:-1].split(";") if "[" in sequence else [""]
    return [min(int(word), WIDTH) if word.isdigit() else 0 for word in words]


def _moves(text: str) -> bool:
    """True if anything in a text moves the cursor."""
    if "\r" in text or "\b" in text:
        return True
    return "\x1b" in text and _MOVE.search(text) is not None


def _is_plain(text: str) -> bool:
    """True if each character takes one column."""
    return text.isascii() and "\t" not in text and "\x1b" not in text


def _plain(row: _AnyRow) -> str:
    return without_colours(row) if isinstance(row, str) else "".join(row.cells)


def _size(row: _AnyRow) -> int:
    return len(_plain(row).encode())


def _row_of(text: str) -> _Row:
    """Return the cells of a row that was only appended to so far."""
    row, at, style = _Row(), 0, ""
    for piece in _PIECE.finditer(text):
        if piece.lastgroup == "colour":
            style = _styled(style, piece[0])
        else:
            at, _ = row.write(at, piece[0], style)
    return row


def _styled(style: str, sequence: str) -> str:
    """Return the colors after a sequence."""
    new = "" if sequence in {"\x1b[m", "\x1b[0m"} else style + sequence
    return new if len(new) <= _STYLE_CHARS else sequence


@lru_cache(4096)
def _width(char: str) -> int:
    """The columns that a character takes: 0 for one that combines with the last."""
    if char.isascii():
        return 1
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
