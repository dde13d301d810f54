"""The modes of the terminal, and what its keys mean while it edits no line."""

from __future__ import annotations

import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

_LFLAG: Final = 3


@contextmanager
def flags(mask: int, lose: Callable[[], object]) -> Generator[None]:
    """While it lasts, only the local flags in `mask` stay set. `lose`: the terminal has gone."""
    try:
        before = termios.tcgetattr(0)
        now = [*before]
        now[_LFLAG] &= mask
        termios.tcsetattr(0, termios.TCSANOW, now)
    except termios.error:
        lose()
        yield
        return
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, before)


def rubbed_out(text: str) -> str:
    """A text as it was meant: a character and its deletion are nothing."""
    kept: list[str] = []
    for char in text.replace("\r", "\n"):
        if char in "\x7f\b":
            if kept and kept[-1] != "\n":
                kept.pop()
        elif char == "\x15":
            while kept and kept[-1] != "\n":
                kept.pop()
        elif char >= " " or char in "\n\t":
            kept.append(char)
    return "".join(kept)
