"""Hooks: a person's own commands that run at certain moments, in the format of Claude Code.

    {"hooks": {"PreToolUse": [{"matcher": "Edit|Write",
                               "hooks": [{"type": "command", "command": "…", "timeout": 60}]}]}}

They lie in `hooks.json` of the configuration folder and of `.holdfast/`; those in the settings of a
workspace's `.claude/` count too. What a folder brings along counts once the person trusts it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from tui.core.files import read_small
from tui.core.messages import list_of, object_of, string_of
from tui.core.workspace import PRIVATE_DIR

HookEvent: TypeAlias = Literal[
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "SubagentStop",
    "PreCompact",
]
EVENTS: Final[tuple[HookEvent, ...]] = get_args(HookEvent)

NAME: Final = "hooks.json"
HOOK_FILES: Final = (
    ".claude/settings.json",
    ".claude/settings.local.json",
    f"{PRIVATE_DIR}/{NAME}",
)
"""Where a workspace brings some along."""

DEFAULT_TIMEOUT_S: Final = 60.0
TIMEOUT_MAX_S: Final = 600.0
HOOKS_MAX: Final = 200
_SIZE_MAX = 1_000_000
_SCRIPTS_MAX = 100
_FOLDERS_MAX = 8
_PROJECT = re.compile(
    r"""[\"']?(?:\$(?:CLAUDE_PROJECT_DIR|PWD)\b|\$\{(?:CLAUDE_PROJECT_DIR|PWD)[^}]*\}"""
    r"""|(?:\$\(|`)\s*(?:pwd|git\s+rev-parse\s+--show-toplevel)\s*(?:\)|`))[\"']?/"""
)
"""What a path from the workspace begins with."""
_ENDINGS: Final = frozenset(
    {".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php"}
)
_QUOTED_OR_NOT = re.compile(r"""\"[^\"]+\"|'[^']+'|[^\s;|&<>()\"']+""")
_COMMAND_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class Hook:
    """A command for one event. `matcher` is a regular expression for the name of a tool, or for why
    a session starts or is compacted; "" matches all. `scripts` are the programs of the workspace
    that it names, with the hash of each when it was loaded; None for a hook of the person's own."""

    event: HookEvent
    matcher: str
    command: str
    timeout_s: float = DEFAULT_TIMEOUT_S
    path: Path | None = None
    scripts: Mapping[str, str] | None = field(default=None, compare=False)

    def holds_in(self, workspace: Path) -> bool:
        """Whether its scripts are what they were: what a call has changed meanwhile is not what
        the person trusts. Blocks."""
        return self.scripts is None or self.scripts == _hashes(self.command, workspace)

    def matches(self, names: Iterable[str]) -> bool:
        """Whether it is meant for what has one of these names."""
        if self.matcher in {"", "*"}:
            return True
        return any(re.fullmatch(self.matcher, name) for name in names)


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks there are, in the order of their files; and what is wrong with others, a sentence
    each."""

    all: tuple[Hook, ...] = ()
    problems: tuple[str, ...] = ()

    def of(self, event: HookEvent, names: Iterable[str] = ()) -> list[Hook]:
        """Those for an event, of what has one of these names; each command once."""
        known = tuple(names)
        found = (one for one in self.all if one.event == event and one.matches(known))
        return list({one.command: one for one in found}.values())


Counts: TypeAlias = Callable[[Path, dict[str, Any]], bool]
"""Whether the hooks of a file count, with what it says under "hooks"."""


def load(
    files: Iterable[Path],
    counts: Counts = lambda _path, _hooks: True,
    workspace: Path | None = None,
) -> Hooks:
    """The hooks in some files, as far as they count; those of files in the `workspace` only with
    its scripts as they are now. Blocks; never raises."""
    found: list[Hook] = []
    problems: list[str] = []
    for path in files:
        said = hooks_in(path)
        if isinstance(said, str):
            problems.append(said)
        elif said and counts(path, said):
            parsed = list(_parsed(path, said, problems))
            if workspace is not None and workspace in path.parents:
                parsed = [replace(o, scripts=_hashes(o.command, workspace)) for o in parsed]
            found += parsed
    return Hooks(tuple(found[:HOOKS_MAX]), tuple(problems))


def hooks_in(path: Path) -> dict[str, Any] | str:
    """What a file says under "hooks", nothing where it is not there; or why it can't be read."""
    try:
        data, _ = read_small(path, limit=_SIZE_MAX)
        found: object = json.loads(data)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        return f"Can't read {path.name}: {error.strerror or error}."
    except (ValueError, RecursionError):
        return f"{path.name} is not valid JSON; its hooks don't run."
    return object_of(object_of(found).get("hooks"))


