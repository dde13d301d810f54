"""The result of a task in the store, brought to where the run began. Blocks.

Its commits become a branch of the run's repository, its sessions sessions of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec.structs import replace

from tui.app.packs.pack import default_name, pack
from tui.app.packs.unpack import unpack
from tui.batch.cluster.disk_space import is_full
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import StoredTask
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.batch.cluster.worker import PACKS
from tui.batch.git import RUNNING
from tui.batch.state import RUN_DIR, RunState, TaskState
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError, os_error_as
from tui.core.files import replace_file
from tui.core.git.checkout import Checkout
from tui.core.git.worktree import branch_for
from tui.core.late_pattern import late_pattern
from tui.core.output_store import unpacked_copy
from tui.core.paths import Folders
from tui.core.workspace import PRIVATE_DIR
from tui.session.reader import read

_STATE = "private/run/state.json"
_REFS = "refs.json"
_LOGS = "private/run/logs/"
_LOG = late_pattern(r"[0-9]{3,9}-(?:[0-9]{1,4}|summary)\.log")
"""The names of logs: what else a commit has could lead elsewhere."""
_CHANGE = late_pattern(r"[0-9a-f]{40}|refs/holdfast/[A-Za-z0-9._/-]+")
"""A commit, or where an attempt is kept: any other name would be one of the person's own."""
_PIECE = late_pattern(r"data/sessions/((?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)+[0-9]{12})")
_OUTPUT = late_pattern(
    r"(?:private|data/outputs/[A-Za-z0-9_-][A-Za-z0-9._-]*)/tool-results/[A-Za-z0-9_-]{1,80}\.txt"
)


class ResultError(HoldfastError):
    """A result in the store that can't be read, however often it is tried."""


@dataclass(slots=True)
class Result:
    """The states of a group's tasks, and what could not be brought along, in sentences."""

    tasks: tuple[TaskState, ...]
    problems: list[str] = field(default_factory=list[str])


def take(
    store: TaskStore,
    found: StoredTask,
    members: Sequence[TaskState],
    target: Path,
    worktree: str,
    *,
    folders: Folders,
    clock: Clock,
) -> Result:
    """Bring a group that is over to `target`: its commits as the branch of a `worktree` that is
    made only if they can't be merged. `members` are its tasks as they are here; where it was given
    up, those that weren't done have failed. Taking it twice changes nothing. Raises ResultError for
    one that is damaged, StoreError and GitError where it may be tried again."""
    commit, entry = found.commit, found.entry
    files = store.files(commit, _STATE, _REFS, _LOGS, f"{PACKS}/")
    if entry.state == "given_up" and _STATE not in files:  # lost before its first request
        return Result(_given_up(entry, members, ""))
    wanted = store.parents(commit)[1:]
    if not wanted or not {_STATE, _REFS} <= files.keys():
        raise ResultError("It has no state of its tasks.")
    contents = store.read_all(files)
    state, refs = _read(contents)
    indexes = [task.index for task in members]
    mine = tuple(task for task in state.tasks if task.index in indexes)
    if any(task.change and not _CHANGE.fullmatch(task.change) for task in mine):
        raise ResultError("It names a change that is none.")
    checkout = Checkout.of(target)
    fetch = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--")
    checkout.git(*fetch, str(store.mirror), *wanted, env={"GIT_ALLOW_PROTOCOL": "file"})
    began = "".join(filter(str.isdigit, state.started_at))[:14]
    for ref in filter(_refs_of(began, indexes).fullmatch, refs):
        checkout.git("update-ref", ref, refs[ref])
    if entry.state == "given_up":
        kept = ""
        begun = next((task for task in mine if task.status == "running"), None)
        if begun is not None and refs.get(RUNNING, wanted[0]) != wanted[0]:
            kept = f"refs/holdfast/{began}/task-{begun.index + 1}-attempt-{begun.attempts}"
            checkout.git("update-ref", kept, wanted[0])
        mine = _given_up(entry, mine, kept)
    changes = [task.change for task in mine if task.status == "completed" and task.change]
    if changes:
        checkout.git("update-ref", f"refs/heads/{branch_for(worktree)}", changes[-1])
    result = Result(tuple(_placed(entry, task, worktree) for task in mine))
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
    with os_error_as(StoreError, "Can't bring the task's sessions"):
        result.problems += _sessions(store, found, packs, target, folders=folders, clock=clock)
    return result


