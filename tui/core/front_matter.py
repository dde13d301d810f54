"""The front matter of a Markdown file: fields between two lines of `---` at its beginning.

Files that other programs read too are often not quite YAML, such as a description with a colon in
it; those are read line by line, as their own programs do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, cast

from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern

_FRONT = late_pattern(r"\A---[ \t]*\n(.*?)(?:^)---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = late_pattern(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*))?")
_BEGUN = late_pattern(r"""^["']?([A-Za-z][\w-]*)["']?[ \t]*:""", re.MULTILINE)
_INNER = late_pattern(r"^(?![ \t]*#)[^\w\n]*+([A-Za-z][\w-]*+)[^\w\n:=]*+[:=]", re.MULTILINE)
"""Text that may have been meant as a field, wherever a line of it begins."""
_PLAIN = late_pattern(r"[A-Za-z][\w ,.;/()'’–+-]*(?<! )")
_QUOTED = late_pattern(r'"[^"\\]*"')
_SPECIAL = frozenset({"true", "false", "yes", "no", "on", "off", "null"})
_MAX_CHARS = 8_000
"""Characters of a front matter that is read as YAML, which is slow."""
_MAX_CHECKED = 200_000
"""Characters of a whole file that is checked for its syntax."""
_MAX_DEPTH = 16
"""Depth of lists in lists: PyYAML takes quadratic time for deeper ones, and nobody writes them."""
_SEPARATED = late_pattern(r"(?:[^,(]|\([^()]*\)|\()+")
"""Splits at commas. A comma within parentheses belongs to a rule, such as `Bash(git add:*, git
commit:*)`."""


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    """A file's text below its front matter, and its fields by name in lower case."""

    body: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unclear: frozenset[str] = frozenset()
    """Fields that are given twice, or seem to be in the lines of another one, such as behind a tab:
    their value is not known."""

    def text(self, name: str) -> str:
        """Return a field as one text; "" if it is missing. A list is joined by commas."""
        value = self.fields.get(name)
        if isinstance(value, list):
            return ", ".join(_scalar(one) for one in cast("list[Any]", value))
        return _scalar(value)

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return a field that lists names, as a list or between commas; None if it is missing."""
        if self.fields.get(name) is None:
            return None
        parts = _SEPARATED.findall(self.text(name))
        return tuple(part.strip() for part in parts if part.strip())


def parse(data: bytes) -> MarkdownFile:
    """Parse a file's bytes, taken as UTF-8. Never raises; without a front matter, all is text."""
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    front = _FRONT.match(text) if text.startswith("---") else None
    if front is None:
        return MarkdownFile(text.strip())
    fields = _fields(front[1])
    return MarkdownFile(text[front.end() :].strip(), fields, _unclear(front[1], fields))


def argument_hint(file: MarkdownFile) -> str:
    """Return the argument of a command. `[message]` is a list to YAML, but a word to its author."""
    for name in ("argument", "argument-hint"):
        if text := file.text(name):
            return f"[{text}]" if isinstance(file.fields.get(name), list) else text
    return ""


def _unclear(front: str, fields: Mapping[str, Any]) -> frozenset[str]:
    begun = Counter(match[1].lower() for match in _BEGUN.finditer(front))
    inner = {match[1].lower() for match in _INNER.finditer(front)} - fields.keys()
    # In a text or a map of real YAML, such lines are no fields.
    known = _yaml(front) if inner else None
    twice = {name for name, times in begun.items() if times > 1}
    return frozenset(twice | (inner if known is None else set()))


def _fields(front: str) -> dict[str, Any]:
    lines = [_FIELD.fullmatch(line) for line in front.splitlines()]
    if all(line and _is_plain(line[2] or "") for line in lines):
        return {line[1].lower(): line[2] and _unquoted(line[2]) for line in lines if line}
    return _yaml(front) or dict(_lines(front))


def _yaml(front: str) -> dict[str, Any] | None:
    """Parse the fields as YAML; None for what is none, or would take long."""
    if len(front) > _MAX_CHARS or _depth(front) > _MAX_DEPTH:
        return None
    import yaml  # noqa: PLC0415 - it takes 10 ms, and most files are plainer

    try:
        # Aliases could grow without bounds, and nobody has them in a front matter. YAML makes half
        # a character of `\ud800`, even in a pair of them. All scalars stay texts: their types
        # elsewhere are of no use here.
        safe = not re.search(r"[&*]\w|!!|\\(?:u|U0000)[dD][89a-fA-F]", front)
        parsed: Any = yaml.load(front, Loader=yaml.BaseLoader) if safe else None  # noqa: S506
    except (yaml.YAMLError, ValueError, TypeError, LookupError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        return None
    fields = cast("dict[object, Any]", parsed)
    return {str(name).strip().lower(): value for name, value in fields.items()}


def yaml_problem(text: str) -> str:
    """Return why a text is no YAML, in a line; "" if it is, or if finding out would take long."""
    if len(text) > _MAX_CHECKED or _depth(text) > _MAX_DEPTH:
        return ""
    import yaml  # noqa: PLC0415 - as above

    try:
        for _ in yaml.parse(text, Loader=getattr(yaml, "CLoader", yaml.BaseLoader)):
            pass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return f"line {mark.line + 1}: {error.problem}" if mark else str(error.problem)
    except (yaml.YAMLError, ValueError) as error:
        return str(error).split("\n", 1)[0]
    return ""


def _depth(front: str) -> int:
    """Return how deep brackets and braces nest, including those in quoted texts."""
    steps = (1 if sign in "[{" else -1 for sign in re.findall(r"[\[\]{}]", front))
    return max(accumulate(steps), default=0)


def _is_plain(value: str) -> bool:
    """True if a value is one line that YAML would read as it stands, or between its quotes."""
    if _QUOTED.fullmatch(value):
        return True
    return bool(_PLAIN.fullmatch(value)) and value.lower() not in _SPECIAL


def _lines(front: str) -> Iterator[tuple[str, Any]]:
    """Yield fields line by line: a line that is indented, or begins no field, belongs to the one
    before."""
    name, parts = "", list[str]()
    for line in front.splitlines():
        if begun := _FIELD.fullmatch(line):
            if name:
                yield name, _value(parts)
            name, parts = begun[1].lower(), [begun[2] or ""]
        elif name and line.strip() and not line.startswith("#"):
            parts.append(line)
    if name:
        yield name, _value(parts)


def _value(parts: list[str]) -> str | list[str]:
    first, *rest = (part.strip() for part in parts)
    if not first and rest and all(part.startswith("- ") for part in rest):
        return [_unquoted(part[2:]) for part in rest]
    if first in {"|", ">", "|-", ">-", "|+", ">+"}:
        return "\n".join(rest)
    return _unquoted("\n".join((first, *rest)))


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)
