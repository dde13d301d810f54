"""A terminal as the program reaches it: its screen, its keyboard, and whoever watches it.

The terminal itself is the keeper's (`tui.keeper.terminal`): it lives on without the program.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from msgspec.json import decode as json_decode

from tui.core.dataclass import replace
from tui.core.messages import list_of, object_of, string_of
from tui.core.terminal_screen import Row, TerminalScreen, row_of_json
from tui.core.text_cleaning import one_line
from tui.keeper import folder as names
from tui.keeper.command import note

Typist: TypeAlias = Literal["model", "person", "secret"]
"""The one whose input it is; a secret is the person's answer to a question of a program."""

Refusal: TypeAlias = Literal["", "secret", "keyboard", "changed", "full", "over", "ended"]
"""The reason why input was not written: the program reads a secret, the person has the keyboard,
another program has the terminal than the one the input was judged for, the program doesn't read its
input, it doesn't read a secret any more, or it has ended."""

_LINE_BYTES: Final = 8 * 1024**2
"""Bytes of an answer's line: the lines that have left at the top."""
_PART_BYTES: Final = 128 * 1024
"""Bytes of rows that are read in one turn of the loop, about two milliseconds: a screen of the
largest size, each cell in a color of its own, has three million."""
_UNREAD_CHARS: Final = 64 * 1024
_UNKNOWN: Final = "\0"
_LINE_ENDS: Final = re.compile(r"[\r\n\x0f]")
"""The keys with which a shell takes a line: Enter, Ctrl+J, and Ctrl+O of readline."""
_CONNECT_S: Final = 5.0
_RETRY_S: Final = 0.2


class TerminalWatcher(Protocol):
    """Hears of changes, several times a second at most, in the event loop."""

    def terminal_changed(self, terminal: TerminalLink) -> None: ...


