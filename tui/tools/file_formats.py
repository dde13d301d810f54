"""File formats whose syntax is checked after a change: JSON, TOML, YAML, Python, notebooks."""

from __future__ import annotations

import ast
import json
import tomllib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from tui.core.front_matter import yaml_problem

_CHARS: Final = 1_000_000
"""Longer texts are not checked: it would take long."""
_CHECKED: Final = "<checked>"


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format's name, and what is wrong with a text of it: "" if nothing is, as far as known."""

    name: str
    problem: Callable[[str], str]


def format_of(suffix: str) -> FileFormat | None:
    """Return the format of files with a suffix; None if it is not known."""
    return _FORMATS.get(suffix.lower())


def _json(text: str) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        return _line(str(error))
    return ""


def _notebook(text: str) -> str:
    try:
        book = json.loads(text)
    except ValueError as error:
        return f"it isn't valid JSON ({_line(str(error))})"
    cells = cast("dict[str, Any]", book).get("cells") if isinstance(book, dict) else None
    return "" if isinstance(cells, list) else "it has no list of cells"


def _toml(text: str) -> str:
    try:
        tomllib.loads(text)
    except ValueError as error:
        return _line(str(error))
    return ""


def _python(text: str) -> str:
    # Only of the text that is checked here: a warning would be written over the screen.
    warnings.filterwarnings("ignore", module=_CHECKED)
    try:
        compile(text, _CHECKED, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
    except ValueError as error:
        return str(error)
    return ""


def _line(message: str) -> str:
    """Return the first line of a parser's message."""
    return message.split("\n", 1)[0].rstrip(".")


def _guarded(check: Callable[[str], str]) -> Callable[[str], str]:
    def guarded(text: str) -> str:
        if len(text) > _CHARS:
            return ""
        try:
            return check(text)
        except (RecursionError, MemoryError):
            return ""

    return guarded


_PYTHON: Final = FileFormat("valid Python", _guarded(_python))
_YAML: Final = FileFormat("valid YAML", _guarded(yaml_problem))
_FORMATS: Final[Mapping[str, FileFormat]] = {
    ".json": FileFormat("valid JSON", _guarded(_json)),
    ".toml": FileFormat("valid TOML", _guarded(_toml)),
    ".yaml": _YAML,
    ".yml": _YAML,
    ".py": _PYTHON,
    ".pyi": _PYTHON,
    ".ipynb": FileFormat("a notebook", _notebook),
}
