"""Definitions of sub-agents: Markdown files in `agents/`, in the format of Claude Code.

The front matter has a `name` and a `description` (by which the model chooses), and may have `tools`
(the only ones it gets), `disallowedTools`, a `model` (`inherit`, `small` or the name of one) and
`permissionMode: plan` (or `mode: plan`), which makes it read-only. The rest is its instructions.
Names of Claude Code's tools are understood. Nothing in a definition allows anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias, cast

from tui.core import claude_names, front_matter
from tui.core.dataclass import dataclass, replace
from tui.core.files import read_small
from tui.core.workspace import PRIVATE_DIR

SIZE_MAX: Final = 200_000
FILES_MAX: Final = 1000
_DEPTH: Final = 3
"""The depth below its folder at which a definition may lie."""
NAME_CHARS: Final = 64

AGENT_FOLDERS: Final = (".claude/agents", f"{PRIVATE_DIR}/agents")
"""The folders of definitions that a workspace may bring along; the last counts first."""

STYLE_FOLDERS: Final = (".claude/output-styles", f"{PRIVATE_DIR}/output-styles")
"""The folders of output styles that it may."""
STYLE: Final = "Output style "
"""The prefix of a style's name in the system prompt, which sub-agents don't get."""

OWN_NAMES: Final = ("explore", "general")
"""Those that come with the program."""

LIST_MAX: Final = 15_000
"""Characters of a list."""
_LENGTHS: Final = (600, 400, 250, 160, 100, 60, 0)
_LAST_LINE: Final = 200
_WORKTREE: Final = "worktree"
INHERIT: Final = "inherit"
SMALL: Final = "small"
"""Names that stand for the model of the conversation, and for the small one."""


@dataclass(frozen=True, slots=True)
class BoundedList:
    """A list of what is installed, for the model: its text, how many of its descriptions are cut,
    and the names that are not in it."""

    text: str
    cut: int = 0
    unlisted: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        return not self.cut and not self.unlisted


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """A kind of sub-agent. `tools` are globs for the names of those it may have, None for all;
    `without` for those it may not. `model` is "" for that of the conversation. `path` is None for
    one of the program's own."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    model: str = ""
    read_only: bool = False
    isolated: bool = False
    """True if it works in a git worktree of its own."""
    path: Path | None = None
    left: tuple[str, ...] = ()
    """Fields of its file that do nothing here."""
    brought: bool = False
    """True if it is the workspace's."""

    @property
    def about(self) -> str:
        """Its description in a line."""
        return " ".join(self.description.replace("\\n", " ").split())

    def may_have(self, tool: str) -> bool:
        """True if it may have a tool, by the tool's name."""
        if any(fnmatchcase(tool, pattern) for pattern in self.without):
            return False
        return self.tools is None or any(fnmatchcase(tool, pattern) for pattern in self.tools)


@dataclass(frozen=True, slots=True)
class AgentDefinitions:
    """The kinds of sub-agents there are, by name; and what is wrong with other files, a sentence
    each."""

    all: Mapping[str, AgentDefinition]
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> AgentDefinition | None:
        """The one of that name, in whatever letters; Claude Code's names for ours are known."""
        wanted = name.strip().casefold()
        wanted = {"general-purpose": "general", "": "general"}.get(wanted, wanted)
        return next((one for key, one in self.all.items() if key.casefold() == wanted), None)

    def listing(self) -> BoundedList:
        """Make the list that the model gets: the program's own first, then those of a workspace."""

        def rank(one: AgentDefinition) -> int:
            return 0 if one.path is None else 2 - one.brought

        every = sorted(self.all.values(), key=rank)
        return listed(((one.name, one.about) for one in every), "sub-agents")


Counts: TypeAlias = Callable[[Path, bytes], bool]
"""A decision if a file counts, given its content."""


def load(
    folders: Iterable[Path],
    counts: Counts = lambda _path, _content: True,
    *,
    brought: Iterable[Path] = (),
    workspace: Path | None = None,
) -> AgentDefinitions:
    """The program's own definitions and those in some folders and below, as far as they count.

    A later folder's definition replaces an earlier one of its name; last come the folders that a
    `workspace` has `brought` along. Blocks; never raises.
    """
    definitions, problems = dict(_own()), list[str]()
    places = [*((folder, None) for folder in folders), *((one, workspace) for one in brought)]
    for folder, within in places:
        paths = agent_files(folder, within)
        if len(paths) >= FILES_MAX:
            problems.append(f"{folder}: only the first {FILES_MAX:,} files are read.")
        for path in paths:
            try:
                data, _ = read_small(path, limit=SIZE_MAX)
            except OSError as error:
                problems.append(f"Can't read {path.name}: {error.strerror or error}.")
                continue
            if not counts(path, data):
                continue
            one = parsed(path, data)
            if isinstance(one, str):
                problems.append(f"{path.name} is no sub-agent: {one}.")
            else:
                if "hooks" in one.left:
                    problems.append(f"The hooks of the sub-agent {one.name} don't run here.")
                definitions = {
                    key: value for key, value in definitions.items() if not _same(key, one.name)
                }
                definitions[one.name] = replace(one, brought=within is not None)
    return AgentDefinitions(definitions, tuple(problems))


