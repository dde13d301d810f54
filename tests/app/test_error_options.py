"""/retry after what failed the same way before: it says so first, and what can change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.app.test_conversation import Recorder
from tests.support.agents import make_agent
from tests.support.clock import PATIENCE_S, FakeClock
from tests.support.provider import ScriptedProvider, say
from tests.support.world import World
from tui.agent.agent import Agent
from tui.app.conversation import Conversation
from tui.app.dialog_data import FailedRequest, Question
from tui.app.open_session import open_first
from tui.app.router import route
from tui.app.services import SessionChoice
from tui.core.errors import ErrorClass, ProviderError
from tui.core.messages import Block
from tui.permissions.types import Approver

EMPTY: list[Block] = []


class Chooser(Recorder):
    """A front end that chooses by name, and writes down what it was asked."""

    def __init__(self, *choices: str) -> None:
        super().__init__()
        self.choices, self.asked = [*choices], list[FailedRequest]()

    async def choose(self, question: Question) -> str | None:
        assert isinstance(question, FailedRequest)
        self.asked.append(question)
        return self.choices.pop(0) if self.choices else None


async def until(what: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not what():  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0)


async def talking(root: Path, provider: ScriptedProvider, frontend: Chooser) -> Conversation:
    async def make(_: SessionChoice, __: Approver) -> Agent:
        return make_agent(root, provider, clock=FakeClock())

    conversation = Conversation(replace(World(root).services(), make_agent=make), frontend)
    await open_first(conversation, SessionChoice())
    return conversation


async def retried(conversation: Conversation, frontend: Chooser, turns: int) -> None:
    """Type /retry, and wait until as many turns have ended."""
    await route(conversation, "/retry")
    await until(lambda: len(frontend.results) == turns)


async def test_an_empty_answer_is_not_paid_for_a_third_time_without_a_word(
    tmp_path: Path,
) -> None:
    provider, frontend = ScriptedProvider(EMPTY, EMPTY, say("There.")), Chooser("retry")
    conversation = await talking(tmp_path, provider, frontend)
    assert conversation.submit("hi") == "sent"
    await until(lambda: frontend.results)
    await retried(conversation, frontend, 2)  # once it may have been an accident
    assert frontend.asked == []
    await retried(conversation, frontend, 3)
    (asked,) = frontend.asked
    assert asked.title == "Failed the same way 2 times"
    assert "answer was empty" in asked.error
    assert "may cost as much again" in asked.meaning
    assert [one.name for one in asked.ways] == ["model", "key", "retry", "new"]
    assert len(provider.requests) == 3
    await conversation.close()


async def test_dismissed_it_is_not_sent(tmp_path: Path) -> None:
    provider, frontend = ScriptedProvider(EMPTY, EMPTY, say("There.")), Chooser()
    conversation = await talking(tmp_path, provider, frontend)
    assert conversation.submit("hi") == "sent"
    await until(lambda: frontend.results)
    await retried(conversation, frontend, 2)
    await route(conversation, "/retry")
    assert len(provider.requests) == 2
    assert frontend.said[-1] == "Dismissed."
    await conversation.close()


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server", "timeout", "network"])
async def test_what_passes_by_itself_is_sent_again_at_once(
    tmp_path: Path, kind: ErrorClass
) -> None:
    errors = [ProviderError(kind, "Busy.") for _ in range(3)]
    provider, frontend = ScriptedProvider(*errors, say("There.")), Chooser()
    conversation = await talking(tmp_path, provider, frontend)
    assert conversation.submit("hi") == "sent"
    for turns in (1, 2, 3):
        await until(lambda turns=turns: len(frontend.results) == turns)
        await route(conversation, "/retry")
    await until(lambda: len(frontend.results) == 4)
    assert frontend.asked == []
    await conversation.close()


async def test_another_prompt_begins_anew(tmp_path: Path) -> None:
    provider, frontend = ScriptedProvider(EMPTY, EMPTY, say("There.")), Chooser()
    conversation = await talking(tmp_path, provider, frontend)
    for turns, prompt in ((1, "hi"), (2, "hello?")):
        assert conversation.submit(prompt) == "sent"
        await until(lambda turns=turns: len(frontend.results) == turns)
    await retried(conversation, frontend, 3)
    assert frontend.asked == []
    await conversation.close()
