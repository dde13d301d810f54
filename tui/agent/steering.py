"""What is typed while a turn runs: it joins the turn once its tools are done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tui.core.images import Image

NO_IMAGES: Mapping[str, Image] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """A text. `images` go along, by the words that stand for them in it."""

    text: str
    images: Mapping[str, Image] = field(default_factory=lambda: NO_IMAGES)


@dataclass(slots=True)
class Steering:
    """Keeps the texts in the order in which they came.

    Until it is taken a text can be taken back. Taking one may need some time first (its images
    are read): `take` says whether it is still there, so it is sent or given back and never both.
    """

    _waiting: list[Typed] = field(default_factory=list[Typed])

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(typed.text for typed in self._waiting)

    @property
    def first(self) -> Typed | None:
        """The one that is next; None where none waits."""
        return self._waiting[0] if self._waiting else None

    def add(self, typed: Typed) -> None:
        self._waiting.append(typed)

    def take(self, typed: Typed) -> bool:
        """Take one out. False where it was taken back."""
        if typed not in self._waiting:
            return False
        self._waiting.remove(typed)
        return True

    def take_back(self) -> tuple[str, ...]:
        """Take all of them out; returns their texts."""
        texts, self._waiting = self.texts, []
        return texts
