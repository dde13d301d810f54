"""Plugins: folders of commands, sub-agents, skills, hooks and MCP servers, in Claude Code's format.

A person adds a folder (`holdfast plugin add PATH`), and trusts what is in it then: its files are
hashed, and one of which anything has changed counts for nothing until it is added again.
`.claude-plugin/plugin.json` names the plugin and may say where its parts lie; without it the
folder's name counts, and the usual folders. All that it brings is named `PLUGIN:NAME`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

from tui.core import front_matter
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import ConfigError, StorageError, UsageError, os_error_as
from tui.core.files import locked, read_small, replace_file
from tui.core.formatting import plural
from tui.core.json_files import parse_json
from tui.core.messages import is_object, list_of, object_of, string_of
from tui.core.paths import Folders, shorten
from tui.settings import hook_files, mcp_json
from tui.settings.agent_definitions import agent_files
from tui.settings.allowed_tools import allowed_tools
from tui.settings.folder_hash import Files, files_in, fingerprint, leads_out
from tui.settings.hook_files import NO_BYTECODE, PLUGIN_ROOT, Hook

MANIFEST: Final = ".claude-plugin/plugin.json"
MARKETPLACE: Final = ".claude-plugin/marketplace.json"
PARTS: Final = ("commands", "agents", "skills", "hooks", mcp_json.NAME, "output-styles")
"""The usual places of what a plugin brings."""
_ADDED_MAX: Final = 1000
"""Plugins that are remembered as they were read."""
_SIZE_MAX: Final = 1_000_000
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
    """The content of a plugin's folder. Paths are real; `commands` are files by name, `hooks` and
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
        """The variables that its texts may name."""
        return {PLUGIN_ROOT: str(self.root)}

    def named(self, name: str) -> str:
        """The name here of something that it brings."""
        return f"{self.name}:{name}"

    def filled(self, text: str) -> str:
        """A text with the plugin's folder in its places."""
        return text.replace(f"${{{PLUGIN_ROOT}}}", str(self.root))

    @property
    def brings(self) -> Sequence[str]:
        """List what it brings, a line for each kind; hooks and servers with what they run."""
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
        if granted := ", ".join(dict.fromkeys(_granted(self.commands.values()))):
            lines.append(f"in the turns of its commands it allows without asking: {granted}")
        lines += [
            f"a hook for {hook.event}, outside the sandbox: {hook.line}" for hook in self.hooks
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
    guards: bool = False
    """True if it has hooks that judge calls."""

    def missing(self, why: str) -> Sequence[Plugin]:
        """The plugins in its place where it does not count: guards that can't run."""
        guard = Hook("PreToolUse", "", "", problem=f"the plugin {self.name} was left out: {why}")
        return [Plugin(self.name, self.path, hooks=(guard,))] if self.guards else []


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
            plugin = _as_added(one, files_in(one.path))
        except ConfigError as error:
            problems.append(f"The plugin {one.name} was left out: {error.message}")
            found += one.missing(error.message.rstrip("."))
            continue
        if plugin is None:
            problems.append(
                f"The plugin {one.name} was left out: its folder has changed since you added "
                f"it. `holdfast plugin add {shorten(one.path)}` takes it as it is now."
            )
            found += one.missing("its folder has changed")
            continue
        found.append(plugin)
        problems += (f"The plugin {plugin.name}: {problem}" for problem in plugin.problems)
    return Plugins(tuple(found), tuple(problems))


def has_changed(added: Added) -> bool:
    """True if anything in a plugin's folder is not as it was added. Raises ConfigError. Blocks."""
    return fingerprint(added.path) != added.sha256


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
        Added(
            string_of(one.get("name")),
            Path(path),
            string_of(one.get("sha256")),
            guards=one.get("guards") is True,
        )
        for one in entries
        if (path := string_of(one.get("path")))
    ]


def add(folders: Folders, path: Path, name: str = "", *, replacing: Path | None = None) -> Plugin:
    """Add the plugin in a folder, or take it as it is now, and trust it. `name` is what it is
    called if it doesn't say so; one of its name below the folder `replacing` goes. Raises
    ConfigError, UsageError and StorageError. Blocks."""
    plugin = addable(folders, path, name, replacing=replacing)
    others = [one for one in _others(folders, plugin.root) if one.name != plugin.name]
    guards = any(hook.event == "PreToolUse" for hook in plugin.hooks)
    added = Added(plugin.name, plugin.root, fingerprint(plugin.root), guards)
    _write(folders, [*others, added])
    return plugin


def addable(
    folders: Folders, path: Path, name: str = "", *, replacing: Path | None = None
) -> Plugin:
    """Read a folder that `add` could add; raises as it does. Blocks."""
    root = Path(os.path.realpath(path))
    if _is_list(root) and name not in _listed_here(root):
        every = _offered(root)
        here = ", ".join(name for name, place in every.items() if place)
        far = ", ".join(name for name, place in every.items() if not place)
        more = f" These are elsewhere, and can't be fetched: {far}." if far else ""
        hint = f"Add one of them, as NAME@{shorten(root)}: {here}."
        raise UsageError(
            f"{shorten(root)} is a marketplace, a list of plugins.{more}",
            hint=hint if here else "None of its plugins is in it.",
        )
    plugin = read(root, name)
    if not (plugin.brings):
        raise UsageError(
            f"{shorten(root)} has nothing in it that Holdfast can use.",
            hint="A plugin has commands/, agents/, skills/, hooks/hooks.json or .mcp.json.",
        )
    kept = [
        one
        for one in _others(folders, root)
        if one.path != root and (replacing is None or replacing not in one.path.parents)
    ]
    if any(one.name == plugin.name for one in kept):
        raise UsageError(
            f"You already have a plugin named {plugin.name}.",
            hint=f"Remove it first: holdfast plugin remove {plugin.name}",
        )
    return plugin


