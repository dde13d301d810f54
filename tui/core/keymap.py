"""The keys that a person can change: the actions by name, their keys, and which keys are one.

Keys have Textual's names: `ctrl+k`, `alt+shift+x`, `pagedown`. The tables that bind them are in
`tui.ui.widgets.keys`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

Keymap: TypeAlias = Mapping[str, tuple[str, ...]]
"""The keys of each action. An action without any can't be reached by a key."""

DEFAULT_KEYS: Final[Keymap] = {
    "send": ("enter",),
    "newline": ("shift+enter", "ctrl+j", "alt+enter", "ctrl+enter"),
    "history": ("ctrl+r",),
    "external_editor": ("ctrl+g",),
    "stash": ("ctrl+s",),
    "paste": ("ctrl+v", "alt+v"),
    "delete_or_quit": ("ctrl+d",),
    "suspend": ("ctrl+z",),
    "undo": ("ctrl+underscore", "alt+z"),
    "yank": ("ctrl+y",),
    "page_up": ("pageup",),
    "page_down": ("pagedown",),
    "first": ("ctrl+home", "alt+less_than_sign"),
    "last": ("ctrl+end", "alt+greater_than_sign"),
    "find": ("ctrl+f",),
    "stop": ("escape",),
    "next_mode": ("shift+tab", "alt+m"),
    "model": ("alt+p", "ctrl+circumflex_accent"),
    "think": ("alt+t", "ctrl+backslash"),
    "context": ("f2",),
    "sessions": ("f3",),
    "output": ("f4",),
    "next_effort": ("f5",),
    "jobs": ("f6",),
    "desk": ("f7",),
    "timeline": ("f9",),
    "side_question": ("alt+q", "ctrl+right_square_bracket"),
    "to_background": ("ctrl+b",),
    "give_back": ("ctrl+right_square_bracket",),
    "fold_tools": ("ctrl+o",),
    "tasks": ("ctrl+t",),
    "next_pane": ("tab",),
    "help": ("f1",),
    "quit": ("ctrl+q",),
    "palette": ("ctrl+p",),
    "redraw": ("ctrl+l",),
    "verbose": ("f12",),
}
"""The actions of the chat and their keys. All of them work at the same time, so no two can share a
key."""

_ALONE: Final = frozenset({"give_back"})
"""Actions that have their key to themselves while they can be done: all others go to a program."""

ALIKE: Final[Mapping[str, str]] = {
    "ctrl+h": "backspace",
    "shift+backspace": "backspace",
    "ctrl+backspace": "ctrl+w",
    "alt+backspace": "ctrl+w",
    "ctrl+i": "tab",
    "alt+tab": "shift+tab",  # the Linux console's Shift+Tab
    "ctrl+m": "enter",
    "ctrl+left_square_bracket": "escape",
    "alt+b": "ctrl+left",
    "alt+f": "ctrl+right",
    "shift+space": "space",
    "ctrl+space": "ctrl+@",
    "ctrl+slash": "ctrl+underscore",
    "ctrl+minus": "ctrl+underscore",
    "ctrl+shift+minus": "ctrl+underscore",
}
"""Keys that are one, by the name that bindings have for it. Many terminals send the same for both;
a protocol that tells them apart means no other action."""

_ALIASES: Final[Mapping[str, str]] = {
    "esc": "escape", "return": "enter", "pgup": "pageup", "pgdn": "pagedown", "del": "delete",
    "ins": "insert", "option": "alt", "meta": "alt", "control": "ctrl", "_": "underscore",
    "\\": "backslash", "[": "left_square_bracket", "]": "right_square_bracket", "/": "slash",
    "^": "circumflex_accent", "-": "minus", "<": "less_than_sign", ">": "greater_than_sign",
}  # fmt: skip
_MODIFIERS: Final = frozenset({"alt", "ctrl", "shift"})
_EDITING: Final = frozenset({"up", "down", "left", "right", "home", "end", "backspace", "delete"})
_NAMED: Final = _EDITING | {"pageup", "pagedown", "insert", "tab", "enter", "escape"}
_FUNCTION: Final = frozenset(f"f{number}" for number in range(1, 25))
_CTRL_SIGNS: Final = frozenset(
    {"underscore", "backslash", "right_square_bracket", "circumflex_accent"}
)
_ALT_SIGNS: Final = frozenset({"less_than_sign", "greater_than_sign"})
_SHOWN: Final[Mapping[str, str]] = {
    "pageup": "PgUp", "pagedown": "PgDn", "escape": "Esc", "underscore": "_", "backslash": "\\",
    "left_square_bracket": "[", "right_square_bracket": "]", "circumflex_accent": "^",
    "slash": "/", "minus": "-", "less_than_sign": "<", "greater_than_sign": ">",
}  # fmt: skip


