"""The credentials that sign requests: finding them, and storing a key. No key appears in a repr, a
log or an error.

Keys are stored per server, so that one server's key is never sent to another: in the OS keyring if
there is one and the `keyring` package is installed, else in a file of mode 0600. If HOLDFAST_HOME
puts everything into one folder, only the file there is used. The SDK's own sign-in is in `sign_in`.
A profile has keys of its own: it gets no other profile's, and none of the environment, unless it
says so (`key_from`).
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from tui.core.dataclass import dataclass, field
from tui.core.errors import CredentialsError, StorageError, os_error_as
from tui.core.files import locked, read_small, replace_file
from tui.core.json_files import parse_json
from tui.core.paths import Folders, shorten
from tui.settings.profiles import Profile
from tui.settings.sign_in import SignIn, named_sign_in, saved_sign_in, sign_in_of

Place: TypeAlias = Literal["keyring", "file"]
T = TypeVar("T")

_log = logging.getLogger(__name__)
_SERVICE = "holdfast"
DEFAULT_SERVER: Final = "https://api.anthropic.com"
_PATIENCE_S = 2.0
_LIMIT = 100_000
_SHORTEST_KEY = 20
"""Anthropic's keys have some 100 characters."""
_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key and where it came from."""

    key: str = field(repr=False)
    source: Literal["environment", "keyring", "file"]


Credential: TypeAlias = ApiKey | SignIn


class _Keyring(Protocol):
    """The part of a keyring package's backend that is used here."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


def server_of(base_url: str) -> str:
    """The name under which a server's key is stored: scheme, host, port and path, normalised."""
    if not base_url:
        return DEFAULT_SERVER
    try:
        parts = urlsplit(base_url.strip())
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError:
        return base_url.strip()
    host = f"[{host}]" if ":" in host else host
    standard = port is None or (scheme, port) in {("http", 80), ("https", 443)}
    return f"{scheme}://{host}{'' if standard else f':{port}'}{parts.path.rstrip('/')}"


def _stored_under(base_url: str, profile: str) -> str:
    """The name under which a key is stored: that of its server, for a profile behind its name."""
    server = server_of(base_url)
    return f"profile {json.dumps(profile)} {server}" if profile else server


def find_key(
    env: Mapping[str, str], folders: Folders, base_url: str = "", *, foreign: bool = False
) -> ApiKey | None:
    """The key for a server from the environment (ANTHROPIC_API_KEY, else ANTHROPIC_AUTH_TOKEN), the
    OS keyring or the file; None without one.

    The environment's key belongs to the environment's server (ANTHROPIC_BASE_URL, else the
    default one); for any other server, a key that was stored for it comes first. A `foreign` one,
    which a folder's own file names, gets only what was stored for it. Blocks up to about 2 s.
    Raises CredentialsError if the key or the file cannot be used.
    """
    name = key_variable(env)
    from_env = ApiKey(valid_key(env[name].strip(), name), "environment") if name else None
    server = server_of(base_url)
    if from_env and server == server_of(env.get("ANTHROPIC_BASE_URL", "").strip()):
        return from_env
    stored = _stored_key(env, folders, server)
    return stored or (None if foreign else from_env)


def _stored_key(env: Mapping[str, str], folders: Folders, name: str) -> ApiKey | None:
    ring = _keyring(env)
    stored = _in_time(lambda: ring.get_password(_SERVICE, name)) if ring else None
    if stored:
        return ApiKey(valid_key(stored, "The key in the keyring"), "keyring")
    file = credentials_file(folders)
    stored = _read(file).get(name)
    if stored:
        return ApiKey(valid_key(stored, f"The key in {shorten(file)}"), "file")
    return None


def key_variable(env: Mapping[str, str]) -> str:
    """The variable of the environment that gives the key; "" for none."""
    return next((name for name in _VARIABLES if env.get(name, "").strip()), "")


def find_credential(
    env: Mapping[str, str],
    folders: Folders,
    base_url: str = "",
    *,
    foreign: bool = False,
    profile: Profile = Profile(),  # noqa: B008 - a constant
) -> Credential | None:
    """Find what signs the requests to a server, as the SDK chooses, with stored keys in between: a
    key of the environment, the profile or the workload that it names, a stored key, the active
    profile. None without any.

    The SDK's profile is sent to Anthropic or to the server that it names, never to another. A
    `profile` with a key of its own has nothing but that, or the sign-in that it names. Blocks and
    raises as `find_key`.
    """
    if profile.has_own_key:
        return _of_profile(env, folders, base_url, profile)
    key = find_key(env, folders, base_url, foreign=foreign)
    if foreign or (key and key.source == "environment"):
        return key
    if named := named_sign_in(env):
        return named if _is_for(named, base_url) else key
    return key or saved_profile(env, base_url)


