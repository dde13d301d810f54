"""The configuration of `--bare`: what can be read of the person's file, without all that runs
programs, and of a folder only what forbids or asks.

A broken file must not keep anybody out, and must not take a wall away: if rules are lost with it,
every call asks; if what says who is asked or whose key pays is, nobody else is asked in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

from msgspec import structs

from tui.core.config import Config, profile_of
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import ConfigError, UsageError
from tui.core.files import read_small
from tui.core.late_pattern import late_pattern
from tui.core.messages import list_of, object_of
from tui.core.paths import Folders, shorten
from tui.core.toml_files import parse_toml
from tui.settings import layers, profiles
from tui.settings.layers import IgnoredSetting, LoadedSettings, SettingsLayer, Table
from tui.settings.validation import check, dotted

_PROGRAMS: Final = ("mcp", "status", "background", "output_style", "diagnostics")
"""Settings that start programs of the person's own, or name files that are read."""
_WALLS: Final = "permissions"
_EVERY_TOOL: Final = "*"
_WHO: Final = ("base_url", "provider", "default_profile", "profile")
"""What says who is asked, and with whose key."""
_QUOTES: Final = ('"""', "'''")
_HEADER = late_pattern(r"^[ \t]*\[[^\n]*$", re.MULTILINE)
_LINES_MAX: Final = 2000
"""Lines of a broken part that are read one by one."""
_VALUE_LINES_MAX: Final = 40
"""Lines that one value of a broken part may have."""


@dataclass(slots=True)
class Salvaged:
    """The settings that could be read of a file, and its profiles by name: `lost` are lines that
    could not, and the texts of values that aren't allowed; `ignored` says the same to a person."""

    table: Table = field(default_factory=dict[str, Any])
    profiles: dict[str, Table] = field(default_factory=dict[str, Table])
    lost: list[str] = field(default_factory=list[str])
    ignored: list[IgnoredSetting] = field(default_factory=list[IgnoredSetting])

    def names(self, word: str) -> bool:
        """True if something was lost that may have set a key of this name."""
        return any(word in text for text in self.lost)


def load(
    *,
    folders: Folders,
    workspace: Path,
    env: Mapping[str, str],
    overrides: Table,
    session_profile: str = "",
    asks_server: bool,
    elevated: bool,
) -> LoadedSettings:
    """Read, merge and check the layers, as `layers.load`. Blocks briefly.

    Raises ConfigError where the file may name a server or a profile, that can't be read, and
    `asks_server`; UsageError where rules were lost and the session would be `elevated`.
    """
    file, project = folders.config_file, layers.project_file(workspace)
    own, brought = salvage(file), salvage(project)
    profile = profiles.chosen(
        own.profiles,
        named=(
            (overrides.get("profile", ""), "--profile"),
            (session_profile, profiles.SESSION),
            (env.get(profiles.VARIABLE, "").strip(), profiles.VARIABLE),
            (own.table.get("default_profile", ""), f"{shorten(file)}: default_profile"),
        ),
        file=shorten(file),
    )
    settings = own.profiles.get(profile.name, {})
    if asks_server:
        _require_account(file, env, own, profile)
    left_out = {*_PROGRAMS, *(("otel",) if own.names("otel") else ())}  # its collector may be lost
    settings = {key: value for key, value in settings.items() if key not in left_out}
    table = {key: value for key, value in own.table.items() if key not in left_out}
    walls: Table = {}
    for one in (own, brought):
        if one.names("redact"):
            walls["redact"] = "record"
        if one.names(_WALLS):
            walls[_WALLS] = {"ask": [_EVERY_TOOL]}
    if _WALLS in walls and elevated:
        raise UsageError(
            "--yolo with --bare needs your deny rules, and they can't all be read.",
            hint=f"Mend the file first, or leave out --yolo: {own.ignored[0].reason}"
            if own.ignored
            else "Mend this folder's config.toml first, or leave out --yolo.",
        )
    ignored = [*own.ignored, *brought.ignored]
    if _WALLS in walls:
        broken = file if own.names(_WALLS) else project
        why = "not all of its rules can be read, so every call asks"
        ignored.append(IgnoredSetting(broken, f"{_WALLS}.allow", why))
    claude = [*layers.claude_rules(workspace, ignored)]

    def in_order(kind: str) -> tuple[SettingsLayer, ...]:
        return (
            SettingsLayer("user", shorten(file), table),
            *layers.profile_layer(profile, settings, shorten(file), table),
            SettingsLayer("user", "--bare", {"diagnostics": {"mode": "off"}}),
            SettingsLayer("project", shorten(project), _tightening(brought.table)),
            *claude,
            SettingsLayer("user", "--bare", walls),
            *layers.from_environment(env, kind, profile),
            layers.of_command_line(overrides),
        )

    loaded = layers.merge(in_order(layers.DIRECT), tuple(ignored))
    kind = loaded.config.provider.kind
    if kind != layers.DIRECT:
        loaded = layers.with_regional_prices(layers.merge(in_order(kind), tuple(ignored)), env)
    loaded = _without_lost_profiles(loaded, own)
    layers.check_models(loaded, own.profiles, shorten(file))
    named, below = tuple(own.profiles), SettingsLayer("user", shorten(file), table)
    loaded = layers.with_prices_of(loaded, profile, own.profiles, below=below, env=env, brought={})
    return replace(loaded, profile=profile, profiles=named, rules_lost=_WALLS in walls)