def _read(contents: Mapping[str, bytes]) -> tuple[RunState, dict[str, str]]:
    """The states of tasks in the files of a result, and its refs. Raises ResultError."""
    try:
        state = msgspec.json.decode(contents[_STATE], type=RunState)
        return state, msgspec.json.decode(contents[_REFS], type=dict[str, str])
    except msgspec.DecodeError as error:
        raise ResultError(f"{error}.") from error


def _refs_of(began: str, indexes: Sequence[int]) -> re.Pattern[str]:
    """The pattern of refs under which a run keeps failed attempts of some tasks."""
    numbers = "|".join(str(index + 1) for index in indexes)
    return re.compile(rf"refs/holdfast/{began}/task-(?:{numbers})-attempt-[0-9]+")


def _given_up(entry: TaskEntry, tasks: Sequence[TaskState], kept: str) -> tuple[TaskState, ...]:
    """The tasks of a group that was given up: those that weren't done have failed. The first of
    these had the workers that were lost; what it had changed is at the ref `kept`."""
    over = [task for task in tasks if task.status in {"completed", "failed"}]
    costs = [task.cost_usd for task in over]
    rest = entry.spent_usd
    if rest is not None:
        known = None not in costs
        rest = max(0.0, rest - sum(cost or 0.0 for cost in costs)) if known else None
    failed: dict[str, Any] = {
        "status": "failed",
        "message": f"Given up: {entry.losses.in_all} workers were lost with it; {entry.ended}.",
        "error_class": "unknown",
    }
    worked = {"attempts": entry.attempt, "cost_usd": rest, "change": kept or None}
    states = list[TaskState]()
    for task in tasks:
        if task in over:
            states.append(task)
        else:
            states.append(replace(task, **failed, **worked))
            worked = {}
    return tuple(states)


def _placed(entry: TaskEntry, task: TaskState, worktree: str) -> TaskState:
    """A task's state as it is here: what it has committed is to be merged, and where a limit ended
    it, that is why."""
    if task.status == "completed" and task.change:
        return replace(task, status="unmerged", worktree=worktree)
    if task.status == "interrupted" and entry.ended:
        why = f"spent its share, ${entry.cap_usd:.2f}" if entry.cap_reached else entry.ended
        task = replace(task, error_class="limit", message=why)
    return replace(task, worktree=None)


def _sessions(
    store: TaskStore,
    found: StoredTask,
    packs: Mapping[str, bytes],
    target: Path,
    *,
    folders: Folders,
    clock: Clock,
) -> Iterator[str]:
    """Make a group's sessions ones of this machine. Yields what could not be brought along."""
    with TemporaryDirectory(prefix="holdfast-") as folder:
        home = Folders(Path(folder) / "data", *[Path(folder)] * 3)
        records = _records(store, found, home) if found.entry.state == "given_up" else []
        for path in [*records, *map(Path, packs)]:
            file = Path(folder) / path.name
            if path not in records:
                file.write_bytes(packs[str(path)])
            try:
                if path in records:
                    file = file.with_name(default_name(path))
                    pack(path, file, folders=home, clock=clock, secrets="keep")
                unpacked = unpack(file, target, folders=folders, clock=clock)
            except (HoldfastError, OSError) as error:
                if is_full(str(error)):
                    raise StoreError(str(error)) from error
                yield f"A session of the task stays in the store: {error}"
                continue
            yield from unpacked.problems


def _records(store: TaskStore, found: StoredTask, home: Folders) -> list[Path]:
    """Put the records of a group into `home`, and its full outputs where they are found. A group
    that was given up has no packs: its worker didn't come to make them. Returns the sessions."""
    pieces: dict[str, list[str]] = {}
    for path in store.files(found.commit, "data/sessions/"):
        if _PIECE.fullmatch(path):
            pieces.setdefault(path.rpartition("/")[0], []).append(path)
    for record, parts in pieces.items():
        data = b"".join(store.read(found.commit, part) for part in sorted(parts))
        replace_file(home.sessions / record.removeprefix("data/sessions/"), data)
    sessions = sorted(home.sessions.glob("*/*.jsonl"))
    for path in store.files(found.commit):
        if _OUTPUT.fullmatch(path) and sessions:
            room, _, rest = path.partition("/")
            recorded = Path(found.entry.place) / path
            if room == "private":
                recorded = Path(read(sessions[0]).header.cwd) / PRIVATE_DIR / rest
            replace_file(unpacked_copy(recorded), store.read(found.commit, path))
    return sessions
