"""What is searched for in bytes, and where it stands in what is drawn of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tui.ui.widgets.markdown.text import Line

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


@dataclass(frozen=True, slots=True)
class Needle:
    """`text` in the bytes of a file, "" for nothing; `fold`: capitals (ASCII only) are the same
    as small letters, and `text` has only these."""

    text: bytes = b""
    fold: bool = False

    def count(self, data: bytes) -> int:
        """How often it stands in these bytes."""
        return (data.lower() if self.fold else data).count(self.text)

    def spots(self, drawn: Line) -> list[tuple[int, int]]:
        """The characters of a drawn line that it is, from start to end."""
        wanted = self.text.decode("utf-8", "replace")
        if not wanted:
            return []
        text = drawn.text.translate(_LOWER) if self.fold else drawn.text
        found: list[tuple[int, int]] = []
        at = text.find(wanted)
        while at >= 0:
            found.append((at, at + len(wanted)))
            at = text.find(wanted, at + len(wanted))
        return found
