"""Hooks: a person's own commands that run at certain moments, in the format of Claude Code.

    {"hooks": {"PreToolUse": [{"matcher": "Edit|Write",
                               "hooks": [{"type": "command", "command": "…", "timeout": 60}]}]}}

They lie in `hooks.json` of the configuration folder and of `.holdfast/`; those in the settings of a
workspace's `.claude/` count too. What a folder brings along counts once the person trusts it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, cast, get_args

from tui.core import claude_names
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import ConfigError
from tui.core.files import read_small
from tui.core.json_files import parse_json
from tui.core.late_pattern import late_pattern
from tui.core.messages import is_object, object_of, string_of
from tui.core.workspace import PRIVATE_DIR
from tui.settings.allowed_tools import restricted_tools

HookEvent: TypeAlias = Literal[
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "Notification",
]
EVENTS: Final[tuple[HookEvent, ...]] = get_args(HookEvent)
OF_CALLS: Final[frozenset[HookEvent]] = frozenset(
    {"PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"}
)
"""The events of a tool call: what has the condition `if` runs for these alone."""
LEFT_OUT: Final = frozenset(
    {
        "ConfigChange", "CwdChanged", "DirectoryAdded", "Elicitation", "ElicitationResult",
        "FileChanged", "InstructionsLoaded", "MessageDisplay", "PermissionDenied",
        "PostModelSwitch", "PostToolBatch", "PreModelSwitch", "PreSkillShellCommand", "Setup",
        "TaskCompleted", "TaskCreated", "TeammateIdle", "UserPromptExpansion", "WorktreeCreate",
        "WorktreeRemove",
    }
)  # fmt: skip
"""The other events of Claude Code 2.1.332: their hooks never run here."""
OnError: TypeAlias = Literal["continue", "block"]
ON_ERROR: Final[tuple[OnError, ...]] = get_args(OnError)

PLUGIN_ROOT: Final = "CLAUDE_PLUGIN_ROOT"
"""The variable by which a plugin's texts and commands name its folder."""
NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"
"""Set so that a plugin in Python does not change its own folder by running."""
NAME: Final = "hooks.json"
HOOK_FILES: Final = (*claude_names.SETTINGS_FILES, f"{PRIVATE_DIR}/{NAME}")
"""The files of hooks that a workspace may bring along."""

DEFAULT_TIMEOUT_S: Final = 60.0
TIMEOUT_MAX_S: Final = 600.0
HOOKS_MAX: Final = 200
_SIZE_MAX = 1_000_000
_SCRIPTS_MAX = 100
_FOLDERS_MAX = 8
_PROJECT = late_pattern(
    r"""[\"']?(?:\$(?:CLAUDE_PROJECT_DIR|PWD)\b|\$\{(?:CLAUDE_PROJECT_DIR|PWD)[^}]*\}"""
    r"""|(?:\$\(|`)\s*(?:pwd|git\s+rev-parse\s+--show-toplevel)\s*(?:\)|`))[\"']?/"""
)
"""The beginning of a path from the workspace."""
_ENDINGS: Final = frozenset(
    {".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php"}
)
_QUOTED_OR_NOT = late_pattern(r"""\"[^\"]+\"|'[^']+'|[^\s;|&<>()\"']+""")
COMMAND_CHARS: Final = 10_000
_SHOWN = 60
_RULE = late_pattern(r"(\w+)\(.*\)", re.DOTALL)
"""A permission rule, such as `Bash(rm *)`."""
_GUARDS: Final[frozenset[HookEvent]] = frozenset({"PreToolUse"})
"""Events whose hooks are missed where they can't run: the person is asked."""
_KEYS: Final = frozenset(
    {"type", "command", "args", "if", "timeout", "on_error", "onFailure", "shell", "async"}
    # What 2.1.332 does not do for a hook of its settings (`once`), or only says on its screen.
    | {"once", "asyncRewake", "statusMessage", "rewakeMessage", "rewakeSummary", "cloud"}
)
"""The keys of a hook that is a command."""
_ROW_OF_NAMES = late_pattern(r"[\w\-|, ]*")


