"""Plugins: folders of commands, sub-agents, skills, hooks and MCP servers, in Claude Code's format.

A person adds a folder (`holdfast plugin add PATH`), and trusts what is in it then: its files are
hashed, and one of which anything has changed counts for nothing until it is added again.
`.claude-plugin/plugin.json` names the plugin and may say where its parts lie; without it the
folder's name counts, and the usual folders. All that it brings is named `PLUGIN:NAME`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

from tui.core.errors import ConfigError, StorageError, UsageError, os_error_as
from tui.core.files import locked, read_small, replace_file
from tui.core.formatting import plural
from tui.core.json_files import parse_json
from tui.core.messages import is_object, list_of, object_of, string_of
from tui.core.paths import Folders, shorten
from tui.settings import hook_files, mcp_json
from tui.settings.agent_definitions import agent_files
from tui.settings.hook_files import Hook

MANIFEST: Final = ".claude-plugin/plugin.json"
MARKETPLACE: Final = ".claude-plugin/marketplace.json"
ROOT: Final = "CLAUDE_PLUGIN_ROOT"
"""The variable by which its texts and commands name a plugin's folder."""
_FILES_MAX: Final = 3000
_BYTES_MAX: Final = 50_000_000
_SIZE_MAX: Final = 1_000_000
_SKIPPED: Final = frozenset({".git"})
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.IGNORECASE)
_LEFT: Final = {
    "lspServers": "language servers",
    "userConfig": "settings that it asks for",
    "monitors": "monitors",
    "themes": "themes",
    "channels": "channels",
}
"""Parts of a plugin that are not taken up, by their key."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a plugin's folder brings. Paths are real; `commands` are files by name, `hooks` and
    `servers` have their places filled in; `problems` name what is left out, a sentence each."""

    name: str
    root: Path
    version: str = ""
    description: str = ""
    commands: Mapping[str, Path] = field(default_factory=dict[str, Path])
    agents: tuple[Path, ...] = ()
    skills: tuple[Path, ...] = ()
    styles: tuple[Path, ...] = ()
    hooks: tuple[Hook, ...] = ()
    servers: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    problems: tuple[str, ...] = ()

    @property
    def variables(self) -> Mapping[str, str]:
        """What its texts may name."""
        return {ROOT: str(self.root)}

    def named(self, name: str) -> str:
        """The name here of something that it brings."""
        return f"{self.name}:{name}"

    def filled(self, text: str) -> str:
        """A text with the plugin's folder in its places."""
        return text.replace(f"${{{ROOT}}}", str(self.root))

    @property
    def brings(self) -> Sequence[str]:
        """What it brings, a line for each kind; hooks and servers with what they run."""
        counts = {
            "command": [f"/{self.named(name)}" for name in self.commands],
            "sub-agent": [self.named(path.stem) for path in self.agents],
            "skill": [self.named(path.name) for path in self.skills],
            "output style": [self.named(path.stem) for path in self.styles],
        }
        lines = [
            f"{plural(len(names), what)}: {', '.join(names)}"
            for what, names in counts.items()
            if names
        ]
        lines += [
            f"a hook for {hook.event}, outside the sandbox: {hook.command}" for hook in self.hooks
        ]
        lines += [
            f"an MCP server {name}: {entry.get('url') or ' '.join(_words(entry))}"
            for name, entry in self.servers.items()
        ]
        return lines


