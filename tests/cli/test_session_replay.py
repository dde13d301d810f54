"""`holdfast sessions replay`: a past request sent again, with a change, on the strict server."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_binding import read, said
from tests.cli.test_request_commands import Run, run, talked
from tests.support.server import LoopbackServer
from tests.support.serving import serving
from tui.cli import session_replay
from tui.core.paths import folders
from tui.session import catalog
from tui.session.reader import read as read_session

__all__ = ["run", "talked"]

Sent = tuple[Path, list[bytes]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Generator[LoopbackServer]:
    with serving({"turns": [read("r0"), said("again")]}) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-000")
        # as if it were the server that signed the thinking
        monkeypatch.setattr(session_replay, "server_name", _first_party)
        yield server


def _first_party(_: object) -> str:
    return "https://api.anthropic.com"


def bodies(server: LoopbackServer) -> list[dict[str, Any]]:
    return [json.loads(post.raw) for post in server.posts]


def test_as_it_was_sent_its_calls_are_shown_and_never_run(
    run: Run, talked: Sent, server: LoopbackServer, tmp_path: Path
) -> None:
    path, sent = talked
    (tmp_path / "r0.txt").unlink()
    before = path.read_bytes()
    code, out, err = run("replay", path, "--at", 2, "--yes")
    assert code == 0, err
    assert "Request 2 as it was sent.\n" in err
    assert "No call will be run." in err
    assert "── request 2, then: claude-sonnet-5-5 ──" in out
    assert "── now: claude-sonnet-5-5 ──" in out
    assert '→ read_file {\n  "path": "r0.txt"\n}' in out
    (body,) = bodies(server)
    then = json.loads(sent[1])
    assert then.pop("diagnostics")  # of an answer that this one doesn't follow
    assert body == then
    assert path.read_bytes() == before
    kept = read_session(catalog.resolve(err.split("Kept as session ")[1][:12], folders()))
    assert kept.header.origin == catalog.id_of(path)
    assert [r.type for r in kept.branch[-2:]] == ["assistant", "title"]
    assert kept.branch[-1].data["title"] == f"Replay of {catalog.id_of(path)}, request 2"
    assert not [r for r in kept.branch if r.type == "tool_result"][1:]


def test_with_another_model_and_effort(run: Run, talked: Sent, server: LoopbackServer) -> None:
    path, sent = talked
    words = ("replay", path, "--at", 4, "--model", "claude-opus-5-5", "--effort", "low", "--yes")
    code, out, err = run(*words, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["after"]["model"] == "claude-opus-5-5"
    assert told["before"]["content"][-1]["text"] == "That was s1."
    (body,) = bodies(server)
    old = json.loads(sent[3])
    assert (old["model"], body["model"]) == ("claude-sonnet-5-5", "claude-opus-5-5")
    assert body["output_config"]["effort"] == "low"
    assert [tool["name"] for tool in body["tools"]] == [tool["name"] for tool in old["tools"]]
    kinds = {block["type"] for message in body["messages"] for block in message["content"]}
    assert "thinking" not in kinds
    assert "Request 4 with a change: model" in err


def test_a_masked_result_is_sent_whole(run: Run, talked: Sent, server: LoopbackServer) -> None:
    path, sent = talked
    assert b"Masked by the person" in sent[4]
    code, _, err = run("replay", path, "--at", 5, "--unmask", 3, "--yes")
    assert code == 0, err
    assert "älpha 0" in str(bodies(server)[0]["messages"])
    assert "of its messages changed" in err
    assert run("replay", path, "--at", 5, "--unmask", 77, "--yes")[0] == 2
    code, _, err = run("replay", path, "--at", 5, "--unmask", 1, "--yes")
    assert (code, "Message 1 was sent whole" in err) == (2, True)
    assert len(server.posts) == 1


def test_nothing_is_sent_without_a_yes(run: Run, talked: Sent, server: LoopbackServer) -> None:
    path, _ = talked
    code, _, err = run("replay", path, "--at", 1)
    assert code == 2
    assert "There is nobody to ask whether to send it." in err
    assert run("replay", path)[0] == 2
    assert run("replay", path, "--at", 99, "--yes")[0] == 2
    path.write_bytes(path.read_bytes().replace(b"That was s0.", b"That was s7.", 1))
    code, _, err = run("replay", path, "--at", 5, "--yes")
    assert code == 1
    assert "Request 5 can't be rebuilt: something in messages 2 to 8 is not what was sent." in err
    assert server.posts == []
