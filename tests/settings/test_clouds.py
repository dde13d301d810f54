"""The settings that choose a cloud: whose count, where they lead, what a model costs there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tui.core.clouds import CLOUDS, FEATURES, access_of
from tui.core.config import AnswerSettings, Config, ProviderSettings
from tui.core.paths import Folders, folders
from tui.provider.prices import price_of
from tui.settings.layers import YOURS, LoadedSettings, load, project_file


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return folders()


def loaded(
    home: Folders, own: str, brought: str = "", env: Mapping[str, str] | None = None
) -> LoadedSettings:
    workspace = home.config.parent.parent / "work"
    for file, text in ((home.config_file, own), (project_file(workspace), brought)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    given = env or {}
    return load(
        folders=home, workspace=workspace, allows=lambda _n, _v: True, env=given, overrides={}
    )


def test_a_trusted_folder_chooses_no_account_and_no_address_for_it(home: Folders) -> None:
    own = '[provider]\nkind = "bedrock"\nregion = "eu-west-1"\n'
    theirs = (
        'base_url = "http://evil.test"\n[provider]\nkind = "vertex"\nproject = "theirs"\n'
        'region = "x"\nresource = "y"\nprofile = "z"\nmax_output = 7\n'
    )
    found = loaded(home, own, theirs)
    wanted = ProviderSettings(kind="bedrock", region="eu-west-1", max_output=7)
    assert found.config.provider == wanted
    assert found.config.base_url == ""
    assert {one.key for one in found.ignored if one.reason == YOURS} == {
        *(f"provider.{key}" for key in ("kind", "region", "project", "resource", "profile")),
        "base_url",
    }


def test_anthropics_address_in_the_environment_is_not_a_clouds(home: Folders) -> None:
    env = {
        "ANTHROPIC_BASE_URL": "http://gateway.test",
        "ANTHROPIC_VERTEX_BASE_URL": "http://v.test",
    }
    assert loaded(home, "", env=env).config.base_url == "http://gateway.test"
    assert loaded(home, '[provider]\nkind = "vertex"', env=env).config.base_url == "http://v.test"
    assert loaded(home, '[provider]\nkind = "foundry"', env=env).config.base_url == ""


@pytest.mark.parametrize(
    ("settings", "env", "address", "words"),
    [
        (
            ProviderSettings(kind="bedrock"),
            {"AWS_REGION": "us-west-2"},
            "https://bedrock-runtime.us-west-2.amazonaws.com",
            "Amazon Bedrock (us-west-2)",
        ),
        (
            ProviderSettings(kind="vertex", project="p"),
            {},
            "https://aiplatform.googleapis.com/v1",
            "Google Cloud (global, project p)",
        ),
        (
            ProviderSettings(kind="vertex", region="eu"),
            {},
            "https://aiplatform.eu.rep.googleapis.com/v1",
            "Google Cloud (eu)",
        ),
        (
            ProviderSettings(kind="vertex"),
            {"CLOUD_ML_REGION": "us-east5"},
            "https://us-east5-aiplatform.googleapis.com/v1",
            "Google Cloud (us-east5)",
        ),
        (
            ProviderSettings(kind="foundry", resource="r"),
            {},
            "https://r.services.ai.azure.com/anthropic",
            "Microsoft Foundry (https://r.services.ai.azure.com/anthropic)",
        ),
    ],
)
def test_the_place_is_where_the_sdk_would_ask(
    settings: ProviderSettings, env: Mapping[str, str], address: str, words: str
) -> None:
    access = access_of(Config(provider=settings), env)
    assert access is not None
    assert (access.address, str(access)) == (address, words)


def test_models_have_the_ids_of_their_cloud() -> None:
    own = {"claude-opus-5-5": AnswerSettings(id="our-opus")}
    ids = {
        "bedrock": {
            "claude-sonnet-5-5": ("anthropic.claude-sonnet-5-5", True),
            "claude-haiku-4-5": ("anthropic.claude-haiku-4-5", True),
            "claude-opus-4-6": ("global.anthropic.claude-opus-4-6-v1", False),
            "us.anthropic.claude-opus-4-8": ("us.anthropic.claude-opus-4-8", False),
            "anthropic.claude-opus-4-6-v1": ("anthropic.claude-opus-4-6-v1", False),
            "claude-opus-5-5": ("our-opus", False),
        },
        "vertex": {
            "claude-sonnet-5-5": ("claude-sonnet-5-5", True),
            "claude-haiku-4-5": ("claude-haiku-4-5@20251001", True),
        },
        "foundry": {"claude-opus-5-5": ("our-opus", True), "mine": ("mine", True)},
    }
    for kind in CLOUDS:
        config = Config(provider=ProviderSettings(kind=kind, region="r", models=own))  # pyright: ignore[reportArgumentType]
        access = access_of(config, {})
        assert access is not None
        found = {name: (access.id_of(name), access.takes_messages(name)) for name in ids[kind]}
        assert found == ids[kind]


def test_a_region_costs_a_tenth_more_and_own_prices_count(home: Folders) -> None:
    def output(own: str, model: str) -> float | None:
        price = price_of(model, loaded(home, own).config.prices)
        return price.rates.output if price else None

    bedrock = '[provider]\nkind = "bedrock"\nregion = "us-east-1"\n'
    assert output("", "claude-opus-5-5") == 20
    assert output(bedrock, "claude-opus-5-5") == 22
    assert output(bedrock, "claude-opus-4-6") == 25  # by its global profile
    assert output(bedrock, "us.anthropic.claude-opus-4-6-v1") == 27.5
    assert output(bedrock, "global.anthropic.claude-opus-5-5") == 20
    assert output(bedrock, "my-profile") is None
    assert output('[provider]\nkind = "vertex"\n', "claude-opus-5-5") == 20
    assert output('[provider]\nkind = "vertex"\nregion = "eu"\n', "claude-opus-5-5") == 22
    assert output('[provider]\nkind = "foundry"\n', "claude-opus-5-5") == 20
    assert output(f'{bedrock}[prices."*"]\ntimes = 0.5\n', "claude-opus-5-5") == 10
    assert output(f'{bedrock}[prices."claude-opus-5-5"]\noutput = 3\n', "claude-opus-5-5") == 3
    assert output('[prices."claude-opus-5-5"]\ntimes = 2\n', "claude-opus-5-5") == 40


def test_a_long_prompt_costs_a_multiple_too(home: Folders) -> None:
    config = loaded(home, '[provider]\nkind = "vertex"\nregion = "us"\n').config
    price = price_of("claude-haiku-5-5", config.prices)
    assert price is not None
    assert price.long is not None
    assert (price.rates.input, price.long.input, price.long_from) == (0.11, 0.55, 100_000)


def test_what_a_cloud_lacks_is_a_known_feature() -> None:
    assert {name for cloud in CLOUDS.values() for name in cloud.lacks} <= FEATURES.keys()
