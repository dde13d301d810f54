"""Lines that are typed while nothing is asked. The terminal echoes them itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tui.plain.multiline import Entry
from tui.plain.tty import Tty, meant


@dataclass(slots=True)
class TypedAhead:
    """`typed` takes each prompt that is whole, `kept` what is none: it belongs to the next one."""

    tty: Tty
    typed: Callable[[str], object]
    kept: Callable[[str], object]
    _entry: Entry = field(default_factory=Entry)

    def take(self) -> bool:
        """Take what can be read. False for Ctrl+D, and where the terminal has gone."""
        data = self.tty.read()
        if data is None:
            return False
        while data.endswith("\n") and self.tty.line_follows() and (more := self.tty.read()):
            data += more
        if data.endswith("\n"):
            self.hear(data.rstrip("\r\n"))
        else:
            self.kept(data)
        return True

    def hear(self, line: str) -> None:
        """Take a line."""
        text = self._entry.add(line)
        if text is not None and text.strip():
            self.typed(text)

    def keys(self, data: str) -> str:
        """Take what was read key by key. Returns what is no whole line, and is kept."""
        *lines, rest = meant(data).split("\n")
        if rest:
            self.kept(rest)
        for line in lines:
            self.hear(line)
        return rest

    def end(self) -> None:
        """Keep what was begun: nobody will type its end."""
        data = ""
        with self.tty.keys():
            while self.tty.ready() and (more := self.tty.read()):
                data += more
        self.kept("\n".join(filter(None, (self._entry.text, meant(data)))))
        self._entry.drop()
