"""Reads whole prompts with the line editor in the main thread, and handles Ctrl+C and the end.

Several lines can be one prompt: with a backslash at the end, or three quotes around them.
"""

from __future__ import annotations

import time
from typing import Final

from tui.core.dataclass import dataclass, field
from tui.core.partly_typed import PartlyTyped
from tui.core.text_cleaning import clean
from tui.plain.editor import Editor
from tui.plain.tty import Tty, TypingOwner

PROMPT: Final = "> "
MORE: Final = "... "
LEAVE_WITHIN_S: Final = 2.0
QUOTES = '"""'


@dataclass(slots=True)
class MultilineEntry:
    """A prompt as its lines come. `begun` is true if more are awaited."""

    _lines: list[str] = field(default_factory=list[str])
    _quoted: bool = False

    @property
    def begun(self) -> bool:
        return bool(self._lines) or self._quoted

    @property
    def text(self) -> str:
        """The text so far."""
        return "\n".join(self._lines)

    def add(self, line: str) -> str | None:
        """Take a line, and return the whole prompt when it is complete."""
        if self._quoted:
            if line.rstrip().endswith(QUOTES):
                last = line.rstrip().removesuffix(QUOTES)
                return self._whole(last, keep=bool(last))
            self._lines.append(line)
            return None
        if not self._lines and line.lstrip().startswith(QUOTES):
            last = line.lstrip().removeprefix(QUOTES)
            if last.rstrip().endswith(QUOTES):
                return last.rstrip().removesuffix(QUOTES)
            self._quoted = True
            self._lines += [last] if last.strip() else []
            return None
        if line.endswith("\\") and not line.endswith("\\\\"):
            self._lines.append(line[:-1])
            return None
        return self._whole(line, keep=True)

    def drop(self) -> None:
        """Start over."""
        self._lines, self._quoted = [], False

    def _whole(self, last: str, *, keep: bool) -> str:
        text = "\n".join([*self._lines, *([last] if keep else [])])
        self.drop()
        return text


class _Broken(BaseException):
    """Raised by a signal to end the line that is being typed."""


@dataclass(slots=True)
class PromptReader:
    """Reads one prompt after the other. `kept` was typed elsewhere and goes into the next prompt.

    Signal handlers call `interrupt`, `hold` and `end`. They raise only while the editor has the
    line. A signal between two lines is handled before the next; one before the first leaves the
    initial text alone.
    """

    editor: Editor
    tty: Tty
    owner: TypingOwner
    kept: str = ""
    editing: bool = False
    """True while the editor has the line."""
    _prefill: str = ""
    """The initial text of the next line."""
    _entry: MultilineEntry = field(default_factory=MultilineEntry)
    _pasted: str = ""
    """The lines of a paste so far."""
    _cut: str = ""
    """The text that a signal left in the editor."""
    _seen: str = ""
    """The editor's text when it was last read: when the terminal goes away, the editor is
    emptied."""
    _broken: bool = False
    """True if a handler has ended the line."""
    _presses: int = 0
    """Number of times Ctrl+C was pressed and not handled yet."""
    _pressed_at: float = float("-inf")

    @property
    def swallowed(self) -> bool:
        """True if the editor continues although a handler has ended its line."""
        return self.editing and self._broken

    def begun(self) -> str:
        """Return what is typed by now, and was not sent."""
        if self.owner.ending:
            edited = self._cut or self._seen or self._prefill
        elif self.editing:
            edited = self._seen = self.editor.begun()
        else:
            edited = self._cut or self._prefill
        return "\n".join(filter(None, (self._entry.text, self._pasted, edited, self.kept)))

    def so_far(self) -> str:
        """Return the line as it is on the terminal."""
        edited = self.editor.begun() if self.editing else ""
        return f"{MORE if self._entry.begun else PROMPT}{clean(edited)}"

    def read(self, text: str) -> str | None:
        """Return a whole prompt; None to leave, or if the program ends. `text` is its initial
        text."""
        self._prefill, self.kept = "\n".join(filter(None, (text, self.kept))), ""
        self._drop()
        while not self.owner.ending:
            try:
                line = self._line()
            except EOFError:
                self.tty.write("\n")
                return None
            if line is not None:
                self._pasted = ""
                whole = self._entry.add(line)
                if whole is not None and whole.strip():
                    return PartlyTyped(whole, 0) if "\n" in line else whole
            elif self.interrupted() and not self.owner.ending and not self._keeps_editing():
                return None
        return None

    def interrupt(self) -> None:
        """Ctrl+C: forget the line."""
        if not self.swallowed:
            self._presses += 1
        self.hold()
        self.end()

    def interrupted(self) -> bool:
        """Handle one press of Ctrl+C. True if there was one."""
        if self._presses:
            self._presses -= 1
            return True
        return False

    def hold(self) -> None:
        """Keep the editor's text, since the program ends."""
        if self.editing:
            self._cut = self.editor.begun()

    def end(self) -> None:
        """End the line, since the program ends."""
        if self.editing:
            self._broken = True
            raise _Broken

    def _line(self) -> str | None:
        """Return a line, or all lines of a paste; None after a signal. Raises EOFError."""
        line = self._edited(MORE if self._entry.begun else PROMPT)
        while line is not None:
            self._pasted = f"{self._pasted}\n{line}" if self._pasted else line
            if not self.tty.key_follows():
                break
            line = self._edited("")
        self.tty.check_gone()  # if it has, the editor returns what was begun as if it was sent
        return None if line is None or self.owner.ending else self._pasted

    def _edited(self, prompt: str) -> str | None:
        self._broken, self._cut, self._seen = False, "", self._prefill
        lines: list[str] = []
        try:
            try:
                self.editing = True
                if self._presses or self.owner.ending:
                    return None
                self.editor.read(prompt, self._prefill, lines)
            finally:
                self.editing = False
        except (_Broken, SystemError):
            if not self._broken:
                raise  # `input` fails with a SystemError at a second signal
            if not lines:
                self.tty.write("\n")
        self._prefill = ""
        if not lines:
            return None
        self._cut = self._seen = ""
        return lines[0]

    def _keeps_editing(self) -> bool:
        """Ctrl+C: forget what is typed. False if a second press at an empty line leaves."""
        if self._entry.begun or self._pasted or self._cut:
            self._drop()
            return True
        now = time.monotonic()
        if now - self._pressed_at <= LEAVE_WITHIN_S:
            return False
        self._pressed_at = now
        self.tty.write("Press Ctrl+C again, or Ctrl+D, to quit.\n")
        return True

    def _drop(self) -> None:
        self._entry.drop()
        self._pasted = self._cut = ""
