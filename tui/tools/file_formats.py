"""File formats whose syntax is checked after a change: JSON, TOML, YAML, Python, notebooks."""

from __future__ import annotations

import ast
import json
import tomllib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from tui.core.front_matter import yaml_problem

_CHARS: Final = 200_000
"""Longer texts are not checked: while Python's parser works, nothing else does."""
_CHECKED: Final = "<checked>"


def format_name(suffix: str) -> str:
    """Return what a valid file with a suffix is, in words; "" for a format that is not checked."""
    return _FORMATS[suffix.lower()][0] if suffix.lower() in _FORMATS else ""


def format_problem(suffix: str, text: str) -> str:
    """Return what is wrong with the text of a file, in a line; "" if nothing is, as far as
    known."""
    if suffix.lower() not in _FORMATS or (len(text) > _CHARS and suffix.lower() != ".ipynb"):
        return ""
    try:
        return _FORMATS[suffix.lower()][1](text)
    except (RecursionError, MemoryError):
        return ""


def _json(text: str) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        return _line(str(error))
    return ""


def _notebook(text: str) -> str:
    try:
        # The hook is a Python call for each object, so that other threads get their turn.
        book = json.loads(text, object_hook=lambda found: found)
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


_FORMATS: Final[Mapping[str, tuple[str, Callable[[str], str]]]] = {
    ".json": ("valid JSON", _json),
    ".toml": ("valid TOML", _toml),
    ".yaml": ("valid YAML", yaml_problem),
    ".yml": ("valid YAML", yaml_problem),
    ".py": ("valid Python", _python),
    ".pyi": ("valid Python", _python),
    ".ipynb": ("a notebook", _notebook),
}
