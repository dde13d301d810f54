"""Press every key in real terminals, and write down what they send:
`python -m tests.terminals.record_keys OUT.jsonl [NAME …]`.

Not a part of the suite; needs what `tests.terminals.record` needs. A row of OUT is a terminal in a
mode with a layout: what each key sent, in hex, "" for nothing. Keys have the names of bindings; on
another layout than `us` a letter is the key in that place of a `us` keyboard.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.terminals.record import ESC, Asked, displays, installed

ASKED: Final = f"{ESC}[?1049h{ESC}[>5u{ESC}[?1036h"
"""What the program asks for, as `tui/ui/start/terminal_takeover.py` writes it. On the alternate
screen terminals keep fewer keys."""
MODES: Final = {"legacy": ("", ""), "asked": (ASKED, f"{ESC}[<u{ESC}[?1036l{ESC}[?1049l")}

NAMED: Final = {
    "enter": "Return", "escape": "Escape", "backspace": "BackSpace", "pageup": "Prior",
    "pagedown": "Next", "kp_enter": "KP_Enter", "question_mark": "question", "at": "at",
    "exclamation_mark": "exclam", "less_than_sign": "less", "greater_than_sign": "greater",
    "number_sign": "numbersign", "full_stop": "period", "left_square_bracket": "bracketleft",
    "right_square_bracket": "bracketright", "circumflex_accent": "asciicircum",
    **{name: name.capitalize() for name in ("tab", "home", "end", "delete", "insert")},
    **{name: name.capitalize() for name in ("up", "down", "left", "right")},
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
    **{f"kp_{number}": f"KP_{number}" for number in range(10)},
}  # fmt: skip
"""The names of keys that X names otherwise."""
PLACES: Final = dict(
    zip(
        "1234567890-=qwertyuiop[]asdfghjkl;'`\\zxcvbnm,./",
        [*range(10, 22), *range(24, 36), *range(38, 50), *range(51, 62)],
        strict=True,
    )
)
"""The key codes of a `us` keyboard's characters."""

LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
ARROWS: Final = ("up", "down", "left", "right")
EDITING: Final = (*ARROWS, "home", "end", "pageup", "pagedown", "insert", "delete")
KEYS: Final = (
    *("a", "y", "A", "1", "7", "slash", "question_mark", "exclamation_mark", "at", "number_sign"),
    *("less_than_sign", "greater_than_sign", "space", "tab", "enter", "escape", "backspace"),
    *("kp_enter", "kp_1"),
    *EDITING,
    *(f"f{number}" for number in range(1, 13)),
    *(f"{held}+{key}" for held in ("shift", "ctrl", "alt") for key in EDITING),
    *(f"alt+shift+{key}" for key in ARROWS),
    *(f"{held}+{key}" for held in ("shift", "ctrl", "alt") for key in ("enter", "backspace")),
    *("shift+tab", "shift+space", "ctrl+space", "alt+space", "shift+f5", "shift+kp_enter"),
    *(f"ctrl+{letter}" for letter in LETTERS),
    *(f"alt+{letter}" for letter in LETTERS),
    *("alt+shift+b", "alt+shift+x", "alt+1", "alt+slash", "alt+full_stop", "alt+less_than_sign"),
    *("alt+greater_than_sign", "ctrl+minus"),
    *("ctrl+slash", "ctrl+underscore", "ctrl+left_square_bracket", "ctrl+right_square_bracket"),
    *("ctrl+backslash", "ctrl+circumflex_accent", "ctrl+1", "ctrl+full_stop", "ctrl+comma"),
)
ELSEWHERE: Final = (
    *("c", "y", "n", "1", "slash", "ctrl+c", "ctrl+r", "ctrl+z", "ctrl+slash", "ctrl+minus"),
    *("ctrl+left_square_bracket", "alt+b", "alt+f", "alt+z", "alt+shift+b", "shift+enter"),
)
"""Keys on other layouts."""
LAYOUTS: Final = ("us", "ru", "ru,us", "gr,us", "de")
KEPT_OPEN: Final = {
    "xfce4-terminal": ("f1", "f10", "shift+f10", "f11", *(f"alt+{key}" for key in "aefhtv")),
    "konsole": ("f11",),
}
"""Keys that open something: pressed at the end, each with an Esc behind it."""
PREFIX: Final = {"tmux": ("ctrl+b", ["ctrl+b", "ctrl+b"]), "screen": ("ctrl+a", ["ctrl+a", "a"])}
"""The key that a multiplexer keeps for itself, and what sends it on."""


def pressed(key: str, layout: str) -> list[str]:
    """The key as `xdotool` names it."""
    *held, name = key.split("+")
    if layout == "us":
        return ["+".join([*held, NAMED.get(name, name)])]
    char = {"slash": "/", "minus": "-", "left_square_bracket": "["}.get(name, name)
    return ["+".join([*held, str(PLACES[char]) if char in PLACES else NAMED[name]])]


def reads(one: Asked) -> list[str]:
    return [
        row["hex"]
        for row in map(json.loads, one.log.read_text().splitlines())
        if row["event"] == "read"
    ]


def strike(one: Asked, keys: list[str]) -> str:
    """Press a key, and return what came."""
    seen, until = len(reads(one)), time.monotonic() + 0.5
    for key in keys:
        one.x("key", key)
    while len(reads(one)) == seen and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.12)
    return "".join(reads(one)[seen:])


def strikes(one: Asked, layout: str) -> dict[str, str]:
    prefix, passed = PREFIX.get(one.name, ("", []))
    opens = KEPT_OPEN.get(one.name, ())
    keys = KEYS if layout == "us" else ELSEWHERE
    sent: dict[str, str] = {}
    for key in (*(key for key in keys if key not in opens), *(key for key in opens if key in keys)):
        sent[key] = strike(one, passed if key == prefix else pressed(key, layout))
        if key in opens:
            time.sleep(0.4)
            strike(one, ["Escape"])
            one.x("windowfocus", one.window)
    return sent


def rows(one: Asked, layouts: tuple[str, ...]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for mode, (on, off) in MODES.items():
        for layout in layouts:
            if len(layouts) > 1:
                subprocess.run(["setxkbmap", layout], env=one.env, check=False)
                time.sleep(0.5)
            one.send(on)
            sent = strikes(one, layout)
            one.send(off)
            told = {"terminal": one.name, "version": one.version, "mode": mode, "layout": layout}
            found.append({**told, "sent": sent})
    return found


def main(out: str, names: list[str]) -> None:
    for name in names or installed():
        # weston has the layout that the display had when it started
        runs = [(layout,) for layout in LAYOUTS] if name == "foot" else [LAYOUTS]
        for layouts in runs:
            with tempfile.TemporaryDirectory() as place, displays(Path(place), layouts[0]) as env:
                try:
                    one = Asked(name, Path(tempfile.mkdtemp(dir=place)), env)
                except (TimeoutError, IndexError) as error:
                    print(f"{name}: {error!r}")
                    continue
                try:
                    found = rows(one, layouts)
                finally:
                    one.end()
            with Path(out).open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in found)
            print(f"{name} {one.version}: {len(found)} rows", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--list":  # for newer.mjs
        print(json.dumps({"keys": KEYS, "elsewhere": ELSEWHERE, "asked": 5}))
    else:
        main(sys.argv[1], sys.argv[2:])
