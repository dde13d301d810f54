"""The tasks screen: a run worked on in the app, and one that stands in the folder."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList, Static, TextArea

from tests.batch.test_git import log, make_repo
from tests.support.clock import FakeClock, ManualClock
from tests.support.world import World
from tests.ui.screens.driving import NARROW, WIDE, until
from tui.app.options.arguments import Options
from tui.app.options.parser import parse
from tui.batch.plan import plan
from tui.batch.state import RunFolder, TaskState
from tui.batch.taskfile import parse as parse_tasks
from tui.core.clock import Clock
from tui.core.config import TerminalSettings
from tui.ui.screens.debug_log import DebugLogScreen
from tui.ui.screens.help import HelpScreen, HelpTable
from tui.ui.screens.palette import PaletteScreen
from tui.ui.screens.picker import TaskPicker
from tui.ui.screens.task_rows import RunStatus, rest_s, task_row
from tui.ui.screens.tasks import TasksScreen
from tui.ui.tasks.run import TasksApp
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.conversation.items import AssistantItem, UserItem
from tui.ui.widgets.questions import Confirmation, EditText
from tui.ui.widgets.row_list import RowList

TASKS = "## g\n- [ ] say one\n- [ ] say two\n## h\n- [ ] say three\n"


def turns(*texts: str, delay_s: float = 0.0) -> str:
    return "".join(f'[[turn]]\ntext = "{text}"\ndelay_s = {delay_s}\n' for text in texts)


WRITES = (
    '[[turn]]\ntext = "I write."\n'
    'tools = [{name = "write_file", input = {path = "one.txt", content = "1"}}]\n'
)


@pytest.fixture
def repo(tmp_path: Path, own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    repo = make_repo(tmp_path / "repo")
    (repo / "TASKS.md").write_text(TASKS)
    monkeypatch.chdir(repo)
    return repo


@asynccontextmanager
async def working(
    repo: Path,
    script: str,
    *words: str,
    size: tuple[int, int] = WIDE,
    clock: Clock | None = None,
) -> AsyncGenerator[tuple[TasksApp, Pilot[None]]]:
    """The app at work on the repository's task file."""
    path = repo.parent / "script.toml"
    path.write_text(script)
    options = parse(["run", "TASKS.md", "--practice-script", str(path), *words])
    app = TasksApp(plan(options), options, clock=clock)
    async with app.run_test(size=size) as pilot:
        try:
            yield app, pilot
        finally:
            if app.run_on.runner:
                app.run_on.runner.stop()
            await until(pilot, lambda: not app.run_on.live)


def statuses(app: TasksApp) -> list[str]:
    return [task.status for task in app.run_on.state.tasks]


def shown(app: TasksApp, selector: str) -> str:
    return str(app.run_on.screen.query_one(selector, Static).render())


def items(app: TasksApp, kind: type[Any]) -> list[Any]:
    return [i for i in app.run_on.screen.conversation.items if isinstance(i, kind)]


def rows(app: TasksApp) -> list[str]:
    listing = app.run_on.screen.queue
    every = (listing.get_option_at_index(n).prompt for n in range(listing.option_count))
    return [" ".join(str(row).split()) for row in every]


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_run_is_shown_from_its_beginning_to_its_end(
    repo: Path, size: tuple[int, int]
) -> None:
    async with working(repo, turns("one!", "two!", "three!"), size=size) as (app, pilot):
        await until(pilot, lambda: app.run_on.screen.ended == "")
        assert rows(app)[0] == "g"
        assert rows(app)[1].startswith("1 ✓ say one")
        assert shown(app, "#totals").startswith("3/3 done")
        assert "finished" in shown(app, "#totals")
        assert [item.text for item in items(app, AssistantItem)] == ["three!"]  # a group of its own
        assert app.run_on.screen.query_one("#totals").region.height == 1
        assert app.run_on.screen.query_one("#status").region.bottom == size[1]
        await pilot.press("q")
    assert app.run_on.code == 0


async def test_f1_explains_the_keys_that_work_in_a_run_and_goes_again(repo: Path) -> None:
    async with working(repo, turns("one!", "two!", "three!")) as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        told = str(app.screen.query_one(HelpTable).render())
        assert "skip a task in this run" in told
        assert "F12" in told
        assert "F2" not in told.split()  # there is no chat whose context could be shown
        await pilot.press("f1")
        await until(pilot, lambda: app.screen is app.run_on.screen)
        await until(pilot, lambda: app.run_on.screen.ended == "")
        await pilot.press("q")


