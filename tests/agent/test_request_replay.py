"""Requests made again from the file alone are, to the byte, what a server was sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_binding import done, read, said
from tests.agent.test_requests_grow import program
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.agent.request.pruning import PruneSchedule
from tui.agent.request.state import Prepared
from tui.context.request_replay import ReplayedRequest, RequestReplay
from tui.core.config import Prune
from tui.core.facts import Overlay
from tui.core.files import installation_key
from tui.core.paths import folders
from tui.provider.anthropic import convert
from tui.session import reader


def replay(path: Path | None) -> RequestReplay:
    assert path
    return RequestReplay(reader.read(path).records, installation_key(folders().data))


def replayed(path: Path | None) -> list[ReplayedRequest]:
    return list(replay(path).every())


def bodies(server: LoopbackServer) -> list[bytes]:
    """What was sent of the conversation, as it stood on the wire."""
    return [post.raw for post in server.posts]


def assert_same(path: Path | None, server: LoopbackServer) -> None:
    """All that was sent is made again: in one go, and each for itself."""
    found = replayed(path)
    assert [one.problem for one in found] == [""] * len(found)
    assert [one.own_frame for one in found] == [True] * len(found)
    made = [convert.body(one.request) for one in found if one.request]
    assert made == bodies(server)
    each = replay(path)
    alone = [each.at(number).request for number in each.requests]
    assert [convert.body(request) for request in alone if request] == made


def turns(count: int) -> list[Json]:
    return [turn for n in range(count) for turn in (read(f"r{n}"), said(f"s{n}"))]


@pytest.fixture
def root(tmp_path: Path, own_folders: Path) -> Path:
    for n in range(10):
        (tmp_path / f"r{n}.txt").write_text(f"älpha beta {n}\n" * 300)
    return tmp_path


async def mask(agent: Agent, turn: int) -> None:
    results = [r for r in agent.session.records if r.type == "tool_result"]
    await agent.context.overlay([Overlay(results[turn].id, "masked", "person")])


async def test_every_request_over_changes_and_restarts(root: Path) -> None:
    async with LoopbackServer({"turns": turns(6), "catalogue": True}) as server:
        async with program(root, server, api_features="all") as agent:
            path = agent.session.path
            await done(agent, "one")
            agent.permissions.mode = "plan"
            await done(agent, "/think two")
            await mask(agent, 0)
            await done(agent, "three")
        (root / "AGENTS.md").write_text("Be brief.\n")
        async with program(root, server, path, api_features="all") as agent:
            await done(agent, "four")
            agent.context.reload()
            await done(agent, "five")
            assert_same(path, server)  # while it is open, and locked
            await done(agent, "six")
        assert len(server.posts) == 12
        assert_same(path, server)


@pytest.mark.parametrize("when", ["turns", "auto", "pays"])
async def test_the_rule_that_pruned_is_the_recorded_one(root: Path, when: Any) -> None:
    rule = Prune(after_turns=1, min_chars=500, when=when)
    async with LoopbackServer({"turns": turns(4)}) as server:
        async with program(root, server, prune=rule) as agent:
            path = agent.session.path
            for n in range(4):
                await done(agent, f"prompt {n}")
        assert_same(path, server)


async def test_numbers_mean_one_request_each_on_all_branches(root: Path) -> None:
    async with LoopbackServer({"turns": turns(4)}) as server:
        async with program(root, server, api_features="all") as agent:
            path = agent.session.path
            await done(agent, "one")
            await done(agent, "two")
            second = [r for r in agent.session.records if r.type == "user"][1]
            await agent.session.rewind(second.id)
        async with program(root, server, path, api_features="all") as agent:
            await done(agent, "other")
            branch = [r for r in agent.session.records if r.type == "request"]
            assert [record.data["n"] for record in branch] == [1, 2, 5, 6]
        assert list(replay(path).requests) == [1, 2, 3, 4, 5, 6]
        assert_same(path, server)


async def test_a_change_of_the_file_is_found_where_it_is(root: Path) -> None:
    async with LoopbackServer({"turns": turns(3)}) as server:
        async with program(root, server, api_features="all") as agent:
            path = agent.session.path
            for n in range(3):
                await done(agent, f"prompt {n}")
        assert path
        before = path.read_bytes()
        path.write_bytes(before.replace(b"That was s1.", b"That was s9."))
        problems = [one.problem for one in replayed(path)]
        assert problems[:4] == [""] * 4
        assert problems[4:] == [
            "message 8 is not what was sent",
            "something in messages 8 to 10 is not what was sent",
        ]
        path.write_bytes(before.replace(b"# Security", b"# Obedience", 1))
        problems = [one.problem for one in replayed(path)]
        assert all("the frame" in problem for problem in problems)


async def test_a_frame_of_another_installation_is_said(root: Path) -> None:
    async with LoopbackServer({"turns": turns(2)}) as server:
        async with program(root, server, api_features="all") as agent:
            path = agent.session.path
            agent.permissions.mode = "plan"
            await done(agent, "one")
        (folders().data / "seal.key").write_bytes(b"k" * 32)
        async with program(root, server, path, api_features="all") as agent:
            await done(agent, "two")
        found = replayed(path)
        assert [one.own_frame for one in found] == [False, False, True, True]
        assert [one.problem for one in found] == [""] * 4
        assert [convert.body(one.request) for one in found if one.request] == bodies(server)
        assert "untrusted" in json.dumps(found[-1].record.data)


async def test_a_mask_that_comes_while_a_request_is_made_is_in_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_request = PruneSchedule.before_request

    async def masked(schedule: PruneSchedule, prepared: Prepared) -> Prepared:
        prepared = await before_request(schedule, prepared)
        results = [r for r in schedule.ctx.records if r.type == "tool_result"]
        if len(results) == 1:
            overlay = Overlay(results[0].id, "masked", "person")
            schedule.ctx.record(overlay)
        return prepared

    monkeypatch.setattr(PruneSchedule, "before_request", masked)
    async with LoopbackServer({"turns": turns(1)}) as server:
        async with program(root, server) as agent:
            path = agent.session.path
            await done(agent, "one")
        assert b"beta" not in bodies(server)[1]
        assert_same(path, server)