def _without_lost_profiles(loaded: LoadedSettings, own: Salvaged) -> LoadedSettings:
    """The settings without fallbacks that name a profile which can't be read."""
    known = {profiles.DEFAULT, *own.profiles}
    named = loaded.config.fallback_models
    there = tuple(one for one in named if not one.startswith("@") or profile_of(one) in known)
    return replace(loaded, config=structs.replace(loaded.config, fallback_models=there))


def own(home: Folders) -> tuple[Config, tuple[str, ...]]:
    """The person's own settings, without a profile, and the notices of what of a broken file can't
    be read: for what only shows sessions, since each of those reads the file itself, and refuses.
    Blocks; never raises."""
    try:
        return layers.own(home), ()
    except ConfigError:
        read = salvage(home.config_file)
    layer = SettingsLayer("user", shorten(home.config_file), read.table)
    return layers.merge((layer,)).config, layers.ignored_words(read.ignored)


def salvage(file: Path) -> Salvaged:
    """Read what can be read of a configuration file, and say what can't. Blocks; never raises."""
    found = Salvaged()
    try:
        data, _ = read_small(file)
    except (FileNotFoundError, NotADirectoryError):
        return found
    except OSError as error:
        found.lost.append("base_url default_profile provider permissions redact")  # any of them
        why = f"it can't be read: {error.strerror or error}"
        found.ignored.append(IgnoredSetting(file, "all of it", why))
        return found
    try:
        table = layers.parse(data, file)
    except ConfigError as error:
        parts = _in_parts(data.decode("utf-8-sig", errors="replace"), found.lost)
        # a line may have been within quotes: nothing of it makes things looser
        table = {key: parts[key] for key in parts.keys() - {_WALLS, "sandbox"}}
        table |= _tightening(parts)
        _ignore(found, file, "unreadable lines", error)
    every = object_of(table.get("profile"))
    for name, profile in every.items():
        if not profiles.problem_with(name) and isinstance(profile, dict):
            own = cast("Table", profile)
            key = {one: own[one] for one in profiles.OF_PROFILES if isinstance(own.get(one), str)}
            if key.get("key_from", "own") not in get_args(profiles.KeyFrom):
                del key["key_from"]
            found.lost += [one for one in profiles.OF_PROFILES if one in own and one not in key]
            found.profiles[name] = {**_valid(profiles.settings_of(own), file, found), **key}
    found.table = _valid(profiles.without_profiles(table), file, found)
    return found


def _ignore(found: Salvaged, file: Path, what: str, error: ConfigError) -> None:
    where = f"{shorten(file)}: " + (f"{error.key}: " if error.key else "")
    why = error.message.removeprefix(where).rstrip(".")
    found.ignored.append(IgnoredSetting(file, what, f"it {why}" if why.startswith("is") else why))


def _in_parts(text: str, lost: list[str]) -> Table:
    """Parse the parts of a text that isn't TOML, each from one header to the next; what can't be
    read of it is added to `lost`."""
    starts = [0, *(found.start() for found in _HEADER.finditer(text))]
    ends = [*starts[1:], len(text)]
    table: Table = {}
    for start, end in zip(starts, ends, strict=True):
        part = text[start:end]
        try:
            table = layers.joined(table, parse_toml(part))
        except ValueError:
            for read in _by_lines(part, lost):
                table = layers.joined(table, read)
    return table


