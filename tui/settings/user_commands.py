"""Commands that a person writes: Markdown files in `commands/`, sent as a prompt by `/name`.

A front matter (`---` … `---`) may have a `description:` and an `argument:` (or `argument-hint:`);
the rest is the prompt. `$ARGUMENTS` in it is replaced by what was typed after the name; without
that word the arguments are added below. Directives in the text of a command have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from tui.core import front_matter
from tui.core.files import read_small

SIZE_MAX: Final = 200_000
COMMANDS_MAX: Final = 500
PLACE: Final = "$ARGUMENTS"
SHIPPED: Final = Path(__file__).parent / "commands"
"""The folder of those that come with the program; a person's own of the same name goes first."""

_NAME = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class UserCommand:
    """One command. `argument` describes in the help what it takes."""

    name: str
    description: str
    argument: str
    text: str
    path: Path

    @property
    def shipped(self) -> bool:
        """Whether it comes with the program."""
        return self.path.parent == SHIPPED

    def prompt(self, arguments: str) -> str:
        """What is sent for `/name arguments`."""
        if PLACE in self.text:
            return self.text.replace(PLACE, arguments)
        return f"{self.text}\n\n{arguments}".rstrip()


Counts: TypeAlias = Callable[[Path, bytes], bool]
"""Whether a file counts, with what is in it."""


def load(
    folders: Iterable[Path],
    reserved: Iterable[str] = (),
    counts: Counts = lambda _path, _content: True,
) -> tuple[dict[str, UserCommand], tuple[str, ...]]:
    """The commands in some folders by name, and what is wrong with other files, a sentence each.

    A later folder's command replaces an earlier one's, as far as it `counts`. `reserved` are names
    that a file cannot take. Blocks; never raises.
    """
    found: dict[str, UserCommand] = {}
    problems: list[str] = []
    taken = set(reserved)
    for folder in folders:
        try:
            paths = sorted(folder.glob("*.md"))[:COMMANDS_MAX]
        except OSError:
            continue
        for path in paths:
            if not _NAME.fullmatch(path.stem):
                problems.append(f"{path.name}: command names use small letters, digits and -.")
            elif path.stem in taken:
                problems.append(f"{path.name}: /{path.stem} is a built-in command.")
            else:
                try:
                    data, _ = read_small(path, limit=SIZE_MAX)
                    if counts(path, data):
                        found[path.stem] = _parsed(path, data)
                except OSError as error:
                    problems.append(f"Can't read {path.name}: {error.strerror or error}.")
    return dict(sorted(found.items())), tuple(problems)


@dataclass(slots=True)
class UserCommands:
    """The commands as they were when they were last read; `load` reads them again.

    `problems` says what is wrong with files that are no commands, a sentence each.
    """

    folders: Iterable[Path] = ()
    reserved: frozenset[str] = frozenset()
    counts: Counts = lambda _path, _content: True
    commands: dict[str, UserCommand] = field(default_factory=dict[str, UserCommand])
    problems: tuple[str, ...] = ()

    def load(self) -> None:
        """Read the files. Blocks; never raises."""
        self.commands, self.problems = load(self.folders, self.reserved, self.counts)


def _parsed(path: Path, data: bytes) -> UserCommand:
    file = front_matter.parse(data)
    lines = file.body.splitlines()
    first = next((line.strip("# ") for line in lines if line.strip("# ")), "")
    argument = file.text("argument") or file.text("argument-hint")
    return UserCommand(path.stem, file.text("description") or first, argument, file.body, path)
