"""How an answer ends is told: nothing is no answer, what may not be whole is said, and the model
hears of its limit in the place of a mistake of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.clock import PATIENCE_S
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.facts import Fact
from tui.core.messages import blocks_of, text_of
from tui.provider import catalogue
from tui.provider.anthropic import AnthropicProvider

MODEL = "claude-sonnet-5-5"


@asynccontextmanager
async def talking(root: Path, *turns: Json) -> AsyncGenerator[tuple[Agent, LoopbackServer]]:
    async with LoopbackServer({"turns": list(turns), "catalogue": True}) as server:
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        agent = make_agent(root, provider, model=catalogue.model_info(MODEL))
        await agent.start()
        try:
            yield agent, server
        finally:
            await asyncio.wait_for(agent.close(), PATIENCE_S)


async def turn(agent: Agent, prompt: str) -> list[Fact]:
    return await asyncio.wait_for(events_of(agent, prompt), PATIENCE_S)


def ended(seen: list[Fact]) -> tuple[str, str, list[str]]:
    """The outcome of a turn, the message of its error, and its notices."""
    assert isinstance(seen[-1], facts.TurnFinished)
    errors = [one for one in seen if isinstance(one, facts.ErrorRaised)]
    error = f"{errors[0].error_class}: {errors[0].message}" if errors else ""
    return seen[-1].outcome, error, [one.text for one in seen if isinstance(one, facts.Notice)]


def results(server: LoopbackServer) -> list[str]:
    """The texts of the last request's results."""
    content = blocks_of(server.posts[-1].body["messages"][-1]["content"])
    found = [block for block in content if block.get("type") == "tool_result"]
    return [text_of(blocks_of(block["content"])) or str(block["content"]) for block in found]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"content": []}, "unknown: The model's answer was empty (stop reason end_turn)."),
        ({"text": " \n"}, "unknown: The model's answer was empty (stop reason end_turn)."),
        ({"thinking": "hm"}, "unknown: The model's answer was empty (stop reason end_turn)."),
        (
            {"content": [], "stop_reason": "tired"},
            "unknown: The model's answer was empty (stop reason tired).",
        ),
        (
            {"content": [], "stop_reason": None},
            "unknown: The model's answer was empty (without a stop reason).",
        ),
        (
            {"thinking": "hm", "stop_reason": "max_tokens"},
            "unknown: The answer reached its limit of 32,000 tokens before it said anything.",
        ),
        (
            {"text": "I'll look.", "stop_reason": "tool_use"},
            "stream_broken: The model stopped to call a tool, but the call never came.",
        ),
    ],
)
async def test_an_answer_without_what_it_announced_is_a_failure_that_says_so(
    tmp_path: Path, answer: Json, error: str
) -> None:
    async with talking(tmp_path, answer, {"text": "better"}) as (agent, server):
        seen = await turn(agent, "hi")
        assert ended(seen) == ("failed", error, [])
        (raised,) = [one for one in seen if isinstance(one, facts.ErrorRaised)]
        assert raised.hint
        assert ended(await turn(agent, "continue"))[0] == "done"
        assert len(server.posts) == 2


@pytest.mark.parametrize(
    ("reason", "note"),
    [
        ("tired", "The answer ended for a reason that Holdfast doesn't know (tired), so it may be"),
        (None, "The server didn't say why the answer ended, so it may be incomplete."),
    ],
)
async def test_words_with_an_unknown_end_are_an_answer_with_a_note_said_once(
    tmp_path: Path, reason: str | None, note: str
) -> None:
    odd: Json = {"text": "Here it is.", "stop_reason": reason}
    async with talking(tmp_path, odd, odd) as (agent, _):
        outcome, error, (said,) = ended(await turn(agent, "hi"))
        assert (outcome, error) == ("done", "")
        assert said.startswith(note)
        assert ended(await turn(agent, "more")) == ("done", "", [])


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "stop"])
async def test_known_ends_need_no_word(tmp_path: Path, reason: str) -> None:
    async with talking(tmp_path, {"text": "Here.", "stop_reason": reason}) as (agent, _):
        assert ended(await turn(agent, "hi")) == ("done", "", [])


def written(json_text: str, reason: str = "max_tokens") -> Json:
    return {"tools": [{"name": "write_file", "json": json_text}], "stop_reason": reason}


@pytest.mark.parametrize("reason", ["max_tokens", "length"])
@pytest.mark.parametrize("begun", ['{"path": "a.txt", "content": "half', ""])
async def test_a_call_that_was_cut_tells_the_model_its_limit_and_does_not_run(
    tmp_path: Path, begun: str, reason: str
) -> None:
    async with talking(tmp_path, written(begun, reason), {"text": "I see."}) as (agent, server):
        assert ended(await turn(agent, "write")) == ("done", "", [])
        (said,) = results(server)
        assert "your answer reached its limit of 32,000 tokens" in said
        assert "write a long file in parts" in said
        assert "JSON" not in said
        assert not (tmp_path / "a.txt").exists()


async def test_a_call_that_was_cut_twice_is_told_to_the_person(tmp_path: Path) -> None:
    begun = written('{"path": "a.txt", "content": "half')
    async with talking(tmp_path, begun, begun, begun, {"text": "I give up."}) as (agent, _):
        _, _, (said,) = ended(await turn(agent, "write"))
        assert said == (
            "Twice in a row, the model's answer reached its limit of 32,000 tokens in the middle "
            "of a call. The model was told to make smaller calls. max_output under "
            "[provider] in config.toml allows longer answers, if the model can write them."
        )


async def test_a_whole_call_at_the_limit_runs(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text of a")
    whole: Json = {
        "tools": [{"name": "read_file", "input": {"path": "a.txt"}}],
        "stop_reason": "max_tokens",
    }
    async with talking(tmp_path, whole, {"text": "Read."}) as (agent, server):
        await turn(agent, "read")
        assert "text of a" in results(server)[0]


async def test_a_mistake_of_the_models_own_is_told_as_one(tmp_path: Path) -> None:
    async with talking(tmp_path, written("{broken", "tool_use"), {"text": "Oh."}) as one:
        agent, server = one
        await turn(agent, "write")
        assert "wasn't valid JSON" in results(server)[0]
