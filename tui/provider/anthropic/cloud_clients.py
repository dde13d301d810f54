"""The SDK's clients for the clouds, which sign requests by each cloud's own chain of credentials.

Signing in may ask the network and other programs, so it is done once ahead, in the thread that
loads the client; what is renewed later is renewed in threads, too. Nothing secret is kept here. A
cloud's extra is imported only here and in `event_stream`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from tui.core.clouds import BEDROCK, VERTEX, Cloud, CloudAccess
from tui.core.errors import CredentialsError
from tui.provider.anthropic.event_stream import BadEventStreamError

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_AZURE_SCOPE: Final = "https://ai.azure.com/.default"
_LIBRARIES: Final = frozenset({"botocore", "google", "azure"})
_UNSIGNED: Final = "Could not resolve "
"""The beginning of what the SDK says where a chain has nothing."""


def make_clients(
    access: CloudAccess, options: Callable[[str], Mapping[str, Any]]
) -> dict[bool, AsyncAnthropic]:
    """Sign in, and make the clients of a cloud: True is that for the Messages API, False Bedrock's
    for InvokeModel. `options` makes the arguments that all clients share, for an address. Blocks;
    raises CredentialsError, ImportError."""
    sign_in = {"bedrock": _bedrock, "vertex": _vertex, "foundry": _foundry}[access.cloud.kind]
    try:
        made = sign_in(access, options)
    except Exception as error:
        if (why := unsigned(error)) is None:
            raise
        raise CredentialsError(no_sign_in(access.cloud, why), hint=sign_in_hint(access)) from error
    # Each has the methods of the API's own client that are used.
    return cast("dict[bool, AsyncAnthropic]", made)


def unsigned(error: BaseException) -> str | None:
    """Return why a request could not be signed, in one line of the cloud's library; None for any
    other error."""
    libraries = {base.__module__.partition(".")[0] for base in type(error).__mro__}
    first: object = error.args[0] if error.args else ""  # google-auth adds the answer's body
    text = " ".join((first if isinstance(first, str) else str(error)).split("\n")[0].split())
    if libraries & _LIBRARIES:
        return text or type(error).__name__
    return text if isinstance(error, RuntimeError) and text.startswith(_UNSIGNED) else None


def failures() -> tuple[type[Exception], ...]:
    """The exceptions of the libraries that are loaded."""
    names = (
        ("botocore.exceptions", "BotoCoreError"),
        ("google.auth.exceptions", "GoogleAuthError"),
        ("azure.core.exceptions", "AzureError"),
    )
    loaded = [(sys.modules[module], name) for module, name in names if module in sys.modules]
    return (BadEventStreamError, *(getattr(module, name) for module, name in loaded))


def no_sign_in(cloud: Cloud, why: str) -> str:
    """Say that a cloud can't be signed in to."""
    return f"Couldn't sign in to {cloud.title}: {why.rstrip('.')}."


def sign_in_hint(access: CloudAccess) -> str:
    """Say what signs in, for a person."""
    login = access.cloud.login
    if access.cloud is BEDROCK:
        profile = f" --profile {access.profile}" if access.profile else ""
        variables = "AWS_PROFILE, AWS_ACCESS_KEY_ID or AWS_BEARER_TOKEN_BEDROCK"
        return f"Run `{login}{profile}`, or set {variables}."
    if access.cloud is VERTEX:
        return f"Run `{login}`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file."
    return f"Run `{login}`, or set ANTHROPIC_FOUNDRY_API_KEY."


def _bedrock(
    access: CloudAccess, options: Callable[[str], Mapping[str, Any]]
) -> dict[bool, object]:
    from anthropic.lib.bedrock import (  # noqa: PLC0415 - a second; only where it is used
        AsyncAnthropicBedrock,
        AsyncAnthropicBedrockMantle,
    )

    import_module("botocore.eventstream")
    signer: dict[str, str] = {}
    if not os.environ.get("AWS_BEARER_TOKEN_BEDROCK"):
        boto3: Any = import_module("boto3")
        if access.profile:
            signer = {"aws_profile": access.profile}
        session = boto3.Session(profile_name=access.profile or None, region_name=access.region)
        if (credentials := session.get_credentials()) is None:
            raise RuntimeError(f"{_UNSIGNED}AWS credentials")
        credentials.get_frozen_credentials()
    return {
        True: AsyncAnthropicBedrockMantle(
            aws_region=access.region,
            base_url=access.messages_address,
            **signer,
            **options(access.messages_address),
        ),
        False: AsyncAnthropicBedrock(
            aws_region=access.region,
            base_url=access.address,
            **signer,
            **options(access.address),
        ),
    }


def _vertex(access: CloudAccess, options: Callable[[str], Mapping[str, Any]]) -> dict[bool, object]:
    from anthropic.lib.vertex import AsyncAnthropicVertex  # noqa: PLC0415 - as above

    auth: Any = import_module("google.auth")
    transport: Any = import_module("google.auth.transport.requests")
    credentials, found = auth.default(scopes=[_GOOGLE_SCOPE])
    credentials.refresh(transport.Request())
    project = access.project or found
    if not project:
        raise CredentialsError(
            "No Google Cloud project is set.",
            hint="Set project under [provider] in config.toml, or ANTHROPIC_VERTEX_PROJECT_ID.",
        )
    client = AsyncAnthropicVertex(
        region=access.region,
        project_id=project,
        credentials=credentials,
        base_url=access.address,
        **options(access.address),
    )
    return {True: client}


def _foundry(
    access: CloudAccess, options: Callable[[str], Mapping[str, Any]]
) -> dict[bool, object]:
    from anthropic.lib.foundry import AsyncAnthropicFoundry  # noqa: PLC0415 - as above

    signer: dict[str, Any] = {}
    if not os.environ.get("ANTHROPIC_FOUNDRY_API_KEY"):
        identity: Any = import_module("azure.identity")
        provider = identity.get_bearer_token_provider(
            identity.DefaultAzureCredential(), _AZURE_SCOPE
        )
        provider()
        signer = {"azure_ad_token_provider": _in_thread(provider)}
    client = AsyncAnthropicFoundry(base_url=access.address, **signer, **options(access.address))
    return {True: client}


def _in_thread(provider: Callable[[], str]) -> Callable[[], Awaitable[str]]:
    """The same provider of tokens, off the event loop: it may ask the network."""

    async def token() -> str:
        return await asyncio.to_thread(provider)

    return token