def normalized(key: str) -> str:
    """Return a key as Textual names it: `Ctrl+K` is `ctrl+k`, `shift+alt+pgup` is
    `alt+shift+pageup`."""
    *modifiers, name = key.strip().lower().split("+")
    parts = sorted({_ALIASES.get(part.strip(), part.strip()) for part in modifiers})
    return "+".join([*parts, _ALIASES.get(name.strip(), name.strip())])


def shown(key: str) -> str:
    """Return a key as a person reads it: `Ctrl+K`."""
    return "+".join(_SHOWN.get(part, part.capitalize()) for part in key.split("+"))


def refusal(key: str) -> str:
    """Explain why a key, as `normalized` names it, can't be given to an action; "" if it can."""
    *modifiers, name = key.split("+")
    letter = len(name) == 1 and name.isascii() and name.isalnum()
    if key in {"escape", "ctrl+c"}:
        return "always stops the agent"
    if key in ALIKE:
        return f"reaches programs as {shown(ALIKE[key])}"
    if not set(modifiers) <= _MODIFIERS:
        return "doesn't reach programs in a terminal: use Ctrl, Alt or Shift"
    if letter or len(name) == 1 or name == "space":
        return _letter_refusal(set(modifiers), name)
    if not modifiers and name in _EDITING:
        return "moves or deletes in the prompt"
    if name in _NAMED | _FUNCTION or ("ctrl" in modifiers and name in _CTRL_SIGNS):
        return ""
    if modifiers == ["alt"] and name in _ALT_SIGNS:
        return ""
    return "isn't a known key"


def _letter_refusal(modifiers: set[str], name: str) -> str:
    """Do the same as `refusal` for a key with one character on it."""
    if modifiers <= {"shift"}:
        return "types into the prompt"
    ordinary = name.isascii() and name.isalnum()
    if not ordinary or (modifiers == {"alt", "shift"} and name in "opx"):
        return "isn't sent as a key of its own by most terminals"
    if "ctrl" in modifiers and (modifiers != {"ctrl"} or not name.isalpha()):
        return "isn't sent as a key of its own by most terminals"
    return ""


def keys_in(value: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Return the keys of one entry of `[keys]`, normalized: one, a list, or none for ""."""
    named = [value] if isinstance(value, str) else value
    return tuple(dict.fromkeys(normalized(key) for key in named if key.strip()))


def keymap_of(own: Mapping[str, str | tuple[str, ...]]) -> Keymap:
    """Return all actions with their keys, where `own` are the entries of `[keys]`. Esc stays with
    stop."""
    mine = {name: keys_in(value) for name, value in own.items()}
    stop = dict.fromkeys(("escape", *mine.get("stop", ())))
    return {**DEFAULT_KEYS, **mine, "stop": tuple(stop)}


def faults(own: Mapping[str, str | tuple[str, ...] | list[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield the faults of the entries of `[keys]`: the action, the fault, and a hint."""
    owners: dict[str, str] = {}
    for name, keys in DEFAULT_KEYS.items():
        if name not in own:
            owners.update(dict.fromkeys(keys, name))
    for name, value in own.items():
        if name not in DEFAULT_KEYS:
            yield name, "isn't an action.", _hint(name)
            continue
        for key in keys_in(value):
            why = refusal(key)
            if why and not (name == "stop" and key in {"escape", "ctrl+c"}):
                hint = 'Use keys such as "ctrl+k", "alt+k", "f10" or "shift+f10".'
                yield name, f"{shown(key)} isn't allowed: it {why}.", hint
            elif key in owners and not {name, owners[key]} & _ALONE:
                other = owners[key]
                yield name, f"{shown(key)} is also the key of {other}.", _other_key(other)
            owners[key] = name


def _other_key(other: str) -> str:
    return f'Give {other} another key, or none with {other} = "".'


def _hint(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only on error

    near = get_close_matches(name.replace("-", "_"), DEFAULT_KEYS, n=1)
    if near:
        return f"Did you mean {near[0]}?"
    return f"Available: {', '.join(sorted(DEFAULT_KEYS))}."
