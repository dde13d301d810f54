"""What the program makes of the recorded keys, and the manual's table of what each terminal cannot
do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from textual import events

from tests.terminals import Struck, struck
from tests.ui.toolkit.test_key_parser import Keyboard
from tui.core.keymap import ALIKE, normalized, shown
from tui.ui.widgets.keys import HELP

KEYPAD = {"kp_enter": "enter", "kp_1": "1"}
TITLES = {
    "kitty": "kitty {}", "foot": "foot {}", "xterm": "XTerm {}", "alacritty": "Alacritty {}",
    "konsole": "Konsole {}", "xfce4-terminal": "Xfce Terminal (VTE 0.70.6)",
    "tmux": "tmux {} in XTerm", "screen": "GNU Screen {} in XTerm", "linux": "Linux console",
    "ghostty": "Ghostty (its encoder, ghostty-web 0.4.0)", "xterm.js": "xterm.js {}, as in VS Code",
    "xterm.js with kittyKeyboard": "xterm.js {} with the kitty protocol",
}  # fmt: skip
ALT = {True: "works", False: "types letters"}
ARROWS = ("up", "down", "left", "right")
BESIDE = ("alt+b", "alt+f", "alt+d", "alt+backspace", "kp_enter", "ctrl+left", "ctrl+right")
"""Keys that the manual names outside of its tables, or that everyone expects."""


def heard(data: bytes, cut: int = 0) -> list[str]:
    """The names of the keys that these bytes are, read at once or in two pieces."""
    keyboard = Keyboard()
    if cut:
        keyboard.read(data[:cut])
        keyboard.pause(0.05)
    keyboard.read(data[cut:])
    keyboard.pause(1.0)
    return [one.key for one in keyboard.heard if isinstance(one, events.Key)]


def meant(key: str) -> str:
    """The name that bindings have for a key."""
    *held, name = key.split("+")
    named = "+".join((*held, KEYPAD.get(name, name)))
    return ALIKE.get(named, named)


def reached(row: Struck) -> dict[str, str]:
    """The keys of bindings that arrive, with what is pressed for each."""
    found: dict[str, str] = {}
    for key, data in row.sent.items():
        keys = heard(data)
        if len(keys) == 1:
            found.setdefault(keys[0], key)
    return found


@cache
def asked() -> dict[str, dict[str, Struck]]:
    """What the terminals send when the program asks as it does, by terminal and layout."""
    found: dict[str, dict[str, Struck]] = {}
    for row in struck():
        if "asked" in row.modes:
            found.setdefault(row.terminal, {})[row.layout] = row
    return found


def limits() -> Iterator[tuple[str, ...]]:
    """Of each terminal: its name, the keys that do not arrive as themselves, what does the same
    there, and what Ctrl and Alt do on a Russian keyboard."""
    for terminal, rows in asked().items():
        row = rows["us"]
        title = TITLES[terminal].format(row.version.split("-")[0].split(":")[-1])
        yield title, _missing(row), _instead(row), _russian(rows)


def _missing(row: Struck) -> str:
    named = [key for _, table in HELP for one in table for key in one.keys.split(",")]
    kept: list[str] = []
    other: dict[str, list[str]] = {}
    typed = False
    for key in dict.fromkeys((*named, *BESIDE)):
        keys = heard(row.sent[key]) if key in row.sent else [meant(key)]
        if not keys:
            kept.append(key)
        elif meant(key) in keys:
            continue
        elif key.startswith("alt+") and row.sent[key][0] >= 0x80:
            typed = True
        else:
            other.setdefault(_shown([keys[0]]), []).append(key)
    if {f"shift+{one}" for one in ARROWS} <= {key for keys in other.values() for key in keys}:
        other = {one: [key for key in keys if key[6:] not in ARROWS] for one, keys in other.items()}
        other["arrows"] = [f"shift+{one}" for one in ARROWS]
    parts = [f"keeps {_shown(kept)}"] if kept else []
    parts += ["Alt types other letters"] if typed else []
    parts += [
        f"{_shown(keys)} {'is' if len(keys) == 1 else 'are'} {one}"
        for one, keys in other.items()
        if keys
    ]
    return "; ".join(parts) or "—"


def _instead(row: Struck) -> str:
    keys = reached(row)
    found: dict[str, list[str]] = {}
    text = ""
    for _, table in HELP:
        for one in table:
            text = one.help.partition(";")[0].partition(" (")[0] or text
            first, *others = one.keys.split(",")
            if first not in row.sent or heard(row.sent[first]) == [meant(first)]:
                continue
            works = [key for key in others if heard(row.sent.get(key, b"")) == [meant(key)]]
            does = works[0] if works else keys.get(first) or normalized(one.shown.split(",")[-1])
            found.setdefault(text, []).append(does)
    return "; ".join(f"{text}: {_shown(keys)}" for text, keys in found.items()) or "—"


def _russian(rows: dict[str, Struck]) -> str:
    def works(key: str, *layouts: str) -> bool:
        found = [rows[layout].sent[key] for layout in layouts if layout in rows]
        return any(heard(sent) == [meant(key)] for sent in found)

    alone, alt = works("ctrl+c", "ru"), works("alt+b", "ru", "ru,us")
    if alone or works("ctrl+c", "ru,us"):
        ctrl = "Ctrl works" if alone else "Ctrl works only beside a Latin layout"
        return "Ctrl and Alt work" if alone and alt else f"{ctrl}; Alt {ALT[alt]}"
    return f"Ctrl types letters; Alt {ALT[alt]}" if alt else "Ctrl and Alt type letters"


def _shown(keys: list[str]) -> str:
    """Keys as a person reads them, in one order."""
    if {f"shift+{one}" for one in ARROWS} <= {*keys}:
        keys = [key for key in keys if key[6:] not in ARROWS] + ["shift+arrows"]
    return ", ".join("the keypad's Enter" if key == "kp_enter" else shown(key) for key in keys)
