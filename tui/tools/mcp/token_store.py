"""The tokens of the person's sign-in to an MCP server, kept in a vault.

The SDK forgets when a token expires and where it is refreshed, so both are kept with the tokens.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import ValidationError

from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.core.messages import object_of

log = logging.getLogger(__name__)


class TokenVault(Protocol):
    """Keeps secret texts by name. All of it blocks, and may raise a HoldfastError. `mark` is
    another thing after any program has stored or removed one."""

    def get(self, name: str) -> str | None: ...
    def put(self, name: str, text: str) -> object: ...
    def remove(self, name: str) -> None: ...
    def mark(self) -> object: ...


def vault_name(url: str) -> str:
    """The name under which the tokens for an address are kept: without login and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return f"mcp {parts.scheme.lower()}://{host}{parts.path.rstrip('/')}"


@dataclass(frozen=True, slots=True)
class SignInPlace:
    """The address to sign in to, what keeps the tokens, and the client that the person registered
    with the server's operator; without a `client_id` the program registers itself."""

    url: str
    vault: TokenVault
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()
    callback_port: int = 0


class TokenWatch:
    """Notices that another program has signed in to an address. All of it blocks."""

    def __init__(self, place: SignInPlace) -> None:
        self._vault, self._name = place.vault, vault_name(place.url)
        self._mark, self._before = self._vault.mark(), self._tokens()

    def signed_in(self) -> bool:
        """True once there are other tokens than at the beginning."""
        if (mark := self._vault.mark()) != self._mark:
            self._mark = mark
            tokens = self._tokens()
            return bool(tokens) and tokens != self._before
        return False

    def _tokens(self) -> object:
        try:
            text = self._vault.get(self._name)
            return object_of(json.loads(text)).get("tokens") if text else None
        except (HoldfastError, ValueError, RecursionError):
            return None


class TokenStore:
    """The tokens of one address and what refreshing them takes: the SDK's storage."""

    def __init__(self, place: SignInPlace) -> None:
        self._place, self._name, self._vault = place, vault_name(place.url), place.vault
        self._kept: dict[str, Any] = {}

    async def load(self) -> bool:
        """Read what is kept. Returns whether there are tokens."""
        try:
            text = await asyncio.to_thread(self._vault.get, self._name)
            self._kept = object_of(json.loads(text)) if text else {}
        except (HoldfastError, ValueError, RecursionError) as error:
            log.warning("no tokens for an MCP server: %s", type(error).__name__)
            self._kept = {}
        return bool(self._kept.get("tokens"))

    @property
    def redirect_port(self) -> int:
        """The port of the redirect address that was registered; 0 for none."""
        if self._place.callback_port:
            return self._place.callback_port
        uris = object_of(self._kept.get("client")).get("redirect_uris") or [""]
        with suppress(ValueError, TypeError, IndexError):
            return urlsplit(str(uris[0])).port or 0
        return 0

    def forget_client(self) -> None:
        """Register again: the redirect address has changed."""
        self._kept.pop("client", None)

    def fill(self, provider: OAuthClientProvider) -> None:
        """Tell the SDK what it does not ask its storage for."""
        context = provider.context
        expires = self._kept.get("expires_at")
        context.token_expiry_time = float(expires) if isinstance(expires, int | float) else None
        with suppress(ValidationError):
            if stored := self._kept.get("metadata"):
                context.oauth_metadata = OAuthMetadata.model_validate(stored)
            if stored := self._kept.get("resource"):
                context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(
                    stored
                )

    def bind(self, provider: OAuthClientProvider) -> None:
        """Keep what this provider has discovered with the tokens."""
        self._provider = provider

    async def get_tokens(self) -> OAuthToken | None:
        with suppress(ValidationError):
            stored = self._kept.get("tokens")
            return OAuthToken.model_validate(stored) if stored else None
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self._provider.context
        self._kept["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        self._kept["expires_at"] = (
            None if tokens.expires_in is None else time.time() + tokens.expires_in
        )
        for name, value in (
            ("metadata", context.oauth_metadata),
            ("resource", context.protected_resource_metadata),
        ):
            if value is not None:
                self._kept[name] = value.model_dump(mode="json", exclude_none=True)
        await self._write()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        known = self._known_client()
        if not self._place.client_id:
            return known
        secret = self._place.client_secret or (known.client_secret if known else None)
        if known is not None and (known.client_id, known.client_secret) == (
            self._place.client_id,
            secret,
        ):
            return known
        return OAuthClientInformationFull(
            client_id=self._place.client_id,
            client_secret=secret,
            token_endpoint_auth_method="client_secret_post" if secret else "none",
        )

    def _known_client(self) -> OAuthClientInformationFull | None:
        """The client of the sign-in before; None for that of another registration."""
        with suppress(ValidationError):
            if stored := self._kept.get("client"):
                known = OAuthClientInformationFull.model_validate(stored)
                same = known.client_id == self._place.client_id
                return known if same or not self._place.client_id else None
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._kept["client"] = client_info.model_dump(mode="json", exclude_none=True)
        await self._write()

    async def _write(self) -> None:
        text = json.dumps(self._kept)
        await asyncio.to_thread(self._vault.put, self._name, text)
