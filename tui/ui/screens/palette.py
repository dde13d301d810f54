"""Ctrl+P: commands and actions of keys in one list that typing narrows, recently used ones
first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, cast

from textual.binding import Binding, BindingType

from tui.app.commands import find as find_command
from tui.app.commands.table import COMMANDS, ELSEWHERE
from tui.core.dataclass import dataclass
from tui.core.files import read_small, replace_file
from tui.core.keymap import Keymap
from tui.core.keymap import shown as shown_key
from tui.core.text_cleaning import one_line
from tui.settings.user_commands import UserCommand
from tui.ui.screens.picker import FilterDialog, RowParts
from tui.ui.screens.table_screen import cell
from tui.ui.widgets.autocomplete import rank
from tui.ui.widgets.keys import APP_KEYS, CHAT_KEYS, PROMPT_KEYS, Key, keys_for
from tui.ui.widgets.row_list import Part

RECENT_MAX: Final = 12
"""Most names that are remembered."""
_FILE_MAX: Final = 4_000
_HELP_MIN: Final = 14
"""With fewer cells, an entry's help is not shown."""


RUN_ACTIONS: Final = ("help", "debug_view", "redraw", "quit")
"""Actions of the app that exist in a run of its own."""

_HELP_FROM: Final = 3
"""Letters from which an entry's help is searched too: shorter words are in nearly all of them."""


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One entry of the palette.

    `action` runs it, as in bindings: on the app, or in the `namespace` "chat", "prompt" or "run".
    `command` is the text put into the prompt for a command that takes words; with `needs_words` it
    does nothing without them. `others` are more names that find it.
    """

    name: str
    help: str
    action: str
    namespace: str = "app"
    key: str = ""
    command: str = ""
    needs_words: bool = False
    others: tuple[str, ...] = ()


def palette_entries(own: Iterable[UserCommand], keymap: Keymap) -> list[PaletteEntry]:
    """Return every command, the person's `own`, and the actions of keys that no command has."""
    # A key that does the same as a command is shown with the command.
    keys = {_command_of(key): key for key in (*APP_KEYS, *CHAT_KEYS, *_PROMPT_COMMANDS)}
    entries: list[PaletteEntry] = []
    for command in COMMANDS:
        key = keys.get(command.name)
        elsewhere = (name for name, here in ELSEWHERE.items() if here == command.name)
        entries.append(
            PaletteEntry(
                f"/{command.name}",
                command.help,
                key.action if key in APP_KEYS else f"command({command.name!r})",
                key=pressed(key, keymap),
                command=f"/{command.name} " if command.argument else "",
                needs_words=command.needs_argument,
                others=(*command.aliases, *elsewhere),
            )
        )
    for mine in own:
        argument = mine.argument
        entries.append(
            PaletteEntry(
                f"/{mine.name}",
                one_line(mine.description),
                f"command({mine.name!r})",
                command=f"/{mine.name} ",
                needs_words=bool(argument) and not argument.startswith("["),
            )
        )
    # Keys without a command of their own have a label.
    for namespace, table in (("prompt", PROMPT_KEYS), ("chat", CHAT_KEYS), ("app", APP_KEYS)):
        entries += [
            PaletteEntry(key.label, key.help, key.action, namespace, pressed(key, keymap))
            for key in table
            if key.label
        ]
    return entries


def run_entries(keymap: Keymap, table: Sequence[Key]) -> list[PaletteEntry]:
    """Return the actions of the keys of a screen that has the terminal to itself, without commands:
    a run, or the desk."""
    keys = {"run": table, "app": tuple(key for key in APP_KEYS if key.action in RUN_ACTIONS)}
    return [
        PaletteEntry(key.label or key.action, key.help, key.action, namespace, pressed(key, keymap))
        for namespace, rows in keys.items()
        for key in rows
        if key.label or namespace == "app"
    ]


def pressed(key: Key | None, keymap: Keymap) -> str:
    """Return the first of the keys, as it is displayed."""
    return "".join(map(shown_key, keys_for(key, keymap)[:1])) if key else ""


