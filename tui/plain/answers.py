"""Answers to questions, read in the main thread once nobody is typing any more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from tui.core.text_cleaning import clean
from tui.plain.thread_bridge import Crossing, Request
from tui.plain.tty import Tty
from tui.plain.typed_ahead import TypedAhead

GRACE_S: Final = 0.5
"""A question takes an answer after so long without a key: what was meant for the prompt must
never approve anything."""


@dataclass(slots=True)
class Answering:
    """Puts one question after the other. `ending` says whether the program ends."""

    tty: Tty
    crossing: Crossing
    ahead: TypedAhead
    ending: Callable[[], bool]
    asked: Request | None = None
    """The question, from before it stands there."""
    stands: bool = False

    def ask(self, request: Request) -> str | None:
        """A line that was typed after the question stood there; None where it was refused."""
        self.asked = request
        try:
            self._settle()
            if self._over():
                return None
            self.tty.write(request.text)
            self.stands = True
            hidden = request.kind == "hidden"
            with self.tty.hidden() if hidden else nullcontext():
                answer = self._answer()
            if answer is None or hidden:
                self.tty.write("\n")
            return answer
        finally:
            self.asked, self.stands = None, False

    def again(self) -> str:
        """The question as it stands there, "" for none: something was said meanwhile."""
        return self.asked.text if self.asked and self.stands else ""

    def refuse(self) -> bool:
        """Ctrl+C. False where nothing is asked."""
        if self.asked is None:
            return False
        self.asked.cancelled = True
        self.crossing.poke()
        return True

    def _over(self) -> bool:
        return self.ending() or (self.asked is not None and self.asked.cancelled)

    def _answer(self) -> str | None:
        while not self._over():
            if self.crossing.wait(keys=True):
                line = self.tty.read()
                return None if line is None else line.rstrip("\r\n")
        return None

    def _settle(self) -> None:
        """Wait until nobody is typing. What was typed for the prompt goes there."""
        data = ""
        with self.tty.keys():
            while not self._over():
                ready = self.crossing.wait(keys=True, seconds=GRACE_S)
                typed = self.tty.read() if ready else ""
                if ready is None or typed is None:
                    break
                data += typed
        if data and (rest := self.ahead.keys(data)):
            self.tty.write(f"\nKept for your next prompt: {clean(rest)}\n")