class HookCallback(Protocol):
    """A hook that is a function of the program that drives this one."""

    async def __call__(self, given: bytes) -> bytes:
        """Return its answer, as a hook prints it. Raises HoldfastError where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Hook:
    """A command for one event. `matcher` is for the name of a tool, or for why a session starts or
    is compacted: names in a row, or a regular expression; "" matches all. `scripts` are the
    programs of the workspace that it names, with the hash of each when it was loaded; None for a
    hook of the person's own. `on_error` says what becomes of what it can't judge, as it failed.

    With `args` the command is a program that gets them, and no shell reads it. `only_if` are the
    rules of its `condition`: it runs for the calls that one of them is about, for all where there
    is none. One that is `detached` is not waited for, and decides nothing.

    One with a `problem` cannot run: it stands for a guard that is missing. Of one with a
    `callback`, `command` is only its name.
    """

    event: HookEvent
    matcher: str
    command: str
    timeout_s: float = DEFAULT_TIMEOUT_S
    path: Path | None = None
    scripts: Mapping[str, str] | None = field(default=None, compare=False)
    on_error: OnError = "continue"
    problem: str = ""
    args: tuple[str, ...] | None = None
    condition: str = ""
    only_if: tuple[str, ...] = ()
    detached: bool = False
    plugin: Path | None = None
    """The folder of the plugin that brings it."""
    callback: HookCallback | None = field(default=None, compare=False)
    tree: tuple[Path, str] | None = None
    """The folder of its plugin, with the hash of what the person trusts in it."""

    @property
    def line(self) -> str:
        """Its command as one line of a shell."""
        return self.command if self.args is None else shlex.join([self.command, *self.args])

    def holds_in(self, workspace: Path) -> bool:
        """True if its scripts are unchanged: what a call has changed meanwhile is not what the
        person trusts. Blocks."""
        if self.tree is not None:
            from tui.settings.folder_hash import fingerprint  # noqa: PLC0415 - few are of a plugin

            with suppress(ConfigError):
                return fingerprint(self.tree[0]) == self.tree[1]
            return False
        return self.scripts is None or self.scripts == _hashes(self.line, workspace)

    def matches(self, names: Iterable[str]) -> bool:
        """True if it is meant for something with one of these names. As in Claude Code 2.1.332
        (tried): names with `|` or `,` between them are whole names (here regardless of case),
        anything else is found anywhere in one."""
        if self.matcher in {"", "*"}:
            return True
        if _ROW_OF_NAMES.fullmatch(self.matcher):
            wanted = {one.strip().casefold() for one in re.split(r"[|,]", self.matcher)}
            return not wanted.isdisjoint(map(str.casefold, names))
        return any(re.search(self.matcher, name) for name in names)


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks there are, in the order of their files; and what is wrong with others, a sentence
    each."""

    all: tuple[Hook, ...] = ()
    problems: tuple[str, ...] = ()

    def of(self, event: HookEvent, names: Iterable[str] = ()) -> list[Hook]:
        """The hooks for an event, of what has one of these names; each command once."""
        known = tuple(names)
        matching = (one for one in self.all if one.event == event and one.matches(known))
        once: dict[tuple[str, str, tuple[str, ...]], Hook] = {}
        for one in matching:
            key = one.line, one.problem, one.only_if
            if key not in once or one.on_error == "block":
                once[key] = one
        return list(once.values())


Counts: TypeAlias = Callable[[Path, dict[str, Any]], bool]
"""A decision if the hooks of a file count, given the contents under "hooks"."""


def load(
    files: Iterable[Path],
    counts: Counts = lambda _path, _hooks: True,
    workspace: Path | None = None,
) -> Hooks:
    """The hooks in some files, as far as they count; those of files in the `workspace` only with
    its scripts as they are now. Blocks; never raises."""
    hooks: list[Hook] = []
    problems: list[str] = []
    for path in files:
        brought = workspace is not None and workspace in path.parents
        contents = hooks_in(path)
        if isinstance(contents, str):
            problems.append(contents)
            # A folder's own file counts once it was trusted, so only by what it says.
            hooks += [] if brought else [_missing(contents, path)]
        elif contents and counts(path, contents):
            parsed = list(_parsed(path, contents, problems))
            if workspace is not None and brought:
                parsed = [replace(o, scripts=_hashes(o.line, workspace)) for o in parsed]
            hooks += parsed
    if more := hooks[HOOKS_MAX:]:
        problems.append(f"Only {HOOKS_MAX} hooks run; {len(more)} more don't.")
        if any(one.event == "PreToolUse" for one in more):
            hooks.insert(0, _missing(problems[-1]))
    return Hooks(tuple(hooks[:HOOKS_MAX]), tuple(problems))