def agent_files(folder: Path, within: Path | None = None) -> Sequence[Path]:
    """The files below a folder that may define a sub-agent: none where it leads out of `within`,
    and none behind links. Blocks."""
    real = Path(os.path.realpath(folder))
    if within is not None and Path(os.path.realpath(within)) not in real.parents:
        return ()
    paths: list[Path] = []
    for place, inner, names in os.walk(folder):
        if len(Path(place).relative_to(folder).parts) >= _DEPTH:
            inner.clear()
        inner.sort()
        paths += [Path(place, name) for name in sorted(names) if name.endswith(".md")]
        if len(paths) >= FILES_MAX:
            break
    return [path for path in paths[:FILES_MAX] if path.is_file()]


def of_plugin(
    files: Iterable[Path], name: str, fill: Callable[[str], str]
) -> tuple[Mapping[str, AgentDefinition], tuple[str, ...]]:
    """The definitions in a plugin's files, as `NAME:…`, and what is wrong with others. `fill` fills
    in the places of their instructions. Blocks; never raises."""
    found: dict[str, AgentDefinition] = {}
    problems = list[str]()
    for path in files:
        try:
            one = parsed(path, read_small(path, limit=SIZE_MAX)[0])
        except OSError as error:
            one = error.strerror or str(error)
        if isinstance(one, str):
            problems.append(f"{path.name} of the plugin {name} is no sub-agent: {one}.")
        else:
            if "hooks" in one.left:
                problems.append(f"The hooks of the sub-agent {name}:{one.name} don't run here.")
            own = f"{name}:{one.name}"
            found[own] = replace(one, name=own, prompt=fill(one.prompt))
    return found, tuple(problems)


_TOOLS: Final = ("tools", "allowed-tools", "allowedtools")
_LEFT: Final = (
    *("hooks", "mcpservers", "memory", "background", "effort", "maxturns", "initialprompt"),
    *("color", "permissionmode"),
)
"""Fields that Claude Code knows and that do nothing here; `plan` as a permission mode does."""
_LIMITS: Final = (
    *_TOOLS,
    *("disallowedtools", "disallowed-tools", "permissionmode", "permission-mode"),
    *("mode", "isolation"),
)
"""Fields that take something from a sub-agent."""


@lru_cache(maxsize=FILES_MAX)
def parsed(path: Path, data: bytes) -> AgentDefinition | str:
    """The definition in a file, or why there is none, as the end of a sentence; read once for as
    long as it stays."""
    file = front_matter.parse(data)
    if unread := [name for name in _LIMITS if name in file.unclear]:
        return (
            f"what it says about {' and '.join(unread)} can't be read: write each field once, "
            "at the beginning of a line of its own, as in `tools: read_file`"
        )
    name, description = file.text("name") or path.stem, file.text("description")
    if not description:
        return "it has no description"
    if len(name) > NAME_CHARS or not name.replace("-", "").replace("_", "").isalnum():
        return "a name has letters, digits, - and _"
    model = file.text("model").casefold()
    modes = (file.text(name) for name in ("permissionmode", "permission-mode", "mode"))
    isolation = file.text("isolation").casefold()
    if isolation not in {"", _WORKTREE}:
        return f"its isolation is {isolation!r}, and only {_WORKTREE} is known"
    limits = [name for name in _TOOLS if file.names(name) is not None]
    if len(limits) > 1:
        return f"it limits its tools by {' and by '.join(limits)}: keep one of them"
    tools = file.names(limits[0]) if limits else None
    without = (file.names(name) or () for name in ("disallowedtools", "disallowed-tools"))
    return AgentDefinition(
        name=name,
        description=description,
        prompt=_with_skills(file.body, file.names("skills") or ()),
        tools=None if tools is None or "*" in tools else _ours(tools),
        without=_ours(chain.from_iterable(without)),
        model="" if model == INHERIT else file.text("model"),
        read_only="plan" in {mode.casefold() for mode in modes},
        isolated=isolation == _WORKTREE,
        path=path,
        left=tuple(name for name in _LEFT if file.fields.get(name) and file.text(name) != "plan"),
    )


