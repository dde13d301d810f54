"""The tasks screen over a run on machines: a real driver and store; the test plays the workers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from textual.content import Content
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Static, TextArea

from tests.batch.test_git import git, make_repo
from tests.support.clock import ManualClock
from tests.ui.screens.driving import NARROW, WIDE, until
from tests.ui.screens.scripted_run import scripted
from tui.app.options.arguments import Options
from tui.app.options.parser import parse
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.cluster.engines.port import Life, WorkerEngine
from tui.batch.cluster.entry import ActiveTask, Losses
from tui.batch.cluster.lease import change, read_task, ref_of, refuse
from tui.batch.cluster.relay import WorkerEvents
from tui.batch.cluster.task_store import TASKS, TaskStore
from tui.batch.events import EventSink
from tui.batch.placement import RunPlacement, TaskPlacement
from tui.batch.plan import RunPlan, plan
from tui.batch.run_control import OpenedRun
from tui.batch.state import RunFolder, TaskState
from tui.core.clock import Clock
from tui.permissions.types import Approver
from tui.ui.screens import task_rows
from tui.ui.screens.debug_log import DebugLogScreen
from tui.ui.tasks.run import TasksApp
from tui.ui.widgets.conversation.items import AssistantItem, ToolItem, UserItem
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.questions import EditText

FILE = "- [ ] say one\n- [ ] say two\n## group\n- [ ] say three\n- [ ] say four\n"


@dataclass
class Machines:
    """An engine whose workers are played by the test; `queue` are handles that no machine has."""

    slots: int = 2
    name: str = "slurm"
    look_s: float = 2.0
    outlives: bool = True
    lives: dict[str, Life] = field(default_factory=dict[str, "Life"])
    queues: bool = False
    rests: dict[str, str] = field(default_factory=dict[str, str])
    cancelled: list[str] = field(default_factory=list[str])

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        handles = {key: words[1] for key, words in commands.items()}
        self.lives |= dict.fromkeys(handles.values(), "waits" if self.queues else "lives")
        return handles

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        return {one: self.lives.get(one, "unknown") for one in handles}

    def fetch(self, handle: str) -> str:
        return ""

    def cancel(self, handles: Collection[str]) -> None:
        self.cancelled += handles
        self.lives |= dict.fromkeys(handles, "ended")

    def close(self) -> None:
        pass

    def resting(self) -> Mapping[str, str]:
        return self.rests


def record(number: int, kind: str, **data: Any) -> bytes:
    head = {"type": kind, "id": f"r{number}", "parent": f"r{number - 1}" if number else None}
    return json.dumps({**head, "time": "2026-11-21T09:00:00.000Z", **data}).encode() + b"\n"


def said(number: int, text: str) -> bytes:
    content = [{"type": "text", "text": text}]
    return record(number, "assistant", content=content, model="m", usage={}, stop_reason="end_turn")


def asked(number: int, text: str) -> bytes:
    return record(number, "user", content=[{"type": "text", "text": text}], text=text)


@dataclass
class Place:
    """A run on machines on a screen. Looks of the driver come by `look`."""

    app: TasksApp
    pilot: Pilot[None]
    clock: ManualClock
    store: TaskStore
    engine: WorkerEngine

    @property
    def runner(self) -> PlacedRunner:
        runner = self.app.run_on.runner
        assert isinstance(runner, PlacedRunner)
        return runner

    async def look(self) -> None:
        """Let the driver look at the store once."""
        before = self.runner.placement
        self.clock.advance(2)
        await until(self.pilot, lambda: self.runner.placement is not before)
        pause = self.engine.look_s
        await until(self.pilot, lambda: pause in self.clock.slept[-1:] or not self.app.run_on.live)
        self.app.run_on.screen.redraw()

    def ref(self, key: str) -> str:
        refs = self.store.refs(TASKS)
        return next(ref for ref in refs if ref.endswith(f"/{key}"))

    def work(self, key: str, host: str, piece: bytes = b"", **changes: Any) -> None:
        """Move a task as a worker on a host does, with a piece of its session."""
        ref = self.ref(key)
        found = read_task(self.store, ref)
        attempt = found.entry.attempt + (found.entry.state != "running")
        fields = {"state": "running", "host": host, "attempt": attempt, **changes}
        moved = change(self.store, ref, found, **fields)
        assert moved
        if piece:
            files = {
                f"data/sessions/w/20261121T090000Z-s{key}.jsonl/{moved.entry.number:012}": piece
            }
            commit = self.store.commit(moved.entry.to_message(), upon=moved.commit, files=files)
            assert self.store.move({ref: (moved.commit, commit)})

    def text(self, selector: str) -> str:
        return str(self.app.run_on.screen.query_one(selector, Static).render())

    def row(self, index: int) -> str:
        queue = self.app.run_on.screen.queue
        option = queue.get_option(f"task-{index}")
        return " ".join(str(option.prompt).split())

    def items(self, kind: type[Any]) -> list[str]:
        items = self.app.run_on.screen.conversation.items
        return [str(getattr(item, "text", "")) for item in items if isinstance(item, kind)]

    async def read(self) -> None:
        await self.app.run_on.refresh()


@pytest.fixture
def repo(tmp_path: Path, own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    repo = make_repo(tmp_path / "repo")
    (repo / "TASKS.md").write_text(FILE)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "tasks")
    monkeypatch.chdir(repo)
    return repo


@asynccontextmanager
async def placed(
    repo: Path,
    engine: WorkerEngine,
    *words: str,
    size: tuple[int, int] = WIDE,
    printed: WorkerEvents | None = None,
) -> AsyncGenerator[Place]:
    """The app over a run of the repository's task file on machines, after the first look."""
    options = parse(["run", "TASKS.md", "--practice", *words])
    store = TaskStore.at(str(repo.parent / "store.git"), repo.parent / "mirror")
    store.make()
    clock = ManualClock()

    async def opener(
        planned: RunPlan,
        options: Options,
        sink: EventSink,
        approver: Approver | None,
        clock: Clock,
        /,
    ) -> OpenedRun:
        return PlacedRunner(
            planned, options, store, engine, sink, clock=clock, confined=False, printed=printed
        )

    app = TasksApp(plan(options), options, clock=clock, opener=opener)
    async with app.run_test(size=size) as pilot:
        place = Place(app, pilot, clock, store, engine)
        try:
            await until(pilot, lambda: engine.look_s in clock.slept)
            app.run_on.screen.redraw()
            yield place
        finally:
            if app.run_on.runner:
                app.run_on.runner.stop()
            clock.advance(2)
            await until(pilot, lambda: not app.run_on.live)


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_machines_and_reasons_are_shown(repo: Path, size: tuple[int, int]) -> None:
    engine = Machines(rests={"n9": "n9: Connection refused."})
    async with placed(repo, engine, size=size) as place:
        assert "closing this window ends nothing" in str(
            place.app.run_on.screen.query_one("#queue-rule", PaneRule).right
        )
        assert place.row(0).endswith("starting")
        assert place.row(2).endswith("no machine")
        place.work("00001", "n1", spent_usd=0.25)
        place.work("00002", "n2", losses=Losses(count=1))
        await place.look()
        running = "running 1× $0.25 n1" if size == WIDE else "on n1"
        assert place.row(0) == f"1 ● say one {running}"
        assert place.row(1).endswith("running 1× 1 lost $0.00 n2" if size == WIDE else "on n2")
        first, problem = place.text("#machines").splitlines()
        assert first == "slurm: 2 of 2 workers · n1 1, n2 1"
        assert problem == "n9 takes no tasks: Connection refused."
        assert place.text("#totals").startswith("0/4 done · $0.25")
        assert place.text("#place") == "task 1 · on n1 · attempt 1 · $0.25 so far"
        await place.pilot.press("down")
        assert "1 worker lost" in place.text("#place")
        assert place.app.run_on.screen.query_one("#status").region.bottom == size[1]


