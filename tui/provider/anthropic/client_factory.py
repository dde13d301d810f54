"""The SDK, loaded late: importing it takes a second, and the screen must stay alive meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tui.core.errors import CredentialsError, ProviderError
from tui.core.gc_pause import gc_pause
from tui.provider.anthropic import lazy_imports

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

API_URL: Final = "https://api.anthropic.com"
CONNECT_TIMEOUT_S: Final = 15.0

_NO_KEY: Final = "none"
_SCHEMES: Final = ("all://", "http://", "https://")


def api_url(base_url: str) -> str:
    """The address without what the SDK appends itself: a final `/v1` or `/v1/messages`."""
    url = base_url.strip().rstrip("/").removesuffix("/messages").removesuffix("/v1").rstrip("/")
    return url or API_URL


def check_url(url: str) -> None:
    """Raises ProviderError when `url` cannot be the address of a server."""
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
        usable = (
            named and parts.scheme in {"http", "https"} and url.isprintable() and " " not in url
        )
    except ValueError:  # a port that is no number, brackets that do not close
        usable = False
    if not usable:
        raise _not_an_address(url)


def shown(url: str) -> str:
    """The address without a name and password that may stand in it."""
    scheme, slashes, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return scheme + slashes + host.rpartition("@")[2] + slash + path


def _not_an_address(url: str) -> ProviderError:
    return ProviderError(
        "invalid_request",
        f"{shown(url)} is not the address of a server.",
        hint="base_url (or ANTHROPIC_BASE_URL) looks like https://host or http://127.0.0.1:8080.",
    )


def usable_key(api_key: str | None, url: str) -> str:
    """The key to send. Raises CredentialsError where there is none, or none that can be one.

    Only the API itself needs one: servers elsewhere (local ones, mostly) get a placeholder.
    """
    key = (api_key or "").strip()
    if not key and not is_the_api(url):
        return _NO_KEY
    if not key:
        raise CredentialsError(
            "There is no API key.",
            hint="Set ANTHROPIC_API_KEY, or start holdfast without -p to enter a key. "
            "ANTHROPIC_BASE_URL names another server; --practice needs neither.",
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise CredentialsError(
            "The API key contains characters that no key has.",
            hint="Copy it again, without spaces, quotes or line breaks.",
        )
    return key


def is_the_api(url: str) -> bool:
    return urlsplit(url).hostname == urlsplit(API_URL).hostname


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


async def load_client(key: str, url: str) -> AsyncAnthropic:
    """Import the SDK and make the client in a thread; the event loop keeps its turns short.

    Raises ProviderError when the installed SDK is broken.
    """
    try:
        return await asyncio.to_thread(_client, key, url)
    except ImportError as error:
        raise ProviderError(
            "unknown",
            f"The Anthropic SDK cannot be loaded: {error}.",
            hint="Install holdfast again.",
        ) from error


def _client(key: str, url: str) -> AsyncAnthropic:
    with gc_pause():
        lazy_imports.import_sdk()
        import anthropic  # noqa: PLC0415

        # Gateways differ in which of the two headers they read; the API wants one only.
        headers = {} if is_the_api(url) else {"x-api-key": key}
        timeout = anthropic.Timeout(None, connect=CONNECT_TIMEOUT_S)
        client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=url,
            max_retries=0,
            timeout=timeout,
            default_headers=headers,
            open_telemetry=False,
            http_client=anthropic.DefaultAsyncHttpxClient(
                base_url=url,
                timeout=timeout,
                # It would carry x-api-key to whatever place it names.
                follow_redirects=False,
                # A proxy cannot reach this machine's own servers.
                mounts=dict.fromkeys(_SCHEMES) if _is_loopback(url) else {},
            ),
        )
        _ = client.messages, client.models  # these import their modules on first use
        return client
