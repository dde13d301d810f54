"""The task file: parsing it, and writing an outcome back into it. Pure.

    <!-- boot: docs/start.md -->     before the first `##`: the boot file
    ## group                         the tasks below it belong together
    - task                           a task; `- [ ] task` with a checkbox
      goes on here                   indented lines continue it, joined by one space; blanks
                                     within a line stay as they are

Everything else is prose. `[ ]` is open, `[x]` done, `[!]` failed, `[~]` interrupted: marks, not
part of the task's text. A fenced or commented-out passage holds no tasks.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

UNGROUPED: Final = "ungrouped"

Mark: TypeAlias = Literal["", " ", "x", "!", "~"]
"""What stands in a task's checkbox; "" without one."""

_GROUP = re.compile(r"##[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_TASK = re.compile(r"-[ \t]+(?:\[([ xX!~])\](?:[ \t]+|$))?(.*)")
_BOOT = re.compile(r"<!--\s*boot:\s*(.+?)\s*-->")
_BLANK: Final = " \t"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_BOX = re.compile(rb"(-[ \t]+\[)[ xX!~](?=\])")


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
    """What a task file says. `boot` is the path of its directive as written, "" without one."""

    tasks: tuple[Task, ...]
    boot: str = ""

    @property
    def sha256(self) -> str:
        """The hash of groups and task texts, without their marks and the prose around them."""
        said = [[task.section, task.group, task.text] for task in self.tasks]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


@dataclass(slots=True)
class _Open:
    """A task whose continuation lines are being read."""

    heading: int
    group: str
    lines: list[str]
    mark: Mark
    line: int


def parse(data: bytes) -> TaskFile:
    """Read a task file. Any bytes are one: what is no task is prose."""
    tasks: list[Task] = []
    boot, group, headings = "", UNGROUPED, 0
    seen: dict[int, int] = {}
    current: _Open | None = None
    fence = ""
    commented = False

    def close() -> None:
        nonlocal current
        if current is not None and (text := " ".join(filter(None, current.lines))):
            section = seen.setdefault(current.heading, len(seen))
            tasks.append(Task(len(tasks), section, current.group, text, current.mark, current.line))
        current = None

    for number, raw in enumerate(_decoded(data).split("\n")):
        line = raw.removesuffix("\r")
        if commented:
            commented = "-->" not in line
        elif line.startswith((" ", "\t")) and current is not None:
            current.lines.append(line.strip(_BLANK))
        elif fence:
            fence = "" if line.strip().startswith(fence) else fence
        elif not line.strip():
            pass  # an indented line behind it still continues the task
        elif found := _TASK.fullmatch(line):
            close()
            current = _Open(headings, group, [found[2].strip(_BLANK)], _MARKS[found[1]], number)
        else:
            close()
            if found := _GROUP.fullmatch(line):
                group, headings = found[1] or UNGROUPED, headings + 1
            elif (found := _BOOT.search(line)) and not headings and not boot:
                boot = found[1]
            elif found := _FENCE.match(line):
                fence = found[1]
            commented = line.rfind("<!--") > line.rfind("-->")
    close()
    return TaskFile(tuple(tasks), boot)


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


def _decoded(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")