class TerminalLink:
    """A terminal of this session. Everything is for the event loop's thread.

    `screen` is the last one that is known: as of the last `refresh`, or of the last change while
    somebody watches. After the program's end it is the final one. `program` is the one that has
    the terminal now, "" if that isn't known. `typed`: the person had the keyboard since the model
    was told so.
    """

    def __init__(
        self, folder: Path, size: tuple[int, int] = (24, 80), *, taken_over: bool = False
    ) -> None:
        """`taken_over`: an earlier run of the program had it, and may have begun a line."""
        self.screen = TerminalScreen(*size)
        self.program = ""
        self.ended = False
        self.typed = False
        self.line = ""
        """The last line that the model typed."""
        self.modes: Mapping[str, bool] = {}
        self.seen_lines = 0
        """Number of the lines that have left at the top, of which the model knows."""
        self.dropped = 0
        """Bytes of the model's input that were never typed: others had the terminal, or a question
        for a secret had come, before there was room for them."""
        self._folder = folder
        self._held = False
        self._unread = _UNKNOWN if taken_over else ""
        """What the model has typed since the last Enter; what others have isn't known."""
        self._marks: dict[str, str] = {}
        """The programs for which calls were judged, by the id of each."""
        self._watchers: list[TerminalWatcher] = []
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = count(1)
        self._connecting = asyncio.Lock()
        self._news = asyncio.Event()

    @property
    def held(self) -> bool:
        """True if the person has the keyboard: the model's input is refused."""
        return self._held

    async def refresh(self, *, since: int | None = None) -> TerminalScreen:
        """Return the screen as it is now. With `since`, `recent` has the lines that have left at
        the top since that many had (`gone`), the newest if there are too many."""
        if not self.ended:
            answer = await self._ask({"do": "look", "since": since}) or {}
            if seen := object_of(answer.get("screen")):
                self._take(seen, answer["lines"])
        return self.screen

    @property
    def in_line(self) -> bool:
        """True if something may have been typed since the last Enter: a program may have read a
        part of that, or all of it, so that it isn't in the next line."""
        return bool(self._unread)

    def line_with(self, data: str) -> str:
        """Return the lines that the program would have read once it gets this input from the
        model; "" while there is no whole one. What keys change about them isn't known."""
        text = f"{self._unread}{data}".replace("\x1b[200~", "").replace("\x1b[201~", "")
        return "\n".join(filter(str.strip, _LINE_ENDS.split(text)[:-1]))

    async def judged(self, call_id: str) -> list[list[str]]:
        """The programs whose terminal this is, whichever has it now: the name of each, then the
        words that started it. What the call types reaches only the one that has it now: where a
        call is judged again, the one that had it the first time."""
        answer = {} if self.ended else await self._ask({"do": "programs"}) or {}
        if mark := string_of(answer.get("mark")):
            self._marks.setdefault(call_id, mark)
        listed = (list_of(one) for one in list_of(answer.get("programs")))
        return [[string_of(word) for word in words] for words in listed if words]

    def watch(self, watcher: TerminalWatcher) -> None:
        """Let somebody hear of changes; `screen` follows from now on."""
        if watcher not in self._watchers:
            self._watchers.append(watcher)
        if self._following is None and not self.ended:
            self._following = asyncio.create_task(self._follow(), name="terminal")

    def unwatch(self, watcher: TerminalWatcher) -> None:
        """Undo `watch`; does nothing for one that doesn't watch."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    async def type(self, data: bytes | bytearray, by: Typist, *, call_id: str = "") -> Refusal:
        """Write input, as the bytes that a terminal sends; "" if it was written. That of the model
        is refused while the program reads a secret, and where another one has the terminal than
        the one for which the call was `judged`, which the keeper checks as it writes; a secret is
        once the program reads none. Neither the person's nor a secret is in the recording."""
        mark = self._marks.pop(call_id, None)
        if self.ended:
            return "ended"
        if by == "model" and self._held:
            return "keyboard"
        if by == "person":
            self.typed = True
        answer = await self._ask({"do": "type", "by": by, "for": mark}, data)
        if answer is None:
            return "ended"
        refused = "full" if "error" in answer else string_of(answer.get("refused"))
        if by == "person" and not refused:
            self._unread = "" if data.endswith((b"\r", b"\n")) else _UNKNOWN
        if by == "model" and not refused:
            self.line = self.line_with(data.decode()) or self.line
            text = _LINE_ENDS.split(f"{self._unread}{data.decode()}")[-1].rpartition("\x03")[2]
            cut = len(text) > _UNREAD_CHARS
            self._unread = f"{text[:_UNREAD_CHARS]}{_UNKNOWN}" if cut else text
        return cast("Refusal", refused)

    async def hold(self, *, held: bool) -> None:
        """Let the person have the keyboard, or give it back. The model hears of it with its next
        result, without what was typed."""
        if held == self._held:
            return
        self._held = held
        what = "the person has the keyboard" if held else "the model has the keyboard"
        await self._ask({"do": "mark", "text": what})

    async def resize(self, rows: int, cols: int) -> None:
        """Give it another size, 200 × 500 at most; the program in it gets SIGWINCH."""
        await self._ask({"do": "resize", "rows": rows, "cols": cols})
        await self.refresh()

    async def finish(self) -> None:
        """Take the final screen: the program has ended."""
        last = await asyncio.to_thread(note, self._folder, names.SCREEN)
        if last:
            self._take(last)
        self._end()

    def close(self) -> None:
        """Let go of it; it lives on. May be called again."""
        for task in (self._listening, self._following):
            if task is not None:
                task.cancel()
        self._listening = self._following = None
        self._drop()

    def _take(self, seen: dict[str, Any], lines: tuple[Row, ...] | None = None) -> None:
        with suppress(ValueError):  # what is no screen leaves the last one
            screen = TerminalScreen.of_json(seen)
            self.screen = screen if lines is None else replace(screen, lines=lines)
        self.program = one_line(string_of(seen.get("program")))  # a program calls itself anything
        dropped = seen.get("dropped", 0)
        if isinstance(dropped, int) and dropped > self.dropped:
            self.dropped, self._unread = dropped, _UNKNOWN
        modes = object_of(seen.get("modes"))
        self.modes = {name: bool(value) for name, value in modes.items()}

    def _end(self) -> None:
        self.ended = True
        self._held = False
        self._drop()
        self._tell()

    def _tell(self) -> None:
        for watcher in tuple(self._watchers):
            watcher.terminal_changed(self)

    async def _follow(self) -> None:
        """Keep `screen` as it is, while somebody watches."""
        try:
            while self._watchers and not self.ended:
                self._news.clear()
                if await self._ask({"do": "follow"}) is None:
                    await asyncio.sleep(_RETRY_S)  # its keeper was killed: the end is on its way
                    continue
                while self._watchers and self._writer is not None:
                    await self.refresh()
                    self._tell()
                    await self._news.wait()
                    self._news.clear()
        finally:
            self._following = None

    async def _ask(
        self, asked: dict[str, Any], data: bytes | bytearray = b""
    ) -> dict[str, Any] | None:
        """Ask the keeper; None if it is gone."""
        try:
            writer = await self._connected()
            number = next(self._numbers)
            answer = asyncio.get_running_loop().create_future()
            self._answers[number] = answer
            try:
                head = json.dumps({**asked, "id": number, "bytes": len(data)}).encode()
                writer.write(head + b"\n")
                writer.write(data)
                await writer.drain()
                return await answer
            finally:
                self._answers.pop(number, None)
        except OSError:
            return None

    async def _connected(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._writer is None:
                connection = await asyncio.to_thread(_connected, self._folder)
                reader, self._writer = await asyncio.open_connection(
                    sock=connection, limit=_LINE_BYTES
                )
                self._listening = asyncio.create_task(self._listen(reader), name="terminal link")
            return self._writer

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError, ValueError):
            while line := await reader.readline():
                message = object_of(json_decode(line))
                message["lines"] = await _rows(reader, message.get("rows", 0))
                answer = self._answers.get(message.get("id", 0))
                if answer is not None and not answer.done():
                    answer.set_result(message)
                elif "changed" in message:
                    self._news.set()
        self._listening = None
        self._drop()

    def _drop(self) -> None:
        """Close the connection: what waits for an answer gets none."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError())
        self._news.set()


async def _rows(reader: asyncio.StreamReader, count: int) -> tuple[Row, ...]:
    """Read the rows behind an answer, and let others have their turn. Raises ValueError."""
    rows: list[Row] = []
    room = _PART_BYTES
    for _ in range(count):
        line = await reader.readline()
        rows.append(row_of_json(line))
        room -= len(line)
        if room < 0:
            room = _PART_BYTES
            await asyncio.sleep(0)
    return tuple(rows)


def _connected(folder: Path) -> socket.socket:
    """A connection to the keeper of a folder. Blocks. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_CONNECT_S)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The system takes short paths only.
        if sys.platform == "linux":
            connection.connect(f"/proc/self/fd/{place}/{names.TERMINAL}")
        else:
            with tempfile.TemporaryDirectory(prefix="hf-") as short:
                (Path(short) / "f").symlink_to(folder)
                connection.connect(f"{short}/f/{names.TERMINAL}")
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(place)
    connection.setblocking(False)
    return connection
