"""The SDK and its client, loaded late and in part: the screen must stay responsive meanwhile.

Importing the SDK takes a second. Its packages re-export thousands of types, and a request needs
none of them: a package that consists only of re-exports is not executed, its names are read from
the source, and each is imported when it is first used; and two modules are executed only when they
are used. That leaves a few dozen modules. Everything else is the SDK, unchanged.
"""

from __future__ import annotations

import ast
import asyncio
import os
import ssl
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from tui.core.compiled_sources import compiled_once
from tui.core.errors import CredentialsError, ProviderError
from tui.core.gc_pause import gc_pause

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

    from tui.core.clouds import CloudAccess


API_URL: Final = "https://api.anthropic.com"
CONNECT_TIMEOUT_S: Final = 15.0

SIGN_IN_HINT: Final = "Run `ant auth login` again, or use a key: /login."
_NO_KEY: Final = "none"
_BETA: Final = "anthropic-beta"
_PLUGINS_OFF: Final = "PYDANTIC_DISABLE_PLUGINS"
_SCHEMES: Final = ("all://", "http://", "https://")


def api_url(base_url: str) -> str:
    """The address without what the SDK appends itself: a final `/v1` or `/v1/messages`. A query
    stays at its end."""
    place, _, query = base_url.strip().partition("#")[0].partition("?")
    url = place.rstrip("/").removesuffix("/messages").removesuffix("/v1").rstrip("/") or API_URL
    return f"{url}?{query}" if query else url


def check_url(url: str) -> None:
    """Raise ProviderError if `url` cannot be the address of a server."""
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
        usable = (
            named and parts.scheme in {"http", "https"} and url.isprintable() and " " not in url
        )
    except ValueError:  # a port that is no number, brackets that do not close
        usable = False
    if not usable:
        raise ProviderError(
            "invalid_request",
            f"{shown(url)} isn't a server address.",
            hint="base_url (or ANTHROPIC_BASE_URL) looks like https://host or "
            "http://127.0.0.1:8080.",
        )


def shown(url: str) -> str:
    """The address without what may be secret in it: name and password, and the query."""
    scheme, slashes, rest = url.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return scheme + slashes + host.rpartition("@")[2] + slash + path


