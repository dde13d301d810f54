"""The voice: no text that a person or a model reads holds the words of a translation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tui.app.commands.table import COMMANDS
from tui.ui.widgets.keys import HELP

ROOT = Path(__file__).parents[1]

FOREIGN = re.compile(
    r"\b(?:shall|anew|stands? (?:here|there|for)|the ways? on|go(?:es)? on with|gone on with"
    r"|go on by (?:it|them)sel(?:f|ves)|counts? (?:at once|from)|what came of it|word for word"
    r"|whence"
    r"|in the place of|takes? the place of|somebody else|is at work|laid ready|goes along"
    r"|takes? up again|belongs? into|to the byte|leads? elsewhere|(?:is|are) told of"
    r"|what is typed|at the price of|from when on"
    r"|summaris\w+|colours?|catalogue|analys(?:e|ed|es)|neighbour\w*|behaviour|favour\w*)\b",
    re.IGNORECASE,
)
"""What nobody would say in a terminal, and British spellings."""

SPELT_OUT = re.compile(r"\b(?:cannot|could not|does not|do not|is not|are not)\b", re.IGNORECASE)
SPOKEN = ("ui", "app", "cli", "plain", "demo", "batch", "permissions")
"""Rooms whose texts speak to a person: they contract. Elsewhere a text may be the API's, or one
that the requirements fix to the letter."""
NOT_SPOKEN = re.compile(r"^(?:system calls cannot be filtered on )$")

LABEL_WORDS = 8


@cache
def _texts(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple(_read(ast.parse(path.read_text(encoding="utf-8"))))


def _read(tree: ast.Module) -> Iterator[tuple[int, str]]:
    documented = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) not in documented and " " in node.value:
            yield node.lineno, node.value


def _sources(room: str = "") -> list[Path]:
    return sorted((ROOT / "tui" / room).rglob("*.py"))


@pytest.mark.parametrize("room", ["", *SPOKEN])
def test_texts_are_plain_english(room: str) -> None:
    pattern = SPELT_OUT if room else FOREIGN
    found = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r} in {text[:80]!r}"
        for path in _sources(room)
        for line, text in _texts(path)
        for match in pattern.finditer(text)
        if not NOT_SPOKEN.match(text)
    ]
    assert not found


DOCUMENTS = sorted(
    path
    for folder, pattern in (
        ("tui/manual", "*.md"),
        ("tui/tools", "*.md"),
        ("tui/context", "**/*.md"),
    )
    for path in (ROOT / folder).glob(pattern)
)


FOR_DEVELOPERS = [
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / ".github").glob("*.md")),
    ROOT / "tui" / "README.md",
]


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *FOR_DEVELOPERS, *DOCUMENTS], ids=lambda path: path.name
)
def test_documents_are_plain_english(path: Path) -> None:
    text = re.sub(r"`[^`\n]+`", "", path.read_text(encoding="utf-8"))  # less what code is called
    assert [match[0] for match in FOREIGN.finditer(text)] == []
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", text, re.MULTILINE), "two versions, unmerged"


def test_ellipses_are_one_character() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:80]!r}"
        for room in ("ui", "app", "cli", "plain", "demo")
        for path in _sources(room)
        for line, text in _texts(path)
        if re.search(r"[a-z]\.\.\.(?:$|\s)", text)
    ]
    assert not [one for one in found if "Saving context..." not in one]


@pytest.mark.parametrize(
    "label",
    [command.help for command in COMMANDS] + [key.help for _, keys in HELP for key in keys],
)
def test_labels_are_short(label: str) -> None:
    assert len(label.split()) <= LABEL_WORDS + 2, label
    assert not label.endswith(".")
