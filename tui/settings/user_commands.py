"""Commands that a person writes: Markdown files in `commands/`, sent as a prompt by `/name`.

As Claude Code has them, whose folders are read too: `frontend/test.md` is `/test`, or
`/frontend:test`. A front matter (`---` … `---`) may have `description`, `argument-hint` (or
`argument`), `model` and `allowed-tools`; the rest is the prompt. In it `$ARGUMENTS` is what was
typed after the name, `$1` to `$9` are its words; without any of them it is added below. A command
in `` !`…` `` is run with the prompt. Directives in the text of a command have no effect.

The files of Claude Code's folders count as that program counts (`claude_places.py`), and of two of
one name the person's own goes before the folder's, and a skill before a command.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from tui.core import front_matter
from tui.core.claude_names import is_claudes
from tui.core.dataclass import dataclass, field, replace
from tui.core.files import read_small
from tui.core.formatting import shortened
from tui.core.front_matter import MarkdownFile
from tui.core.late_pattern import late_pattern
from tui.core.paths import Folders
from tui.core.text_cleaning import one_line
from tui.core.workspace import PRIVATE_DIR
from tui.settings.allowed_tools import AllowedTools, allowed_tools
from tui.settings.skills import LEFT, InstalledSkill, InstalledSkills, plugins_of

if TYPE_CHECKING:
    from tui.settings.plugins import Plugin

SIZE_MAX: Final = 200_000
COMMANDS_MAX: Final = 500
RUNS_MAX: Final = 20
"""Commands in `` !`…` `` that are run for one prompt."""
FOLDERS: Final = (".claude/commands", f"{PRIVATE_DIR}/commands")
"""Below a workspace; those of the later one go first."""
SHIPPED: Final = Path(__file__).parent / "commands"
"""The folder of those that come with the program; a person's own of the same name goes first."""

_ABOUT_MAX: Final = 300
"""Characters of a description."""
_DEPTH_MAX: Final = 4
_NAME = late_pattern(r"\w[\w.-]*")
_NO_COMMANDS: Final = frozenset({"readme", "claude", "agents"})
"""Names of files that explain a folder and are no commands."""
_PLACE = late_pattern(r"\$(?:ARGUMENTS\b|([1-9])(?!\d))")
_RUN = late_pattern(r"(?<![\w`!])!`([^`\n]+)`")


_BY_SUB_AGENT: Final = (
    "Have one sub-agent do this (`task`, agent {!r}): give it everything that follows as its "
    "prompt, with the outputs that belong to it, and answer with its result."
)


@dataclass(frozen=True, slots=True)
class ExpandedCommand:
    """A command made ready to send: its text, and the commands that are run with it."""

    text: str
    runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UserCommand:
    """One command. `argument` describes in the help what it takes; `skill`: it uses one.

    `long_name` has the folders that its file is in, "" where it is in none; `model` is asked in
    its turn, "" for the usual one; `allowed` is what its turn may do without a question.
    """

    name: str
    description: str
    argument: str
    text: str
    path: Path
    skill: bool = False
    long_name: str = ""
    model: str = ""
    allowed: AllowedTools = field(default_factory=AllowedTools)
    words: tuple[str, ...] | None = None
    """The names of its words, if it counts as Claude Code does; None if as we do."""
    agent: str | None = None
    """The sub-agent that does it, "" for the usual one; None if the conversation does."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What its text may name, beside what the turn has."""
    left: tuple[str, ...] = ()
    """Fields of its file that do nothing here."""

    @property
    def shipped(self) -> bool:
        """True if it comes with the program."""
        return self.path.parent == SHIPPED

    def expanded(
        self, arguments: str, variables: Mapping[str, str] | None = None
    ) -> ExpandedCommand:
        """Fill in the text that is sent for `/name arguments`. The arguments are never read as a
        part of it. `variables` are values for names in braces."""
        if self.skill:
            return ExpandedCommand(f"{self.text}: {arguments}" if arguments else f"{self.text}.")
        if self.words is None:
            words = _words(arguments)
            parts = [
                _PLACE.sub(lambda found: _argument(found, arguments, words), part)
                for part in _RUN.split(self.text)
            ]
            rest = f"\n\n{arguments}" if arguments and not _PLACE.search(self.text) else ""
        else:
            from tui.settings.claude_places import (  # noqa: PLC0415 - few have such commands
                RUNS,
                ArgumentPlaces,
            )

            places = ArgumentPlaces(arguments, self.words, {**self.variables, **(variables or {})})
            found = RUNS.split(self.text)
            found[1::3] = [
                one or other for one, other in zip(found[1::3], found[2::3], strict=True)
            ]
            del found[2::3]
            parts, rest = [places.filled(part) for part in found], places.rest
        runs = tuple(part.strip() for part in parts[1::2])
        for number, run in enumerate(runs):
            why = "its output is below" if number < RUNS_MAX else "not run: there are too many"
            parts[2 * number + 1] = f"`{run}` ({why})" if "\n" not in run else _block(run, why)
        text = "".join(parts) + rest
        if self.agent is not None:
            text = f"{_BY_SUB_AGENT.format(self.agent or 'general')}\n\n{text}"
        return ExpandedCommand(text, runs[:RUNS_MAX])


