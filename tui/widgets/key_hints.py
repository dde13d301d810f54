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


def in_a_row(keys: Keys, *, gap: int = 3) -> Content:
    """All of them in one row."""
    return Content(" " * gap).join([hint(key, text) for key, text in keys])


def fitting(keys: Keys, room: int, *, gap: int = 3) -> Content:
    """The first of them, as many as there is room for in one row."""
    shown: list[tuple[str, str]] = []
    for key, text in keys:
        room -= len(key) + len(text) + 1 + (gap if shown else 0)
        if room < 0:
            break
        shown.append((key, text))
    return in_a_row(shown, gap=gap)


def in_rows(keys: Keys, width: int, *, gap: int = 2) -> Content:
    """All of them, in as many rows of `width` cells as they take."""
    rows: list[Content] = []
    for key, text in keys:
        longer = Content(" " * gap).join([*rows[-1:], hint(key, text)])
        if rows and longer.cell_length <= width:
            rows[-1] = longer
        else:
            rows.append(hint(key, text))
    return Content("\n").join(rows)
