"""A refused request: what is offered, what a rung does, and that no rung is offered twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agents import events_of, make_agent, record_types
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.context.level_view import LevelViewer
from tui.context.repair import CONTINUE
from tui.context.repair_levels import REPAIR_LEVELS, RepairLevel
from tui.context.validate import check
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.errors import ProviderError
from tui.core.facts import Fact
from tui.core.messages import text_block, text_of
from tui.session.session import Session


def refused() -> ProviderError:
    return ProviderError("invalid_request", "messages.1: not to our liking", status=400)


def session_in(root: Path) -> Session:
    session = Session.in_memory(root, clock=SystemClock())
    session.append("user", content=[text_block("look at a.txt")], text="look at a.txt")
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "abc"}
    asked = call("read_file", "c1", path="a.txt")
    session.append("assistant", content=[thought, asked], model="test-model")
    session.append("tool_result", call_id="c1", name="read_file", content=[text_block("alpha")])
    session.append("assistant", content=[text_block("It says alpha.")], model="test-model")
    return session


async def go_on(agent: Agent) -> list[Fact]:
    return [event async for event in agent.go_on()]


def offered(seen: list[Fact]) -> tuple[str, ...]:
    (error,) = [event for event in seen if isinstance(event, facts.ErrorRaised)]
    return error.offers


async def test_R12_a_refused_request_ends_the_turn_with_the_ways_on(tmp_path: Path) -> None:
    provider = ScriptedProvider(refused(), say("now it went"))
    agent = make_agent(tmp_path, provider, session=session_in(tmp_path))
    assert agent.context.repair_levels() == ()
    seen = await events_of(agent, "and b.txt?")
    assert offered(seen) == REPAIR_LEVELS == agent.context.repair_levels()
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "failed"
    assert [r.data["text"] for r in agent.session.records if r.type == "user"][-1] == "and b.txt?"

    (repaired, *_) = await agent.context.repair("strict")
    assert isinstance(repaired, facts.RepairApplied)
    record = agent.session.records[-1]
    assert (record.type, record.data["rung"], record.data["by"]) == ("repair", "strict", "person")
    seen = await go_on(agent)
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "done"
    assert agent.context.repair_levels() == ()
    assert record_types(agent).count("user") == 2
    assert text_of(provider.requests[-1].messages[-1]["content"]) == "and b.txt?"


async def test_R13_the_same_refusal_offers_the_next_rung_and_never_the_same(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "abc"}
    provider = ScriptedProvider(
        [thought, call("read_file", "c1", path="a.txt")], say("It says alpha.")
    )
    agent = make_agent(tmp_path, provider)
    await events_of(agent, "look at a.txt")
    provider.requests.clear()
    provider.answers += [*[refused() for _ in range(5)], say("at last")]
    seen = await events_of(agent, "and b.txt?")
    for number, rung in enumerate(REPAIR_LEVELS):
        assert offered(seen) == REPAIR_LEVELS[number:]
        await agent.context.repair(rung)
        seen = await go_on(agent)
    assert offered(seen) == () == agent.context.repair_levels()
    assert len(provider.requests) == 5
    assert all(check(request.messages) == [] for request in provider.requests)
    sent = [str(request.messages) for request in provider.requests]
    assert ["Hm." in text for text in sent] == [True, True, False, False, False]
    assert ["tool_use" in text for text in sent] == [True, True, True, False, False]
    assert len(provider.requests[-1].messages) == 1
    assert "and b.txt?" in sent[-1]


async def test_R13_what_comes_after_a_digest_is_sent_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("beta")
    provider = ScriptedProvider(
        refused(), [call("read_file", "c2", path="b.txt")], say("It says beta."), refused()
    )
    agent = make_agent(tmp_path, provider, session=session_in(tmp_path))
    await events_of(agent, "and b.txt?")
    await agent.context.repair("summary_only")
    await go_on(agent)
    roles = [message["role"] for message in provider.requests[-1].messages]
    assert roles == ["user", "assistant", "user"]
    assert "beta" in str(provider.requests[-1].messages[-1])
    assert check(provider.requests[-1].messages) == []
    seen = await events_of(agent, "thanks")
    assert offered(seen) == REPAIR_LEVELS, "an answer came between: it is another refusal"


@pytest.mark.parametrize("rung", ["text_only", "summary_only"])
async def test_R13_nothing_is_wrong_with_what_follows_such_a_rung(
    tmp_path: Path, rung: RepairLevel
) -> None:
    provider = ScriptedProvider(refused(), say("It says beta."), say("You are welcome."))
    agent = make_agent(tmp_path, provider, session=session_in(tmp_path))
    await events_of(agent, "and b.txt?")
    await agent.context.repair(rung)
    await go_on(agent)
    await events_of(agent, "thanks")
    seen = agent.context.view()
    again = LevelViewer().build(agent.session.records, model="test-model", prompt_follows=True)
    assert seen.findings == again.findings == ()
    assert again.messages == seen.messages
    assert [text_of(m["content"]) for m in seen.messages[-3:]] == [
        "It says beta.",
        "thanks",
        "You are welcome.",
    ]
    assert all(CONTINUE not in str(request.messages) for request in provider.requests)


@pytest.mark.parametrize("rung", ["text_only", "summary_only"])
@pytest.mark.parametrize(("later", "kept"), [(0, 0), (4, 5)])
async def test_R37_a_compaction_behind_such_a_rung_counts(
    tmp_path: Path, rung: RepairLevel, later: int, kept: int
) -> None:
    long = "and b.txt? " * 400
    answers = [say(f"answer {number}") for number in range(later + 1)]
    provider = ScriptedProvider(refused(), *answers, say("All was read."))
    agent = make_agent(tmp_path, provider, session=session_in(tmp_path))
    await events_of(agent, long)
    await agent.context.repair(rung)
    await go_on(agent)
    for number in range(later):
        await events_of(agent, f"prompt {number}")
    before = agent.context.view()
    assert [event async for event in agent.context.compact()]
    seen = agent.context.view()
    assert "All was read." in text_of(seen.messages[0]["content"])
    assert "It says alpha." in str(before.messages)
    assert "It says alpha." not in str(seen.messages)
    assert seen.findings == ()
    assert len(seen.messages) == 1 + kept
    assert seen.messages[1:] == before.messages[len(before.messages) - kept :]
    again = LevelViewer().build(agent.session.records, model="test-model", prompt_follows=True)
    assert again.messages == seen.messages

    await agent.context.uncompact()
    assert agent.context.view().messages == before.messages


async def test_a_rung_holds_for_a_resumed_session(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    session.append("repair", rung="drop_thinking", findings=[], by="person")
    seen = LevelViewer().build(session.records, model="test-model", prompt_follows=True)
    assert "Hm." not in str(seen.messages)
    assert "alpha" in str(seen.messages)
    assert check(seen.messages, tail="open") == []


async def test_a_repair_waits_for_the_turn(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(say("x")))
    async for _ in agent.send(parse("hi")):
        with pytest.raises(RuntimeError):
            await agent.context.repair("strict")
        break
    await agent.close()


@pytest.mark.parametrize("kind", ["rate_limit", "auth", "network"])
async def test_other_failures_offer_no_rung(tmp_path: Path, kind: str) -> None:
    error = ProviderError("auth" if kind == "auth" else "network", "no")
    agent = make_agent(tmp_path, ScriptedProvider(error))
    assert offered(await events_of(agent, "hi")) == ()


async def test_going_on_needs_no_new_prompt(tmp_path: Path) -> None:
    provider = ScriptedProvider(ProviderError("network", "no"), say("here"))
    agent = make_agent(tmp_path, provider)
    await events_of(agent, "hi")
    await go_on(agent)
    assert record_types(agent) == ["user", "error", "assistant"]
    assert [text_of(m["content"]) for m in provider.requests[-1].messages] == ["hi"]


async def test_there_may_be_nothing_to_go_on_with(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    seen = await go_on(make_agent(tmp_path, provider))
    assert [event.type for event in seen] == ["notice", "turn_finished"]
    assert provider.requests == []
