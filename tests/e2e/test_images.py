"""Images of a prompt through the real program, to a server that rejects what the API rejects."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.context.pictures import png
from tests.e2e.conftest import Serve
from tests.support.program import Program, of_type

KEY = "sk-ant-test-0123456789"


@pytest.fixture
def shot(work: Path) -> bytes:
    data = png(640, 400) + b"\0" * 3000
    (work / "shot.png").write_bytes(data)
    return data


def images(body: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [block["source"] for block in blocks if block["type"] == "image"]


@pytest.mark.slow
def test_a_mentioned_image_is_sent_resumed_viewed_and_exported(
    serve: Serve, work: Path, env: dict[str, str], config: Callable[[str], Path], shot: bytes
) -> None:
    config("")
    server = serve({"text": "A screen."}, {"text": "Still a screen."})
    holdfast = Program(work, {**env, "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url})
    events = holdfast.lines("-p", "what is this @shot.png?")
    (said,) = of_type(events, "user_message")
    assert said["text"].startswith("what is this @shot.png?\n[image 1: shot.png 640×400 ")
    source = {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(shot).decode(),
    }
    posts = [post.body for post in server.posts]
    assert images(posts[0]) == [source]

    (work / "shot.png").unlink()
    holdfast("-c", "-p", "and now?")
    assert images(server.posts[-1].body) == [source]
    assert len(server.posts) == 2, "nothing was sent a second time"

    id_ = of_type(events, "session_started")[0]["session_id"]
    view = json.loads(holdfast("sessions", "view", id_, "--json").stdout)
    assert images(view) == [source]
    ledger = [item for item in view["ledger"] if item["kind"] == "image"]
    assert [(item["tokens"], item["state"]) for item in ledger] == [(342, "full")]
    assert not json.loads(holdfast("sessions", "check", id_, "--json").stdout)["findings"]

    page = holdfast("sessions", "export", id_, "--format", "html").stdout
    assert f'src="data:image/png;base64,{source["data"]}"' in page
    assert 'alt="[image 1: shot.png 640×400 ' in page
    text = holdfast("sessions", "export", id_, "--format", "md").stdout
    assert text.count("[image 1: shot.png 640×400 ") == 1
    lines = holdfast("sessions", "export", id_, "--format", "jsonl").stdout.splitlines()
    prompt = next(r for r in map(json.loads, lines) if r["type"] == "user")
    assert prompt["content"][0]["source"] == source
    assert "(image/png, 640×400 " in holdfast("sessions", "show", id_).stdout


def test_standard_input_attaches_nothing(
    holdfast: Program, shot: bytes, script: Callable[[str], str]
) -> None:
    replay = ("--practice-script", script('[[turn]]\ntext = "ok"\n'))
    done = holdfast("--practice", *replay, "-p", "look", stdin="see @shot.png")
    assert done.stdout.strip() == "ok"
    held = holdfast("sessions", "list", "--json").stdout
    id_ = json.loads(held)[0]["id"]
    view = json.loads(holdfast("sessions", "view", id_, "--json").stdout)
    assert images(view) == []


def test_an_image_outside_is_refused_on_stderr(holdfast: Program, work: Path) -> None:
    (work.parent / "out.png").write_bytes(png(10, 10))
    done = holdfast("--practice", "--no-session", "-p", "hello @../out.png")
    assert "outside the workspace" in done.stderr


def test_the_practice_model_says_what_it_was_given(holdfast: Program, shot: bytes) -> None:
    done = holdfast("--practice", "--no-session", "-p", "what is @shot.png")
    assert "PNG, 640 × 400 pixels" in done.stdout
    assert "can't tell" in done.stdout
