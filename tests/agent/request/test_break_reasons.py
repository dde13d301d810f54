"""Why a request does not extend the last: each of these was once a break that nothing explained,
or a request that the server refused. The server of these tests enforces its bindings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from tests.agent.test_binding import done, read, said, thoughts
from tests.agent.test_requests_grow import program
from tests.support.generated_session import Late
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.agent.request import check
from tui.agent.request.break_reasons import BreakReason
from tui.context.request_trail import has_thinking
from tui.core.config import Compaction, Config, Prune
from tui.core.facts import Overlay
from tui.provider import catalogue

ALL: dict[str, Any] = {"api_features": "all"}
SUMMARY: Json = {"text": "What was done."}
SHORT = Compaction(memory_flush=False, keep_messages=2)


@pytest.fixture
def root(tmp_path: Path, own_folders: Path) -> Path:
    for n in range(10):
        (tmp_path / f"r{n}.txt").write_text(f"alpha beta {n}\n" * 300)
    return tmp_path


def turns(first: int, end: int) -> list[Json]:
    return [turn for n in range(first, end) for turn in (read(f"r{n}"), said(f"s{n}"))]


def results(agent: Agent) -> list[str]:
    return [record.id for record in agent.session.records if record.type == "tool_result"]


def breaks(agent: Agent) -> list[tuple[str, str]]:
    found = (record.data for record in agent.session.records if record.type == "break")
    return [(data["reason"], data["by"]) for data in found]


async def mask(agent: Agent, result: int, view: Literal["masked", "full"] = "masked") -> None:
    await agent.context.overlay([Overlay(results(agent)[result], view, "person")])


async def compact(agent: Agent) -> None:
    async for _ in agent.context.compact():
        pass


async def test_a_mask_behind_an_older_break_before_another_model(root: Path) -> None:
    async with (
        LoopbackServer({"turns": turns(0, 4), "catalogue": True}) as server,
        program(root, server, **ALL) as agent,
    ):
        await done(agent, "one")
        await done(agent, "two")
        await mask(agent, 0)
        await done(agent, "three")
        await mask(agent, 1)
        agent.models.use(catalogue.model_info("claude-opus-5-5"))
        await done(agent, "four")
        assert breaks(agent) == [("mask", "person")] * 2
        assert len(server.posts) == 8


async def test_a_rule_that_prunes_by_turns(root: Path) -> None:
    async with LoopbackServer({"turns": turns(0, 4)}) as server:
        rule = Prune(after_turns=1, when="turns")
        async with program(root, server, prune=rule, **ALL) as agent:
            for n in range(4):
                await done(agent, f"prompt {n}")
            assert breaks(agent) == [("prune", "program")] * 2
            assert len(server.posts) == 8


@pytest.mark.parametrize(
    ("features", "behind"),
    [("all", []), ("basic", [("pin", "person")])],  # behind the server's own it is said at the end
)
async def test_a_pin_of_what_a_summary_covers(
    root: Path, features: str, behind: list[tuple[str, str]]
) -> None:
    script = [*turns(0, 4), SUMMARY, said("s5"), said("s6"), said("s7")]
    async with LoopbackServer({"turns": script}) as server:
        kept = Config(compaction=Compaction(keep_messages=2, memory_flush=False)).compaction
        async with program(root, server, compaction=kept, api_features=features) as agent:
            for n in range(4):
                await done(agent, f"prompt {n}")
            await compact(agent)
            await done(agent, "five")
            await agent.context.pin({results(agent)[0]: True})
            await done(agent, "six")
            await agent.context.pin(
                {results(agent)[3]: True}
            )  # nothing of it is sent in another way
            await done(agent, "seven")
            assert breaks(agent) == [("compaction", "person"), *behind]


async def test_a_mask_between_a_compaction_and_its_undoing(root: Path) -> None:
    script = [*turns(0, 4), SUMMARY, said("s5")]
    async with LoopbackServer({"turns": script}) as server:
        kept = Config(compaction=Compaction(keep_messages=2, memory_flush=False)).compaction
        async with program(root, server, compaction=kept, **ALL) as agent:
            for n in range(4):
                await done(agent, f"prompt {n}")
            await compact(agent)
            await mask(agent, 1)
            await agent.context.uncompact()
            await mask(agent, 2)
            await done(agent, "five")
            assert breaks(agent) == [("mask", "person")]
            first = next(r for r in agent.session.records if r.type == "break").data["from"]
            prompts = [r.id for r in agent.session.records if r.type == "user"]
            assert first == prompts[1]


async def test_a_tool_that_joined_is_not_announced_behind_a_frame_that_has_it(root: Path) -> None:
    async with (
        LoopbackServer({"turns": [said(f"s{n}") for n in range(4)]}) as server,
        program(root, server, **ALL) as agent,
    ):
        await done(agent, "one")
        agent._requests.exchange((), [Late()])  # pyright: ignore[reportPrivateUsage] - as MCP does
        await done(agent, "two")
        assert "tool_addition" in str(server.posts[1].body["messages"])
        agent.context.reload()
        await done(agent, "three")
        assert "tool_addition" not in str(server.posts[2].body["messages"])
        assert server.posts[2].body["tools"][-1]["name"] == Late.name
        await done(agent, "four")
        assert breaks(agent) == [("reload", "program")]


async def test_a_frame_of_another_installation_is_one_break(root: Path, own_folders: Path) -> None:
    async with LoopbackServer({"turns": [said(f"s{n}") for n in range(2)]}) as server:
        async with program(root, server, **ALL) as agent:
            path = agent.session.path
            await done(agent, "one")
        (own_folders / "data" / "seal.key").unlink()
        (root / "AGENTS.md").write_text("Be brief.\n")
        async with program(root, server, path, **ALL) as agent:
            await done(agent, "two")
            assert breaks(agent) == [("reload", "program")]


@pytest.mark.parametrize("features", ["all", "basic"])
async def test_a_compaction_before_the_first_request_in_a_new_frame(
    root: Path, own_folders: Path, features: str
) -> None:
    script = [*turns(0, 4), SUMMARY, said("s5")]
    async with LoopbackServer({"turns": script}) as server:
        options: dict[str, Any] = {"compaction": SHORT, "api_features": features}
        async with program(root, server, **options) as agent:
            path = agent.session.path
            for n in range(4):
                await done(agent, f"prompt {n}")
        (own_folders / "data" / "seal.key").unlink()
        (root / "AGENTS.md").write_text("Be brief.\n")
        async with program(root, server, path, **options) as agent:
            await mask(agent, 3)
            await compact(agent)
            await done(agent, "five")
        assert len(server.posts) == 10


async def test_a_new_frame_before_a_break_that_another_model_brought(root: Path) -> None:
    call: Json = {"tools": read("r1")["tools"]}
    script = [*turns(0, 1), call, {"text": "s1"}, {"text": "s2"}, said("s3")]
    async with (
        LoopbackServer({"turns": script, "catalogue": True}) as server,
        program(root, server, **ALL) as agent,
    ):
        await done(agent, "one")
        agent.models.use(catalogue.model_info("claude-opus-4-8"))
        (root / "AGENTS.md").write_text("Be brief.\n")
        agent.context.reload()
        await done(agent, "two")
        await mask(agent, 1)
        await done(agent, "three")
        agent.models.use(catalogue.model_info("claude-sonnet-5-5"))
        await done(agent, "four")
        assert breaks(agent) == [("mask", "person"), ("reload", "program")]


async def test_a_rule_that_pruned_while_another_model_was_asked(root: Path) -> None:
    script = [*turns(0, 2), {"text": "s2"}, said("s3")]
    rule = Prune(after_turns=1, when="turns")
    async with (
        LoopbackServer({"turns": script, "catalogue": True}) as server,
        program(root, server, prune=rule, **ALL) as agent,
    ):
        await done(agent, "one")
        await done(agent, "two")
        agent.models.use(catalogue.model_info("claude-haiku-5-5"))
        await done(agent, "three")
        agent.models.use(catalogue.model_info("claude-sonnet-5-5"))
        await done(agent, "four")
        assert {reason for reason, _ in breaks(agent)} == {"prune"}


async def test_a_rule_that_pruned_before_a_break_that_another_model_brought(root: Path) -> None:
    quiet = [{"tools": read(f"r{n}")["tools"]} for n in (2, 3)]
    script = [*turns(0, 2), quiet[0], {"text": "s2"}, quiet[1], {"text": "s3"}, said("s4")]
    rule = Prune(after_turns=1, when="turns")
    async with (
        LoopbackServer({"turns": script, "catalogue": True}) as server,
        program(root, server, prune=rule, **ALL) as agent,
    ):
        await done(agent, "one")
        await done(agent, "two")
        agent.models.use(catalogue.model_info("claude-sonnet-5"))
        await done(agent, "three")
        await done(agent, "four")
        agent.models.use(catalogue.model_info("claude-sonnet-5-5"))
        await done(agent, "five")
        assert {reason for reason, _ in breaks(agent)} == {"prune"}


async def test_a_request_beside_the_conversation_where_the_reason_says_too_little(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        LoopbackServer({"turns": turns(0, 2), "catalogue": True}) as server,
        program(root, server, **ALL) as agent,
    ):
        await done(agent, "one")
        await done(agent, "two")
        await mask(agent, 0)
        late = BreakReason("mask", "person", agent.session.records[-1].id)

        def too_late(*_: object) -> BreakReason:
            return late

        monkeypatch.setattr(check, "reason_of", too_late)
        messages = agent.context.next_request(prompt_follows=True).messages
        assert not any(has_thinking(message["content"]) for message in messages)


async def test_thoughts_behind_a_summary_that_another_model_brought_stay(root: Path) -> None:
    script = [*turns(0, 3), SUMMARY, said("o1"), said("o2"), said("s4")]
    async with (
        LoopbackServer({"turns": script, "catalogue": True}) as server,
        program(root, server, compaction=SHORT, **ALL) as agent,
    ):
        for n in range(3):
            await done(agent, str(n))
        agent.models.use(catalogue.model_info("claude-opus-4-8"))
        await compact(agent)
        await done(agent, "three")
        await done(agent, "four")
        agent.models.use(catalogue.model_info("claude-sonnet-5-5"))
        await done(agent, "five")
        assert thoughts(server)[-2:] == ["o1", "o2"]
        assert breaks(agent) == [("compaction", "person")]


async def test_a_mask_just_before_a_summary_that_was_undone(root: Path) -> None:
    script = [*turns(0, 3), SUMMARY, said("s3"), said("s4")]
    async with (
        LoopbackServer({"turns": script, "catalogue": True}) as server,
        program(root, server, compaction=SHORT, **ALL) as agent,
    ):
        for n in range(3):
            await done(agent, str(n))
        await mask(agent, 1)
        await compact(agent)
        await done(agent, "three")
        await agent.context.uncompact()
        await done(agent, "four")
        assert thoughts(server) == ["r0", "s0"]
        assert breaks(agent) == [("compaction", "person"), ("mask", "person")]
