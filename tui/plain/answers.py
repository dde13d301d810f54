"""Reads lines that are not prompts in the main thread: answers to questions, once typing has
paused, and what is typed while nothing is asked. The terminal echoes them itself."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final

from tui.core.dataclass import dataclass, field
from tui.core.partly_typed import PartlyTyped
from tui.core.terminal_input import PASTE_S
from tui.core.text_cleaning import clean
from tui.plain.prompt_reader import MultilineEntry
from tui.plain.thread_bridge import LineRequest, ThreadBridge
from tui.plain.tty import Tty, TypingOwner, meant

GRACE_S: Final = 0.5
"""A question takes an answer only after this long without a key: what was meant for the prompt must
never approve anything."""


@dataclass(slots=True)
class TypedAhead:
    """Collects lines that are typed ahead: the owner hears each complete prompt, and keeps the
    rest, which belongs to the next one."""

    tty: Tty
    owner: TypingOwner
    _entry: MultilineEntry = field(default_factory=MultilineEntry)

    def take(self) -> bool:
        """Take what can be read. False for Ctrl+D, and if the terminal has gone."""
        data = self.tty.read()
        if data is None:
            return False
        while data.endswith("\n") and self.tty.ready(PASTE_S) and (more := self.tty.read()):
            data += more
        if data.endswith("\n"):
            self.hear(data.rstrip("\r\n"))
        else:
            self.owner.keep(data)
        return True

    def hear(self, line: str) -> None:
        """Take a line."""
        text = self._entry.add(line)
        if text is not None and text.strip():
            self.owner.hear(PartlyTyped(text, 0) if "\n" in line else text)

    def keys(self, data: str) -> str:
        """Take what was read key by key, and return what is no whole line, which is kept."""
        *lines, unfinished = meant(data).split("\n")
        if unfinished:
            self.owner.keep(unfinished)
        for line in lines:
            self.hear(line)
        return unfinished

    def end(self) -> None:
        """Keep what was begun: nobody will type its end."""
        data = ""
        with self.tty.keys():
            while self.tty.ready() and (more := self.tty.read()):
                data += more
        self.owner.keep("\n".join(filter(None, (self._entry.text, meant(data)))))
        self._entry.drop()


@dataclass(slots=True)
class AnswerReader:
    """Asks one question after the other."""

    tty: Tty
    bridge: ThreadBridge
    ahead: TypedAhead
    owner: TypingOwner
    asked: LineRequest | None = None
    """The current question, also before it is shown."""
    shown: bool = False

    def ask(self, request: LineRequest) -> str | None:
        """Return a line that was typed after the question was shown; None if it was refused."""
        self.asked = request
        try:
            self._settle()
            if self._over():
                return None
            self.tty.write(request.text)
            self.shown = True
            hidden = request.kind == "hidden"
            with self.tty.hidden() if hidden else nullcontext():
                answer = self._answer()
            if answer is None or hidden:
                self.tty.write("\n")
            return answer
        finally:
            self.asked, self.shown = None, False

    def again(self) -> str:
        """Return the question as it was shown, to repeat it after other lines; "" for none."""
        return self.asked.text if self.asked and self.shown else ""

    def refuse(self) -> bool:
        """Refuse by Ctrl+C. False if nothing is asked."""
        if self.asked is None:
            return False
        self.asked.cancelled = True
        self.bridge.poke()
        return True

    def _over(self) -> bool:
        return self.owner.ending or (self.asked is not None and self.asked.cancelled)

    def _answer(self) -> str | None:
        while not self._over():
            if self.bridge.wait(keys=True):
                line = self.tty.read()
                return None if line is None else line.rstrip("\r\n")
        return None

    def _settle(self) -> None:
        """Wait until nobody is typing. What was typed before goes to the prompt."""
        data = ""
        with self.tty.keys():
            while not self._over():
                ready = self.bridge.wait(keys=True, seconds=GRACE_S)
                typed = self.tty.read() if ready else ""
                if ready is None or typed is None:
                    break
                data += typed
        if data and (unfinished := self.ahead.keys(data)):
            self.tty.write(f"\nKept for your next prompt: {clean(unfinished)}\n")
