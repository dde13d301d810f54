"""Symbols on the screens: xterm has a glyph for each, without any other font beside its own.

`tests/terminals/xterm_font.txt` has the characters of its font `fixed` (6x13, as in xfonts-base
1.0.5 of Debian 12), as `fc-query --format='%{charset}'` lists them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tui.ui

FONT = Path(__file__).parents[1] / "terminals" / "xterm_font.txt"
SCREENS = Path(tui.ui.__path__[0])


def font() -> set[str]:
    ranges = (each.partition("-") for each in FONT.read_text(encoding="ascii").split())
    return {
        chr(code)
        for first, _, last in ranges
        for code in range(int(first, 16), int(last or first, 16) + 1)
    }


def drawn() -> Iterator[tuple[str, str]]:
    """Each symbol in a text of the screens, and its module."""
    for path in sorted(SCREENS.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = "" if id(node) in prose else node.value
                yield from ((char, path.name) for char in text if "\u2000" <= char < "\u2e00")


def test_the_screens_draw_nothing_that_xterm_has_no_glyph_for() -> None:
    there = font()
    assert not {(char, name) for char, name in drawn() if char not in there}
