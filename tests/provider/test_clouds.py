"""The same models through the clouds: signed as each wants it, in its form, with its errors."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.provider.conversation import a_request, ask, parts_of, user
from tests.support import clouds
from tests.support.clock import ManualClock
from tests.support.clouds import FAULTS, CloudServer, Kind
from tui.core.clouds import Cloud, CloudAccess, access_of
from tui.core.config import AnswerSettings, Config, ProviderSettings
from tui.core.errors import CredentialsError, ErrorClass, ProviderError
from tui.core.facts import TextDelta
from tui.core.messages import Usage
from tui.provider.anthropic import AnthropicProvider
from tui.provider.base import Completed, StreamPart

NEW = "claude-opus-5-5"
OLD = "claude-sonnet-4-5"
KINDS: tuple[Kind, ...] = ("bedrock", "vertex", "foundry")
_MINE = ("AWS_", "ANTHROPIC_", "GOOGLE_", "CLOUD_ML_", "AZURE_")


@pytest.fixture(autouse=True)
def _no_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    import os  # noqa: PLC0415

    for name in [name for name in os.environ if name.startswith(_MINE)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def env_of(server: CloudServer, folder: Path) -> dict[str, str]:
    """The variables that sign in to a server."""
    if server.kind == "bedrock":
        return {"AWS_ACCESS_KEY_ID": clouds.ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": clouds.SECRET_KEY}
    if server.kind == "foundry":
        return {"ANTHROPIC_FOUNDRY_API_KEY": clouds.FOUNDRY_KEY}
    assert server.account is not None
    server.account.write(folder / "key.json", server.token_uri)
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(folder / "key.json")}


def access_to(server: CloudServer, env: Mapping[str, str], **settings: Any) -> CloudAccess:
    named: dict[str, Any] = {"kind": server.kind, "region": server.region} | settings
    config = Config(base_url=server.base_url, provider=ProviderSettings(**named))
    access = access_of(config, env)
    assert access is not None
    return access


@pytest.fixture
def signed_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Makes a provider that is signed in to a server."""

    def make(server: CloudServer, **settings: Any) -> AnthropicProvider:
        env = env_of(server, tmp_path)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        access = access_to(server, env, **settings)
        return AnthropicProvider(api_key=None, clock=ManualClock(), cloud=access)

    return make


async def _collect(stream: AsyncGenerator[StreamPart], parts: list[StreamPart]) -> None:
    async for part in stream:
        parts.append(part)  # noqa: PERF401 - what came before an error is looked at


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", [NEW, OLD])
async def test_an_answer_comes_through_each_cloud(kind: Kind, model: str, signed_in: Any) -> None:
    turn = {"text": "I look.", "tools": [{"name": "read_file", "id": "toolu_1", "input": {"p": 1}}]}
    async with CloudServer(kind, {"turns": [turn], "any_calls": True}) as server:
        provider = signed_in(server)
        parts = await parts_of(provider.stream(a_request(model=model)))
        await provider.aclose()
    assert server.refused == []
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == "I look."
    done = parts[-1]
    assert isinstance(done, Completed)
    assert (done.model, done.stop_reason) == (model, "tool_use")
    assert done.content[-1]["input"] == {"p": 1}
    assert done.request_id
    assert isinstance(done.usage, Usage)


@pytest.mark.parametrize("model", [NEW, OLD])
async def test_bedrock_signs_for_the_service_region_and_body(model: str, signed_in: Any) -> None:
    async with CloudServer("bedrock", {"turns": [{"text": "ok"}]}, secret="another") as server:
        provider = signed_in(server)
        with pytest.raises(ProviderError) as caught:
            await ask(provider, a_request(model=model))
        await provider.aclose()
    assert server.refused == ["the signature doesn't match"]
    assert caught.value.error_class == "auth"
    assert "security token" in caught.value.message
    assert "aws sso login" in caught.value.hint


@pytest.mark.parametrize("model", [NEW, OLD])
async def test_bedrock_takes_a_bearer_token(
    model: str, monkeypatch: pytest.MonkeyPatch, signed_in: Any
) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", clouds.BEARER)
    async with CloudServer("bedrock", {"turns": [{"text": "ok"}]}) as server:
        provider = signed_in(server)
        done = await ask(provider, a_request(model=model))
        await provider.aclose()
    assert (server.refused, done.content) == ([], [{"type": "text", "text": "ok"}])