async def test_the_limit_is_shown_with_what_is_reserved(repo: Path, home_config: Path) -> None:
    home_config.write_text('[prices."practice"]\ninput = 1.0\noutput = 1.0\n')
    async with placed(repo, Machines(), "--max-cost", "4") as place:
        place.work("00001", "n1", spent_usd=0.5)
        await place.look()
        assert "$0.50 of $4.00, $3.50 reserved" in place.text("#totals")
        assert place.text("#place").endswith("$0.50 of $2.00 so far")
        await place.pilot.press("end")
        assert place.text("#place").endswith("all 2 are taken.")


async def test_a_running_session_is_followed_as_it_grows(repo: Path) -> None:
    async with placed(repo, Machines()) as place:
        active = ActiveTask(0, "s00001")
        place.work("00001", "n1", asked(0, "say one") + said(1, "First."), active=active)
        place.work("00002", "n2", asked(0, "say two"), active=ActiveTask(1, "s00002"))
        await place.look()
        await place.read()
        await until(place.pilot, lambda: place.items(AssistantItem) == ["First."])
        place.work("00001", "n1", said(2, "Second."))
        await place.look()
        await place.read()
        await until(place.pilot, lambda: place.items(AssistantItem) == ["First.", "Second."])
        assert place.items(UserItem) == ["say one"]
        await place.pilot.press("down", "enter")
        await until(place.pilot, lambda: place.items(UserItem) == ["say two"])
        place.work("00001", "n1", said(3, "Third."))
        await place.look()
        await place.read()
        assert place.items(UserItem) == ["say two"], "it was chosen"


