"""The task file: parsing it, and writing an outcome back into it. Pure.

    <!-- boot: docs/start.md -->     before the first `##`: the boot file
    ## group                         the tasks below it belong together
    - task                           a task; `- [ ] task` with a checkbox, which makes one of
                                     `* [ ] task` and `+ [ ] task`, too
      continues here                   indented lines continue it, joined by one space; blanks
                                     within a line stay as they are; in a fenced passage the lines
                                     stay, too

Everything else is prose. `[ ]` is open, `[x]` done, `[!]` failed, `[~]` interrupted: marks, not
part of the task's text. A fenced or commented-out passage holds no tasks.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from tui.core.dataclass import dataclass

UNGROUPED: Final = "ungrouped"

Mark: TypeAlias = Literal["", " ", "x", "!", "~"]
"""The text in a task's checkbox; "" without one."""

_GROUP = re.compile(r"##[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_TASK = re.compile(
    r"(?:-[ \t]+(?!\[[ xX!~]\](?:[ \t]|$))|[-*+][ \t]+\[([ xX!~])\](?:[ \t]+|$))(.*)"
)
_BOOT = re.compile(r"<!--\s*boot:\s*(.+?)\s*-->")
_BLANK: Final = " \t"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIKE_A_TASK = re.compile(
    r" -[ \t]+\S|[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[[ xX!~]\](?:[ \t]|$)"
    r"|[*+][ \t]+(?![*+ \t]*$)\S"  # but `* * *`, which is a line across the page
)
_BOX = re.compile(rb"([-*+][ \t]+\[)[ xX!~](?=\])")


@dataclass(frozen=True, slots=True)
class Task:
    """One task. `index` counts from 0 through the file, `line` from 0 through its lines.

    `section` counts the groups from 0: two of the same name are two.
    """

    index: int
    section: int
    group: str
    text: str
    mark: Mark
    line: int


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The contents of a task file. `boot` is the path of its directive as written, "" without
    one."""

    tasks: tuple[Task, ...]
    boot: str = ""
    not_taken: tuple[tuple[int, str], ...] = ()
    """Lines that look like a task and are none, each with its number from 0."""

    @property
    def sha256(self) -> str:
        """The hash of groups and task texts, without their marks and the prose around them."""
        texts = [[task.section, task.group, task.text] for task in self.tasks]
        return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


@dataclass(slots=True)
class _Open:
    """A task whose continuation lines are being read."""

    heading: int
    group: str
    parts: list[str]
    """Its text, in pieces."""
    mark: Mark
    line: int
    fence: str = ""
    """The mark that ends the fenced passage that its lines are in, "" outside of one."""
    indent: int = 0
    """The indentation of that passage."""

    def continued_by(self, line: str) -> bool:
        """True if a line belongs to the task."""
        return line.startswith((" ", "\t")) or (bool(self.fence) and not line)

    def add(self, line: str) -> None:
        """A line that continues the task."""
        text = line.strip(_BLANK)
        if self.fence:
            self.parts.append("\n" + _undented(line, self.indent).rstrip())
            self.fence = "" if text.startswith(self.fence) else self.fence
        elif match := _FENCE.match(text):
            self.fence, self.indent = match[1], len(line) - len(line.lstrip(_BLANK))
            self.parts.append("\n" + text)
        elif text:
            before = next((part for part in reversed(self.parts) if part), "")
            joint = "\n" if before.endswith(("```", "~~~")) else " "
            self.parts.append(f"{joint}{text}" if before else text)


def parse(data: bytes) -> TaskFile:
    """Read a task file. Any bytes are one: what is no task is prose."""
    reader = _Reader()
    for number, raw in enumerate(_decoded(data).split("\n")):
        reader.read(number, raw.removesuffix("\r"))
    reader.close()
    return TaskFile(tuple(reader.tasks), reader.boot, tuple(reader.not_taken))


class _Reader:
    """Takes the lines of a task file one by one."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.not_taken: list[tuple[int, str]] = []
        self.boot = ""
        self._group, self._headings = UNGROUPED, 0
        self._sections: dict[int, int] = {}
        self._current: _Open | None = None
        self._fence = ""
        self._commented = False

    def read(self, number: int, line: str) -> None:
        if self._commented:
            self._commented = "-->" not in line
        elif self._current is not None and self._current.continued_by(line):
            in_fence = self._current.fence
            self._current.add(line)
            if not in_fence and _LIKE_A_TASK.match(line):
                self.not_taken.append((number, line.strip(_BLANK)))
        elif self._fence:
            self._fence = "" if line.strip().startswith(self._fence) else self._fence
        elif not line.strip():
            pass  # an indented line behind it still continues the task
        elif match := _TASK.fullmatch(line):
            self.close()
            mark, text = _MARKS[match[1]], match[2].strip(_BLANK)
            self._current = _Open(self._headings, self._group, [text], mark, number)
        else:
            self.close()
            self._read_prose(number, line)

    def close(self) -> None:
        """The task that was read last is complete."""
        one, self._current = self._current, None
        if one is not None and (text := "".join(one.parts).rstrip("\n")):
            section = self._sections.setdefault(one.heading, len(self._sections))
            self.tasks.append(Task(len(self.tasks), section, one.group, text, one.mark, one.line))

    def _read_prose(self, number: int, line: str) -> None:
        if match := _GROUP.fullmatch(line):
            self._group, self._headings = match[1] or UNGROUPED, self._headings + 1
        elif (match := _BOOT.search(line)) and not self._headings and not self.boot:
            self.boot = match[1]
        elif match := _FENCE.match(line):
            self._fence = match[1]
        elif _LIKE_A_TASK.match(line):
            self.not_taken.append((number, line.strip(_BLANK)))
        self._commented = line.rfind("<!--") > line.rfind("-->")


def with_marks(data: bytes, marks: Mapping[int, Mark]) -> bytes:
    """The file with the checkboxes of these tasks set, by index; not a byte else is changed.

    Tasks without a checkbox get none.
    """
    lines = data.split(b"\n")
    for task in parse(data).tasks:
        mark = marks.get(task.index, "")
        if mark and task.mark:
            lines[task.line] = _BOX.sub(rb"\g<1>" + mark.encode(), lines[task.line], count=1)
    return b"\n".join(lines)


_MARKS: Mapping[str | None, Mark] = {None: "", "x": "x", "X": "x", "!": "!", "~": "~", " ": " "}


def _undented(line: str, by: int) -> str:
    """A line without at most this many blanks at its start."""
    return line[min(by, len(line) - len(line.lstrip(_BLANK))) :]


def _decoded(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")
