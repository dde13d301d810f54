#!/usr/bin/env bash
# Textual 8.2.8 (with Python 3.11 or newer): what a class inherits besides methods depends on the
# order of its bases, and not by Python's own order of resolution.
#
# Best guesses, written down before the run:
#   1. `class Card(Mark, Panel)` and `class Card(Panel, Mark)`, where Mark is a Widget that brings
#      neither style nor key, look the same and have the same keys: DEFAULT_CSS and BINDINGS of all
#      bases count, as attributes and methods do.
#   2. Where a mixin must be a Widget, it may stand first, as mixins do in Python.
#
# Seen: with the mixin first, the DEFAULT_CSS and the BINDINGS of Panel are gone without a word,
# though Panel's methods, and even the attributes DEFAULT_CSS and BINDINGS themselves, resolve to
# Panel's. Both are collected along the first base of each class alone. A mixin that is no Widget
# is passed over, and does no harm in either place.
#
# Who is hurt: a dialog that gets a behavior by a mixin opens without its size, border and keys.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check "textual==8.2.8" 2>/dev/null
cat > "$folder/seen.py" <<'PY'
import asyncio
from importlib.metadata import version

from textual.app import App, ComposeResult
from textual.widget import Widget


class Panel(Widget, can_focus=True):
    DEFAULT_CSS = "Panel { width: 12; height: 3; }"
    BINDINGS = [("x", "mark", "mark")]
    marked = False

    def action_mark(self) -> None:
        self.marked = True


class WidgetMark(Widget):
    """A mixin that is a widget, and brings neither style nor key."""


class PlainMark:
    """A mixin that is none."""


class MarkFirst(WidgetMark, Panel): ...
class MarkLast(Panel, WidgetMark): ...
class PlainFirst(PlainMark, Panel): ...


async def seen(kind: type[Panel]) -> tuple[bool, bool]:
    class Shown(App[None]):
        def compose(self) -> ComposeResult:
            yield kind()

    app = Shown()
    async with app.run_test(size=(80, 24)) as pilot:
        panel = app.query_one(kind)
        panel.focus()
        await pilot.press("x")
        return panel.size.width == 12, panel.marked


async def main() -> None:
    print("textual", version("textual"))
    found = {}
    for kind in (Panel, MarkFirst, MarkLast, PlainFirst):
        found[kind.__name__] = await seen(kind)
        print(f"{kind.__name__:10}  style {found[kind.__name__][0]!s:5}  key {found[kind.__name__][1]}")
    assert MarkFirst.DEFAULT_CSS == Panel.DEFAULT_CSS
    assert MarkFirst.BINDINGS == Panel.BINDINGS
    print("yet MarkFirst.DEFAULT_CSS and MarkFirst.BINDINGS are Panel's")
    assert found == {
        "Panel": (True, True),
        "MarkFirst": (False, False),
        "MarkLast": (True, True),
        "PlainFirst": (True, True),
    }, found


asyncio.run(main())
PY
"$folder/venv/bin/python" "$folder/seen.py"
