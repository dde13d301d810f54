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
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from tui.core.clouds import AWS_KEY, BEDROCK, BEDROCK_TOKEN, VERTEX, Cloud, CloudAccess
from tui.core.errors import CredentialsError
from tui.provider.anthropic.event_stream import BadEventStreamError

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_AZURE_SCOPE: Final = "https://ai.azure.com/.default"
_LIBRARIES: Final[Mapping[str, str]] = {
    "botocore.exceptions": "BotoCoreError",
    "google.auth.exceptions": "GoogleAuthError",
    "azure.core.exceptions": "AzureError",
}
"""The modules of the errors that signing raises, and what they all are."""
_Options: TypeAlias = Callable[[str], Mapping[str, Any]]
_Clients: TypeAlias = dict[bool, object]
_UNSIGNED: Final = "Could not resolve "
"""The beginning of what the SDK says where a chain has nothing."""


def make_clients(
    access: CloudAccess, options: Callable[[str], Mapping[str, Any]]
) -> dict[bool, AsyncAnthropic]:
    """Sign in, and make the clients of a cloud: True is that for the Messages API, False Bedrock's
    for InvokeModel. `options` makes the arguments that all clients share, for an address. Blocks;
    raises CredentialsError, ImportError."""
    signer, make = sign_in(access), _MADE_BY[access.cloud.kind]
    # Each has the methods of the API's own client that are used.
    return cast("dict[bool, AsyncAnthropic]", make(access, signer, options))


def sign_in(access: CloudAccess) -> dict[str, Any]:
    """Sign in by a cloud's own chain of credentials. Returns the arguments by which its client
    signs. Blocks, on the network too; raises CredentialsError, ImportError."""
    try:
        return _SIGNED_BY[access.cloud.kind](access)
    except Exception as error:
        if (why := unsigned(error)) is None:
            raise
        raise CredentialsError(no_sign_in(access.cloud, why), hint=sign_in_hint(access)) from error


def unsigned(error: BaseException) -> str | None:
    """Return why a request could not be signed, in one line of the cloud's library; None for any
    other error."""
    modules = {base.__module__ for base in type(error).__mro__}
    first: object = error.args[0] if error.args else ""  # google-auth adds the answer's body
    text = " ".join((first if isinstance(first, str) else str(error)).split("\n")[0].split())
    if modules & _LIBRARIES.keys():
        return text or type(error).__name__
    return text if isinstance(error, RuntimeError) and text.startswith(_UNSIGNED) else None


def failures() -> tuple[type[Exception], ...]:
    """The exceptions of the libraries that are loaded."""
    loaded = [(sys.modules[one], name) for one, name in _LIBRARIES.items() if one in sys.modules]
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


def _sign_in_to_bedrock(access: CloudAccess) -> dict[str, Any]:
    if os.environ.get(BEDROCK_TOKEN) and not access.profile:
        return {}  # the client takes it
    # The SDK keeps sessions, and they keep what a file said: it may have been written since.
    signing: Any = import_module("anthropic.lib.aws._auth")
    if (forget := getattr(getattr(signing, "_get_session", None), "cache_clear", None)) is not None:
        forget()
    if access.identity == AWS_KEY:
        return {}  # the client for messages takes it; the other one asks AWS when it is used
    boto3: Any = import_module("boto3")
    session = boto3.Session(profile_name=access.profile or None, region_name=access.region)
    if (credentials := session.get_credentials()) is None:
        raise RuntimeError(f"{_UNSIGNED}AWS credentials")
    credentials.get_frozen_credentials()
    return {"aws_profile": access.profile} if access.profile else {}


def _sign_in_to_google(access: CloudAccess) -> dict[str, Any]:
    auth: Any = import_module("google.auth")
    transport: Any = import_module("google.auth.transport.requests")
    credentials, found = auth.default(scopes=[_GOOGLE_SCOPE])
    credentials.refresh(transport.Request())
    if not (project := access.project or found):
        raise CredentialsError(
            "No Google Cloud project is set.",
            hint="Set project under [provider] in config.toml, or ANTHROPIC_VERTEX_PROJECT_ID.",
        )
    return {"credentials": credentials, "project_id": project}


def _sign_in_to_foundry(_: CloudAccess) -> dict[str, Any]:
    if os.environ.get("ANTHROPIC_FOUNDRY_API_KEY"):
        return {}  # the client takes it
    identity: Any = import_module("azure.identity")
    provider = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), _AZURE_SCOPE)
    provider()
    return {"azure_ad_token_provider": _in_thread(provider)}


def _in_thread(provider: Callable[[], str]) -> Callable[[], Awaitable[str]]:
    """The same provider of tokens, off the event loop: it may ask the network."""

    async def token() -> str:
        return await asyncio.to_thread(provider)

    return token


def _bedrock(access: CloudAccess, signer: Mapping[str, Any], options: _Options) -> _Clients:
    from anthropic.lib.bedrock import (  # noqa: PLC0415 - a second; only where it is used
        AsyncAnthropicBedrock,
        AsyncAnthropicBedrockMantle,
    )

    import_module("botocore.eventstream")
    at, messages_at, region = access.address, access.messages_address, access.region
    messages = AsyncAnthropicBedrockMantle(
        base_url=messages_at, aws_region=region, **signer, **options(messages_at)
    )
    invoke: Any = AsyncAnthropicBedrock(base_url=at, aws_region=region, **options(at))
    if signer or not os.environ.get(BEDROCK_TOKEN):  # it would take the variable, even an empty one
        invoke.api_key = None
        invoke.aws_profile = signer.get("aws_profile")
    return {True: messages, False: invoke}


def _google(access: CloudAccess, signer: Mapping[str, Any], options: _Options) -> _Clients:
    from anthropic.lib.vertex import AsyncAnthropicVertex  # noqa: PLC0415 - as above

    at = access.address
    return {True: AsyncAnthropicVertex(region=access.region, base_url=at, **signer, **options(at))}


def _foundry(access: CloudAccess, signer: Mapping[str, Any], options: _Options) -> _Clients:
    from anthropic.lib.foundry import AsyncAnthropicFoundry  # noqa: PLC0415 - as above

    return {
        True: AsyncAnthropicFoundry(base_url=access.address, **signer, **options(access.address))
    }


_SIGNED_BY: Final[Mapping[str, Callable[[CloudAccess], dict[str, Any]]]] = {
    "bedrock": _sign_in_to_bedrock,
    "vertex": _sign_in_to_google,
    "foundry": _sign_in_to_foundry,
}
_MADE_BY: Final[Mapping[str, Callable[[CloudAccess, Mapping[str, Any], _Options], _Clients]]] = {
    "bedrock": _bedrock,
    "vertex": _google,
    "foundry": _foundry,
}
