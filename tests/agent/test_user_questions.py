"""`ask_user`: what the person is asked, what the model gets, and what happens where nobody is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Yes, events_of, make_agent
from tests.support.clock import FakeClock
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.core import facts
from tui.core.fact_words import fact_lines
from tui.core.messages import text_of
from tui.core.questions import UserAnswer, UserAnswers, UserQuestion
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.settings import agent_definitions

DATABASE = {
    "header": "Database",
    "question": "Which database?",
    "choices": [
        {"label": "SQLite", "description": "One file."},
        {"label": "PostgreSQL", "description": "A server."},
    ],
}
EXTRAS = {
    "header": "Extras",
    "question": "Which extras?",
    "several": True,
    "choices": [{"label": "Lint"}, {"label": "Types"}],
}


class Person(Yes):
    """Gives the answers that a test wrote down, and takes time over them."""

    def __init__(self, *answers: UserAnswer, clock: FakeClock | None = None) -> None:
        self.answers = answers
        self.clock = clock
        self.asked: list[tuple[tuple[UserQuestion, ...], str]] = []

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        self.asked.append((tuple(questions), agent))
        if self.clock:
            self.clock.elapsed += 600
        return UserAnswers(self.answers)


def asks(*questions: dict[str, Any]) -> ScriptedProvider:
    return ScriptedProvider([call("ask_user", questions=list(questions))], say("done"))


def result(agent: Agent) -> dict[str, Any]:
    (found,) = (one.data for one in agent.session.records if one.type == "tool_result")
    return found


async def test_the_answers_are_the_result_and_recorded_with_what_was_asked(tmp_path: Path) -> None:
    person = Person(UserAnswer(("SQLite",)), UserAnswer(("Lint", "Types"), "and mypy"))
    agent = make_agent(tmp_path, asks(DATABASE, EXTRAS), approver=person)
    shown = await events_of(agent, "go")
    assert text_of(result(agent)["content"]).splitlines() == [
        "The user answered:",
        "- Which database?",
        "  SQLite",
        "- Which extras?",
        "  Lint, Types; in their own words: and mypy",
    ]
    assert result(agent)["details"] == {
        "answers": [
            {"header": "Database", "chosen": ["SQLite"], "text": ""},
            {"header": "Extras", "chosen": ["Lint", "Types"], "text": "and mypy"},
        ],
        "by": "person",
    }
    assert result(agent)["summary"] == "SQLite · Lint, Types, and mypy"
    ((questions, by_agent),) = person.asked
    assert (questions[0].choices[1].description, questions[1].several) == ("A server.", True)
    assert by_agent == ""
    (asked,) = (one for one in shown if isinstance(one, facts.QuestionAsked))
    (answered,) = (one for one in shown if isinstance(one, facts.QuestionAnswered))
    assert asked.questions[0] == DATABASE | {"several": False}
    assert (asked.id, answered.id, answered.by) == ("toolu_ask_user", "toolu_ask_user", "person")
    assert shown.index(asked) < shown.index(answered)


async def test_the_wait_for_the_person_is_not_the_tools_time(tmp_path: Path) -> None:
    clock = FakeClock()
    person = Person(UserAnswer(("SQLite",)), clock=clock)
    agent = make_agent(tmp_path, asks(DATABASE), approver=person, clock=clock)
    await events_of(agent, "go")
    assert result(agent)["seconds"] == 0


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((), "The user didn't answer. Don't ask the same again"),
        ((UserAnswer(("SQLite",)),), "- Which extras?\n  (not answered: decide yourself"),
    ],
)
async def test_what_was_not_answered_is_left_to_the_model(
    tmp_path: Path, answers: tuple[UserAnswer, ...], expected: str
) -> None:
    agent = make_agent(tmp_path, asks(DATABASE, EXTRAS), approver=Person(*answers))
    await events_of(agent, "go")
    assert expected in text_of(result(agent)["content"])
    assert not result(agent)["is_error"]


async def test_where_nobody_can_be_asked_the_model_decides_and_says_so(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, asks(DATABASE))
    shown = await events_of(agent, "go")
    text = text_of(result(agent)["content"])
    assert text.startswith("Nobody can be asked here. Decide yourself, continue, and say in your")
    (answered,) = (one for one in shown if isinstance(one, facts.QuestionAnswered))
    assert answered.by == "default"
    assert fact_lines(answered) == ("Nobody could answer (Database): the model decides.",)


async def test_a_rule_keeps_the_model_from_asking(tmp_path: Path) -> None:
    gate, person = Gate(Policy.of(deny=["ask_user"])), Person()
    agent = make_agent(tmp_path, asks(DATABASE), approver=person, gate=gate)
    await events_of(agent, "go")
    assert "Denied by the rule ask_user." in text_of(result(agent)["content"])
    assert not person.asked


@pytest.mark.parametrize(
    "questions",
    [
        [],
        5 * [DATABASE],
        [DATABASE | {"choices": []}],
        [{**DATABASE, "choices": 4 * EXTRAS["choices"]}],
    ],
)
async def test_too_few_and_too_many_are_refused(
    tmp_path: Path, questions: list[dict[str, Any]]
) -> None:
    person = Person()
    agent = make_agent(tmp_path, asks(*questions), approver=person)
    await events_of(agent, "go")
    assert "Wrong arguments for ask_user" in text_of(result(agent)["content"])
    assert not person.asked


async def test_an_interrupt_takes_the_question_back(tmp_path: Path) -> None:
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    class Slow(Yes):
        async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                withdrawn.set()
            raise AssertionError

    agent = make_agent(tmp_path, asks(DATABASE), approver=Slow())
    shown: list[facts.Fact] = []
    async for event in agent.send(parse("go")):
        shown.append(event)
        if isinstance(event, facts.QuestionAsked):
            await asked.wait()
            agent.cancel()
    assert withdrawn.is_set()
    assert isinstance(shown[-1], facts.TurnFinished)
    assert shown[-1].outcome == "interrupted"
    assert result(agent)["summary"] == "interrupted"


async def test_the_question_of_a_sub_agent_names_it(tmp_path: Path) -> None:
    person = Person(UserAnswer(("SQLite",)))
    provider = ScriptedProvider(
        [call("task", description="choose a database", prompt="Choose.")],
        [call("ask_user", questions=[DATABASE])],
        say("SQLite it is."),
        say("done"),
    )
    find = agent_definitions.load([])
    agent = make_agent(tmp_path, provider, approver=person, find_agents=lambda: find)
    shown = await events_of(agent, "go")
    ((_, by_agent),) = person.asked
    assert by_agent == "general: choose a database"
    inner = [one.event for one in shown if isinstance(one, facts.SubAgentEvent)]
    assert any(isinstance(one, facts.QuestionAsked) for one in inner)
    waits = [facts.awaits_person(one) for one in shown]
    assert [one for one in waits if one is not None] == [True, False]


async def test_a_sub_agent_with_other_tools_has_no_questions(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [call("task", description="look", prompt="Look.", agent="explore")], say("ok"), say("done")
    )
    find = agent_definitions.load([])
    agent = make_agent(tmp_path, provider, find_agents=lambda: find)
    await events_of(agent, "go")
    names = [{str(tool["name"]) for tool in request.tools} for request in provider.requests]
    assert ["ask_user" in one for one in names] == [True, False, True]
