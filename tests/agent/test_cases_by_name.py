"""Cases in which requests must go on growing, each by name, before a server that binds thinking.

A request that the server refused would be one more than the script has turns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tui
from tests.agent.test_binding import OPUS, SONNET, breaks, done, mask, read, said, talking, thoughts
from tests.agent.test_requests_grow import bare, program, types
from tests.support.agents import make_agent
from tests.support.clock import PATIENCE_S
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.prompts import parse
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Compaction, Config, Guard
from tui.core.paths import folders
from tui.permissions.types import Mode
from tui.provider.anthropic import AnthropicProvider
from tui.session.reader import path_to
from tui.session.reader import read as read_file
from tui.session.session import Session

READ_25: Json = {
    "thinking": "all at once",
    "tools": [{"name": "read_file", "input": {"path": f"r{n % 10}.txt"}} for n in range(25)],
}


async def test_a_prompt_interrupted_before_its_answer_while_the_mode_changed(
    own_folders: Path, tmp_path: Path
) -> None:
    slow = said("never", delay_s=PATIENCE_S)
    async with LoopbackServer({"turns": [said("s0"), slow, said("s2"), said("s3")]}) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            await done(agent, "one")
            async for event in agent.send(parse("two")):
                if isinstance(event, facts.RequestSent):
                    await server.post(2)
                    agent.permissions.mode = "plan"
                    agent.cancel()
            await done(agent, "three")
            await done(agent, "four")
            assert types(agent, "break") == []
        assert len(server.posts) == 4
        assert thoughts(server) == ["s0", "s2"]


async def test_a_prompt_whose_answer_another_model_gave(own_folders: Path, tmp_path: Path) -> None:
    slow = said("never", delay_s=PATIENCE_S)
    turns = [said("o0"), slow, said("s1"), said("o1")]
    async with talking(tmp_path, *turns) as (agent, server):
        agent.models.use(OPUS)
        await done(agent, "one")
        async for event in agent.send(parse("two")):
            if isinstance(event, facts.RequestSent):
                await server.post(2)
                agent.cancel()
        agent.models.use(SONNET)
        await done(agent, "three")
        agent.models.use(OPUS)
        await done(agent, "four")
        assert breaks(agent) == []
        assert thoughts(server) == ["o0"]  # another model's, for a server that may mind


async def test_a_rewind_past_a_break_brings_all_thinking_back(
    own_folders: Path, tmp_path: Path
) -> None:
    session = Session.create(tmp_path, folders=folders(), clock=SystemClock())
    path = session.path
    assert path
    turns = [read("r0"), said("s0"), said("s1"), said("s2"), said("s3"), said("s4")]
    async with talking(tmp_path, *turns, session=session) as (agent, server):
        await done(agent, "read it")
        await done(agent, "what is it?")
        await mask(agent)
        result = next(r.id for r in agent.session.records if r.type == "overlay")
        await done(agent, "and now?")
        assert thoughts(server) == []
        assert breaks(agent) == [("mask", "person")]
        await agent.session.rewind(result)
        await agent.close()
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        back = make_agent(
            tmp_path,
            provider,
            model=SONNET,
            session=Session.open(path, clock=SystemClock()),
            config=Config(compaction=Compaction(memory_flush=False)),
        )
        await back.start()
        await done(back, "and then?")
        assert thoughts(server) == ["r0", "s0", "s1"]
        assert breaks(back) == []
        await back.close()


async def test_failover_in_mid_turn_is_sent_all_that_it_may(tmp_path: Path) -> None:
    turns = [said("s0"), read("r1"), said("o1", faults=[{"status": 529}]), said("o2")]
    async with talking(tmp_path, *turns, fallbacks=(OPUS.id,)) as (agent, server):
        await done(agent, "one")
        await done(agent, "read it")
        await done(agent, "and now?")
        models = [post.body["model"] for post in server.posts]
        assert models == [SONNET.id] * 3 + [OPUS.id] * 2
        assert breaks(agent) == []


@pytest.mark.parametrize("version", ["", "99.0.0"])
async def test_resumed_under_another_key_and_version(
    own_folders: Path, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LoopbackServer({"turns": [said(f"s{n}") for n in range(3)]}) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            path = agent.session.path
            await done(agent, "one")
            await done(agent, "two")
        if version:
            monkeypatch.setattr(tui, "__version__", version)
        async with program(tmp_path, server, path, api_features="all") as agent:
            await done(agent, "three")
            assert types(agent, "break") == []
            assert len(types(agent, "frame")) == 1
        assert thoughts(server) == ["s0", "s1"]


async def test_resumed_in_another_folder(own_folders: Path, tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    async with LoopbackServer({"turns": [said(f"s{n}") for n in range(3)]}) as server:
        async with program(there, server, api_features="all") as agent:
            path = agent.session.path
            await done(agent, "one")
        async with program(here, server, path, api_features="all") as agent:
            await done(agent, "two")
            await done(agent, "three")
            assert types(agent, "break") == []
        assert thoughts(server) == ["s0", "s1"]
        assert str(here) in str(server.posts[1].body["messages"])
        assert bare(server.posts[0].body)[:3] == bare(server.posts[2].body)[:3]


async def test_killed_between_continue_and_its_answer(own_folders: Path, tmp_path: Path) -> None:
    slow = said("never", delay_s=PATIENCE_S)
    async with LoopbackServer({"turns": [said("s0"), slow, said("s1")]}) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            path, saved = agent.session.path, b""
            assert path
            await done(agent, "one")
            async for event in agent.go_on():
                if isinstance(event, facts.RequestSent):
                    await server.post(2)
                    saved = path.read_bytes()
                    agent.cancel()
        path.write_bytes(saved)  # what was on disk when it was killed
        async with program(tmp_path, server, path, api_features="all") as agent:
            async for _ in agent.go_on():
                pass
            assert types(agent, "break") == []
        one, two = (post.body for post in server.posts[1:])
        assert [m["content"] for m in one["messages"]] == [m["content"] for m in two["messages"]]


async def test_25_parallel_calls_and_plan_mode_are_read_from_the_cache(
    own_folders: Path, tmp_path: Path
) -> None:
    for n in range(10):
        (tmp_path / f"r{n}.txt").write_text(f"alpha beta {n}\n" * 60)
    turns = [READ_25, *[said(f"s{n}") for n in range(6)]]
    script: Json = {"turns": turns, "catalogue": True, "priced": True}
    async with LoopbackServer(script) as server:
        async with program(tmp_path, server, api_features="all", context_window=1_000_000) as agent:
            await done(agent, "read all of them")
            start = len([r for r in agent.session.records if r.type == "assistant"])
            plan: list[tuple[str, Mode]] = [
                ("two", "ask"),
                ("three", "plan"),
                ("four", "plan"),
                ("five", "accept_edits"),
                ("six", "ask"),
            ]
            for text, mode in plan:
                agent.permissions.mode = mode
                await done(agent, text)
            assert types(agent, "break") == []
            answers = [r.data["usage"] for r in agent.session.records if r.type == "assistant"]
        assert len(server.posts) == 7
        for usage in answers[start:]:
            got = usage["cache_read_input_tokens"]
            whole = got + usage["cache_creation_input_tokens"] + usage["input_tokens"]
            assert got >= 0.95 * whole


@pytest.mark.parametrize("signature", ["", None])
async def test_thinking_without_a_signature_is_left_out(
    own_folders: Path, tmp_path: Path, signature: str | None
) -> None:
    thought: Json = {"thinking": "unsigned"}
    thought |= {} if signature is None else {"signature": signature}
    unsigned: Json = {
        "content": [{"block": {"type": "thinking", **thought}}, {"text": "That was it."}]
    }
    async with LoopbackServer({"turns": [unsigned, said("s1"), said("s2")]}) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            for text in ("one", "two", "three"):
                await done(agent, text)
            assert types(agent, "break") == []
        assert thoughts(server) == ["s1"]


async def test_what_nobody_knows_comes_back_as_it_came(own_folders: Path, tmp_path: Path) -> None:
    odd: Json = {"type": "future_block", "id": "f1", "inner": {"b": [1, None], "a": ""}}
    turns: list[Json] = [{"thinking": "s0", "blocks": [odd], "text": "Odd."}, said("s1")]
    async with LoopbackServer({"turns": turns, "check": False}) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            await done(agent, "one")
            await done(agent, "two")
            assert types(agent, "break") == []
        answer = server.posts[-1].body["messages"][1]["content"]
    found = [{k: v for k, v in b.items() if k != "cache_control"} for b in answer]
    assert odd in found


async def test_an_imported_session_begins_without_its_thinking(
    own_folders: Path, tmp_path: Path
) -> None:
    session = Session.create(tmp_path, folders=folders(), clock=SystemClock())
    foreign = {"type": "thinking", "thinking": "theirs", "signature": "c2ln"}
    session.append("user", content=[{"type": "text", "text": "hello"}], text="hello")
    session.append("assistant", content=[foreign, {"type": "text", "text": "Hi."}], model=SONNET.id)
    await session.sync()
    path = session.path
    await session.close()
    async with LoopbackServer({"turns": [said("s0"), said("s1")]}) as server:
        async with program(tmp_path, server, path, api_features="all") as agent:
            await done(agent, "one")
            await done(agent, "two")
        assert len(server.posts) == 2
        assert [thoughts(server, n) for n in (0, 1)] == [[], ["s0"]]


async def test_resumed_under_a_key_of_another_account(own_folders: Path, tmp_path: Path) -> None:
    """The server drops the thinking of the first one; nothing breaks, and the person sees it."""
    async with LoopbackServer({"turns": [said(f"s{n}") for n in range(3)]}) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            path = agent.session.path
            await done(agent, "one")
        server.script.organizations = {"k": "another"}
        async with program(tmp_path, server, path, api_features="all") as agent:
            for text in ("two", "three"):
                seen = await done(agent, text)
                (lost,) = [e for e in seen if isinstance(e, facts.ThinkingDropped)]
                assert lost.dropped == {"organization_binding_mismatch": 1}
            assert types(agent, "break") == []
        assert len(server.posts) == 3
        assert thoughts(server) == ["s0", "s1"]


async def test_a_secret_is_masked_before_it_is_sent_and_stays_so(
    own_folders: Path, tmp_path: Path
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    turns: list[Json] = [read("r0"), said("s0"), said("s1")]
    async with LoopbackServer({"turns": turns}) as server:
        (tmp_path / "r0.txt").write_text(f"token {secret}\n")
        async with program(tmp_path, server, api_features="all", redact="record") as agent:
            path = agent.session.path
            await done(agent, f"use {secret}")
        async with program(tmp_path, server, path, api_features="all") as agent:
            await done(agent, "and now?")
            assert types(agent, "break") == []
        assert len(server.posts) == 3
        assert all(secret not in post.raw.decode() for post in server.posts)
        assert thoughts(server) == ["r0", "s0"]


async def test_another_guard_changes_nothing_that_was_sent(
    own_folders: Path, tmp_path: Path
) -> None:
    (tmp_path / "r0.txt").write_text("alpha beta gamma\n" * 2000)
    async with LoopbackServer({"turns": [read("r0"), said("s0"), said("s1")]}) as server:
        async with program(tmp_path, server, api_features="all") as agent:
            path = agent.session.path
            await done(agent, "read it")
        tight = Guard(default_bytes=4096, clamp_bytes=4096, clamp_lines=100)
        async with program(tmp_path, server, path, api_features="all", guard=tight) as agent:
            await done(agent, "and now?")
            assert types(agent, "break") == []
        assert len(server.posts) == 3
        assert thoughts(server) == ["r0", "s0"]


@pytest.mark.parametrize(
    "drops",
    [
        ["diagnostics"],
        ["betas"],
        ["compaction"],
        ["system_role"],
        ["compaction", "diagnostics", "output_config", "betas", "system_role"],
    ],
    ids="+".join,
)
async def test_a_gateway_that_drops_what_it_does_not_know(
    own_folders: Path, tmp_path: Path, drops: list[str]
) -> None:
    """It takes fields and betas out without a word: each prompt is answered all the same."""
    for n in range(5):
        (tmp_path / f"r{n}.txt").write_text(f"alpha beta {n}\n" * 300)
    turns: list[Json] = [turn for n in range(3) for turn in (read(f"r{n}"), said(f"s{n}"))]
    turns += [{"text": "What was done."}] * 6
    played = {"turns": turns, "catalogue": True, "priced": True, "drops": drops}
    short = Compaction(keep_messages=2, memory_flush=False)
    async with LoopbackServer(played) as server:
        options: dict[str, Any] = {"compaction": short, "api_features": "all"}
        async with program(tmp_path, server, **options) as agent:
            path = agent.session.path
            for n in range(3):
                agent.permissions.mode = "plan" if n == 1 else "ask"
                await done(agent, f"prompt {n}")
            async for _ in agent.context.compact():
                pass
            await done(agent, "four")
        async with program(tmp_path, server, path, **options) as agent:
            await done(agent, "five")
            assert {r["reason"] for r in types(agent, "break")} <= {"compaction"}


def usages(path: Path) -> list[Json]:
    """What the server counted for each answer of a session, on whatever branch."""
    return [r.data["usage"] for r in read_file(path).records if r.type == "assistant"]


async def test_going_from_branch_to_branch_breaks_nothing(
    own_folders: Path, tmp_path: Path
) -> None:
    """Each request extends the last one of its branch, to the byte, with all thinking in it."""
    (tmp_path / "r0.txt").write_text("alpha\n")
    turns = [read("r0"), *[said(f"s{n}") for n in range(8)]]
    script: Json = {"turns": turns, "catalogue": True, "priced": True}
    async with LoopbackServer(script) as server:

        async def on(path: Path | None, text: str) -> tuple[Path, Session]:
            async with program(tmp_path, server, path, api_features="all") as agent:
                await done(agent, text)
                assert types(agent, "break") == []
                assert len(types(agent, "frame")) == 1
                assert agent.session.path
                return agent.session.path, agent.session

        async def move(path: Path, leaf: str = "", before: str = "") -> None:
            session = Session.open(path, clock=SystemClock())
            if leaf:
                await session.move_to(path_to(read_file(path).records, leaf))
            else:
                target = next(r for r in session.records if r.data.get("text") == before)
                await session.rewind(target.id)
            await session.close()

        path, _ = await on(None, "read it")
        await on(path, "two")
        _, first = await on(path, "three")
        await move(path, before="two")
        _, second = await on(path, "other")
        assert thoughts(server) == ["r0", "s0"]
        await move(path, leaf=first.records[-1].id)
        await on(path, "four")
        assert thoughts(server) == ["r0", "s0", "s1", "s2"]
        await move(path, leaf=second.records[-1].id)
        await on(path, "another")
        assert thoughts(server) == ["r0", "s0", "s3"]
        await move(path, before="read it")  # where nothing was sent yet
        await on(path, "begin again")
        assert thoughts(server) == []
        assert len(server.posts) == 8
        read_tokens = [usage["cache_read_input_tokens"] for usage in usages(path)]
        assert all(read_tokens[1:]), "what each branch sent is read from the cache"
