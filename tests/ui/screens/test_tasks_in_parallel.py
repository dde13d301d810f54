"""The tasks screen over a run whose workers are processes of this machine, which tell what they do:
a real driver and store; the test plays the workers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.ui.screens.driving import until
from tests.ui.screens.test_tasks_on_machines import (
    Place,
    asked,
    placed,
    repo,  # pyright: ignore[reportUnusedImport] - a fixture
    said,
)
from tui.batch.cluster.engines.local import LocalEngine
from tui.batch.cluster.engines.port import Life
from tui.batch.cluster.entry import ActiveTask
from tui.batch.cluster.relay import WorkerEvents
from tui.batch.events import FromAgent, RunStarted, TaskFinished, TaskStarted
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.facts import Fact, WireFact
from tui.core.messages import Usage
from tui.ui.widgets.conversation.items import AssistantItem, ToolItem, UserItem

__all__ = ["repo"]

ANSWER = facts.AssistantMessage("First.", "end_turn", Usage(1, 1), "r")


@dataclass(slots=True)
class Played(LocalEngine):
    """This machine, whose workers the test plays: they live until they are cancelled. `last` is
    what each prints then."""

    look_s: float = 0.2
    lives: dict[str, Life] = field(default_factory=dict[str, "Life"])
    last: dict[str, WireFact | FromAgent] = field(default_factory=dict[str, "WireFact | FromAgent"])

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        self.logs.mkdir(parents=True, exist_ok=True)
        self._read = {**dict.fromkeys(commands, 0), **self._read}
        self.lives |= dict.fromkeys(commands, "lives")
        return {key: key for key in commands}

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        return {one: self.lives.get(one, "unknown") for one in handles}

    def close(self) -> None:
        for key, event in self.last.items():
            self.print(key, event)

    def print(self, key: str, *events: WireFact | FromAgent) -> None:
        with self._log(key).open("a") as log:
            log.writelines(json.dumps(event.to_json()) + "\n" for event in events)


@dataclass
class Here:
    """A run of workers here."""

    place: Place
    engine: Played
    folder: Path

    async def tell(self, key: str, *events: WireFact | FromAgent) -> None:
        """Let the worker of a task print events, and the driver read them."""
        self.engine.print(key, *events)
        await self.place.look()

    async def begin(self, key: str, task: int, text: str) -> None:
        """Let a worker take a task and begin it."""
        self.place.work(key, "here")
        await self.tell(
            key,
            RunStarted("TASKS.md", 4, 0, "", "git"),
            TaskStarted(task, "g", text, 1, f"s{key}"),
            of(task, facts.UserMessage(text)),
        )

    def write(self, key: str, records: bytes) -> None:
        """Let a worker write its session, which the store doesn't have yet."""
        book = self.place.runner.book
        assert book
        assert book.state.placed
        data = self.folder / book.state.placed.run / key / "data"
        file = data / "sessions" / "w" / f"20261121T090000Z-s{key}.jsonl"
        file.parent.mkdir(parents=True)
        file.write_bytes(records)

    async def shows(self, *texts: str) -> None:
        """Wait for prompts and answers, after the screen has refreshed what it follows."""
        await self.place.read()
        pilot = self.place.pilot
        await until(pilot, lambda: [*self.place.items(UserItem), *self.answers] == [*texts])

    @property
    def answers(self) -> list[str]:
        return self.place.items(AssistantItem)

    @property
    def calls(self) -> list[str]:
        items = self.place.app.run_on.screen.conversation.items
        return [item.state for item in items if isinstance(item, ToolItem)]

    @property
    def running(self) -> tuple[int, ...]:
        return self.place.app.run_on.running


def of(task: int, fact: Fact) -> FromAgent:
    return FromAgent(task, fact)


@asynccontextmanager
async def working(repo: Path) -> AsyncGenerator[Here]:
    engine = Played(3, repo.parent / "logs")
    printed = WorkerEvents(engine, repo.parent / "workers", SystemClock(), answered=True)
    async with placed(repo, engine, "--parallel", "3", printed=printed) as place:
        yield Here(place, engine, printed.place)