async def test_bedrocks_messages_take_a_key_of_the_environment_and_older_models_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = {"ANTHROPIC_AWS_API_KEY": clouds.BEARER}
    monkeypatch.setenv("ANTHROPIC_AWS_API_KEY", clouds.BEARER)
    async with CloudServer("bedrock", {"turns": [{"text": "ok"}]}) as server:
        access = access_to(server, env)
        assert access.identity == "ANTHROPIC_AWS_API_KEY"
        provider = AnthropicProvider(api_key=None, clock=ManualClock(), cloud=access)
        done = await ask(provider, a_request(model=NEW))
        assert (server.refused, done.content) == ([], [{"type": "text", "text": "ok"}])
        with pytest.raises(ProviderError) as caught:
            await ask(provider, a_request(model=OLD))
        await provider.aclose()
    assert caught.value.error_class == "auth"
    assert "aws sso login" in caught.value.hint


_SECRET = {"AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_SECRET": "s"}
_WEB = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/t", "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"}
_POD = {"AZURE_AUTHORITY_HOST": "h", "AZURE_TENANT_ID": "t", "AZURE_FEDERATED_TOKEN_FILE": "/f"}


@pytest.mark.parametrize(
    ("kind", "model", "env", "identity"),
    [
        ("bedrock", NEW, {"ANTHROPIC_AWS_API_KEY": "k", "AWS_ACCESS_KEY_ID": "a"},
         "ANTHROPIC_AWS_API_KEY"),
        ("bedrock", NEW, {"ANTHROPIC_AWS_API_KEY": "k", "AWS_BEARER_TOKEN_BEDROCK": "b"},
         "AWS_BEARER_TOKEN_BEDROCK"),
        ("bedrock", OLD, {"ANTHROPIC_AWS_API_KEY": "k", "AWS_ACCESS_KEY_ID": "a"},
         "AWS_ACCESS_KEY_ID"),
        ("bedrock", OLD, {"ANTHROPIC_AWS_API_KEY": "k"}, "your AWS credentials"),
        ("bedrock", NEW, {**_WEB, "AWS_PROFILE": "p"}, "AWS_WEB_IDENTITY_TOKEN_FILE"),
        ("bedrock", NEW, {**_WEB, "AWS_ACCESS_KEY_ID": "a"}, "AWS_ACCESS_KEY_ID"),
        ("bedrock", NEW, {"AWS_ROLE_ARN": "r", "AWS_PROFILE": "p"}, "AWS profile p"),
        ("vertex", NEW, {"GOOGLE_APPLICATION_CREDENTIALS": "/f"}, "GOOGLE_APPLICATION_CREDENTIALS"),
        ("vertex", NEW, {"ANTHROPIC_API_KEY": "k"}, "your Google credentials"),
        ("foundry", NEW, {**_SECRET, "ANTHROPIC_FOUNDRY_API_KEY": "k"},
         "ANTHROPIC_FOUNDRY_API_KEY"),
        ("foundry", NEW, _SECRET, "AZURE_CLIENT_SECRET"),
        ("foundry", NEW, {**_POD, **_SECRET}, "AZURE_CLIENT_SECRET"),
        ("foundry", NEW,
         {**_POD, **_SECRET, "AZURE_TOKEN_CREDENTIALS": "WorkloadIdentityCredential"},
         "AZURE_FEDERATED_TOKEN_FILE"),
        ("foundry", NEW, {**_SECRET, "AZURE_TOKEN_CREDENTIALS": "dev"}, "your Azure sign-in"),
        ("foundry", NEW, {"AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t"}, "your Azure sign-in"),
        ("foundry", NEW, _POD, "AZURE_FEDERATED_TOKEN_FILE"),
    ],
)  # fmt: skip
def test_the_identity_is_named_that_comes_first(
    kind: Any, model: str, env: dict[str, str], identity: str
) -> None:
    config = Config(model=model, provider=ProviderSettings(kind=kind, region="us-east-1"))
    access = access_of(config, {"HOME": "/nowhere", **env})
    assert access is not None
    assert access.identity == identity


def test_azures_own_list_of_variables_is_the_one_that_is_named() -> None:
    from azure.identity._constants import (  # noqa: PLC0415 # pyright: ignore[reportPrivateImportUsage]
        EnvironmentVariables as Named,
    )

    lists = Named.CLIENT_SECRET_VARS, Named.CERT_VARS, Named.USERNAME_PASSWORD_VARS
    for variables in (*lists, Named.WORKLOAD_IDENTITY_VARS):
        config = Config(provider=ProviderSettings(kind="foundry", resource="r"))
        access = access_of(config, dict.fromkeys(variables, "x"))
        assert access is not None
        assert access.identity in variables


