"""The lines of the settings: a heading for each section, and a setting in any width. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rich.cells import cell_len, set_cell_size

from tui.core.text_cleaning import visible
from tui.settings.descriptions import SECTIONS
from tui.settings.schema import Key, Setting
from tui.settings.validation import dotted
from tui.ui.widgets.row_list import Part

WIDE: Final = 100
_VALUE: Final = 80
"""A value needs no more cells; where it is from is read beside it."""
_LOOKS: Final = {"user": "text", "project": "secondary"}


@dataclass(frozen=True, slots=True)
class Heading:
    """The line over the settings of a section."""

    section: Key

    @property
    def title(self) -> str:
        return f"[{dotted(self.section)}]" if self.section else ""

    @property
    def about(self) -> str:
        return SECTIONS[self.section[0] if self.section else ""]


Line: TypeAlias = Setting | Heading


def lines_of(settings: Sequence[Setting]) -> list[Line]:
    """The settings, each section under its heading."""
    return list(_lines(settings))


def _lines(settings: Sequence[Setting]) -> Iterator[Line]:
    above: Key | None = None
    for setting in settings:
        if setting.section != above:
            yield Heading(setting.section)
        above = setting.section
        yield setting


def columns(width: int) -> tuple[int, int, int]:
    """The cells of name, value and origin."""
    name, origin = (28, 26) if width >= WIDE - 2 else (24, 14)
    return name, max(8, min(_VALUE, width - name - origin)), origin


def heading(width: int) -> str:
    """The names of the columns."""
    name, value, origin = columns(width)
    return f"  {'setting':<{name - 2}}{'in force':<{value}}{'from':<{origin}}"


def line_parts(line: Line, width: int) -> list[Part]:
    """One line in `width` cells."""
    if isinstance(line, Heading):
        title = visible(line.title)
        space = "  " if title else ""
        return [(title, "primary"), (f"{space}{line.about}", "muted")]
    name, value, origin = columns(width)
    place = line.places[-1] if line.places else None
    return [
        (_cell(f"  {_name(line)}", name), "text"),
        (_cell(visible(line.shown), value), "accent" if place else "muted"),
        (_cell(line.origin, origin), _LOOKS.get(place, "warning") if place else "muted"),
    ]


def _name(line: Setting) -> str:
    return visible(dotted(line.key[-1:]))


def _cell(text: str, width: int) -> str:
    """`text` in `width` cells, with one free at its end."""
    text = text.replace("\n", " ")
    if cell_len(text) < width:
        return set_cell_size(text, width)
    return set_cell_size(set_cell_size(text, width - 2).rstrip() + "…", width)
