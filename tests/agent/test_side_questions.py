"""Side questions: answered from what the cache holds, beside a turn or at rest, in no request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_requests_grow import bare, program
from tests.support.agents import events_of, make_agent
from tests.support.clock import PATIENCE_S
from tests.support.provider import Hang, ScriptedProvider, call, say
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.agent.limits import Limits
from tui.agent.prompts import parse
from tui.agent.side_questions import SideText
from tui.context.request_replay import RequestReplay
from tui.core import facts
from tui.core.errors import HoldfastError, LimitReachedError, ProviderError
from tui.core.fact_words import words
from tui.core.facts import Fact, RetryScheduled, SideQuestion
from tui.core.messages import text_of
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.session.records import Record

LONG = "The sum is wrong since the list is cut at both ends. " * 200


def side_records(agent: Agent) -> list[Record]:
    return [record for record in agent.session.records if record.type == "side_question"]


async def turn(agent: Agent, prompt: str) -> list[Fact]:
    found = await asyncio.wait_for(events_of(agent, prompt), PATIENCE_S)
    last = found[-1]
    assert isinstance(last, facts.TurnFinished)
    assert last.outcome == "done", found
    return found


def verified(agent: Agent) -> bool:
    """True if the record makes every request again, to the byte."""
    replay = RequestReplay(agent.session.records)
    return not any(one.problem for one in replay.every())


async def test_at_rest_it_is_read_from_the_cache_and_in_no_later_request(
    own_folders: Path, tmp_path: Path
) -> None:
    turns: list[Json] = [
        {"thinking": "hm", "text": LONG},
        {"thinking": "aside", "text": "Because of the second slice."},
        {"thinking": "ho", "text": "Fixed."},
    ]
    script = {"turns": turns, "catalogue": True, "priced": True}
    async with LoopbackServer(script) as server, program(tmp_path, server) as agent:
        shown = list[Fact]()
        agent.watch(shown.append)
        await turn(agent, "Why do the tests fail?" + " and so on" * 300)
        price = agent.side_questions.price()
        answer = await agent.side_questions.ask("Which line is it?")
        await turn(agent, "Fix it.")
        first, aside, second = [post.body for post in server.posts]
        bill, spent = server.cache.dollars, agent.spending().session
        assert verified(agent)
    assert answer.answer == "Because of the second slice."
    assert answer.outcome == "answered"
    assert answer.n == 1
    assert price.cached == answer.usage.cache_read_input_tokens > 3000
    assert price.tokens == pytest.approx(answer.usage.prompt_tokens, rel=0.05)  # pyright: ignore[reportUnknownMemberType]
    assert price.cheap
    assert bare(aside)[: len(bare(first))] == bare(first)
    assert aside["tools"] == second["tools"]
    assert aside.get("tool_choice") == first.get("tool_choice")
    assert "Which line" in aside["messages"][-1]["content"][-1]["text"]
    assert bare(second)[: len(bare(first))] == bare(first)
    assert "slice" not in str(second)
    assert [fact for fact in shown if isinstance(fact, SideQuestion)] == [answer]
    assert spent.usd == pytest.approx(bill)  # pyright: ignore[reportUnknownMemberType]
    assert answer.cost_usd is not None
    assert answer.cost_usd < 0.015  # most of it writes the last answer, which is due anyway
    numbers = [record.data["n"] for record in agent.session.records if record.type == "request"]
    assert numbers == [1, 2]


async def test_the_next_price_knows_that_it_renewed_the_cache(
    own_folders: Path, tmp_path: Path
) -> None:
    """It also made the server keep the last answer: the next request reads that."""
    turns: list[Json] = [{"text": LONG}, {"text": "This one."}, {"text": "Done."}]
    script = {"turns": turns, "catalogue": True, "priced": True}
    async with LoopbackServer(script) as server, program(tmp_path, server) as agent:
        await turn(agent, "Look." + " and so on" * 300)
        first = await agent.side_questions.ask("Which line?")
        again = agent.side_questions.price([first], "And the other?")
        assert again.cached > first.usage.cache_read_input_tokens
        assert (
            again.cached
            == first.usage.cache_read_input_tokens + first.usage.cache_creation_input_tokens
        )
        second = await agent.side_questions.ask("And the other?", [first])
        assert second.usage.cache_read_input_tokens == again.cached
        asked = server.posts[-1].body["messages"]
    texts = [text_of(message["content"]) for message in asked[-3:]]
    assert "Which line?" in texts[0]
    assert texts[1:] == ["This one.", "And the other?"]


async def test_beside_a_turn_that_streams_it_extends_what_was_sent(tmp_path: Path) -> None:
    provider = ScriptedProvider(Hang("Half an answ"), say("Aside."))
    agent = make_agent(tmp_path, provider)
    running = asyncio.create_task(events_of(agent, "Work."))
    await provider.waiting.wait()
    answer = await agent.side_questions.ask("How far?")
    assert answer.answer == "Aside."
    agent.cancel()
    found = await running
    assert isinstance(found[-1], facts.TurnFinished)
    assert found[-1].outcome == "interrupted"
    first, aside = provider.requests
    assert bare_messages(aside.messages)[:1] == bare_messages(first.messages)[:1]
    assert len(aside.messages) == 1
    assert "How far?" in text_of(aside.messages[0]["content"])
    types = [r.type for r in agent.session.records]
    assert types.index("side_question") < types.index("interrupt")


def bare_messages(messages: Sequence[Any]) -> list[Any]:
    return [
        {k: v for k, v in block.items() if k != "cache_control"}
        for message in messages
        for block in message["content"]
    ]


async def test_beside_open_calls_the_server_takes_it(own_folders: Path, tmp_path: Path) -> None:
    """One result is there, one call waits for the person: both have a result in the request."""
    (tmp_path / "a.txt").write_text("alpha\n" * 300)
    turns: list[Json] = [
        {
            "thinking": "hm",
            "text": "I look, then I run.",
            "tools": [
                {"name": "read_file", "input": {"path": "a.txt"}},
                {"name": "run_command", "input": {"command": "touch x"}},
            ],
        },
        {"thinking": "ha", "text": "I want to touch x."},
        {"thinking": "ho", "text": "All done."},
    ]
    script = {"turns": turns, "catalogue": True, "priced": True}
    async with LoopbackServer(script) as server, program(tmp_path, server) as agent:
        asked = asyncio.Event()
        answer: SideQuestion | None = None
        found = list[Fact]()
        async for fact in agent.send(parse("Go.")):
            found.append(fact)
            if isinstance(fact, facts.ToolFinished) and not asked.is_set():
                asked.set()
                answer = await agent.side_questions.ask("What next?")
        assert answer is not None
        assert answer.outcome == "answered", answer.problem
        assert answer.answer == "I want to touch x."
        aside, second = server.posts[1].body, server.posts[2].body
        assert verified(agent)
    results = [b for b in aside["messages"][-1]["content"] if b["type"] == "tool_result"]
    assert [len(str(one["content"])) > 300 for one in results] == [True, False]
    assert "still running" in str(results[1])
    assert "still running" not in str(second)
    assert "What next?" not in str(second)
    assert isinstance(found[-1], facts.TurnFinished)


async def test_a_call_in_the_answer_is_refused_once_and_never_run(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        say("Hello."),
        [*say("Let me see."), call("write_file", path="x", text="x")],
        say("It is a.txt."),
    )
    agent = make_agent(tmp_path, provider, gate=Gate(Policy()))
    await turn(agent, "Hi.")
    answer = await agent.side_questions.ask("Which file?")
    assert answer.answer == "Let me see.\n\nIt is a.txt."
    assert answer.refused == ("write_file",)
    assert answer.usage.output_tokens == 20
    assert not list(tmp_path.glob("x"))
    result = provider.requests[-1].messages[-1]["content"][0]
    assert result["is_error"] is True
    assert "tool_result" not in [record.type for record in agent.session.records]
    sentence = words(answer)
    assert sentence is not None
    assert "write_file" in sentence.detail


async def test_stopped_it_keeps_what_came_at_an_estimated_price(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("Hello."), Hang("It is the sec"))
    agent = make_agent(tmp_path, provider)
    await turn(agent, "Hi.")
    shown = list[SideText | RetryScheduled]()
    asking = asyncio.create_task(agent.side_questions.ask("Which?", show=shown.append))
    await provider.waiting.wait()
    assert agent.side_questions.stop()
    answer = await asking
    assert answer.outcome == "stopped"
    assert answer.answer == "It is the sec"
    assert answer.estimated
    assert answer.usage.output_tokens > 0
    assert [one.data["answer"] for one in side_records(agent)] == ["It is the sec"]
    assert not agent.side_questions.busy
    assert not agent.side_questions.stop()


async def test_stopped_before_anything_was_sent_it_costs_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("Hello."), say("never"))
    agent = make_agent(tmp_path, provider)
    await turn(agent, "Hi.")
    asking = asyncio.create_task(agent.side_questions.ask("Which?"))
    await asyncio.sleep(0)
    agent.side_questions.stop()
    answer = await asking
    assert answer.outcome == "stopped"
    assert answer.usage.total == 0
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ProviderError("overloaded", "The server is overloaded."), "overloaded"),
        (ProviderError("network", "No connection.", hint="Check it."), "No connection. Check it."),
        (ProviderError("context_overflow", "The prompt is too long."), "too long"),
    ],
)
async def test_a_failure_is_said_in_its_place_and_recorded(
    tmp_path: Path, error: ProviderError, said: str
) -> None:
    provider = ScriptedProvider(say("Hello."), error, say("Later."), say("Going on."))
    agent = make_agent(tmp_path, provider)
    await turn(agent, "Hi.")
    answer = await agent.side_questions.ask("Which?")
    assert answer.outcome == "failed"
    assert said in answer.problem
    assert (answer.usage.total, answer.cost_usd, answer.estimated) == (0, None, False)
    sentence = words(answer)
    assert sentence is not None
    assert sentence.level == "warning"
    assert said in sentence.detail
    assert side_records(agent)[0].data["question"] == "Which?"
    assert (await agent.side_questions.ask("Which?", [answer])).answer == "Later."
    assert "Which?" not in str(provider.requests[-1].messages[-3:-1])
    await turn(agent, "And now?")


async def test_before_the_first_request_there_is_nothing_to_ask_about(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider())
    with pytest.raises(HoldfastError, match="no conversation"):
        await agent.side_questions.ask("Which?")


async def test_one_at_a_time(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("Hello."), Hang("It"))
    agent = make_agent(tmp_path, provider)
    await turn(agent, "Hi.")
    asking = asyncio.create_task(agent.side_questions.ask("Which?"))
    await provider.waiting.wait()
    with pytest.raises(HoldfastError, match="being answered"):
        await agent.side_questions.ask("And?")
    await agent.close()
    assert (await asking).outcome == "stopped"
    assert len(side_records(agent)) == 1


async def test_whoever_asked_may_go_and_the_answer_so_far_is_recorded(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("Hello."), Hang("It"))
    agent = make_agent(tmp_path, provider)
    await turn(agent, "Hi.")
    asking = asyncio.create_task(agent.side_questions.ask("Which?"))
    await provider.waiting.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await agent.side_questions.close()
    assert side_records(agent)[0].data["outcome"] == "stopped"


async def test_it_counts_for_the_cost_of_a_run_and_not_for_its_requests(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("Hello."), say("Aside."), say("On."), say("No."))
    agent = make_agent(tmp_path, provider, limits=Limits(max_turns=2, max_tokens=330))
    await turn(agent, "Hi.")
    await agent.side_questions.ask("Which?")
    assert agent.spent.requests == 1
    assert agent.spent.usage.total == 220
    await turn(agent, "On.")
    with pytest.raises(LimitReachedError):
        await agent.side_questions.ask("And?")