@pytest.mark.parametrize("token", ["", "of-another-account"])
@pytest.mark.parametrize("model", [NEW, OLD])
async def test_an_aws_profile_signs(
    model: str, token: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", token)
    folder = tmp_path / ".aws"
    folder.mkdir()
    keys = f"aws_access_key_id = {clouds.ACCESS_KEY}\naws_secret_access_key = {clouds.SECRET_KEY}\n"
    (folder / "credentials").write_text(f"[work]\n{keys}")
    (folder / "config").write_text("[profile work]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    env = {"AWS_CONFIG_FILE": str(folder / "config"), "AWS_BEARER_TOKEN_BEDROCK": token}
    async with CloudServer("bedrock", {"turns": [{"text": "ok"}]}, region="eu-west-1") as server:
        access = access_to(server, env, region="", profile="work")
        provider = AnthropicProvider(api_key=None, clock=ManualClock(), cloud=access)
        await ask(provider, a_request(model=model))
        await provider.aclose()
    assert str(access) == "Amazon Bedrock (eu-west-1)"
    assert access.identity == "AWS profile work"
    assert server.refused == []


async def test_what_was_signed_in_meanwhile_counts_for_the_next_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "credentials"
    lines = f"[default]\naws_access_key_id = {clouds.ACCESS_KEY}\naws_secret_access_key = "
    file.write_text(f"{lines}expired\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    async with CloudServer("bedrock", {"turns": [{"text": "ok"}]}) as server:
        access = access_to(server, {})
        provider = AnthropicProvider(api_key=None, clock=ManualClock(), cloud=access)
        for model in (OLD, NEW):
            with pytest.raises(ProviderError, match="security token"):
                await ask(provider, a_request(model=model))
        file.write_text(f"{lines}{clouds.SECRET_KEY}\n")
        done = await ask(provider, a_request(model=OLD))
        await provider.aclose()
    assert done.content == [{"type": "text", "text": "ok"}]


async def test_google_asks_for_a_token_once(signed_in: Any) -> None:
    async with CloudServer("vertex", {"turns": [{"text": "1"}, {"text": "2"}]}) as server:
        provider = signed_in(server)
        await ask(provider, a_request(model=NEW))
        await ask(provider, a_request(model=NEW))
        await provider.aclose()
    assert (server.tokens_given, server.refused) == (1, [])


async def test_foundry_takes_a_token_of_entra_off_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import threading  # noqa: PLC0415

    import azure.identity  # noqa: PLC0415

    threads: list[str] = []

    def provider_of(_credential: object, scope: str) -> Any:
        assert scope == "https://ai.azure.com/.default"

        def token() -> str:
            threads.append(threading.current_thread().name)
            return clouds.ENTRA_TOKEN

        return token

    monkeypatch.setattr(azure.identity, "get_bearer_token_provider", provider_of)
    async with CloudServer("foundry", {"turns": [{"text": "ok"}]}) as server:
        access = access_to(server, {})
        provider = AnthropicProvider(api_key=None, clock=ManualClock(), cloud=access)
        await ask(provider, a_request(model=NEW))
        await provider.aclose()
    assert (server.refused, access.identity) == ([], "your Azure sign-in")
    assert "MainThread" not in threads
    assert len(threads) == 2


@pytest.mark.parametrize(
    ("kind", "says"),
    [("bedrock", "aws sso login"), ("vertex", "gcloud auth application-default login")],
)
async def test_without_credentials_it_says_how_to_sign_in(
    kind: Kind, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    async with CloudServer(kind) as server:
        provider = AnthropicProvider(api_key=None, clock=ManualClock(), cloud=access_to(server, {}))
        with pytest.raises(CredentialsError) as caught:
            await ask(provider, a_request(model=OLD))
        await provider.aclose()
    assert caught.value.message.startswith("Couldn't sign in to ")
    assert says in caught.value.hint
    assert server.requests == []


async def test_an_sso_session_that_has_expired_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(
        "[profile work]\nregion = us-east-1\nsso_session = corp\nsso_account_id = 1\n"
        "sso_role_name = dev\n[sso-session corp]\nsso_region = us-east-1\n"
        "sso_start_url = https://corp.awsapps.com/start\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / ".aws" / "config"))
    async with CloudServer("bedrock") as server:
        access = access_to(server, {}, profile="work")
        provider = AnthropicProvider(api_key=None, clock=ManualClock(), cloud=access)
        with pytest.raises(CredentialsError) as caught:
            await ask(provider, a_request(model=OLD))
        await provider.aclose()
    assert "SSO" in caught.value.message
    assert "`aws sso login --profile work`" in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "fault", "error_class", "again", "says"),
    [
        ("bedrock", "throttled", "rate_limit", True, "rate limit"),
        ("bedrock", "daily", "rate_limit", False, "tokens for today"),
        ("bedrock", "service-quota", "rate_limit", False, "a quota of your account"),
        ("vertex", "quota", "rate_limit", True, "A quota of your project"),
        ("bedrock", "no-access", "auth", False, "has no access to global.anthropic."),
        ("bedrock", "not-authorized", "auth", False, "may not use global.anthropic."),
        ("vertex", "denied", "auth", False, "may not use claude-sonnet-4-5@20250929"),
        ("bedrock", "expired", "auth", False, "doesn't accept your sign-in"),
        ("bedrock", "unrecognized", "auth", False, "doesn't accept your sign-in"),
        ("vertex", "unauthenticated", "auth", False, "doesn't accept your sign-in"),
        ("foundry", "wrong-key", "auth", False, "doesn't accept your sign-in"),
        ("bedrock", "on-demand", "not_found", False, "an inference profile"),
        ("bedrock", "identifier", "not_found", False, "doesn't have global.anthropic."),
        ("vertex", "publisher-model", "not_found", False, "doesn't have claude-sonnet-4-5@"),
        ("vertex", "not-allowed", "auth", False, "has no access to claude-sonnet-4-5@"),
        ("foundry", "no-deployment", "not_found", False, "no deployment claude-sonnet-4-5"),
        ("bedrock", "model-error", "server", True, "The model failed"),
        ("bedrock", "not-ready", "overloaded", True, "isn't ready"),
    ],
)
async def test_the_words_of_each_cloud_are_understood(
    kind: Kind, fault: str, error_class: ErrorClass, again: bool, says: str, signed_in: Any
) -> None:
    async with CloudServer(kind, {"turns": [{"text": "ok"}]}) as server:
        server.faults = [fault]
        provider = signed_in(server)
        with pytest.raises(ProviderError) as caught:
            await ask(provider, a_request(model=OLD))
        await provider.aclose()
    error = caught.value
    assert (error.error_class, error.retryable) == (error_class, again), error
    assert says in error.message
    assert FAULTS[fault]["text"][:40] in error.message
    assert "ANTHROPIC_API_KEY" not in error.hint
    assert error.hint


@pytest.mark.parametrize(
    ("name", "error_class", "again"),
    [
        ("throttlingException", "rate_limit", True),
        ("modelStreamErrorException", "server", True),
        ("internalServerException", "server", True),
        ("serviceUnavailableException", "server", True),
        ("modelTimeoutException", "timeout", True),
        ("validationException", "invalid_request", False),
        ("unheardOfException", "unknown", False),
    ],
)
async def test_an_exception_in_the_midst_of_a_stream(
    name: str, error_class: ErrorClass, again: bool, signed_in: Any
) -> None:
    async with CloudServer("bedrock", {"turns": [{"text": "a long answer", "piece": 2}]}) as server:
        server.exception = (4, name, "It happened.")
        provider = signed_in(server)
        parts: list[StreamPart] = []
        stream = provider.stream(a_request(model=OLD))
        with pytest.raises(ProviderError) as caught:
            await _collect(stream, parts)
        await provider.aclose()
    assert any(isinstance(part, TextDelta) for part in parts)
    assert (caught.value.error_class, caught.value.retryable) == (error_class, again)
    assert "It happened." in caught.value.message


async def test_a_damaged_event_stream_is_a_broken_answer(signed_in: Any) -> None:
    async with CloudServer("bedrock", {"turns": [{"text": "a long answer"}]}) as server:
        server.damaged = True
        provider = signed_in(server)
        with pytest.raises(ProviderError) as caught:
            await ask(provider, a_request(model=OLD))
        await provider.aclose()
    assert caught.value.error_class == "stream_broken"
    assert caught.value.retryable


async def test_a_stream_that_ends_early_is_a_broken_answer(signed_in: Any) -> None:
    turn = {"text": "a long answer", "faults": [{"eof_after": 3}]}
    async with CloudServer("bedrock", {"turns": [turn]}) as server:
        provider = signed_in(server)
        with pytest.raises(ProviderError) as caught:
            await ask(provider, a_request(model=OLD))
        await provider.aclose()
    assert caught.value.error_class == "stream_broken"


async def test_the_persons_own_ids_are_sent_and_known_by_the_models_name(signed_in: Any) -> None:
    arn = "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5-5"
    async with CloudServer("bedrock", {"turns": [{"text": "ok"}]}) as server:
        provider = signed_in(server, models={NEW: AnswerSettings(id=arn)})
        done = await ask(provider, a_request(model=NEW))
        await provider.aclose()
    assert server.refused == []
    assert arn.rpartition("/")[2] in server.requests[-1].path
    assert done.model == NEW


async def test_tokens_are_counted_where_the_cloud_counts(signed_in: Any) -> None:
    for kind in KINDS:
        async with CloudServer(kind, {"turns": []}) as server:
            provider = signed_in(server)
            if kind == "bedrock":
                with pytest.raises(ProviderError) as caught:
                    await provider.count_tokens(a_request(model=NEW))
                assert caught.value.error_class == "not_found"
                assert server.requests == []
            else:
                assert await provider.count_tokens(a_request(user("hello there"), model=NEW)) > 0
            assert await provider.list_models() == []
            assert (await provider.model_info(NEW)).source == "catalogue"
            await provider.aclose()


async def test_betas_go_where_the_cloud_reads_them(signed_in: Any) -> None:
    request = a_request(model=OLD, binding_reports=True)
    for kind in KINDS:
        async with CloudServer(kind, {"turns": [{"text": "ok"}]}) as server:
            provider = signed_in(server)
            await ask(provider, request)
            await provider.aclose()
        beta = "thinking-binding-controls-2026-08-01"
        if kind == "bedrock":
            assert server.entered[0]["anthropic_beta"] == [beta]
        assert server.requests[-1].headers["anthropic-beta"] == beta


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: tuple[tuple[Kind, str, str], ...] = (
        ("bedrock", "No region", "AWS_REGION"),
        ("foundry", "No resource", "ANTHROPIC_FOUNDRY_RESOURCE"),
    )
    for kind, missing, says in cases:
        access = access_of(Config(provider=ProviderSettings(kind=kind)), {})
        assert access is not None
        with pytest.raises(CredentialsError, match=missing) as caught:
            access.check()
        assert says in caught.value.hint
    access = access_of(Config(provider=ProviderSettings(kind="vertex")), {})
    assert access is not None
    assert str(access) == "Google Cloud (global)"

    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr("tui.core.clouds.find_spec", nothing)
    with pytest.raises(CredentialsError, match="google, which isn't installed") as caught:
        access.check()
    assert "pip install 'holdfast[vertex]'" in caught.value.hint


class _NeverCopied(list[Any]):
    def __deepcopy__(self, memo: object) -> None:
        raise AssertionError("a message was copied")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_clouds_client_copies_no_messages(kind: Kind, signed_in: Any) -> None:
    message = user("hello")
    message["content"] = _NeverCopied(message["content"])
    async with CloudServer(kind, {"turns": [{"text": "ok"}]}) as server:
        provider = signed_in(server)
        await ask(provider, a_request(message, model=OLD))
        await provider.aclose()
    assert server.entered[0]["messages"][0]["content"][0]["text"] == "hello"


def test_the_server_s_own_encoding_is_amazons() -> None:
    from botocore.eventstream import EventStreamBuffer  # noqa: PLC0415

    buffer: Any = EventStreamBuffer()
    buffer.add_data(clouds.chunk_of(b'{"type": "ping"}') + clouds.exception_of("a", "b"))
    first, second = buffer
    assert json.loads(first.payload)["p"]
    assert second.headers[":exception-type"] == "a"


async def test_a_request_that_a_cloud_would_refuse_as_too_large_is_not_sent(
    signed_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cloud, "request_bytes", property(lambda _: 100_000))
    async with CloudServer("bedrock", {"turns": [{"text": "Hi."}]}) as server:
        provider = signed_in(server)
        with pytest.raises(ProviderError) as caught:
            await ask(provider, a_request(user("x" * 100_000), model=NEW))
        assert server.requests == []
        await ask(provider, a_request(user("x" * 99_000), model=NEW))
        await provider.aclose()
    error = caught.value
    assert (error.error_class, error.retryable) == ("payload_too_large", False)
    assert "0.1 MB, of at most 20 MB; nothing was sent." in error.message
