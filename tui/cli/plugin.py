"""`holdfast plugin …`: add, list and remove plugins."""

from __future__ import annotations

from pathlib import Path

from tui.app.options.arguments import Options
from tui.cli.session_io import print_json
from tui.core.errors import ConfigError
from tui.core.paths import folders, shorten
from tui.core.standard_output import note, print_text
from tui.core.text_cleaning import one_line
from tui.settings import plugins
from tui.settings.plugins import Added, Plugin


def run(options: Options) -> int:
    """Carry out `holdfast plugin ACTION`. Returns the exit code."""
    return _ACTIONS[options.action](options)


def _add(options: Options) -> int:
    path, name = Path(str(options.target)).expanduser(), ""
    if not path.exists() and "@" in str(options.target):
        name, _, listing = str(options.target).partition("@")
        path = Path(listing).expanduser()
        path = plugins.offered(path, name) or path  # a name that it hasn't is said by `add`
    plugin = plugins.add(folders(), path, name)
    for line in _lines(plugin):
        print_text(line)
    note(f"Added {plugin.name}. It applies to new sessions, until its folder changes.")
    return 0


def _list(options: Options) -> int:
    added = plugins.added_plugins(folders())
    if options.json:
        print_json({"plugins": [_as_json(one) for one in added]})
        return 0
    for one in added:
        plugin, problem = _state(one)
        for line in _lines(plugin) if plugin else [f"{one.name}: {shorten(one.path)}"]:
            print_text(line)
        if problem:
            print_text(f"  {one_line(problem)}")
    if not added:
        note("No plugins. `holdfast plugin add PATH` adds one.")
    return 0


def _remove(options: Options) -> int:
    gone = plugins.remove(folders(), str(options.target))
    note(f"Removed {gone.name}. Its folder stays: {shorten(gone.path)}.")
    return 0


def _state(one: Added) -> tuple[Plugin | None, str]:
    """Return what a plugin brings now, and why it doesn't count, "" if it does."""
    try:
        changed = plugins.has_changed(one)
        return plugins.read(
            one.path, one.name
        ), "its folder has changed since you added it, so it doesn't count" * changed
    except ConfigError as error:
        return None, f"it doesn't count: {error.message}"


def _lines(plugin: Plugin) -> list[str]:
    head = " ".join(filter(None, (plugin.name, plugin.version)))
    about = f"{head}: {shorten(plugin.root)}"
    lines = [*plugin.brings, *(f"left out: {problem}" for problem in plugin.problems)]
    return [about, *(f"  {one_line(line)}" for line in lines)]


def _as_json(one: Added) -> dict[str, object]:
    plugin, problem = _state(one)
    return {
        "name": one.name,
        "path": str(one.path),
        "version": plugin.version if plugin else "",
        "counts": not problem,
        "problem": problem,
        "brings": list(plugin.brings) if plugin else [],
        "left": list(plugin.problems) if plugin else [],
    }


_ACTIONS = {"add": _add, "list": _list, "remove": _remove}
