"""A list of what is installed for the model: names with descriptions, within a budget.

While all descriptions fit they stand there whole. Else all are cut to one length, the longest that
fits; where not even short ones fit, the last entries are left out, and the list says how many. What
is cut or left out is found by a search. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LIST_MAX: Final = 15_000
"""Characters of a list."""
_LENGTHS: Final = (600, 400, 250, 160, 100, 60)
_LAST_LINE: Final = 200


@dataclass(frozen=True, slots=True)
class Listing:
    """The text of a list; how many descriptions in it are cut, and the names that are not in it."""

    text: str
    cut: int = 0
    unlisted: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        return not self.cut and not self.unlisted


def listed(entries: Iterable[tuple[str, str]], what: str, budget: int = LIST_MAX) -> Listing:
    """List entries, names with descriptions of one line; `what` are several of them in a word."""
    every = list(entries)
    lines = [_line(name, about, len(about)) for name, about in every]
    if sum(map(len, lines)) + len(lines) <= budget:
        return Listing("\n".join(lines))
    for most in _LENGTHS:
        lines = [_line(name, about, most) for name, about in every]
        if sum(map(len, lines)) + len(lines) <= budget - _LAST_LINE:
            break
    kept, length = 0, 0
    for line in lines:
        length += len(line) + 1
        if length > budget - _LAST_LINE:
            break
        kept += 1
    unlisted = tuple(name for name, _ in every[kept:])
    cut = sum(len(about) > most for _, about in every[:kept])
    about_rest = f"{len(unlisted):,} more {what} are not listed" if unlisted else ""
    about_cut = f"{cut:,} descriptions are shortened" if cut else ""
    told = " and ".join(filter(None, (about_rest, about_cut)))
    lines = [*lines[:kept], f"- {told}: search_installed finds all of them by words."]
    return Listing("\n".join(lines), cut, unlisted)


def _line(name: str, about: str, most: int) -> str:
    return f"- {name}: {about if len(about) <= most else _shorter(about, most)}"


def _shorter(about: str, most: int) -> str:
    """The first sentence, if it fits; else as many words as fit."""
    end = about.find(". ", most // 3, most)
    if end > 0:
        return about[: end + 1]
    part = about[: most - 1]
    return f"{part.rpartition(' ')[0] or part}…"
