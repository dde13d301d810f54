"""Lines that a command writes over with a carriage return: progress bars, spinners, counters."""

from __future__ import annotations

FEW_CHARS = 1024
"""So much of a line's overwritten states is shown as lines: to say that it is not would take
nearly as much."""
LONG_CHARS = 4096
"""A longer state is no progress bar: it is shown as it is, and held no longer."""


class Overwrites:
    """Text in pieces → text in which a line that was overwritten is its last state.

    A carriage return begins the line again, and what comes then takes the place of all that was
    there; before a newline it means nothing. Where less than FEW_CHARS is overwritten, each state
    is a line of its own. The result does not depend on the pieces, is never longer than the text,
    and is the text where that has no carriage return. `dropped` is the bytes that are left out.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._states: list[str] = []  # that were overwritten on the open line, while they are few
        self._few = FEW_CHARS
        self._open = ""  # the last state of the open line
        self._passing = False  # it is long: what was held of it is out, the rest follows
        self._returned = False

    def feed(self, text: str) -> str:
        """What is certain so far; the last state of a line is held until the line ends."""
        out: list[str] = []
        for number, part in enumerate(text.split("\r")):
            self._returned = self._returned or number > 0
            whole, ended, last = part.rpartition("\n")
            if ended:
                first, more, rest = whole.partition("\n")
                self._add(first, out)
                self._end(out)
                out += [rest, "\n"] if more else []
            self._add(last, out)
        return "".join(out)

    def close(self) -> str:
        """No more will come. Returns what is held of a line that has no end."""
        out: list[str] = []
        self._show_states(out)
        last, self._open = self._open, ""
        self._passing = self._returned = False
        return "".join([*out, last])

    def _add(self, text: str, out: list[str]) -> None:
        if not text:
            return
        if self._returned:
            self._overwrite(out)
        self._open += text
        if self._passing or len(self._open) > LONG_CHARS:
            self._show_states(out)
            out.append(self._open)
            self._open, self._passing = "", True

    def _overwrite(self, out: list[str]) -> None:
        self._returned = False
        if self._passing:
            out.append("\n")
            self._passing = False
        elif self._open:
            self._states.append(self._open)
            self._few -= len(self._open) + 1
            self._open = ""
        if self._few < 0:
            self.dropped += sum(len(state.encode()) + 1 for state in self._states)
            self._states.clear()

    def _end(self, out: list[str]) -> None:
        self._show_states(out)
        out += [self._open, "\n"]
        self._open = ""
        self._passing = self._returned = False

    def _show_states(self, out: list[str]) -> None:
        out.extend(f"{state}\n" for state in self._states)
        self._states.clear()
        self._few = FEW_CHARS
