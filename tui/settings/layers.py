"""The configuration in force: user < profile < project (what is trusted) < environment < command
line. What a profile says about its account (`profiles.ACCOUNT`) is above all but the command line.

The servers of a folder's `.mcp.json` are below all of these. Rules that forbid or ask in Claude
Code's settings of a folder are beside its own.

Tables are merged key by key. A list replaces the one below it, but permission rules add up, since
deny beats ask beats allow in whatever layer a rule is. An entry of `[mcp]` replaces one of the
same name as a whole. Each layer is checked on top of those below it, so that an error names the
file that caused it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from tui.core import claude_names
from tui.core.config import Config, Price, ProfilePrices, ProfileSettings, profile_of
from tui.core.dataclass import dataclass, replace
from tui.core.errors import ConfigError
from tui.core.files import read_small
from tui.core.json_files import parse_json
from tui.core.messages import object_of
from tui.core.paths import Folders, shorten
from tui.core.toml_files import parse_toml
from tui.core.workspace import PRIVATE_DIR
from tui.settings import mcp_json, profiles
from tui.settings.profiles import Profile
from tui.settings.validation import check, dotted

Table: TypeAlias = dict[str, Any]
Place: TypeAlias = Literal["user", "profile", "project", "environment", "command line"]

Allows: TypeAlias = Callable[[str, object], bool]
"""A decision if the person trusts one setting of a folder's own file, by its name and present
value."""

DIRECT: Final = "anthropic"
"""The kind of provider that is no cloud."""
UNTRUSTED: Final = "you have not trusted it"
YOURS: Final = "only your own settings choose a cloud account"
_TIGHTENING = {("permissions", "ask"), ("permissions", "deny")}
PERSONAL: Final = "only your own file can send data elsewhere"
_PERSONAL = frozenset({"otel"})
"""Sections that count in no folder's file, trusted or not."""
_ONE_BY_ONE = {("permissions", "allow"), ("permissions", "auto_grant")}
_ACCOUNT = {("provider", key) for key in ("kind", "region", "project", "resource", "profile")}
"""The keys that say which account pays and where prompts go: a folder never sets them."""


_PRICED: Final = frozenset({"prices", "provider"})
"""Sections of a profile by which it pays other prices."""


@dataclass(frozen=True, slots=True)
class IgnoredSetting:
    """A setting in a file that has no effect, and why."""

    file: Path
    key: str
    reason: str


def ignored_words(ignored: Sequence[IgnoredSetting]) -> tuple[str, ...]:
    """Make the person's notices of settings that do not count."""
    by_reason: dict[tuple[Path, str], list[str]] = {}
    for one in ignored:
        by_reason.setdefault((one.file, one.reason), []).append(one.key)
    return tuple(
        f"{shorten(file)}: {', '.join(keys)}: not applied, because {reason}."
        for (file, reason), keys in by_reason.items()
    )


@dataclass(frozen=True, slots=True)
class SettingsLayer:
    """The settings of one place, in the shape of the file; `name` is the place for a person."""

    place: Place
    name: str
    table: Table


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings in force. `sources` names the layers that set a key, by dotted key; `layers`
    are all that were merged, each over those before it. `profiles` are the names that there are."""

    config: Config
    sources: dict[str, str]
    ignored: tuple[IgnoredSetting, ...]
    layers: tuple[SettingsLayer, ...] = ()
    profile: Profile = Profile()
    profiles: tuple[str, ...] = ()
    rules_lost: bool = False
    """True if not all of the person's rules could be read."""

    @property
    def foreign_server(self) -> bool:
        """True if the folder's own file names the server, and not the person."""
        names = [layer.name for layer in self.layers if layer.place == "project"]
        return self.sources.get("base_url") in names


@dataclass(frozen=True, slots=True)
class BroughtSetting:
    """A setting of a folder's own file that needs trust. `name` is its dotted key; each entry of a
    list of rules has a name of its own. `path` is the key, by sections."""

    path: tuple[str, ...]
    name: str
    value: object


def project_file(workspace: Path) -> Path:
    """The path of a project's own configuration."""
    return workspace / PRIVATE_DIR / "config.toml"


