"""Names and comments of tui/: standard terms, one class a name, docstrings that say what a thing
does, reasons instead of pointers."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TUI = Path(__file__).parents[1] / "tui"

# fmt: off
WORDS = frozenset({
    "told", "said", "telling", "look", "looks", "looking", "way", "ways", "found", "left", "kept",
    "stands", "standing", "shelf", "mend", "beside", "doing",
})
# fmt: on
"""What names do not say: they name what a value is in the field's standard terms."""

# fmt: off
PROMISED = frozenset({
    "not_found", "left", "right", "action_delete_left", "action_delete_word_left",
    "action_delete_left_word", "action_cursor_left", "action_cursor_left_word",
    "get_location_left", "get_cursor_word_left_location",
})
# fmt: on
"""Standard terms that hold one of the words; the actions are Textual's."""

# fmt: off
INDIRECT = frozenset({
    "What", "Whatever", "Whether", "Of", "By", "How", "Who", "Whoever", "Whose", "Where", "When",
    "Which", "While", "Those", "That",
})
# fmt: on
"""What no docstring begins with: it says what the thing is or does, not what one may ask of it."""

POINTER = re.compile(r"\b(?:[A-Z]\d{1,3}|decisions? \d+)\b")
NO_POINTERS = re.compile(r"\bC0 and C1\b|U\+\w+|noqa: [A-Z0-9, ]+|\bF(?:1[0-2]|[1-9])\b")
"""Control characters, code points, rules of the linter and the function keys."""


ROOMS = sorted(path.name for path in TUI.iterdir() if list(path.glob("*.py")))


def _sources(room: str = "") -> list[Path]:
    return sorted((TUI / room).rglob("*.py"))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def forget() -> Iterator[None]:
    """The trees of all modules are some hundred MB: they go with the last of these tests."""
    yield
    _tree.cache_clear()


def _names(path: Path) -> Iterator[str]:
    yield path.stem
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and docstrings, those of attributes included, with their line."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(_tree(path)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value


@pytest.mark.parametrize("room", ROOMS)
def test_modules_classes_and_functions_have_standard_names(room: str) -> None:
    odd = [
        f"{path.relative_to(TUI)}: {name}"
        for path in _sources(room)
        for name in _names(path)
        if name not in PROMISED and _words(name) & WORDS
    ]
    assert not odd, "a name says what the value is, see WORDS"


@pytest.mark.parametrize("room", ROOMS)
def test_a_docstring_says_first_what_the_thing_is_or_does(room: str) -> None:
    found = [
        f"{path.relative_to(TUI)}: {words[0]} …"
        for path in _sources(room)
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (words := (ast.get_docstring(node, clean=False) or "").split(maxsplit=1))
        and words[0] in INDIRECT
    ]
    assert not found, "name the thing, or begin with a verb"


@pytest.mark.parametrize("room", ROOMS)
def test_comments_say_the_reason_instead_of_a_number(room: str) -> None:
    found = [
        f"{path.relative_to(TUI)}:{line}: {pointer[0]}"
        for path in _sources(room)
        if POINTER.search(path.read_text(encoding="utf-8"))  # reading tokens takes long
        for line, text in _comments(path)
        if (pointer := POINTER.search(NO_POINTERS.sub("", text)))
    ]
    assert not found


def test_a_public_class_name_is_used_once() -> None:
    places: dict[str, list[str]] = {}
    for path in _sources():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(TUI)))
    assert not {name: paths for name, paths in places.items() if len(paths) > 1}