def scripts_in(hooks: dict[str, Any], workspace: Path) -> Mapping[str, bytes | None]:
    """The files of a workspace that its hooks name by a path: what is in them, None for one that
    is not there or can't be read whole. Links are followed as long as they stay inside. A folder
    that is named may be the one that what follows is relative to. Blocks."""
    found: dict[str, bytes | None] = {}
    for one in _parsed(Path(), hooks, []):
        _find_scripts(one.command, workspace, found)
    return found


def _hashes(command: str, workspace: Path) -> Mapping[str, str]:
    found: dict[str, bytes | None] = {}
    _find_scripts(command, workspace, found)
    return {
        name: sha256(data).hexdigest()
        for name, data in found.items()
        if data is not None and _is_program(workspace / name, data)
    }


def _is_program(path: Path, data: bytes) -> bool:
    """Whether a file looks like one that is run: others, such as notes, may change meanwhile."""
    return data.startswith(b"#!") or path.suffix in _ENDINGS or os.access(path, os.X_OK)


def _find_scripts(command: str, workspace: Path, found: dict[str, bytes | None]) -> None:
    root = Path(os.path.realpath(workspace))
    folders = [root]
    for word in dict.fromkeys(_words_of(command)):
        for folder in tuple(folders):
            path = Path(os.path.realpath(folder / word))
            if root not in path.parents or len(found) >= _SCRIPTS_MAX:
                continue
            name = path.relative_to(root).as_posix()
            if path.is_dir():
                folders += [path] if len(folders) < _FOLDERS_MAX else []
            # What only looks like a path, such as a pattern, may be no file at all.
            elif name not in found and (path.is_file() or ("/" in word and folder == root)):
                found[name] = _content(path)


def _content(path: Path) -> bytes | None:
    try:
        return read_small(path, limit=_SIZE_MAX)[0]
    except (OSError, ValueError):
        return None


def _words_of(command: str) -> Iterator[str]:
    """What may be a path in a command, from the workspace."""
    plain = _PROJECT.sub("", command)
    for part in (*_QUOTED_OR_NOT.findall(plain), *_shell_words(plain)):
        word = part.strip("\"'")
        if part[0] in "\"'" and word != plain:  # such as what `sh -c` gets
            yield from _words_of(word)
        word = word.rpartition("=")[2].removeprefix("./")
        if word and not word.startswith(("-", "~")) and "$" not in word:
            yield word


def _shell_words(command: str) -> list[str]:
    """A command's words as a shell joins them, quoted parts and all."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    try:
        return [word for word in words if word]
    except ValueError:
        return []


def described(hooks: dict[str, Any]) -> Sequence[str]:
    """What hooks would run, and when, a line each."""
    return [
        " ".join(filter(None, (one.event, one.matcher))) + f": {one.command}"
        for one in _parsed(Path(), hooks, [])
    ]


def _parsed(path: Path, hooks: dict[str, Any], problems: list[str]) -> Iterator[Hook]:
    for event, groups in hooks.items():
        if event not in EVENTS:
            if event != "Notification":
                problems.append(f"{path.name}: there is no hook event {event!r}.")
            continue
        for group in map(object_of, list_of(groups)):
            matcher = string_of(group.get("matcher"))
            try:
                re.compile(matcher if matcher != "*" else "")
            except (re.error, OverflowError, RecursionError) as error:
                problems.append(f"{path.name}: the matcher {matcher!r} is wrong: {error}.")
                continue
            for one in map(object_of, list_of(group.get("hooks"))):
                command = string_of(one.get("command")).strip()
                if one.get("type", "command") != "command" or not command:
                    problems.append(f"{path.name}: only hooks that are commands run ({event}).")
                elif len(command) > _COMMAND_CHARS or "\0" in command:
                    problems.append(f"{path.name}: a command for {event} is too long to run.")
                else:
                    timeout = _timeout(one.get("timeout"))
                    yield Hook(event, matcher, command, timeout, path)


def _timeout(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        return DEFAULT_TIMEOUT_S
    return TIMEOUT_MAX_S if value >= TIMEOUT_MAX_S else float(value)
