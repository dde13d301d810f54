"""/keys: the terminal by its own account, and the keys of the actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tui.app.reports import Row
from tui.core.keymap import Keymap, shown
from tui.core.text_cleaning import one_line


def terminal_name(env: Mapping[str, str], answer: str = "") -> str:
    """Return what the environment calls the terminal, and what it answered about itself."""
    program = f"{env.get('TERM_PROGRAM', '')} {env.get('TERM_PROGRAM_VERSION', '')}".strip()
    names = (env.get("TERM", "") or "TERM isn't set", program, answer)
    return " · ".join(dict.fromkeys(one_line(name) for name in names if name))


def action_rows(keymap: Keymap) -> Iterator[Row]:
    """Yield each action that `[keys]` can change, by its name there, with its keys."""
    for name, keys in keymap.items():
        yield Row(name, (", ".join(map(shown, keys)) or "no key",))
