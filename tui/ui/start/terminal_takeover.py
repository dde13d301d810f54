"""Takes over the terminal from the first frame without a gap, and notices when it goes away."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from threading import Event
from typing import Any, Final, cast

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

from tui.core import gc_pause
from tui.core.terminal_input import InputPart, TerminalInput
from tui.core.text_cleaning import as_typed
from tui.ui.start.first_frame import ALT_SCREEN, CLEAR, EarlyInput, EarlyPrompt
from tui.ui.toolkit.frame_pacing import QUESTION, FramePacing
from tui.ui.toolkit.key_parser import KeyParser

TERMINAL_GONE = 129
"""Exit code if the terminal goes away, as if SIGHUP had ended the program (128 + SIGHUP)."""

_POLL_S = 0.01
_READ = 65_536
_CLOSE_S: Final = 1.0
"""Seconds that the end waits for a terminal that accepts no more output."""
_PIXELS_OFF: Final = "\x1b[?1016l"
_TEXTUALS_KEYS: Final = "\x1b[>25u"
_KEYS: Final = "\x1b[>5u"
"""The kitty protocol as Textual asks for it, and as we do: only keys that could be mistaken come as
codes, with the key on the base layout. Text comes as text, because kitty 0.26.5 doesn't name all
characters in its codes."""
_DRAWN_BY_CONSOLES: Final = re.compile(r"\x1b(?:\]|\[(?:[<=>]|[\d?;]*[ -/]))")
"""Begins a code of which older Linux consoles draw the rest as text (`drivers/tty/vt/vt.c`: `ESC [`
knows no parameter but digits after `?`, and `ESC ]` only the palette). None of them does anything
there."""
_ALT_SENDS_ESC: Final = "\x1b[?1036s\x1b[?1036h"
_ALT_AS_BEFORE: Final = "\x1b[?1036r"
"""Otherwise XTerm types other letters with Alt."""
_NEVER_WAITS: Final = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
_RELEASE: Final = (
    "\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
    f"{_PIXELS_OFF}{_ALT_AS_BEFORE}\x1b[<u{CLEAR}\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
"""Codes that undo everything the driver sets, in one write."""


class TerminalTakeover:
    """Lets an app follow `first`, if there was one, in the same terminal.

    `driver` ends the first frame, whose picture stays until the app draws over it. No key is read
    before `listen`, because Textual would not know yet where to put it. Leaving, or being
    suspended, restores the modes from before the first frame.

    When the terminal goes away (its window is closed, the connection is lost), `gone` becomes true
    and the function given to `listen` is called once, in the app's loop. No signal is needed for
    it. `failed` gets any other exception of the threads that read and write, also once and in the
    app's loop.

    `release` gives back the terminal at once, from any thread, when nothing else can any more.

    `leaving` returns what else is written whenever the terminal is given back. `pacing` knows
    whether the terminal keeps up with its output. While `watched` is set, the app is also told
    what the terminal sent, before the keys that it stands for.
    """

    def __init__(self, first: EarlyPrompt | None) -> None:
        self.gone = False
        self.leaving: Callable[[], str] = str
        self.listening = Event()
        self.watched = Event()
        self.pacing = FramePacing()
        self.first = first
        self._begun = first.input if first else None
        self.driver: type[LinuxDriver] = type("Driver", (_Driver,), {"over": self})
        self.failed: Callable[[Exception], object] = bool
        self._leave: Callable[[], object] | None = None
        self._usual: tuple[int, list[Any]] | None = None
        self.broken = False
        self.deaf = False
        """True if the terminal accepts no more output."""

    def typed(self) -> EarlyInput:
        """Return what the first frame took, as text."""
        typed = self.first.finish() if self.first else EarlyInput()
        sent, pasted = map(as_typed, typed.sent), map(as_typed, typed.pasted)
        return EarlyInput(tuple(sent), as_typed(typed.draft), tuple(pasted), typed.typed)

    def begun(self) -> tuple[TerminalInput | None, Sequence[InputPart]]:
        """Return what the first frame read and could not use: a sequence that has begun, and the
        keys before it. Nothing from the second call on."""
        begun, self._begun = self._begun, None
        return begun, self.first.rest if begun and self.first else ()

    def listen(self, leave: Callable[[], object]) -> None:
        """Let keys be read from now on, since there is a prompt for them."""
        self._leave = leave
        self.listening.set()
        if self.gone:
            leave()

    def lose(self, call: Callable[[Callable[[], object]], object]) -> None:
        """Note that the terminal has gone. `call` runs a function in the app's loop."""
        if not self.gone:
            self.gone = True
            if self._leave:
                call(self._leave)

    def fail(self, error: Exception, call: Callable[..., object]) -> None:
        """Report a bug in a thread of the terminal, once."""
        if not self.broken:
            self.broken = True
            call(self.failed, error)

    def held(self, fileno: int, modes: list[Any] | None) -> None:
        """Note that the app has the terminal, whose modes were these; None if it no longer has
        it."""
        self._usual = None if modes is None else (fileno, modes)

    def release(self) -> None:
        """Restore the terminal if an app still has it."""
        if self._usual is None:
            return
        fileno, modes = self._usual
        self._usual = None
        out = getattr(sys.__stderr__, "fileno", lambda: fileno)()
        with suppress(OSError, termios.error):
            termios.tcflush(out, termios.TCOFLUSH)  # pending output would follow the codes
            os.set_blocking(out, False)
            os.write(out, f"{self.leaving()}{_RELEASE}".encode())
        with suppress(OSError, termios.error):
            os.set_blocking(out, True)
            termios.tcsetattr(fileno, termios.TCSANOW, modes)

    def fall_silent(self) -> None:
        """If the terminal accepts no more output, keep anything printed from waiting for it."""
        if not self.deaf:
            return
        nobody = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None and stream.isatty():
                os.dup2(nobody, stream.fileno())
        os.close(nobody)


