"""Symbols on the screens: xterm has a glyph for each, without any other font beside its own, and
so has the Linux console, for what is drawn there in the place of some.

`tests/terminals/xterm_font.txt` has the characters of its font `fixed` (6x13, as in xfonts-base
1.0.5 of Debian 12), as `fc-query --format='%{charset}'` lists them; `console_fonts.txt` those that
are in all of Fixed, Terminus and VGA, 16 rows high, for Lat15 and Uni2, by the tables in the fonts
of console-setup 1.221.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tui.app.reports
import tui.ui
from tui.ui.toolkit.line_filters import ALIKE

FONTS = Path(__file__).parents[1] / "terminals"
SCREENS = (Path(tui.ui.__path__[0]), Path(tui.app.reports.__path__[0]))


def font(name: str) -> set[str]:
    text = (FONTS / name).read_text(encoding="ascii")
    ranges = (each.partition("-") for each in text.split())
    return {
        chr(code)
        for first, _, last in ranges
        for code in range(int(first, 16), int(last or first, 16) + 1)
    }


def drawn() -> Iterator[tuple[str, str]]:
    """Each symbol in a text of the screens, and its module."""
    for path in sorted(path for folder in SCREENS for path in folder.rglob("*.py")):
        if path.name == "line_filters.py":
            continue  # it names what isn't drawn
        tree = ast.parse(path.read_text(encoding="utf-8"))
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = "" if id(node) in prose else node.value
                yield from ((char, path.name) for char in text if "\u2000" <= char < "\u2e00")


def test_the_screens_draw_nothing_that_xterm_has_no_glyph_for() -> None:
    there = font("xterm_font.txt")
    assert not {(char, name) for char, name in drawn() if char not in there}


def test_nothing_is_drawn_on_the_linux_console_that_its_fonts_have_no_glyph_for() -> None:
    there = font("console_fonts.txt")
    console = ((ALIKE.get(char, char), name) for char, name in drawn())
    assert not {(char, name) for char, name in console if char not in there}
