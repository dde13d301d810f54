"""Compaction on demand: the server's block first, what follows keeps its thinking.

Before a server that binds thinking and signs its blocks: whatever is sent wrongly is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_binding import done, read, said, thoughts
from tests.agent.test_guards import Gives
from tests.agent.test_requests_grow import bodies, ends, program, types
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.core import facts
from tui.core.config import Compaction
from tui.core.facts import Overlay
from tui.provider import catalogue

SMALL = Compaction(keep_messages=2, memory_flush=False)
NO_ROOM: Json = {"stop_reason": "max_tokens"}
BLOCK = "compact-2026-09-04"


def script(turns: list[Json], **more: Any) -> Json:
    return {"turns": turns, "catalogue": True, "priced": True, "binding": True, **more}


def talk(count: int) -> list[Json]:
    return [said(f"s{n}", text=f"Answer {n}. " + "word " * 300) for n in range(count)]


async def compact(agent: Agent, focus: str = "") -> facts.CompactionFinished:
    found = [event async for event in agent.context.compact(focus)]
    return next(event for event in found if isinstance(event, facts.CompactionFinished))


def first(body: Json) -> Json:
    return body["messages"][0]["content"][0]


def refused(server: LoopbackServer) -> int:
    """The requests that the server took no answer for: neither a turn nor a summary."""
    asked = sum("compaction" in post.body for post in server.posts)
    return len(server.posts) - len(server.api.priced) - asked


async def test_what_follows_the_block_keeps_its_thinking(own_folders: Path, tmp_path: Path) -> None:
    async with LoopbackServer(script(talk(6))) as server:
        async with program(tmp_path, server, api_features="all", compaction=SMALL) as agent:
            for n in range(4):
                await done(agent, f"question {n}")
            finished = await compact(agent)
            assert not finished.problem
            await done(agent, "and now?")
            await done(agent, "and then?")
            (broken,) = types(agent, "break")
            (record,) = types(agent, "compaction")
        asked, after = server.posts[4], server.posts[5]
    assert asked.body["compaction"] == {"type": "summarize"}
    assert asked.body["system"] == after.body["system"]
    assert first(after.body) == record["block"]
    assert after.body["messages"][0]["role"] == "assistant"
    assert thoughts(server, 5) == ["s3"]
    assert thoughts(server, 6) == ["s3", "s4"]
    assert (broken["thoughts"], broken["reason"]) == (0, "compaction")
    assert all(BLOCK in post.headers["anthropic-beta"] for post in server.posts[4:])
    assert refused(server) == 0


async def test_only_the_newest_block_is_sent(own_folders: Path, tmp_path: Path) -> None:
    async with LoopbackServer(script(talk(9))) as server:
        async with program(tmp_path, server, api_features="all", compaction=SMALL) as agent:
            for n in range(8):
                await done(agent, f"question {n}")
                if n in {3, 6}:
                    await compact(agent)
            assert len(types(agent, "compaction")) == 2
            path = agent.session.path
        async with program(tmp_path, server, path, api_features="all", compaction=SMALL) as agent:
            await done(agent, "the last one")
            assert len(types(agent, "frame")) == 1
        last = server.posts[-1].body
    blocks = [b for m in last["messages"] for b in m["content"] if b["type"] == "compaction"]
    assert len(blocks) == 1
    assert thoughts(server) == ["s6", "s7"]
    assert refused(server) == 0


@pytest.mark.parametrize("behind", [0, 2])
async def test_undoing_brings_back_what_was_thought_before(
    own_folders: Path, tmp_path: Path, behind: int
) -> None:
    async with LoopbackServer(script(talk(8))) as server:
        async with program(tmp_path, server, api_features="all", compaction=SMALL) as agent:
            for n in range(4):
                await done(agent, f"question {n}")
            await compact(agent)
            for n in range(behind):
                await done(agent, f"behind {n}")
            await agent.context.uncompact()
            await done(agent, "undone")
            await done(agent, "the last one")
        said_ = str(server.posts[-1].body["messages"])
    assert "question 0" in said_
    assert thoughts(server) == ["s0", "s1", "s2", "s3", f"s{4 + behind}"]
    assert refused(server) == 0


async def test_a_running_turn_is_kept_whole(own_folders: Path, tmp_path: Path) -> None:
    for n in range(4):
        (tmp_path / f"r{n}.txt").write_text(f"alpha beta {n}\n" * 300)
    turns = [*talk(3), read("r0"), read("r1"), read("r2"), said("end")]
    turns[:3] = [one | {"text": "word " * 900} for one in turns[:3]]
    async with LoopbackServer(script(turns)) as server:
        config: dict[str, Any] = {"api_features": "all", "compaction": SMALL}
        async with program(tmp_path, server, **config, context_window=12_800) as agent:
            for n in range(3):
                await done(agent, f"question {n}")
            await done(agent, "read them")
            (record, *_) = types(agent, "compaction")
            broken, *_ = types(agent, "break")
            assert (record["reason"], record["follows"]) == ("automatic", True)
            assert (broken["reason"], broken["thoughts"]) == ("compaction", 0)
    assert thoughts(server)[-3:] == ["r0", "r1", "r2"]
    assert refused(server) == 0


async def test_a_turn_too_large_is_cut_in_its_midst(own_folders: Path, tmp_path: Path) -> None:
    for n in range(9):
        (tmp_path / f"r{n}.txt").write_text(f"alpha beta {n}\n" * 400)
    turns = [*[read(f"r{n}") for n in range(9)], said("end"), said("later")]
    async with LoopbackServer(script(turns)) as server:
        config: dict[str, Any] = {"api_features": "all", "compaction": SMALL}
        async with program(tmp_path, server, **config, context_window=14_000) as agent:
            await done(agent, "read all of them")
            record, *_ = types(agent, "compaction")
            assert record["follows"] is False
            await done(agent, "continue")
        after = next(p.body for p in server.posts if first(p.body)["type"] == "compaction")
        assert "read all of them" in str(after["messages"][1]["content"])
    assert refused(server) == 0


@pytest.mark.parametrize(
    "planned",
    [
        [NO_ROOM, NO_ROOM],
        [{"stop_reason": "refusal"}, {"stop_reason": "end_turn"}],
        [{"status": 400, "type": "invalid_request_error", "message": "compaction: no"}],
        [{"status": 529, "type": "overloaded_error", "message": "compaction_unavailable"}] * 9,
    ],
)
async def test_without_a_block_the_program_summarizes(
    own_folders: Path, tmp_path: Path, planned: list[Json]
) -> None:
    turns = [*talk(3), {"thinking": "sum", "text": "Our own summary."}, said("s5"), said("s6")]
    async with (
        LoopbackServer(script(turns, compactions=planned)) as server,
        program(tmp_path, server, api_features="all", compaction=SMALL) as agent,
    ):
        for n in range(3):
            await done(agent, f"question {n}")
        finished = await compact(agent)
        assert finished.summary == "Our own summary."
        await done(agent, "and now?")
        (record,) = types(agent, "compaction")
        assert "block" not in record
    assert "Our own summary." in str(server.posts[-1].body["messages"][0])
    assert thoughts(server) == []


async def test_a_block_is_asked_for_again_with_more_room(own_folders: Path, tmp_path: Path) -> None:
    async with LoopbackServer(script(talk(4), compactions=[NO_ROOM])) as server:
        async with program(tmp_path, server, api_features="all", compaction=SMALL) as agent:
            for n in range(3):
                await done(agent, f"question {n}")
            assert not (await compact(agent)).problem
            (record,) = types(agent, "compaction")
            assert record["block"]
            assert record["usage"]["output_tokens"] > 0
        one, two = (p.body["max_tokens"] for p in server.posts if "compaction" in p.body)
    assert two == 2 * one


async def test_a_block_that_is_refused_goes_on_as_text(own_folders: Path, tmp_path: Path) -> None:
    async with LoopbackServer(script(talk(8))) as server:
        async with program(tmp_path, server, api_features="all", compaction=SMALL) as agent:
            for n in range(3):
                await done(agent, f"question {n}")
            await compact(agent)
            path = agent.session.path
        assert path
        path.write_bytes(path.read_bytes().replace(b'"signature":"compaction.', b'"signature":"x.'))
        async with program(tmp_path, server, path, api_features="all", compaction=SMALL) as agent:
            await done(agent, "and now?")
            await done(agent, "and then?")
            assert types(agent, "feature")
        last = server.posts[-1].body
    assert last["messages"][0]["role"] == "user"
    assert server.script.summary in str(last["messages"][0])
    assert thoughts(server) == ["s3"]


async def test_the_block_holds_what_the_memory_keeps(own_folders: Path, tmp_path: Path) -> None:
    summary = "What was done.\n\nMEMORY\n- Tabs are forbidden."
    async with LoopbackServer(script(talk(5), summary=summary)) as server:
        kept = Compaction(keep_messages=2)
        async with program(tmp_path, server, api_features="all", compaction=kept) as agent:
            for n in range(3):
                await done(agent, f"question {n}")
            finished = await compact(agent, "the parser")
            assert finished.summary == "What was done."
            (memory,) = types(agent, "memory")
            assert memory["notes"] == ["Tabs are forbidden."]
            await done(agent, "and now?")
        asked = server.posts[3].body["compaction"]["instructions"]
        assert "MEMORY" in asked
        assert "the parser" in asked
        assert len(server.posts) == 5
    assert first(server.posts[-1].body)["content"] == summary
    assert refused(server) == 0


async def test_what_the_view_says_no_more_is_said_again(own_folders: Path, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    async with LoopbackServer(script(talk(8))) as server:
        async with program(tmp_path, server, api_features="all", compaction=SMALL) as agent:
            await done(agent, "one: the keyword is heron")
            agent.permissions.mode = "plan"
            (tmp_path / "AGENTS.md").write_text("Be very brief.\n")
            await done(agent, "two")
            pinned = next(r.id for r in agent.session.records if r.type == "user")
            await agent.context.pin({pinned: True})
            for n in range(2):
                await done(agent, f"question {n}")
            await compact(agent)
            await done(agent, "and now?")
            again = ends(bodies(server)[-1])
            await done(agent, "and then?")
            (_, *more) = ends(bodies(server)[-1])
            assert more == []
        assert [role for role, _ in again] == ["user", "user", "user", "system"]
        assert "Be very brief." in again[1][1]
        assert "keyword is heron" in again[2][1]
        assert "Mode" in again[3][1]
        assert thoughts(server) == ["s3", "s4"]
    assert refused(server) == 0


@pytest.mark.slow
async def test_three_hundred_calls_in_one_turn_with_compactions(
    own_folders: Path, tmp_path: Path
) -> None:
    for n in range(10):
        (tmp_path / f"r{n}.txt").write_text(f"alpha beta {n}\n" * 60)
    turns = [read(f"r{n % 10}") | {"thinking": f"t{n}"} for n in range(300)]
    async with (
        LoopbackServer(script([*turns, said("end"), said("later")])) as server,
        program(
            tmp_path, server, api_features="all", compaction=SMALL, context_window=60_000
        ) as agent,
    ):
        await done(agent, "read them again and again")
        assert len(types(agent, "compaction")) == 2
        assert {broken["reason"] for broken in types(agent, "break")} == {"compaction"}
        await done(agent, "continue")
    assert refused(server) == 0


async def test_three_huge_messages_are_compacted_on_overflow(
    own_folders: Path, tmp_path: Path
) -> None:
    words = "word " * 16_000  # 20k tokens, as this server counts
    too_long = {"status": 400, "type": "invalid_request_error", "overflow": "until_smaller"}
    too_long["message"] = "prompt is too long: 70000 tokens > 66000 maximum"
    summary = {"text": "They said words.", "faults": [too_long]}
    turns = [said("s0"), said("s1"), said("s2"), summary, said("end")]
    async with (
        LoopbackServer(script(turns)) as server,
        program(
            tmp_path, server, api_features="all", compaction=Compaction(memory_flush=False)
        ) as agent,
    ):
        for n in range(3):
            await done(agent, f"{n} {words}")
        found = await done(agent, "and now?")
        (finished,) = [e for e in found if isinstance(e, facts.CompactionFinished)]
        assert finished.summary == "They said words."
        (record,) = types(agent, "compaction")
        assert record["reason"] == "overflow"
        assert types(agent, "recovery")[0]["step"] == "compaction"
        assert agent.context.ledger.tokens < 40_000


def use(agent: Agent, model: str) -> None:
    agent.models.use(catalogue.model_info(model))


async def test_other_models_and_servers_are_told_in_their_own_form(
    own_folders: Path, tmp_path: Path
) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    joined = Gives()
    features: dict[str, Any] = {"api_features": "all", "compaction": SMALL}
    async with LoopbackServer(script(talk(14))) as server:
        async with program(tmp_path, server, **features) as agent:
            path = agent.session.path
            await done(agent, "one")
            requests = agent._requests  # pyright: ignore[reportPrivateUsage] - as a server would
            agent._ctx.toolbox.tools[joined.name] = joined  # pyright: ignore[reportPrivateUsage]
            requests.exchange((), [joined])
            agent.permissions.mode = "plan"
            for n in range(3):
                await done(agent, f"question {n}")
            await compact(agent)
            await done(agent, "behind the block")
            (record,) = types(agent, "compaction")
            assert [c["type"] for c in record["block"]["tool_changes"]] == ["tool_addition"]
            for name in ("claude-sonnet-5", "claude-sonnet-5-5"):
                use(agent, name)
                await done(agent, f"to {name}")
            said_ = [b["type"] for m in server.posts[6].body["messages"] for b in m["content"]]
            assert "compaction" not in said_
            assert thoughts(server, 6) == ["s3", "s4"]  # the server drops what it cannot read
            assert first(server.posts[7].body) == record["block"]
            assert thoughts(server, 7) == ["s3", "s4", "s5"]
            assert [b["reason"] for b in types(agent, "break")] == ["compaction"]
        async with LoopbackServer(script(talk(3))) as plain:
            config = {"base_url": plain.url, "api_features": "basic", "compaction": SMALL}
            async with program(tmp_path, plain, path, **config) as agent:
                await done(agent, "on a plain server")
                await done(agent, "and again")
            assert len(plain.posts) == 2
            body = plain.posts[0].body
            assert {m["role"] for m in body["messages"]} == {"user", "assistant"}
            assert "anthropic-beta" not in plain.posts[0].headers
            assert server.script.summary in str(body["messages"][0])
            assert thoughts(plain, 0) == []
        async with program(tmp_path, server, path, **features) as agent:
            await done(agent, "back again")
            (record,) = types(agent, "compaction")
        assert first(server.posts[-1].body) == record["block"]
        assert thoughts(server) == ["s3", "s4", "s5", "s6"]
    assert refused(server) == 0


async def test_what_waits_changes_with_the_next_break(own_folders: Path, tmp_path: Path) -> None:
    (tmp_path / "r0.txt").write_text("alpha beta\n" * 200)
    async with LoopbackServer(script([read("r0"), *talk(9)])) as server:
        async with program(tmp_path, server, api_features="all", compaction=SMALL) as agent:
            await done(agent, "read it")
            await done(agent, "one")
            (result,) = [r.id for r in agent.session.records if r.type == "tool_result"]
            price = await agent.context.price_of_changes([Overlay(result, "masked")], 500)
            assert price.tokens > 0
            assert "cached again once" in price.text
            await agent.context.overlay([Overlay(result, "masked", wait=True)])
            assert result in agent.context.pending
            await done(agent, "two")
            assert types(agent, "break") == []
            assert thoughts(server) == ["r0", "s0", "s1"]
            agent.context.reload()
            (tmp_path / "AGENTS.md").write_text("Be brief.\n")
            await done(agent, "three")
            assert [b["reason"] for b in types(agent, "break")] == ["reload"]
            assert not agent.context.pending
            await done(agent, "four")
        assert "alpha beta" not in str(server.posts[-1].body["messages"])
    assert refused(server) == 0


async def test_a_reload_waits_for_a_compaction(own_folders: Path, tmp_path: Path) -> None:
    async with LoopbackServer(script(talk(9))) as server:
        async with program(tmp_path, server, api_features="all", compaction=SMALL) as agent:
            for n in range(3):
                await done(agent, f"question {n}")
            agent.context.reload(wait=True)
            (tmp_path / "AGENTS.md").write_text("Be brief.\n")
            await done(agent, "three")
            assert types(agent, "break") == []
            path = agent.session.path
        async with program(tmp_path, server, path, api_features="all", compaction=SMALL) as agent:
            assert not (await compact(agent)).problem
            await done(agent, "four")
            assert [b["reason"] for b in types(agent, "break")] == ["compaction"]
            assert len(types(agent, "frame")) == 2
            assert not (await compact(agent)).problem  # it waits no more
            await done(agent, "five")
            assert len(types(agent, "frame")) == 2
        assert "Be brief." in str(server.posts[-1].body["system"])
    assert refused(server) == 0


async def test_what_waits_goes_with_a_mask_in_a_later_turn(
    own_folders: Path, tmp_path: Path
) -> None:
    for n in range(2):
        (tmp_path / f"r{n}.txt").write_text(f"alpha beta {n}\n" * 200)
    turns = [said("s0"), read("r0"), said("s1"), said("s2"), read("r1"), *talk(4)]
    async with LoopbackServer(script(turns)) as server:
        async with program(tmp_path, server, api_features="all", compaction=SMALL) as agent:
            for prompt in ("one", "read r0", "two", "read r1"):
                await done(agent, prompt)
            first_, second = [r.id for r in agent.session.records if r.type == "tool_result"]
            await agent.context.overlay([Overlay(first_, "masked", wait=True)])
            await agent.context.overlay([Overlay(second, "masked")])
            await done(agent, "three")
            (broken,) = types(agent, "break")
            assert (broken["reason"], broken["thoughts"]) == ("mask", 5)
        body = server.posts[-1].body
        assert "alpha beta" not in str(body["messages"])
        assert thoughts(server) == ["s0"]
    assert refused(server) == 0


async def test_an_answer_that_ends_in_white_space_is_not_the_end_of_a_summary(
    own_folders: Path, tmp_path: Path
) -> None:
    """A second compaction would end with it, which a server refuses: the program asks instead."""
    turns = [said(f"s{n}", text=f"Answer {n}. " + "word " * 300) for n in range(3)]
    async with (
        LoopbackServer(script([*turns, said("own"), said("s4")])) as server,
        program(tmp_path, server, api_features="all", compaction=SMALL) as agent,
    ):
        for n in range(3):
            await done(agent, f"question {n}")
        for _ in range(2):
            assert [event async for event in agent.context.compact()]
        await done(agent, "and now?")
    for post in server.posts:
        last = post.body["messages"][-1]
        assert last["role"] != "assistant" or not last["content"][-1]["text"][-1].isspace()
    assert refused(server) == 0


async def test_a_turn_interrupted_at_its_calls_is_not_cut_before_their_results(
    own_folders: Path, tmp_path: Path
) -> None:
    (tmp_path / "r1.txt").write_text("alpha\n" * 30)
    turns = [*talk(3), read("r1"), said("own"), said("s5")]
    async with (
        LoopbackServer(script(turns)) as server,
        program(tmp_path, server, api_features="all", compaction=SMALL) as agent,
    ):
        for n in range(3):
            await done(agent, f"question {n}")
        async for event in agent.send(parse("read it")):
            if isinstance(event, facts.ToolStarted):
                agent.cancel()
        for _ in range(2):
            assert [event async for event in agent.context.compact()]
        await done(agent, "and now?")
    ends_so = [post.body["messages"][-1]["content"][-1]["type"] for post in server.posts]
    assert "tool_use" not in ends_so
    assert refused(server) == 0


async def test_what_the_servers_summary_lacks_comes_after_what_stays(
    own_folders: Path, tmp_path: Path
) -> None:
    asked = "Q: What is the keyword?\nA: heron\nQUOTE: The keyword is heron."
    exam: list[Json] = [{"text": asked}, {"text": "1: not in the summary"}]
    turns = [*talk(4), *exam, *talk(6)[4:]]
    settings = Compaction(keep_messages=2, memory_flush=False, exam="small")
    async with LoopbackServer(script(turns)) as server:
        async with program(tmp_path, server, api_features="all", compaction=settings) as agent:
            await done(agent, "one. The keyword is heron.")
            for n in range(3):
                await done(agent, f"question {n}")
            found = [event async for event in agent.context.compact()]
            (end,) = [one for one in found if isinstance(one, facts.ExamFinished)]
            assert (len(end.facts), end.held, end.verbatim) == (1, 0, 1)
            assert types(agent, "compaction")[0]["block"]
            await done(agent, "and now?")
            again = ends(bodies(server)[-1])
            await done(agent, "and then?")
        assert "The keyword is heron." in again[1][1]
    last = server.posts[-1].body
    assert str(last).count("The keyword is heron.") == 1
    assert last["messages"][0]["content"][0]["type"] == "compaction"
    assert thoughts(server) == ["s3", "s4"]
    assert refused(server) == 0