def _others(folders: Folders, root: Path) -> Sequence[Added]:
    """The plugins that stay when one of a folder is added: of a list that has several, all."""
    return [one for one in added_plugins(folders) if one.path != root or _is_list(root)]


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


def read(root: Path, name: str = "") -> Plugin:
    """Read what a folder brings; `name` is what it is called if it doesn't say so, else as the
    folder. Raises ConfigError where it is no plugin. Blocks."""
    listed = _listed_here(root).get(name, {}) if _is_list(root) else {}
    manifest = listed or _manifest(root)
    name = string_of(manifest.get("name")) or name or root.name
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
        _skills(root, manifest.get("skills"), problems, usual=not listed.get("skills")),
        styles,
        _hooks(bare, manifest.get("hooks"), problems),
        _servers(bare, manifest.get("mcpServers"), problems),
        tuple(problems),
    )


def offered(root: Path, name: str) -> Path | None:
    """The folder of a plugin that a marketplace lists by this name, None if it isn't there. Raises
    ConfigError. Blocks."""
    return _offered(root).get(name)


def _offered(root: Path) -> Mapping[str, Path | None]:
    """The plugins of a marketplace: their folders by name, None for one that lies elsewhere."""
    found: dict[str, Path | None] = {}
    for name, entry in _entries(root).items():
        source = entry.get("source")
        place = _inside(root, source) if isinstance(source, str) else None
        found[name] = place if place and place.is_dir() else None
    return found


def _entries(root: Path) -> Mapping[str, dict[str, Any]]:
    entries = map(object_of, list_of(_json(root, MARKETPLACE).get("plugins")))
    return {string_of(one.get("name")): one for one in entries}


def _is_list(root: Path) -> bool:
    """True if a folder is a marketplace and no plugin by a manifest of its own."""
    return not (root / MANIFEST).is_file() and (root / MARKETPLACE).is_file()


def _listed_here(root: Path) -> Mapping[str, dict[str, Any]]:
    """The plugins of a marketplace that are its own folder, as it describes them."""
    places = _offered(root)
    return {name: one for name, one in _entries(root).items() if places[name] == root}


@lru_cache(maxsize=_ADDED_MAX)
def _as_added(one: Added, files: Files) -> Plugin | None:  # noqa: ARG001 - a key of the cache
    """A plugin, None if it isn't as it was added; read once for as long as its files stay. Raises
    ConfigError."""
    plugin = read(one.path, one.name)
    # Afterwards: what was read meanwhile is what the hash is of.
    if has_changed(one):
        return None
    tree = one.path, one.sha256
    return replace(plugin, hooks=tuple(replace(hook, tree=tree) for hook in plugin.hooks))


def _write(folders: Folders, added: Sequence[Added]) -> None:
    file = folders.plugins_file
    entries = [
        {"name": one.name, "path": str(one.path), "sha256": one.sha256, "guards": one.guards}
        for one in added
    ]
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
    path = root / name
    return None if leads_out(path, root) else Path(os.path.realpath(path))


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


def _granted(files: Iterable[Path]) -> Iterator[str]:
    """The rules in the files of commands that allow something without a question."""
    for path in files:
        with suppress(OSError):
            data = read_small(path, limit=_SIZE_MAX)[0]
            yield from allowed_tools(front_matter.parse(data).names("allowed-tools") or ()).rules


def _skills(
    root: Path, given: object, problems: list[str], *, usual: bool = True
) -> tuple[Path, ...]:
    """The folders of skills: the root, the usual place, those that the manifest names; only these
    where it is not `usual`."""
    found = [root] if usual and (root / "SKILL.md").is_file() else []
    places = [root / "skills"] if usual else []
    for place in [*places, *_paths(root, given, problems)]:
        if (place / "SKILL.md").is_file():
            found.append(place)
        elif place.is_dir():
            found += [one for one in sorted(place.iterdir()) if (one / "SKILL.md").is_file()]
    return tuple(one for one in dict.fromkeys(found) if _inside(root, str(one)))


def _hooks(plugin: Plugin, given: object, problems: list[str]) -> tuple[Hook, ...]:
    """The hooks of its file and of the manifest, which know its folder by a variable."""
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
    return tuple(
        replace(
            hook,
            command=plugin.filled(hook.command),
            args=None if hook.args is None else tuple(map(plugin.filled, hook.args)),
            plugin=plugin.root,
        )
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
            own = {PLUGIN_ROOT: str(plugin.root), NO_BYTECODE: "1"}
            entry["env"] = {**object_of(entry.get("env")), **own}
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
