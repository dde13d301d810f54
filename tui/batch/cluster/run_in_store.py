"""A run as it goes into the store: what its workers need, and a ref for each of its groups."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tui.app.options.arguments import Options
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import ref_of
from tui.batch.cluster.run_spec import BOOT_FILE, STATE_FILE, TASK_FILE, boot_of, spec_for
from tui.batch.cluster.task_store import RUNS, CommitDraft, StoreError, TaskStore
from tui.batch.plan import RunPlan
from tui.batch.state import RunState, TaskState
from tui.batch.taskfile import UNGROUPED
from tui.core.files import read_small
from tui.core.git.checkout import Checkout
from tui.core.paths import Folders


def put_run(
    store: TaskStore,
    planned: RunPlan,
    options: Options,
    state: RunState,
    *,
    confined: bool,
    asks: bool,
) -> None:
    """Put the run that a state has placed into the store, with its tasks, if it isn't there.
    `confined`: commands run in a sandbox; `asks`: somebody answers questions. Blocks; raises
    StoreError, GitError."""
    placed = state.placed
    assert placed is not None
    run_ref = f"{RUNS}{placed.run}"
    if run_ref in store.refs(run_ref):
        return
    near = placed.on == "local"
    spec = spec_for(planned, options, placed.run, confined=confined, asks=asks, near=near)
    files: dict[str, bytes | None] = {TASK_FILE: read_small(planned.task_file)[0]}
    if (boot := boot_of(planned)) is not None:
        files[BOOT_FILE] = read_small(boot)[0]
    repository = Checkout.of(planned.target).common
    if (repository / "shallow").exists() and not store.is_here:
        raise StoreError(
            "This repository is a shallow clone, and the store isn't on this machine.",
            hint="Fetch the rest of it: git fetch --unshallow",
        )
    store.bring([spec.base], repository)
    files[STATE_FILE] = msgspec.json.encode(_before(state))
    drafts = [CommitDraft(spec.to_message(), works=(spec.base,), files=files)]
    for key, indexes in placed.keys.items():
        drafts.append(CommitDraft(TaskEntry(key=key, tasks=indexes).to_message()))
    refs = [run_ref, *(ref_of(placed.run, key) for key in placed.keys)]
    made = store.commits(drafts)
    moves = {ref: ("", commit) for ref, commit in zip(refs, made, strict=True)}
    store.keep(run_ref, made[0])
    if not store.move(moves):
        raise StoreError(f"The store has another run {placed.run}.")


def stores_of(folders: Folders) -> Path:
    """The folder of the stores of runs whose workers are all on this machine."""
    return folders.data / "stores"


def groups_to_do(state: RunState, tried: Collection[int]) -> dict[str, tuple[int, ...]]:
    """The groups of tasks that are to be done and were not `tried`, by the names that they have in
    the store: tasks of a group share a session, and one above the first heading is on its own. A
    group waits for what of it has to be merged first."""
    groups: dict[tuple[int, int], list[int]] = {}
    waits = {_group_of(task) for task in state.tasks if task.status == "unmerged"}
    for task in state.tasks:
        if task.is_to_do and task.index not in tried and _group_of(task) not in waits:
            groups.setdefault(_group_of(task), []).append(task.index)
    return {f"{indexes[0] + 1:05}": tuple(indexes) for indexes in groups.values()}


def _group_of(task: TaskState) -> tuple[int, int]:
    return (task.section, task.index if task.group == UNGROUPED else -1)


def _before(state: RunState) -> RunState:
    """The state with which workers begin: what a killed driver saw running isn't theirs."""
    tasks = (
        replace(task, status="pending") if task.status == "running" else task
        for task in state.tasks
    )
    return replace(state, placed=None, tasks=tuple(tasks))