async def test_an_answer_streams_and_nothing_is_drawn_a_second_time(repo: Path) -> None:
    async with working(repo) as here:
        await here.begin("00001", 0, "say one")
        await here.begin("00002", 1, "say two")
        await here.tell("00001", of(0, facts.TextDelta("Fir")))
        await here.shows("say one", "Fir")
        await here.tell("00001", of(0, facts.TextDelta("st.")), of(0, ANSWER))
        # the store has it with the next request
        here.place.work("00001", "here", asked(0, "say one") + said(1, "First."),
                        active=ActiveTask(0, "s00001"))  # fmt: skip
        await here.place.look()
        await here.shows("say one", "First.")
        assert here.place.app.run_on.heading == "conversation"
        assert here.running == (0, 1)


async def test_another_task_is_opened_as_far_as_it_is_and_goes_on_live(repo: Path) -> None:
    async with working(repo) as here:
        await here.begin("00001", 0, "say one")
        await here.begin("00002", 1, "say two")
        here.write("00002", asked(0, "say two") + said(1, "First."))
        await here.place.pilot.press("down", "enter")
        await here.shows("say two", "First.")
        await here.tell("00002", of(1, facts.TextDelta("Second")))
        await here.tell("00001", of(0, facts.TextDelta("not shown")))
        await here.shows("say two", "First.", "Second")
        # the next worker of this task goes on below
        await here.tell("00002", TaskStarted(1, "g", "say two", 2, "s00002"))
        await here.shows("say two", "First.", "Second")


async def test_the_next_task_of_a_group_is_shown_once_it_begins(repo: Path) -> None:
    async with working(repo) as here:
        await here.begin("00003", 2, "say three")
        done = TaskFinished(2, "completed", "abc", 1, None, "", 1.0, {}, None)
        following = TaskStarted(3, "group", "say four", 1, "other")
        # the store still has it at the first one
        here.place.work("00003", "here", active=ActiveTask(2, "s00003"))
        await here.tell("00003", done, following, of(3, facts.UserMessage("say four")))
        await here.shows("say four")
        assert here.running == (3,)
        await until(here.place.pilot, lambda: "unmerged" in here.place.row(2))


async def test_the_cursor_is_on_the_task_that_asks_beside_the_shown_one(repo: Path) -> None:
    async with working(repo) as here:
        await here.begin("00001", 0, "say one")
        await here.begin("00003", 2, "say three")
        await here.tell("00003", of(2, facts.PermissionAsked("c", "run_command", "why")))
        queue = here.place.app.run_on.screen.queue
        await until(here.place.pilot, lambda: queue.at_cursor == 2)
        await here.shows("say one")


async def test_a_task_whose_worker_was_killed_is_not_shown_as_running(repo: Path) -> None:
    async with working(repo) as here:
        await here.begin("00001", 0, "say one")
        run_on = here.place.app.run_on
        await until(here.place.pilot, lambda: run_on.state.tasks[0].status == "running")
        here.engine.lives["00001"] = "ended"
        here.place.work("00001", "here", state="waiting", active=ActiveTask(0, "s00001"))
        await here.place.look()
        await until(here.place.pilot, lambda: run_on.state.tasks[0].status == "interrupted")
        assert here.running == ()


async def test_how_calls_ended_is_drawn_when_the_run_is_stopped(repo: Path) -> None:
    async with working(repo) as here:
        await here.begin("00001", 0, "say one")
        call = facts.ToolStarted("c", "run_command", {"command": "sleep 9"}, "sleep 9", 0.0)
        await here.tell("00001", of(0, call))
        await until(here.place.pilot, lambda: here.calls == ["running"])
        here.engine.last["00001"] = of(0, facts.TurnFinished("interrupted"))
        await here.place.pilot.press("ctrl+c")
        await until(here.place.pilot, lambda: not here.place.app.run_on.live)
        assert here.calls == ["interrupted"]
