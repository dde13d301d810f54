"""The output of a command: bounded in memory, clean for display; its keeper has all of it on disk.

Bytes go to the file as they came. The text for the model and the person is decoded from UTF-8 with
replacement, without control characters, and is what a terminal would show (`TerminalText`); the
person's keeps its colors. All of it is fed in a thread.
"""

from __future__ import annotations

import codecs
from collections import deque
from pathlib import Path

from tui.core.config import Guard
from tui.core.errors import StorageError
from tui.core.formatting import size
from tui.core.late_pattern import late_pattern
from tui.core.messages import RawOutput
from tui.core.private_files import private_copy, private_link
from tui.core.text_cleaning import COLOURS
from tui.core.workspace import text_of_path
from tui.keeper.command import CommandEnd
from tui.keeper.folder import LIMIT
from tui.tools.terminal_text import MOVES, ShownText, TerminalText

SPILL_AFTER = 48 * 1024
"""Smaller outputs are in no file unless something is cut."""

_COPIED_AT_ONCE = 1 << 20

_ESCAPE = late_pattern(
    r"\x1b(?:\[[0-?]{0,999}[ -/]{0,99}[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|[PX^_][^\x1b]{0,4096}\x1b\\"  # DCS and other strings
    r"|[ -/]{1,99}[0-~]|[0-OQ-WYZ\\`-~])"
)
_UNFINISHED = late_pattern(
    r"\x1b(?:\[[0-?]{0,999}[ -/]{0,99}|\][^\x07\x1b]{0,4096}\x1b?|[PX^_][^\x1b]{0,4096}\x1b?"
    r"|[ -/]{0,99})"
)
"""The start of an escape sequence that more bytes may complete."""

_OTHER = rf"(?!{COLOURS}|{MOVES})".replace(r"\x1b", "")
"""Behind an escape character, whatever `TerminalText` does not know."""
_DROPPED = late_pattern(rf"\x1b{_OTHER}{_ESCAPE.pattern.removeprefix(chr(92) + 'x1b')}|\x07")
_CONTROL = late_pattern(rf"[\x00-\x06\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]|\x1b{_OTHER}")
_CLEANED = bytes(code for code in (*range(32), 127) if code not in b"\t\n")
"""The bytes of ASCII that `Cleaner` cleans."""


class Cleaner:
    """Decodes bytes, in pieces, to text for `TerminalText`: without control characters and escape
    sequences but colors, moves, backspaces, and carriage returns that are not before a newline."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._return = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the text that is final; the start of an unfinished sequence is held back."""
        decoded = self._held + self._decoder.decode(data, final)
        if not self._return and _is_plain(decoded):
            return decoded
        ready = decoded if final else decoded[: _certain(decoded)]
        self._held = decoded[len(ready) :]
        plain = self._return + _DROPPED.sub("", ready)
        self._return = "\r" if plain.endswith("\r") and not final else ""
        plain = plain.removesuffix(self._return)
        return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", plain.replace("\r\n", "\n"))


def _is_plain(text: str) -> bool:
    """True if a text is ASCII without control characters, so that nothing has to be cleaned.

    Most output is; checking all bytes at once takes a fifth of the time of a search.
    """
    return text.isascii() and len(text.encode().translate(None, _CLEANED)) == len(text)


def _certain(text: str) -> int:
    """Return the length of the part of `text` whose meaning no later piece can change."""
    at = text.find("\x1b")
    while at >= 0:
        whole = _ESCAPE.match(text, at)
        if whole is None and _UNFINISHED.fullmatch(text, at):
            return at
        at = text.find("\x1b", whole.end() if whole else at + 1)
    return len(text)


