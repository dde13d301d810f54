"""What a command printed: bounded in memory, whole on disk, and clean enough to show.

Bytes go to the file as they came. The text for the model and the person is decoded from UTF-8
with replacement, without escape sequences and control characters; the model's has of a line that
was overwritten again and again the last state. All of it is fed in a thread.
"""

from __future__ import annotations

import codecs
import os
import re
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from tui.core.errors import StorageError
from tui.core.messages import RawOutput
from tui.core.storage.private_files import private_file
from tui.tools.base import OutputLimits
from tui.tools.carriage_returns import Overwrites
from tui.tools.text_decoding import size_text

SPILL_AFTER = 48 * 1024
"""Smaller outputs are in no file unless something is cut."""

_CHECK_FREE_EVERY = 64 * 1024**2

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]{0,999}[ -/]{0,99}[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|[PX^_][^\x1b]{0,4096}\x1b\\"  # DCS and other strings
    r"|[ -/]{1,99}[0-~]|[0-OQ-WYZ\\`-~])"
)
_UNFINISHED = re.compile(
    r"\x1b(?:\[[0-?]{0,999}[ -/]{0,99}|\][^\x07\x1b]{0,4096}\x1b?|[PX^_][^\x1b]{0,4096}\x1b?"
    r"|[ -/]{0,99})"
)
"""The start of an escape sequence that more bytes may complete."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class Cleaner:
    """Bytes in pieces → text without escape sequences and control characters.

    Of these are left newlines, tabs, and carriage returns that stand alone.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._return = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """The text that is certain so far; the start of an unfinished sequence is held back."""
        decoded = self._held + self._decoder.decode(data, final)
        ready = decoded if final else decoded[: _certain(decoded)]
        self._held = decoded[len(ready) :]
        plain = self._return + _ESCAPE.sub("", ready)
        self._return = "\r" if plain.endswith("\r") and not final else ""
        plain = plain.removesuffix(self._return)
        return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", plain.replace("\r\n", "\n"))


def _certain(text: str) -> int:
    """Up to where no later piece can change what `text` means."""
    at = text.find("\x1b")
    while at >= 0:
        whole = _ESCAPE.match(text, at)
        if whole is None and _UNFINISHED.fullmatch(text, at):
            return at
        at = text.find("\x1b", whole.end() if whole else at + 1)
    return len(text)


class Spill:
    """A private file that takes bytes until a limit, then counts on without writing (L29)."""

    def __init__(self, path: Path, limits: OutputLimits) -> None:
        self.path = path
        self.offered = 0
        self.written = 0
        self.stopped = ""
        self._most = limits.spill_max_bytes
        self._min_free = limits.spill_min_free_bytes
        self._next_check = 0
        self._file: BinaryIO | None = None

    def write(self, data: bytes) -> None:
        """Append. Never raises: `stopped` says why no more is kept.

        What counts as `written` is in the file: it can be read there at once.
        """
        self.offered += len(data)
        if self.stopped:
            return
        try:
            file = self._file or self._open()
            if self.written >= self._next_check:
                self._next_check += _CHECK_FREE_EVERY
                disk = os.fstatvfs(file.fileno())
                if disk.f_bavail * disk.f_frsize < self._min_free:
                    self.stopped = "the disk is nearly full"
                    return
            file.write(data[: self._most - self.written])
            file.flush()
        except (OSError, StorageError) as error:
            self.stopped = str(error)
            return
        self.written = min(self.written + len(data), self._most)
        if self.written == self._most:
            self.stopped = f"the limit is {size_text(self._most)}"

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # a write that failed, tried again
                self._file.close()

    def _open(self) -> BinaryIO:
        self._file = file = private_file(self.path)
        self.path = Path(str(file.name))
        return file


class Capture:
    """One output: head and tail in memory, everything in a file once it is worth one.

    `feed` returns the text of the new bytes, every state of a line as one of its own. After
    `close`, `text` is what is held, `raw` what there was and `full` the file, if it was worth one.
    """

    def __init__(self, path: Path, limits: OutputLimits) -> None:
        memory_chars = limits.memory_chars
        self.bytes = 0
        self.truncated = False
        self._newlines = 0
        self._open_end = False
        self._cleaner = Cleaner()
        self._overwrites = Overwrites()
        self._first: list[bytes] = []
        self._spill = Spill(path, limits)
        self._head: list[str] = []
        self._head_room = memory_chars // 2
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._tail_room = memory_chars - memory_chars // 2

    def feed(self, data: bytes) -> str:
        self.bytes += len(data)
        self._newlines += data.count(b"\n")
        self._open_end = not data.endswith(b"\n") if data else self._open_end
        if self.bytes <= SPILL_AFTER:
            self._first.append(data)
        else:
            if self._first:
                self._spill.write(b"".join(self._first))
                self._first = []
            self._spill.write(data)
        text = self._cleaner.feed(data)
        self._keep(self._overwrites.feed(text))
        return text.replace("\r", "\n")

    def close(self) -> str:
        """No more will come. Returns the last text."""
        last = self._cleaner.feed(b"", final=True)
        self._keep(self._overwrites.feed(last) + self._overwrites.close())
        self._spill.close()
        return last.replace("\r", "\n")

    @property
    def full(self) -> Path | None:
        return self._spill.path if self._spill.written else None

    @property
    def raw(self) -> RawOutput:
        return RawOutput(
            self.bytes,
            self._newlines + self._open_end,
            self.truncated,
            self._spill.stopped,
            b"".join(self._first) if self.bytes <= SPILL_AFTER else None,
            self._overwrites.dropped,
        )

    @property
    def text(self) -> str:
        """What is held, a marker in the place of what is not."""
        tail = "".join(self._tail)
        if not self.truncated:
            return "".join(self._head) + tail
        tail = tail[-self._tail_room :]
        kept = f"the whole output is in {self.full}" if self.full else "the whole output is kept"
        if self._spill.stopped:
            kept = (
                f"its first {size_text(self._spill.written)} are in {self.full}, "
                f"no more was kept: {self._spill.stopped}"
                if self.full
                else f"it could not be kept: {self._spill.stopped}"
            )
        marker = f"[… the middle of {self.bytes} bytes is not shown here; {kept} …]"
        return f"{''.join(self._head)}\n\n{marker}\n\n{tail}"

    def _keep(self, text: str) -> None:
        rest = text
        if self._head_room:
            self._head.append(text[: self._head_room])
            rest = text[self._head_room :]
            self._head_room -= len(self._head[-1])
        if rest:
            self._tail.append(rest)
            self._tail_chars += len(rest)
        while self._tail and self._tail_chars - len(self._tail[0]) >= self._tail_room:
            self._tail_chars -= len(self._tail.popleft())
            self.truncated = True
        self.truncated = self.truncated or self._tail_chars > self._tail_room