def load(
    *,
    folders: Folders,
    workspace: Path,
    allows: Allows,
    env: Mapping[str, str],
    overrides: Table,
    session_profile: str = "",
) -> LoadedSettings:
    """Read, merge and check all layers. Blocks briefly.

    A project can by itself only make the settings stricter, since anybody may have written its
    file: its deny and ask rules count, and `redact = "record"`. Of everything else but `[otel]`
    counts what `allows` says; the rest is reported as ignored. `overrides` has the shape of the
    file. `session_profile` is the profile that the session to resume used last, "" where none
    is resumed. Raises ConfigError.
    """
    user, project = folders.config_file, project_file(workspace)
    brought, not_here = _without_profiles(project, read(project))
    trusted, ignored = _trusted_part(project, brought, allows)
    file = shorten(user)
    mine, all_profiles = _own_layers(read(user), file)
    profile = profiles.chosen(
        all_profiles,
        named=(
            (overrides.get("profile", ""), "--profile"),
            (session_profile, profiles.SESSION),
            (env.get(profiles.VARIABLE, "").strip(), profiles.VARIABLE),
            (_name_in(trusted, shorten(project)), f"{shorten(project)}: profile"),
            (mine.get("default_profile", ""), f"{file}: default_profile"),
        ),
        file=file,
    )
    account = [key for key in profile.account if key in trusted]
    why = f"profile {profile.name} says who is asked"
    over = [IgnoredSetting(project, key, why) for key in account]
    trusted = {key: value for key, value in trusted.items() if key not in {"profile", *account}}
    servers, left_out = _trusted_servers(workspace, object_of(mine.get("mcp")), allows)
    left = list[IgnoredSetting]()
    claude = [*claude_rules(workspace, left)]
    settings = all_profiles.get(profile.name, {})

    def in_order(kind: str) -> tuple[SettingsLayer, ...]:
        return (
            SettingsLayer("project", shorten(mcp_json.path_of(workspace)), servers),
            SettingsLayer("user", file, mine),
            *profile_layer(profile, settings, file, mine),
            SettingsLayer("project", shorten(project), trusted),
            *claude,
            *from_environment(env, kind, profile),
            of_command_line(overrides),
        )

    def merged(kind: str) -> LoadedSettings:
        return merge(in_order(kind), (*ignored, *not_here, *over, *left_out, *left))

    loaded = merged(DIRECT)
    kind = loaded.config.provider.kind
    if kind != DIRECT:
        if "base_url" in trusted:  # requests to a cloud are signed by the person's account
            del trusted["base_url"]
            over.append(IgnoredSetting(project, "base_url", YOURS))
        loaded = with_regional_prices(merged(kind), env)
    check_models(loaded, all_profiles, file)
    below = SettingsLayer("user", file, mine)
    loaded = with_prices_of(
        loaded, profile, all_profiles, below=below, env=env, brought=trusted.get("prices", {})
    )
    return replace(loaded, profile=profile, profiles=tuple(all_profiles))


def check_models(loaded: LoadedSettings, found: Mapping[str, Table], file: str) -> None:
    """Raise ConfigError where a fallback names a profile that isn't there, or another model names
    one at all."""
    config = loaded.config
    for key, name in (("model", config.model), ("small_model", config.small_model)):
        if profile_of(name):
            source = loaded.sources.get(key, file)
            hint = "--profile and default_profile choose one; fallback_models may name others."
            raise ConfigError(source, key, "can't name a profile.", hint=hint)
    for name in config.fallback_models:
        if name.startswith("@"):
            source = f"{loaded.sources.get('fallback_models', file)}: fallback_models"
            profiles.chosen(found, named=((profile_of(name) or name, source),), file=file)


def with_regional_prices(loaded: LoadedSettings, env: Mapping[str, str]) -> LoadedSettings:
    """The settings with the prices of the cloud's endpoint that they choose, below the person's
    own."""
    if loaded.config.provider.kind == DIRECT:
        return loaded
    from tui.core.clouds import access_of, regional_prices  # noqa: PLC0415 - few have one

    access = access_of(loaded.config, env)
    prices = (regional_prices(access) if access else {}) | loaded.config.prices
    return replace(loaded, config=msgspec.structs.replace(loaded.config, prices=prices))


def with_prices_of(
    loaded: LoadedSettings,
    profile: Profile,
    tables: Mapping[str, Table],
    *,
    below: SettingsLayer,
    env: Mapping[str, str],
    brought: Table,
) -> LoadedSettings:
    """The settings of a profile with prices that know those of the others, by their `tables`.
    `below` are the person's settings without a profile, `brought` the prices of a trusted folder.
    """
    if not tables:
        return loaded
    above = SettingsLayer("project", "", {"prices": brought} if brought else {})
    every: dict[str, Mapping[str, Price]] = {}
    for name, table in {"": {}, **tables}.items():
        if not name or not table.keys().isdisjoint(_PRICED):
            over = profile_layer(Profile(name), table, below.name, below.table)
            every[name] = with_regional_prices(merge((below, *over, above)), env).config.prices
    prices = ProfilePrices(loaded.config.prices, profile.name, every[""], every)
    return replace(loaded, config=msgspec.structs.replace(loaded.config, prices=prices))