async def test_the_result_of_a_call_completes_its_card(repo: Path) -> None:
    use = {"type": "tool_use", "id": "c1", "name": "run_command", "input": {"command": "ls"}}
    call = record(1, "assistant", content=[use], model="m", usage={}, stop_reason="tool_use")
    result = {
        "call_id": "c1",
        "name": "run_command",
        "content": [{"type": "text", "text": "a.txt"}],
    }
    async with placed(repo, Machines()) as place:
        place.work("00001", "n1", asked(0, "x") + call, active=ActiveTask(0, "s00001"))
        await place.look()
        await place.read()

        def states() -> list[str]:
            items = place.app.run_on.screen.conversation.items
            return [item.state for item in items if isinstance(item, ToolItem)]

        await until(place.pilot, lambda: states() == ["running"])
        place.work("00001", "n1", record(2, "tool_result", is_error=False, **result))
        await place.look()
        await place.read()
        await until(place.pilot, lambda: states() == ["ok"])


async def test_pause_takes_back_what_no_machine_has_and_ends_the_run_after_the_rest(
    repo: Path,
) -> None:
    engine = Machines()
    async with placed(repo, engine) as place:
        place.work("00001", "n1")
        waits = next(one for one in engine.lives if one.endswith("/00002"))
        engine.lives[waits] = "waits"
        await place.look()
        assert place.row(1).endswith("in queue")
        await place.pilot.press("p")
        await place.look()
        assert engine.cancelled == [waits]
        assert place.row(1).endswith("paused")
        assert place.app.run_on.live
        engine.lives = dict.fromkeys(engine.lives, "ended")
        place.work("00001", "n1", state="waiting", ended="stopped by a signal on n1")
        place.clock.advance(2)
        await until(place.pilot, lambda: place.app.run_on.screen.ended == "paused")
        assert "last attempt: stopped by a signal" in place.text("#place")
    assert place.app.run_on.code == 130
    assert (state := RunFolder(repo).load())
    assert state.placed, "the next run continues"


