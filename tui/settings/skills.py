"""Skills: folders with a `SKILL.md`, instructions that the model loads when a task fits them.

The open format of Agent Skills: a front matter with `name` and `description`, then Markdown. The
model gets names and descriptions; the rest it gets by the `skill` tool, and reads the other
files of the folder itself. Folders of other agents count too.

A workspace's skill counts only while its SKILL.md is trusted as it is. Its other files need no
trust of their own: they are files of the workspace like all others, and what runs them asks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from tui.core import front_matter
from tui.core.claude_names import claude_folder, is_claudes
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import ToolError
from tui.core.files import read_small
from tui.core.formatting import plural, shortened, size
from tui.core.front_matter import MarkdownFile
from tui.core.late_pattern import late_pattern
from tui.core.paths import Folders, shorten
from tui.core.text_cleaning import one_line
from tui.core.workspace import BOOT_READ_MAX, PRIVATE_DIR, text_of_path
from tui.settings.agent_definitions import BoundedList, listed

if TYPE_CHECKING:
    from tui.settings.plugins import Plugin

DESCRIPTION_MAX: Final = 1024
"""Characters of a description that the model gets; the format allows no more."""
_NAMES_MAX: Final = 2000
"""Characters of the names that an unknown one is answered with."""
_FOLDERS_MAX: Final = 1000
"""Folders that are looked at in one place."""
_FILES_SHOWN: Final = 100
_FILES_COUNTED: Final = 2000

FOLDERS: Final = (".agents/skills", ".claude/skills")
"""Below a workspace; those of a later one go first."""
_FILES: Final = ("SKILL.md", "skill.md")
_NAME = late_pattern(r"[^\W_][\w.:-]{0,63}")
_UNTRUSTED: Final = "You don't trust it as it is now; /trust decides."
_SKIPPED: Final = frozenset({".git", "__pycache__", "node_modules", ".venv"})

Counts: TypeAlias = Callable[[str, bytes], bool]
"""A decision if a file of the workspace counts, given its name there and its content."""


@dataclass(frozen=True, slots=True)
class InstalledSkill:
    """One skill. `folder` and `file` are real paths."""

    name: str
    description: str
    folder: Path
    file: Path
    origin: str
    """The folder of skills that it was found in, as it is shown."""
    brought: bool = False
    """True if it is the workspace's."""
    argument: str = ""
    allowed_tools: str = ""
    """The tools that it would grant elsewhere; here it grants nothing."""
    offered: bool = True
    """True if the model sees it in the list; else only the person uses it, by its name."""
    typed: bool = True
    """True if the person can use it by its name."""
    claudes: bool = False
    """True if it lies in a folder of Claude Code, or a plugin: its places count from zero."""
    left: tuple[str, ...] = ()
    """Fields of its file that do nothing here."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What its text may name, beside its own folder and the workspace."""

    @property
    def prompt(self) -> str:
        """The prompt that is sent to have it used."""
        return f"Use the skill {self.name} (SKILL.md in {text_of_path(self.folder)})"


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder of skills. What lies in a workspace, `root`, must not lead out of it."""

    folder: Path
    root: Path | None = None

    @property
    def shown(self) -> str:
        return str(self.folder.relative_to(self.root)) if self.root else shorten(self.folder)


@dataclass(slots=True)
class InstalledSkills:
    """The skills of the person and of a workspace as they were when they were last read; `load`
    reads them again.

    `problems` says what is wrong with folders that are no skills, a sentence each.
    """

    folders: Folders
    workspace: Path
    counts: Counts
    skills: dict[str, InstalledSkill] = field(default_factory=dict[str, InstalledSkill])
    problems: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    """The folders of those that the workspace brings and that don't count."""
    opened: tuple[Path, ...] = ()
    """The folders of plugins, whose texts name files in them."""

    def load(self) -> None:
        """Read the files. Blocks; never raises."""
        skills: dict[str, InstalledSkill] = {}
        problems, untrusted = list[str](), list[str]()
        seen = set[Path]()
        for place in _places(self.folders, self.workspace):
            before = len(seen)
            for folder, file in candidates(place.folder):
                real = Path(os.path.realpath(file or folder))
                if real in seen:
                    continue
                seen.add(real)
                skill = self._read(place, folder, file)
                if isinstance(skill, str):
                    problems.append(f"{place.shown}/{folder.name}: {skill}")
                    untrusted += [folder.name] if skill is _UNTRUSTED else []
                else:
                    skills[skill.name] = skill
            if len(seen) - before >= _FOLDERS_MAX:
                problems.append(f"{place.shown}: only its first {_FOLDERS_MAX:,} folders are read.")
        plugins, _ = plugins_of(self.folders)
        self.opened = tuple(plugin.root for plugin in plugins)
        for plugin in plugins:
            for folder in plugin.skills:
                skill = self._read(_Place(folder.parent), folder, folder / _FILES[0])
                if isinstance(skill, str):
                    problems.append(f"{plugin.named(folder.name)}: {skill}")
                    continue
                name = plugin.named(skill.name)
                skills[name] = replace(skill, name=name, claudes=True, variables=plugin.variables)
        self.skills = dict(sorted(skills.items()))
        self.problems, self.untrusted = tuple(problems), tuple(untrusted)

    @property
    def outside(self) -> tuple[Path, ...]:
        """The folders of skills and plugins that are not in the workspace."""
        root = Path(os.path.realpath(self.workspace))
        folders = {*self.opened, *(skill.folder for skill in self.skills.values())}
        return tuple(sorted(one for one in folders if not one.is_relative_to(root)))

    def listing(self) -> BoundedList:
        """Make the list of skills for the model. The workspace's come first."""
        offered = sorted(self.offered, key=lambda skill: not skill.brought)
        return listed(((skill.name, skill.description) for skill in offered), "skills")

    @property
    def offered(self) -> Sequence[InstalledSkill]:
        """The skills that the model may load by itself."""
        return [skill for skill in self.skills.values() if skill.offered]

    def instructions(self, name: str, arguments: str = "") -> str:
        """Read what the model gets of a skill as it is now. Blocks; raises ToolError."""
        self.load()
        wanted = name.strip().lstrip("/")
        skill = self.skills.get(wanted) or next(
            (
                one
                for one in self.skills.values()
                if wanted.casefold() in {one.name.casefold(), one.folder.name.casefold()}
            ),
            None,
        )
        if skill is None:
            known = [one.name for one in self.offered]
            hint = f"The skills are: {_within(known, _NAMES_MAX)}." if known else "There is none."
            raise ToolError(f"There is no skill named {wanted[:100]!r}.", hint=hint)
        try:
            data, _ = read_small(skill.file, limit=BOOT_READ_MAX)
        except OSError as error:
            why = error.strerror or str(error)
            raise ToolError(f"Can't read the skill {skill.name}: {why}.") from error
        if skill.brought and not self.counts(_name_in(self.workspace, skill.file), data):
            raise ToolError(f"The skill {skill.name} has changed and isn't trusted as it is now.")
        return _text(skill, front_matter.parse(data), arguments.strip(), self.workspace)

    def _read(self, place: _Place, folder: Path, file: Path | None) -> InstalledSkill | str:
        """A skill, or why it is none."""
        if file is None:
            return "There is no SKILL.md."
        real = Path(os.path.realpath(file))
        if place.root and not real.is_relative_to(os.path.realpath(place.root)):
            return "It leads out of the workspace."
        if not place.root and self._is_too_wide(real.parent):
            return "It leads to a folder that holds much more than a skill."
        try:
            data, _ = read_small(file, limit=BOOT_READ_MAX)
        except OSError as error:
            return f"Can't read SKILL.md: {error.strerror or error}."
        if place.root and not self.counts(_name_in(self.workspace, real), data):
            return _UNTRUSTED
        return _parsed(data, folder, real, place)

    def _is_too_wide(self, folder: Path) -> bool:
        """True if a folder that is opened for reading would open more than a skill."""
        own = (self.folders.config, self.folders.data, Path.home(), self.workspace)
        return any(Path(os.path.realpath(one)).is_relative_to(folder) for one in own)


