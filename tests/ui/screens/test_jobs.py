"""F6 and /jobs: background commands as real processes, their output followed, one stopped; Ctrl+B
moves the one that runs."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.world import World
from tests.ui.screens.driving import running, say, until
from tui.core import facts
from tui.tools.jobs import Job
from tui.ui.app import HoldfastApp
from tui.ui.screens.jobs import JobOutputScreen, JobsScreen
from tui.ui.widgets.conversation.items import NoticeItem
from tui.ui.widgets.questions import Confirmation


async def started(world: World, command: str) -> Job:
    """A background command of the session that is open."""
    jobs = world.agent._ctx.toolbox.jobs  # pyright: ignore[reportPrivateUsage] - what a call does
    path = world.workspace / f"job-{len(jobs.list())}.txt"
    return await jobs.start(command, cwd=world.workspace, path=path, call_id="c1")


def row(app: HoldfastApp, number: int = 0) -> str:
    return app.screen.query_one("#rows").render_line(number).text


def shown(app: HoldfastApp, id_: str) -> str:
    return str(app.screen.query_one(f"#{id_}", Static).content)


async def printed(pilot: Pilot[None], app: HoldfastApp, text: str) -> None:
    """Until the output screen shows a text."""

    def seen() -> bool:
        screen = app.screen
        if not isinstance(screen, JobOutputScreen):
            return False
        view = screen.pane.view
        return any(text in view.render_line(y).text for y in range(view.size.height))

    await until(pilot, seen)


async def test_they_are_listed_followed_and_stopped(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with running(world, (100, 30)) as (app, pilot):
        await started(world, "echo built; exit 2")
        job = await started(world, f"echo up; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done;"
            " seq 1 90; sleep 1000")  # fmt: skip
        await pilot.press("f6")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        await until(pilot, lambda: "● job-2 echo up" in row(app) and "\nup" in shown(app, "about"))
        await until(pilot, lambda: "✗ job-1 echo built" in row(app, 1))
        assert "exit code 2" in row(app, 1)
        assert "2 in background" not in str(app.chat.status.render())
        assert "1 in background" in str(app.chat.status.render())
        assert f"process {job.pid}" in shown(app, "about")

        await pilot.press("enter")
        await printed(pilot, app, "up")
        (tmp_path / "go").touch()
        await printed(pilot, app, "90")
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, Confirmation))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, JobOutputScreen))
        assert not job.ended
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, Confirmation))
        await pilot.press("y")
        await until(pilot, lambda: job.ended)
        assert (job.stopped_by, job.state()) == ("person", "stopped")
        await until(pilot, lambda: "stopped" in shown(app, "title"))
        await pilot.press("escape", "y", "escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert app.clipboard.startswith("echo up;")
        told = [one.text for one in app.chat.conversation.items if isinstance(one, NoticeItem)]
        assert any(text.startswith("job-1 failed, exit code 2") for text in told)
        assert any(text.startswith("job-2 stopped by you") for text in told)
        await until(pilot, lambda: "job" not in str(app.chat.status.render()))


async def test_a_search_holds_the_output_still(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with running(world, (100, 20)) as (app, pilot):
        go = tmp_path / "go"
        await started(world, f"seq 100 199; while [ ! -e {go} ]; do sleep 0.01; done; seq 200 300")
        await say(pilot, "/jobs 1")
        await printed(pilot, app, "199")
        await pilot.press("slash", *"104", "enter")
        await printed(pilot, app, "104")
        go.touch()
        screen = app.screen
        assert isinstance(screen, JobOutputScreen)
        await until(pilot, lambda: screen.owned.job.bytes > 800)
        screen.follow()
        await pilot.pause()
        await printed(pilot, app, "104")
        await pilot.press("escape", "end")
        await printed(pilot, app, "300")


async def test_without_any_it_says_how_one_comes_about() -> None:
    async with running(World(), (100, 30)) as (app, pilot):
        await pilot.press("f6")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        assert shown(app, "none").startswith("No background commands in this session.")
        await pilot.press("enter", "x", "y", "p", "escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_words_that_mean_nothing_are_refused() -> None:
    async with running(World(), (100, 30)) as (app, pilot):
        await say(pilot, "/jobs 3")
        await until(pilot, lambda: "No background command 3." in app.chat.notice.text)
        await say(pilot, "/jobs stop them all")
        await until(pilot, lambda: "Unknown /jobs" in app.chat.notice.text)
        await say(pilot, "/jobs move")
        await until(pilot, lambda: "No command is running" in app.chat.notice.text)


async def test_ctrl_b_moves_the_persons_command(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with running(world, (100, 30)) as (app, pilot):
        await pilot.press(*"ab", "ctrl+b", *"x")
        assert app.chat.prompt.text == "axb"  # as in a shell where nothing runs
        app.chat.prompt.accept()
        await say(pilot, "!echo one; sleep 1000")
        await until(pilot, lambda: "to the background" not in str(app.chat.prompt_rule.title))
        world.clock.elapsed += 6
        await until(pilot, lambda: "Ctrl+B: to the background" in str(app.chat.prompt_rule.title))
        await pilot.press("ctrl+b")
        await until(pilot, lambda: not app.conversation.busy)
        (owned,) = world.agent.jobs.all
        assert owned.job.origin.moved_by == "person"
        assert not owned.job.ended
        await until(pilot, lambda: "1 in background" in str(app.chat.status.render()))


async def test_a_long_one_calls_the_person_who_is_elsewhere(tmp_path: Path) -> None:
    called: list[str] = []
    async with running(World(tmp_path), (100, 30)) as (app, _):
        app.frontend.notifier.call = called.append
        app.frontend.notifier.away = lambda: True
        for seconds, by in ((2.0, ""), (60.0, "person"), (60.0, "")):
            ended = facts.JobFinished("job-1", "c", "make", 0, "exit code 0", by, seconds, "", 0)
            app.frontend.show(ended)
    assert called == ["job-1 finished, exit code 0, 1 min 00 s: make."]


async def test_a_command_that_ends_by_itself_need_not_be_stopped(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with running(world, (100, 20)) as (app, pilot):
        go = tmp_path / "go"
        job = await started(world, f"while [ ! -e {go} ]; do sleep 0.01; done")
        await pilot.press("f6")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, Confirmation))
        go.touch()
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        assert job.ended
