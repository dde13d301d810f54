"""Globs of paths: `**` takes folders too, `*` and `?` do not, `{a,b}` is one of several.

They come from files that others wrote, so matching takes no more than the length of the glob times
that of the path: a regular expression would try every way to share out the text among its stars.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern

_PART: Final = late_pattern(r"\*\*/|\*\*|\*|\?|\{[^{}/]*\}|.", re.DOTALL)
_ANY: Final = "any"
_IN_NAME: Final = "in name"
"""Any character but a slash."""


@dataclass(slots=True)
class PathGlob:
    """A glob as a machine with states: from each one, which characters lead where. The states in
    `free` are reached without any."""

    steps: list[list[tuple[str, int]]] = field(default_factory=lambda: [[]])
    free: list[list[int]] = field(default_factory=lambda: [[]])

    def matches(self, name: str) -> bool:
        """True if it matches the whole of a path."""
        now = self._reached({0})
        for char in name:
            kinds = (char, _ANY) if char == "/" else (char, _ANY, _IN_NAME)
            now = self._reached({to for at in now for kind, to in self.steps[at] if kind in kinds})
            if not now:
                return False
        return len(self.steps) - 1 in now

    def add(self, part: str, at: int) -> int:
        """The state behind a part that begins at a state."""
        match part:
            case "**/":
                inside, end = self._state(), self._state()
                self.free[at].append(end)
                self.steps[at].append((_ANY, inside))
                self.steps[inside] += [(_ANY, inside), ("/", end)]
                return end
            case "**" | "*":
                end = self._state()
                self.steps[at].append((_ANY if part == "**" else _IN_NAME, at))
                self.free[at].append(end)
                return end
            case _ if len(part) > 1:
                ends = [self._chain(one, at) for one in part[1:-1].split(",")]
                end = self._state()
                for one in ends:
                    self.free[one].append(end)
                return end
            case _:
                end = self._state()
                self.steps[at].append((_IN_NAME if part == "?" else part, end))
                return end

    def _chain(self, text: str, at: int) -> int:
        """One of the texts between braces, which may have a `*`."""
        start = self._state()
        self.free[at].append(start)
        for char in text:
            if char == "*":
                start = self.add(char, start)
            else:
                end = self._state()
                self.steps[start].append((char, end))
                start = end
        return start

    def _state(self) -> int:
        self.steps.append([])
        self.free.append([])
        return len(self.steps) - 1

    def _reached(self, states: set[int]) -> set[int]:
        left = list(states)
        while left:
            for one in self.free[left.pop()]:
                if one not in states:
                    states.add(one)
                    left.append(one)
        return states


@lru_cache(maxsize=500)
def path_glob(glob: str) -> PathGlob:
    """The glob of a text. `./` and `/` at its beginning mean the same as nothing."""
    found, at = PathGlob(), 0
    for part in _PART.findall(glob.removeprefix("./").removeprefix("/")):
        at = found.add(part, at)
    return found