def plugins_of(folders: Folders) -> tuple[Sequence[Plugin], Sequence[str]]:
    """Return the plugins of the person that count, and what is wrong with others. Blocks."""
    if not folders.plugins_file.exists():
        return (), ()
    from tui.settings import plugins  # noqa: PLC0415 - few have any

    found = plugins.installed(folders)
    return found.all, found.problems


def candidates(place: Path) -> Iterator[tuple[Path, Path | None]]:
    """The folders in a folder of skills, each with its SKILL.md; None where it has none. Blocks."""
    try:
        names = sorted(entry.name for entry in os.scandir(place) if entry.is_dir())
    except OSError:
        return
    for name in [one for one in names if not one.startswith(".")][:_FOLDERS_MAX]:
        folder = place / name
        there = (folder / file for file in _FILES)
        yield folder, next((file for file in there if os.path.lexists(file)), None)


def brought_files(workspace: Path) -> dict[str, tuple[str, Path]]:
    """The SKILL.md of each skill that a workspace brings, by the name under which it is trusted,
    with the name of its folder. Blocks."""
    root = Path(os.path.realpath(workspace))
    files: dict[str, tuple[str, Path]] = {}
    for place in _places_in(workspace):
        for folder, file in candidates(place.folder):
            if file and Path(os.path.realpath(file)).is_relative_to(root):
                files.setdefault(_name_in(workspace, file), (folder.name, file))
    return files


def _name_in(workspace: Path, file: Path) -> str:
    """Return the name by which a file is trusted: where it really lies in the workspace."""
    return os.path.relpath(os.path.realpath(file), os.path.realpath(workspace))


def _places(folders: Folders, workspace: Path) -> tuple[_Place, ...]:
    """The places of skills; those of a later one go first."""
    others = (Path.home() / ".agents", claude_folder())
    agents, claude = (_Place(folder / "skills") for folder in others)
    shared, theirs, own = _places_in(workspace)
    # of Claude Code's folders the person's goes first there, too
    return (agents, theirs, claude, _Place(folders.config / "skills"), shared, own)