def _with_skills(body: str, skills: Sequence[str]) -> str:
    """Instructions with the skills that they begin with, which are loaded by their tool here."""
    if not skills:
        return body
    return f"{body}\n\nBefore you start, load these skills with `skill`: {', '.join(skills)}."


def of_fields(name: str, fields: Mapping[str, object], prompt: str) -> AgentDefinition | str:
    """The definition that a program gives by its fields, or why there is none, as the end of a
    sentence."""
    description, tools = fields.get("description"), fields.get("tools")
    if not isinstance(description, str) or not description:
        return "it has no description"
    if tools is not None and not isinstance(tools, list):
        return "its tools are no list"
    without = fields.get("disallowedTools")
    if without is not None and not isinstance(without, list):
        return "its disallowedTools are no list"
    names = map(str, cast("list[object]", tools or []))
    model = fields.get("model")
    return AgentDefinition(
        name=name,
        description=description,
        prompt=prompt,
        tools=None if tools is None else _ours(names),
        without=_ours(map(str, cast("list[object]", without or []))),
        model=model if isinstance(model, str) and model != INHERIT else "",
        read_only=fields.get("permissionMode") == "plan",
    )


def _ours(names: Iterable[str]) -> tuple[str, ...]:
    """Tools by our names. Of `Bash(git *)` the program's name counts: what it may run is a matter
    of the rules."""
    bare = (name.partition("(")[0].strip() for name in names)
    found = [
        tool
        for name in bare
        for tool in ([f"{name}__*"] if _is_server(name) else claude_names.ours(name))
    ]
    return (*found, "command_status") if "run_command" in found else tuple(found)


def _is_server(name: str) -> bool:
    """True if a name stands for all tools of an MCP server (`mcp__github`)."""
    return name.startswith("mcp__") and "__" not in name.removeprefix("mcp__")


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


@cache
def _own() -> Mapping[str, AgentDefinition]:
    """The agents that come with the program."""
    made: dict[str, AgentDefinition] = {}
    for name in OWN_NAMES:
        path = Path(__file__).parent / "agents" / f"{name}.md"
        one = parsed(path, path.read_bytes())
        assert isinstance(one, AgentDefinition)
        made[name] = AgentDefinition(
            name, one.description, one.prompt, one.tools, one.without, one.model, one.read_only
        )
    return made


def listed(entries: Iterable[tuple[str, str]], what: str, budget: int = LIST_MAX) -> BoundedList:
    """List sub-agents or skills for the model within a budget, names with descriptions of one line;
    `what` are several of them in a word.

    While all descriptions fit they stand there whole. Else all are cut to one length, the longest
    that fits; where not even short ones fit, only names are left, and of these the last may be left
    out. The list says how many. What is cut or left out is found by a search.
    """
    every = list(entries)
    lines = [_line(name, about, len(about)) for name, about in every]
    if sum(map(len, lines)) + len(lines) <= budget:
        return BoundedList("\n".join(lines))
    most = 0
    for most in _LENGTHS:
        lines = [_line(name, about, most) for name, about in every]
        if sum(map(len, lines)) + len(lines) <= budget - _LAST_LINE:
            break
    kept, length = 0, 0
    for line in lines:
        length += len(line) + 1
        if length > budget - _LAST_LINE:
            break
        kept += 1
    unlisted = tuple(name for name, _ in every[kept:])
    cut = sum(len(about) > most for _, about in every[:kept])
    about_rest = f"{len(unlisted):,} more {what} are not listed" if unlisted else ""
    done = "shortened" if most else "left out"
    about_cut = f"{cut:,} descriptions are {done}" if cut else ""
    told = " and ".join(filter(None, (about_rest, about_cut)))
    lines = [*lines[:kept], f"- {told}: search_installed finds all of them by words."]
    return BoundedList("\n".join(lines), cut, unlisted)


def _line(name: str, about: str, most: int) -> str:
    if not most and about:
        return f"- {name}"
    return f"- {name}: {about if len(about) <= most else _shorter(about, most)}"


def _shorter(about: str, most: int) -> str:
    """The first sentence, if it fits; else as many words as fit."""
    end = about.find(". ", most // 3, most)
    if end > 0:
        return about[: end + 1]
    part = about[: most - 1]
    return f"{part.rpartition(' ')[0] or part}…"
