"""The terminal on the standard streams: its modes, reading, writing, and signals meanwhile."""

from __future__ import annotations

import codecs
import faulthandler
import os
import select
import signal
import sys
import termios
import threading
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final, Protocol

from tui.core.characters import previous_start
from tui.core.terminal_input import PASTE_S, TerminalInput
from tui.core.text_cleaning import clean

_LFLAG: Final = 3
_READ: Final = 65_536


class TypingOwner(Protocol):
    """Takes what the readers of a terminal have read, and tells them when to stop."""

    @property
    def ending(self) -> bool:
        """True once the program ends."""
        ...

    def lost(self) -> None:
        """Note that the terminal has gone."""

    def hear(self, text: str) -> None:
        """Take a whole prompt that was typed ahead."""

    def keep(self, text: str) -> None:
        """Take what belongs to the next prompt."""


class Tty:
    """The terminal of an `owner`. Once it has gone, nothing is written any more; no error is raised
    for that."""

    def __init__(self, owner: TypingOwner) -> None:
        self.gone = False
        self._owner = owner
        self._writing = threading.Lock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._usual: list[Any] | None = None

    def write(self, text: str) -> None:
        """Print a text, without control characters. Callable from any thread."""
        self._send(clean(text))

    def ring(self) -> None:
        """Sound the bell."""
        self._send("\a")

    def clip(self, text: str) -> None:
        """Copy a text (OSC 52), which moves nothing on the screen."""
        self._send(f"\x1b]52;c;{b64encode(text.encode('utf-8', 'replace')).decode()}\a")

    def _send(self, text: str) -> None:
        data = b"" if self.gone else text.encode(sys.stdout.encoding, "replace")
        try:
            with self._writing:
                while data:
                    data = data[
                        os.write(1, data) :
                    ]  # no buffer: it would keep what could not be written
        except OSError:
            self._lose()

    def read(self) -> str | None:
        """Return what was typed, whole lines in the usual modes; None for Ctrl+D, and if the
        terminal has gone."""
        try:
            data = os.read(0, _READ)
        except OSError:
            data = b""
            self._lose()
        if not data:
            self.check_gone()
            return None
        return self._decoder.decode(data)

    def ready(self, seconds: float = 0.0) -> bool:
        """True if something can be read within that time."""
        return bool(select.select([0], [], [], seconds)[0])

    def key_follows(self) -> bool:
        """True if anything, even less than a line, was pasted along with the last line."""
        with self.keys():
            return self.ready(PASTE_S)

    def check_gone(self) -> None:
        """Notice whether the terminal has gone."""
        if _modes() is None:
            self._lose()

    def keys(self) -> AbstractContextManager[None]:
        """Make each key readable at once while it lasts."""
        return self._without(termios.ICANON)

    def hidden(self) -> AbstractContextManager[None]:
        """Hide what is typed while it lasts; what was not read by then is discarded."""
        return self._without(termios.ECHO, termios.TCSAFLUSH)

    @contextmanager
    def preserved(self) -> Generator[None]:
        """Restore the modes at the end."""
        self._usual = _modes()
        try:
            yield
        finally:
            _set(termios.TCSADRAIN, self._usual)

    @contextmanager
    def lent(self) -> Generator[None]:
        """Lend the terminal to another program, in its usual modes."""
        ours = _modes()
        _set(termios.TCSADRAIN, self._usual)
        try:
            yield
        finally:
            _set(termios.TCSADRAIN, ours)

    @contextmanager
    def _without(self, flag: int, back: int = termios.TCSANOW) -> Generator[None]:
        before = _modes()
        if before is None:
            self._lose()
            yield
            return
        now = [*before]
        now[_LFLAG] &= ~flag
        _set(termios.TCSANOW, now)
        try:
            yield
        finally:
            _set(back, before)

    def _lose(self) -> None:
        if not self.gone:
            self.gone = True
            self._owner.lost()


def _modes() -> list[Any] | None:
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def _set(when: int, modes: list[Any] | None) -> None:
    with suppress(termios.error):
        if modes is not None:
            termios.tcsetattr(0, when, modes)


def meant(typed: str) -> str:
    """Return keys as the lines that the terminal would have made of them: a deleted character is
    nothing, and the terminal's own reports were not typed. Pure."""
    line, lines = "", list[str]()
    parts = TerminalInput().feed(typed.encode("utf-8", "surrogateescape"))
    keys = "".join(part.text for part in parts if part.kind in {"text", "control", "paste"})
    for char in keys.replace("\r", "\n"):
        if char in "\x7f\b":
            line = line[: previous_start(line, len(line))]
        elif char == "\x15":
            line = ""
        elif char == "\n":
            lines.append(line)
            line = ""
        elif char >= " " or char == "\t":
            line += char
    return "\n".join((*lines, line))


NUDGES_S: Final = (0.02, 0.1, 0.5, 2.0)
"""Seconds between the nudges that follow a signal."""

_NUDGE: Final = signal.SIGUSR1


@contextmanager
def answered(
    handlers: Mapping[signal.Signals, Callable[[], object]], swallowed: Callable[[], bool]
) -> Generator[None]:
    """Handle signals even while the line editor waits.

    The editor waits for a key in C, where no Python handler runs. A signal that arrives just before
    it begins to wait, or in another thread, would be handled only at the next key. And what a
    handler raises while the editor calls Python back, to complete a word, is swallowed.

    Within the block, signals go to `handlers`, in the main thread, and each one interrupts the
    editor's waits a few more times, so that none stays unhandled.

    `swallowed` returns, in any thread, whether a handler raised something that nobody has caught:
    then the handler is called again. For an immediate second signal, `input` calls a handler with
    an exception set, which fails with its first call into C: so the handler must note its reason
    before that.
    """
    called = {int(number): handler for number, handler in handlers.items()}
    repeated: set[int] = set()

    def heard(number: int, _: FrameType | None) -> None:
        if number in repeated:
            repeated.discard(number)
            if not swallowed():
                return  # it was caught meanwhile
        called[number]()

    before = {number: signal.signal(number, heard) for number in handlers}
    main, over = threading.get_ident(), threading.Event()
    came, comes = os.pipe()
    os.set_blocking(comes, False)
    woken_before = signal.set_wakeup_fd(comes, warn_on_full_buffer=False)

    # Runs in a thread of its own: each signal's byte is followed by a few nudges.
    def nudge() -> None:
        while data := os.read(came, 1):
            for pause in NUDGES_S if data[0] in called else ():
                if over.wait(pause):
                    return
                if swallowed():
                    repeated.add(data[0])
                    signal.pthread_kill(main, data[0])
                else:
                    signal.pthread_kill(main, _NUDGE)

    nudger = threading.Thread(target=nudge, name="signals")
    with Path(os.devnull).open("wb") as nowhere:
        # A nudge needs a handler outside Python: `input` runs a second Python handler with the
        # exception of the first one set, which makes both fail.
        faulthandler.register(_NUDGE, nowhere, all_threads=False)
        nudger.start()
        try:
            yield
        finally:
            over.set()
            signal.set_wakeup_fd(woken_before)
            os.close(comes)
            nudger.join()
            os.close(came)
            faulthandler.unregister(_NUDGE)
            for number, handler in before.items():
                signal.signal(number, handler)
