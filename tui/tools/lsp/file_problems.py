"""The problems of one file as one server says them, and which of them are new. Pure.

A list counts only where it is whole. Then a problem is new if the list before had none like it,
and, where the problems before the first edit are not known, if the edits touched its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tui.core.dataclass import dataclass, field
from tui.tools.lsp.problems import Problem, in_changed_lines, new_problems


@dataclass(slots=True)
class FileProblems:
    """The problems that a server last said a file has, and which of them are to be reported."""

    text: str = ""
    """The text that the server knows."""
    current: list[Problem] = field(default_factory=list[Problem])
    """Its last list, whole or not."""
    began: str | None = None
    """The text before the first edit, while its problems are not known."""
    _known: list[Problem] = field(default_factory=list[Problem])
    _unsaid: list[Problem] = field(default_factory=list[Problem])
    _gone: list[Problem] = field(default_factory=list[Problem])
    """Old problems that the last whole list did not have any more."""
    _hide: list[Problem] = field(default_factory=list[Problem])
    """The problems that were new then: as long as one is there, it may hide the others."""

    def begin(self, *, whole: bool) -> None:
        """Note that the current list is of the text before the first edit; `whole` if it is all of
        it."""
        self._known = list(self.current)
        self.began = None if whole else self.text

    def show(self, text: str) -> None:
        """Note a new text. What was not said yet has to be in its list again."""
        self.text = text
        self._known = new_problems(self._unsaid, self._known)
        self._unsaid = []
        if not self._hide:
            self._gone = []

    def weigh(self, *, said_something: bool = True) -> None:
        """Take the current list as whole. Where the server `said_something` about this text, the
        problems before the first edit are known from now on."""
        fresh = new_problems([*self._known, *self._gone], self.current)
        if self.began is not None:
            fresh = in_changed_lines(fresh, self.began, self.text)
        missing = new_problems(self.current, self._known)
        if not {one.what for one in self._hide} & {one.what for one in self.current}:
            self._hide, self._gone = [], []
        lines = {line.strip() for line in self.text.splitlines()}
        self._gone = new_problems(self.current, [*self._gone, *missing])
        if any(one.text.strip() in lines for one in missing):
            self._hide += [one for one in fresh if one.severity == "error"]
        self._known = list(self.current)
        self._unsaid += fresh
        if said_something:
            self.began = None

    def take(self) -> list[Problem]:
        """Return what is to be said, once."""
        taken, self._unsaid = self._unsaid, []
        return taken


def merged(lists: Iterable[Sequence[Problem]]) -> list[Problem]:
    """The problems of several lists about one text, each once."""
    return list(dict.fromkeys(one for said in lists for one in said))
