"""Tasks on `--on local` that ask the person: real workers, and a driver that a script answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.batch.test_git import git
from tests.e2e.test_run import repo, states, tasks, turn, writes  # pyright: ignore[reportUnusedImport]
from tests.support.clock import PATIENCE_S
from tui.app.options.parser import parse
from tui.batch.cluster.command import make_runner
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.events import BatchEvent
from tui.batch.plan import plan
from tui.core.clock import SystemClock
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Approver, Call, Decision

__all__ = ["repo"]


@dataclass
class Person(RulesOnly):
    """Answers by the task that asks; the others wait."""

    answers: dict[str, Answer]
    calls: list[Call] = field(default_factory=list[Call])
    on_ask: Callable[[], None] = lambda: None

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.calls.append(call)
        self.on_ask()
        if call.agent not in self.answers:
            await asyncio.Event().wait()
        return self.answers[call.agent]


@dataclass
class Sink:
    """Keeps the events of a run."""

    events: list[BatchEvent] = field(default_factory=list[BatchEvent])

    def show(self, event: BatchEvent) -> None:
        self.events.append(event)


async def driver(repo: Path, script: str, approver: Approver | None, *more: str) -> PlacedRunner:
    words = ("--on", "local", "--parallel", "2", "--practice-script", script)
    options = parse(["run", str(repo / "TASKS.md"), "-C", str(repo), *words, *more])
    return await make_runner(plan(options), options, Sink(), SystemClock(), approver)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, env: dict[str, str]) -> None:
    for name in ("HOLDFAST_HOME", "HOME"):
        monkeypatch.setenv(name, env[name])


async def test_a_worker_gets_the_answer_that_the_person_gives_at_the_driver(
    repo: Path, script: Callable[[str], str]
) -> None:
    tasks(repo, "## part\n- [ ] one\n- [ ] two\n## other\n- [ ] three\n")
    # the session's yes holds for the second task of the group, too
    played = script(writes("made") + writes("more") + turn(text="Done."))
    no = Answer("no", "Not this one.")
    person = Person({"task 1": Answer("session"), "task 3": no})
    runner = await driver(repo, played, person)
    async with asyncio.timeout(PATIENCE_S):
        state = await runner.run()
    assert [task.status for task in state.tasks] == ["completed"] * 3
    assert sorted(call.agent for call in person.calls) == ["task 1", "task 3"]
    assert git(repo, "ls-files").split() == ["README.md", "TASKS.md", "made", "more"]
    assert runner.waiting == {}


async def test_a_driver_without_a_screen_answers_what_one_with_a_screen_left_open(
    repo: Path, script: Callable[[str], str]
) -> None:
    tasks(repo, "- [ ] one\n")
    played = script(writes("made"))
    person = Person({})
    first = await driver(repo, played, person)
    person.on_ask = first.leave
    async with asyncio.timeout(PATIENCE_S):
        await first.run()
        assert states(repo) == ["running"]  # as its worker told
        assert len(person.calls) == 1
        second = await driver(repo, played, None)
        state = await second.run()
    assert [task.status for task in state.tasks] == ["completed"]
    assert git(repo, "ls-files").split() == ["README.md", "TASKS.md"]


async def test_where_the_run_began_without_a_screen_workers_ask_nobody(
    repo: Path, script: Callable[[str], str], home: Path
) -> None:
    tasks(repo, "- [ ] one\n")
    store = home / "store.git"
    runner = await driver(repo, script(writes("made")), None, "--store", str(store))
    async with asyncio.timeout(PATIENCE_S):
        await runner.run()
    assert states(repo) == ["completed"]
    assert git(repo, "ls-files").split() == ["README.md", "TASKS.md"]
    kinds = {ref.split("/")[2] for ref in git(store, "for-each-ref", "--format=%(refname)").split()}
    assert kinds == {"runs", "tasks"}
