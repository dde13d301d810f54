"""Lines that belong together: a backslash at the end, or three quotes around them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

QUOTES = '"""'


@dataclass(slots=True)
class Entry:
    """A prompt as its lines come. `begun` says whether more are awaited."""

    _lines: list[str] = field(default_factory=list[str])
    _quoted: bool = False

    @property
    def begun(self) -> bool:
        return bool(self._lines) or self._quoted

    @property
    def text(self) -> str:
        """What there is of it."""
        return "\n".join(self._lines)

    def add(self, line: str) -> str | None:
        """Take a line. Returns the whole prompt when it is complete."""
        if self._quoted:
            if line.rstrip().endswith(QUOTES):
                rest = line.rstrip().removesuffix(QUOTES)
                return self._whole(rest, keep=bool(rest))
            self._lines.append(line)
            return None
        if not self._lines and line.lstrip().startswith(QUOTES):
            rest = line.lstrip().removeprefix(QUOTES)
            if rest.rstrip().endswith(QUOTES):
                return rest.rstrip().removesuffix(QUOTES)
            self._quoted = True
            self._lines += [rest] if rest.strip() else []
            return None
        if line.endswith("\\") and not line.endswith("\\\\"):
            self._lines.append(line[:-1])
            return None
        return self._whole(line, keep=True)

    def drop(self) -> None:
        """Begin anew."""
        self._lines, self._quoted = [], False

    def _whole(self, last: str, *, keep: bool) -> str:
        text = "\n".join([*self._lines, *([last] if keep else [])])
        self.drop()
        return text
