"""Settings taken over from another program: what can be, what is left out and why, and the writing
of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tui.core.claude_names import claude_folder
from tui.core.dataclass import dataclass, field
from tui.core.errors import ConfigError, StorageError, os_error_as
from tui.core.files import locked, read_small, replace_file
from tui.core.json_files import parse_json
from tui.core.messages import is_object, list_of
from tui.core.paths import Folders, shorten
from tui.settings import hook_files, plugins
from tui.settings.edit import add_rules, add_servers, set_user_value
from tui.settings.hook_files import Hook

KINDS: Final = ("allow", "ask", "deny")
"""The kinds of permission rules."""
_SIZE_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """A thing that stays behind: its name in the file, the file, and why."""

    what: str
    where: Path
    why: str


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """A thing that is taken over: its kind, what becomes of it, and where it is from. `note` is
    what becomes different."""

    kind: str
    what: str
    where: Path
    note: str = ""


@dataclass(frozen=True, slots=True)
class Takeover:
    """The settings that one program has: `rules` by their kind, `hooks`, `servers` as entries of
    `[mcp]`, `values` of the configuration, `copies` of files and folders, from where to where, and
    folders of `plugins` with their names there. None of them is here yet.

    `taken` lists it all, with what is used where it lies; `left` the rest. `lost` are rules that
    forbid and that no rule here can say.
    """

    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    hooks: tuple[Hook, ...] = ()
    servers: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    copies: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    plugins: Mapping[Path, str] = field(default_factory=dict[Path, str])
    taken: tuple[ImportedItem, ...] = ()
    left: tuple[SkippedItem, ...] = ()
    lost: tuple[SkippedItem, ...] = ()

    def __bool__(self) -> bool:
        """True if there is anything to write."""
        parts = (self.hooks, self.servers, self.values, self.copies, self.plugins)
        return any(self.rules.values()) or any(parts)

    def to_json(self) -> dict[str, Any]:
        """Return it as it is printed for programs."""
        taken = [{"kind": t.kind, "what": t.what, "where": str(t.where)} for t in self.taken]
        left = [
            {"what": one.what, "where": str(one.where), "why": one.why}
            for one in (*self.left, *self.lost)
        ]
        return {"taken": taken, "left": left}


def joined(parts: Sequence[Takeover]) -> Takeover:
    """Put several together; of two servers or values with one name the first counts."""
    rules = {
        kind: tuple(dict.fromkeys(rule for part in parts for rule in part.rules.get(kind, ())))
        for kind in KINDS
    }
    return Takeover(
        rules,
        tuple(hook for part in parts for hook in part.hooks),
        {name: one for part in reversed(parts) for name, one in part.servers.items()},
        {name: one for part in reversed(parts) for name, one in part.values.items()},
        {source: target for part in parts for source, target in part.copies.items()},
        {path: name for part in parts for path, name in part.plugins.items()},
        tuple(one for part in parts for one in part.taken),
        tuple(one for part in parts for one in part.left),
        tuple(one for part in parts for one in part.lost),
    )


def unused_keys(
    table: Mapping[str, object], where: Path, whys: Mapping[str, str], usual: str, at: str = ""
) -> Iterator[SkippedItem]:
    """Yield what stays of a table, key by key: why, if `whys` has it, else the `usual` reason."""
    for key in table:
        yield SkippedItem(f"{at}{key}", where, whys.get(key, usual))


def take_over(found: Takeover, folders: Folders) -> None:
    """Write it to the person's own configuration. Blocks; raises ConfigError or StorageError,
    before which nothing of the same file was written."""
    if found.hooks:
        _add_hooks(found.hooks, folders.config / hook_files.NAME)
    if any(found.rules.values()):
        add_rules(folders, found.rules)
    if found.servers:
        add_servers(folders.config_file, found.servers)
    for key, value in found.values.items():
        set_user_value(folders, key, value)
    for path, name in found.plugins.items():
        plugins.add(folders, path, name, replacing=claude_folder())
    for source, target in found.copies.items():
        with os_error_as(StorageError, f"Can't copy {shorten(source)}"):
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copyfile(source, target)


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
            one = _entry(hook)
            group = {"matcher": hook.matcher} if hook.matcher else {}
            every[hook.event] = [*list_of(every.get(hook.event)), {**group, "hooks": [one]}]
        replace_file(file, (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode())


def _entry(hook: Hook) -> dict[str, Any]:
    """A hook as its file has it."""
    entry: dict[str, Any] = {"type": "command", "command": hook.command}
    if hook.args is not None:
        entry["args"] = list(hook.args)
    if hook.condition:
        entry["if"] = hook.condition
    if hook.timeout_s != hook_files.DEFAULT_TIMEOUT_S:
        entry["timeout"] = hook.timeout_s
    if hook.on_error != "continue":
        entry["on_error"] = hook.on_error
    if hook.detached:
        entry["async"] = True
    return entry


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
