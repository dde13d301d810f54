"""The output of commands, as data: made once here, drawn by each front end in its own way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from tui.core.dataclass import dataclass
from tui.core.text_cleaning import one_line

Level: TypeAlias = Literal["info", "success", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Row:
    """One thing in a report, found again by its `key`. `values` stand in its columns; `mark` says
    at a glance how it is, in the color of `look`. `about` is all there is to say, a line each, and
    `actions` are what can be done with it now. It is part of the row above with less `depth`; a
    `dim` one does not count. `file` is where it is written."""

    name: str
    values: tuple[str, ...] = ()
    key: str = ""
    mark: str = ""
    look: str = "muted"
    about: tuple[str, ...] = ()
    actions: frozenset[str] = frozenset()
    depth: int = 0
    dim: bool = False
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The output of a command. A row may be a line as it is; `columns` are the names of the rows'
    values, and `notes` come below."""

    title: str
    rows: Sequence[Row | str] = ()
    level: Level = "info"
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> Iterator[str]:
        """The rows in columns, for wherever letters are equally wide."""
        head = [Row("", self.columns)] if self.columns else []
        rows = [*head, *self.rows]
        names = [len(row.name) for row in rows if isinstance(row, Row)]
        wide = max(names, default=0) + (0 if self.columns else 2)
        cells = [len(name) for name in self.columns]
        for row in self.rows if self.columns else ():
            if isinstance(row, Row):
                cells = [max(pair) for pair in zip(cells, map(len, row.values), strict=True)]
        for row in rows:
            if isinstance(row, str):
                yield row
            elif self.columns:
                values = zip(row.values, cells, strict=True)
                yield f"{row.name:<{wide}}" + "".join(f"  {value:>{n}}" for value, n in values)
            else:
                yield f"{row.name:<{wide}}{', '.join(row.values)}"
        yield from self.notes


def problem_row(problem: str) -> Row:
    """Make the row of something that is wrong, a sentence."""
    return Row(
        one_line(problem), key=f"problem {problem}", mark="!", look="warning", about=(problem,)
    )