async def test_the_palette_lists_what_works_in_a_run_and_does_it(repo: Path) -> None:
    script, clock = turns("one", delay_s=60) + turns("two", "three"), ManualClock()
    async with working(repo, script, clock=clock) as (app, pilot):
        await until(pilot, lambda: app.run_on.running == (0,))
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, PaletteScreen))
        screen = app.screen
        assert isinstance(screen, PaletteScreen)
        rows = [screen.rows.render_line(y).text for y in range(screen.rows.size.height)]
        assert rows[0].split()[0] == "pause"
        assert any(row.startswith("debug view") and row.rstrip().endswith("F12") for row in rows)
        assert ("tab", "edit first") not in screen.explained[1]
        await pilot.press(*"pause", "enter")
        await until(pilot, lambda: app.run_on.pausing)
        assert app.screen is app.run_on.screen
        clock.advance(60)


async def test_over_a_question_the_palette_offers_only_what_works_everywhere(repo: Path) -> None:
    async with working(repo, WRITES + turns("done", "two", "three")) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, PaletteScreen))
        screen = app.screen
        assert isinstance(screen, PaletteScreen)
        names = [screen.rows.render_line(y).text.split()[0] for y in range(4)]
        assert names == ["help", "quit", "redraw", "debug"]
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))


async def test_f12_shows_the_events_of_every_task_and_goes_again(repo: Path) -> None:
    async with working(repo, turns("one!", "two!", "three!")) as (app, pilot):
        await until(pilot, lambda: app.run_on.screen.ended == "")
        await pilot.press("f12")
        await until(pilot, lambda: isinstance(app.screen, DebugLogScreen))
        screen = app.screen
        assert isinstance(screen, DebugLogScreen)
        kinds = [entry.kind for entry in screen.shown]
        assert kinds.count("request_sent") == kinds.count("turn_finished") == 3
        await pilot.press("f12")
        await until(pilot, lambda: app.screen is app.run_on.screen)


async def test_a_run_is_seen_in_the_tab_and_calls_for_an_answer(repo: Path) -> None:
    clock, written = FakeClock(), list[str]()
    async with working(repo, WRITES + turns("done", "two", "three"), clock=clock) as (app, pilot):
        called: list[str] = []
        app.run_on.signals.notifier.call = called.append
        app.run_on.signals.notifier.away = lambda: True
        app.terminal.write = written.append
        app.terminal.use(TerminalSettings(title="on", progress="on"))
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        assert "]0;? holdfast · TASKS.md 0/3\x07" in written[-1]
        assert "]9;4;4;100\x07" in written[-1]
        assert called == ["Needs your answer."]
        clock.elapsed += 1  # keys that come too soon do not count
        await pilot.press("1")
        await until(pilot, lambda: app.run_on.screen.ended == "")
        assert any("]0;… holdfast · TASKS.md 1/3\x07" in one for one in written)
        assert "]0;holdfast · TASKS.md 3/3\x07" in written[-1]
        assert "]9;4;0\x07" in written[-1]
        assert app.terminal.leave() == "\x1b[23;0t"


async def test_an_approval_appears_as_in_the_chat(repo: Path) -> None:
    clock = FakeClock()
    script = WRITES + turns("done", "two", "three")
    async with working(repo, script, clock=clock) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        clock.elapsed += 1  # keys that come too soon do not count
        await pilot.press("1")
        await until(pilot, lambda: app.run_on.screen.ended is not None)
    assert log(repo) == ["say one", "first"]
    assert app.run_on.code == 0


async def test_pause_skip_and_go_on(repo: Path) -> None:
    script, clock = turns("one", delay_s=60) + turns("two", "three"), ManualClock()
    async with working(repo, script, clock=clock) as (app, pilot):
        await until(pilot, lambda: app.run_on.running == (0,) and 60 in clock.slept)
        await pilot.press("p")
        assert "pauses after this task" in shown(app, "#totals")
        app.run_on.screen.queue.follow(1)
        await pilot.press("s")
        await until(pilot, lambda: 1 in app.run_on.skipped)
        assert "2 » say two" in rows(app)[2]
        clock.advance(60)
        await until(pilot, lambda: app.run_on.screen.ended == "paused")
        assert statuses(app) == ["completed", "pending", "pending"]
        (repo.parent / "script.toml").write_text(turns("two", "three"))
        await pilot.press("p")  # go on: what was skipped is run, too
        await until(pilot, lambda: app.run_on.screen.ended == "")
    assert statuses(app) == ["completed"] * 3


async def test_ctrl_c_stops_and_saves_and_q_leaves_only_then(repo: Path) -> None:
    async with working(repo, turns("slow", delay_s=600)) as (app, pilot):
        await until(pilot, lambda: app.run_on.running == (0,))
        await pilot.press("q")
        assert app.is_running
        assert "A task is running" in app.run_on.screen.notice.text
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.run_on.screen.ended == "interrupted")
        await pilot.press("q")
    assert app.run_on.code == 130
    state = RunFolder(repo).load()
    assert state
    assert [task.status for task in state.tasks] == ["interrupted", "pending", "pending"]


