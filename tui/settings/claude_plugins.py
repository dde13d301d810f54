"""The plugins of a person's Claude Code, as 2.1.332 keeps them (`tests/settings/claude_plugins/`).

`plugins/installed_plugins.json` has what was installed, `enabledPlugins` of its settings what of it
counts, `plugins/known_marketplaces.json` where it is from: out of a marketplace that is a folder,
plugins are read there, not from their copy. A plugin may also lie below `skills/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tui.core.claude_names import claude_folder
from tui.core.errors import ConfigError, UsageError
from tui.core.messages import list_of, object_of, string_of
from tui.core.paths import Folders, shorten
from tui.settings import plugins
from tui.settings.claude_settings import NAME, read_object
from tui.settings.folder_hash import fingerprint
from tui.settings.takeover import ImportedItem, SkippedItem, Takeover

FOLDER: Final = "plugins"
_INSTALLED: Final = "installed_plugins.json"
_MARKETPLACES: Final = "known_marketplaces.json"
_SKILLS: Final = "skills-dir"
"""The marketplace of plugins below `skills/`, which count unless they are switched off."""


def plan(folders: Folders) -> Takeover:
    """Collect the plugins that count there and are not here as they are now. Blocks; never
    raises."""
    home = claude_folder()
    place = home / FOLDER
    enabled = object_of(_read(home / NAME).get("enabledPlugins"))
    found: dict[Path, str] = {}
    taken, left = list[ImportedItem](), list[SkippedItem]()
    for name, path in {**_installed(place, enabled), **_skill_plugins(home, enabled)}.items():
        if isinstance(path, str):
            left.append(SkippedItem(name, place, path))
            continue
        try:
            plugin = plugins.addable(folders, path, name.rpartition("@")[0], replacing=home)
            here = {one.path: one.sha256 for one in plugins.added_plugins(folders)}
            if here.get(plugin.root) == fingerprint(plugin.root):
                continue
        except UsageError as error:
            left.append(SkippedItem(name, place, str(error)))
            continue
        taken.append(ImportedItem("plugin", name, plugin.root, "\n".join(plugin.brings)))
        found[plugin.root] = plugin.name
        left += [SkippedItem(name, place, problem) for problem in plugin.problems]
    return Takeover(plugins=found, taken=tuple(taken), left=tuple(left))


def _installed(place: Path, enabled: Mapping[str, object]) -> Mapping[str, Path | str]:
    """The folders of installed plugins by their names, or why one stays."""
    installed = object_of(_read(place / _INSTALLED).get("plugins"))
    marketplaces = _read(place / _MARKETPLACES)
    names = [
        one for one in dict.fromkeys((*installed, *enabled)) if not one.endswith(f"@{_SKILLS}")
    ]
    return {name: _folder(name, installed.get(name), marketplaces, enabled) for name in names}


def _folder(
    name: str, copies: object, marketplaces: Mapping[str, object], enabled: Mapping[str, object]
) -> Path | str:
    every = [object_of(one) for one in list_of(copies)]
    own = next((one for one in every if string_of(one.get("scope")) == "user"), None)
    if own is None:
        where = ", ".join(shorten(Path(string_of(one.get("projectPath")))) for one in every)
        only = f"installed there for {where} alone; holdfast plugin add takes it for everything"
        return only if where else "not installed there"
    plugin, _, marketplace = name.rpartition("@")
    path = _in_folder(object_of(marketplaces.get(marketplace)), plugin)
    path = path or Path(string_of(own.get("installPath")))
    if enabled.get(name) is not True:
        return f"switched off there; holdfast plugin add {shorten(path)} takes it all the same"
    return path if path.is_dir() else f"its folder isn't there: {shorten(path)}"


def _in_folder(marketplace: Mapping[str, object], plugin: str) -> Path | None:
    """The folder of a plugin of a marketplace that is on this machine."""
    if object_of(marketplace.get("source")).get("source") != "directory":
        return None
    root = Path(string_of(marketplace.get("installLocation")))
    try:
        return plugins.offered(root, plugin)
    except ConfigError:
        return None


def _skill_plugins(home: Path, enabled: Mapping[str, object]) -> Mapping[str, Path | str]:
    """The plugins below `skills/` that bring more than the skill that is read there anyway."""
    found: dict[str, Path | str] = {}
    for manifest in sorted((home / "skills").glob(f"*/{plugins.MANIFEST}")):
        root = manifest.parents[1]
        name = f"{root.name}@{_SKILLS}"
        if enabled.get(name) is False:
            found[name] = "switched off there, but for its skill, which is read where it lies"
        elif any((root / part).exists() for part in plugins.PARTS):
            found[name] = root
    return found


def _read(file: Path) -> dict[str, object]:
    read = read_object(file)
    return {} if isinstance(read, str) else read
