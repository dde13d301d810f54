"""A suite of recorded prompts: a TOML file that a person can read and edit. Pure.

[[case]]
name = "make-the-parser-skip"     one of its kind in the suite
session = "1f0c9a…"               the session that the prompt is of
prompt = "0199…"                  the prompt's record; what was said before it is its history
text = "Make the parser skip …"   what is sent
before = "5be1f0a2-12"            the checkpoint of the files when it was sent
after = "5be1f0a2-17"             the checkpoint with which the checks were green
checks = ["pytest -q"]            commands; the case is solved if each of them exits with 0
linked = ["node_modules"]         read from the folder as it is today, and never written
missing = ["target"]              not there: the checkpoint has no copy of it
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Final

import msgspec

from tui.core.errors import UsageError
from tui.core.late_pattern import late_pattern

_EDIT: Final = "Edit the file, or make a new one: holdfast replay SUITE --add ID"
_UNSAFE: Final = late_pattern(r"[\x00-\x08\x0b-\x1f\x7f]")
_NAME_CHARS: Final = 48


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One prompt of a suite; the fields are those of the file."""

    name: str
    session: str
    prompt: str
    text: str
    before: str
    after: str
    checks: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class Suite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cases of a suite, in the order of the file."""

    case: tuple[Case, ...] = ()


def parse(data: bytes, name: str) -> Suite:
    """The suite in a file; `name` is the file's, for the message. Raises UsageError, which says
    what is wrong where."""
    try:
        value = tomllib.loads(data.decode("utf-8-sig"))
        suite = msgspec.convert(value, Suite)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise UsageError(f"{name} isn't a suite: {error}.", hint=_EDIT) from error
    seen = set[str]()
    for number, case in enumerate(suite.case, 1):
        where = f"case {number} ({case.name})" if case.name else f"case {number}"
        for field in ("name", "session", "text", "before"):
            if not getattr(case, field).strip():
                raise UsageError(f"{name} isn't a suite: {where} has no {field}.", hint=_EDIT)
        if case.name in seen:
            raise UsageError(f"{name} isn't a suite: two cases are named {case.name}.", hint=_EDIT)
        seen.add(case.name)
    return suite


def rendered(cases: Sequence[Case]) -> str:
    """Cases as the text of a suite file, to be written or appended to one."""
    return "".join(_rendered(case) for case in cases)


def _rendered(case: Case) -> str:
    fields: dict[str, str | list[str]] = msgspec.to_builtins(case)
    lines = ["[[case]]"]
    for name, value in fields.items():
        shown = _quoted(value) if isinstance(value, str) else _listed(value)
        lines.append(f"{name} = {shown}")
    return "\n".join(lines) + "\n\n"


def _listed(values: Sequence[str]) -> str:
    """A list of texts, one in a line where there are several."""
    quoted = [_one_line(value) for value in values]
    if len(quoted) < 2:
        return f"[{''.join(quoted)}]"
    return "".join(["[\n", *(f"    {value},\n" for value in quoted), "]"])


def _quoted(text: str) -> str:
    """A text in quotes; one of several lines keeps them."""
    if "\n" not in text:
        return _one_line(text)
    escaped = _sound(text).replace("\\", "\\\\").replace('"""', '""\\"')
    escaped = re.sub(r'"\Z', '\\"', escaped)
    return f'"""\n{_UNSAFE.sub(_escaped, escaped)}"""'


def _one_line(text: str) -> str:
    return json.dumps(_sound(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def _sound(text: str) -> str:
    """The text without halves of surrogate pairs, which no request can hold, either."""
    return text.encode("utf-8", "replace").decode()


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def name_of(text: str, taken: set[str]) -> str:
    """A name for a case by the first words of its prompt, other than those `taken`."""
    words = re.findall(r"[a-z0-9]+", text[:400].lower())
    base = "-".join(words[:6])[:_NAME_CHARS].strip("-") or "prompt"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name