def from_environment(
    env: Mapping[str, str], kind: str, profile: Profile
) -> tuple[SettingsLayer, SettingsLayer]:
    """Return the settings of the environment: the server, by the variable of this kind of provider,
    unless the profile names it, and what confines commands."""
    variable = "ANTHROPIC_BASE_URL"
    if kind != DIRECT:
        from tui.core.clouds import CLOUDS  # noqa: PLC0415 - few have one

        variable = CLOUDS[kind].address_variable
    address = env.get(variable, "").strip()
    counts = address and "base_url" not in profile.account
    server: Table = {"base_url": address} if counts else {}
    engine = env.get("HOLDFAST_SANDBOX", "").strip()
    confined: Table = {"sandbox": {"engine": engine}} if engine else {}
    return (
        SettingsLayer("environment", f"{variable} (environment)", server),
        SettingsLayer("environment", "HOLDFAST_SANDBOX (environment)", confined),
    )


def of_command_line(overrides: Table) -> SettingsLayer:
    """The settings of the command line; which profile it names is known before."""
    table = {key: value for key, value in overrides.items() if key != "profile"}
    return SettingsLayer("command line", "command line", table)


def profile_layer(
    profile: Profile, table: Table, file: str, below: Table
) -> Iterator[SettingsLayer]:
    """Yield the settings of the profile in use, whose table in the person's file this is; nothing
    without one. A server and an account of the settings `below` are none for a profile of another
    kind."""
    if profile.name:
        name = f"{file} [{dotted(('profile', profile.name))}]"
        settings = profiles.settings_of(table)
        usual = object_of(below.get("provider")).get("kind", DIRECT)
        given = object_of(settings.get("provider"))
        if given.get("kind", usual) != usual:
            account = {key: "" for _, key in sorted(_ACCOUNT) if key != "kind"}
            settings = {"base_url": "", **settings, "provider": account | given}
        yield SettingsLayer("profile", name, {**settings, "profile": profile.name})


def _without_profiles(file: Path, brought: Table) -> tuple[Table, tuple[IgnoredSetting, ...]]:
    """A folder's own settings without what only the person's own file can say of profiles."""
    why: dict[str, str] = {}
    if isinstance(brought.get("profile"), dict):
        why["profile"] = 'profiles count in your own config.toml; a folder names one: profile = "…"'
    if "default_profile" in brought:
        why["default_profile"] = 'a folder names a profile so: profile = "…"'
    for key in ("model", "small_model", "fallback_models"):
        named: object = brought.get(key)
        models: list[object] = [*named] if isinstance(named, list) else [named]
        if any(isinstance(one, str) and one.startswith("@") for one in models):
            why[key] = "only your own settings name models of another profile"
    ignored = tuple(IgnoredSetting(file, key, reason) for key, reason in why.items())
    return {key: value for key, value in brought.items() if key not in why}, ignored


def _name_in(trusted: Table, file: str) -> str:
    """The profile that a folder's own file names. Raises ConfigError for anything but a name."""
    name: object = trusted.get("profile", "")
    if isinstance(name, str):
        return name
    raise ConfigError(file, "profile", "isn't the name of a profile, in quotes.")


def _own_layers(table: Table, file: str) -> tuple[Table, dict[str, Table]]:
    """A person's settings without their profiles, and these by name. All are checked. Raises
    ConfigError."""
    mine, found = profiles.without_profiles(table), profiles.profiles_in(table, file)
    check(mine, mine, file)
    for name, profile in found.items():
        at = "profile", name
        for key in ("profile", "default_profile", "plain"):
            if key in profile:
                raise ConfigError(file, dotted((*at, key)), "can't be set in a profile.")
        check(joined(mine, profile), profile, file, kind=ProfileSettings, at=at)
    profiles.chosen(
        found, named=((mine.get("default_profile", ""), f"{file}: default_profile"),), file=file
    )
    return mine, found


