"""The program through a cloud: a turn with a tool call, what it says of itself, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import clouds
from tests.support.clouds import CloudServer, Kind
from tests.support.program import Done, Program
from tests.support.serving import serving

_READ = {"tools": [{"name": "read_file", "input": {"path": "README.md"}}]}
_TURNS = {"turns": [_READ, {"text": "The demo project."}]}
_MINE = ("AWS_", "ANTHROPIC_", "GOOGLE_", "CLOUD_ML_", "AZURE_")


@pytest.fixture
def env(env: dict[str, str]) -> dict[str, str]:
    """Without anything that signs in to a cloud."""
    kept = {name: value for name, value in env.items() if not name.startswith(_MINE)}
    return kept | {"AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true"}


def signed_in(server: CloudServer, folder: Path) -> dict[str, str]:
    match server.kind:
        case "bedrock":
            keys = clouds.ACCESS_KEY, clouds.SECRET_KEY
            return dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), keys, strict=True))
        case "vertex":
            assert server.account is not None
            server.account.write(folder / "key.json", server.token_uri)
            return {"GOOGLE_APPLICATION_CREDENTIALS": str(folder / "key.json")}
        case _:
            return {"ANTHROPIC_FOUNDRY_API_KEY": clouds.FOUNDRY_KEY}


@contextmanager
def cloud(
    kind: Kind, config: Callable[[str | bytes], Path], script: Any = _TURNS
) -> Generator[CloudServer]:
    server = CloudServer(kind, script)
    with serving(server):
        config(
            f'base_url = "{server.base_url}"\ntitles = "prompt"\n'
            f'[provider]\nkind = "{kind}"\nregion = "{server.region}"\n'
        )
        yield server


@pytest.mark.parametrize("kind", ["bedrock", "vertex", "foundry"])
@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-4-6"])
def test_a_turn_goes_through_each_cloud(
    kind: Kind, model: str, holdfast: Program, config: Any, tmp_path: Path
) -> None:
    with cloud(kind, config) as server:
        done = holdfast(
            *("-p", "read README.md", "-m", model, "--output-format", "json"),
            env=signed_in(server, tmp_path),
        )
    assert done.object["result"] == "The demo project."
    assert done.object["model"] == model
    assert done.object["cost_usd"] > 0
    assert server.refused == []
    first, second = server.entered[:2]
    messages = second["messages"]
    assert [block["type"] for block in messages[-1]["content"]].count("tool_result") == 1
    # what the cloud lacks is never asked for
    sent = json.dumps([first, second]) + json.dumps([one.headers for one in server.requests])
    for feature in ("diagnostics", "inline-tools", "thinking-binding", "block_binding", "1h"):
        assert feature not in sent


def test_doctor_signs_in_and_says_with_what(holdfast: Program, config: Any, tmp_path: Path) -> None:
    def checks(done: Done) -> dict[str, dict[str, str]]:
        return {one["name"]: one for one in json.loads(done.stdout)["checks"]}

    with cloud("vertex", config) as server:
        good = checks(holdfast("doctor", "--json", env=signed_in(server, tmp_path)))
        bad = checks(holdfast("doctor", "--json", code=1))
    assert good["key"]["status"] == "ok"
    assert good["key"]["detail"] == "GOOGLE_APPLICATION_CREDENTIALS, for Google Cloud (us-east-1)"
    assert server.tokens_given == 1
    assert bad["key"]["status"] == "fail"
    assert "gcloud auth application-default login" in bad["key"]["fix"]


def test_without_a_sign_in_it_says_what_to_run(holdfast: Program, config: Any) -> None:
    with cloud("bedrock", config) as server:
        done = holdfast("-p", "hi", code=3)
    assert "Couldn't sign in to Amazon Bedrock" in done.stderr
    assert "aws sso login" in done.stderr
    assert server.requests == []


def test_without_a_region_it_says_where_to_set_one(holdfast: Program, config: Any) -> None:
    config('[provider]\nkind = "bedrock"\n')
    done = holdfast("-p", "hi", code=3)
    assert "No region is set for Amazon Bedrock." in done.stderr
    assert "AWS_REGION" in done.stderr


def test_a_cloud_has_no_message_batches(
    holdfast: Program, config: Any, tmp_path: Path, work: Path
) -> None:
    (work / "tasks.md").write_text("# Questions\n\n- What is this?\n")
    with cloud("foundry", config) as server:
        done = holdfast("run", "tasks.md", "--batch-api", code=2, env=signed_in(server, tmp_path))
    assert "Microsoft Foundry has no message batches." in done.stderr
    assert "Leave out --batch-api" in done.stderr


def test_a_fallback_model_is_asked_in_the_same_cloud(
    holdfast: Program, config: Any, tmp_path: Path
) -> None:
    with cloud("bedrock", config, {"turns": [{"text": "Here."}]}) as server:
        server.faults = ["daily"]
        done = holdfast(
            *("-p", "hi", "-m", "claude-opus-5-5", "--fallback-model", "claude-opus-4-6"),
            env=signed_in(server, tmp_path),
        )
    assert done.stdout.strip() == "Here."
    asked = [one.path for one in server.requests]
    assert asked[0] == "/anthropic/v1/messages"
    assert "global.anthropic.claude-opus-4-6-v1" in asked[-1]
