"""The drill: each fault announced, played once on the real screen, in a folder of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.clock import FakeClock
from tests.support.world import World
from tests.ui.screens.driving import items, running, say, until
from tui.app.options.flags import FAULTS
from tui.core.errors import UsageError
from tui.demo.drill import place
from tui.demo.drill_screen import MARK, DrillApp, DrillProgram
from tui.demo.drill_steps import OVER, STEPS, Drill
from tui.ui.screens import external_programs
from tui.ui.screens.recovery import RecoveryScreen
from tui.ui.widgets.conversation.items import AssistantItem, AttemptItem, NoticeItem, ToolItem

WELL = [name for name in FAULTS if name not in {"auth", "400"}]


class FakeProgram(DrillProgram):
    """Waits for nothing."""

    def __init__(self, root: Path, tour: Drill) -> None:
        super().__init__(root, tour, "midnight")
        self.clock = FakeClock()  # pyright: ignore[reportAttributeAccessIssue]
        self.launch = self.launch.reached(practice_delay_s=0.0)


@asynccontextmanager
async def drilled(*faults: str) -> AsyncGenerator[tuple[DrillApp, Pilot[None], Path]]:
    with place() as root:
        app = DrillApp(FakeProgram(root, Drill(faults)))
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: app.ready and app.conversation.agent is not None)
            yield app, pilot, root


async def play(app: DrillApp, pilot: Pilot[None]) -> None:
    """Send the prompt that is laid ready, and wait for the end of the turn."""
    turns = app.chat.status.state.turns
    await pilot.press("enter")
    await until(pilot, lambda: app.chat.status.state.turns > turns and not app.conversation.busy)


def test_there_is_a_step_for_every_fault_of_the_command_line() -> None:
    assert tuple(STEPS) == FAULTS
    with pytest.raises(UsageError, match="No fault is named"):
        Drill(["429", "boom"])


@pytest.mark.parametrize("name", WELL)
async def test_every_fault_is_announced_and_the_turn_ends_well(name: str) -> None:
    async with drilled(name) as (app, pilot, _):
        said = [item.text for item in items(app, NoticeItem)]
        assert said[-1].startswith(f"Drill 1 of 1, {name}. {STEPS[name].happens}")
        assert app.chat.header.state.mark == MARK
        assert app.chat.prompt.text == STEPS[name].prompt
        await play(app, pilot)
        await until(pilot, lambda: items(app, NoticeItem)[-1].text == OVER)
        assert items(app, AssistantItem)[-1].text.startswith("I read")
        assert {item.state for item in items(app, ToolItem)} <= {"ok", "error"}
        retried = name in {"429", "529", "cut", "eof", "stall"}
        assert bool(items(app, AttemptItem)) == retried


@pytest.mark.parametrize(("name", "way"), [("auth", "retry"), ("400", "strict")])
async def test_a_refusal_shows_its_card_and_the_way_chosen_goes_on(name: str, way: str) -> None:
    async with drilled(name) as (app, pilot, _):
        await play(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))
        assert app.drill.step is STEPS[name]  # the next one is not mixed with this one's way on
        app.screen.dismiss(way)
        await until(pilot, lambda: items(app, NoticeItem)[-1].text == OVER)
        assert items(app, AssistantItem)[-1].text.startswith("I read")
        said = " ".join(item.text for item in items(app, NoticeItem))
        assert "switches back to" not in said  # A26: another model has the same key


async def test_an_overload_that_lasts_shows_the_other_model() -> None:
    async with drilled("529") as (app, pilot, _):
        await play(app, pilot)
        assert [item.attempt for item in items(app, AttemptItem)] == [1, 2, 3]
        (switch,) = [i.text for i in items(app, NoticeItem) if "Switched to practice-2" in i.text]
        assert switch.startswith("practice: overloaded")


async def test_a_limit_of_every_model_parks_the_session() -> None:
    async with drilled("park") as (app, pilot, _):
        await play(app, pilot)
        assert any("It continues by itself." in item.text for item in items(app, NoticeItem))


async def test_the_tour_goes_from_fault_to_fault() -> None:
    async with drilled("429", "badjson") as (app, pilot, _):
        await play(app, pilot)
        await until(pilot, lambda: app.chat.prompt.text == STEPS["badjson"].prompt)
        said = [item.text for item in items(app, NoticeItem)]
        assert said[-1].startswith("Drill 2 of 2, badjson.")


async def test_a_turn_without_a_request_plays_nothing() -> None:
    async with drilled("429") as (app, pilot, _):
        app.chat.prompt.put_typed("/verbose on", len("/verbose on"))
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.header.state.verbose)
        await until(pilot, lambda: not app.conversation.busy)
        assert app.drill.step is STEPS["429"]


async def test_nothing_of_the_person_is_touched(own_folders: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in own_folders.rglob("*")}
    async with drilled("429") as (app, pilot, root):
        await play(app, pilot)
        agent = app.conversation.agent
        assert agent is not None
        assert agent.session.path is not None
        assert root in agent.session.path.parents
        assert app.conversation.services.workspace == root / "project"
        assert os.environ["HOLDFAST_HOME"] == str(root / "home")
    assert os.environ["HOLDFAST_HOME"] == str(own_folders)
    assert {path: path.stat().st_mtime_ns for path in own_folders.rglob("*")} == before
    assert not root.exists()


def test_a_theme_of_ones_own_is_there_too(own_folders: Path) -> None:
    mine = own_folders / "config" / "themes" / "mine.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text("# mine")
    with place() as root:
        assert (root / "home" / "config" / "themes" / "mine.toml").read_text() == "# mine"


async def test_the_command_steps_aside_for_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[list[str]] = []

    def run(argv: list[str], **_: object) -> None:
        started.append(argv)

    monkeypatch.setattr(external_programs.subprocess, "run", run)
    async with running(World()) as (app, pilot):
        await say(pilot, "/drill")
        assert "in another" in app.chat.notice.text  # a test's terminal cannot be shared
        assert started == []
        await say(pilot, "/drill 429,boom")
        assert "Unknown fault boom." in app.chat.notice.text
    argv = external_programs.own_command(["drill", "429,cut"], "daylight")
    assert argv[1:] == ["-P", "-m", "tui", "drill", "429,cut", "--theme", "daylight"]
    assert argv[0] == sys.executable
