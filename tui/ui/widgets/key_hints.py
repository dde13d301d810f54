"""Keys and what they do, as they stand at the foot of a screen or beside a field. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from textual.content import Content

Keys: TypeAlias = Iterable[tuple[str, str]]
"""A key and what it does, the most useful first."""


def hint(key: str, text: str) -> Content:
    """One key and what it does."""
    return Content.assemble((key, "$text-accent"), (f" {text}", "$text-muted"))


def in_a_row(keys: Keys) -> Content:
    """All of them in one row."""
    return Content("   ").join([hint(key, text) for key, text in keys])


def fitting(keys: Keys, room: int) -> Content:
    """The first of them, as many as there is room for in one row."""
    shown: list[tuple[str, str]] = []
    for key in keys:
        if in_a_row([*shown, key]).cell_length > room:
            break
        shown.append(key)
    return in_a_row(shown)


def in_rows(keys: Keys, width: int, *, rows: int = 2) -> Content:
    """As many as there is room for in so many rows of `width` cells, about as long as each other.

    The last is the way out and stays; those before it give way.
    """
    shown = list(keys)
    while len(found := _rows(shown, width)) > rows and len(shown) > 1:
        del shown[-2]
    while width > 1 and len(closer := _rows(shown, width - 1)) == len(found) > 1:
        width, found = width - 1, closer
    return Content("\n").join(found)


def _rows(keys: Keys, width: int) -> list[Content]:
    rows: list[Content] = []
    for key, text in keys:
        longer = Content("   ").join([*rows[-1:], hint(key, text)])
        if rows and longer.cell_length <= width:
            rows[-1] = longer
        else:
            rows.append(hint(key, text))
    return rows
