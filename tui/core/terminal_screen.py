"""The screen of a terminal as a person would see it: text, colors, cursor; as data and as text."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from tui.core.dataclass import dataclass


class ScreenRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a line that looks the same. Colors are names (`red`, `brightblue`) or six hex
    digits, "" for the terminal's own; `style` has letters: b bold, i italic, u underlined, s struck
    through, r reversed."""

    text: str
    color: str = ""
    background: str = ""
    style: str = ""


Row: TypeAlias = tuple[ScreenRun, ...]

row_of_json: Final = msgspec.json.Decoder(Row).decode
"""Returns a row that a keeper wrote. Raises ValueError for what is none."""


@dataclass(frozen=True, slots=True)
class TerminalScreen:
    """A screen of `rows` × `cols` cells.

    `lines` has one tuple of runs for each row, spaces at its end left out; a wide character is one
    character. `cursor` is its row and column, from 0. `alternate`: the program draws on a screen
    of its own, as an editor does. `secret`: the program reads a line without showing it (ECHO off,
    ICANON on). `version` grows with every change. `gone` counts the lines that have left at the
    top since the start, `recent` are the last of them that were asked for. `crashes` counts how
    often the emulation failed and began again with an empty screen.
    """

    rows: int
    cols: int
    lines: tuple[Row, ...] = ()
    cursor: tuple[int, int] = (0, 0)
    cursor_shown: bool = True
    title: str = ""
    alternate: bool = False
    secret: bool = False
    version: int = 0
    gone: int = 0
    recent: tuple[str, ...] = ()
    crashes: int = 0

    @property
    def text(self) -> str:
        """The rows as lines of text, without spaces at their end and empty ones after them."""
        rows = ("".join(run.text for run in line).rstrip() for line in self.lines)
        return "\n".join(rows).rstrip("\n")

    @classmethod
    def of_json(cls, data: object) -> TerminalScreen:
        """Return the screen that a keeper wrote. Raises ValueError for what is none."""
        return msgspec.convert(data, cls)
