"""One page of a text file of any size, in bounded memory.

Lines end at `\\n` only. A page holds whole lines; only a line that is larger than a page is cut,
between two characters, and continues at a byte position. The texts of all pages, joined, are the
text of the file. A page can be rendered with its lines numbered, which counts towards its limits.
"""

from __future__ import annotations

import codecs
from bisect import bisect_right
from itertools import pairwise
from threading import Event
from typing import BinaryIO

from tui.core import formatting
from tui.core.dataclass import dataclass
from tui.core.errors import ToolError
from tui.core.late_pattern import late_pattern

_CHUNK = 1 << 20
_FOOTER_BYTES = 200
_REPLACED = "bytes that are not UTF-8 are shown as \ufffd"
_COUNTED_BYTES = 8 << 20
"""Files up to this size get their lines counted for the footer."""
_NUMBER = late_pattern(r"([0-9]{1,9})(?:\t|$)")


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a file. `text` is exact (invalid UTF-8 as U+FFFD); `footer` gets its own line.

    `next_line` or `next_byte` is where to continue; both are None at the end of the file. `number`
    is that of the first line, None for no numbers; `cut` means that the text begins inside that
    line.
    """

    text: str
    footer: str = ""
    next_line: int | None = None
    next_byte: int | None = None
    number: int | None = None
    cut: bool = False

    def render(self) -> str:
        text = self.text
        if self.number is not None:
            text = number_lines(text, self.number, cut=self.cut)
        if not self.footer:
            return text
        return text + ("" if not text or text.endswith("\n") else "\n") + self.footer


def number_lines(text: str, first: int, *, cut: bool = False) -> str:
    """Put a number and a tab before each line; with `cut`, the first is the rest of a line.

    The tab is cheap: it costs one token with the number, any other mark costs two.
    """
    lines = text.split("\n")
    more = lines.pop() if not lines[-1] else None
    shown = [f"{number}\t{line}" for number, line in enumerate(lines, first)]
    if cut and lines:
        shown[0] = lines[0]
    return "\n".join(shown if more is None else [*shown, more])


def without_numbers(text: str) -> str | None:
    """Return a text without the numbers that `number_lines` put before its lines.

    None unless every line has one and they count up by one. A line that was blank may have lost the
    tab after its number.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    more = [lines.pop()] if len(lines) > 1 and not lines[-1] else []
    marks = [_NUMBER.match(line) for line in lines]
    numbers = [int(mark[1]) for mark in marks if mark]
    if "\t" not in text or len(numbers) < len(lines):
        return None
    if any(after != before + 1 for before, after in pairwise(numbers)):
        return None
    bare = [line[mark.end() :] for line, mark in zip(lines, marks, strict=True) if mark]
    return "\n".join([*bare, *more])


@dataclass(frozen=True, slots=True)
class PageLimits:
    """The limits of a page with its footer. `wanted` is the number of lines that were asked for;
    with `numbered` they are numbered."""

    lines: int
    bytes: int
    wanted: int
    numbered: bool = False


def read_page(
    source: BinaryIO, *, line: int = 1, byte: int | None = None, limits: PageLimits, stop: Event
) -> Page:
    """Return the page that begins at a line (from 1), or at a byte of the file if `byte` is given.

    `source` holds UTF-8, perhaps after a byte order mark, and can seek. Raises ToolError for a
    position past the end.
    """
    size = source.seek(0, 2)
    source.seek(0)
    bom = len(codecs.BOM_UTF8) if source.read(3) == codecs.BOM_UTF8 else 0
    if byte is None:
        start = _find_line(source, line, bom, stop)
    else:
        start = _character_start(source, max(byte, bom), size)
        line = 1 + _count_newlines(source, 0, start, stop)
    cut = start > bom and _byte_before(source, start) != b"\n"
    number = line if limits.numbered else None
    source.seek(start)
    # Four bytes more than fit, so that a character at the limit is complete.
    window = source.read(limits.bytes + 4)
    at_end = start + len(window) >= size
    text, replaced = _decode(window, final=at_end)
    notes = [_REPLACED] if replaced else []
    if at_end and not text.strip():
        notes.append("nothing but blanks" if text else "the file is empty")
    room = max(limits.bytes - _FOOTER_BYTES, 16)
    lines = max(limits.lines - 1, 1)
    whole = (limits.lines, limits.bytes) if not notes else (lines, room)
    numbers = _Numbers(number, cut)
    # The rest of the file fits: no footer, unless there is something to note.
    if at_end and _fits(text, min(whole[0], limits.wanted), whole[1], numbers):
        footer = f"[{'; '.join(notes)}]" if notes else ""
        return Page(text, footer, number=number, cut=cut)
    text, used, ended = _cut(window, text, min(lines, limits.wanted), room, numbers)
    last = line + text.count("\n") - ended
    notes = [_REPLACED] if replaced and "\ufffd" in text else []
    if ended:
        total = ""
        if size <= _COUNTED_BYTES:
            source.seek(size - 1)
            open_end = source.read(1) != b"\n"
            total = f" of {_count_newlines(source, 0, size, stop) + open_end}"
        else:
            notes.insert(0, f"up to byte {start + used:,} of {formatting.size(size)}")
        place, next_page = f"lines {line}-{last}{total}", f"offset={last + 1}"
    else:
        place = f"line {last}, up to byte {start + used} of {size}"
        next_page = f"byte_offset={start + used}"
    footer = f"[{'; '.join([place, f'continue with {next_page}', *notes])}]"
    if ended:
        return Page(text, footer, next_line=last + 1, number=number, cut=cut)
    return Page(text, footer, next_byte=start + used, number=number, cut=cut)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The bytes that the numbers of a page's lines take: none if `first` is None."""

    first: int | None
    cut: bool

    def bytes_of(self, line: int) -> int:
        """Return the bytes for a line, counted from 0 on the page."""
        if self.first is None or (self.cut and line == 0):
            return 0
        return len(str(self.first + line)) + 1


