"""A summary is asked for as the next message of the conversation, so that the cache is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_binding import done, said, talking
from tests.support.agents import MODEL, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.context.summary_prompts import SUMMARY_TOKENS, WARM_TOKENS, split_answer
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Compaction, Config
from tui.core.facts import Fact
from tui.core.messages import text_block, text_of
from tui.provider.base import Request
from tui.session.session import Session

KEEP = Config(compaction=Compaction(keep_messages=2, memory_flush=False))
WHOLE = "What was done: the file a.txt was read.\n\nMEMORY\n- Tabs are forbidden.\n- src/parse.py"


async def compact(agent: Agent) -> facts.CompactionFinished:
    found: list[Fact] = [event async for event in agent.context.compact()]
    return next(event for event in found if isinstance(event, facts.CompactionFinished))


async def talked(
    root: Path, *answers: Any, config: Config = KEEP, small: bool = False, **parts: Any
) -> tuple[Agent, ScriptedProvider]:
    """An agent that has had three turns; `answers` follow them."""
    turns = [say(f"Answer number {n}. " + "word " * 200) for n in range(3)]
    provider = ScriptedProvider(*turns, *answers)
    model = replace(MODEL, max_output=8_000 if small else 64_000)
    agent = make_agent(root, provider, config=config, **parts)
    for n in range(3):
        await events_of(agent, f"question {n}")
    agent.models.use(model)
    return agent, provider


def extends(before: Request, after: Request) -> bool:
    bare = [
        [
            [{k: v for k, v in block.items() if k != "cache_control"} for block in one["content"]]
            for one in request.messages
        ]
        for request in (before, after)
    ]
    return (
        bare[1][: len(bare[0])] == bare[0]
        and before.system == after.system
        and before.tools == after.tools
    )


async def test_the_question_stands_behind_the_conversation(tmp_path: Path) -> None:
    agent, provider = await talked(tmp_path, say("A summary."))
    finished = await compact(agent)
    assert finished.summary == "A summary."
    asked = provider.requests[-1]
    assert extends(provider.requests[-2], asked)
    question = text_of(asked.messages[-1]["content"])
    assert "Call no tool." in question
    assert "MEMORY" not in question
    assert asked.max_tokens == WARM_TOKENS


async def test_the_same_question_is_not_asked_twice(tmp_path: Path) -> None:
    call_ = [call("list_dir", path=".")]
    agent, provider = await talked(tmp_path, call_, say("A cold summary."), small=True)
    assert (await compact(agent)).summary == "A cold summary."
    assert len(provider.requests) == 5


async def test_the_same_answer_holds_what_the_memory_keeps(tmp_path: Path) -> None:
    memory = tmp_path / ".holdfast" / "MEMORY.md"
    config = Config(compaction=Compaction(keep_messages=2))
    agent, provider = await talked(tmp_path, say(WHOLE), config=config, memory_file=memory)
    finished = await compact(agent)
    assert len(provider.requests) == 4
    assert finished.summary == "What was done: the file a.txt was read."
    assert "Tabs are forbidden." in memory.read_text()
    assert "src/parse.py" in memory.read_text()


async def test_a_call_is_no_summary_and_is_asked_again_with_more_room(tmp_path: Path) -> None:
    agent, provider = await talked(tmp_path, [call("list_dir", path=".")], say("A summary."))
    assert (await compact(agent)).summary == "A summary."
    first, second = provider.requests[-2:]
    assert second.max_tokens == 2 * first.max_tokens


async def test_where_the_conversation_gives_none_its_text_is_summarized(tmp_path: Path) -> None:
    calls = [call("list_dir", path=".")]
    agent, provider = await talked(tmp_path, calls, calls, say("A cold summary."))
    assert (await compact(agent)).summary == "A cold summary."
    cold = provider.requests[-1]
    assert (cold.tools, len(cold.messages)) == ([], 1)
    assert cold.max_tokens <= SUMMARY_TOKENS


async def test_a_full_window_leaves_no_room_for_the_question(tmp_path: Path) -> None:
    agent, provider = await talked(tmp_path, say("A cold summary."))
    agent._requests.know_window(agent.context.ledger.tokens + 1500)  # pyright: ignore[reportPrivateUsage]
    assert (await compact(agent)).summary == "A cold summary."
    assert provider.requests[-1].tools == []


async def test_the_cache_is_read_and_the_server_takes_it(tmp_path: Path) -> None:
    turns = [said(f"s{n}", text="word " * 400) for n in range(4)]
    turns += [{"thinking": "sum", "text": "They talked."}, said("s5")]
    async with talking(tmp_path, *turns) as (agent, server):
        for n in range(4):
            await done(agent, f"question {n}")
        await compact(agent)
        await done(agent, "and now?")
        warm, after = server.posts[-2].body, server.posts[-1].body
        assert len(server.posts) == 6
        assert warm["system"] == after["system"]
        assert [b["type"] for b in warm["messages"][1]["content"]] == ["thinking", "text"]
        record = next(r for r in agent.session.records if r.type == "compaction")
        assert record.data["usage"]["output_tokens"] > 0
        (broken,) = [r.data for r in agent.session.records if r.type == "break"]
        assert (broken["reason"], broken["by"]) == ("compaction", "person")


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ("A.", ("A.", "")),
        ("A.\n\nMEMORY\n- b", ("A.", "- b")),
        ("A.\n## **MEMORY:**\nnone", ("A.", "none")),
        ("Where MEMORY stands in a line it parts nothing.", None),
        ("MEMORY\n- b", ("", "- b")),
    ],
)
def test_what_an_answer_holds(answer: str, parts: tuple[str, str] | None) -> None:
    assert split_answer(answer) == (parts or (answer, ""))


async def test_a_few_huge_messages_are_summarized_too(tmp_path: Path) -> None:
    session = Session.in_memory(tmp_path, clock=SystemClock())
    words = [text_block("word " * 9_000)]
    session.append("user", content=words, text="first")
    session.append("assistant", content=words, model="test-model")
    provider = ScriptedProvider(say("A summary of huge messages."), say("ok"))
    provider.window = 21_000
    model = replace(MODEL, window=21_000)
    config = Config(compaction=Compaction(memory_flush=False))
    agent = make_agent(tmp_path, provider, model=model, session=session, config=config)
    seen = await events_of(agent, "and now?")
    (finished,) = [event for event in seen if isinstance(event, facts.CompactionFinished)]
    assert (finished.reason, finished.summary) == ("automatic", "A summary of huge messages.")


async def test_an_automatic_compaction_keeps_what_there_is_room_for(tmp_path: Path) -> None:
    config = Config(compaction=Compaction(keep_messages=2, keep_tokens=900, memory_flush=False))
    agent, provider = await talked(tmp_path, say("A summary."), say("ok"), config=config)
    usage_window = agent.context.ledger.tokens
    agent.models.use(replace(MODEL, window=usage_window + 100))
    await events_of(agent, "and now?")
    last = provider.requests[-1].messages
    kept = sum("Answer number" in text_of(message["content"]) for message in last)
    assert 1 < kept <= 3
