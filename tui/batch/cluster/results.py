"""The result of a task in the store, brought to where the run began. Blocks.

Its commits become a branch of the run's repository, its sessions sessions of this machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tui.app.packs.unpack import unpack
from tui.batch.cluster.lease import StoredTask
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.batch.cluster.worker import PACKS
from tui.batch.state import RUN_DIR, RunState, TaskState
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError, os_error_as
from tui.core.files import replace_file
from tui.core.git.checkout import Checkout
from tui.core.git.worktree import branch_for
from tui.core.late_pattern import late_pattern
from tui.core.paths import Folders

_STATE = "private/run/state.json"
_REFS = "refs.json"
_LOGS = "private/run/logs/"
_LOG = late_pattern(r"[0-9]{3,9}-(?:[0-9]{1,4}|summary)\.log")
"""The names of logs: what else a commit has could lead elsewhere."""


@dataclass(slots=True)
class Result:
    """The states of a group's tasks, and what could not be brought along, in sentences."""

    tasks: tuple[TaskState, ...]
    problems: list[str] = field(default_factory=list[str])


def take(
    store: TaskStore,
    found: StoredTask,
    indexes: tuple[int, ...],
    target: Path,
    worktree: str,
    *,
    folders: Folders,
    clock: Clock,
) -> Result:
    """Bring a finished task to `target`: its commits as the branch of a `worktree` that is made
    only if they can't be merged. Raises StoreError, GitError. Taking it twice changes nothing."""
    commit = found.commit
    files = store.files(commit, _STATE, _REFS, _LOGS, f"{PACKS}/")
    if not {_STATE, _REFS} <= files.keys():
        raise StoreError("It has no state of its tasks.")
    contents = store.read_all(files)
    state = msgspec.json.decode(contents[_STATE], type=RunState)
    mine = [task for task in state.tasks if task.index in indexes]
    checkout = Checkout.of(target)
    wanted = store.parents(commit)[1:]
    fetch = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-gc")
    checkout.git(*fetch, str(store.mirror), *wanted, env={"GIT_ALLOW_PROTOCOL": "file"})
    kept = _refs_of(state.started_at, indexes)
    refs: dict[str, str] = json.loads(contents[_REFS])
    for ref in filter(kept.fullmatch, refs):
        checkout.git("update-ref", ref, refs[ref])
    made = any(task.change and task.status == "completed" for task in mine)
    if made:
        checkout.git("update-ref", f"refs/heads/{branch_for(worktree)}", found.entry.head)
    result = Result(tuple(_placed(task, worktree) for task in mine))
    for path in (path for path in files if path.startswith(_LOGS)):
        name = path.removeprefix(_LOGS)
        if not _LOG.fullmatch(name):
            result.problems.append(f"A log with an odd name stays in the store: {name!r}")
            continue
        place = target / RUN_DIR / "logs" / name
        with os_error_as(StoreError, f"Can't write {place}"):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(place, contents[path])
    packs = {path: data for path, data in contents.items() if path.startswith(f"{PACKS}/")}
    result.problems += _sessions(packs, target, folders, clock)
    return result


def _refs_of(started_at: str, indexes: tuple[int, ...]) -> re.Pattern[str]:
    """The pattern of refs under which a run keeps failed attempts of some tasks."""
    began = "".join(filter(str.isdigit, started_at))[:14]
    numbers = "|".join(str(index + 1) for index in indexes)
    return re.compile(rf"refs/holdfast/{began}/task-(?:{numbers})-attempt-[0-9]+")


def _placed(task: TaskState, worktree: str) -> TaskState:
    """A task's state as it is here: what it has committed is to be merged."""
    if task.status == "completed" and task.change:
        return msgspec.structs.replace(task, status="unmerged", worktree=worktree)
    return msgspec.structs.replace(task, worktree=None)


def _sessions(
    packs: Mapping[str, bytes], target: Path, folders: Folders, clock: Clock
) -> Iterator[str]:
    with TemporaryDirectory(prefix="holdfast-") as folder:
        for path, data in packs.items():
            file = Path(folder) / path.rpartition("/")[2]
            try:
                file.write_bytes(data)
                unpacked = unpack(file, target, folders=folders, clock=clock)
            except (HoldfastError, OSError) as error:
                yield f"A session of the task stays in the store: {error}"
                continue
            yield from unpacked.problems