async def test_a_group_is_skipped_whole_and_one_that_starts_is_not(repo: Path) -> None:
    engine = Machines()
    async with placed(repo, engine) as place:
        await place.pilot.press("s")
        assert "A worker is starting with task 1." in place.app.run_on.screen.notice.text
        await place.pilot.press("end", "s")
        assert place.app.run_on.skipped == {2, 3}
        assert "Tasks 3 to 4 are skipped together" in place.app.run_on.screen.notice.text
        engine.lives = dict.fromkeys(engine.lives, "ended")
        for key in ("00001", "00002"):
            place.work(
                key,
                "n1",
                state="given_up",
                losses=Losses(count=3, in_all=3),
                ended="the worker was gone on n1",
            )
        place.clock.advance(2)
        await until(
            place.pilot, lambda: place.app.run_on.screen.ended == "skipped the remaining tasks"
        )
        await place.pilot.press("home")
        assert "Given up: 3 workers were lost with it" in place.text("#place")


async def test_a_skipped_task_is_taken_up_again(repo: Path) -> None:
    async with placed(repo, Machines()) as place:
        await place.pilot.press("end", "s")
        assert place.app.run_on.skipped == {2, 3}
        await place.pilot.press("r")
        await until(place.pilot, lambda: not place.app.run_on.skipped)


async def test_a_failed_task_runs_again_once_the_others_are_done(repo: Path) -> None:
    engine = Machines()
    async with placed(repo, engine) as place:
        given_up: dict[str, Any] = {
            "state": "given_up",
            "losses": Losses(count=3, in_all=3),
            "ended": "the worker was gone on n1",
        }
        place.work("00001", "n1", **given_up)
        await place.look()
        assert "failed" in place.row(0)
        await place.pilot.press("r")
        await until(place.pilot, lambda: place.app.run_on.state.tasks[0].status == "pending")
        first = {one.split("/")[0] for one in engine.lives}
        for key in ("00002", "00003"):
            place.work(key, "n1", **given_up)
        place.clock.advance(2)
        await until(place.pilot, lambda: place.row(0).endswith("starting"))
        again = [one for one in engine.lives if one.split("/")[0] not in first]
        assert [one.split("/")[1] for one in again] == ["00001"]


async def test_tasks_in_the_store_stay_as_they_are_and_others_can_be_added(repo: Path) -> None:
    async with placed(repo, Machines()) as place:
        await place.pilot.press("e")
        await until(place.pilot, lambda: isinstance(place.app.screen, EditText))
        area = place.app.screen.query_one("#text", TextArea)
        area.text = FILE.replace("four", "five")
        await place.pilot.press("ctrl+s")
        problem = place.app.screen.query_one("#problem", Static)
        await until(
            place.pilot, lambda: "in its store and can't be edited" in str(problem.render())
        )
        area.text = f"{FILE}- [ ] say five\n"
        await place.pilot.press("ctrl+s")
        await until(place.pilot, lambda: len(place.app.run_on.state.tasks) == 5)


async def test_a_store_that_is_gone_is_said_with_since_when_and_its_return_too(repo: Path) -> None:
    async with placed(repo, Machines()) as place:
        store = repo.parent / "store.git"
        store.rename(repo.parent / "away.git")
        await place.look()
        place.clock.advance(60)
        await until(place.pilot, lambda: "(1 min 00 s)" in place.text("#machines"))
        assert "The store can't be reached since " in place.text("#machines")
        (repo.parent / "away.git").rename(store)
        await place.look()
        await until(place.pilot, lambda: "be reached since" not in place.text("#machines"))
        assert "The store can be reached again." in place.app.run_on.screen.notice.text
        await place.pilot.press("f12")
        await until(place.pilot, lambda: isinstance(place.app.screen, DebugLogScreen))


async def test_a_refusal_and_a_wait_of_the_server_are_shown(repo: Path) -> None:
    from tui.batch.cluster.waits import SharedWaits  # noqa: PLC0415

    async with placed(repo, Machines()) as place:
        run = place.ref("00001").split("/")[3]
        await asyncio.to_thread(refuse, place.store, ref_of(run, "00001"), "No sandbox.")
        waits = SharedWaits(place.store, run, "key", place.clock)
        await asyncio.to_thread(waits.tell, "opus", 30.0)
        await place.look()
        lines = place.text("#machines").splitlines()
        assert lines[1].startswith("The server wants no requests to opus for ")
        assert lines[2].endswith("takes no tasks: No sandbox.")