def _by_lines(part: str, lost: list[str]) -> Iterator[Table]:
    """Yield what can be read of a broken part, value by value."""
    lines = part.splitlines()
    lost += lines[_LINES_MAX:]
    del lines[_LINES_MAX:]
    header = lines.pop(0) if lines and _HEADER.match(lines[0]) else ""
    at, unsure = 0, False
    while at < len(lines):
        read = next(_values(header, lines, at), None)
        line = lines[at]
        if read is None:
            lost.append(f"{header}\n{line}")
            at += 1
            # it may have been another part's header, or what begins a text
            unsure = unsure or "=" not in line or any(one in line for one in _QUOTES)
        else:
            table, at = read
            if unsure and not table.keys().isdisjoint(_WHO):
                lost.append(f"{header}\n{line}")
            else:
                yield table


def _values(header: str, lines: list[str], at: int) -> Iterator[tuple[Table, int]]:
    """Yield the readings of one value that begins at a line, with the line behind it."""
    for end in range(at + 1, min(at + _VALUE_LINES_MAX, len(lines)) + 1):
        try:
            yield parse_toml("\n".join([header, *lines[at:end]])), end
        except ValueError:
            continue


def _valid(table: Table, file: Path, found: Salvaged) -> Table:
    """Return the settings of a table that are allowed; the others are added to what was lost."""
    kept: Table = {}
    for path in layers.keys_of(table):
        value = layers.value_of(table, path)
        one = _setting(path, value)
        if _allowed(one, file, found):
            kept = layers.joined(kept, one)
        elif path[0] == _WALLS:  # one wrong rule doesn't take the others along
            for entry in list_of(value):
                rule = _setting(path, [entry])
                kept = layers.joined(kept, rule) if _allowed(rule, file, None) else kept
    while True:  # what is wrong with several together
        try:
            check(kept, kept, shorten(file))
        except ConfigError as error:
            section = error.key.partition(".")[0]
            if section not in kept:
                return {}
            kept = {key: value for key, value in kept.items() if key != section}
            found.lost.append(section)
            _ignore(found, file, section, error)
        else:
            return kept


def _allowed(table: Table, file: Path, found: Salvaged | None) -> bool:
    """True if a setting is allowed; else it is added to what was lost."""
    try:
        check(table, table, shorten(file))
    except ConfigError as error:
        if found is not None:
            found.lost.append(dotted(next(layers.keys_of(table))))
            _ignore(found, file, error.key, error)
        return False
    return True


def _setting(path: tuple[str, ...], value: object) -> Table:
    return {path[0]: {path[1]: value}} if path[1:] else {path[0]: value}


def _tightening(table: Table) -> Table:
    """The settings of a folder that make things stricter."""
    rules = table.get(_WALLS)
    kept: Table = {}
    if isinstance(rules, dict):
        named = cast("Table", rules)
        kept[_WALLS] = {kind: named[kind] for kind in ("ask", "deny") if kind in named}
    if table.get("redact") == "record":
        kept["redact"] = "record"
    return kept


def _require_account(
    file: Path, env: Mapping[str, str], own: Salvaged, profile: profiles.Profile
) -> None:
    """Raise ConfigError where what says who is asked, or whose key pays, may be lost, and neither
    the environment nor the command line says it."""
    mine = own.profiles.get(profile.name, {})
    direct = env.get("ANTHROPIC_BASE_URL", "").strip()
    server = "set ANTHROPIC_BASE_URL: https://api.anthropic.com is Anthropic's own"
    has_server = "base_url" in (mine if profile.name else own.table)
    if own.names("base_url") and not has_server and not direct:
        raise _unread(file, own, "the server", server)
    kinds = (object_of(table.get("provider")).get("kind") for table in (mine, own.table))
    kind = next(filter(None, kinds), layers.DIRECT)
    if own.names("provider") and not (direct and kind == layers.DIRECT):
        raise _unread(file, own, "a cloud", server if kind == layers.DIRECT else "")
    if not profile.chosen_by and own.names("default_profile"):
        raise _unread(file, own, "a profile", "name it: --profile NAME, or --profile default")
    if profile.name and any(map(own.names, profiles.OF_PROFILES)):
        raise _unread(file, own, "the key of a profile", "use another one: --profile default")


def _unread(file: Path, own: Salvaged, what: str, hint: str) -> ConfigError:
    """The error where a file may name something that decides whom a request reaches."""
    why = own.ignored[0].reason if own.ignored else "it can't be read"
    hint = f"Mend it, or {hint}." if hint else "Mend it."
    return ConfigError(shorten(file), "", f"may name {what}, but {why}.", hint=hint)