Counts: TypeAlias = Callable[[Path, bytes], bool]
"""A decision if a file counts, given its content."""


def load(
    folders: Iterable[Path],
    reserved: Iterable[str] = (),
    counts: Counts = lambda _path, _content: True,
    workspace: Path | None = None,
) -> tuple[dict[str, UserCommand], tuple[str, ...]]:
    """The commands in some folders by name, and what is wrong with other files, a sentence each.

    A later folder's command replaces an earlier one's, as far as it `counts`. Of two in one folder
    the second has its long name. `reserved` are names that a file cannot take: its long name is
    `project:NAME` or `user:NAME`. Blocks; never raises.
    """
    commands: dict[str, UserCommand] = {}
    problems: list[str] = []
    taken = set(reserved)
    for folder in folders:
        here = set[str]()
        for path in command_files(folder):
            shown = path.relative_to(folder)
            within = shown.parent.parts
            name = path.stem
            if not all(map(_NAME.fullmatch, (name, *within))):
                problems.append(f"{shown}: command names use letters, digits, -, _ and dots.")
                continue
            long_name = ":".join((*within, name)) if within else ""
            whose = "project" if workspace and path.is_relative_to(workspace) else "user"
            if name.lower() in taken and not long_name:
                long_name = f"{whose}:{name}"
                what = f"/{name} is a built-in command; this one is /{long_name}"
                problems.append(f"{shown}: {what}.")
            try:
                data, _ = read_small(path, limit=SIZE_MAX)
                if not counts(path, data):
                    continue
            except OSError as error:
                problems.append(f"Can't read {shown}: {error.strerror or error}.")
                continue
            command = _parsed(path, data, claudes=is_claudes(folder))
            if isinstance(command, str):
                problems.append(f"{shown}: {command}")
                continue
            command = replace(command, long_name=long_name)
            if within:
                where = f"({whose}:{':'.join(within)})"
                command = replace(command, description=f"{command.description} {where}".lstrip())
            if name.lower() in taken or name in here:
                command = replace(command, name=long_name)
            here.add(command.name)
            commands[command.name] = command
    return dict(sorted(commands.items())), tuple(problems)


