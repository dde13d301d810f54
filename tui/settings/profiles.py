"""Profiles: the `[profile.NAME]` tables of the person's own config.toml, each with settings and a
key of its own. Which one is used, and which there are. Pure.

The first of these names it: --profile, the session that is resumed, HOLDFAST_PROFILE, the folder's
own `profile` once that is trusted, the person's `default_profile`. "default" is what there is
without one. A profile of Anthropic's SDK is another thing, called a sign-in here (`sign_in`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from tui.core.dataclass import dataclass
from tui.core.errors import ConfigError
from tui.core.facts import DEFAULT_PROFILE
from tui.core.text_cleaning import one_line

Table: TypeAlias = dict[str, Any]
KeyFrom: TypeAlias = Literal["own", "default", "none"]

DEFAULT: Final = DEFAULT_PROFILE
VARIABLE: Final = "HOLDFAST_PROFILE"
SESSION: Final = "this session"
"""What names the profile that a session used last."""
ACCOUNT: Final = ("base_url", "provider")
"""Settings that say who is asked: where a profile has them, no folder and no variable changes
them, since its key goes there."""
OF_PROFILES: Final = ("key_from", "sign_in")
"""Keys that only a profile has."""
_LONGEST: Final = 64


class UnknownProfileError(ConfigError):
    """A profile is named that no table has. --bare follows the same names, so it is no help."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile in use; `name` is "" for none. `chosen_by` says what named it.

    `key_from` is where its key comes from, `sign_in` the SDK's sign-in in the place of a key, ""
    for none. `account` are the settings of `ACCOUNT` that it has.
    """

    name: str = ""
    chosen_by: str = ""
    key_from: KeyFrom = "own"
    sign_in: str = ""
    account: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Its name; "default" without one."""
        return self.name or DEFAULT

    @property
    def has_own_key(self) -> bool:
        """True if it is asked with what was stored for it, and with nothing else."""
        return bool(self.name) and self.key_from != "default"

    @property
    def has_own_server(self) -> bool:
        """True if it names the server itself, which then gets nothing of the environment."""
        return self.has_own_key and "base_url" in self.account


def without_profiles(table: Mapping[str, Any]) -> Table:
    """A person's settings without the profiles in them."""
    is_table = isinstance(table.get("profile"), dict)
    return {key: value for key, value in table.items() if key != "profile" or not is_table}


def profiles_in(table: Mapping[str, Any], source: str) -> dict[str, Table]:
    """The profiles of a person's settings, by name, as the file has them. Raises ConfigError for a
    name that none can have."""
    found: object = table.get("profile", {})
    if not isinstance(found, dict):
        raise ConfigError(
            source,
            "profile",
            "is for profiles, as tables: [profile.NAME].",
            hint="default_profile names the one that is used where nothing names another.",
        )
    profiles: dict[str, Table] = {}
    for name, profile in cast("dict[str, object]", found).items():
        if problem := problem_with(name):
            raise ConfigError(source, f"profile.{_quoted(name)}", problem)
        if not isinstance(profile, dict):
            raise ConfigError(
                source,
                f"profile.{_quoted(name)}",
                "isn't a table; a profile is one: [profile.NAME].",
            )
        profiles[name] = cast("Table", profile)
    return profiles


def problem_with(name: str) -> str:
    """Say why a profile can't have a name; "" where it can."""
    if not name:
        return "has no name: write [profile.NAME]."
    if name == DEFAULT:
        return "can't be a profile: default is what there is without one."
    if not name.isprintable() or name != name.strip() or len(name) > _LONGEST:
        return (
            f"can't be a profile: its name has at most {_LONGEST} characters that can be printed,"
            " no space at either end."
        )
    return ""


def settings_of(profile: Mapping[str, Any]) -> Table:
    """The settings of a profile, without the keys that only a profile has."""
    return {key: value for key, value in profile.items() if key not in OF_PROFILES}


def chosen(
    profiles: Mapping[str, Table], *, named: tuple[tuple[str, str], ...], file: str
) -> Profile:
    """The profile in use: `named` are names with what gave them, the first one that isn't empty
    counts. Raises ConfigError where there is none of that name."""
    name, by = next(((name, by) for name, by in named if name), ("", ""))
    if name in {"", DEFAULT}:
        return Profile(chosen_by=by)
    if name not in profiles:
        raise _unknown(name, by, profiles, file)
    profile = profiles[name]
    return Profile(
        name,
        by,
        profile.get("key_from", "own"),
        profile.get("sign_in", ""),
        tuple(key for key in ACCOUNT if key in profile),
    )


def _unknown(name: str, by: str, profiles: Mapping[str, Table], file: str) -> UnknownProfileError:
    from difflib import get_close_matches  # noqa: PLC0415 - only on error

    near = get_close_matches(name, profiles, n=1)
    if near:
        hint = f"Did you mean {one_line(near[0])}?"
    elif profiles:
        hint = f"Available: {', '.join(map(one_line, (*profiles, DEFAULT)))}."
    else:
        hint = f"{file} has none: add the table [profile.{_quoted(name)}], or use {DEFAULT}."
    if by == SESSION:
        hint = f"{hint} Or choose another with --profile; {DEFAULT} is none."
    return UnknownProfileError(by, "", f"there is no profile {one_line(name)}.", hint=hint)


def _quoted(name: str) -> str:
    from tui.settings.validation import dotted  # noqa: PLC0415 - only on error

    return dotted((name,))
