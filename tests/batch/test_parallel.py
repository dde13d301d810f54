"""Tasks of a file at the same time, in git worktrees, merged in the order of the file."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.batch.test_git import files, git, log, make_repo, status
from tests.batch.test_runner import World, statuses
from tests.support.agents import Yes
from tests.support.clock import PATIENCE_S
from tests.support.provider import ScriptedProvider, call, say
from tui.app.options.parser import parse
from tui.batch import state as state_module
from tui.batch.command import reset
from tui.batch.events import BatchEvent, FromAgent, TaskFinished, TaskMerged, TaskStarted
from tui.batch.git import GitIsolation
from tui.batch.report import RunSummary, lines_of
from tui.batch.run_policy import RunLimits
from tui.batch.state import RunState
from tui.batch.task_worktrees import TaskWorktrees
from tui.core.config import Price
from tui.core.errors import UsageError
from tui.core.facts import Notice
from tui.core.messages import text_of
from tui.keeper.monitor import group_alive
from tui.permissions.types import Answer, Call, Decision
from tui.provider.base import Request, StreamPart


class Worker(ScriptedProvider):
    """Does what a task `FILE TEXT` says, for any number of sessions. A task in `held` waits."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.held: dict[str, asyncio.Event] = {}
        self.calls = 0

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        said = [message for message in request.messages if message["role"] == "user"]
        if any(block["type"] == "tool_result" for block in said[-1]["content"]):
            self.answers.append(say("done"))
        else:
            task = text_of(said[-1]["content"]).splitlines()[-1]
            self.begun[task].set()
            if task in self.held:
                await self.held[task].wait()
            self.calls += 1
            name, text = task.split()
            command = f"printf '{text}\\n' >{name}"
            self.answers.append([call("run_command", f"toolu_{self.calls}", command=command)])
        async for part in super().stream(request):
            yield part

    def hold(self, *tasks: str) -> None:
        self.held |= {task: asyncio.Event() for task in tasks}

    async def until(self, *tasks: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            for task in tasks:
                await self.begun[task].wait()


def world(repo: Path, tasks: str, **more: Any) -> tuple[World, Worker]:
    (repo / "TASKS.md").write_text(tasks)
    if status(repo):
        git(repo, "commit", "-qam", "tasks")
    return again(repo, **more)


def again(repo: Path, **more: Any) -> tuple[World, Worker]:
    """The run of the repository as a new program continues it."""
    isolation, worker = GitIsolation.find(repo, repo / "TASKS.md"), Worker()
    assert isolation
    text = (repo / "TASKS.md").read_text()
    more = {"at_once": 2, "isolation": isolation, **more}
    return World(repo, text, [worker] * 20, window=200_000, **more), worker


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def firsts(repo: Path) -> list[str]:
    """What the branch got, in its order."""
    return git(repo, "log", "--first-parent", "--reverse", "--format=%s", "main").splitlines()[2:]


def worktrees(repo: Path) -> list[str]:
    return git(repo, "worktree", "list").splitlines()[1:]


async def test_groups_run_at_the_same_time_and_are_merged_in_the_order_of_the_file(repo: Path):
    w, worker = world(repo, "## g\n- [ ] one 1\n## h\n- [ ] two 2\n## i\n- [ ] three 3\n")
    worker.hold("one 1")
    running = asyncio.create_task(w.run())
    await worker.until("one 1", "two 2", "three 3")  # the third begins as the second is done
    assert len(w.runner.running) == 2
    assert "two" not in files(repo)  # it waits for the first
    worker.held["one 1"].set()
    state = await running
    assert statuses(state) == ["completed"] * 3
    assert firsts(repo) == ["one 1", "Merge task 2: two 2", "Merge task 3: three 3"]
    assert [event.task for event in w.of(TaskMerged)] == [0, 1, 2]
    assert [event.status for event in w.of(TaskFinished)] == ["unmerged"] * 3
    assert {"one", "two", "three"} <= files(repo).keys()
    assert w.marks() == "## g\n- [x] one 1\n## h\n- [x] two 2\n## i\n- [x] three 3\n"
    assert not worktrees(repo)
    assert git(repo, "branch", "--format=%(refname:short)").split() == ["main"]
    assert w.reason == ""


async def test_no_more_than_so_many_run_at_a_time(repo: Path):
    w, worker = world(repo, "- [ ] one 1\n- [ ] two 2\n- [ ] three 3\n")
    worker.hold("one 1", "two 2")
    running = asyncio.create_task(w.run())
    await worker.until("one 1", "two 2")
    assert w.runner.running == (0, 1)
    assert "three 3" not in worker.begun
    for held in worker.held.values():
        held.set()
    state = await running
    assert statuses(state) == ["completed"] * 3
    assert len({task.session_id for task in state.tasks}) == 3  # above any heading: no group


async def test_tasks_of_a_group_share_a_session_and_a_worktree(repo: Path):
    w, _ = world(repo, "## g\n- one 1\n- one 2\n## h\n- two 2\n")
    places: list[tuple[int, str]] = []

    def on(event: BatchEvent) -> None:
        if isinstance(event, TaskStarted):
            places.append(
                (event.task, str(w.runner.state and w.runner.state.tasks[event.task].worktree))
            )

    w.on_event = on
    state = await w.run()
    ids = [task.session_id for task in state.tasks]
    assert ids[0] == ids[1] != ids[2]
    found = dict(places)
    assert found[0] == found[1] != found[2]
    assert files(repo)["one"] == "2\n"
    assert log(repo).count("one 1") == log(repo).count("one 2") == 1


async def test_a_conflict_is_kept_and_merged_by_the_next_run_once_it_is_solved(repo: Path):
    w, _ = world(
        repo, "## g\n- [ ] a.txt 1\n## h\n- [ ] a.txt 2\n- [ ] two 2\n## i\n- [ ] three 3\n"
    )
    state = await w.run()
    assert statuses(state) == ["completed", "unmerged", "unmerged", "completed"]
    assert files(repo)["a.txt"] == "1\n"
    assert "three" in files(repo)
    hit, behind = state.tasks[1:3]
    assert hit.error_class == "conflict"
    assert "Both sides changed a.txt" in (hit.message or "")
    assert f".holdfast/worktrees/{hit.worktree}: git merge main" in (hit.message or "")
    assert behind.message == "Task 2 of its group has to be merged first."
    assert w.reason == "2 tasks couldn't be merged"
    assert w.marks().count("[~]") == 2
    assert "not merged: Both sides changed a.txt" in RunSummary(state).text()
    lines = [line for event in w.events for line in lines_of(event, total=4, numbered=True)]
    assert any(line.startswith("[2] not merged: Both sides changed a.txt") for line in lines)
    assert "[4] merged" in lines

    w, worker = again(repo)
    assert statuses(await w.run()) == ["completed", "unmerged", "unmerged", "completed"]
    assert not worker.requests  # nothing was solved, and nothing is done twice

    tree = repo / ".holdfast" / "worktrees" / str(hit.worktree)
    git(tree, "merge", "-q", "-X", "ours", "--no-edit", "main")
    w, worker = again(repo, at_once=1)
    assert statuses(await w.run()) == ["completed"] * 4
    assert files(repo)["a.txt"] == "2\n"
    assert {"two", "three"} <= files(repo).keys()
    assert not worker.requests
    assert not worktrees(repo)


async def test_a_reset_says_which_worktrees_stay(repo: Path, capsys: pytest.CaptureFixture[str]):
    w, _ = world(repo, "- a.txt 1\n- a.txt 2\n")
    state = await w.run()
    assert reset(parse(["run", "--reset", "-C", str(repo)])) == 0
    said = capsys.readouterr().err
    assert f"The worktree {state.tasks[1].worktree} stays: 1 commit that main lacks." in said
    assert len(worktrees(repo)) == 1


async def test_merges_wait_while_the_checkout_has_changes(repo: Path):
    w, worker = world(repo, "## g\n- one 1\n## h\n- two 2\n## i\n- three 3\n")
    worker.hold("two 2")

    def on(event: BatchEvent) -> None:
        match event:
            case TaskStarted(task=0):
                (repo / "a.txt").write_text("mine\n")
            case TaskMerged(task=0, status="unmerged"):
                worker.held["two 2"].set()
            case TaskFinished(task=1):
                git(repo, "checkout", "a.txt")
            case _:
                pass

    w.on_event = on
    assert statuses(await w.run()) == ["completed"] * 3
    assert "has uncommitted changes: a.txt" in w.of(TaskMerged)[0].message
    assert firsts(repo) == ["one 1", "Merge task 2: two 2", "Merge task 3: three 3"]


async def test_changes_that_stay_are_left_alone_and_the_work_waits(repo: Path):
    w, _ = world(repo, "- one 1\n- two 2\n")

    def on(event: BatchEvent) -> None:
        if isinstance(event, TaskStarted):
            (repo / "a.txt").write_text("my\n")

    w.on_event = on
    assert statuses(await w.run()) == ["unmerged"] * 2
    assert files(repo)["a.txt"] == "my\n"
    git(repo, "checkout", "a.txt")
    w, worker = again(repo)
    assert statuses(await w.run()) == ["completed"] * 2
    assert not worker.requests
    assert {"one", "two"} <= files(repo).keys()


async def unmerged(repo: Path) -> RunState:
    """Two tasks that are done and wait to be merged, in a clean checkout."""
    w, _ = world(repo, "- one 1\n- two 2\n")

    def on(event: BatchEvent) -> None:
        if isinstance(event, TaskStarted):
            (repo / "a.txt").write_text("my\n")

    w.on_event = on
    state = await w.run()
    assert statuses(state) == ["unmerged"] * 2
    git(repo, "checkout", "a.txt")
    return state


@pytest.mark.parametrize("committed", [False, True])
async def test_a_merge_that_a_kill_cut_off_is_concluded(repo: Path, committed: bool):
    state = await unmerged(repo)
    change = state.tasks[0].change
    assert change
    git(repo, "merge", "-q", "--no-ff", "--no-commit", change)
    message = repo / ".git" / "MERGE_MSG"
    message.write_text("Merge task 1: one 1")
    if committed:
        git(repo, "commit", "-q", "--no-edit")
        (repo / ".git" / "MERGE_HEAD").write_text(f"{change}\n")
        message.write_text("Merge task 1: one 1")
    w, worker = again(repo)
    assert statuses(await w.run()) == ["completed"] * 2
    assert not worker.requests
    assert "The merge of task 1 was cut off; it is done now." in w.said
    assert firsts(repo) == ["Merge task 1: one 1", "Merge task 2: two 2"]
    assert not (repo / ".git" / "MERGE_HEAD").exists()


async def test_a_merge_of_the_persons_is_left_alone(repo: Path):
    state = await unmerged(repo)
    git(repo, "merge", "-q", "--no-ff", "--no-commit", str(state.tasks[0].change))
    w, _ = again(repo)
    with pytest.raises(UsageError, match="A merge is in progress"):
        await w.run()


async def test_stopped_all_are_interrupted_and_done_by_the_next_run(repo: Path):
    w, worker = world(repo, "## g\n- one 1\n## h\n- two 2\n## i\n- three 3\n", at_once=3)
    worker.hold("one 1", "two 2")
    done = asyncio.Event()

    def on(event: BatchEvent) -> None:
        if isinstance(event, TaskFinished):
            done.set()

    w.on_event = on
    running = asyncio.create_task(w.run())
    await worker.until("one 1", "two 2")
    async with asyncio.timeout(PATIENCE_S):
        await done.wait()  # the third
    w.runner.stop()
    state = await running
    assert statuses(state) == ["interrupted", "interrupted", "completed"]
    assert w.reason == "interrupted"
    assert "three" in files(repo)
    assert not worktrees(repo)
    w, _ = again(repo)
    assert statuses(await w.run()) == ["completed"] * 3
    assert {"one", "two", "three"} <= files(repo).keys()


async def test_a_task_that_changes_nothing_has_nothing_to_merge(repo: Path):
    w, _ = world(repo, "## g\n- one 1\n## h\n- two 2\n")
    w.sessions[0] = ScriptedProvider(say("I did nothing."))
    state = await w.run()
    assert statuses(state) == ["completed"] * 2
    assert len(w.of(TaskMerged)) == 1
    assert [task.unchanged for task in state.tasks] == [True, False]


async def test_the_limit_of_cost_ends_all_that_run(repo: Path):
    prices = {"first": Price(input=10_000, output=0)}  # $1 a request
    w, worker = world(
        repo,
        "## g\n- one 1\n## h\n- two 2\n",
        stops=RunLimits(cost_usd=2.0),
        prices=prices,
    )
    worker.hold("two 2")
    state = await w.run()
    assert statuses(state) == ["completed", "interrupted"]
    assert w.reason == "reached the limit of $2.00"


async def test_added_tasks_wait_for_those_that_run_below_them(repo: Path):
    w, worker = world(repo, "## g\n- one 1\n## h\n- two 2\n")
    worker.hold("one 1")

    def on(event: BatchEvent) -> None:
        match event:
            case TaskStarted(text="two 2"):
                text = "## f\n- zero 0\n## g\n- one 1\n## h\n- two 2\n"
                (repo / "TASKS.md").write_text(text)
            case TaskFinished(task=1):
                worker.held["one 1"].set()
            case _:
                pass

    w.on_event = on
    state = await w.run()
    assert [(task.task, task.status) for task in state.tasks] == [
        ("zero 0", "completed"),
        ("one 1", "completed"),
        ("two 2", "completed"),
    ]
    assert {"zero", "one", "two"} <= files(repo).keys()


async def test_a_group_that_was_added_above_has_a_session_of_its_own(repo: Path):
    w, worker = world(repo, "## g\n- one 1\n- one 2\n## h\n- two 1\n- two 2\n- two 3\n")
    worker.hold("one 2")
    text = "## g\n- one 1\n- one 2\n## new\n- new 1\n## h\n- two 1\n- two 2\n- two 3\n"

    def on(event: BatchEvent) -> None:
        match event:
            case TaskFinished(task=2):
                (repo / "TASKS.md").write_text(text)
            case TaskFinished(task=4):
                worker.held["one 2"].set()
            case _:
                pass

    w.on_event = on
    state = await w.run()
    assert statuses(state) == ["completed"] * 6
    ids = [task.session_id for task in state.tasks]
    assert len(set(ids)) == 3
    assert ids[3] == ids[4] == ids[5] != ids[2]
    assert (files(repo)["two"], files(repo)["new"]) == ("3\n", "1\n")


async def test_what_is_in_a_worktree_beside_the_commits_is_not_thrown_away(repo: Path):
    w, _ = world(repo, "- one.o 1\n- two 2\n")  # git ignores *.o
    state = await w.run()
    assert statuses(state) == ["completed"] * 2
    (tree,) = worktrees(repo)
    assert (Path(tree.split()[0]) / "one.o").read_text() == "1\n"
    assert any("stays: 1 ignored file (one.o)" in said for said in w.said)


def test_where_tasks_can_not_be_merged_it_is_refused_in_words(tmp_path: Path):
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(UsageError, match="isn't in a git repository") as caught:
        TaskWorktrees(plain, plain / "TASKS.md").check()
    assert "without --parallel" in caught.value.hint
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    with pytest.raises(UsageError, match="has no commit"):
        TaskWorktrees(empty, empty / "TASKS.md").check()
    repo = make_repo(tmp_path / "repo")
    TaskWorktrees(repo, repo / "TASKS.md").check()
    git(repo, "checkout", "-q", "--detach")
    with pytest.raises(UsageError, match="is on none"):
        TaskWorktrees(repo, repo / "TASKS.md").check()
    (repo / ".jj").mkdir()
    with pytest.raises(UsageError, match="is a jj repository"):
        TaskWorktrees(repo, repo / "TASKS.md").check()


KILLED = "## g\n- [ ] one 1\n- [ ] one 2\n## h\n- [ ] two 2\n## i\n- [ ] three 3\n"


def counting(monkeypatch: pytest.MonkeyPatch, step: Callable[[], None]) -> None:
    """Call `step` after each save, and after each thing done to a branch."""

    def told(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def doing(*args: Any, **named: Any) -> Any:
            result = real(*args, **named)
            step()
            return result

        monkeypatch.setattr(owner, name, doing)

    for name in ("begin", "keep", "finish"):
        told(GitIsolation, name)
    for name in ("enter", "merge", "leave"):
        told(TaskWorktrees, name)
    told(state_module, "replace_file")


def check(repo: Path, state: RunState, said: str = "") -> None:
    """All is done, once. A worktree that is left was named, with why."""
    assert statuses(state) == ["completed"] * 4
    assert log(repo).count("one 1") == log(repo).count("one 2") == 1
    found = files(repo)
    assert (found["one"], found["two"], found["three"]) == ("2\n", "2\n", "3\n")
    assert "[ ]" not in (repo / "TASKS.md").read_text()
    assert all(f"{Path(line.split()[0]).name} stays: " in said for line in worktrees(repo))


@pytest.mark.parametrize(
    "last",
    [pytest.param(n, marks=() if n % 12 == 5 else pytest.mark.slow) for n in range(0, 36, 3)],
)
def test_killed_at_any_step_the_next_run_finds_the_worktrees_again(
    repo: Path, monkeypatch: pytest.MonkeyPatch, last: int
):
    w, _ = world(repo, KILLED, at_once=3)
    with monkeypatch.context() as patch:
        left = last

        def step() -> None:
            nonlocal left
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

        counting(patch, step)
        child = os.fork()
        if not child:
            os.setsid()
            try:
                asyncio.run(w.run())
            finally:
                os._exit(1)  # it should have been killed
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        while group_alive(child):
            Event().wait(0.01)  # git finishes what it was at
    w, _ = again(repo, at_once=3)
    state = asyncio.run(w.run())
    check(repo, state, "\n".join(e.text for e in w.events if isinstance(e, Notice)))


async def test_lines_say_which_task_they_are_about(repo: Path):
    w, _ = world(repo, "## g\n- one 1\n## h\n- two 2\n")
    await w.run()
    lines = [line for event in w.events for line in lines_of(event, total=2, numbered=True)]
    assert "parallel: 2 tasks at a time, each group in a checkout of its own" in lines
    assert "[1/2] g: one 1" in lines
    assert any(line.startswith("[2] » run_command printf") for line in lines)
    assert any(line.startswith("[2] done: ") and line.endswith(", to be merged") for line in lines)
    assert {event.task for event in w.of(FromAgent)} == {0, 1}


async def test_a_question_says_which_task_it_is_of(repo: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    answer = Yes.ask

    async def ask(self: Yes, asking: Call, decision: Decision) -> Answer:
        asked.append(asking.agent)
        return await answer(self, asking, decision)

    monkeypatch.setattr(Yes, "ask", ask)
    w, _ = world(repo, "## g\n- [ ] one 1\n## h\n- [ ] two 2\n")
    assert statuses(await w.run()) == ["completed"] * 2
    assert sorted(asked) == ["task 1", "task 2"]
    asked.clear()
    w, _ = world(repo, "- [ ] three 3\n", at_once=1)
    assert statuses(await w.run()) == ["completed"]
    assert asked == [""]
