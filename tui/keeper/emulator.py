"""Emulates a terminal: from what a program writes to the screen that a person would see, and to the
answers that a terminal gives by itself.

pyte does the cells. Sequences that it lacks or takes for something else are handled here before it
gets them: the second screen of editors, questions, scrolling, strings of device control.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from copy import copy
from typing import cast

import pyte
from pyte import modes
from pyte.charsets import VT100_MAP
from pyte.screens import Char, Cursor, Margins, StaticDefaultDict
from wcwidth import wcwidth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RECENT_LINES = 2000
"""The lines kept of those that have left at the top."""
_PENDING_CHARS = 64 * 1024
"""Characters of a sequence without an end: a longer one is dropped."""
_TITLE_CHARS = 200
_CELL_CHARS = 16
"""A character with its marks: further ones are dropped, since each is composed with all before."""
_FLOOD_SCREENS = 3
"""Screens of plain lines in one piece from which only the last is drawn cell by cell."""

_SEQUENCE = re.compile(
    r"\x1b\[(?P<prefix>[<=>?]?)(?P<params>[0-9;:]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|\x1b\](?P<command>[^\x07\x1b\x9c]*)(?:\x07|\x1b\\|\x9c)"
    r"|\x1b(?P<string>[PX^_][^\x1b\x9c]*)(?:\x1b\\|\x9c)"
    r"|\x1b(?P<set>[()*+])(?P<charset>.)"
    r"|\x1b(?P<escape>[#%].|[^\[\]PX^_()*+#%])"
    r"|(?P<shift>[\x0e\x0f])",
    re.DOTALL,
)
_UNFINISHED = re.compile(
    r"\x1b(?:\[[<=>?]?[0-9;:]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]*\x1b?|[()*+#%])?\Z", re.DOTALL
)
_PLAIN = re.compile(r"[\x20-\x7e]*")
_ALTERNATE = frozenset({47, 1047, 1049})
_PASTE, _APPLICATION_CURSOR, _SAVES_CURSOR = 2004, 1, 1048
_PASSED = "@ABCDEFGHJKLMPXadefghlmr`"
"""Ends of control sequences that pyte handles as a terminal does."""
_MOUSE = {"mouse_clicks": 1000, "mouse_drags": 1002, "mouse_moves": 1003, "mouse_sgr": 1006}
"""The mouse reports that a program asks for, and their form."""
_COLOURS = {10: "ffff/ffff/ffff", 11: "0000/0000/0000", 12: "ffff/ffff/ffff"}
"""What is said about the colors: light on dark."""


class _Screen(pyte.Screen):
    """The cells, with what is kept of lines that leave at the top."""

    def __init__(self, columns: int, lines: int) -> None:
        self.gone = 0
        self.recent: deque[str] = deque(maxlen=RECENT_LINES)
        self.alternate = False
        self.title = ""
        self._other: tuple[Any, Cursor] | None = None
        super().__init__(columns, lines)

    def index(self) -> None:
        top, bottom = self.margins or Margins(0, self.lines - 1)
        if self.cursor.y == bottom and not top:
            self._leave(0)
        super().index()

    def draw(self, data: str) -> None:
        if data.isascii():
            super().draw(data)
            return
        for char in data:
            width = wcwidth(char)
            if not width and len(self._before_cursor()) >= _CELL_CHARS:
                continue
            # A wide character doesn't fit into the last cell.
            if self.cursor.x == self.columns - 1 and width == 2:
                self.cursor.x = self.columns
            super().draw(char)

    def _before_cursor(self) -> str:
        """The character to which a mark is added."""
        x, y = (
            (self.cursor.x, self.cursor.y) if self.cursor.x else (self.columns, self.cursor.y - 1)
        )
        return self.buffer[y][x - 1].data if y >= 0 else ""

    def scroll(self, count: int) -> None:
        """Move the lines between the margins up, or down if `count` is negative."""
        top, bottom = self.margins or Margins(0, self.lines - 1)
        count = max(top - bottom - 1, min(count, bottom - top + 1))
        for row in range(count if not top else 0):
            self._leave(row)
        y, x = self.cursor.y, self.cursor.x
        self.cursor.y = top
        (self.delete_lines if count > 0 else self.insert_lines)(abs(count))
        self.cursor.y, self.cursor.x = y, x

    def tab_back(self) -> None:
        """Move to the tab stop before the cursor."""
        stops = cast("set[int]", self.tabstops)  # pyright: ignore[reportUnknownMemberType]
        self.cursor.x = max((stop for stop in stops if stop < self.cursor.x), default=0)

    def use_alternate(self, *, on: bool) -> None:
        """Show the second screen, or the first again as it was."""
        if on == self.alternate:
            return
        self.alternate = on
        if on:
            self._other = self.buffer, copy(self.cursor)
            default = self.default_char
            self.buffer = defaultdict(lambda: StaticDefaultDict[int, Char](default))
        elif self._other:
            self.buffer, cursor = self._other
            self.cursor = cursor
            self.cursor.y = min(self.cursor.y, self.lines - 1)
            self.cursor.x = min(self.cursor.x, self.columns)
            self._other = None
        self.margins = None
        self.dirty.update(range(self.lines))

    def text(self, row: int) -> str:
        """The text of a row, without spaces at its end."""
        line = self.buffer[row]
        if not line:
            return ""
        return "".join(line[x].data for x in range(min(max(line) + 1, self.columns))).rstrip()

    def flood(self, lines: list[str]) -> None:
        """Draw plain lines that all leave at the top, except for the last screen of them."""
        for row in range(self.lines):
            self._leave(row)
        drawn = lines[-self.lines :]
        self.gone += len(lines) - len(drawn)
        self.recent.extend(lines[: -self.lines][-RECENT_LINES:])
        self.erase_in_display(2)
        self.cursor.y = self.cursor.x = 0
        for number, line in enumerate(drawn):
            if number:
                self.cursor.y, self.cursor.x = number, 0
            self.draw(line)

    def _leave(self, row: int) -> None:
        if not self.alternate:
            self.gone += 1
            self.recent.append(self.text(row))


class Emulator:
    """A terminal of `rows` × `cols` cells. `feed` takes what a program writes.

    `crashes` counts how often the screen had to begin again, because what was written could not be
    handled.
    """

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.version = self.crashes = 0
        self.modes: set[int] = set()
        self._pending = ""
        self._begin()

    def _begin(self) -> None:
        self.screen = _Screen(self.cols, self.rows)
        self._stream = pyte.Stream(self.screen)
        self._charsets = {"(": "B", ")": "B"}
        self._shift = "("
        self._last = " "
        self._saved: tuple[int, int] = (0, 0)

    @property
    def bracketed_paste(self) -> bool:
        """True if the program wants to know what is pasted."""
        return _PASTE in self.modes

    @property
    def application_cursor(self) -> bool:
        """True if the program wants other codes for the arrow keys."""
        return _APPLICATION_CURSOR in self.modes

    def feed(self, text: str) -> str:
        """Show what a program has written; return what a terminal answers. Never raises."""
        self.version += 1
        text, self._pending = self._pending + text, ""
        try:
            return self._feed(text)
        except Exception:  # noqa: BLE001 - whatever the library makes of wild input
            gone, recent = self.screen.gone, self.screen.recent
            self.crashes += 1
            self._begin()
            self.screen.gone, self.screen.recent = gone, recent
            return ""

    def resize(self, rows: int, cols: int) -> None:
        """Give the terminal another size."""
        self.version += 1
        screen, lost = self.screen, self.screen.cursor.y + 1 - rows
        self.rows, self.cols = rows, cols
        if lost > 0 and not screen.alternate:
            y, x = screen.cursor.y, screen.cursor.x
            screen.scroll(lost)
            screen.cursor.y, screen.cursor.x = y - lost, x
        if rows < screen.lines:  # the library would drop rows at the top, a terminal does below
            for row in [row for row in screen.buffer if row >= rows]:
                del screen.buffer[row]
            screen.lines = rows
            screen.set_margins()
        screen.resize(rows, cols)
        screen.cursor.y = min(screen.cursor.y, rows - 1)

    def data(self, since: int | None = None) -> dict[str, Any]:
        """The screen as data. With `since`, `recent` has the lines that have left at the top since
        that many had."""
        screen = self.screen
        fresh = min(screen.gone - since, len(screen.recent)) if since is not None else 0
        recent = [*screen.recent][-fresh:] if fresh > 0 else []
        return {
            "rows": self.rows,
            "cols": self.cols,
            "lines": [self._runs(row) for row in range(self.rows)],
            "cursor": [screen.cursor.y, min(screen.cursor.x, self.cols - 1)],
            "cursor_shown": not screen.cursor.hidden,
            "title": screen.title,
            "alternate": screen.alternate,
            "version": self.version,
            "gone": screen.gone,
            "recent": recent,
            "crashes": self.crashes,
            "modes": {
                "bracketed_paste": self.bracketed_paste,
                "application_cursor": self.application_cursor,
                **{name: number in self.modes for name, number in _MOUSE.items()},
            },
        }

    def repainted(self) -> str:
        """Return what a terminal would have to be sent to show this screen's text."""
        rows = (self.screen.text(row) for row in range(self.rows))
        y, x = self.screen.cursor.y + 1, self.screen.cursor.x + 1
        return "\x1b[0m\x1b[2J\x1b[H" + "\r\n".join(rows) + f"\x1b[{y};{x}H"

    def _runs(self, row: int) -> list[list[str]]:
        line, runs = self.screen.buffer[row], list[list[str]]()
        if not line:
            return runs
        last = None
        for x in range(min(max(line) + 1, self.cols)):
            cell = line[x]
            look = cell[1:]
            if look != last:
                runs.append(["", *_style_of(cell)])
                last = look
            runs[-1][0] += cell.data
        while runs and runs[-1][1:] == ["", "", ""]:
            runs[-1][0] = runs[-1][0].rstrip()
            if runs[-1][0]:
                break
            runs.pop()
        return runs

    def _feed(self, text: str) -> str:
        answers, start = list[str](), 0
        for match in _SEQUENCE.finditer(text):
            if match.start() > start:
                self._draw(text[start : match.start()])
            start = match.end()
            if answer := self._obey(match):
                answers.append(answer)
        rest = text[start:]
        if unfinished := _UNFINISHED.search(rest):
            pending, rest = rest[unfinished.start() :], rest[: unfinished.start()]
            if len(pending) <= _PENDING_CHARS:
                self._pending = pending
        if rest:
            self._draw(rest)
        return "".join(answers)

    def _draw(self, text: str) -> None:
        text = text.replace("\x1b", "").replace("\x9c", "")  # the rest of a broken sequence
        if self._charsets[self._shift] == "0":
            text = text.translate(_LINE_DRAWING)
        if not text:
            return
        if text[-1].isprintable():
            self._last = text[-1]
        if text.count("\n") > _FLOOD_SCREENS * self.rows and (lines := self._plain_lines(text)):
            self._stream.feed("\r\n".join(lines[: self.rows + 1]))
            self.screen.flood(lines[self.rows + 1 :])
            return
        self._stream.feed(text)

    def _plain_lines(self, text: str) -> list[str]:
        """The lines of a text that only goes down the screen; empty for any other."""
        screen = self.screen
        if screen.alternate or screen.margins or modes.IRM in screen.mode:
            return []
        lines = text.split("\r\n")
        plain = (_PLAIN.fullmatch(line) and len(line) <= self.cols for line in lines)
        return lines if all(plain) else []

    def _obey(self, match: re.Match[str]) -> str:
        given = match.groupdict()
        if given["final"] is not None:
            return self._control(match)
        if (command := given["command"]) is not None:
            return self._command(command)
        if (string := given["string"]) is not None:
            return self._string(string)
        if (charset := given["charset"]) is not None:
            self._charsets[given["set"]] = charset
        elif given["shift"] is not None:
            self._shift = ")" if given["shift"] == "\x0e" else "("
        else:
            self._escape(match[0], given["escape"] or "")
        return ""

    def _escape(self, whole: str, letter: str) -> None:
        if letter == "c":
            self.modes.clear()
            self.screen.use_alternate(on=False)
            self._charsets, self._shift = {"(": "B", ")": "B"}, "("
        if letter == "E":
            self._stream.feed("\r\x1bD")
        elif letter in "cDHM78" or letter == "#8":
            self._stream.feed(whole)

    def _control(self, match: re.Match[str]) -> str:
        prefix, params, between, final = match.group("prefix", "params", "between", "final")
        numbers = [int(one[:5]) if one else 0 for one in re.split("[;:]", params)]
        if between:
            return self._rare(f"{prefix}{between}{final}", numbers[0])
        match prefix:
            case "":
                question = self._answer(final, numbers[0])
                if question is None:
                    self._move(match[0], params, final, numbers[0])
                return question or ""
            case "?":
                return self._private(numbers, match[0], final)
            case ">" if not numbers[0]:
                return {"c": "\x1b[>0;10;0c", "q": "\x1bP>|holdfast\x1b\\"}.get(final, "")
            case _:
                return ""

    def _rare(self, name: str, number: int) -> str:
        """Obey a sequence with a character in between: a question about a mode, a soft reset."""
        if name in {"$p", "?$p"}:
            state = (1 if number in self.modes else 2) if number in _KNOWN_MODES else 0
            return f"\x1b[{name[:-2]}{number};{state}$y"
        if name == "!p":
            self._stream.feed("\x1b[?25h\x1b[r\x1b[0m\x1b[4l")
        return ""

    def _answer(self, final: str, number: int) -> str | None:
        """Answer a question; None for a sequence that is none."""
        match final, number:
            case "c", _:
                return "" if number else "\x1b[?62;22c"
            case "n", _:
                return {5: "\x1b[0n", 6: f"\x1b[{self._place}R"}.get(number, "")
            case "t", _:
                return f"\x1b[8;{self.rows};{self.cols}t" if number == 18 else ""
            case _:
                return None

    @property
    def _place(self) -> str:
        """The cursor as a terminal says it."""
        cursor = self.screen.cursor
        return f"{cursor.y + 1};{min(cursor.x, self.cols - 1) + 1}"

    def _move(self, whole: str, params: str, final: str, number: int) -> None:
        """Do what is drawn, moved, or set."""
        screen, times = self.screen, min(number or 1, self.rows * self.cols)
        match final:
            case "S" | "T":
                screen.scroll(times if final == "S" else -times)
            case "Z":
                for _ in range(min(times, self.cols)):
                    screen.tab_back()
            case "I":
                for _ in range(min(times, self.cols)):
                    screen.tab()
            case "b":
                self._stream.feed(self._last * times)
            case "s" if not params:
                self._saved = screen.cursor.y, screen.cursor.x
            case "u" if not params:
                screen.cursor.y = min(self._saved[0], self.rows - 1)
                screen.cursor.x = min(self._saved[1], self.cols - 1)
            case "m":
                self._stream.feed(f"\x1b[{_plain_styles(params)}m")
            case _ if final in _PASSED:
                self._stream.feed(whole)
            case _:
                pass

    def _private(self, numbers: list[int], whole: str, final: str) -> str:
        if final == "n" and numbers[0] == 6:
            return f"\x1b[?{self._place}R"
        if final in "JK":
            self._stream.feed(whole.replace("?", ""))
        if final not in "hl":
            return ""
        for number in numbers:
            (self.modes.add if final == "h" else self.modes.discard)(number)
            if number in _ALTERNATE:
                self.screen.use_alternate(on=final == "h")
            elif number == _SAVES_CURSOR:
                self._stream.feed("\x1b7" if final == "h" else "\x1b8")
            elif number in _PASSED_MODES:
                self._stream.feed(f"\x1b[?{number}{final}")
        return ""

    def _command(self, command: str) -> str:
        """Obey an operating system command: the title, questions about colors."""
        code, _, rest = command.partition(";")
        if code in {"0", "2"}:
            self.screen.title = "".join(filter(str.isprintable, rest))[:_TITLE_CHARS]
        if code.isdecimal() and int(code[:4]) in _COLOURS and rest == "?":
            return f"\x1b]{code};rgb:{_COLOURS[int(code[:4])]}\x1b\\"
        return ""

    def _string(self, string: str) -> str:
        """Answer questions about settings and capabilities: that none is known."""
        if string.startswith("P$q"):
            return "\x1bP0$r\x1b\\"
        return "\x1bP0+r\x1b\\" if string.startswith("P+q") else ""