def _places_in(workspace: Path) -> tuple[_Place, ...]:
    names = (*FOLDERS, f"{PRIVATE_DIR}/skills")
    return tuple(_Place(workspace / name, workspace) for name in names)


LEFT: Final = ("hooks", "effort", "shell", "paths", "disallowed-tools")
"""Fields of commands and skills that Claude Code knows and that do nothing here."""
_NOT_OFFERED: Final = "disable-model-invocation"


def _parsed(data: bytes, folder: Path, real: Path, place: _Place) -> InstalledSkill | str:
    file = front_matter.parse(data)
    if _NOT_OFFERED in file.unclear:
        return f"{_NOT_OFFERED} can't be read: write it once, at the beginning of its line."
    name = file.text("name") or folder.name
    if not _NAME.fullmatch(name):
        name = re.sub(r"\s+", "-", folder.name)
    if not _NAME.fullmatch(name):
        return "A skill's name has up to 64 letters, digits and - only."
    lines = (line.strip("# ") for line in file.body.splitlines())
    about = file.text("description") or next(filter(None, lines), "")
    description = one_line(" - ".join(filter(None, (about, file.text("when_to_use")))))
    if not description:
        return "SKILL.md has no description."
    return InstalledSkill(
        name,
        shortened(description, DESCRIPTION_MAX),
        real.parent,
        real,
        place.shown,
        brought=place.root is not None,
        argument=one_line(front_matter.argument_hint(file)),
        allowed_tools=one_line(file.text("allowed-tools")),
        offered=file.text(_NOT_OFFERED).casefold() in {"", "false", "no", "off"},
        typed=file.text("user-invocable") != "false",
        claudes=is_claudes(place.folder),
        left=tuple(name for name in LEFT if file.fields.get(name)),
    )


def _text(skill: InstalledSkill, file: MarkdownFile, arguments: str, workspace: Path) -> str:
    """The files come first: what is long is cut at its end."""
    root, folder = Path(os.path.realpath(workspace)), skill.folder
    inside = folder != root and folder.is_relative_to(root)
    shown = text_of_path(folder.relative_to(root) if inside else folder)
    body = file.body
    if skill.claudes:
        from tui.settings.claude_places import (  # noqa: PLC0415 - once a skill is loaded
            ArgumentPlaces,
            names_in,
        )

        known = {"SKILL_DIR": folder, "PROJECT_DIR": root}
        own = {f"CLAUDE_{name}": text_of_path(path) for name, path in known.items()}
        places = ArgumentPlaces(arguments, names_in(file), {**skill.variables, **own})
        body = places.filled(body)
        arguments = "" if places.taken else arguments
    elif arguments and "$ARGUMENTS" in body:
        body, arguments = body.replace("$ARGUMENTS", arguments), ""
    body = body.replace("${CLAUDE_SKILL_DIR}", text_of_path(folder))
    read_only = "" if inside else " (read-only)"
    lines = [
        f"The user installed the skill {skill.name}. Follow its instructions for this task.",
        f"Its folder: {shown}{read_only}. Paths in its text are relative to that folder.",
        *([f"Arguments: {arguments}"] if arguments else []),
        *_how_to_do_it(file, body),
        *_file_lines(folder, skill.file),
        "",
        body,
    ]
    return "\n".join(lines)


def _how_to_do_it(file: MarkdownFile, body: str) -> list[str]:
    """Tell the model what it does itself of a skill, where elsewhere the program does it."""
    from tui.settings.claude_places import RUNS  # noqa: PLC0415 - as above

    lines = list[str]()
    if RUNS.search(body):
        lines.append(
            "Commands in !`…` are not run for you: run each with run_command, and read its output "
            "in its place."
        )
    if file.text("context").casefold() == "fork":
        kind = file.text("agent") or "general"
        lines.append(
            f"It is meant for a sub-agent: start one with `task` (agent {kind!r}), give it these "
            "instructions as its prompt, and use its result."
        )
    return lines


def _file_lines(folder: Path, file: Path) -> list[str]:
    """The other files of a skill, with their sizes."""
    found: list[str] = []
    for where, folders, names, _ in os.fwalk(folder):  # by handle: no link that is put there counts
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        paths = [Path(where, name) for name in sorted(names)]
        found += [_file_line(folder, path) for path in paths if path != file]
        if len(found) >= _FILES_COUNTED:
            break
    if not found:
        return []
    lines = ["Its other files, for read_file when they are needed:", *found[:_FILES_SHOWN]]
    if (more := len(found) - _FILES_SHOWN) > 0:
        lines.append(f"- and {plural(more, 'more file')}")
    return lines


def _file_line(folder: Path, path: Path) -> str:
    try:
        length = f", {size(path.lstat().st_size)}"
    except OSError:
        length = ""
    return f"- {text_of_path(path.relative_to(folder))}{length}"


def _within(names: Sequence[str], most: int) -> str:
    """Names between commas, as far as there is room."""
    shown, length = list[str](), 0
    for name in names:
        length += len(name) + 2
        if length > most:
            return f"{', '.join(shown)} and {len(names) - len(shown):,} more"
        shown.append(name)
    return ", ".join(shown)