@dataclass(frozen=True, slots=True)
class Added:
    """A plugin that the person added, with the hash of what was in its folder."""

    name: str
    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins that count now, and what is wrong with others, a sentence each."""

    all: tuple[Plugin, ...] = ()
    problems: tuple[str, ...] = ()


def installed(folders: Folders) -> Plugins:
    """Read the plugins that were added and are as they were then. Blocks; never raises."""
    found, problems = list[Plugin](), list[str]()
    try:
        added = added_plugins(folders)
    except ConfigError as error:
        return Plugins(problems=(f"{error.message} No plugin counts.",))
    for one in added:
        try:
            if fingerprint(one.path) != one.sha256:
                problems.append(
                    f"The plugin {one.name} was left out: its folder has changed since you added "
                    f"it. `holdfast plugin add {shorten(one.path)}` takes it as it is now."
                )
                continue
            plugin = read(one.path)
        except ConfigError as error:
            problems.append(f"The plugin {one.name} was left out: {error.message}")
            continue
        found.append(plugin)
        problems += (f"The plugin {plugin.name}: {problem}" for problem in plugin.problems)
    return Plugins(tuple(found), tuple(problems))


def added_plugins(folders: Folders) -> Sequence[Added]:
    """List what the person added. Raises ConfigError. Blocks."""
    file = folders.plugins_file
    try:
        contents = parse_json(read_small(file, limit=_SIZE_MAX)[0])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise ConfigError(shorten(file), "", f"can't be read: {error}") from error
    entries = map(object_of, list_of(object_of(contents).get("plugins")))
    return [
        Added(string_of(one.get("name")), Path(path), string_of(one.get("sha256")))
        for one in entries
        if (path := string_of(one.get("path")))
    ]


def add(folders: Folders, path: Path) -> Plugin:
    """Add the plugin in a folder, or take it as it is now, and trust it. Raises ConfigError,
    UsageError and StorageError. Blocks."""
    root = Path(os.path.realpath(path))
    if not (root / MANIFEST).is_file() and (root / MARKETPLACE).is_file():
        places, far = offered(root)
        here = ", ".join(map(shorten, places))
        more = f" These are elsewhere, and can't be fetched: {', '.join(far)}." if far else ""
        raise UsageError(
            f"{shorten(root)} is a marketplace, a list of plugins.{more}",
            hint=f"Add one of its folders: {here}." if here else "None of its plugins is in it.",
        )
    plugin = read(root)
    if not (plugin.brings):
        raise UsageError(
            f"{shorten(root)} has nothing in it that Holdfast can use.",
            hint="A plugin has commands/, agents/, skills/, hooks/hooks.json or .mcp.json.",
        )
    others = [one for one in added_plugins(folders) if one.path != root]
    if any(one.name == plugin.name for one in others):
        raise UsageError(
            f"You already have a plugin named {plugin.name}.",
            hint=f"Remove it first: holdfast plugin remove {plugin.name}",
        )
    _write(folders, [*others, Added(plugin.name, root, fingerprint(root))])
    return plugin


def remove(folders: Folders, named: str) -> Added:
    """Remove a plugin, by its name or its folder; the folder stays. Raises UsageError and others as
    `add`. Blocks."""
    added = added_plugins(folders)
    real = Path(os.path.realpath(Path(named).expanduser()))
    gone = next((one for one in added if named == one.name), None)
    gone = gone or next((one for one in added if one.path == real), None)
    if gone is None:
        names = ", ".join(one.name for one in added) or "none"
        raise UsageError(f"There is no plugin {named}.", hint=f"There are: {names}.")
    _write(folders, [one for one in added if one is not gone])
    return gone


def read(root: Path) -> Plugin:
    """Read what a folder brings. Raises ConfigError where it is no plugin. Blocks."""
    manifest = _manifest(root)
    name = string_of(manifest.get("name")) or root.name
    if not _NAME.fullmatch(name):
        raise ConfigError(
            shorten(root / MANIFEST),
            "name",
            f"{name!r} may have only letters, digits, -, _ and dots",
        )
    problems = [
        f"{words} ({key}) aren't supported." for key, words in _LEFT.items() if manifest.get(key)
    ]
    bare = Plugin(name, root)
    commands = _commands(root, manifest.get("commands"), problems)
    agents = _listed(root, manifest.get("agents"), "agents", problems)
    styles = _listed(root, manifest.get("outputStyles"), "output-styles", problems)
    return Plugin(
        name,
        root,
        string_of(manifest.get("version")),
        string_of(manifest.get("description")),
        commands,
        agents,
        _skills(root, manifest.get("skills"), problems),
        styles,
        _hooks(bare, manifest.get("hooks"), problems),
        _servers(bare, manifest.get("mcpServers"), problems),
        tuple(problems),
    )


def offered(root: Path) -> tuple[Sequence[Path], Sequence[str]]:
    """The folders of the plugins that a marketplace lists and has, and the names of the others,
    which lie elsewhere. Raises ConfigError. Blocks."""
    contents = _json(root, MARKETPLACE)
    places, far = list[Path](), list[str]()
    for entry in map(object_of, list_of(contents.get("plugins"))):
        source = entry.get("source")
        place = _inside(root, source) if isinstance(source, str) else None
        if place is not None and place.is_dir():
            places.append(place)
        else:
            far.append(string_of(entry.get("name")))
    return places, far


def fingerprint(root: Path) -> str:
    """The hash of all that is in a plugin's folder. Raises ConfigError. Blocks."""
    names: list[tuple[str, int, int, int, int]] = []
    size = 0
    for where, inner, files in os.walk(root):
        inner[:] = sorted(one for one in inner if one not in _SKIPPED)
        links = [one for one in inner if os.path.islink(os.path.join(where, one))]  # noqa: PTH114, PTH118
        for one in sorted((*files, *links)):
            path = Path(where, one)
            try:
                state = path.lstat()
            except OSError as error:
                raise ConfigError(shorten(path), "", f"can't be read: {error.strerror}") from error
            size += state.st_size
            name = path.relative_to(root).as_posix()
            names.append((name, state.st_mode, state.st_size, state.st_mtime_ns, state.st_ctime_ns))
            if len(names) > _FILES_MAX or size > _BYTES_MAX:
                most = f"{_FILES_MAX:,} files or {_BYTES_MAX // 1_000_000} MB"
                raise ConfigError(shorten(root), "", f"it has more than {most}")
    if not names:
        raise ConfigError(shorten(root), "", "isn't a folder with files in it")
    return _hash_of(root, tuple(names))


