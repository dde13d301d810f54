"""The part of a person's Claude Code settings that can be taken over: permission rules and hooks.

Commands, skills and sub-agents in its folder need no taking over: they are read where they lie.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from tui.core.errors import ConfigError, StorageError, os_error_as
from tui.core.files import locked, read_small, replace_file
from tui.core.json_files import parse_json
from tui.core.messages import is_object, list_of, object_of
from tui.core.paths import Folders, shorten
from tui.settings import hook_files
from tui.settings.allowed_tools import AllowedTools, allowed_tools, restricted_tools
from tui.settings.edit import add_rules
from tui.settings.hook_files import Hook

NAME: Final = "settings.json"
KINDS: Final = ("allow", "ask", "deny")
_SIZE_MAX = 1_000_000
_EDITORS = ("edit_file", "write_file", "apply_patch")


@dataclass(frozen=True, slots=True)
class Takeover:
    """The content of a file that can be taken over: `rules` by their kind, and `hooks`, without
    those that are here already. `ignored` are rules that no rule of ours can say, `lost` those of
    them that forbid, `problems` the faults of the file."""

    source: Path
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    hooks: tuple[Hook, ...] = ()
    ignored: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self.rules.values()) or bool(self.hooks)


def plan(source: Path, folders: Folders, known: Mapping[str, Sequence[str]]) -> Takeover:
    """Collect from a settings file what is not here yet; `known` are the rules that there are, by
    kind. Blocks; never raises."""
    try:
        data, _ = read_small(source, limit=_SIZE_MAX)
        settings: object = parse_json(data)
    except (FileNotFoundError, NotADirectoryError):
        return Takeover(source)
    except OSError as error:
        return Takeover(source, problems=(f"Can't read it: {error.strerror or error}.",))
    except (ValueError, RecursionError):
        return Takeover(source, problems=("It is not valid JSON.",))
    rules: dict[str, tuple[str, ...]] = {}
    left: dict[str, tuple[str, ...]] = {}
    permissions = object_of(settings).get("permissions", {})
    for kind in KINDS:
        read = _rules(permissions, kind)
        rules[kind] = tuple(rule for rule in read.rules if rule not in known.get(kind, ()))
        left[kind] = tuple(f"{kind} {one}" for one in read.ignored)
    loaded = hook_files.load([source])
    here = hook_files.load([folders.config / hook_files.NAME])
    there = {(one.event, one.matcher, one.command) for one in here.all}
    hooks = tuple(
        one
        for one in loaded.all
        if not one.problem and (one.event, one.matcher, one.command) not in there
    )
    lost = left.pop("deny")
    ignored = tuple(one for group in left.values() for one in group)
    odd = () if is_object(permissions) else ("Its permissions are no object.",)
    return Takeover(source, rules, hooks, ignored, lost, (*odd, *loaded.problems))


def _rules(permissions: object, kind: str) -> AllowedTools:
    """The rules of a kind in ours. Anything but a list of texts is named as not expressible."""
    named: object = object_of(permissions).get(kind, [])
    every = cast("list[object]", named) if isinstance(named, list) else [named]
    texts = [one for one in every if isinstance(one, str)]
    read = allowed_tools(texts) if kind == "allow" else restricted_tools(texts)
    rules = read.rules if kind == "allow" else tuple(_for_all_editors(read.rules))
    odd = (json.dumps(one, default=str) for one in every if not isinstance(one, str))
    return AllowedTools(rules, (*read.ignored, *odd))


def _for_all_editors(rules: Iterable[str]) -> Iterator[str]:
    """Rules that forbid or ask: what they say of one tool that writes files, they mean of all."""
    found: dict[str, None] = {}
    for rule in rules:
        tool, mark, pattern = rule.partition("(")
        for each in _EDITORS if tool in _EDITORS else (tool,):
            found[f"{each}{mark}{pattern}"] = None
    return iter(found)


def take_over(found: Takeover, folders: Folders) -> None:
    """Write it to the person's own configuration. Blocks; raises ConfigError or StorageError,
    before which nothing of the same file was written."""
    if found.hooks:
        _add_hooks(found.hooks, folders.config / hook_files.NAME)
    if any(found.rules.values()):
        add_rules(folders, found.rules)


def _add_hooks(hooks: Sequence[Hook], file: Path) -> None:
    """Add hooks to a file of them, whose others stay as they are."""
    with os_error_as(StorageError, f"Can't write {shorten(file)}"), locked(file.parent):
        whole = _read(file)
        every = whole.setdefault("hooks", {})
        if not is_object(every):
            raise ConfigError(shorten(file), "hooks", "isn't an object.", hint="Edit it by hand.")
        for hook in hooks:
            if not isinstance(every.get(hook.event, []), list):
                place = f"hooks.{hook.event}"
                raise ConfigError(shorten(file), place, "isn't a list.", hint="Edit it by hand.")
            one: dict[str, Any] = {"type": "command", "command": hook.command}
            if hook.timeout_s != hook_files.DEFAULT_TIMEOUT_S:
                one["timeout"] = hook.timeout_s
            if hook.on_error != "continue":
                one["on_error"] = hook.on_error
            group = {"matcher": hook.matcher} if hook.matcher else {}
            every[hook.event] = [*list_of(every.get(hook.event)), {**group, "hooks": [one]}]
        replace_file(file, (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode())


def _read(file: Path) -> dict[str, Any]:
    try:
        settings: object = parse_json(read_small(file, limit=_SIZE_MAX)[0])
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        settings = None
    if not is_object(settings):
        hint = "Edit it by hand, or move it away."
        raise ConfigError(shorten(file), "", "isn't valid JSON.", hint=hint)
    return settings