def own_table(layer: SettingsLayer, mine: Table) -> Table | None:
    """The table of a layer where the person's own file says `mine`; None for one of elsewhere."""
    if layer.place == "user":
        return profiles.without_profiles(mine)
    if layer.place == "profile":
        name: str = layer.table["profile"]
        return {**profiles.settings_of(mine["profile"][name]), "profile": name}
    return None


def check_own(table: Table, file: str) -> None:
    """Check what a person's own file says, profiles included. Raises ConfigError."""
    _own_layers(table, file)


def claude_rules(workspace: Path, ignored: list[IgnoredSetting]) -> Iterator[SettingsLayer]:
    """Yield the rules of Claude Code's settings in a folder that forbid or ask: they count as the
    folder's own do. What no rule here can say is added to `ignored`."""
    for name in claude_names.SETTINGS_FILES:
        file = workspace / name
        try:
            content: object = parse_json(read_small(file)[0])
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, RecursionError) as error:
            ignored.append(IgnoredSetting(file, "permissions", f"it can't be read: {error}"))
            continue
        from tui.settings.allowed_tools import rules_of  # noqa: PLC0415 - few folders have any

        rules: dict[str, list[str]] = {}
        for kind in ("deny", "ask"):
            read = rules_of(object_of(content).get("permissions"), kind)
            rules[kind] = [*read.rules]
            why = "no rule here can express it"
            ignored += [
                IgnoredSetting(file, f"permissions.{kind}: {one}", why) for one in read.ignored
            ]
        if any(rules.values()):
            yield SettingsLayer("project", shorten(file), {"permissions": rules})


def merge(
    layers: Sequence[SettingsLayer], ignored: tuple[IgnoredSetting, ...] = ()
) -> LoadedSettings:
    """Merge layers, each over those before it, and check them. Raises ConfigError."""
    merged: Table = {}
    sources: dict[str, str] = {}
    for layer in layers:
        if layer.table:
            merged = joined(merged, layer.table)
            check(merged, layer.table, layer.name)
            _attribute(sources, layer.table, layer.name)
    return LoadedSettings(msgspec.convert(merged, Config), sources, ignored, tuple(layers))


def own(home: Folders) -> Config:
    """The person's own settings: those of no folder count. Raises ConfigError."""
    file = home.config_file
    mine, _ = _own_layers(read(file), shorten(file))
    return merge((SettingsLayer("user", shorten(file), mine),)).config


def own_prices(home: Folders, env: Mapping[str, str]) -> Mapping[str, Mapping[str, Price]]:
    """The prices that the person has set, by profile; "" without one. Those of a folder don't count
    for other folders. Raises ConfigError."""
    file = shorten(home.config_file)
    mine, found = _own_layers(read(home.config_file), file)
    layer = SettingsLayer("user", file, mine)
    every: dict[str, Mapping[str, Price]] = {}
    every[""] = with_regional_prices(merge((layer,)), env).config.prices
    for name, table in found.items():
        if not table.keys().isdisjoint(_PRICED):
            over = profile_layer(Profile(name), table, file, mine)
            every[name] = with_regional_prices(merge((layer, *over)), env).config.prices
    return every


