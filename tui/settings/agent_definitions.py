"""Definitions of sub-agents: Markdown files in `agents/`, in the format of Claude Code.

The front matter has a `name` and a `description` (by which the model chooses), and may have `tools`
(the only ones it gets), `disallowedTools`, a `model` (`inherit`, `small` or the name of one) and
`permissionMode: plan` (or `mode: plan`), which makes it read-only. The rest is its instructions.
Names of Claude Code's tools are understood. Nothing in a definition allows anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias, cast

from tui.core import claude_names, front_matter
from tui.core.files import read_small
from tui.core.workspace import PRIVATE_DIR

SIZE_MAX: Final = 200_000
FILES_MAX: Final = 200
_DEPTH: Final = 3
"""The depth below its folder at which a definition may lie."""
NAME_CHARS: Final = 64
SHOWN_CHARS: Final = 600
"""Characters of a description in the list that the model gets."""

AGENT_FOLDERS: Final = (".claude/agents", f"{PRIVATE_DIR}/agents")
"""The folders of definitions that a workspace may bring along; the last counts first."""

OWN_NAMES: Final = ("explore", "general")
"""Those that come with the program."""

_WORKTREE: Final = "worktree"
INHERIT: Final = "inherit"
SMALL: Final = "small"
"""Names that stand for the model of the conversation, and for the small one."""


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

    @property
    def listing(self) -> str:
        """The list that the model gets: a line for each."""
        return "\n".join(f"- {one.name}: {_short(one.description)}" for one in self.all.values())


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
        for path in agent_files(folder, within):
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
                definitions = {
                    key: value for key, value in definitions.items() if not _same(key, one.name)
                }
                definitions[one.name] = one
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


_TOOLS: Final = ("tools", "allowed-tools", "allowedtools")
_LIMITS: Final = (
    *_TOOLS,
    *("disallowedtools", "disallowed-tools", "permissionmode", "permission-mode"),
    *("mode", "isolation"),
)
"""Fields that take something from a sub-agent."""


def parsed(path: Path, data: bytes) -> AgentDefinition | str:
    """The definition in a file, or why there is none, as the end of a sentence."""
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
        prompt=file.body,
        tools=None if tools is None or "*" in tools else _ours(tools),
        without=_ours(chain.from_iterable(without)),
        model="" if model == INHERIT else file.text("model"),
        read_only="plan" in {mode.casefold() for mode in modes},
        isolated=isolation == _WORKTREE,
        path=path,
    )


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


def _short(description: str) -> str:
    line = " ".join(description.replace("\\n", " ").split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"


@cache
def _own() -> Mapping[str, AgentDefinition]:
    """Those that come with the program."""
    made: dict[str, AgentDefinition] = {}
    for name in OWN_NAMES:
        path = Path(__file__).parent / "agents" / f"{name}.md"
        one = parsed(path, path.read_bytes())
        assert isinstance(one, AgentDefinition)
        made[name] = AgentDefinition(
            name, one.description, one.prompt, one.tools, one.without, one.model, one.read_only
        )
    return made
