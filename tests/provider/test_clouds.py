"""The same models through the clouds: signed as each wants it, in its form, with its errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.provider.conversation import a_request, ask, parts_of, user
from tests.support import clouds
from tests.support.clock import ManualClock
from tests.support.clouds import FAULTS, CloudServer, Kind
from tui.core.clouds import CloudAccess, access_of
from tui.core.config import Config, ProviderSettings
from tui.core.errors import CredentialsError, ErrorClass, ProviderError
from tui.core.facts import TextDelta
from tui.core.messages import Usage
from tui.provider.anthropic import AnthropicProvider
from tui.provider.base import Completed

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
    named = {"kind": server.kind, "region": server.region} | settings
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