_PROMPT_COMMANDS: Final = tuple(key for key in PROMPT_KEYS if key.action.startswith("screen."))
"""The others belong to the text area: its undo is not /undo."""


def _command_of(key: Key) -> str:
    """Return the command that does the same as a key; "" for none."""
    name = key.action.removeprefix("app.").removeprefix("screen.")
    name = name.removeprefix("command('").removesuffix("')")
    command = find_command(name) if key.shown and not key.label else None
    return command.name if command else ""


def matching(
    words: str, entries: Sequence[PaletteEntry], recent: Sequence[str]
) -> list[PaletteEntry]:
    """Return the matching entries, best first: by name, by another name, by help. Without words,
    all of them, recently used ones first."""
    query = words.removeprefix("/").casefold()
    if not query:
        order = {name: place for place, name in enumerate(recent)}
        return sorted(entries, key=lambda entry: order.get(entry.name, RECENT_MAX))
    by_name = {entry.name.removeprefix("/"): entry for entry in entries}
    by_other = {name: entry for entry in entries for name in entry.others}
    matches = [by_name[name] for name in rank(query, list(by_name))]
    matches += [by_other[name] for name in by_other if name.startswith(query)]
    if len(query) >= _HELP_FROM:
        parts = query.split()
        matches += [entry for entry in entries if all(p in entry.help.casefold() for p in parts)]
    return list(dict.fromkeys(matches))


def entry_row(entry: PaletteEntry, column: int, width: int) -> Sequence[Part]:
    """Return a row of `width` cells: the name in a column, its help, and the key at the right."""
    key = f" {entry.key}" if entry.key else ""
    room = width - column - len(key)
    if room < _HELP_MIN:
        return [(cell(entry.name, max(1, width - len(key))), "text"), (key, "accent")]
    name = cell(entry.name, column - 1) + " "
    return [(name, "text"), (cell(entry.help, room), "muted"), (key, "accent")]


class PaletteScreen(FilterDialog[tuple[PaletteEntry, bool]]):
    """Dismissed with an entry and whether it goes into the prompt instead of being run; None for
    Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "edit", show=False)]
    ROWS_MAX: ClassVar[int] = 16

    def __init__(self, entries: Sequence[PaletteEntry], recent: Sequence[str] = ()) -> None:
        edit = (("tab", "edit first"),) if any(entry.command for entry in entries) else ()
        keys = (("enter", "run"), *edit, ("esc", "close"))
        super().__init__("commands", "Type to find a command", *keys)
        self._entries, self._recent = entries, recent
        longest = max((len(entry.name) for entry in entries), default=0)
        self._column = min(longest, 16) + 2

    def choices(self, words: str) -> Iterable[tuple[tuple[PaletteEntry, bool], RowParts]]:
        for entry in matching(words, self._entries, self._recent):
            yield (entry, entry.needs_words), partial(entry_row, entry, self._column)

    def typed(self, words: str) -> None:
        """Accept no answer: the words match no command."""

    def explain(self, words: str, *, listed: bool) -> str:
        return "" if listed else f"No command matches “{one_line(words)}”."

    def action_edit(self) -> None:
        """Put the command under the cursor into the prompt, to write more after it."""
        if self.chosen and self.chosen[0].command:
            self.dismiss((self.chosen[0], True))


def load_recent(path: Path) -> list[str]:
    """Load the names used last, the latest first; empty if the file is damaged. Blocks."""
    try:
        stored: object = json.loads(read_small(path, limit=_FILE_MAX)[0])
    except (OSError, ValueError, RecursionError):
        return []
    names = cast("list[object]", stored) if isinstance(stored, list) else []
    return [name for name in names if isinstance(name, str)][:RECENT_MAX]


def save_recent(path: Path, name: str) -> None:
    """Remember a name as the latest used. A failure is ignored. Blocks."""
    names = [name, *(each for each in load_recent(path) if each != name)]
    with suppress(OSError):
        replace_file(path, json.dumps(names[:RECENT_MAX]).encode())