@lru_cache(maxsize=64)
def _hash_of(root: Path, names: tuple[tuple[str, int, int, int, int], ...]) -> str:
    """Hash the files; once for as long as nothing about them changes."""
    whole = hashlib.sha256()
    for name, mode, *_ in names:
        path = root / name
        try:
            if stat.S_ISLNK(mode):
                data = os.fsencode(path.readlink())
            else:
                data = read_small(path, limit=_BYTES_MAX)[0] if stat.S_ISREG(mode) else b""
        except OSError as error:
            raise ConfigError(shorten(path), "", f"can't be read: {error.strerror}") from error
        runs = bool(mode & stat.S_IXUSR)
        whole.update(json.dumps([name, stat.S_IFMT(mode), runs, len(data)]).encode())
        whole.update(data)
    return whole.hexdigest()


def _write(folders: Folders, added: Sequence[Added]) -> None:
    file = folders.plugins_file
    entries = [{"name": one.name, "path": str(one.path), "sha256": one.sha256} for one in added]
    what = f"Can't write {shorten(file)}"
    with os_error_as(StorageError, what, hint="Nothing was changed."), locked(file.parent):
        replace_file(file, json.dumps({"plugins": entries}, indent=1).encode())


def _json(root: Path, name: str) -> dict[str, Any]:
    path = root / name
    try:
        contents = parse_json(read_small(path, limit=_SIZE_MAX)[0])
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ConfigError(shorten(path), "", f"can't be read: {why}") from error
    if not is_object(contents):
        raise ConfigError(shorten(path), "", "isn't an object")
    return contents


def _manifest(root: Path) -> dict[str, Any]:
    return _json(root, MANIFEST) if os.path.lexists(root / MANIFEST) else {}


def _inside(root: Path, name: str) -> Path | None:
    """A path of a plugin, None if it leads out of it."""
    real = Path(os.path.realpath(root / name))
    return real if real == root or root in real.parents else None


def _paths(root: Path, given: object, problems: list[str]) -> Iterator[Path]:
    """The paths that a field of the manifest gives."""
    for one in [given] if isinstance(given, str) else list_of(given):
        path = _inside(root, one) if isinstance(one, str) else None
        if path is None or not path.exists():
            problems.append(f"{one!r} isn't in its folder.")
        else:
            yield path


def _listed(root: Path, given: object, usual: str, problems: list[str]) -> tuple[Path, ...]:
    """The Markdown files that the manifest names, or those of the usual folder."""
    places = [root / usual] if given is None else [*_paths(root, given, problems)]
    found = list[Path]()
    for place in places:
        found += [place] if place.is_file() else agent_files(place, root)
    return tuple(found)


