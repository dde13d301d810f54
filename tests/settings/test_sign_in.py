"""What signs requests: the SDK's order, a profile as `ant auth login` writes it, bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.profile import write_profile
from tui.core.errors import CredentialsError
from tui.core.paths import folders
from tui.settings.credentials import ApiKey, find_credential, in_words, store_key
from tui.settings.sign_in import SignIn

GATEWAY = "https://gateway.example/anthropic"
WORKLOAD = {
    "ANTHROPIC_FEDERATION_RULE_ID": "rule",
    "ANTHROPIC_ORGANIZATION_ID": "org",
    "ANTHROPIC_IDENTITY_TOKEN": "jwt",
}


@pytest.fixture
def env(own_folders: Path) -> dict[str, str]:
    return {
        "HOLDFAST_HOME": str(own_folders),
        "ANTHROPIC_CONFIG_DIR": str(own_folders / "anthropic"),
    }


def test_each_credential_goes_before_those_below_it(env: dict[str, str], own_folders: Path) -> None:
    write_profile(own_folders / "anthropic", "default")
    write_profile(own_folders / "anthropic", "work")
    home = folders()
    assert find_credential(env, home) == SignIn("default")
    store_key("sk-stored", "", env=env, folders=home)
    assert find_credential(env, home) == ApiKey("sk-stored", "file")
    env |= WORKLOAD
    assert find_credential(env, home) == SignIn("")
    env["ANTHROPIC_PROFILE"] = "work"
    assert find_credential(env, home) == SignIn("work")
    env["ANTHROPIC_AUTH_TOKEN"] = "token"
    assert find_credential(env, home) == ApiKey("token", "environment")
    assert in_words(ApiKey("token", "environment"), env=env, folders=home) == (
        "the key in ANTHROPIC_AUTH_TOKEN"
    )
    env["ANTHROPIC_API_KEY"] = "sk-env"
    assert find_credential(env, home) == ApiKey("sk-env", "environment")


def test_the_active_profile_is_the_one_that_is_pointed_at(
    env: dict[str, str], own_folders: Path
) -> None:
    write_profile(own_folders / "anthropic", "work", base_url="https://eu.example/")
    assert find_credential(env, folders()) is None
    (own_folders / "anthropic" / "active_config").write_text("work\n")
    assert find_credential(env, folders()) == SignIn("work", "https://eu.example")


def test_a_profile_is_sent_to_its_own_server_only(env: dict[str, str], own_folders: Path) -> None:
    write_profile(own_folders / "anthropic", "default")
    write_profile(own_folders / "anthropic", "gateway", base_url=GATEWAY)
    for named in ({}, {"ANTHROPIC_PROFILE": "default"}):
        assert find_credential(env | named, folders(), "https://api.anthropic.com") == (
            SignIn("default")
        )
        assert find_credential(env | named, folders(), GATEWAY) is None
        assert find_credential(env | named, folders(), foreign=True) is None
    named = {"ANTHROPIC_PROFILE": "gateway"}
    assert find_credential(env | named, folders(), GATEWAY) == SignIn("gateway", GATEWAY)
    assert find_credential(env | named, folders(), "https://api.anthropic.com") is None


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ('{"authentication": {}}', "damaged"),
        ("[" * 100_000, "larger than"),
        ('{"authentication": {"type": "user_oauth"}}', "signed out"),
    ],
)
def test_a_profile_that_cannot_be_used_is_named_with_the_reason(
    env: dict[str, str], own_folders: Path, config: str, why: str
) -> None:
    file = own_folders / "anthropic" / "configs" / "default.json"
    file.parent.mkdir()
    file.write_text(config * (2 if why == "larger than" else 1))
    with pytest.raises(CredentialsError, match=f"the sign-in default: .*{why}") as caught:
        find_credential(env, folders())
    assert "ant auth login" in caught.value.hint
    assert find_credential(env, folders(), GATEWAY) is None


@pytest.mark.parametrize("name", ["nowhere", "../work", ".hidden", " work", "a/b", "a\x1b[2Jb"])
def test_a_name_that_is_no_profile_is_refused(env: dict[str, str], name: str) -> None:
    with pytest.raises(CredentialsError, match="Can't use the sign-in") as caught:
        find_credential(env | {"ANTHROPIC_PROFILE": name}, folders())
    assert caught.value.message.isprintable()


def test_a_profile_with_tokens_elsewhere(env: dict[str, str], own_folders: Path) -> None:
    file = write_profile(own_folders / "anthropic", "default")
    config: dict[str, Any] = json.loads(file.read_text())
    moved = own_folders / "tokens.json"
    (own_folders / "anthropic" / "credentials" / "default.json").rename(moved)
    config["authentication"]["credentials_path"] = str(moved)
    file.write_text(json.dumps(config))
    assert find_credential(env, folders()) == SignIn("default")