@pytest.mark.parametrize("outlives", [True, False])
async def test_a_closed_terminal_leaves_what_the_engine_outlives(
    repo: Path, outlives: bool
) -> None:
    engine = Machines(outlives=outlives)
    async with placed(repo, engine) as place:
        place.work("00001", "n1")
        await place.look()
        place.app.run_on.stop_and_leave(lost=True)
        place.clock.advance(2)
        await until(place.pilot, lambda: not place.app.run_on.live)
        assert place.app.run_on.runner
        reason = "the tasks run on" if outlives else "interrupted"
        assert place.app.run_on.runner.reason == reason
    assert engine.cancelled == []
    assert place.app.run_on.code == 130


async def test_q_leaves_a_run_that_goes_on_without_it_and_no_other(repo: Path) -> None:
    engine = Machines(outlives=False, name="local")
    async with placed(repo, engine) as place:
        place.work("00001", "n1")
        await place.look()
        await place.pilot.press("q")
        assert "A task is running" in place.app.run_on.screen.notice.text
        engine.outlives = True
        place.clock.advance(2)
        await until(place.pilot, lambda: bool(place.runner.placement.outlives))
        await place.pilot.press("q")
        await until(place.pilot, lambda: not place.app.run_on.live)
    assert engine.cancelled == []


async def test_ctrl_c_ends_what_the_engine_has(repo: Path) -> None:
    engine = Machines()
    async with placed(repo, engine) as place:
        await place.pilot.press("ctrl+c")
        await until(place.pilot, lambda: place.app.run_on.screen.ended == "interrupted")
        assert {*engine.cancelled} >= {*engine.lives}


@pytest.mark.usefixtures("painted")
async def test_of_five_hundred_tasks_only_changed_rows_are_drawn(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "TASKS.md").write_text("".join(f"- [ ] say {n}\n" for n in range(500)))
    places = {n: TaskPlacement(host="n1", attempt=1) for n in range(500)}
    placement = RunPlacement(engine="slurm", outlives=True, slots=500, tasks=places)
    app, run = scripted(repo, placement)
    made, drawn = list[int](), list[int]()
    row, line = task_rows.task_row, task_rows.TaskQueue.render_line

    def counted_row(task: TaskState, *given: Any, **named: Any) -> Content:
        made.append(task.index)
        return row(task, *given, **named)

    def counted_line(queue: task_rows.TaskQueue, y: int) -> Strip:
        drawn.append(y)
        return line(queue, y)

    monkeypatch.setattr(task_rows, "task_row", counted_row)
    monkeypatch.setattr(task_rows.TaskQueue, "render_line", counted_line)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.run_on.live and app.run_on.screen.queue.option_count == 501)
        screen = app.run_on.screen
        screen.redraw()
        await pilot.pause()
        made.clear()
        drawn.clear()
        screen.redraw()  # as four times a second
        await pilot.pause()
        assert (made, drawn) == ([], [])
        run.change(2, "running")
        changed = {**places, 400: TaskPlacement(host="n2", attempt=2)}
        run.placement = replace(placement, tasks=changed)
        screen.redraw()
        await pilot.pause()
        assert made == [2, 400]
        await until(pilot, lambda: bool(drawn))
        assert drawn == [3], "the row of task 3, below that of its group; task 401 is out of sight"
        screen.queue.follow(400)
        await pilot.pause()
        assert "2×" in screen.queue.render_line(int(400 + 1 - screen.queue.scroll_y)).text
        for size in (NARROW, WIDE):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: screen.queue.virtual_size.height == 501)
        app.run_on.stop_and_leave()
        await until(pilot, lambda: not app.run_on.live)


@pytest.fixture
def home_config(own_folders: Path) -> Path:
    from tui.core.paths import folders  # noqa: PLC0415 - after the fixture has set the place

    folders().config.mkdir(parents=True, exist_ok=True)
    return folders().config_file