def _commands(root: Path, given: object, problems: list[str]) -> Mapping[str, Path]:
    """Commands by name: that of their file behind those of their folders."""
    found: dict[str, Path] = {}
    if is_object(given):
        for name, entry in given.items():
            source = object_of(entry).get("source")
            if isinstance(source, str):
                found |= dict.fromkeys([name], next(_paths(root, source, problems), root))
            else:
                problems.append(f"the command {name} has its text in {MANIFEST}, which isn't read.")
        return {name: path for name, path in found.items() if path.is_file()}
    for place in [root / "commands"] if given is None else _paths(root, given, problems):
        for path in [place] if place.is_file() else agent_files(place, root):
            within = () if place.is_file() else path.parent.relative_to(place).parts
            found[":".join((*within, path.stem))] = path
    return found


def _skills(root: Path, given: object, problems: list[str]) -> tuple[Path, ...]:
    """The folders of skills: of the usual place, of those that the manifest names, the root."""
    found = [root] if (root / "SKILL.md").is_file() else []
    for place in [root / "skills", *_paths(root, given, problems)]:
        if (place / "SKILL.md").is_file():
            found.append(place)
        elif place.is_dir():
            found += [one for one in sorted(place.iterdir()) if (one / "SKILL.md").is_file()]
    return tuple(one for one in dict.fromkeys(found) if _inside(root, str(one)))


def _hooks(plugin: Plugin, given: object, problems: list[str]) -> tuple[Hook, ...]:
    """The hooks of its file and of the manifest, which run with the plugin's folder in ROOT."""
    found = list[Hook]()
    usual = plugin.root / "hooks" / hook_files.NAME
    files = [usual] if usual.is_file() else []
    files += [] if is_object(given) else [*_paths(plugin.root, given, problems)]
    read_in = [(path, hook_files.hooks_in(path)) for path in dict.fromkeys(files)]
    if is_object(given):
        read_in.append((plugin.root / MANIFEST, object_of(given.get("hooks", given))))
    for path, contents in read_in:
        if isinstance(contents, str):
            raise ConfigError(shorten(path), "hooks", contents)
        parsed = hook_files.of_contents(path, contents)
        problems += parsed.problems
        found += parsed.all
    before = f"export {ROOT}={shlex.quote(str(plugin.root))}; "
    return tuple(
        replace(hook, command=before + plugin.filled(hook.command)) if hook.command else hook
        for hook in found
    )


def _servers(plugin: Plugin, given: object, problems: list[str]) -> Mapping[str, dict[str, Any]]:
    """Its MCP servers by their names here."""
    listed: dict[str, object] = {}
    files = [plugin.root / mcp_json.NAME] if (plugin.root / mcp_json.NAME).is_file() else []
    files += [] if is_object(given) else [*_paths(plugin.root, given, problems)]
    for path in files:
        contents = _json(plugin.root, path.relative_to(plugin.root).as_posix())
        listed |= object_of(contents.get("mcpServers", contents))
    listed |= object_of(given)
    entries = cast("dict[str, object]", _filled(listed, plugin))
    found = mcp_json.servers_of(entries, mcp_json.NAME)
    problems += (f"{key}: {why}." for key, why in found.problems.items())
    servers = {f"plugin_{plugin.name}_{name}": entry for name, entry in found.servers.items()}
    for entry in servers.values():
        if entry.get("command"):
            entry["env"] = {**object_of(entry.get("env")), ROOT: str(plugin.root)}
    return servers


def _filled(value: object, plugin: Plugin) -> object:
    """A value with the plugin's folder in the places of its texts."""
    if isinstance(value, str):
        return plugin.filled(value)
    if isinstance(value, list):
        return [_filled(one, plugin) for one in cast("list[object]", value)]
    if is_object(value):
        return {key: _filled(one, plugin) for key, one in value.items()}
    return value


def _words(entry: Mapping[str, Any]) -> list[str]:
    command = entry.get("command", "")
    first = [command] if isinstance(command, str) else list_of(command)
    return [str(word) for word in (*first, *list_of(entry.get("args")))]