def read(path: Path) -> Table:
    """A TOML file as plain data; {} where there is none. Raises ConfigError."""
    try:
        data, _ = read_small(path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(
            shorten(path), "", f"can't be read: {error.strerror or error}."
        ) from error
    return parse(data, path)


def parse(data: bytes, path: Path) -> Table:
    """TOML bytes as plain data. Raises ConfigError with line and column."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            shorten(path), "", f"is not UTF-8 (line {line}).", hint="Save it as UTF-8."
        ) from None
    try:
        return parse_toml(text)
    except ValueError as error:
        both = re.search(r"^\s*profile\s*=", text, re.MULTILINE) and "[profile." in text
        hint = "profile is for the tables; default_profile names the usual one." if both else ""
        raise ConfigError(shorten(path), "", f"is not valid TOML: {error}.", hint=hint) from None


def joined(below: Table, layer: Table, path: tuple[str, ...] = ()) -> Table:
    """Merge a table over another one, key by key."""
    merged = dict(below)
    for key, value in layer.items():
        old: object = below.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and path != ("mcp",):
            merged[key] = joined(cast("Table", old), cast("Table", value), (*path, key))
        elif _adds((*path, key)) and isinstance(old, list) and isinstance(value, list):
            rules = cast("list[object]", old)
            merged[key] = [*rules, *(r for r in cast("list[object]", value) if r not in rules)]
        else:
            merged[key] = value
    return merged


def _adds(path: tuple[str, ...]) -> bool:
    return path[0] == "permissions" and path[-1] in {"allow", "ask", "deny"}


def _attribute(sources: dict[str, str], layer: Table, source: str) -> None:
    for path in keys_of(layer):
        key = dotted(path)
        both = _adds(path) and key in sources
        sources[key] = f"{sources[key]}, {source}" if both else source


def brought_settings(brought: Table) -> Iterator[BroughtSetting]:
    """The settings of a folder's own file that need trust."""
    brought, _ = _without_profiles(Path(), brought)
    for path in keys_of(brought):
        value = value_of(brought, path)
        tightens = path in _TIGHTENING or (path == ("redact",) and value == "record")
        if tightens or _yours(path):
            continue
        if path in _ONE_BY_ONE and isinstance(value, list):
            for entry in cast("list[object]", value):
                yield BroughtSetting(path, f"{dotted(path)}: {entry}", entry)
        else:
            yield BroughtSetting(path, dotted(path), value)


def brought_servers(workspace: Path) -> Iterator[BroughtSetting]:
    """The servers of a folder's `.mcp.json`, which need trust as settings do. Blocks."""
    for name, entry in mcp_json.read(workspace).raw.items():
        yield BroughtSetting(("mcp", name), mcp_json.trust_name(name), entry)


def _trusted_servers(
    workspace: Path, own: Collection[str], allows: Allows
) -> tuple[Table, tuple[IgnoredSetting, ...]]:
    """The servers of a folder's `.mcp.json` that count, and what of it does not. Those that the
    person has under the same name are not asked about."""
    file, servers = mcp_json.path_of(workspace), mcp_json.read(workspace)
    ignored = [IgnoredSetting(file, key, why) for key, why in servers.problems.items()]
    trusted: Table = {}
    for name, table in servers.servers.items():
        if allows(mcp_json.trust_name(name), servers.raw[name]):
            trusted[name] = table
        elif name not in own:
            ignored.append(IgnoredSetting(file, dotted(("mcp", name)), UNTRUSTED))
    return {"mcp": trusted} if trusted else {}, tuple(ignored)


def _trusted_part(
    file: Path, brought: Table, allows: Allows
) -> tuple[Table, tuple[IgnoredSetting, ...]]:
    """Return the settings of a folder's own file that count, and those that do not."""
    left_out = [one for one in brought_settings(brought) if not allows(one.name, one.value)]
    trusted: Table = {}
    for path in keys_of(brought):
        if _yours(path):
            continue
        value = value_of(brought, path)
        untrusted = [one.value for one in left_out if one.path == path]
        if path in _ONE_BY_ONE and isinstance(value, list):
            value = [entry for entry in cast("list[object]", value) if entry not in untrusted]
        elif untrusted:
            continue
        target = trusted.setdefault(path[0], {}) if path[1:] else trusted
        target[path[-1]] = value
    keys = dict.fromkeys(dotted(one.path) for one in left_out)
    ignored = [IgnoredSetting(file, key, UNTRUSTED) for key in keys]
    yours = {
        path[0] if path[0] in _PERSONAL else dotted(path): why
        for path in keys_of(brought)
        if (why := _yours(path))
    }
    ignored += [IgnoredSetting(file, key, why) for key, why in yours.items()]
    return trusted, tuple(ignored)


def _yours(path: tuple[str, ...]) -> str:
    """Return why a setting counts in no folder's file, trusted or not; "" if it may."""
    if path[0] in _PERSONAL:
        return PERSONAL
    return YOURS if path in _ACCOUNT else ""


def value_of(table: Table, path: tuple[str, ...]) -> object:
    """Return the value of a key, as `keys_of` yields it."""
    return table[path[0]][path[1]] if path[1:] else table[path[0]]


def keys_of(table: Table) -> Iterator[tuple[str, ...]]:
    """The keys of a table, those of its sections as (section, key); no deeper."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from ((key, inner) for inner in cast("Table", value))
        else:
            yield (key,)


def config_problem(file: Path) -> ConfigError | None:
    """Return the fault of a configuration file; None where it can be used. Blocks."""

    try:
        data, _ = read_small(file)
        table = parse(data, file)
        check_own(table, shorten(file))
    except ConfigError as error:
        return error
    except OSError as error:
        return ConfigError(shorten(file), "", f"can't be read: {error.strerror or error}.")
    return None