def _fits(text: str, lines: int, size: int, numbers: _Numbers) -> bool:
    count = text.count("\n") + (not text.endswith("\n"))
    if count > lines:
        return False
    shown = text.count("\n") + (text != "" and not text.endswith("\n"))
    return len(text.encode()) + sum(map(numbers.bytes_of, range(shown))) <= size


def _cut(
    window: bytes, text: str, lines: int, room: int, numbers: _Numbers
) -> tuple[str, int, bool]:
    """Return the part of the page that fits: its text, its length in `window`, True if it ends a
    line.

    Text is never shorter than the bytes it came from: a character counts as its own bytes, and each
    U+FFFD, three bytes, replaces one to three bytes.
    """
    encoded = text.encode()
    if count := _whole_lines(encoded, lines, room, numbers):
        part = encoded[: _after_newlines(encoded, count)].decode()
        return part, _after_newlines(window, count), True

    room -= numbers.bytes_of(0)

    def size(length: int) -> int:
        return len(_decode(window[:length], final=False)[0].encode())

    low = bisect_right(range(min(len(window), room) + 1), room, key=size) - 1
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    part = decoder.decode(window[:low])
    return part, low - len(decoder.getstate()[0]), False


def _whole_lines(encoded: bytes, most: int, room: int, numbers: _Numbers) -> int:
    """Return the number of lines that fit with their newlines and numbers."""
    count = at = 0
    while count < most and (end := encoded.find(b"\n", at) + 1):
        room -= end - at + numbers.bytes_of(count)
        if room < 0:
            break
        count, at = count + 1, end
    return count


def _byte_before(source: BinaryIO, position: int) -> bytes:
    source.seek(position - 1)
    return source.read(1)


def _after_newlines(data: bytes, count: int) -> int:
    at = 0
    for _ in range(count):
        at = data.index(b"\n", at) + 1
    return at


def _decode(data: bytes, *, final: bool) -> tuple[str, bool]:
    """Decode bytes. The second value is True if anything was replaced."""
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=final)
    return text, "\ufffd" in text and text.encode() != data[: len(text.encode())]


def _find_line(source: BinaryIO, line: int, start: int, stop: Event) -> int:
    """Return the position of a line. Raises ToolError if there are fewer lines."""
    source.seek(start)
    position, passed, open_end = start, 0, False
    while passed < line - 1:
        chunk = _read(source, _CHUNK, stop)
        if not chunk:
            raise _past_end(line, passed + open_end)
        count = chunk.count(b"\n")
        if passed + count < line - 1:
            passed += count
            position += len(chunk)
            open_end = not chunk.endswith(b"\n")
            continue
        position += _after_newlines(chunk, line - 1 - passed)
        passed = line - 1
    source.seek(position)
    if line > 1 and not source.read(1):
        raise _past_end(line, passed)
    return position


def _past_end(line: int, lines: int) -> ToolError:
    return ToolError(
        f"offset={line} is past the end: the file has {lines} line{'s' * (lines != 1)}.",
        hint="Use a smaller offset.",
    )


def _character_start(source: BinaryIO, byte: int, size: int) -> int:
    """Return `byte`, or the start of the character that it is inside of."""
    if byte >= size > 0:
        raise ToolError(
            f"byte_offset={byte} is past the end: the file has {size} bytes.",
            hint="Use the byte_offset that the previous page named.",
        )
    back = min(3, byte)
    source.seek(byte - back)
    around = source.read(back + 3)
    for step in range(1, back + 1):
        for length in range(step + 1, 5):
            try:
                if len(around[back - step : back - step + length].decode()) == 1:
                    return byte - step
            except UnicodeDecodeError:
                continue
    return byte


def _count_newlines(source: BinaryIO, start: int, stop_at: int, stop: Event) -> int:
    source.seek(start)
    count, remaining = 0, stop_at - start
    while remaining > 0 and (chunk := _read(source, min(_CHUNK, remaining), stop)):
        count += chunk.count(b"\n")
        remaining -= len(chunk)
    return count


def _read(source: BinaryIO, size: int, stop: Event) -> bytes:
    if stop.is_set():
        raise InterruptedError("cancelled")
    return source.read(size)
