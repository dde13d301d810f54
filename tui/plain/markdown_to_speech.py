"""Turns an answer, as it streams, into lines that can be read aloud: never a token at a time.

A line is spoken when it is finished, a long one sentence by sentence. Markdown is put into words if
its signs would only be noise: headings, code blocks, tables, links, marks of emphasis.
"""

from __future__ import annotations

import re

from tui.core.dataclass import dataclass, field
from tui.core.text_cleaning import clean

LONG = 160
"""An unfinished line with this many characters is spoken up to its last whole sentence."""

_PROSE_MAX = 4_000
_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*([^`]*)$")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_RULE = re.compile(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*$")
_BOX = re.compile(r"(\s*)(?:[-*+]|\d+[.)])\s+\[([ xX])\]\s+(.*)$")
_BULLET = re.compile(r"(\s*)[-*+]\s+(.*)$")
_QUOTE = re.compile(r"\s{0,3}>\s?(.*)$")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_MARKS = re.compile(r"\s*+\|?(?:\s*+:?-++:?\s*+\|)++\s*+:?-*+:?\s*+$")
_SENTENCE = re.compile(r"[.!?:;][\"')\]]*\s+(?=\S)")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\(([^)\s]++)[^)]*+\)")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=[^\s*])\*(?![\w*])")


@dataclass(slots=True)
class Reader:
    """Takes the pieces of one answer, and returns the lines that can be spoken already.

    `code` are the code blocks so far, as they were written; `numbered` ones are said with their
    number in it, by which `/copy` takes them.
    """

    numbered: bool = False
    code: list[str] = field(default_factory=list[str])
    _rest: str = ""
    _fence: str = ""
    _indent: int = 0
    """Columns before the open fence: code in a list is indented with it."""
    _rows_of_code: list[str] = field(default_factory=list[str])
    _header: list[str] = field(default_factory=list[str])
    _held: str = ""
    """A row of a table whose next line is not known yet."""
    _rows: int = 0

    def feed(self, text: str) -> list[str]:
        """Take a piece, and return the lines that are finished."""
        self._rest += text
        *whole, self._rest = self._rest.split("\n")
        lines = [spoken for line in whole for spoken in self._line(clean(line))]
        return lines + self._early()

    def end(self) -> list[str]:
        """End a piece of the answer: return what is left. Its code stays."""
        unfinished, self._rest = self._rest, ""
        lines = self._line(clean(unfinished)) if unfinished.strip() else []
        lines += self._let_go()
        if self._fence:
            lines.append(self._end_of_code())
        self._held, self._header, self._rows = "", [], 0
        return lines

    def drop(self) -> None:
        """Forget the answer, and what was not spoken yet."""
        self._rest = self._fence = self._held = ""
        self._header, self._rows = [], 0
        self.code, self._rows_of_code = [], []

    def _early(self) -> list[str]:
        """Return whole sentences of a long line that continues."""
        unfinished = self._rest
        if self._fence or len(unfinished) < LONG or unfinished.lstrip()[:1] in {"|", "#", "`"}:
            return []
        if unfinished.count("`") % 2 or unfinished.count("**") % 2:
            return []  # a mark is still open
        ends = [match.end() for match in _SENTENCE.finditer(unfinished)]
        if not ends:
            return []
        self._rest = unfinished[ends[-1] :]
        return self._line(clean(unfinished[: ends[-1]].rstrip()))

    def _line(self, line: str) -> list[str]:
        if fence := _FENCE.match(line):
            return [*self._let_go(), *self._fenced(line, *fence.groups())]
        if self._fence:
            return [self._code(line)]
        if _ROW.match(line) or (self._held and _MARKS.match(line)):
            return self._row(line)
        lines = self._let_go()
        self._header = []
        return lines + ([spoken] if (spoken := prose(line)) else [])

    def _fenced(self, line: str, before: str, fence: str, language: str) -> list[str]:
        if not self._fence:
            self._fence, self._indent = fence, len(before)
            number = f" {len(self.code) + 1}" if self.numbered else ""
            return [f"Code{number}, {language.strip()}:" if language.strip() else f"Code{number}:"]
        closes = len(before) <= self._indent + 3 and not language.strip()
        if closes and fence[0] == self._fence[0] and len(fence) >= len(self._fence):
            return [self._end_of_code()]
        return [self._code(line)]

    def _code(self, line: str) -> str:
        row = line[: self._indent].lstrip() + line[self._indent :]
        self._rows_of_code.append(row)
        return line

    def _end_of_code(self) -> str:
        self.code.append("\n".join(self._rows_of_code))
        self._fence, self._rows_of_code = "", []
        return "End of code."

    def _row(self, line: str) -> list[str]:
        """Return a row of a table; the first is the header if a row of dashes follows."""
        if _MARKS.match(line):
            if not self._held:
                return []
            self._header, self._held, self._rows = cells(self._held), "", 0
            return [f"Table with {len(self._header)} columns: {', '.join(self._header)}."]
        if self._header:
            self._rows += 1
            named = zip(self._header, cells(line), strict=False)
            return [f"Row {self._rows}: " + "; ".join(f"{name}: {cell}" for name, cell in named)]
        lines = self._let_go()
        self._held = line
        return lines

    def _let_go(self) -> list[str]:
        """Return a held row that was no header after all."""
        held, self._held = self._held, ""
        return [prose(held)] if held else []


def read(text: str, *, numbered: bool = False) -> list[str]:
    """Return the lines of a whole text."""
    reader = Reader(numbered=numbered)
    return [*reader.feed(text), *reader.end()]


def code_of(answer: str) -> list[str]:
    """Return the code blocks of an answer, in the order of their numbers."""
    reader = Reader()
    reader.feed(answer)
    reader.end()
    return reader.code


def prose(line: str) -> str:
    """Return one line outside code and tables, without the signs that are only noise."""
    if not line.strip() or _RULE.match(line):
        return ""
    if match := _HEADING.match(line):
        return f"Heading: {inline(match[2])}"
    if match := _BOX.match(line):
        return f"{match[1]}- {'open' if match[2] == ' ' else 'done'}: {inline(match[3])}"
    if match := _BULLET.match(line):
        return f"{match[1]}- {inline(match[2])}"
    if match := _QUOTE.match(line):
        return f"Quote: {inline(match[1])}" if match[1].strip() else ""
    return inline(line).rstrip()


def inline(text: str) -> str:
    """Return links as text and address, without marks of emphasis; code keeps every character. A
    line too long to be prose stays as it is."""
    if len(text) > _PROSE_MAX:
        return text
    pieces = re.split(r"(?<!`)(`++)(.+?)(?<!`)\1(?!`)", text)
    spoken: list[str] = []
    for number in range(0, len(pieces), 3):
        plain = _LINK.sub(_link, pieces[number])
        spoken.append(_EMPHASIS.sub(r"\1", _STRONG.sub(r"\2", plain)))
        if number + 2 < len(pieces):
            spoken.append(pieces[number + 2])
    return "".join(spoken)


def _link(found: re.Match[str]) -> str:
    text, address = found[1].strip(), found[2]
    return address if not text or text == address else f"{text} ({address})"


def cells(row: str) -> list[str]:
    """Return the cells of a table's row."""
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [inline(cell.replace("\\|", "|").strip()) for cell in re.split(r"(?<!\\)\|", inner)]