class _Output:
    """A terminal's file that can be written to even after the terminal has gone.

    The thread that writes never ends before the app does, whatever happens: its driver gets the
    exceptions, and the number of writes that the terminal has accepted.
    """

    def __init__(self, file: Any, driver: _Driver) -> None:
        self._file, self._driver = file, driver
        self.taken = 0
        """Number of writes since the terminal was taken."""
        self.fileno = file.fileno

    def write(self, text: str | bytes) -> None:
        self.taken += 1
        try:
            if isinstance(text, str):
                self._file.write(text)
            else:  # the rest of what was begun in the app's thread
                self._file.buffer.write(text)
        except Exception as error:  # noqa: BLE001 - it may be anything, and is reported
            self._driver.trouble(error)

    def flush(self) -> None:
        try:
            self._file.flush()
            self._driver.over.pacing.drained(self.taken)
        except Exception as error:  # noqa: BLE001 - as above
            self._driver.trouble(error)


class _Driver(LinuxDriver):
    """Textual's driver with our own start, reading and end."""

    over: TerminalTakeover
    _following = False
    _frame: list[str] | None = None
    """The pieces written so far of the frame that is being drawn."""
    _own: int | None = None
    """A handle of our own on the terminal that never waits, if there can be one. Others share the
    one that we were given."""
    _ends: tuple[int, int] | None = None
    """The pipe that wakes the thread which reads: where it looks, and where it is woken. It is
    there before that thread is, since the app may end while it begins."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)  # pyright: ignore[reportUnknownMemberType]
        self._is_console = os.environ.get("TERM") == "linux"
        # A writer that fails would leave the app waiting for it forever.
        self._file: Any = _Output(self._file, self)
        self._size = self._size or self._get_terminal_size()

    def _get_terminal_size(self) -> tuple[int, int]:
        """Ask the terminal, as the first frame does. COLUMNS and LINES count only if it doesn't
        know: a program that started us may have set them, and they never change."""
        with suppress(OSError):
            columns, rows = os.get_terminal_size(self.fileno)
            if columns and rows:
                return columns, rows
        return super()._get_terminal_size()

    def start_application_mode(self) -> None:
        first = self.over.first
        following = self._following = first is not None and not first.over
        with suppress(termios.error):
            before = first.before if first and following else termios.tcgetattr(self.fileno)
            self.over.held(self.fileno, before)
        self.over.typed()
        self.over.pacing.restart()
        self._file.taken = 0
        self._ends = os.pipe()
        super().start_application_mode()
        with suppress(OSError):
            self._own = os.open(os.ttyname(self._file.fileno()), _NEVER_WAITS)
        self.write(_ALT_SENDS_ESC)
        # Little is written beside frames; waiting for room in the queue would stop the program.
        vars(self._writer_thread)["_queue"].maxsize = 0
        self._following = False
        if first and following:
            self.attrs_before = first.before

    def stop_application_mode(self) -> None:
        if codes := self.over.leaving():
            self.write(codes)
        self.write(_ALT_AS_BEFORE)
        if self._mouse_pixels:
            self.write(_PIXELS_OFF)
        self.write(CLEAR)
        super().stop_application_mode()  # pyright: ignore[reportUnknownMemberType]
        if self._own is not None:
            os.close(self._own)
            self._own = None
        if not self.over.broken:  # otherwise what was just written may not have gone out
            self.over.held(self.fileno, None)

    def close(self) -> None:
        """Close as Textual does, but with a time limit: the terminal may accept no more output."""
        if writer := self._writer_thread:
            vars(writer)["_queue"].put(None)
            writer.join(_CLOSE_S)
            if writer.is_alive():
                self._drop_output()
                writer.join(_CLOSE_S)
                self.over.deaf = writer.is_alive()

    def _sigcont_application(self, *_: Any) -> None:
        """Restart after a stop.

        Before Ctrl+Z stopped the program the terminal was given back. Before SIGSTOP, which cannot
        be caught, it was not, and whatever ran meanwhile may have changed the screen and its modes.
        """
        if self._auto_restart and not self._must_signal_resume:
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application()  # pyright: ignore[reportUnknownMemberType]

    def write(self, data: str) -> None:
        """Write, but don't switch to the alternate screen a second time: some terminals would clear
        it. Ask for keys in our own way, and the Linux console for nothing that it may draw."""
        if self._following and data == ALT_SCREEN:
            return
        if self._is_console and _DRAWN_BY_CONSOLES.match(data):
            return
        asked = _KEYS if data == _TEXTUALS_KEYS else data
        if self._frame is not None:
            self._frame.append(asked)
            return
        idle = self.over.pacing.idle
        self.over.pacing.sent(len(asked))
        self._send(asked, at_once=idle)

    def _send(self, text: str, *, at_once: bool) -> None:
        if rest := self._write_at_once(text) if at_once else text:
            super().write(cast("str", rest))

    def _write_at_once(self, text: str) -> str | bytes:
        """Write as much as the terminal takes without waiting, and return the rest: waking the
        thread that may wait would take longer than the writing does."""
        if self._own is None or not self.over.listening.is_set():
            return text
        data = text.encode("utf-8", "replace")
        try:
            written = os.write(self._own, data)
        except BlockingIOError:
            return text
        except OSError as error:
            self.trouble(error)
            return ""
        if written < len(data):
            return data[written:]
        self._file.taken += 1
        self.over.pacing.drained(self._file.taken)
        return ""

    def send_message(self, message: Message) -> None:
        """Put a key into the app's queue; Textual starts a task in the loop that does. Other work
        waits for keys."""
        if isinstance(message, Key):
            gc_pause.key_read()
        self._app.post_message(message)

    @contextmanager
    def whole_frame(self) -> Generator[None]:
        """Write everything of a frame at its end, and ask then whether the terminal keeps up."""
        self._frame = frame = list[str]()
        try:
            yield
        finally:
            self._frame = None
            if text := "".join(frame):
                idle, pacing = self.over.pacing.idle, self.over.pacing
                pacing.sent(len(text))
                if self.over.listening.is_set() and pacing.asks():
                    text += QUESTION
                self._send(text, at_once=idle)

    def run_input_thread(self) -> None:
        while not self.over.listening.wait(_POLL_S):
            if self.exit_event.is_set():
                return
        assert self._ends
        try:
            self._read_keys(self._ends[0])
        except Exception as error:  # noqa: BLE001 - it may be anything, and is reported
            self.trouble(error)

    def _run_input_thread(self) -> None:
        """Read keys; a failure ends the program, as one in the app's loop does."""
        try:
            self.run_input_thread()
        except Exception as error:  # noqa: BLE001 - for the app
            app: Any = self._app
            with suppress(RuntimeError):  # the app has ended already
                self._loop.call_soon_threadsafe(app._handle_exception, error)  # noqa: SLF001

    def disable_input(self) -> None:
        """Stop reading as Textual does, without the wait for the next tick."""
        if self.over.pacing.stuck:  # pending output would keep the program from ending
            self._drop_output()
        self.over.pacing.leave()
        if self._ends:
            os.write(self._ends[1], b"x")
        super().disable_input()
        ends, self._ends = self._ends, None
        for end in ends or ():
            os.close(end)

    def _read_keys(self, end: int) -> None:
        """Pass keys on until the app ends, which `end` signals, or the terminal does."""
        source, read = self.over.begun()
        keyboard = KeyParser(as_typed, self.over.pacing, source=source, watched=self.over.watched)
        for message in keyboard.take(read):
            self.process_message(message)
        while not self.exit_event.is_set():
            if self.fileno in select.select([self.fileno, end], [], [], keyboard.patience_s)[0]:
                data = os.read(self.fileno, _READ)
                if not data:
                    self._lose()
                    return
                for message in keyboard.feed(data):
                    self.process_message(message)
            for message in keyboard.tick():
                self.process_message(message)

    def _drop_output(self) -> None:
        """Discard what waits for the terminal at the end, and restart its output if that was
        stopped, so that its modes can be restored."""
        with suppress(termios.error):
            termios.tcflush(self.fileno, termios.TCOFLUSH)
            termios.tcflow(self.fileno, termios.TCOON)

    def trouble(self, error: Exception) -> None:
        """Handle an exception in the thread that reads or writes: the terminal has gone, or a
        bug."""
        if isinstance(error, OSError):
            self._lose()
            return
        with suppress(RuntimeError):  # the app has ended already
            self.over.fail(error, self._loop.call_soon_threadsafe)

    def _lose(self) -> None:
        with suppress(RuntimeError):  # the app has ended already
            self.over.lose(self._loop.call_soon_threadsafe)