async def test_a_failed_task_can_be_taken_up_again(repo: Path) -> None:
    broken, clock = "[[turn]]\nfaults = [{status = 400}]\n", ManualClock()
    script = broken + turns("two", delay_s=60) + turns("one again", "three")
    async with working(repo, script, clock=clock) as (app, pilot):
        await until(pilot, lambda: app.run_on.running == (1,) and 60 in clock.slept)
        assert statuses(app)[0] == "failed"
        app.run_on.screen.queue.follow(0)
        await pilot.press("r")
        await until(pilot, lambda: statuses(app)[0] == "pending")
        clock.advance(60)
        await until(pilot, lambda: app.run_on.screen.ended == "")
    assert statuses(app) == ["completed"] * 3


async def test_the_remaining_tasks_are_edited(repo: Path) -> None:
    script, clock = turns("one", delay_s=60) + turns("new"), ManualClock()
    async with working(repo, script, clock=clock) as (app, pilot):
        await until(pilot, lambda: app.run_on.running == (0,) and 60 in clock.slept)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EditText))
        area = app.screen.query_one("#text", TextArea)
        area.text = "## g\n- [ ] another first\n"
        await pilot.press("ctrl+s")
        await until(
            pilot,
            lambda: "Only tasks after" in str(app.screen.query_one("#problem", Static).render()),
        )
        area.text = "## g\n- [ ] say one\n- [ ] say new\n"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen is app.run_on.screen)
        clock.advance(60)
        await until(pilot, lambda: app.run_on.screen.ended == "")
    assert (repo / "TASKS.md").read_text() == "## g\n- [x] say one\n- [x] say new\n"


async def test_the_session_of_a_task_is_opened(repo: Path) -> None:
    script = turns("one", "two") + turns("slow", delay_s=600)
    async with working(repo, script) as (app, pilot):
        await until(pilot, lambda: app.run_on.running == (2,) and len(items(app, UserItem)) == 1)
        app.run_on.screen.queue.follow(0)
        await pilot.press("enter")
        await until(pilot, lambda: len(items(app, UserItem)) == 2)  # of the whole group
        assert [item.text for item in items(app, AssistantItem)] == ["one", "two"]
        app.run_on.screen.queue.follow(2)
        await pilot.press("enter")
        await until(pilot, lambda: len(items(app, UserItem)) == 1)


async def test_A24_a_wait_is_counted_down(repo: Path, home_config: Path) -> None:
    home_config.write_text("[retry]\nmax_attempts = 0\n")
    script = "[[turn]]\ntext = 'x'\nfaults = [{status = 429}]\n"
    async with working(repo, script) as (app, pilot):
        await until(pilot, lambda: "before attempt 2" in shown(app, "#totals"))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.run_on.screen.ended == "interrupted")


@pytest.fixture
def home_config(own_folders: Path) -> Path:
    from tui.core.paths import folders  # noqa: PLC0415 - after the fixture has set the place

    folders().config.mkdir(parents=True, exist_ok=True)
    return folders().config_file


def test_a_row_fits_its_width() -> None:
    task = TaskState(index=0, group="g", task="a\x1b[31m long " * 20, status="failed", attempts=2)
    for width in (30, 80, 120, 200):
        row = task_row(task, width)
        assert row.cell_length <= width
        assert "\x1b" not in str(row)


def test_the_time_that_is_left_counts_how_far_the_running_task_is() -> None:
    stand = ["completed", "completed", "failed", "running", "pending", "interrupted"]
    tasks = [
        TaskState(index=i, group="g", task="t", status=s, seconds=(8, 12, 90, 0, 0, 5)[i])  # type: ignore[arg-type]
        for i, s in enumerate(stand)
    ]
    assert rest_s(tasks[2:], RunStatus()) is None  # nothing to judge by
    assert rest_s(tasks, RunStatus()) == 30
    assert rest_s(tasks, RunStatus(task_s=4)) == 26
    assert rest_s(tasks, RunStatus(task_s=4, skipped=frozenset({4}))) == 16
    assert rest_s(tasks, RunStatus(task_s=40)) == 2 * (8 + 12 + 40) / 3  # the tasks are longer now
    assert rest_s(tasks[:4], RunStatus(task_s=4)) == 6
    assert rest_s(tasks[:4], RunStatus(task_s=10.1)) is None  # it could take any time
    assert rest_s(tasks[:3], RunStatus()) == 0


async def test_on_a_small_screen_the_totals_lose_whole_figures(repo: Path) -> None:
    async with working(repo, turns("one!", "two!", "three!"), size=(40, 20)) as (app, pilot):
        await until(pilot, lambda: app.run_on.screen.ended == "")
        await until(pilot, lambda: shown(app, "#totals").startswith("3/3 done · finished"))
        assert "…" not in shown(app, "#totals")
        assert len(shown(app, "#totals")) <= 38