def command_files(folder: Path) -> Iterator[Path]:
    """The files in a folder of commands, those of its own first. Blocks; never raises."""
    files: list[Path] = []
    for where, folders, names in os.walk(folder):
        depth = len(Path(where).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [] if depth >= _DEPTH_MAX or len(files) >= COMMANDS_MAX else folders
        for name in sorted(names):
            stem, dot, ending = name.rpartition(".")
            if dot and ending.lower() == "md" and stem.lower() not in _NO_COMMANDS:
                files.append(Path(where, name))
    yield from sorted(files[:COMMANDS_MAX], key=lambda path: len(path.parts))


def find(commands: dict[str, UserCommand], typed: str) -> UserCommand | None:
    """The command that is meant by a name: its own, its long one, or one in other letters."""
    if typed in commands:
        return commands[typed]
    named = [(one.long_name, one) for one in commands.values() if one.long_name]
    named += commands.items()
    wanted = typed.lower()
    return next(
        (one for name, one in named if name == typed),
        next((one for name, one in named if name.lower() == wanted), None),
    )


@dataclass(slots=True)
class UserCommands:
    """The commands as they were when they were last read; `load` reads them again.

    A skill is a command too where none has its name. `problems` says what is wrong with files that
    are no commands, a sentence each.
    """

    folders: Iterable[Path] = ()
    reserved: frozenset[str] = frozenset()
    counts: Counts = lambda _path, _content: True
    skills: InstalledSkills | None = None
    workspace: Path | None = None
    home: Folders | None = None
    """Where the plugins are listed; None for none."""
    commands: dict[str, UserCommand] = field(default_factory=dict[str, UserCommand])
    problems: tuple[str, ...] = ()

    def load(self) -> None:
        """Read the files. Blocks; never raises."""
        commands, problems = load(self.folders, self.reserved, self.counts, self.workspace)
        taken = {one.long_name for one in commands.values()}
        plugins, left_out = plugins_of(self.home) if self.home else ((), ())
        for plugin in plugins:
            found, wrong = _of_plugin(plugin)
            commands |= {name: one for name, one in found.items() if name not in taken}
            problems += wrong
        problems += tuple(left_out)
        if self.skills is not None:
            self.skills.load()
            for skill in self.skills.skills.values():
                if not skill.typed or skill.name.lower() in self.reserved:
                    continue
                other = commands.get(skill.name)
                if other is None or (other.words is not None and skill.claudes):
                    commands[skill.name] = _of_skill(skill)
        self.commands, self.problems = commands, problems


def _of_plugin(plugin: Plugin) -> tuple[dict[str, UserCommand], tuple[str, ...]]:
    """The commands of a plugin by their names, and what is wrong with others."""
    commands: dict[str, UserCommand] = {}
    problems = list[str]()
    for own_name, path in plugin.commands.items():
        name = plugin.named(own_name)
        try:
            command = _parsed(path, read_small(path, limit=SIZE_MAX)[0], claudes=True)
        except OSError as error:
            command = error.strerror or str(error)
        if isinstance(command, str):
            problems.append(f"{name}: {command}")
        else:
            commands[name] = replace(command, name=name, variables=plugin.variables)
    return commands, tuple(problems)


def _of_skill(skill: InstalledSkill) -> UserCommand:
    argument = skill.argument or "[ARGUMENTS]"
    about = _short(skill.description)
    return UserCommand(skill.name, about, argument, skill.prompt, skill.file, skill=True)


def _short(description: str) -> str:
    """A description as a list has room for it."""
    return shortened(one_line(description), _ABOUT_MAX)


def parsed_rules(data: bytes) -> AllowedTools:
    """Read the rules that a command's file would allow without a question. Front matter is read if
    need be."""
    if b"allowed-tools" not in data.lower():
        return AllowedTools()
    return allowed_tools(front_matter.parse(data).names("allowed-tools") or ())


def _parsed(path: Path, data: bytes, *, claudes: bool) -> UserCommand | str:
    """A command, or why there is none."""
    file = front_matter.parse(data)
    if file.text("user-invocable").casefold() == "false":
        return "it is only for the model (user-invocable: false), which uses only skills."
    lines = file.body.splitlines()
    first = next((line.strip("# ") for line in lines if line.strip("# ")), "")
    about = " - ".join(filter(None, (file.text("description") or first, file.text("when_to_use"))))
    return UserCommand(
        path.stem,
        _short(about),
        front_matter.argument_hint(file),
        file.body,
        path,
        model=_model(file),
        allowed=allowed_tools(file.names("allowed-tools") or ()),
        words=_names_in(file) if claudes else None,
        left=tuple(name for name in LEFT if file.fields.get(name)),
        agent=file.text("agent") if file.text("context").casefold() == "fork" else None,
    )


def _names_in(file: MarkdownFile) -> tuple[str, ...]:
    if "arguments" not in file.fields:
        return ()
    from tui.settings.claude_places import names_in  # noqa: PLC0415 - as above

    return names_in(file)


def _model(file: MarkdownFile) -> str:
    name = one_line(file.text("model"))
    return "" if name.lower() in {"inherit", "default"} else name


def _block(run: str, why: str) -> str:
    """Commands of several lines, as code."""
    return f"```\n{run}\n```\n({why})"


def _words(arguments: str) -> list[str]:
    """Split the arguments into words as a shell does; an apostrophe is no quote that is open."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()


def _argument(found: re.Match[str], arguments: str, words: list[str]) -> str:
    if found[1] is None:
        return arguments
    number = int(found[1]) - 1
    return words[number] if number < len(words) else ""
