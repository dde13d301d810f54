"""The terminal on the standard streams: its modes, what is read from it and written to it."""

from __future__ import annotations

import codecs
import os
import select
import sys
import termios
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Final

_LFLAG: Final = 3
_READ: Final = 65_536
PASTE_S: Final = 0.03
"""Lines that follow each other faster were pasted, and are one prompt."""


class Tty:
    """Once the terminal has gone, `lost` is called, and from then on nothing is written. Nothing
    raises for that."""

    def __init__(self, lost: Callable[[], object]) -> None:
        self.gone = False
        self._lost = lost
        self._writing = threading.Lock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._usual: list[Any] | None = None

    def write(self, text: str) -> None:
        """Print a text. From any thread."""
        data = b"" if self.gone else text.encode(sys.stdout.encoding, "replace")
        try:
            with self._writing:
                while data:
                    data = data[os.write(1, data) :]  # no buffer keeps what could not be written
        except OSError:
            self._lose()

    def read(self) -> str | None:
        """What was typed, in the usual modes whole lines; None for Ctrl+D, and where the terminal
        has gone."""
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
        """Whether something can be read by then."""
        return bool(select.select([0], [], [], seconds)[0])

    def key_follows(self) -> bool:
        """Whether anything was pasted along with the last line, be it no whole one."""
        with self.keys():
            return self.ready(PASTE_S)

    def check_gone(self) -> None:
        """Notice that the terminal has gone."""
        if _modes() is None:
            self._lose()

    def keys(self) -> AbstractContextManager[None]:
        """While it lasts, each key can be read at once."""
        return self._without(termios.ICANON)

    def hidden(self) -> AbstractContextManager[None]:
        """While it lasts, what is typed is not shown; what was not read then is forgotten."""
        return self._without(termios.ECHO, termios.TCSAFLUSH)

    @contextmanager
    def preserved(self) -> Generator[None]:
        """Put the modes back at the end."""
        self._usual = _modes()
        try:
            yield
        finally:
            _set(termios.TCSADRAIN, self._usual)

    @contextmanager
    def lent(self) -> Generator[None]:
        """While it lasts, somebody else has the terminal, in its usual modes."""
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
            self._lost()


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
    """What was typed key by key as the terminal would have made it lines: a character and its
    deletion are nothing. Pure."""
    kept: list[str] = []
    for char in typed.replace("\r", "\n"):
        if char in "\x7f\b":
            if kept and kept[-1] != "\n":
                kept.pop()
        elif char == "\x15":
            while kept and kept[-1] != "\n":
                kept.pop()
        elif char >= " " or char in "\n\t":
            kept.append(char)
    return "".join(kept)