async def test_the_time_that_is_left_runs_down_and_is_not_told_of_a_pause(repo: Path) -> None:
    clock = ManualClock()
    script = turns("done", "done", "done", "done", delay_s=10)
    async with working(repo, script, clock=clock) as (app, pilot):
        await until(pilot, lambda: 10.0 in clock.slept)
        assert "left" not in shown(app, "#totals")
        clock.advance(10)
        await until(pilot, lambda: "1/3 done" in shown(app, "#totals"))
        await until(pilot, lambda: "about 20 s left" in shown(app, "#totals"))
        clock.advance(4)
        await until(pilot, lambda: "about 16 s left" in shown(app, "#totals"))
        await pilot.press("p")
        await until(pilot, lambda: "pauses after" in shown(app, "#totals"))
        assert "left" not in shown(app, "#totals")


async def test_the_screen_of_a_folder_without_a_run_says_what_to_do(tmp_path: Path) -> None:
    from tests.ui.screens.driving import running  # noqa: PLC0415 - the app itself

    async with running(World(tmp_path)) as (app, pilot):
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.screen, TasksScreen))
        screen = app.screen
        assert "No task file has been run" in str(screen.query_one("#intro", Static).render())
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_a_run_that_stands_in_the_folder_can_be_changed(tmp_path: Path) -> None:
    from tests.ui.screens.driving import running  # noqa: PLC0415 - the app itself
    from tui.batch.state import begin  # noqa: PLC0415

    root = tmp_path
    path = root / "TASKS.md"
    path.write_text("- [!] one\n- [ ] two\n")
    state = begin(path, parse_tasks(path.read_bytes()), now="2026-11-21T09:00:00.000Z")
    failed = TaskState(index=0, group="ungrouped", task="one", status="failed", attempts=1)
    RunFolder(root).save(state.with_task(failed))
    async with running(World(tmp_path)) as (app, pilot):
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.screen, TasksScreen))
        await until(pilot, lambda: app.screen.query_one("#queue", OptionList).option_count == 3)
        await pilot.press("r")
        await until(pilot, lambda: path.read_text().startswith("- [ ] one"))
        assert (saved := RunFolder(root).load())
        assert saved.tasks[0].status == "pending"


def options_of(repo: Path, script: Path) -> Callable[[Path], Options]:
    """What the full screen is started with, for a run of a task file."""
    options = parse(["run", "x.md", "--practice-script", str(script)])

    def of(tasks: Path) -> Options:
        return options.having(tasks=tasks, cwd=repo)

    return of


def test_A26_an_agent_of_a_run_has_no_fallback_of_its_own_and_prunes_by_requests(
    repo: Path, home_config: Path
) -> None:
    home_config.write_text('fallback_models = ["other"]\n')
    planned = plan(parse(["run", "TASKS.md", "--practice"]))
    assert planned.launch.config.fallback_models == ()
    assert planned.models.fallback == "other"
    assert planned.launch.one_turn


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_task_file_is_chosen_and_run_from_the_chat(
    repo: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.ui.screens.driving import running  # noqa: PLC0415 - the app itself

    path = repo.parent / "script.toml"
    path.write_text(turns("one!", "two!", "three!"))
    world = World(repo)
    services = replace(world.services(), run_options=options_of(repo, path))
    monkeypatch.setattr(world, "services", lambda: services)
    async with running(world, size) as (app, pilot):
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.screen, TasksScreen))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, TaskPicker))
        row = app.screen.query_one(RowList).render_line(0).text
        assert row.split() == ["TASKS.md", "3", "tasks,", "0", "done"]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirmation))
        await pilot.press("y")
        await until(pilot, lambda: getattr(app.screen, "ended", None) == "")
        assert (repo / "TASKS.md").read_text().count("[x]") == 3
        await pilot.press("q")
        await until(pilot, lambda: app.screen is app.chat)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "3/3 done" in str(app.screen.query_one("#totals").render()))


async def test_leaving_the_chat_stops_a_run_and_saves_it(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.ui.screens.driving import running  # noqa: PLC0415 - the app itself

    path = repo.parent / "script.toml"
    path.write_text(turns("slow", delay_s=600))
    world = World(repo)
    services = replace(world.services(), clock=ManualClock(), run_options=options_of(repo, path))
    monkeypatch.setattr(world, "services", lambda: services)
    async with running(world) as (app, pilot):
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.screen, TasksScreen))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, TaskPicker))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirmation))
        await pilot.press("y")
        await until(pilot, lambda: states_on_disk(repo)[:1] == ["running"])
        await pilot.press("ctrl+q")
        await until(pilot, lambda: states_on_disk(repo)[:1] == ["interrupted"])


def states_on_disk(repo: Path) -> list[str]:
    state = RunFolder(repo).load()
    return [task.status for task in state.tasks] if state else []
