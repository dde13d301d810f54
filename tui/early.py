"""The first frame, before anything heavy is loaded: a prompt that already takes what is typed.

Imports little of the standard library and nothing else (no dataclasses, no typing). The real
screen takes over where this one stops: what was typed is handed over as text, and keys that were
not read yet stay in the terminal's buffer for the real prompt.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import termios
import threading
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

_ALT_SCREEN, _MAIN_SCREEN = b"\x1b[?1049h\x1b[?2004h", b"\x1b[?2004l\x1b[?1049l\x1b[?25h"
_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"
_NOT_THE_SCREEN = ("-p", "--print", "-h", "--help", "--version")

SUBCOMMANDS = ("run", "sessions", "doctor", "drill", "completion")
"""First words that do not open the full screen, as `tui.flags` has them."""


class Typed:
    """What was typed before the real screen stood: prompts that were sent, and one begun."""

    def __init__(self, sent: Sequence[str] = (), draft: str = "") -> None:
        self.sent = tuple(sent)
        self.draft = draft


def open_prompt(argv: Sequence[str]) -> EarlyPrompt | None:
    """A first frame for these words, if they open the full screen as far as a glance can tell."""
    if not (os.isatty(0) and os.isatty(1)) or os.environ.get("TERM", "dumb") == "dumb":
        return None
    if argv and argv[0] in SUBCOMMANDS:
        return None
    if any(word in _NOT_THE_SCREEN or word.startswith("--print=") for word in argv):
        return None
    try:
        prompt = EarlyPrompt()
        prompt.start()
    except (OSError, termios.error):
        return None
    return prompt


class EarlyPrompt:
    """A prompt line on the alternate screen. `start`, then `finish` exactly once.

    The terminal is put back by `finish(leave=True)`, or when the process ends without it.
    """

    def __init__(self) -> None:
        self._before = termios.tcgetattr(0)
        self._sent: list[str] = []
        self._line: str = ""
        self._pending: bytes = b""
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._rows = 24
        self._columns = 80
        self._over = False

    def start(self) -> None:
        """Paint, and take keys from here on."""
        atexit.register(self._restore)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _leave)
        raw = termios.tcgetattr(0)
        raw[0] &= ~(termios.IXON | termios.ICRNL | termios.INLCR)
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        raw[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(0, termios.TCSANOW, raw)
        self._columns, self._rows = os.get_terminal_size(1)
        self._paint()
        self._thread.start()

    def finish(self, *, leave: bool = False) -> Typed:
        """Stop taking keys and say what was typed. With `leave`, put the terminal back as well."""
        if not self._over:
            self._over = True
            os.write(self._wake_write, b"x")
            self._thread.join()
            os.close(self._wake_read)
            os.close(self._wake_write)
            atexit.unregister(self._restore)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            termios.tcsetattr(0, termios.TCSANOW, self._before)
            if leave:
                os.write(1, _MAIN_SCREEN)
        return Typed(self._sent, self._line)

    def _restore(self) -> None:
        self.finish(leave=True)

    def _listen(self) -> None:
        while True:
            ready, _, _ = select.select([0, self._wake_read], [], [])
            if self._wake_read in ready:
                return
            data = os.read(0, 65_536)
            if not data:
                return
            self._take(data)
            self._echo()

    def _take(self, data: bytes) -> None:
        """Keys as they come: printable text, backspace, paste, Enter. Others mean nothing yet."""
        data = self._pending + data
        text = data.decode("utf-8", "ignore")
        self._pending = b"" if text.encode() == data else data[len(text.encode()) :]
        at = 0
        while at < len(text):
            if text.startswith(_PASTE, at) and (end := text.find(_PASTE_END, at)) > 0:
                pasted = text[at + len(_PASTE) : end]
                self._line += pasted.replace("\r\n", "\n").replace("\r", "\n")
                at = end + len(_PASTE_END)
            elif text[at] == "\x1b":
                at = _after_escape(text, at)
            else:
                self._key(text[at])
                at += 1

    def _key(self, key: str) -> None:
        if key == "\r":
            if self._line.strip():
                self._sent.append(self._line)
            self._line = ""
        elif key == "\n":
            self._line += "\n"
        elif key in "\x7f\b":
            self._line = self._line[:-1]
        elif key == "\x15":
            self._line = ""
        elif key.isprintable():
            self._line += key

    def _paint(self) -> None:
        """The frame of the real screen, as far as it is the same for everyone."""
        rule = "─" * self._columns
        rows = self._rows
        parts = [
            _ALT_SCREEN.decode(),
            "\x1b[2J\x1b[1;2H\x1b[1mholdfast\x1b[0m",
            f"\x1b[{rows - 3};1H\x1b[2m{rule}\x1b[0m",
            f"\x1b[{rows - 1};1H\x1b[2m{rule}\x1b[0m",
            f"\x1b[{rows};2H\x1b[2mopening …\x1b[0m",
        ]
        os.write(1, "".join(parts).encode())
        self._echo()

    def _echo(self) -> None:
        """The prompt line: the end of what was typed, as much as fits."""
        line = self._line.rsplit("\n", 1)[-1]
        room = max(1, self._columns - 5)
        shown = line[-room:]
        while sum(map(_cells, shown)) > room:
            shown = shown[1:]
        row = self._rows - 2
        mark = f"\x1b[{row};2H\x1b[1m❯\x1b[0m "
        os.write(1, f"{mark}\x1b[K{shown}".encode("utf-8", "replace"))


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _after_escape(text: str, at: int) -> int:
    """Where the key goes on after an escape sequence."""
    if text[at + 1 : at + 2] not in {"[", "O"}:
        return at + 1
    end = at + 2
    while end < len(text) and not "@" <= text[end] <= "~":
        end += 1
    return end + 1