def usable_key(api_key: str | None, url: str) -> str:
    """The key to send. Raises CredentialsError if there is none, or if it cannot be a key.

    Only the API itself needs one: servers elsewhere (mostly local ones) get a placeholder.
    """
    key = (api_key or "").strip()
    if not key and not is_the_api(url):
        return _NO_KEY
    if not key:
        raise CredentialsError(
            "No API key found.",
            hint="Set ANTHROPIC_API_KEY, or start holdfast without -p to enter a key. "
            "ANTHROPIC_BASE_URL names another server; --practice needs neither.",
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise CredentialsError(
            "The API key contains characters that no key has.",
            hint="Copy it again, without spaces, quotes or line breaks.",
        )
    return key


def sign_in_failed(error: Exception) -> str:
    """Explain why the SDK cannot sign in by itself. Its message names files and no secret."""
    return f"Couldn't sign in: {str(error).rstrip('.')}."


def is_the_api(url: str) -> bool:
    return urlsplit(url).hostname == urlsplit(API_URL).hostname


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


async def load_client(
    key: str | None,
    url: str,
    *,
    profile: str | None = None,
    env_headers: bool = True,
    cloud: CloudAccess | None = None,
) -> dict[bool, AsyncAnthropic]:
    """Import the SDK and make the client in a thread, so that the event loop stays responsive: it
    is that of True, False is Bedrock's other one (see `cloud_clients`).

    Without a `key` the SDK signs in by itself: with a `profile`, or with "" by the environment.
    Without `env_headers` it sends none of the environment's own (ANTHROPIC_CUSTOM_HEADERS). For a
    `cloud`, its own client signs.

    Raises ProviderError if the installed SDK is broken, CredentialsError for a profile or a cloud
    that it cannot sign in to.
    """
    try:
        if cloud is not None:
            return await asyncio.to_thread(_cloud_clients, cloud)
        return {True: await asyncio.to_thread(_client, key, url, profile, env_headers)}
    except ImportError as error:
        raise ProviderError(
            "unknown",
            f"Can't load the Anthropic SDK: {error}.",
            hint="Reinstall Holdfast.",
        ) from error


def _client(key: str | None, url: str, profile: str | None, env_headers: bool) -> AsyncAnthropic:
    with gc_pause(loading=True), _without_plugins():
        import_sdk()
        import anthropic  # noqa: PLC0415

        # Gateways differ in which of the two headers they read; the API accepts only one.
        headers: dict[str, Any] = {"x-api-key": key} if key and not is_the_api(url) else {}
        if not env_headers:
            lines = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n")
            names = (line.partition(":")[0].strip() for line in lines)
            headers = {name: anthropic.Omit() for name in names if name} | headers
        url, _, query = url.partition("?")
        try:
            client = anthropic.AsyncAnthropic(
                api_key=key,
                profile=profile or None,
                base_url=url,
                default_headers=headers,
                default_query=dict(parse_qsl(query, keep_blank_values=True)),
                **_shared_options(url),
            )
        except anthropic.AnthropicError as error:
            raise CredentialsError(sign_in_failed(error), hint=SIGN_IN_HINT) from error
        _import_connections()
        return client


def _cloud_clients(cloud: CloudAccess) -> dict[bool, AsyncAnthropic]:
    with gc_pause(loading=True), _without_plugins():
        import_sdk()
        from tui.provider.anthropic.cloud_clients import make_clients  # noqa: PLC0415 - few have one

        clients = make_clients(cloud, _shared_options)
        _import_connections()
        return clients


def headers(client: AsyncAnthropic, betas: Sequence[str]) -> dict[str, str]:
    """Return a request's header for `betas` and those that the environment names for all requests
    (ANTHROPIC_CUSTOM_HEADERS): the SDK sends a request's own header instead of the common one."""
    every = client.default_headers.items()
    common = [value for name, value in every if name.lower() == _BETA and isinstance(value, str)]
    named = [beta.strip() for value in common for beta in value.split(",")]
    joined = ",".join(dict.fromkeys(filter(None, [*betas, *named])))
    return {_BETA: joined} if joined else {}


def _shared_options(url: str) -> dict[str, Any]:
    """The arguments that every client of the SDK gets, for the server at `url`."""
    import anthropic  # noqa: PLC0415

    timeout, local = anthropic.Timeout(None, connect=CONNECT_TIMEOUT_S), _is_loopback(url)
    # Without encryption or a proxy there is no certificate to check, so the system's own, which
    # take 20 ms, are not read.
    plain = local and url.startswith("http:")
    http_client = anthropic.DefaultAsyncHttpxClient(
        base_url=url,
        timeout=timeout,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
        # A redirect would carry x-api-key to whatever place it names.
        follow_redirects=False,
        event_hooks={"response": [_load_errors]},
        # A proxy cannot reach this machine's own servers.
        mounts=dict.fromkeys(_SCHEMES) if local else {},
    )
    return {
        "max_retries": 0,
        "timeout": timeout,
        "open_telemetry": False,
        "http_client": http_client,
    }


def _import_connections() -> None:
    with suppress(ImportError):  # otherwise the first connection imports it, in the loop
        import_module("anyio._backends._asyncio")


@contextmanager
def _without_plugins() -> Generator[None]:
    """Keep pydantic from looking for its plugins, which reads a file of every installed package."""
    if _PLUGINS_OFF in os.environ:
        yield
        return
    os.environ[_PLUGINS_OFF] = "__all__"
    try:
        yield
    finally:
        del os.environ[_PLUGINS_OFF]


async def _load_errors(response: httpx2.Response) -> None:
    """If an answer is an error, load in a thread what the SDK needs to report it."""
    if response.is_error:
        await asyncio.to_thread(_import_errors)


def _import_errors() -> None:
    with gc_pause(), suppress(ImportError, AttributeError):
        errors: Any = import_module(f"{SDK}._error_classes")
        _ = errors.ERROR_CLASSES
        import_module(f"{SDK}.types.shared.error_details")


SDK = "anthropic"

_USED_LATE: Final = {
    f"{SDK}._error_classes": "make_status_error",
    f"{SDK}.lib._tracing._api_call": "finish_api_call_span",
}
"""Modules that the client imports for one function, which most runs never call."""

_Names: TypeAlias = dict[str, tuple[str, str]]
"""Name → the module that has it, relative to the package, and its name there ("": the module)."""


def import_sdk() -> ModuleType:
    """Import the SDK's package with late names; an SDK with another structure is imported as it is.

    Raises ImportError if there is none.
    """
    if SDK in sys.modules:
        return sys.modules[SDK]
    sys.meta_path.insert(0, _Finder)
    try:
        with compiled_once(Path(f"{__spec__.cached}.sources")):
            sdk = import_module(SDK)
            _ = sdk.AsyncAnthropic, sdk.APIError
    except (ImportError, AttributeError):  # an SDK with another structure
        sys.meta_path.remove(_Finder)
        for name in [name for name in sys.modules if _is_part(name)]:
            del sys.modules[name]
        return import_module(SDK)
    return sdk


def reexports(source: bytes, *, root: bool = False) -> _Names | None:
    """The names of a package that only re-exports; None if it does anything else.

    The root package may do more: it sets up the SDK's own log and beautifies its classes' names.
    """
    names: _Names = {}
    for node in ast.parse(source).body:
        match node:
            case ast.ImportFrom(module="__future__") | ast.Expr(ast.Constant()):
                pass
            case ast.Assign([ast.Name("__all__")]):
                pass
            case ast.ImportFrom(module, imported, 1):
                for one in imported:
                    if one.name != "*":
                        place = (f".{module}", one.name) if module else (f".{one.name}", "")
                        names[one.asname or one.name] = place
                    elif not root:
                        return None
            case _ if not root:
                return None
            case _:
                pass
    # Importing a submodule sets an attribute of its name, which must not hide a re-exported one.
    own = {module[1:].partition(".")[0] for module, name in names.values() if name}
    attributes = {name for name, (_, there) in names.items() if there}
    return None if own & attributes else names  # a submodule would hide the attribute


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__
        names = reexports(self.get_data(self.path), root=package == SDK)
        if names is None:
            super().exec_module(module)
            return

        def find(name: str) -> object:
            if name not in names:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            where, there = names[name]
            member: object = import_module(where, package)
            if there:
                member = getattr(member, there)
            module.__dict__[name] = member
            return member

        module.__dict__.update(__getattr__=find, __all__=list(names))


class _LateLoader(SourceFileLoader):
    """Executes a module when its one function is first called, or when anything else in it is
    used."""

    def exec_module(self, module: ModuleType) -> None:
        known, function = vars(module), _USED_LATE[module.__name__]

        def execute() -> None:
            super(_LateLoader, self).exec_module(module)
            known.pop("__getattr__", None)

        def find(name: str) -> object:
            if name.startswith("__"):  # the import system asks for these
                raise AttributeError(name)
            execute()
            return getattr(module, name)

        def call(*args: Any, **options: Any) -> Any:
            if known[function] is call:
                execute()
            return known[function](*args, **options)

        known.update({"__getattr__": find, function: call})


class _Finder:
    """Finds the SDK's modules as usual, and gives some of them a loader from above."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_part(name):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and type(spec.loader) is SourceFileLoader:
            if name in _USED_LATE:
                spec.loader = _LateLoader(name, spec.loader.path)
            elif spec.submodule_search_locations:
                spec.loader = _Loader(name, spec.loader.path)
        return spec


def _is_part(name: str) -> bool:
    return name == SDK or name.startswith(f"{SDK}.")
