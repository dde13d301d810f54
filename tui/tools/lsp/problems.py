"""Problems as data: parsed from the output of a server or a linter, compared, and formatted. Pure.

The output is not trusted: whatever is no problem is left out, and texts are cleaned.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, Literal, TypeAlias

from tui.core.dataclass import dataclass
from tui.core.formatting import shortened
from tui.core.late_pattern import late_pattern
from tui.core.messages import list_of, object_of, string_of
from tui.core.text_cleaning import one_line

Severity: TypeAlias = Literal["error", "warning"]
Column: TypeAlias = Callable[[str, int], int]
"""Converts a server's column in a line to characters."""

READ_MAX: Final = 2000
"""Maximum problems of one file that are parsed."""
SHOWN_MAX: Final = 20
"""Maximum problems that are named at once; the others are counted."""
MESSAGE_CHARS: Final = 300
NAME_CHARS: Final = 60
_LINES_COMPARED: Final = 5000
_LONG_LINE: Final = 10_000
"""Characters above which a column stays as the server counts it."""
_SEVERITIES: Final[Mapping[object, Severity]] = {1: "error", 2: "warning", None: "error"}
_PRINTED = late_pattern(
    r"^(?P<path>[^\s:(][^:(]*?)(?::(?P<line>\d+)(?::(?P<column>\d+))?:?|\((?P<l>\d+),(?P<c>\d+)\):?)"
    r"\s+(?:(?P<kind>fatal error|error|warning|warn|note|info|hint|help)\b[:\s]*)?(?P<said>.+)$",
    re.IGNORECASE,
)
_NUMBER = late_pattern(r"\d+")
_QUIET: Final = frozenset({"note", "info", "hint", "help"})


@dataclass(frozen=True, slots=True)
class Problem:
    """One error or warning. `line` and `column` begin at 1; `column` is 0 if not known; `text` is
    the line that it is in."""

    path: str
    line: int
    column: int
    severity: Severity
    message: str
    source: str = ""
    code: str = ""
    text: str = ""

    @property
    def what(self) -> tuple[str, ...]:
        """The problem without its place, for comparison."""
        return self.severity, self.message, self.source, self.code


def problem_lines(problems: Sequence[Problem]) -> list[str]:
    """Return a line for each, `path:line:column severity message [source code]`; the errors
    first."""
    ordered = sorted(problems, key=lambda one: one.severity)
    lines = [_line(one) for one in ordered[:SHOWN_MAX]]
    if more := len(ordered) - SHOWN_MAX:
        lines += [f"… and {more:,} more"] if more > 0 else []
    return lines


def _line(one: Problem) -> str:
    place = f"{one.line}:{one.column}" if one.column else f"{one.line}"
    origin = " ".join(filter(None, (one.source, one.code)))
    text = f"{one.path}:{place} {one.severity} {one.message}"
    return f"{text} [{origin}]" if origin else text


def new_problems(before: Iterable[Problem], after: Sequence[Problem]) -> list[Problem]:
    """Return the problems of `after` that were not there before, by their wording: lines may have
    moved.

    If some of the same wording were there, those in unchanged lines are the old ones.
    """
    old, fresh = list(before), list(after)
    for alike in (_same, _in_line, _what):
        old, fresh = _unmatched(old, fresh, alike), _unmatched(fresh, old, alike)
    return fresh


def _unmatched(
    these: Sequence[Problem], others: Sequence[Problem], alike: Callable[[Problem], object]
) -> list[Problem]:
    """The problems that have no partner among the others."""
    partners = Counter(map(alike, others))
    left: list[Problem] = []
    for one in these:
        partners[alike(one)] -= 1
        if partners[alike(one)] < 0:
            left.append(one)
    return left


def _same(one: Problem) -> object:
    return one.what, one.text.strip()


def _in_line(one: Problem) -> object:
    """Numbers don't count: a message may name lines, which move."""
    return one.severity, _NUMBER.sub("0", one.message), one.source, one.code, one.text.strip()


def _what(one: Problem) -> object:
    return one.what


def of_server(
    said: object, path: str, lines: Sequence[str], column: Column, source: str
) -> list[Problem]:
    """Return the errors and warnings among the diagnostics that a server published for a file.

    `source` is the server's name, for those that name none.
    """
    problems: list[Problem] = []
    for given in list_of(said)[:READ_MAX]:
        one = object_of(given)
        severity = _SEVERITIES.get(_number(one.get("severity")))
        start = object_of(object_of(one.get("range")).get("start"))
        line, character = _number(start.get("line")), _number(start.get("character"))
        message = one_line(string_of(one.get("message"))[: 4 * MESSAGE_CHARS])
        # An odd diagnostic is left out, not the whole answer.
        if severity is None or line is None or not message:
            continue
        text = lines[line] if line < len(lines) else ""
        code = one.get("code")
        problems.append(
            Problem(
                path,
                line + 1,
                (character or 0 if len(text) > _LONG_LINE else column(text, character or 0)) + 1,
                severity,
                shortened(message, MESSAGE_CHARS),
                shortened(one_line(string_of(one.get("source"))) or source, NAME_CHARS),
                shortened(one_line(str(code)), NAME_CHARS) if isinstance(code, str | int) else "",
                text,
            )
        )
    return problems


def of_linter(
    printed: str, path: str, names: Sequence[str], lines: Sequence[str], source: str
) -> list[Problem]:
    """Return the problems that a linter printed for a file, in lines such as `path:3:5: error: …`.

    `names` are the ways in which it may name the file.
    """
    problems: list[Problem] = []
    for row in printed.splitlines():
        if len(problems) >= READ_MAX:
            break
        parts = _PRINTED.match(one_line(row[: 4 * MESSAGE_CHARS]))
        kind = (parts["kind"] or "warning").lower() if parts else ""
        if parts is None or kind in _QUIET or parts["path"] not in names:
            continue
        line, column = parts["line"] or parts["l"], parts["column"] or parts["c"]
        number = int(line[:9])
        text = lines[number - 1] if 0 < number <= len(lines) else ""
        severity: Severity = "error" if "error" in kind else "warning"
        message = shortened(parts["said"], MESSAGE_CHARS)
        column = int((column or "0")[:9])
        problems.append(Problem(path, number, column, severity, message, source, "", text))
    return problems


def in_changed_lines(problems: Iterable[Problem], before: str, after: str) -> list[Problem]:
    """Return the problems in lines that an edit added or changed; all if the file is too long to
    compare."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > _LINES_COMPARED:
        return list(problems)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    changed = {
        line + 1
        for tag, _, _, first, last in matcher.get_opcodes()
        if tag != "equal"
        for line in range(first, last)
    }
    return [one for one in problems if one.line in changed]


def _number(value: object) -> int | None:
    """Return a whole number from 0 on; None for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < 2**31 else None
