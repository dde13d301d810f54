"""Signing in without a key: the profile that `ant auth login` wrote, or a workload's identity. A
person reads "sign-in" for the first, since Holdfast has profiles of its own (`profiles`).

The SDK reads the token, sends it and renews it. Here is only found which one it would take, by its
rules (`anthropic.lib.credentials`), without importing it and without reading anything secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from tui.core.dataclass import dataclass
from tui.core.errors import CredentialsError
from tui.core.files import read_small
from tui.core.json_files import parse_json
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line

_DEFAULT: Final = "default"
_LIMIT: Final = 100_000
_WORKLOAD: Final = ("ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID")
_WORKLOAD_TOKENS: Final = ("ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE")
_HINT: Final = "Run `ant auth login`, or paste an API key."


@dataclass(frozen=True, slots=True)
class SignIn:
    """The identity that the SDK signs requests with: a profile, or with "" that of a workload that
    the environment describes. `base_url` is the server that the profile names, "" for
    Anthropic's."""

    profile: str
    base_url: str = ""

    def __str__(self) -> str:
        return f"the sign-in {self.profile}" if self.profile else "workload identity"


def named_sign_in(env: Mapping[str, str]) -> SignIn | None:
    """Return the sign-in that the environment names. Blocks; raises CredentialsError for an
    unusable profile."""
    if name := env.get("ANTHROPIC_PROFILE"):
        return sign_in_of(env, name)
    token = any(map(env.get, _WORKLOAD_TOKENS))
    return SignIn("") if token and all(map(env.get, _WORKLOAD)) else None


def sign_in_of(env: Mapping[str, str], name: str) -> SignIn:
    """Return the sign-in of a name. Blocks; raises CredentialsError if it can't be used."""
    if (profile := _profile(env, name)) is None:
        file = shorten(_file(env, "configs", name))
        raise _unusable(name, f"{one_line(file)} doesn't exist")
    return profile


def saved_sign_in(env: Mapping[str, str]) -> SignIn | None:
    """The active profile on this machine. Blocks; raises CredentialsError for an unusable one."""
    try:
        pointer = (_folder(env) / "active_config").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        pointer = ""
    return _profile(env, pointer or _DEFAULT)


def _profile(env: Mapping[str, str], name: str) -> SignIn | None:
    """A profile as it can be used; None where there is none of that name."""
    if name != name.strip() or name.startswith(".") or {"/", "\\", "\0"} & set(name):
        raise _unusable(name, "that isn't the name of one")
    try:
        data: Any = parse_json(read_small(_file(env, "configs", name), limit=_LIMIT)[0])
        auth, base_url = data["authentication"], data.get("base_url") or ""
        kind, moved = auth["type"], auth.get("credentials_path")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(name, error.strerror or str(error)) from error
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise _unusable(name, "its file is damaged") from error
    if kind == "user_oauth":
        tokens = Path(str(moved)).expanduser() if moved else _file(env, "credentials", name)
        if not tokens.is_file():
            raise _unusable(name, "you are signed out")
    return SignIn(name, str(cast("object", base_url)).rstrip("/"))


def _file(env: Mapping[str, str], kind: str, name: str) -> Path:
    return _folder(env) / kind / f"{name}.json"


def _folder(env: Mapping[str, str]) -> Path:
    named = env.get("ANTHROPIC_CONFIG_DIR")
    return Path(named) if named else Path.home() / ".config" / "anthropic"


def _unusable(name: str, why: str) -> CredentialsError:
    return CredentialsError(f"Can't use the sign-in {one_line(name)}: {why}.", hint=_HINT)
