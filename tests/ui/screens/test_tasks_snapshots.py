"""Pictures of the tasks: a run, a file chosen, asked about and edited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from textual.pilot import Pilot

from tests.support.clock import FakeClock
from tests.support.world import World
from tests.ui.screens.driving import until
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of, here, press
from tests.ui.screens.scripted_run import scripted
from tui.app.options.arguments import Options
from tui.app.options.parser import parse
from tui.batch.placement import RunPlacement, TaskPlacement
from tui.batch.state import RunFolder, TaskState, begin
from tui.batch.taskfile import parse as parse_tasks
from tui.ui.screens.picker import TaskPicker
from tui.ui.screens.tasks import TasksScreen
from tui.ui.widgets.questions import Confirmation, EditText

TASKS = """\
## the store
- [x] close the file in `Store.append`, and say in the docstring who owns it
- [!] make test_store.py run without a sleep
- [ ] write the changelog
## the banner
- [ ] count down without taking the focus
- [ ] a picture of it in two themes
"""


def ran(root: Path) -> None:
    """A run of TASKS that was stopped in its third task."""
    path = root / "TASKS.md"
    path.write_text(TASKS)
    state = begin(path, parse_tasks(path.read_bytes()), now="2026-11-21T09:00:00.000Z")
    done, failed, stopped, *_ = state.tasks
    made: tuple[TaskState, ...] = (
        _changed(done, status="completed", attempts=1, seconds=74.0, cost_usd=0.12,
                 session_id="0199f3a2c1d0", change="4f1c2ab"),
        _changed(failed, status="failed", attempts=5, seconds=311.0, error_class="tool",
                 message="The tests still sleep.", session_id="0199f3a2c1d0"),
        _changed(stopped, status="interrupted", attempts=1, seconds=12.0,
                 interrupted_at="2026-11-21T09:08:00.000Z"),
    )  # fmt: skip
    for task in made:
        state = state.with_task(task)
    RunFolder(root).save(state)


def _changed(task: TaskState, **what: object) -> TaskState:
    import msgspec  # noqa: PLC0415

    return msgspec.structs.replace(task, **what)


def options_of(root: Path) -> Callable[[Path], Options]:
    options = parse(["run", "x.md", "--practice"])
    return lambda tasks: options.having(tasks=tasks, cwd=root)


def tasks(*keys: str, run: bool = True, files: bool = True) -> Callable[[Stage], Shot]:
    """The tasks of a folder, and keys pressed there."""

    def make(stage: Stage) -> Shot:
        root = stage.workspace()
        if run:
            ran(root)
        elif files:
            (root / "TASKS.md").write_text(TASKS)
            (root / "docs").mkdir()
            (root / "docs" / "release.md").write_text("- [ ] tag it\n- [ ] tell everybody\n")
        world = World(root)
        services = replace(world.services(), run_options=options_of(root))
        stage.monkeypatch.setattr(world, "services", lambda: services)

        async def drive(pilot: Pilot[None]) -> None:
            await press("ctrl+t")(pilot)
            await until(pilot, lambda: isinstance(pilot.app.screen, TasksScreen))
            screen = pilot.app.screen
            assert isinstance(screen, TasksScreen)
            if run:
                await until(pilot, lambda: screen.queue.option_count > 0)
            for key in keys:
                before = here(pilot.app).screen
                await pilot.press(key)
                if key != "down":
                    await until(pilot, lambda b=before: pilot.app.screen is not b)
            await pilot.pause()

        return stage.app(world), drive

    return make


PLACES = {
    1: TaskPlacement(host="alpha", attempt=1, spent_usd=0.31, cap_usd=1.5),
    2: TaskPlacement(host="beta", label="silent 52 s", warning=True, attempt=2, losses=1,
                     why="No sign of life for 52 s; its lease runs out in 38 s.", spent_usd=0.07,
                     cap_usd=1.57, ended="the worker was gone on alpha"),
    3: TaskPlacement(label="in queue", why="It waits in the queue of slurm."),
    4: TaskPlacement(label="no machine", why="It waits for a free machine: all 3 are taken."),
}  # fmt: skip
PLACEMENT = RunPlacement(
    engine="slurm", outlives=True, slots=3, tasks=PLACES, hosts={"alpha": 1, "beta": 1},
    refusing={"gamma": "This is Holdfast 0.9; the run was made with 1.0."},
    spent_usd=0.5, reserved_usd=2.69, limit_usd=5.0, store_problem="Connection refused.",
    unreachable_since=datetime(2026, 11, 21, 8, 59, 15, tzinfo=UTC),
)  # fmt: skip


def machines(stage: Stage) -> Shot:
    """A run on machines, with the cursor on a task whose worker is silent."""
    root = stage.workspace()
    (root / "TASKS.md").write_text(TASKS.replace("[!]", "[ ]"))
    app, run = scripted(root, PLACEMENT, stage.theme, FakeClock())
    run.change(1, "running")
    run.change(2, "running")

    async def drive(pilot: Pilot[None]) -> None:
        screen = app.run_on.screen
        await until(pilot, lambda: app.run_on.live and screen.queue.option_count > 0)
        screen.queue.follow(2)
        await pilot.pause()

    return app, drive


PICTURES: Pictures = {
    "machines": Picture(TasksScreen, machines),
    "run": Picture(TasksScreen, tasks()),
    "no run": Picture(TasksScreen, tasks(run=False), state=True),
    "choose": Picture(TaskPicker, tasks("n", run=False)),
    "nothing to choose": Picture(TaskPicker, tasks("n", run=False, files=False), state=True),
    "begin": Picture(Confirmation, tasks("n", "enter", run=False), state=True),
    "edit": Picture(EditText, tasks("e")),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
