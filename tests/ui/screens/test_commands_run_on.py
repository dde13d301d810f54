"""Background commands run on when another session is opened, and are there again with their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from textual.pilot import Pilot

from tests.support.processes import gone as ended
from tests.support.provider import ScriptedProvider, call
from tests.support.provider import say as said
from tests.support.world import WorldServices
from tests.ui.screens.driving import running, say, until
from tests.ui.screens.test_rewind import RealWorld, choose
from tui.agent.agent import Agent
from tui.agent.supervised_commands import place_of
from tui.app.open_session import switch_session
from tui.app.services import SessionChoice
from tui.core.paths import folders
from tui.permissions.types import Approver
from tui.tools.jobs import Job
from tui.ui.app import HoldfastApp


class Served(RealWorld):
    """The second prompt starts a command in the background."""

    def __init__(self, workspace: Path) -> None:
        workspace.mkdir()
        serve = call("run_command", command="sleep 300", background=True)
        super().__init__(
            workspace, ScriptedProvider(said("Hello."), [serve], said("It runs."), said("Again."))
        )

    def services(self) -> WorldServices:
        services = super().services()

        async def make(choice: SessionChoice, approver: Approver) -> Agent:
            agent = await services.make_agent(choice, approver)
            ctx = agent._ctx  # pyright: ignore[reportPrivateUsage] - as the composition does
            ctx.toolbox.kept = place_of(folders(), agent.session.id)
            return agent

        return replace(services, make_agent=make)

    @property
    def jobs(self) -> list[Job]:
        return [owned.job for owned in self.real[-1].jobs.all]


async def _served(world: Served, app: HoldfastApp, pilot: Pilot[None]) -> Job:
    for text in ("hello", "serve"):
        await say(pilot, text)
        await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
    (job,) = world.jobs
    return job


async def test_it_runs_on_in_a_session_that_is_left(tmp_path: Path) -> None:
    world = Served(tmp_path / "work")
    async with running(world, choice=SessionChoice()) as (app, pilot):
        job = await _served(world, app, pilot)
        path = world.real[-1].session.path
        await say(pilot, "/new")
        await until(pilot, lambda: len(world.real) == 2 and not app.conversation.opening)
        said = f"`holdfast stop {world.real[0].session.id}` ends it"
        await until(pilot, lambda: said in app.chat.notice.text)
        assert "1 background command of the other session" in app.chat.notice.text
        assert world.jobs == []
        await switch_session(app.conversation, SessionChoice(path))
        (again,) = world.jobs
        assert (again.id, again.pid, again.ended) == (job.id, job.pid, False)
        await again.stop()
    assert ended(job.pid)


async def test_it_runs_on_when_its_session_is_rewound_to_before_it(tmp_path: Path) -> None:
    world = Served(tmp_path / "work")
    async with running(world, choice=SessionChoice()) as (app, pilot):
        job = await _served(world, app, pilot)
        await pilot.press("escape", "escape")
        await choose(app, pilot)
        await until(pilot, lambda: len(world.real) == 2 and app.chat.prompt.text == "serve")
        await until(pilot, lambda: not app.conversation.opening)
        (again,) = world.jobs
        assert (again.id, again.pid, again.ended) == (job.id, job.pid, False)
        await again.stop()
        await until(pilot, lambda: not app.conversation.busy)
        app.chat.prompt.clear()
        world.clock.elapsed += 1  # an Enter at once would be meant for the dialog
        await say(pilot, "and?")
        await until(pilot, lambda: not app.conversation.busy and app.chat.prompt.text == "")
        said = str(world.provider.requests[-1].messages[-1])
        assert "The background command job-1 has ended" in said
        assert "command: sleep 300" in said
