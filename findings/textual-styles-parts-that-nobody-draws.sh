#!/usr/bin/env bash
# Textual 8.2.8: the styles of all component classes are computed with those of their widget, at every
# mount and every change above it, whether or not anything is drawn with them.
#
# Best guesses, written down before the run:
#   1. A component class costs nothing until a widget asks for its styles: `get_component_styles` is
#      the only way to them, and needs a name.
#   2. A widget that isn't displayed computes none.
#   3. A class that is set on the screen applies the style sheet once to each widget below it.
#
# Seen: 30 widgets with 20 component classes each, none of which is ever asked for, apply the style
# sheet 1,265 times at the start (65 without component classes), 21 times (1) when one of them gets a
# class, and 633 times (33) when the screen gets one; not displayed, they do the same. None of the
# guesses holds.
#
# Who is hurt: whoever gives a widget many component classes, as a table, a text area or a log has:
# with many of them, most of the time of a start goes into styles that nobody draws with.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check "textual==8.2.8" 2>/dev/null
cat > "$folder/parts.py" <<'PY'
import asyncio
from importlib.metadata import version

from textual.app import App
from textual.css.stylesheet import Stylesheet
from textual.widget import Widget

applied = asked = 0
apply, get_component_styles = Stylesheet.apply, Widget.get_component_styles


def counted(self, *nodes, **options):
    global applied
    applied += 1
    return apply(self, *nodes, **options)


def counted_question(self, *names):
    global asked
    asked += 1
    return get_component_styles(self, *names)


Stylesheet.apply, Widget.get_component_styles = counted, counted_question


class Plain(Widget):
    def render(self):
        return "text"


class Parts(Plain):
    COMPONENT_CLASSES = {f"part--{number}" for number in range(20)}


class Example(App):
    def __init__(self, kind, shown):
        super().__init__()
        self.kind, self.shown = kind, shown

    def compose(self):
        for _ in range(30):
            widget = self.kind()
            widget.display = self.shown
            yield widget


def since():
    global applied
    count, applied = applied, 0
    return count


async def figures(kind, *, shown=True):
    since()
    app = Example(kind, shown)
    async with app.run_test() as pilot:
        await pilot.pause()
        start = since()
        app.query(kind).first().add_class("on")
        await pilot.pause()
        own = since()
        app.screen.add_class("wide")
        await pilot.pause()
        return start, own, since()


print("textual", version("textual"))
seen = {
    "without": asyncio.run(figures(Plain)),
    "20 component classes": asyncio.run(figures(Parts)),
    "the same, not displayed": asyncio.run(figures(Parts, shown=False)),
}
for what, (start, own, above) in seen.items():
    print(f"{what}: applied {start} times at the start, {own} for a class of one, {above} for the screen's")
print("asked for the styles of a component:", asked)
plain, parts, hidden = seen.values()
if asked:
    raise SystemExit("somebody asks for them now")
if parts[0] < 10 * plain[0] or parts[1] < 20 or parts[2] < 10 * plain[2]:
    raise SystemExit("component styles are computed later now")
if hidden[0] < 10 * plain[0]:
    raise SystemExit("what isn't displayed computes none now")
PY
"$folder/venv/bin/python" "$folder/parts.py"