def _of_profile(
    env: Mapping[str, str], folders: Folders, base_url: str, profile: Profile
) -> Credential | None:
    if profile.key_from == "none":
        return None
    if not profile.sign_in:
        return _stored_key(env, folders, _stored_under(base_url, profile.name))
    sign_in = sign_in_of(env, profile.sign_in)
    if not _is_for(sign_in, base_url):
        raise CredentialsError(
            f"Profile {profile.name} names {sign_in}, which is for another server than"
            f" {server_of(base_url)}.",
            hint="Change its sign_in or its base_url in config.toml, or enter a key.",
        )
    return sign_in


def saved_profile(env: Mapping[str, str], base_url: str = "") -> SignIn | None:
    """The active profile on this machine, where it is for this server. Blocks; raises
    CredentialsError."""
    try:
        sign_in = saved_sign_in(env)
    except CredentialsError:
        if server_of(base_url) != DEFAULT_SERVER:
            return None
        raise
    return sign_in if sign_in and _is_for(sign_in, base_url) else None


def _is_for(sign_in: SignIn, base_url: str) -> bool:
    """True if a server may see the token: with "" the one that the profile names is asked."""
    return not base_url or server_of(base_url) == server_of(sign_in.base_url)


def forget_key(
    base_url: str, *, env: Mapping[str, str], folders: Folders, profile: str = ""
) -> None:
    """Remove the key that is stored for a server. Blocks; raises CredentialsError, StorageError."""
    SecretStore(env, folders).remove(_stored_under(base_url, profile))


def in_words(found: Credential, *, env: Mapping[str, str], folders: Folders) -> str:
    """Describe what signs the requests, as the person knows it."""
    if isinstance(found, SignIn):
        return str(found)
    file = shorten(credentials_file(folders))
    places = {"environment": key_variable(env), "keyring": "the keyring", "file": file}
    return f"the key in {places[found.source]}"


def store_key(
    key: str, base_url: str, *, env: Mapping[str, str], folders: Folders, profile: str = ""
) -> Place:
    """Store a key for a server. Returns where. Blocks; raises CredentialsError or StorageError."""
    return SecretStore(env, folders).put(_stored_under(base_url, profile), valid_key(key.strip()))


@dataclass(frozen=True, slots=True)
class SecretStore:
    """Secret texts by name, in the keyring or the file: keys by their server, and others.
    Everything blocks, and raises CredentialsError and StorageError."""

    env: Mapping[str, str] = field(repr=False)
    folders: Folders

    def get(self, name: str) -> str | None:
        """A text; None where there is none."""
        ring = _keyring(self.env)
        stored = _in_time(lambda: ring.get_password(_SERVICE, name)) if ring else None
        return stored or _read(credentials_file(self.folders)).get(name)

    def mark(self) -> object:
        """A value that differs once any program has stored or removed a text; see `mark_of`."""
        return mark_of(self.env, self.folders)

    def put(self, name: str, text: str) -> Place:
        """Store a text. Returns where."""
        file, ring = credentials_file(self.folders), _keyring(self.env)
        if ring and _in_time(lambda: _put(ring, name, text)):
            with suppress(CredentialsError, StorageError):  # the keyring is read before the file
                _write(file, name, None)
            _touch(file.parent)
            return "keyring"
        if ring:  # an old text there would be found before the new one
            _in_time(lambda: ring.delete_password(_SERVICE, name))
        _write(file, name, text)
        return "file"

    def remove(self, name: str) -> None:
        """Forget a text."""
        if ring := _keyring(self.env):
            _in_time(lambda: ring.delete_password(_SERVICE, name))
            _touch(self.folders.config)
        _write(credentials_file(self.folders), name, None)


def credentials_file(folders: Folders) -> Path:
    return folders.config / "credentials.json"


