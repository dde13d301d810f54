"""Runs whose groups are processes of this machine: which are, what they take up, and what of them
stays. The workers here are played, the store and the repository are real."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.batch.test_git import git, head, make_repo
from tests.support.clock import PATIENCE_S, FakeClock
from tui.app.options.parser import parse
from tui.batch.cluster.command import make_runner
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.cluster.engines.port import Life
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import read_task, ref_of
from tui.batch.cluster.run_spec import STATE_FILE, spec_for
from tui.batch.cluster.task_store import RUNS, TaskStore
from tui.batch.command import placed
from tui.batch.events import BatchEvent, TaskFinished
from tui.batch.plan import plan
from tui.batch.run_store import read_tasks
from tui.batch.state import PlacedRun, RunFolder, RunState, TaskBatch, TaskState, begin
from tui.batch.task_worktrees import TaskWorktrees
from tui.core.errors import UsageError
from tui.core.facts import Notice
from tui.core.paths import folders

Plays = Callable[[TaskState, TaskEntry], tuple[TaskState, float]]


def completed(task: TaskState, entry: TaskEntry) -> tuple[TaskState, float]:
    del entry
    return replace(task, status="completed", attempts=1, cost_usd=0.0), 0.0


@dataclass
class Players:
    """An engine whose workers are done at once: `plays` says with what, and at what cost."""

    store: TaskStore
    plays: Plays = completed
    slots: int = 2
    name: str = "local"
    outlives: bool = False
    look_s: float = 0.0
    given_up: bool = False
    puts: list[str] = field(default_factory=list[str])
    begun: list[TaskState] = field(default_factory=list[TaskState])
    caps: list[float | None] = field(default_factory=list[float | None])

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        for key, words in commands.items():
            self._play(words[1].partition("/")[0], key)
        self.puts += commands
        return {key: words[1] for key, words in commands.items()}

    def _play(self, run: str, key: str) -> None:
        store, ref = self.store, ref_of(run, key)
        found = read_task(store, ref)
        made = store.refs(f"{RUNS}{run}")[f"{RUNS}{run}"]
        store.fetch({f"{RUNS}{run}": made})
        state = msgspec.json.decode(store.read(made, STATE_FILE), type=RunState)
        tasks: list[TaskState] = []
        spent = 0.0
        self.caps.append(found.entry.cap_usd)
        for task in state.tasks:
            if task.index not in found.entry.tasks:
                continue
            self.begun.append(task)
            played, cost = self.plays(task, found.entry)
            spent += cost
            tasks.append(played)
        files = {
            "private/run/state.json": msgspec.json.encode(replace(state, tasks=tuple(tasks))),
            "refs.json": b"{}",
        }
        (base,) = store.parents(made)
        entry = replace(
            found.entry,
            state="given_up" if self.given_up else "done",
            attempt=1,
            number=found.entry.number + 1,
            spent_usd=spent,
            head=base,
        )
        commit = store.commit(entry.to_message(), upon=found.commit, works=[base], files=files)
        assert store.move({ref: (found.commit, commit)})

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        return dict.fromkeys(handles, "ended")

    def fetch(self, handle: str) -> str:
        del handle
        return ""

    def cancel(self, handles: Collection[str]) -> None:
        pass

    def close(self) -> None:
        pass


class World:
    """A repository with a task file, and drivers of its runs."""

    def __init__(self, folder: Path, tasks: str) -> None:
        self.home = folders()
        self.repo = make_repo(folder / "repo")
        self.file = self.repo / "TASKS.md"
        self.file.write_text(tasks)
        if git(self.repo, "status", "--porcelain"):
            git(self.repo, "commit", "-qam", "tasks")
        place = self.home.data / "stores" / "repo.git"
        self.place, self.mirror = place, folder / "scratch" / "mirror"
        self.events: list[BatchEvent] = []

    def store(self) -> TaskStore:
        store = TaskStore.at(str(self.place), self.mirror)
        store.make()
        return store

    def show(self, event: BatchEvent) -> None:
        self.events.append(event)

    def state(self, *tasks: TaskState, placed: PlacedRun | None = None) -> None:
        """Leave a run as an earlier program did: these tasks in the place of those of the file."""
        new = begin(self.file, read_tasks(self.file), now="2026-11-30T09:00:00Z")
        own = {task.index: task for task in tasks}
        every = tuple(own.get(task.index, task) for task in new.tasks)
        folder = RunFolder(self.repo)
        with folder.locked():
            folder.save(replace(new, tasks=every, placed=placed))

    def task(self, index: int, **changes: Any) -> TaskState:
        new = begin(self.file, read_tasks(self.file), now="")
        return replace(new.tasks[index], **changes)

    async def run(
        self, *words: str, plays: Plays = completed, **engine: Any
    ) -> tuple[RunState, Players]:
        given = ["run", str(self.file), "-C", str(self.repo), "--practice", "--headless", *words]
        options = parse(given)
        store = await asyncio.to_thread(self.store)
        players = Players(store, plays, **engine)
        planned = await asyncio.to_thread(plan, options)
        self.runner = PlacedRunner(
            planned, options, store, players, self, clock=FakeClock(), confined=False
        )
        async with asyncio.timeout(PATIENCE_S):
            return await self.runner.run(), players

    @property
    def said(self) -> str:
        return "\n".join(event.text for event in self.events if isinstance(event, Notice))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], World]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return lambda tasks: World(tmp_path, tasks)


def statuses(state: RunState) -> list[str]:
    return [task.status for task in state.tasks]


# Which runs are


def test_several_at_a_time_are_processes_and_so_is_the_rest_of_such_a_run(
    world: Callable[[str], World],
) -> None:
    w = world("- one\n- two\n")
    run = ["run", str(w.file), "-C", str(w.repo)]
    assert placed(parse(run)).batch.on is None
    assert placed(parse([*run, "--parallel", "2"])).batch.on == "local"
    assert placed(parse([*run, "--on", "slurm", "--parallel", "2"])).batch.on == "slurm"
    assert placed(parse([*run, "--batch-api"])).batch.on is None
    assert placed(parse([*run, "--on", "local"])).batch.parallel >= 1
    w.state(placed=PlacedRun(run="R", store=str(w.place), on="local", keys={"00001": (0,)}))
    again = placed(parse(run)).batch
    assert (again.on, again.parallel) == ("local", 1)
    w.state(placed=PlacedRun(run="R", store="host:x", on="slurm", keys={"00001": (0,)}))
    assert placed(parse(run)).batch.on is None


def test_what_decides_about_a_run_goes_along_with_it(world: Callable[[str], World]) -> None:
    w = world("- one\n")
    words = ("--fallback-model", "other", "--max-failures", "2", "--max-time", "90s")
    options = parse(["run", str(w.file), "-C", str(w.repo), "--practice", *words])
    near = spec_for(plan(options), options, "R", confined=True, asks=False, near=True)
    assert near.fallback == "other"
    assert near.origin == str(w.repo)
    batch = near.config["batch"]
    assert (batch["max_failures"], batch["max_time_s"], batch["max_cost"]) == (2, 0, 0.0)
    assert not near.boot
    assert spec_for(plan(options), options, "R", confined=True, asks=False, near=False).origin == ""
    (w.repo / ".holdfast").mkdir()
    (w.repo / ".holdfast" / "boot.md").write_text("Begin.\n")  # which git ignores
    trusting = parse(["run", str(w.file), "-C", str(w.repo), "--practice", "--trust"])
    assert spec_for(plan(trusting), trusting, "R", confined=True, asks=False, near=True).boot


def test_a_worker_has_the_profile_of_the_run_or_refuses(
    world: Callable[[str], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    w = world("- one\n")
    folders().config_file.parent.mkdir(parents=True, exist_ok=True)
    folders().config_file.write_text("[profile.work]\nmodel = 'm'\n")
    run = ["run", str(w.file), "-C", str(w.repo), "--practice"]
    for words, name in (((), "default"), (("--profile", "work"), "work")):
        options = parse([*run, *words])
        spec = spec_for(plan(options), options, "R", confined=True, asks=False, near=True)
        assert spec.config["profile"] == name
        monkeypatch.setenv("HOLDFAST_PROFILE", "work")  # that of the worker's machine
        theirs = plan(parse(run), settled=spec.config)
        assert theirs.launch.access.profile.shown == name
        monkeypatch.delenv("HOLDFAST_PROFILE")
    folders().config_file.write_text("")
    with pytest.raises(UsageError, match="there is no profile work"):
        plan(parse(run), settled={"profile": "work"})


def test_a_worker_sends_its_own_key_to_no_server_of_the_folders(
    world: Callable[[str], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    w = world("- one\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-" + "k" * 40)
    run = ["run", str(w.file), "-C", str(w.repo)]
    (w.repo / ".holdfast").mkdir()
    file = w.repo / ".holdfast" / "config.toml"
    file.write_text('base_url = "https://folder.example"\n')
    options = parse([*run, "--trust"])
    here = plan(options)
    assert (here.launch.config.base_url, here.launch.access.key) == ("https://folder.example", None)
    spec = spec_for(here, options, "R", confined=True, asks=False, near=True)
    for there in (file.read_text(), ""):  # git may ignore it
        file.write_text(there)
        access = plan(parse(run), settled=spec.config, foreign=spec.foreign).launch.access
        assert (access.key, access.foreign_server) == (None, True)
    own = spec_for(plan(parse(run)), options, "R", confined=True, asks=False, near=True)
    assert plan(parse(run), settled=own.config, foreign=own.foreign).launch.access.key


# What they take up


async def test_a_task_that_another_program_had_begun_here_begins_again(
    world: Callable[[str], World],
) -> None:
    w = world("- [ ] one\n- [ ] two\n")
    trees = TaskWorktrees(w.repo, w.file)
    tree = trees.enter(name := "task-1-20261130090000")
    tree.isolation.begin()
    (tree.folder / "half.txt").write_text("half\n")
    tree.leave()
    log = w.repo / ".holdfast" / "run" / "logs" / "001-1.log"
    log.parent.mkdir(parents=True)
    log.write_text("Half of it.")
    begun = w.task(
        0, status="running", worktree=name, attempts=1, session_id="gone",
        log=".holdfast/run/logs/001-1.log",
    )  # fmt: skip
    here = w.task(1, status="running", attempts=1, session_id="gone too")
    w.state(begun, here)
    state, players = await w.run()
    assert statuses(state) == ["completed"] * 2
    kept = "refs/holdfast/20261130090000/task-1-attempt-1"
    assert f"Task 1 was running when the last run died. Its changes are kept in {kept}." in w.said
    assert "Task 2 was running when the last run died." in w.said
    assert git(w.repo, "show", f"{kept}:half.txt") == "half\n"
    assert git(w.repo, "worktree", "list").count("\n") == 1
    assert [task.status for task in players.begun] == ["interrupted"] * 2
    assert players.begun[0].partial_context == "Half of it."


async def test_what_another_program_had_done_is_merged_before_the_rest_of_its_group(
    world: Callable[[str], World],
) -> None:
    w = world("## g\n- [ ] one\n- [ ] two\n## h\n- [ ] three\n")
    done = _done_in_a_worktree(w, "one.txt")
    w.state(done)
    state, players = await w.run()
    assert statuses(state) == ["completed"] * 3
    assert players.puts == ["00002", "00003"]
    assert (w.repo / "one.txt").exists()
    assert git(w.repo, "worktree", "list").count("\n") == 1


async def test_a_group_waits_until_its_conflict_is_solved(world: Callable[[str], World]) -> None:
    w = world("## g\n- [ ] one\n- [ ] two\n## h\n- [ ] three\n")
    w.state(_done_in_a_worktree(w, "a.txt"))
    (w.repo / "a.txt").write_text("ours\n")
    git(w.repo, "commit", "-qam", "ours")
    state, players = await w.run()
    assert statuses(state) == ["unmerged", "pending", "completed"]
    assert players.puts == ["00003"]
    assert w.runner.reason == "1 task couldn't be merged"
    assert w.place.exists()  # it may be looked at


def _done_in_a_worktree(w: World, name: str) -> TaskState:
    """The first task, done in a worktree where it wrote a file, and not merged."""
    trees = TaskWorktrees(w.repo, w.file)
    tree = trees.enter(worktree := "task-1-20261130090000")
    tree.isolation.begin()
    (tree.folder / name).write_text("theirs\n")
    change = tree.isolation.keep("one")
    tree.isolation.finish()
    tree.leave()
    return w.task(0, status="unmerged", worktree=worktree, change=change, attempts=1)


async def test_tasks_that_a_killed_driver_saw_at_work_stay_theirs(
    world: Callable[[str], World],
) -> None:
    w = world("- [ ] one\n- [ ] two\n")
    named = PlacedRun(run="R", store=str(w.place), on="local", keys={"00001": (0,), "00002": (1,)})
    w.state(w.task(0, status="running", attempts=1, session_id="theirs"), placed=named)
    state, players = await w.run()
    assert statuses(state) == ["completed"] * 2
    assert "died" not in w.said
    assert [task.status for task in players.begun] == ["pending"] * 2


async def test_a_message_batch_is_left_to_its_own_run(world: Callable[[str], World]) -> None:
    w = world("- [ ] one\n")
    w.state()
    folder = RunFolder(w.repo)
    state = folder.load()
    assert state is not None
    folder.save(replace(state, batch=TaskBatch(noted_at="", sessions={"a": "b"}, id="x")))
    with pytest.raises(UsageError, match="A message batch"):
        await w.run()


async def test_a_shallow_clone_has_runs_too(world: Callable[[str], World]) -> None:
    w = world("- [ ] one\n- [ ] two\n")
    source = w.repo.rename(w.repo.with_name("source"))
    git(source, "commit", "-q", "--allow-empty", "-m", "second")
    git(source.parent, "clone", "-q", "--depth", "1", f"file://{source}", str(w.repo))
    before = (w.repo / ".git" / "shallow").read_bytes()
    state, _ = await w.run()
    assert statuses(state) == ["completed"] * 2
    assert (w.repo / ".git" / "shallow").read_bytes() == before
    git(w.repo, "fsck")


async def test_a_repository_of_long_names_is_refused_in_words(
    world: Callable[[str], World], tmp_path: Path
) -> None:
    w = world("- [ ] one\n")
    w.repo = tmp_path / "long"
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", str(w.repo))
    git(w.repo, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty",
        "-m", "first")  # fmt: skip
    options = parse(["run", str(w.file), "-C", str(w.repo), "--practice", "--on", "local"])
    with pytest.raises(UsageError, match="names its objects by SHA-256"):
        await make_runner(plan(options), options, w, FakeClock())


# Limits


async def test_what_others_left_goes_to_a_task_whose_share_was_too_small(
    world: Callable[[str], World], tmp_path: Path
) -> None:
    w = world("- [ ] one\n- [ ] two\n")
    config = w.home.config_file
    config.parent.mkdir(parents=True)
    config.write_text('[prices."practice"]\ninput = 1\noutput = 1\n')

    def plays(task: TaskState, entry: TaskEntry) -> tuple[TaskState, float]:
        needs = 3.0 if task.index == 0 else 0.5
        spent = min(needs, entry.cap_usd or 0.0)
        status = "completed" if spent == needs else "interrupted"
        return replace(task, status=status, attempts=1, cost_usd=spent), spent

    state, players = await w.run("--max-cost", "8", plays=plays)
    assert statuses(state) == ["completed"] * 2
    w.events.clear()
    git(w.repo, "checkout", "-q", "TASKS.md")
    RunFolder(w.repo).reset()
    state, players = await w.run("--max-cost", "4", plays=plays)
    assert players.caps == [2.0, 2.0, 1.5]
    assert statuses(state) == ["interrupted", "completed"]
    assert state.tasks[0].cost_usd == 3.5
    assert w.runner.reason == "reached the limit of $4.00"


async def test_after_too_many_failures_nothing_more_begins(world: Callable[[str], World]) -> None:
    w = world("- [ ] one\n- [ ] two\n- [ ] three\n- [ ] four\n")

    def fails(task: TaskState, entry: TaskEntry) -> tuple[TaskState, float]:
        del entry
        return replace(task, status="failed", attempts=1, error_class="unknown"), 0.0

    state, players = await w.run("--max-failures", "2", plays=fails)
    assert statuses(state) == ["failed", "failed", "pending", "pending"]
    assert players.puts == ["00001", "00002"]
    assert w.runner.reason == "2 tasks failed in a row"


# What stays


async def test_a_store_goes_once_all_is_merged(world: Callable[[str], World]) -> None:
    w = world("- [ ] one\n")
    await w.run()
    assert not w.place.exists()
    assert not any(w.mirror.iterdir())
    assert head(w.repo)


async def test_a_store_stays_where_it_alone_has_what_was_done(
    world: Callable[[str], World],
) -> None:
    w = world("- [ ] one\n")

    def stays(task: TaskState, entry: TaskEntry) -> tuple[TaskState, float]:
        del entry
        return replace(task, status="running", attempts=1), 0.0

    state, _ = await w.run(given_up=True, plays=stays)
    assert statuses(state) == ["failed"]
    assert w.place.exists()
    assert [event.status for event in w.events if isinstance(event, TaskFinished)] == ["failed"]
