"""What the browser looks at: which sessions, in which order, by which words, and how far it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from tui.app.dialog_data import Picked, SessionRow
from tui.app.session_repository import Place
from tui.ui.screens.sessions.rows import ORDERS, Order, in_order, matching

Tab: TypeAlias = Literal["here", "everywhere", "others"]

TABS: dict[Tab, str] = {
    "here": "this folder",
    "everywhere": "all folders",
    "others": "other agents",
}
SHORTEST = 2
"""Characters that a search needs."""


@dataclass(slots=True)
class Browsing:
    """`sessions` are those of the tab, `places` what a search found in them; None: not read yet.

    `words` filter the titles or, while `searching`, are what is searched for. `read` is how many
    of how many sessions have been read; `problem` is why none could be.
    """

    tab: Tab = "here"
    order: Order = "age"
    words: str = ""
    searching: bool = False
    sessions: Sequence[SessionRow] | None = None
    places: Sequence[Place] | None = None
    read: tuple[int, int] = (0, 0)
    problem: str = ""

    @property
    def reading(self) -> bool:
        """Whether what is to be shown is still being read."""
        return self.sessions is None or (self.searching and self.places is None)

    @property
    def too_short(self) -> bool:
        """Whether what is typed is not enough for a search."""
        return len(self.words.strip()) < SHORTEST

    def forget_sessions(self) -> None:
        """Those of the tab are to be read."""
        self.sessions, self.problem, self.read = None, "", (0, 0)

    def forget_places(self) -> None:
        """They are to be searched for."""
        self.places, self.read = None, (0, 0)

    def turn_tab(self, step: int) -> None:
        """To the next tab or (less than 0) the one before. Other agents' texts have no index."""
        self.tab = _after(TABS, self.tab, step)
        self.searching = self.searching and self.tab != "others"

    def turn_order(self) -> None:
        """To the next order."""
        self.order = _after(ORDERS, self.order, 1)

    def turn_search(self) -> None:
        """Between the titles and the texts."""
        self.searching = not self.searching
        self.places = None

    def sifted(self) -> list[SessionRow]:
        """The sessions that match the words, in order."""
        return in_order(matching(self.sessions or [], self.words), self.order)

    def picked(self, at: int, sifted: Sequence[SessionRow]) -> Picked | None:
        """What a row stands for; None where there is no such row."""
        if self.searching:
            places = self.places or ()
            return Picked(places[at].row, places[at].message) if at < len(places) else None
        return Picked(sifted[at]) if at < len(sifted) else None


_Choice = TypeVar("_Choice")


def _after(all_: Iterable[_Choice], one: _Choice, step: int) -> _Choice:
    choices = list(all_)
    return choices[(choices.index(one) + step) % len(choices)]
