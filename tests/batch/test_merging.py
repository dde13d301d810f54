"""What other processes have done in worktrees: merged in the order of the file, and never lost.

A run that an earlier version began with several tasks at a time goes on one after the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.batch.test_git import files, git, make_repo, status
from tests.batch.test_runner import World, statuses
from tests.support.provider import ScriptedProvider, call, say
from tui.app.options.parser import parse
from tui.batch.command import reset
from tui.batch.events import BatchEvent, TaskFinished, TaskMerged, TaskStarted
from tui.batch.git import GitIsolation
from tui.batch.report import RunSummary, lines_of
from tui.batch.run_store import read_tasks
from tui.batch.state import RunFolder, RunState, Status, TaskState, begin
from tui.batch.task_worktrees import TaskWorktrees
from tui.core.errors import UsageError
from tui.core.messages import Block, text_of
from tui.provider.base import Request


def work(request: Request) -> list[Block]:
    """Do what the task `FILE TEXT` says."""
    said = request.messages[-1]["content"]
    if any(block["type"] == "tool_result" for block in said):
        return say("done")
    name, text = text_of(said).splitlines()[-1].split()
    command = f"printf '{text}\\n' >{name}"
    return [call("run_command", f"toolu_{len(request.messages)}", command=command)]


class Left:
    """A run in a repository as other processes left it: tasks named `FILE TEXT`, those of `done`
    committed in the worktree of their group."""

    def __init__(self, repo: Path, tasks: str) -> None:
        self.repo, self.file = repo, repo / "TASKS.md"
        self.file.write_text(tasks)
        if status(repo):
            git(repo, "commit", "-qam", "tasks")
        self.trees = TaskWorktrees(repo, self.file)
        self.state = begin(self.file, read_tasks(self.file), now="2026-11-30T09:00:00Z")

    def done(self, *indexes: int) -> None:
        """Let tasks of one group be done, each with a commit, and not merged."""
        name = f"task-{indexes[0] + 1}-20261130090000"
        place = self.trees.enter(name)
        for index in indexes:
            task = self.state.tasks[index]
            place.isolation.begin()
            file, text = task.task.split()
            (place.folder / file).write_text(f"{text}\n")
            change = place.isolation.keep(task.task)
            place.isolation.finish()
            done = replace(task, status="unmerged", worktree=name, change=change, attempts=1)
            self.save(replace(done, session_id="theirs"))
        place.leave()

    def begun(self, index: int, status: Status, name: str, half: str) -> None:
        """Let a task be begun in a worktree, where a file of it is half made."""
        place = self.trees.enter(name)
        place.isolation.begin()
        (place.folder / half).write_text("half\n")
        place.leave()
        self.save(replace(self.state.tasks[index], status=status, worktree=name, session_id="gone"))

    def save(self, task: TaskState) -> None:
        self.state = self.state.with_task(task)
        folder = RunFolder(self.repo)
        with folder.locked():
            folder.save(self.state)


def again(repo: Path, **more: Any) -> tuple[World, ScriptedProvider]:
    """The run of the repository as a new program continues it."""
    isolation, worker = GitIsolation.find(repo, repo / "TASKS.md"), ScriptedProvider(*[work] * 20)
    assert isolation
    text = (repo / "TASKS.md").read_text()
    w = World(repo, text, [worker] * 20, window=200_000, isolation=isolation, **more)
    return w, worker


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def firsts(repo: Path) -> list[str]:
    """What the branch got, in its order."""
    return git(repo, "log", "--first-parent", "--reverse", "--format=%s", "main").splitlines()[2:]


def worktrees(repo: Path) -> list[str]:
    return git(repo, "worktree", "list").splitlines()[1:]


async def test_what_was_done_is_merged_in_the_order_of_the_file(repo: Path):
    left = Left(repo, "## g\n- [ ] one 1\n## h\n- [ ] two 2\n- [ ] two 3\n## i\n- [ ] three 3\n")
    left.done(1, 2)
    w, worker = again(repo)
    state = await w.run()
    assert statuses(state) == ["completed"] * 4
    assert firsts(repo) == ["one 1", "Merge task 2: two 2", "Merge task 3: two 3", "three 3"]
    assert [event.task for event in w.of(TaskStarted)] == [0, 3]
    assert [event.task for event in w.of(TaskMerged)] == [1, 2]
    assert len(worker.requests) == 4
    assert files(repo)["two"] == "3\n"
    assert w.marks() == "## g\n- [x] one 1\n## h\n- [x] two 2\n- [x] two 3\n## i\n- [x] three 3\n"
    assert not worktrees(repo)
    assert git(repo, "branch", "--format=%(refname:short)").split() == ["main"]
    assert w.reason == ""


async def test_a_conflict_is_kept_and_merged_by_the_next_run_once_it_is_solved(repo: Path):
    left = Left(
        repo, "## g\n- [ ] a.txt 1\n## h\n- [ ] a.txt 2\n- [ ] two 2\n## i\n- [ ] three 3\n"
    )
    for group in ((0,), (1, 2), (3,)):
        left.done(*group)
    w, _ = again(repo)
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

    w, _ = again(repo)
    assert statuses(await w.run()) == ["completed", "unmerged", "unmerged", "completed"]

    tree = repo / ".holdfast" / "worktrees" / str(hit.worktree)
    git(tree, "merge", "-q", "-X", "ours", "--no-edit", "main")
    w, worker = again(repo)
    assert statuses(await w.run()) == ["completed"] * 4
    assert files(repo)["a.txt"] == "2\n"
    assert {"two", "three"} <= files(repo).keys()
    assert not worker.requests  # nothing is done twice
    assert not worktrees(repo)


async def test_a_reset_says_which_worktrees_stay(repo: Path, capsys: pytest.CaptureFixture[str]):
    left = Left(repo, "- a.txt 1\n- a.txt 2\n")
    left.done(0)
    left.done(1)
    w, _ = again(repo)
    state = await w.run()
    assert reset(parse(["run", "--reset", "-C", str(repo)])) == 0
    said = capsys.readouterr().err
    assert f"The worktree {state.tasks[1].worktree} stays: 1 commit that main lacks." in said
    assert len(worktrees(repo)) == 1


async def test_merges_wait_while_the_checkout_has_changes(repo: Path):
    left = Left(repo, "- one 1\n- two 2\n- three 3\n")
    left.done(1)
    w, _ = again(repo)

    def on(event: BatchEvent) -> None:
        match event:
            case TaskFinished(task=0):
                (repo / "a.txt").write_text("mine\n")
            case TaskMerged(task=1, status="unmerged"):
                git(repo, "checkout", "a.txt")
            case _:
                pass

    w.on_event = on
    assert statuses(await w.run()) == ["completed"] * 3
    assert "has uncommitted changes: a.txt" in w.of(TaskMerged)[0].message
    assert firsts(repo) == ["one 1", "three 3", "Merge task 2: two 2"]


async def test_changes_that_stay_are_left_alone_and_the_work_waits(repo: Path):
    left = Left(repo, "- one 1\n- two 2\n")
    left.done(1)
    w, _ = again(repo)

    def on(event: BatchEvent) -> None:
        if isinstance(event, TaskFinished):
            (repo / "a.txt").write_text("my\n")

    w.on_event = on
    assert statuses(await w.run()) == ["completed", "unmerged"]
    assert files(repo)["a.txt"] == "my\n"
    git(repo, "checkout", "a.txt")
    w, worker = again(repo)
    assert statuses(await w.run()) == ["completed"] * 2
    assert not worker.requests
    assert {"one", "two"} <= files(repo).keys()


def unmerged(repo: Path) -> RunState:
    """Two tasks that are done and wait to be merged, in a clean checkout."""
    left = Left(repo, "- one 1\n- two 2\n")
    left.done(0)
    left.done(1)
    return left.state


@pytest.mark.parametrize("committed", [False, True])
async def test_a_merge_that_a_kill_cut_off_is_concluded(repo: Path, committed: bool):
    change = unmerged(repo).tasks[0].change
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
    git(repo, "merge", "-q", "--no-ff", "--no-commit", str(unmerged(repo).tasks[0].change))
    w, _ = again(repo)
    with pytest.raises(UsageError, match="A merge is in progress"):
        await w.run()


async def test_a_run_that_was_begun_in_parallel_goes_on_in_order(repo: Path):
    left = Left(repo, "## g\n- [ ] one 1\n- [ ] one 2\n## h\n- [ ] two 2\n## i\n- [ ] three 3\n")
    left.done(0)
    left.begun(1, "running", "task-1-20261130090000", "one")
    left.begun(2, "interrupted", "task-3-20261130090000", "two.o")  # git ignores *.o
    w, _ = again(repo)
    state = await w.run()
    assert statuses(state) == ["completed"] * 4
    assert "Task 2 was running when the last run died" in w.said[0]
    kept = "refs/holdfast/20261130090000/task-2-attempt-0"
    assert git(repo, "show", f"{kept}:one") == "half\n"
    assert firsts(repo) == ["one 1", "one 2", "two 2", "three 3"]
    found = files(repo)
    assert (found["one"], found["two"], found["three"]) == ("2\n", "2\n", "3\n")
    # what isn't committed anywhere is not thrown away
    (tree,) = worktrees(repo)
    assert (Path(tree.split()[0]) / "two.o").read_text() == "half\n"
    assert any("task-3-20261130090000 stays: 1 ignored file (two.o)" in said for said in w.said)


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
