"""Takes over a person's Claude Code settings, key by key, and names all that can't be.

Commands, skills and sub-agents in its folder need no taking over: they are read where they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tui.core.claude_names import claude_folder
from tui.core.config import Config
from tui.core.files import read_small
from tui.core.json_files import parse_json
from tui.core.messages import is_object, list_of, object_of, string_of
from tui.core.paths import Folders
from tui.settings import agent_definitions, hook_files, output_styles, user_commands
from tui.settings.allowed_tools import restricted_tools, rules_of
from tui.settings.hook_files import Hook
from tui.settings.takeover import KINDS, ImportedItem, SkippedItem, Takeover, unused_keys

NAME: Final = "settings.json"
LOCAL: Final = "settings.local.json"
_SIZE_MAX: Final = 1_000_000

NO_SETTING: Final = "no setting here does that"
_NO_RULE: Final = "no rule here can express it"
_SETTINGS: Final = {"model": "model", "outputStyle": "output_style"}
"""Settings with one of ours by their side."""
_WHYS: Final = {
    "env": "set it where you start holdfast; for commands, name it in [sandbox] keep_env",
    "statusLine": "its command gets other JSON here; write one for [status] command",
    "model": "not a full model name; set model, or start with -m",
    "outputStyle": "set output_style to one of your own styles",
    "extraKnownMarketplaces": "add a plugin's folder with holdfast plugin add",
    "apiKeyHelper": "keys are set with holdfast login, or in the environment",
    "disableAllHooks": "remove hooks from hooks.json instead",
    "cleanupPeriodDays": "sessions are kept until you delete them",
    "includeCoAuthoredBy": "Holdfast adds no co-author to commits",
    "enabledMcpjsonServers": "servers of .mcp.json start once you trust the folder",
    "disabledMcpjsonServers": "don't trust that server, or remove it from .mcp.json",
}
_MODES: Final = {
    "plan": "start with --permission-mode plan",
    "acceptEdits": "start with --permission-mode edits",
    "bypassPermissions": "type /elevated on in a session that needs it",
    "dontAsk": "-p never asks: what no rule allows is refused",
    "default": "the default here, too",
}
_FOLDER_WHY: Final = "for one folder only: put rules into its .holdfast/config.toml"
_READ: Final = frozenset(
    {NAME, "CLAUDE.md", "agents", "commands", "output-styles", "plugins", "rules", "skills"}
)
"""What is read where it lies, or taken over."""
_OTHER_FILES: Final = {
    ".credentials.json": "sign-ins are never taken over; holdfast login",
    "keybindings.json": "keys are set in [keys]",
    "projects": "sessions stay where they are; holdfast sessions import reads them",
}
_DATA: Final = "Claude Code's own data"


def plan(source: Path, folders: Folders, workspace: Path, config: Config) -> Takeover:
    """Collect from a settings file what is not here yet, by the person's own configuration. Blocks;
    never raises."""
    settings = read_object(source)
    if isinstance(settings, str):
        return Takeover(left=(SkippedItem("", source, settings),) if settings else ())
    permissions = settings.get("permissions", {})
    rules: dict[str, tuple[str, ...]] = {}
    left: list[SkippedItem] = []
    lost: list[SkippedItem] = []
    for kind in KINDS:
        read = rules_of(permissions, kind)
        rules[kind] = tuple(
            rule for rule in read.rules if rule not in getattr(config.permissions, kind)
        )
        (lost if kind == "deny" else left).extend(
            SkippedItem(f"{kind} {one}", source, _NO_RULE) for one in read.ignored
        )
        left += [
            SkippedItem(f"{kind} {one}", source, f"only stricter rules can be taken over: {rule}")
            for one in read.wider
            for rule in [", ".join(restricted_tools([one]).rules)]
        ]
    hooks, problems = _hooks(source, folders)
    chosen, style = string_of(settings.get("model")), string_of(settings.get("outputStyle"))
    values: dict[str, str] = {}
    if chosen.startswith("claude-") and config.model == Config().model:
        values["model"] = chosen
    if not config.output_style and output_styles.is_own(style, workspace, folders):
        values["output_style"] = style
    left += [SkippedItem("hooks", source, one) for one in problems]
    left += _other_permissions(permissions, source)
    taken_keys = {"permissions", "hooks", "$schema", "enabledPlugins"}
    taken_keys |= {key for key, ours in _SETTINGS.items() if ours in values}
    if style.casefold() in {"default", config.output_style.casefold()}:
        taken_keys.add("outputStyle")
    rest = {key: value for key, value in settings.items() if key not in taken_keys}
    left += _other_settings(rest, source)
    taken = [ImportedItem(kind, rule, source) for kind in KINDS for rule in rules[kind]]
    taken += [ImportedItem("hook", f"{hook_name(one)}: {one.line}", source) for one in hooks]
    taken += [ImportedItem("setting", f"{key} = {value}", source) for key, value in values.items()]
    return Takeover(
        rules, hooks, values=values, taken=tuple(taken), left=tuple(left), lost=tuple(lost)
    )


def hook_name(hook: Hook) -> str:
    """Return when a hook runs, in a few words."""
    return f"{hook.event} {hook.matcher}".rstrip()


def read_object(source: Path) -> dict[str, object] | str:
    """Read the object in a file of JSON; or return why there is none, "" for no file. Blocks."""
    try:
        settings: object = parse_json(read_small(source, limit=_SIZE_MAX)[0])
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"Can't read it: {error.strerror or error}."
    except (ValueError, RecursionError):
        return "It isn't valid JSON."
    return settings if is_object(settings) else "It isn't an object."


def _hooks(source: Path, folders: Folders) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """The hooks of a file that are not here yet, and what is wrong with others."""
    loaded = hook_files.load([source])
    here = hook_files.load([folders.config / hook_files.NAME])
    there = {(one.event, one.matcher, one.line) for one in here.all}
    new = (one for one in loaded.all if (one.event, one.matcher, one.line) not in there)
    return tuple(one for one in new if not one.problem), loaded.problems


def _other_permissions(permissions: object, source: Path) -> Iterator[SkippedItem]:
    """Yield what stays of the permissions, but for the rules."""
    if not is_object(permissions):
        yield SkippedItem("permissions", source, "Its permissions aren't an object.")
    rest = {key: one for key, one in object_of(permissions).items() if key not in KINDS}
    mode = string_of(rest.pop("defaultMode", ""))
    if mode:
        why = _MODES.get(mode, "there is no such mode")
        yield SkippedItem(f"permissions.defaultMode {mode}", source, why)
    for folder in list_of(rest.pop("additionalDirectories", [])):
        yield SkippedItem(
            f"permissions.additionalDirectories {folder}",
            source,
            "start with --add-dir, or /add-dir",
        )
    yield from unused_keys(rest, source, {}, NO_SETTING, "permissions.")


def _other_settings(rest: Mapping[str, object], source: Path) -> Iterator[SkippedItem]:
    for key, value in rest.items():
        inner = object_of(value) if key in {"env", "enabledPlugins"} else {}
        if inner:
            yield from unused_keys(inner, source, {}, _WHYS[key], f"{key}.")
        else:
            yield SkippedItem(key, source, _WHYS.get(key, NO_SETTING))


def in_place(workspace: Path) -> Takeover:
    """The files that are used where they lie, and the others beside them. Blocks."""
    taken: list[ImportedItem] = []
    left: list[SkippedItem] = []
    for folder in dict.fromkeys((claude_folder(), workspace / ".claude")):
        names = {
            "command": user_commands.command_files(folder / "commands"),
            "skill": (folder / "skills").glob("*/SKILL.md"),
            "sub-agent": agent_definitions.agent_files(folder / "agents"),
            "output style": agent_definitions.agent_files(folder / "output-styles"),
            "rule": agent_definitions.agent_files(folder / "rules"),
            "instructions": folder.glob("CLAUDE.md"),
        }
        for kind, files in names.items():
            taken += [ImportedItem(kind, _name_of(file), file) for file in sorted(files)]
        own = folder == claude_folder()
        left += _other_files(folder) if own else _workspace_settings(folder)
        taken += [] if own else _workspace_rules(folder)
    return Takeover(taken=tuple(taken), left=tuple(left))


def _name_of(file: Path) -> str:
    return file.parent.name if file.name == "SKILL.md" else file.stem


def _other_files(folder: Path) -> Iterator[SkippedItem]:
    """Yield the files of its own folder that are not read."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return
    for name in names:
        if name not in _READ:
            yield SkippedItem(name, folder, _OTHER_FILES.get(name, _DATA))


def _workspace_rules(folder: Path) -> Iterator[ImportedItem]:
    """Yield the rules of a workspace that forbid or ask, which count there."""
    for name in (NAME, LOCAL):
        permissions = object_of(object_of(read_object(folder / name)).get("permissions"))
        for kind in ("deny", "ask"):
            for rule in list_of(permissions.get(kind)):
                yield ImportedItem(kind, str(rule), folder / name)


def _workspace_settings(folder: Path) -> Iterator[SkippedItem]:
    """Yield what stays of the settings of a workspace: its hooks run where they are, and rules that
    ask or forbid count there."""
    for name in (NAME, LOCAL):
        settings = read_object(folder / name)
        if isinstance(settings, str):
            yield from [SkippedItem("", folder / name, settings)] if settings else []
            continue
        rest = {key: one for key, one in settings.items() if key not in {"hooks", "$schema"}}
        for rule in list_of(object_of(rest.get("permissions")).get("allow")):
            yield SkippedItem(f"allow {rule}", folder / name, _FOLDER_WHY)
        yield from _other_permissions(rest.pop("permissions", {}), folder / name)
        yield from _other_settings(rest, folder / name)