class Capture:
    """One output: head and tail in memory; all of it is in the file that its keeper writes.

    `feed` returns what the new bytes show the person, in its colors; a carriage return in it starts
    its line over. After `close`, `text` is what is in memory, `raw`
    describes the whole output, and `full` is the file, if it is larger than SPILL_AFTER.
    """

    def __init__(self, limits: Guard) -> None:
        memory_chars = limits.memory_chars
        self.bytes = 0
        self.truncated = False
        self.full: Path | None = None
        self._limits = limits
        self._end: CommandEnd | None = None
        self._lost = ""
        self._newlines = 0
        self._open_end = False
        self._cleaner = Cleaner()
        self._terminal = TerminalText()
        self._dropped = 0
        self._first: list[bytes] = []
        self._head: list[str] = []
        self._head_room = memory_chars // 2
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._tail_room = memory_chars - memory_chars // 2

    @property
    def begins(self) -> bool:
        """True as long as there is room for the beginning."""
        return self._head_room > 0

    def feed(self, data: bytes) -> str:
        self.bytes += len(data)
        self._newlines += data.count(b"\n")
        self._open_end = not data.endswith(b"\n") if data else self._open_end
        if self.bytes <= SPILL_AFTER:
            self._first.append(data)
        elif self._first:
            self._first = []
        return self._take(self._terminal.feed(self._cleaner.feed(data)))

    def skip(self, count: int) -> None:
        """Pass over bytes that are in the file, or lost. No character, sequence or line goes on
        behind them."""
        self._take_rest()
        self._dropped += self._terminal.dropped
        self._cleaner, self._terminal = Cleaner(), TerminalText()
        self.bytes += count
        self._first = []
        self._head_room = 0
        self._tail.clear()
        self._tail_chars = 0
        self.truncated = True

    def close(self, end: CommandEnd | None, output: Path, place: Path | None) -> str:
        """End the output, with its keeper's report (None: the command keeps running). `output` is
        its file; a long one gets the name `place` too, or the first free one next to it (None:
        nobody will read it). Returns the last text. Blocks."""
        self._end, last = end, ""
        if end is not None and end.bytes > self.bytes:
            self.skip(max(0, end.bytes - self.bytes - len(end.tail)))
            last = self.feed(end.tail[-(end.bytes - self.bytes) :]) if end.tail else ""
        last += self._take_rest()
        self._lost = truncation_reason(end, self._limits) if end else ""
        in_file = end.written if end is not None else self.bytes
        if in_file and place and self.bytes > SPILL_AFTER:
            try:
                self.full = keep_output(output, place, end=None if end else in_file)
            except (OSError, StorageError) as error:
                self._lost = str(error)
        return last

    def _take_rest(self) -> str:
        rest = self._take(self._terminal.feed(self._cleaner.feed(b"", final=True)))
        return rest + self._take(self._terminal.close())

    def _take(self, shown: ShownText) -> str:
        self._keep(shown.final)
        return shown.live

    @property
    def picture(self) -> str:
        """The lines that are drawn over now, as in `TerminalText`."""
        return self._terminal.picture

    @property
    def raw(self) -> RawOutput:
        end = self._end
        counted = end is not None and end.bytes == self.bytes
        whole = counted and end is not None and end.written == end.bytes
        return RawOutput(
            self.bytes,
            end.lines if counted and end else self._newlines + self._open_end,
            self.truncated,
            self._lost,
            b"".join(self._first) if self.bytes <= SPILL_AFTER else None,
            self._dropped + self._terminal.dropped,
            end.sha256 if whole and end else "",
        )

    @property
    def text(self) -> str:
        """The text in memory, with a marker in place of the missing part."""
        tail = "".join([*self._tail, self._terminal.held])
        if not self.truncated:
            return "".join(self._head) + tail
        tail = tail[-self._tail_room :]
        place = text_of_path(self.full) if self.full else ""
        outcome = f"the whole output is in {place}" if place else "the whole output is kept"
        if self._lost:
            written = self._end.written if self._end else 0
            outcome = (
                f"its first {size(written)} are in {place}, no more was kept: {self._lost}"
                if place
                else f"it couldn't be kept: {self._lost}"
            )
        marker = f"[… the middle of {self.bytes} bytes isn't shown here; {outcome} …]"
        return f"{''.join(self._head)}\n\n{marker}\n\n{tail}"

    def _keep(self, text: str) -> None:
        later = text
        if self._head_room:
            self._head.append(text[: self._head_room])
            later = text[self._head_room :]
            self._head_room -= len(self._head[-1])
        if later:
            self._tail.append(later)
            self._tail_chars += len(later)
        while self._tail and self._tail_chars - len(self._tail[0]) >= self._tail_room:
            self._tail_chars -= len(self._tail.popleft())
            self.truncated = True
        self.truncated = self.truncated or self._tail_chars > self._tail_room


def truncation_reason(end: CommandEnd, limits: Guard) -> str:
    """Explain why the file of an output does not hold all of it; "" if it does."""
    if end.written == end.bytes:
        return ""
    if end.stopped == LIMIT:
        return f"the limit is {size(limits.spill_max_bytes)}"
    return end.stopped or "the process that kept it was killed"


def keep_output(output: Path, place: Path, *, start: int = 0, end: int | None = None) -> Path:
    """Give a complete output its lasting name, or one next to it; with `end`, copy the bytes up to
    it. Returns the path in use. Blocks. Raises OSError and StorageError."""
    if end is None:
        return private_link(output, place)
    with private_copy(place) as copy, output.open("rb") as file:
        file.seek(start)
        while start < end and (data := file.read(min(end - start, _COPIED_AT_ONCE))):
            start += len(data)
            copy.write(data)
    return Path(str(copy.name))