def of_contents(path: Path, contents: dict[str, Any]) -> Hooks:
    """The hooks in the contents under "hooks" of a file that counts."""
    problems: list[str] = []
    hooks = tuple(_parsed(path, contents, problems))
    return Hooks(hooks, tuple(problems))


def _missing(problem: str, path: Path | None = None) -> Hook:
    """Make a hook in the place of guards that a file may have had."""
    return Hook("PreToolUse", "", "", path=path, problem=problem.rstrip("."))


def hooks_in(path: Path) -> dict[str, Any] | str:
    """Read the contents under "hooks" of a file, {} where it doesn't exist; or return why it can't
    be read."""
    try:
        data, _ = read_small(path, limit=_SIZE_MAX)
        contents = parse_json(data)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        return f"Can't read {path.name}: {error.strerror or error}."
    except ValueError as error:
        return f"{path.name} is not valid JSON ({error}); its hooks don't run."
    hooks = object_of(contents).get("hooks", {})
    misplaced = next((event for event in EVENTS if event in object_of(contents)), "")
    if not is_object(contents) or not is_object(hooks) or misplaced:
        where = f': {misplaced} belongs in its "hooks"' if misplaced else ""
        return f"{path.name} does not have the form of hooks{where}; its hooks don't run."
    return hooks


def scripts_in(hooks: dict[str, Any], workspace: Path) -> Mapping[str, bytes | None]:
    """The files of a workspace that its hooks name by a path: what is in them, None for one that
    is not there or can't be read whole. Links are followed as long as they stay inside. A folder
    that is named may be the one that what follows is relative to. Blocks."""
    scripts: dict[str, bytes | None] = {}
    for one in _parsed(Path(), hooks, []):
        _find_scripts(one.line, workspace, scripts)
    return scripts


def _hashes(command: str, workspace: Path) -> Mapping[str, str]:
    scripts: dict[str, bytes | None] = {}
    _find_scripts(command, workspace, scripts)
    return {
        name: sha256(data).hexdigest()
        for name, data in scripts.items()
        if data is not None and _is_program(workspace / name, data)
    }


def _is_program(path: Path, data: bytes) -> bool:
    """True if a file looks like one that is run: others, such as notes, may change meanwhile."""
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
    """Yield the words of a command that may be paths from the workspace."""
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
    """List what hooks would run, and when, a line each."""
    return [
        " ".join(filter(None, (one.event, one.matcher))) + f": {one.line or one.problem}"
        for one in _parsed(Path(), hooks, [])
    ]


def _parsed(path: Path, hooks: dict[str, Any], problems: list[str]) -> Iterator[Hook]:
    """The hooks of a file. A fault of one is reported; a faulty guard still stands, for
    more than it was meant for or as one that cannot run."""
    for event, groups in hooks.items():
        if event not in EVENTS:
            left = event in LEFT_OUT
            what = f"hooks for {event} don't run here" if left else f"there is no event {event!r}"
            problems.append(f"{path.name}: {what}.")
            continue
        for group in _items(groups):
            matcher = _matcher(group, event, problem := [])
            problems += [f"{path.name}: {one}." for one in problem]
            if matcher is None:
                continue
            for one in _items(group.get("hooks")):
                hook, wrong = _hook(one, event, matcher, path)
                problems += [f"{path.name}: {what}." for what in wrong]
                if hook is not None:
                    yield hook


def _items(value: object) -> list[dict[str, Any]]:
    """The objects of a list. What is none is one without anything, which is found to be wrong."""
    return list(map(object_of, cast("list[object]", value))) if isinstance(value, list) else [{}]


