"""A cloud on the screen: no key is asked for or taken, and /status says where the models are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.provider import ScriptedProvider
from tui.agent.model_access import cache_life
from tui.app.dialog_data import KeySetup
from tui.app.error_options import failed_request
from tui.app.options.arguments import Options
from tui.app.program import Program
from tui.app.reports.session import status_rows
from tui.core.config import Config, ProviderSettings
from tui.core.errors import UsageError
from tui.core.facts import ErrorRaised
from tui.core.paths import folders

CLOUD = Config(provider=ProviderSettings(kind="bedrock", region="eu-west-1", profile="work"))


def test_a_refused_sign_in_offers_no_key(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(), config=CLOUD)
    refused = ErrorRaised("auth", "It is expired.", True, "Run `aws sso login`.")
    card = failed_request(agent, refused)
    assert card is not None
    assert (card.title, card.meaning) == ("The sign-in was rejected", "Run `aws sso login`.")
    assert [way.name for way in card.ways] == ["model", "retry"]
    missing = failed_request(agent, ErrorRaised("not_found", "No such model.", True, ""))
    assert missing is not None
    assert [way.name for way in missing.ways] == ["model", "retry"]


def test_status_names_the_cloud_its_region_and_the_identity(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(), config=CLOUD)
    rows = {row.name: row.values for row in status_rows(agent, tmp_path, CLOUD)}
    assert rows["server"] == ("Amazon Bedrock (eu-west-1)", "AWS profile work")
    assert "server" not in {row.name for row in status_rows(agent, tmp_path, Config())}


async def test_login_takes_no_key_while_a_cloud_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    file = folders().config_file
    file.parent.mkdir(parents=True)
    file.write_text('[provider]\nkind = "vertex"\nproject = "p"\n', encoding="utf-8")
    program = Program(Options(cwd=tmp_path), None)
    with pytest.raises(UsageError, match="Google Cloud, which takes no key") as caught:
        await program.set_up(KeySetup("sk-ant-api03-" + "a" * 40))
    assert "Remove kind under [provider]" in caught.value.hint
    assert program.connection() == (
        "In use: claude-sonnet-5-5 at Google Cloud (global, project p), with your Google"
        " credentials."
    )


@pytest.mark.parametrize(("kind", "life"), [("bedrock", "5m"), ("vertex", "1h")])
def test_prices_are_of_a_cache_that_the_cloud_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, life: str
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    file = folders().config_file
    file.parent.mkdir(parents=True)
    file.write_text(f'[provider]\nkind = "{kind}"\nregion = "eu"\n', encoding="utf-8")
    launch = Program(Options(cwd=tmp_path), None).launch
    assert cache_life(launch) == life
