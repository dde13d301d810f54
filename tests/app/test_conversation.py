"""The conversation without a toolkit: what becomes of what is sent, run, stopped and opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import MODEL, make_agent
from tests.support.clock import PATIENCE_S, FakeClock
from tests.support.provider import ScriptedProvider, say
from tests.support.script import Hold
from tests.support.world import OldSession, World, old_path, record
from tui.agent.agent import Agent
from tui.agent.agent_jobs import AgentJobs
from tui.agent.interrupted_work import InterruptedWork
from tui.agent.plans import ApprovedPlan
from tui.app.conversation import Conversation
from tui.app.dialog_data import Question, SetupQuestion, YesNoQuestion
from tui.app.frontend import Kind, Level, Submitted, TurnResult
from tui.app.open_session import open_first, switch_session
from tui.app.reports import Report
from tui.app.router import route
from tui.app.services import SessionChoice
from tui.context.job_endings import unreported
from tui.core import facts
from tui.core.errors import SessionError
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Approver, Call, Decision
from tui.provider.base import Request


class No(RulesOnly):
    async def ask(self, call: Call, decision: Decision) -> Answer:
        return Answer("no")


class Recorder:
    """A front end that writes down what it is told and chooses nothing."""

    stop_key = "Esc"

    def __init__(self) -> None:
        self.approver = No()
        self.prompt_text = ""
        self.said: list[str] = []
        self.results: list[TurnResult] = []
        self.shown: list[facts.Fact] = []

    def put_prompt(self, text: str, *, replace: bool = False) -> None:
        self.prompt_text = (
            text if replace or not self.prompt_text else f"{text}\n{self.prompt_text}"
        )

    async def take_line(self, text: str) -> Submitted | None: ...

    def say(self, text: str, level: Level = "info", *, hint: str = "") -> None:
        self.said.append(text)

    def report(self, report: Report) -> None:
        self.said += [report.title, *report.lines]

    def show(self, event: facts.Fact) -> None:
        self.shown.append(event)

    def show_unfinished(self, answer: str) -> None: ...
    def refresh(self) -> None: ...
    def began(self, kind: Kind, phase: str) -> None: ...

    def ended(self, result: TurnResult | None = None) -> None:
        self.results += [result] if result else []

    def view(self, name: str, argument: str) -> Coroutine[Any, Any, None] | None:
        return None

    async def run_command(self, work: Coroutine[Any, Any, None]) -> None:
        await work

    async def painted(self) -> None: ...
    async def opening(self, choice: SessionChoice) -> None: ...
    async def show_session(self, agent: Agent, choice: SessionChoice) -> None: ...

    async def pick_session(self) -> SessionChoice | None:
        return None

    async def choose(self, question: Question) -> str | None:
        return None

    async def confirm(self, question: YesNoQuestion) -> bool:
        return False

    async def ask_setup(self, question: SetupQuestion) -> str | None:
        return None

    async def show_file(self, path: Path) -> None: ...
    async def show_plan(self, plan: ApprovedPlan) -> None: ...
    async def offer_interrupted_work(self, work: InterruptedWork) -> None: ...


async def opened(world: World, choice: SessionChoice | None = None) -> Conversation:
    conversation = Conversation(world.services(), Recorder())
    await open_first(conversation, choice or SessionChoice())
    return conversation


async def until(done: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not done():  # noqa: ASYNC110 - it may be anything
            await asyncio.sleep(0.001)


async def test_a_prompt_is_sent_joins_or_waits(tmp_path: Path) -> None:
    world, hold = World(tmp_path), Hold()
    world.scripts.append([facts.UserMessage("one"), hold])
    conversation = await opened(world)
    assert conversation.submit("one") == "sent"
    await until(lambda: world.agent.sent == ["one"])
    assert conversation.submit("two") == "joined"
    assert conversation.submit("three", attached="a file") == "queued"
    assert world.agent.queue == ("two",)
    hold.release()
    await until(lambda: "three" in world.agent.sent)
    await conversation.close()


async def test_what_a_request_needs_is_loaded_when_one_is_expected_or_made(tmp_path: Path) -> None:
    world = World(tmp_path)
    conversation = await opened(world)
    assert world.agent.scripted.loads == 0
    conversation.submit("one")
    await conversation.at_rest()
    conversation.expect_prompt()
    conversation.submit("two")
    await conversation.at_rest()
    assert world.agent.scripted.loads == 1
    await conversation.close()


async def test_a_read_only_session_refuses_and_says_why(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.old[old_path()] = OldSession(records=[record("user", text="hi")], read_only=True)
    conversation = await opened(world, SessionChoice(old_path(), read_only=True))
    frontend = conversation.frontend
    assert conversation.submit("continue") == "refused"
    assert isinstance(frontend, Recorder)
    assert frontend.said[-1] == "This session is read-only."
    await conversation.close()


@pytest.mark.parametrize("command", ["/effort high", "/model other", "/rename another title"])
async def test_a_read_only_session_takes_no_change(tmp_path: Path, command: str) -> None:
    world = World(tmp_path)
    world.old[old_path()] = OldSession(records=[record("user", text="hi")], read_only=True)
    conversation = await opened(world, SessionChoice(old_path(), read_only=True))
    records = len(world.agent.session.records)
    await route(conversation, command)
    frontend = conversation.frontend
    assert isinstance(frontend, Recorder)
    await until(lambda: frontend.said and frontend.said[-1] == "This session is read-only.")
    assert len(world.agent.session.records) == records
    await conversation.close()


@pytest.mark.parametrize("command", ["exec sleep 300", "!exec sleep 300"])
async def test_a_command_that_is_stopped_before_its_first_step_leaves_nothing_busy(
    tmp_path: Path, command: str
) -> None:
    conversation = await opened(World(tmp_path))
    assert conversation.run_shell(command) == "sent"
    assert conversation.cancel()
    await conversation.at_rest()
    assert not conversation.busy
    assert not conversation.cancel()
    await conversation.close()


async def test_a_turn_that_is_stopped_before_its_first_step_gives_its_prompt_back(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    conversation = await opened(world)
    conversation.submit("never mind")
    conversation.cancel()
    await conversation.at_rest()
    assert conversation.frontend.prompt_text == "never mind"
    assert world.agent.sent == []
    await conversation.close()


async def test_the_session_that_is_open_is_let_go_before_it_is_opened_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.old[old_path()] = OldSession()
    conversation = await opened(world, SessionChoice(old_path()))
    first = world.agent
    await switch_session(conversation, SessionChoice(old_path()))
    assert first.closed
    assert conversation.agent is world.agents[1]
    await conversation.close()


async def test_what_cannot_be_opened_gives_way_to_a_new_session(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.refusals.append(SessionError("It is no session."))
    conversation = await opened(world, SessionChoice(old_path()))
    assert world.chosen == [SessionChoice(old_path()), SessionChoice()]
    assert isinstance(conversation.frontend, Recorder)
    assert "It is no session." in conversation.frontend.said
    await conversation.close()


async def test_commands_are_carried_out_by_any_front_end(tmp_path: Path) -> None:
    world = World(tmp_path)
    conversation = await opened(world)
    frontend = conversation.frontend
    assert isinstance(frontend, Recorder)
    for typed, answer in (
        ("/plan", "Plan mode: the agent reads, then shows you a plan."),
        ("/compact", "Nothing to compact yet."),
        ("/rename", "Give a title:"),
        ("/retry", "Nothing to retry: the last answer is complete."),
        ("/model small", "Switched to small."),
        ("/nothing", "Unknown command /nothing."),
        ("/mention", "No command /mention here."),
    ):
        await route(conversation, typed)
        assert frontend.said[-1] == answer
    assert world.agent.permissions.mode == "plan"
    assert world.agent.models.current == "small"
    await conversation.close()


async def test_what_the_server_counts_between_the_turns_is_shown(tmp_path: Path) -> None:
    class Counts(ScriptedProvider):
        async def count_tokens(self, request: Request) -> int:
            return 41_005

    async def make_counting_agent(_: SessionChoice, __: Approver) -> Agent:
        return make_agent(tmp_path, Counts(say("Yes.")), first_party=True, clock=FakeClock())

    services = replace(World(tmp_path).services(), make_agent=make_counting_agent)
    conversation, frontend = Conversation(services, Recorder()), Recorder()
    conversation.frontend = frontend
    await open_first(conversation, SessionChoice())
    assert conversation.submit("one") == "sent"
    await until(lambda: frontend.results)
    agent = conversation.agent
    assert agent is not None
    agent.models.use(replace(MODEL, id="another"))
    await until(lambda: agent.context.ledger.measure().measured == 41_000)
    await until(lambda: isinstance(frontend.shown[-1], facts.ContextMeasured))
    measured = frontend.shown[-1]
    assert isinstance(measured, facts.ContextMeasured)
    assert (measured.tokens, measured.estimated) == (41_000, 0)
    await conversation.close()


async def test_a_port_inside_the_sandbox_is_said_once_and_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    conversation = await opened(world)
    frontend, listening = conversation.frontend, dict[int, int]()
    assert isinstance(frontend, Recorder)

    async def ports(_: AgentJobs) -> dict[int, int]:
        return listening

    async def forward(_: AgentJobs, port: int) -> int:
        return port

    monkeypatch.setattr(AgentJobs, "own_run", True)
    monkeypatch.setattr(AgentJobs, "ports", ports)
    monkeypatch.setattr(AgentJobs, "forward", forward)
    await route(conversation, "/forward")
    assert frontend.said[-1] == "No command is listening on a port inside the sandbox."
    for _ in range(2):
        world.scripts.append([facts.UserMessage("go")])
        assert conversation.submit("go") == "sent"
        await conversation.at_rest()
        listening |= {8000: 0, 9000: 0}
        await until(lambda: "ports" not in {task.get_name() for task in asyncio.all_tasks()})
    said = [line for line in frontend.said if line.startswith("Commands inside the sandbox")]
    assert said == ["Commands inside the sandbox are listening on port 8000 and 9000."]
    for wanted, answer in (
        ("", "Commands are listening on 8000, 9000."),
        ("80", "Nothing is listening on port 80 inside the sandbox."),
        ("x", "Nothing is listening on port x inside the sandbox."),
        ("9000", "Open http://127.0.0.1:9000 to reach port 9000."),
    ):
        await route(conversation, f"/forward {wanted}")
        assert frontend.said[-1] == answer
    await conversation.close()


async def test_a_command_of_the_persons_is_moved_to_the_background(tmp_path: Path) -> None:
    world = World(tmp_path)
    conversation = await opened(world)
    frontend, agent = conversation.frontend, world.agent
    assert isinstance(frontend, Recorder)
    assert not conversation.to_background()
    assert frontend.said[-1] == "No command is running in the foreground."
    conversation.run_shell("echo one; sleep 1000")
    await until(lambda: any(isinstance(one, facts.ToolOutputChunk) for one in frontend.shown))
    assert conversation.to_background()
    await until(lambda: not conversation.busy)
    (owned,) = agent.jobs.all
    job = owned.job
    assert (job.origin.moved_by, job.origin.hidden, job.ended) == ("person", False, False)
    types = [record.type for record in agent.session.records]
    assert types == ["job", "job_moved"]
    assert agent.session.records[0].data["pid"] == job.pid
    (finished,) = [one for one in frontend.shown if isinstance(one, facts.ToolFinished)]
    moved = f"moved to the background, still running as {job.id} · goes with your next prompt"
    assert (finished.summary, finished.is_error) == (moved, False)
    world.scripts.append([facts.UserMessage("go")])
    conversation.submit("go")
    await conversation.at_rest()
    assert "one\n(moved to the background, still running as job-1)" in agent.attached[0]
    await job.stop("person")
    await until(lambda: isinstance(frontend.shown[-1], facts.JobFinished))
    assert job.path.read_text() == "one\n"
    await conversation.close()


async def test_what_is_hidden_stays_so_when_it_is_moved(tmp_path: Path) -> None:
    world = World(tmp_path)
    conversation = await opened(world)
    frontend, agent = conversation.frontend, world.agent
    assert isinstance(frontend, Recorder)
    conversation.run_shell("!echo one; sleep 1000")
    await until(lambda: any(isinstance(one, facts.ToolOutputChunk) for one in frontend.shown))
    conversation.to_background()
    await until(lambda: not conversation.busy)
    (owned,) = agent.jobs.all
    await owned.job.stop("person")
    await until(lambda: isinstance(frontend.shown[-1], facts.JobFinished))
    job = owned.job
    assert job.path.read_text() == "one\n"
    assert tmp_path not in job.path.parents  # where the model's tools could read it
    (ended,) = [record.data for record in agent.session.records if record.type == "job_ended"]
    assert (ended["text"], ended["path"], ended["exit_code"]) == ("", "", job.exit_code)
    assert not unreported(agent.session.records)
    await conversation.close()


async def test_an_idle_agent_is_woken_where_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    conversation = await opened(world)
    ended = facts.JobFinished("job-1", "c1", "make", 0, "exit code 0", "", 1.0, "", 0)
    conversation._show_aside(ended)  # pyright: ignore[reportPrivateUsage] - what the agent calls
    assert not conversation.busy
    monkeypatch.setattr(AgentJobs, "wakes", True)
    conversation._show_aside(ended)  # pyright: ignore[reportPrivateUsage] - as above
    assert conversation.busy
    monkeypatch.setattr(AgentJobs, "wakes", False)
    await conversation.at_rest()
    assert world.agent.went_on == 1
    await conversation.close()