def _matcher(group: dict[str, Any], event: HookEvent, problems: list[str]) -> str | None:
    """Return the matcher of a group's hooks: for guards a wider one, where it is not understood;
    None where the others then don't run."""
    matcher = group.get("matcher", "")
    try:  # a matcher that is no text is a pattern that is wrong
        re.compile("" if matcher == "*" else matcher if isinstance(matcher, str) else "[")
    except (re.error, OverflowError, RecursionError) as error:
        guard = event == "PreToolUse"
        runs = "its hooks run for every call" if guard else "its hooks don't run"
        problems.append(f"the matcher {matcher!r} is wrong ({error}); {runs}")
        return "" if guard else None
    if rule := _RULE.fullmatch(matcher):
        problems.append(
            f"the matcher {matcher!r} is more than a tool's name; only {rule[1]} counts"
        )
        return rule[1]
    return matcher


def _hook(
    one: dict[str, Any], event: HookEvent, matcher: str, path: Path
) -> tuple[Hook | None, list[str]]:
    """A hook, and what is wrong with it. One that can't run is None if it is no guard."""
    command = string_of(one.get("command")).strip()
    wrong: list[str] = []
    if "timeout" in one and _timeout(one["timeout"]) is None:
        wrong.append(
            f"the timeout is {one['timeout']!r}, no number of seconds; the usual one counts"
        )
    hook = Hook(
        event,
        matcher,
        command,
        _timeout(one.get("timeout")) or DEFAULT_TIMEOUT_S,
        path,
        on_error=_on_error(one, wrong),
        args=_args(one),
        condition=string_of(one.get("if")),
        only_if=_only_if(one, command, wrong),
        detached=one.get("async") is True,
    )
    unknown = [key for key in one if key not in _KEYS]
    if unknown and command:
        wrong.append(f"{command[:_SHOWN]!r} runs without {', '.join(unknown)}, not known here")
    if one.get("if") and event not in OF_CALLS:  # as Claude Code 2.1.332 has it (tried)
        return None, [f"a hook for {event} that has the condition `if` never runs"]
    if cannot := _cannot_run(one, hook):
        wrong.append(cannot)
        hook = replace(hook, command="", args=None, problem=cannot)
    return None if cannot and event not in _GUARDS else hook, wrong


def _cannot_run(one: dict[str, Any], hook: Hook) -> str:
    """Say why a hook can't run; "" if it can."""
    kind = one.get("type", "command")
    if kind != "command":
        return f"only hooks that are commands run, not {str(kind)[:_SHOWN]} ({hook.event})"
    if not hook.command:
        return f"only hooks that are commands run ({hook.event})"
    if one.get("shell", "bash") != "bash":
        return f"only bash runs hooks, not {str(one['shell'])[:_SHOWN]} ({hook.event})"
    if not isinstance(one.get("args", []), list):
        return f"the args of {hook.command[:_SHOWN]!r} are no list ({hook.event})"
    if len(hook.line) > COMMAND_CHARS or "\0" in hook.line:
        return f"a command for {hook.event} is too long to run"
    return ""


def _on_error(one: dict[str, Any], wrong: list[str]) -> OnError:
    """Read what becomes of what a hook can't judge, by our name or Claude Code's."""
    for key in ("on_error", "onFailure"):
        value = one.get(key, "continue")
        if value not in ON_ERROR:
            wrong.append(f"{key} is {value!r}, not continue or block; block counts")
        if value != "continue":
            return "block"
    return "continue"


def _args(one: dict[str, Any]) -> tuple[str, ...] | None:
    """The arguments of a hook that no shell runs; None for one that is a line of a shell."""
    args = one.get("args")
    return tuple(map(str, cast("list[object]", args))) if isinstance(args, list) else None


def _only_if(one: dict[str, Any], command: str, wrong: list[str]) -> tuple[str, ...]:
    """The rules of a hook's condition, read as those of what is forbidden: in doubt it runs."""
    condition = one.get("if") or ""
    rules = restricted_tools([condition]).rules if isinstance(condition, str) and condition else ()
    if condition and not rules:
        wrong.append(f"can't read the condition {condition!r}; {command[:_SHOWN]!r} always runs")
    return rules


def _timeout(value: object) -> float | None:
    """The seconds that a hook may take; None where that is no number of them."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        return None
    return TIMEOUT_MAX_S if value >= TIMEOUT_MAX_S else float(value)