_PASSED_MODES = frozenset({5, 6, 7, 25})
_KNOWN_MODES = frozenset({1, *_PASSED_MODES, _PASTE, *_ALTERNATE, *_MOUSE.values()})
_LINE_DRAWING = {number: VT100_MAP[number] for number in range(0x5F, 0x7F)}
_NAMES = {"brown": "yellow", "brightbrown": "brightyellow", "bfightmagenta": "brightmagenta"}
"""Colors as the field names them; the last is a slip of the library."""


def _style_of(cell: Char) -> tuple[str, str, str]:
    style = "".join(
        letter
        for letter, on in (
            ("b", cell.bold),
            ("i", cell.italics),
            ("u", cell.underscore),
            ("s", cell.strikethrough),
            ("r", cell.reverse),
        )
        if on
    )
    return _colour(cell.fg), _colour(cell.bg), style


def _colour(name: str) -> str:
    return "" if name == "default" else _NAMES.get(name, name)


def _plain_styles(params: str) -> str:
    """The parameters of a look with colons as those with semicolons."""
    if ":" not in params:
        return params
    plain: list[str] = []
    for one in params.split(";"):
        parts = one.split(":")
        if parts[0] in {"38", "48"} and parts[1:2] == ["2"]:
            plain += [parts[0], "2", *(part or "0" for part in parts[-3:])]
        elif parts[0] in {"38", "48"}:
            plain += parts[:3]
        elif parts[0] == "4":
            plain.append("24" if parts[1:2] == ["0"] else "4")
        elif parts[0] != "58":
            plain.append(parts[0])
    return ";".join(plain) if plain else "39"
