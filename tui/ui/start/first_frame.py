"""The first frame, before anything heavy is loaded: a prompt that already takes typing.

Imports little of the standard library and nothing slow (no dataclasses, no typing). The real screen
takes over where this one stops: typed text is handed over, and keys that were not read yet stay in
the terminal's buffer for the real prompt.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import termios
import threading
import unicodedata

from tui.core import plain_detection, theme_cache
from tui.core.terminal_input import PAUSE_S, SHIFT_ENTER, TerminalInput, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import FrameType
    from typing import Any

    from tui.core.terminal_input import InputPart

ALT_SCREEN = "\x1b[?1049h"
CLEAR = "\x1b[0m\x1b[H\x1b[2J"
"""Written before the alternate screen is left: a terminal without one would keep the picture, with
the next line in the middle of it."""
_MAIN_SCREEN = f"{CLEAR}\x1b[?2004l\x1b[?1049l\x1b[?25h".encode()
_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_BASE_URL")
_OLD = ("-c", "--continue", "-r", "--resume")
"""Arguments that open an existing session."""
_NOT_THE_SCREEN = ("-p", "--print", "--bg", "-h", "--help", "--version")

_UNHEEDED = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
_DEADLY = (
    *(signal.SIGQUIT, signal.SIGABRT, signal.SIGXCPU),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM),
)
_UNHEEDED.update(dict.fromkeys(_DEADLY, signal.SIG_DFL))
"""Default handlers of the signals that end a program. After the deadly ones the system says so, and
some leave a core dump."""

_ALL = 1 << 30
"""More characters than a line can have: nothing was pasted."""

SUBCOMMANDS = (
    *(
        "run",
        "replay",
        "review",
        "work",
        "cluster",
        "sessions",
        "bisect",
        "import-settings",
        "blame",
    ),
    *("usage", "report", "rescue", "mcp", "plugin", "acp", "ps", "attach", "logs", "stop"),
    *("desk", "serve", "doctor", "self-test", "tour", "drill", "help", "completion", "schema"),
)
"""First words that do not open the full screen, as listed in `tui.app.options.flags`."""

QUIT_WORDS = ("exit", "quit", ":q", ":q!", ":wq")
"""Whole prompts that leave the program, as in a shell or an editor; a space before sends them."""

_KEYS_END = "~^$@uABCDEFHPQSZ"
"""Last characters of sequences that are keys. Others are reports."""

SMALL_ROWS = 22
"""Below this many rows the real screen has no line under the prompt."""

COLUMN = 72
"""Cells of the column in which a new session begins, including its prompt."""

TAGLINE = "A terminal agent that never loses your work."


def is_command(line: str) -> bool:
    """True for a line that does something other than be sent: a command, or a note to keep."""
    return line.startswith(("/", "# ")) or line.rstrip() in QUIT_WORDS


def prompt_place(columns: int, rows: int) -> tuple[int, int]:
    """Return the place of a new session's prompt: the cells on either side and the empty rows
    below.

    Used by the first frame and by the real screen, so that nothing jumps.
    """
    return max(0, (columns - COLUMN) // 2), (rows - 16) // 2 * (rows >= SMALL_ROWS)


def welcome_place(columns: int, rows: int) -> tuple[int, int, int]:
    """Return the column, row and width of the welcome screen's page.

    The first frame shows its head there, and so does the real screen until it knows whether it has
    to ask anything.
    """
    width = min(76, columns - 2)
    above = 0 if rows < 23 else 2 if rows < 28 else 1 if rows < 36 else (rows - 22) // 3
    return (columns - width) // 2, above, width


class EarlyInput:
    """Input from before the real screen was there: prompts that were sent, and a draft.

    `pasted` are the pastes in the draft. `typed` has, for each of these texts, how many of its
    first characters were typed, not pasted.
    """

    def __init__(
        self,
        sent: Sequence[str] = (),
        draft: str = "",
        pasted: Sequence[str] = (),
        typed: Sequence[int] = (),
    ) -> None:
        self.sent = tuple(sent)
        self.draft = draft
        self.pasted = tuple(pasted)
        self.typed = tuple(typed) or (*map(len, sent), len(draft))


def open_prompt(argv: Sequence[str]) -> EarlyPrompt | None:
    """Show a first frame if these arguments open the full screen, as far as a glance can tell.
    Standard input and output are a terminal."""
    if plain_detection.why(argv):
        return None
    if argv and argv[0] in SUBCOMMANDS:
        return None
    if any(word in _NOT_THE_SCREEN or word.startswith("--print=") for word in argv):
        return None
    try:
        prompt = EarlyPrompt(argv)
        prompt.start()
    except (OSError, termios.error):
        return None
    return prompt


class EarlyPrompt:
    """A prompt line on the alternate screen. Call `start`, then `finish`.

    `finish` leaves the picture and the raw modes for the real screen. `finish(leave=True)`, the end
    of the process, or a signal that ends it restores the terminal and prints what was typed until
    then, since nobody else has it.

    `fresh` is true if a new session is expected; its prompt is in the middle. `welcoming` is true
    if nothing has been opened here yet and no API key is in sight: the welcome screen will probably
    come, so its head is shown, and no prompt. `before` are the terminal's modes from before, `over`
    is true once no more keys are taken, `look` is the remembered theme.

    A key that means more than a change of the text waits for the real screen, and so does what
    comes after it: `rest` is what was read of that, and `input` holds what had begun. The next
    reader continues with both.
    """

    def __init__(self, argv: Sequence[str] = ()) -> None:
        self.before = termios.tcgetattr(0)
        self.over = False
        self.look = theme_cache.load()
        self.fresh = not any(word in _OLD or word.startswith(_OLD) for word in argv)
        self.welcoming = not (self.look or any(map(os.environ.get, _KEYS)))
        self.welcoming &= not any(word.startswith("--practice") for word in argv)
        self._sent: list[str] = []
        self._line = ""
        self._pasted: list[str] = []
        self._typed = _ALL
        self._sent_typed: list[int] = []
        self.input = TerminalInput()
        self.rest: list[InputPart] = []
        self._failure: Exception | None = None
        self._stands = False
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._columns, self._rows = os.get_terminal_size(1)
        beside, below = prompt_place(self._columns, self._rows) if self.fresh else (0, 0)
        self._beside, self._foot = beside, self._rows - below
        """Cells left and right of the prompt, and the row of what would be the last line."""
        truecolor = os.environ.get("COLORTERM", "") in {"truecolor", "24bit"}
        self._coloured = bool(self.look) and truecolor and not os.environ.get("NO_COLOR")

    def start(self) -> None:
        """Paint, and take keys from now on."""
        atexit.register(self._restore)
        for number in _UNHEEDED:
            signal.signal(number, self._leave)
        raw = termios.tcgetattr(0)
        raw[0] &= ~(termios.IXON | termios.ICRNL | termios.INLCR)
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        raw[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(0, termios.TCSANOW, raw)
        if self._readable(0):  # typed before: the terminal turned Enter into newlines
            self._take(self.input.feed(os.read(0, 65_536).replace(b"\n", b"\r")))
        self._stands = True
        self.paint()
        self._thread.start()

    def finish(self, *, leave: bool = False) -> EarlyInput:
        """Stop taking keys and return what was typed.

        With `leave`, restore the terminal as well; otherwise raise the error that taking keys
        failed with.
        """
        if not self.over:
            self.over = True
            os.write(self._wake_write, b"x")
            if self._thread.is_alive():  # not alive if a signal came while it was being started
                self._thread.join()
                os.close(self._wake_read)
                os.close(self._wake_write)
        if leave:
            if self._stands:
                try:  # noqa: SIM105 - contextlib would be one more import
                    _write(_MAIN_SCREEN + self._unsent())
                except OSError:
                    pass  # the terminal has gone
            _set_modes(self.before)
            atexit.unregister(self._restore)
            for number, handler in _UNHEEDED.items():
                signal.signal(number, handler)
        elif self._failure:
            raise self._failure
        self._stands = False
        typed = (*self._sent_typed, min(self._typed, len(self._line)))
        return EarlyInput(self._sent, self._line, self._pasted, typed)

    def _unsent(self) -> bytes:
        """Return what was typed, to be printed because it will not be sent; empty if it may be a
        key for the welcome screen."""
        if self.welcoming:
            return b""
        typed = "\n".join(filter(str.strip, (*self._sent, self._line))).replace("\r", "\n")
        lines = ["".join(filter(is_text, line)) for line in typed.split("\n")]
        message = "Not sent: " + "\n  ".join(lines) + "\n" if typed else ""
        return message.encode("utf-8", "replace")

    def _leave(self, number: int, _frame: FrameType | None) -> None:
        if self.over:
            raise SystemExit(128 + number)
        # No exception: while modules are being imported, it may get lost.
        self.finish(leave=True)
        if number in _DEADLY:
            os.kill(os.getpid(), number)
        os._exit(128 + number)

    def _restore(self) -> None:
        self.finish(leave=True)

    def _listen(self) -> None:
        try:
            self._take_keys()
        except OSError:
            return  # the terminal has gone, as the real screen will notice
        except Exception as error:  # noqa: BLE001 - raised by `finish`
            self._failure = error

    def _take_keys(self) -> None:
        while True:
            ready, _, _ = select.select([0, self._wake_read], [], [], self.input.patience_s)
            if self._wake_read in ready:
                # Wait for the rest of a key that has begun.
                break
            if ready:
                data = os.read(0, 65_536)
                if not data:
                    return
                self._take(self.input.feed(data))
            self._take(self.input.tick())
            self._echo()
            if self.rest:
                select.select([self._wake_read], [], [])
                break
        while (patience := self.input.patience_s) is not None and patience <= PAUSE_S:
            if self._readable(patience):
                self._take(self.input.feed(os.read(0, 1)))  # the rest is for the real screen
            self._take(self.input.tick())

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([0], [], [], seconds)[0])

    def _take(self, parts: Iterable[InputPart]) -> None:
        """Apply keys as they come: text, backspace, paste, Enter on a prompt. Others wait."""
        for part in parts:
            if self.rest or self._waits(part):
                self.rest.append(part)
            elif part.kind == "text":
                self._line += part.text
            elif part.kind == "control":
                self._key(part.text)
            elif part.kind in {"alt", "ss3"}:
                self._line += "\n"
            elif part.kind == "paste":
                self._typed = min(self._typed, len(self._line))
                self._pasted.append(part.text.replace("\r\n", "\n").replace("\r", "\n"))
                self._line += self._pasted[-1]

    def _waits(self, part: InputPart) -> bool:
        """True for a key that only the real screen knows, such as Enter on a command."""
        match part.kind:
            case "control":
                sends = part.text == "\r" and not self._line.endswith("\\")
                return (sends and is_command(self._line)) or part.text not in "\r\n\x7f\b\x15"
            case "csi":
                return part.text[2] not in "<=>?" and part.text[-1] in _KEYS_END
            case "alt":
                return part.text != "\r"
            case "ss3":
                return part.text not in SHIFT_ENTER
            case kind:
                return kind == "escape"

    def _key(self, key: str) -> None:
        if key == "\r" and self._line.endswith("\\"):
            self._line = self._line[: None if self._line.startswith("!") else -1] + "\n"
        elif key == "\r":
            if self._line.strip():
                self._sent.append(self._line)
                self._sent_typed.append(min(self._typed, len(self._line)))
            self._clear()
        elif key == "\n":
            self._line += "\n"
        elif key in "\x7f\b":
            self._line = self._line[: _last_start(self._line)]
            if not self._line:
                self._typed = _ALL
        elif key == "\x15":
            self._clear()

    def _clear(self) -> None:
        self._line = ""
        self._typed = _ALL
        self._pasted.clear()

    def paint(self) -> None:
        """Paint the part of the real screen's frame that is the same for everyone."""
        rule, at = "─" * (self._columns - 2 * self._beside), self._beside + 1
        foot = self._foot - self._prompt_row > 1
        parts = [f"{ALT_SCREEN}\x1b[?2004h{self._style()}\x1b[2J"]
        if self.welcoming:
            column, above, _ = welcome_place(self._columns, self._rows)
            parts += [f"\x1b[{above + 1};{column + 3}H{self._style('primary')}\x1b[1mholdfast"]
            if column + len(TAGLINE) + 4 <= self._columns:
                parts += [f"\x1b[{above + 2};{column + 3}H{self._style('muted')}{TAGLINE}"]
        else:
            parts += [
                f"\x1b[H{self._style('primary', 'panel')}\x1b[K\x1b[1;2H\x1b[1mholdfast",
                f"\x1b[{self._prompt_row - 1};{at}H{self._style('rule')}{rule}",
                f"\x1b[{self._foot - 1};{at}H{rule}" if foot else "",
            ]
        parts += [f"\x1b[{self._rows};2H{self._style('muted')}opening …"]
        _write("".join(parts).encode())
        self._echo()

    def _echo(self) -> None:
        """Draw the prompt line: as much of the end of the typed text as fits."""
        if self.welcoming:
            return
        line = self._line.replace("\r", "\n").rsplit("\n", 1)[-1]
        room = max(1, self._columns - 2 * self._beside - 5)
        shown = "".join(filter(is_text, line[-room:]))
        while sum(map(_cells, shown)) > room:
            shown = shown[1:]
        mark = f"\x1b[{self._prompt_row};{self._beside + 2}H{self._style('primary')}\x1b[1m›"
        _write(f"{mark}{self._style()} \x1b[K{shown}".encode("utf-8", "replace"))

    @property
    def _prompt_row(self) -> int:
        """The row of the prompt. Small terminals have no line below it."""
        return self._foot - (2 if self._rows >= SMALL_ROWS else 1)

    def _style(self, colour: str = "foreground", back: str = "background") -> str:
        if not self._coloured:
            return "\x1b[0;2m" if colour in {"rule", "muted"} else "\x1b[0m"
        (r, g, b), (r2, g2, b2) = (
            theme_cache.rgb(self.look[colour]),
            theme_cache.rgb(self.look[back]),
        )
        return f"\x1b[0;38;2;{r};{g};{b};48;2;{r2};{g2};{b2}m"


def _write(data: bytes) -> None:
    """Write everything; a terminal may accept it in pieces."""
    while data:
        data = data[os.write(1, data) :]


def _set_modes(modes: list[Any]) -> None:
    try:
        termios.tcsetattr(0, termios.TCSANOW, modes)
    except termios.error:
        return  # the terminal has gone


def _last_start(line: str) -> int:
    """Return where the last character of a line begins."""
    if line.isascii():
        return max(0, len(line) - 1)
    from tui.core.characters import previous_start  # noqa: PLC0415 - rare, and needs `re`

    return previous_start(line, len(line))


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
