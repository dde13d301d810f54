"""The turn of a command that a person wrote: what runs with it, what it may do, who answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_binding import OPUS, SONNET, breaks, done, said, talking, thoughts
from tests.agent.test_guards import results
from tests.support.agents import MODEL, Yes, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.prompts import CommandTurn, ParsedPrompt, parse
from tui.core import facts
from tui.core.messages import text_of
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.permissions.rules import Rule
from tui.permissions.types import Answer, Call, Decision
from tui.provider.base import ModelInfo


def prompt(text: str = "Commit it.", **fields: Any) -> ParsedPrompt:
    command = CommandTurn("commit", "/c/commit.md", text, **fields)
    typed = parse("/commit now", text)
    return ParsedPrompt(typed.typed, typed.text, attached=typed.attached, command=command)


async def turn(agent: Agent, sent: ParsedPrompt) -> list[str]:
    """One turn; the notices in it."""
    found = [event async for event in agent.send(sent)]
    return [event.text for event in found if isinstance(event, facts.Notice)]


def outputs(agent: Agent) -> list[str]:
    return [text_of(record.data["content"]) for record in results(agent)]


def decisions(agent: Agent) -> list[tuple[str, str]]:
    found = (r.data for r in agent.session.records if r.type == "permission")
    return [(data["answer"], data["by"]) for data in found]


def rules(*texts: str) -> tuple[Rule, ...]:
    return tuple(map(Rule.parse, texts))


async def test_what_it_runs_is_run_as_calls_of_the_model_and_recorded(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the content of a\n")
    provider = ScriptedProvider(say("ok"))
    agent = make_agent(tmp_path, provider)
    await turn(agent, prompt("See @a.txt: `echo hi` (its output is below)", runs=("echo hi",)))
    user, called, answers = provider.requests[0].messages
    assert text_of(user["content"]).endswith("See @a.txt: `echo hi` (its output is below)")
    calls = [(block["name"], block["input"]) for block in called["content"]]
    assert calls == [("run_command", {"command": "echo hi"}), ("read_file", {"path": "a.txt"})]
    assert len(answers["content"]) == 2
    assert outputs(agent)[0].startswith("hi\n")
    assert "the content of a" in outputs(agent)[1]
    record = next(r for r in agent.session.records if r.type == "user")
    assert record.data["command"] == {"name": "commit", "path": "/c/commit.md"}
    assert record.data["text"] == "/commit now"


@pytest.mark.parametrize("yes", [True, False])
async def test_what_it_runs_asks_as_always(tmp_path: Path, yes: bool) -> None:
    asked: list[str] = []

    class Person(Yes):
        async def ask(self, call: Call, decision: Decision) -> Answer:
            asked.append(call.subject)
            return Answer("once" if yes else "no", "not now")

    agent = make_agent(tmp_path, ScriptedProvider(say("ok")), approver=Person())
    await turn(agent, prompt(runs=("touch new", "echo safe")))
    assert asked == ["touch new"]
    assert (tmp_path / "new").exists() is yes
    refused = "Declined by the user; it didn't run. Reason: not now"
    assert (outputs(agent)[0] == refused) is not yes
    assert outputs(agent)[1].startswith("safe\n")


async def test_it_allows_in_its_turn_and_no_longer(tmp_path: Path) -> None:
    touch = [call("run_command", "1", command="touch one")]
    again = [call("run_command", "2", command="touch two")]
    agent = make_agent(tmp_path, ScriptedProvider(touch, say("ok"), again, say("ok")))
    told = await turn(agent, prompt(rules=rules("run_command(touch *)")))
    assert told == ["/commit allows in this turn: run_command(touch *)."]
    await turn(agent, parse("go on"))
    assert (tmp_path / "one").exists()
    assert not (tmp_path / "two").exists()
    assert decisions(agent) == [("allow", "command"), ("no", "default")]
    record = next(r for r in agent.session.records if r.type == "user")
    assert record.data["command"]["allowed"] == ["run_command(touch *)"]


@pytest.mark.parametrize(
    ("command", "policy"),
    [
        ("git push", Policy()),  # high-risk: only the person's own rules and words allow that
        ("touch one", Policy.of(deny=["run_command(touch*)"])),
        ("touch one", Policy.of(ask=["run_command(touch*)"])),
    ],
)
async def test_it_allows_nothing_against_the_persons_rules(
    tmp_path: Path, command: str, policy: Policy
) -> None:
    calls = [call("run_command", "1", command=command)]
    agent = make_agent(tmp_path, ScriptedProvider(calls, say("ok")), gate=Gate(policy))
    await turn(agent, prompt(rules=rules("run_command")))
    assert results(agent)[0].data["is_error"] is True
    assert not (tmp_path / "one").exists()


async def test_plan_mode_stays_read_only(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(say("ok")))
    agent.permissions.mode = "plan"
    await turn(agent, prompt(runs=("touch one",), rules=rules("run_command")))
    assert "Plan mode is read-only" in outputs(agent)[0]


async def test_another_model_answers_in_its_turn(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("one"), say("two"), say("three"))
    agent = make_agent(tmp_path, provider)
    await turn(agent, parse("before"))
    other = ModelInfo("claude-opus-5-5", 200_000, 8192, "server")
    (said,) = await turn(agent, prompt(model=other))
    await turn(agent, parse("after"))
    assert [r.model for r in provider.requests] == [MODEL.id, "claude-opus-5-5", MODEL.id]
    assert said.startswith("/commit asks claude-opus-5-5 in this turn: ")
    assert "tokens are written for it (≈ $" in said
    assert agent.models.current == MODEL.id
    assert [r.type for r in agent.session.records if r.type == "break"] == []
    record = [r for r in agent.session.records if r.type == "user"][1]
    assert record.data["command"]["model"] == "claude-opus-5-5"


async def test_the_model_is_given_back_where_the_turn_fails(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    agent = make_agent(tmp_path, provider)
    other = ModelInfo("claude-opus-5-5", 200_000, 8192, "server")
    await turn(agent, prompt(model=other, rules=rules("run_command")))
    assert agent.models.current == MODEL.id
    assert agent.permissions.gate.turn_grants == ()


async def test_a_model_that_is_too_small_is_not_asked(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("ok"))
    agent = make_agent(tmp_path, provider)
    small = ModelInfo("small", 1000, 900, "server")
    (said,) = await turn(agent, prompt(model=small))
    assert said == (
        "/commit asks for small, but its window is too small for this session. Asking test-model."
    )
    assert provider.requests[0].model == MODEL.id


async def test_another_model_for_a_turn_costs_no_thinking(
    own_folders: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("text\n")
    turns = [said("s0"), said("o1"), said("s2"), said("s3")]
    async with talking(tmp_path, *turns) as (agent, server):
        await done(agent, "one")
        sent = prompt("Read `cat a.txt` @a.txt", runs=("cat a.txt",), model=OPUS)
        assert [e async for e in agent.send(sent)][-1].type == "turn_finished"
        await done(agent, "three")
        assert breaks(agent) == []
        asked = [post.body["model"] for post in server.posts]
        assert asked == [SONNET.id, OPUS.id, SONNET.id]
        assert thoughts(server)[0] == "s0"
        await done(agent, "four")
        assert "s2" in thoughts(server)
