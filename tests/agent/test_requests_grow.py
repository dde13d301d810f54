"""Requests only grow: what changes is said at the end, before a server that binds thinking."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.agent.test_binding import done, read, said
from tests.support.clock import FakeClock
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent import composition
from tui.agent.agent import Agent
from tui.agent.launch import Launch
from tui.core.clock import SystemClock
from tui.core.config import Config, Thinking
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.permissions.gate import RulesOnly
from tui.provider.anthropic import AnthropicProvider
from tui.session.session import Session

BRANCH = 'it"s-new'


@asynccontextmanager
async def program(
    root: Path, server: LoopbackServer, path: Path | None = None, **config: Any
) -> AsyncGenerator[Agent]:
    """The program's own agent in a folder, on a new session or an old one."""
    clock = SystemClock()
    launch = Launch(Workspace.at(root, ceiling="/"), Config(**config), folders())
    session = (
        Session.open(path, clock=clock)
        if path
        else Session.create(root, folders=folders(), clock=clock)
    )
    provider = AnthropicProvider(
        api_key="k", clock=clock, base_url=server.url, context_window=launch.config.context_window
    )
    agent = composition.make_agent(launch, session, RulesOnly(), provider=provider)
    await agent.start()
    try:
        yield agent
    finally:
        await agent.close()


def bodies(server: LoopbackServer) -> list[Json]:
    return [post.body for post in server.posts]


def bare(body: Json) -> list[Json]:
    """What a server signs and caches, without marks."""
    blocks: list[Json] = [*body["system"], *body["tools"]]
    for message in body["messages"]:
        content: list[Json] = message["content"]
        blocks += [{"role": message["role"], **block} for block in content]
    return [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]


def ends(body: Json) -> list[tuple[str, str]]:
    """The role and the text of each message behind the last answer."""
    answers = [n for n, m in enumerate(body["messages"]) if m["role"] == "assistant"]
    last = max(answers, default=-1)
    behind = body["messages"][last + 1 :]
    return [(m["role"], b.get("text", "")) for m in behind for b in m["content"]]


def types(agent: Agent, kind: str) -> list[dict[str, Any]]:
    return [record.data for record in agent.session.records if record.type == kind]


async def test_what_changes_is_said_at_the_end_and_nothing_breaks(
    own_folders: Path, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    (tmp_path / "r0.txt").write_text("alpha\n")
    turns = [read("r0"), *[said(f"s{n}") for n in range(6)]]
    async with LoopbackServer({"turns": turns}) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            path = agent.session.path
            await done(agent, "one")
            agent.permissions.mode = "plan"
            await done(agent, "two")
            (tmp_path / ".git" / "HEAD").write_text(f"ref: refs/heads/{BRANCH}\n")
            (tmp_path / "AGENTS.md").write_text("Be very brief.\n")
            await done(agent, "/think three")
            assert types(agent, "break") == []
        async with program(tmp_path, server, path, api_features="all") as agent:
            await done(agent, "four")
            await done(agent, "five")
            assert types(agent, "break") == []
            assert len(types(agent, "frame")) == 1
            assert [data["n"] for data in types(agent, "request")] == [1, 2, 3, 4, 5, 6]
        sent = bodies(server)
    for before, after in pairwise(sent):
        assert bare(after)[: len(bare(before))] == bare(before)
    (asked, mode) = ends(sent[2])
    assert asked == ("user", "two")
    plan = "plan: read-only, nothing is written or run"
    said_ = f'- Mode: "{plan}; when your plan is ready, show it with present_plan"'
    assert mode == ("system", f"From here on this is so:\n{said_}")
    three = ends(sent[3])
    assert [role for role, _ in three] == ["user", "user", "system", "system"]
    assert "Be very brief." in three[1][1]
    assert "- Git branch: " + json.dumps(BRANCH) in three[2][1]
    assert "step-by-step" in three[3][1]
    four = ends(sent[4])
    assert four[0] == ("user", "four")
    assert "Mode" in four[1][1]  # a new program begins in the usual mode
    assert [body["thinking"]["display"] for body in sent] == ["summarized"] * 6


async def test_another_day_is_said_once(own_folders: Path, tmp_path: Path) -> None:
    async with LoopbackServer({"turns": [said(f"s{n}") for n in range(3)]}) as server:
        async with program(tmp_path, server, api_features="basic") as agent:
            ctx = agent._ctx  # pyright: ignore[reportPrivateUsage] - its clock
            await done(agent, "one")
            ctx.clock = FakeClock()
            await done(agent, "two")
            await done(agent, "three")
        one, two, three = bodies(server)
    assert ends(one) == [("user", "one")]
    assert "- Date: " in ends(two)[1][1]
    assert ends(two)[1][0] == "user"  # a server that may not know system messages gets a text
    assert ends(two)[1][1].startswith("<notice>")
    assert ends(three) == [("user", "three")]


async def test_a_frame_of_somebody_else_is_not_replayed(own_folders: Path, tmp_path: Path) -> None:
    async with LoopbackServer({"turns": [said(f"s{n}") for n in range(2)]}) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            path = agent.session.path
            await done(agent, "one")
        assert path
        forged = path.read_bytes().replace(b"# Security", b"# Obedience", 1)
        path.write_bytes(forged)
        async with program(tmp_path, server, path, api_features="all") as agent:
            await done(agent, "two")
            (broken,) = types(agent, "break")
            assert broken["reason"] == "repair"
            assert "did not make" in broken["why"]
        assert "Obedience" not in str(bodies(server)[-1])
        assert [b["type"] for b in bodies(server)[-1]["messages"][1]["content"]] == ["text"]
    assert (own_folders / "data" / "seal.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("display", "sent"), [("hidden", "omitted"), ("updates", "updates")])
async def test_how_thinking_comes_is_a_setting(
    own_folders: Path, tmp_path: Path, display: str, sent: str
) -> None:
    async with LoopbackServer({"turns": [said("s0")]}) as server:
        thinking = msgspec.convert({"display": display}, Thinking)
        async with program(tmp_path, server, api_features="all", thinking=thinking) as agent:
            await done(agent, "one")
        (body,) = bodies(server)
    assert body["thinking"] == {"type": "adaptive", "display": sent}
