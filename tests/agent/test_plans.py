"""`present_plan`: the end of plan mode, what is kept of a plan, and where nobody can approve it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Yes, events_of, make_agent
from tests.support.clock import FakeClock
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.plans import last_approved
from tui.cli.print_mode import Outcome
from tui.context.overrides import pins_of
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.fact_words import fact_lines
from tui.core.messages import text_of
from tui.core.paths import Folders
from tui.core.questions import PlanReview, Verdict
from tui.session.session import Session
from tui.settings import agent_definitions

PLAN = "1. Rename `a.py`.\n2. Run the tests."


class Reviewer(Yes):
    def __init__(self, *verdicts: Verdict, edited: str = "", comment: str = "") -> None:
        self.verdicts = list(verdicts)
        self.edited, self.comment = edited, comment
        self.seen: list[tuple[str, str]] = []

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        self.seen.append((title, plan))
        return PlanReview(self.verdicts.pop(0), self.edited or plan, self.comment)


def presents(times: int = 1) -> ScriptedProvider:
    one = [call("present_plan", title="Rename a module", plan=PLAN)]
    return ScriptedProvider(*times * [one], say("done"))


def result(agent: Agent) -> dict[str, Any]:
    return next(one.data for one in agent.session.records if one.type == "tool_result")


def kept_session(tmp_path: Path) -> Session:
    folders = Folders(*(tmp_path / name for name in ("config", "data", "cache", "log")))
    return Session.create(tmp_path, folders=folders, clock=SystemClock())


@pytest.mark.parametrize("verdict", ["ask", "accept_edits"])
async def test_an_approved_plan_ends_plan_mode_and_is_kept_and_pinned(
    tmp_path: Path, verdict: Verdict
) -> None:
    person = Reviewer(verdict)
    clock = FakeClock()
    agent = make_agent(
        tmp_path, presents(), approver=person, session=kept_session(tmp_path), clock=clock
    )
    agent.permissions.mode = "plan"
    shown = await events_of(agent, "plan it")
    assert person.seen == [("Rename a module", PLAN)]
    assert agent.permissions.mode == verdict
    path = (
        tmp_path / ".holdfast" / "plans" / f"{clock.now().astimezone():%Y-%m-%d}-rename-a-module.md"
    )
    assert path.read_text() == f"# Rename a module\n\n{PLAN}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "/plans/" in (tmp_path / ".holdfast" / ".gitignore").read_text()
    text = text_of(result(agent)["content"])
    assert text.startswith("The user approved it. The mode is")
    assert text.endswith(f"# Rename a module\n\n{PLAN}")
    (pinned,) = pins_of(agent.session.records)
    assert next(one for one in agent.session.records if one.id == pinned).type == "tool_result"
    changed = next(one for one in shown if isinstance(one, facts.ContextChanged))
    assert changed.changes[0]["call_id"] == "toolu_present_plan"
    plan = last_approved(agent.session.records)
    assert plan is not None
    assert (plan.title, plan.text) == ("Rename a module", PLAN)
    assert plan.path.startswith(".holdfast/plans/")
    (mode,) = (one for one in shown if isinstance(one, facts.QuestionAnswered))
    assert mode.name == "present_plan"


async def test_what_the_person_edited_is_what_counts(tmp_path: Path) -> None:
    person = Reviewer("ask", edited="1. Only rename.")
    agent = make_agent(tmp_path, presents(), approver=person)
    agent.permissions.mode = "plan"
    await events_of(agent, "plan it")
    text = text_of(result(agent)["content"])
    assert text.startswith("The user edited and approved the plan.")
    assert text.endswith("1. Only rename.")
    assert PLAN not in text
    assert not (tmp_path / ".holdfast" / "plans").exists()  # a session in memory leaves nothing


async def test_what_is_to_be_changed_goes_back_and_another_plan_may_come(tmp_path: Path) -> None:
    person = Reviewer("change", "ask", comment="Tests first.")
    agent = make_agent(tmp_path, presents(2), approver=person)
    agent.permissions.mode = "plan"
    await events_of(agent, "plan it")
    first = result(agent)
    assert "The user wants changes: Tests first." in text_of(first["content"])
    assert first["summary"] == "changes: Tests first."
    assert len(person.seen) == 2
    assert agent.permissions.mode == "ask"
    assert len(pins_of(agent.session.records)) == 1


async def test_no_answer_approves_nothing(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, presents(), approver=Reviewer("none"))
    agent.permissions.mode = "plan"
    await events_of(agent, "plan it")
    assert "left the plan without an answer" in text_of(result(agent)["content"])
    assert agent.permissions.mode == "plan"
    assert last_approved(agent.session.records) is None


async def test_outside_plan_mode_it_is_refused(tmp_path: Path) -> None:
    person = Reviewer()
    agent = make_agent(tmp_path, presents(), approver=person)
    await events_of(agent, "do it")
    assert "Plan mode is off" in text_of(result(agent)["content"])
    assert not person.seen


async def test_without_anybody_the_plan_is_the_result_and_nothing_is_approved(
    tmp_path: Path,
) -> None:
    agent = make_agent(tmp_path, presents())
    agent.permissions.mode = "plan"
    outcome, lines = Outcome(), list[str]()
    for event in await events_of(agent, "plan it"):
        outcome.see(event)
        lines += fact_lines(event)
    assert outcome.answer == f"{PLAN}\n\ndone"
    assert "Nobody could approve the plan: it is the result of this run." in lines
    assert agent.permissions.mode == "plan"
    assert not pins_of(agent.session.records)


async def test_every_request_offers_it_and_a_sub_agent_none(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [call("task", description="look", prompt="Look.")], say("ok"), say("done"), say("more")
    )
    find = agent_definitions.load([])
    agent = make_agent(tmp_path, provider, find_agents=lambda: find)
    await events_of(agent, "go")
    agent.permissions.mode = "plan"
    await events_of(agent, "go")
    offered = [
        "present_plan" in {str(tool["name"]) for tool in request.tools}
        for request in provider.requests
    ]
    assert offered == [True, False, True, True]