def mark_of(env: Mapping[str, str], folders: Folders) -> object:
    """A value that differs once a program has stored or removed a text, written a setting or
    signed in. Whoever waits for that needn't ask the keyring, which may ask the person. Blocks."""
    try:
        profile = saved_sign_in(env)
    except CredentialsError:
        profile = None
    times: list[float] = []
    for path in (folders.config, folders.config_file, credentials_file(folders)):
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return profile, times


def _touch(folder: Path) -> None:
    """Let `mark_of` differ after a change that left no trace in a file."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(folder)


def valid_key(key: str, what: str = "The key") -> str:
    """A key that can be one. Raises CredentialsError, which names `what` and not the key."""
    if key and len(key) <= 4096 and key.isascii() and key.isprintable() and " " not in key:
        return key
    raise CredentialsError(
        f"{what} isn't an API key: it is empty, too long, or contains spaces or odd characters.",
        hint="Copy the key again, without quotes or line breaks.",
    )


def anthropic_key(text: str) -> str:
    """A key that can be one of Anthropic's. Raises CredentialsError, which does not name it."""
    key = text.strip()
    if "://" in key:
        raise CredentialsError("This is an address, not an API key.")
    if " " not in key and len(key) < _SHORTEST_KEY:
        raise CredentialsError("This is too short for an API key.", hint="Copy the whole key.")
    return valid_key(key, "This")


# The OS keyring


def _keyring(env: Mapping[str, str]) -> _Keyring | None:
    """The keyring to use; None with HOLDFAST_HOME, or if keys would be stored in clear text."""
    return None if env.get("HOLDFAST_HOME") else _in_time(_recommended)


def keyring_is_missing(env: Mapping[str, str]) -> bool:
    """True if the OS keyring can't be asked because its package, an extra, isn't installed."""
    return not env.get("HOLDFAST_HOME") and find_spec("keyring") is None


def _recommended() -> _Keyring | None:
    try:
        import keyring  # noqa: PLC0415 - takes 70 ms
    except ModuleNotFoundError:  # not everybody's extra
        return None

    backend: Any = keyring.get_keyring()
    chain: list[Any] = list(getattr(backend, "backends", None) or [backend])
    return next((one for one in chain if float(one.priority) >= 1), None)


def _put(ring: _Keyring, server: str, key: str) -> bool:
    ring.set_password(_SERVICE, server, key)
    return ring.get_password(_SERVICE, server) == key


def _in_time(ask: Callable[[], T]) -> T | None:
    """The answer of a keyring, or None: any backend may fail, and some wait for a person."""
    answers: list[T] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # noqa: BLE001 - third-party code, in a thread of its own
            _log.info("the keyring doesn't respond: %s", type(error).__name__)

    thread = Thread(target=run, daemon=True, name="keyring")
    thread.start()
    thread.join(_PATIENCE_S)
    return answers[0] if answers else None


# The file


def _read(file: Path) -> dict[str, str]:
    try:
        data, state = read_small(file, limit=_LIMIT, follow=False)
    except FileNotFoundError:
        return {}
    except OSError as error:
        why = error.strerror or str(error)
        raise _refused(file, why, "Remove it, then enter the key again.") from error
    if state.st_uid != os.geteuid():
        raise _refused(file, "it belongs to another user", "Remove it.")
    if stat.S_IMODE(state.st_mode) & 0o077:
        raise _refused(file, "other users can reach it", f"Run: chmod 600 '{file}'")
    try:
        content: Any = parse_json(data)
        keys = content["keys"].items()
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        broken = _refused(file, "it is damaged", "Remove it, then enter the key again.")
        raise broken from None  # the cause quotes the file
    return {k: v for k, v in cast("list[tuple[str, object]]", list(keys)) if isinstance(v, str)}


def _write(file: Path, server: str, key: str | None) -> bool:
    """Set or (None) remove one server's key. Returns whether the file was changed."""
    if key is None and not os.path.lexists(file):
        return False
    hint = "Set ANTHROPIC_API_KEY instead, or make the folder writable."
    what = f"Can't write {shorten(file)}"
    with os_error_as(StorageError, what, hint=hint), locked(file.parent):
        keys = _read(file)
        changed = {k: v for k, v in keys.items() if k != server}
        if key is not None:
            changed[server] = key
        if changed == keys:
            return False
        replace_file(file, json.dumps({"version": 1, "keys": changed}, indent=1).encode())
        return True


def _refused(file: Path, why: str, hint: str) -> CredentialsError:
    return CredentialsError(f"Ignoring {shorten(file)}: {why}.", hint=hint)
