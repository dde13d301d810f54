"""The state of a run: `.holdfast/run/state.json`, replaced whole at every transition.

The file is the truth about a run; the task file's checkboxes only echo it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from tui.batch.taskfile import Task, TaskFile
from tui.core.dataclass import dataclass
from tui.core.errors import StorageError, UsageError, os_error_as
from tui.core.files import read_small, replace_file
from tui.core.messages import Usage
from tui.core.private_files import private_dir
from tui.core.workspace import PRIVATE_DIR

Status: TypeAlias = Literal["pending", "running", "completed", "failed", "interrupted", "unmerged"]
"""`unmerged`: done in a worktree, and not in the branch yet."""

RUN_DIR: Final = f"{PRIVATE_DIR}/run"
PARTIAL_CHARS: Final = 500
"""Number of characters of an interrupted task's output that are kept, the last ones."""
_STATE_MAX: Final = 64_000_000


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """One task as the state file shows it. `index` and `section` count from 0; times are ISO 8601.

    `section` is the group, counted: two of the same name are two.
    `session_tokens` are those of its session until it was completed: the sum over the last request
    of each task. `message` says why it failed; `seconds` is how long it took, all attempts and
    waits. `worktree` is the one it was worked on in, as long as that is there. `unchanged`: it is
    completed, and no file is different.
    """

    index: int
    group: str
    section: int = 0
    task: str
    status: Status = "pending"
    session_id: str | None = None
    change: str | None = None
    unchanged: bool = False
    worktree: str | None = None
    log: str | None = None
    attempts: int = 0
    interrupted_at: str | None = None
    partial_context: str | None = None
    error_class: str | None = None
    message: str | None = None
    seconds: float = 0.0
    usage: dict[str, int] = {}
    cost_usd: float | None = None
    session_tokens: int = 0

    @property
    def is_to_do(self) -> bool:
        """True if a run works on it when its turn comes."""
        return self.status in {"pending", "interrupted"}


class TaskBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A message batch of tasks. `sessions` are those of its questions by custom id, `taken` the
    custom ids whose results are in the run's state.

    It is noted before it is sent: without an `id` nobody knows whether the server has it.
    `request_id` is of the request that carried it.
    """

    noted_at: str
    sessions: dict[str, str]
    taken: tuple[str, ...] = ()
    id: str = ""
    request_id: str | None = None

    @property
    def waiting(self) -> dict[str, str]:
        """The sessions whose results are not taken yet, by custom id."""
        taken = set(self.taken)
        return {id_: one for id_, one in self.sessions.items() if id_ not in taken}


class PlacedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose tasks are placed on machines by the engine `on`: its name in the `store`. `keys`
    are the groups of tasks there, each with its indexes; `taken` those whose results are here. They
    began from `branch`, and are merged into it, "" for the one that is checked out."""

    run: str
    store: str
    on: str
    keys: dict[str, tuple[int, ...]]
    branch: str = ""
    taken: tuple[str, ...] = ()

    @property
    def waiting(self) -> frozenset[int]:
        """The tasks whose results are still to come."""
        every = (set(indexes) for key, indexes in self.keys.items() if key not in self.taken)
        return frozenset[int]().union(*every)

    @property
    def handles(self) -> dict[str, str]:
        """The groups whose results aren't here, with the word by which an engine knows their
        workers where it outlives a driver."""
        return {key: f"{self.run}/{key}" for key in self.keys if key not in self.taken}

    @property
    def is_taken(self) -> bool:
        """True if the results of all groups are here."""
        return all(key in self.taken for key in self.keys)


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """A run of one task file. `sha256` is of its groups and texts; `batch` is the message batch
    whose results are waited for, `placed` where its tasks are worked on if not here."""

    task_file: str
    sha256: str
    started_at: str
    tasks: tuple[TaskState, ...]
    batch: TaskBatch | None = None
    placed: PlacedRun | None = None

    def with_task(self, changed: TaskState) -> RunState:
        """The state with one task replaced."""
        tasks = tuple(changed if task.index == changed.index else task for task in self.tasks)
        return replace(self, tasks=tasks)

    def counts(self) -> dict[Status, int]:
        """The number of tasks in each status."""
        counts: dict[Status, int] = {}
        for task in self.tasks:
            counts[task.status] = counts.get(task.status, 0) + 1
        return counts


def begin(path: Path, file: TaskFile, *, now: str) -> RunState:
    """The state before the first task. Tasks that are marked done stay done."""
    return RunState(
        task_file=named(path),
        sha256=file.sha256,
        started_at=now,
        tasks=tuple(map(_new, file.tasks)),
    )


def edited(state: RunState, file: TaskFile) -> RunState:
    """The state for a task file that the person edited in the tasks screen.

    A task keeps what is known of it where group and text are the same, the first for the first.
    """
    known: dict[tuple[str, str], list[TaskState]] = {}
    for task in state.tasks:
        known.setdefault((task.group, task.task), []).append(task)
    tasks: list[TaskState] = []
    for task in file.tasks:
        old = known.get((task.group, task.text))
        tasks.append(
            replace(old.pop(0), index=task.index, section=task.section) if old else _new(task)
        )
    return replace(state, sha256=file.sha256, tasks=tuple(tasks))


def with_added(state: RunState, file: TaskFile) -> RunState | None:
    """The state for a task file that has all its tasks in their order, and more between them;
    None for one that changes or lacks any."""
    return edited(state, file) if places_in(file, state) is not None else None


def places_in(file: TaskFile, state: RunState) -> list[int] | None:
    """The index that each task has in a file that may have more of them, in the same order; None
    where one is missing."""
    tasks = iter(file.tasks)
    places = [
        next((t.index for t in tasks if (t.group, t.text) == (task.group, task.task)), None)
        for task in state.tasks
    ]
    known = [place for place in places if place is not None]
    return known if len(known) == len(places) else None


def is_over(state: RunState) -> bool:
    """True if every task of a run is done or has failed."""
    return all(task.status in {"completed", "failed"} for task in state.tasks)


def _new(task: Task) -> TaskState:
    """The state of a task that nobody has begun. One that is marked done stays done."""
    return TaskState(
        index=task.index,
        group=task.group,
        section=task.section,
        task=task.text,
        status="completed" if task.mark == "x" else "pending",
    )


def named(path: Path) -> str:
    """A path in the state. Bytes that are not UTF-8 are spelt out: JSON can't hold them."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of a target's run: state, logs, lock. Everything here blocks."""

    target: Path

    @property
    def path(self) -> Path:
        return self.target / RUN_DIR

    @property
    def state_file(self) -> Path:
        return self.path / "state.json"

    @property
    def summary_file(self) -> Path:
        return self.path / "summary.md"

    def log_of(self, index: int, attempt: int | Literal["summary"]) -> Path:
        """Return the file for the output of one attempt of a task, or for the summary of the
        session that it closed."""
        return self.path / "logs" / f"{index + 1:03}-{attempt}.log"

    def load(self) -> RunState | None:
        """The state of the last run; None without one. Raises UsageError for a damaged one."""
        try:
            data, _ = read_small(self.state_file, limit=_STATE_MAX, follow=False)
            return msgspec.json.decode(data, type=RunState)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise UsageError(
                f"Can't read the run's state in {self.state_file}: {error}.",
                hint="Start over with --reset; the task file's checkboxes stay.",
            ) from error

    def load_for(self, path: Path, file: TaskFile) -> RunState | None:
        """The state of a run of this file, with the tasks that were added to it since; None where
        there is none, or one that is over and has nothing to do with it any more.

        Raises UsageError where a run that is not over is of another file, or of another text.
        """
        state = self.load()
        if state is None:
            return None
        if state.task_file != named(path):
            if is_over(state):
                return None
            raise UsageError(
                f"A run of {state.task_file} is unfinished here.",
                hint="Resume it, or start over with --reset.",
            )
        if state.sha256 != file.sha256:
            if added := with_added(state, file):
                return added
            if is_over(state):
                return None
            raise UsageError(
                f"{path.name} has changed since the run started.",
                hint="Undo the change, edit the tasks in the tasks screen, or use --reset.",
            )
        return state

    def save(self, state: RunState) -> None:
        """Replace the state, synced. Raises StorageError; the old one then remains."""
        data = msgspec.json.format(msgspec.json.encode(state), indent=1)
        hint = f"Free up space or fix the permissions of {self.state_file}, then run again."
        with os_error_as(StorageError, "Can't save the run's state", hint=hint):
            replace_file(self.state_file, data + b"\n")

    def worked_on(self) -> bool:
        """True if a runner is at work here now."""
        with suppress(OSError):
            file = os.open(self.path / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(file)
        return False

    def put_away(self) -> Path | None:
        """Move what an earlier run left to a folder of its own, and return that."""
        state = self.load()
        if state is None:
            return None
        began = "".join(filter(str.isdigit, state.started_at))[:14] or "earlier"
        with os_error_as(StorageError, f"Can't move the earlier run in {self.path} away"):
            place = next(
                place
                for number in count()
                if not (
                    place := self.path / "earlier" / f"{began}{f'-{number}' * (number > 0)}"
                ).exists()
            )
            place.mkdir(mode=0o700, parents=True)
            for path in (self.state_file, self.summary_file, self.path / "logs"):
                if path.exists():
                    path.rename(place / path.name)
        return place

    def reset(self) -> None:
        """Remove state and logs; boot.md and everything else stay. Raises StorageError."""
        with os_error_as(StorageError, f"Can't remove the run in {self.path}"):
            for file in (self.state_file, self.summary_file):
                file.unlink(missing_ok=True)
            for folder in ("logs", "workers"):
                with suppress(FileNotFoundError):
                    shutil.rmtree(self.path / folder)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Lock the target against other runners. The system frees the lock if we die.

        Raises UsageError while another runs here, StorageError where nothing can be written.
        """
        with os_error_as(StorageError, f"Can't write {self.path}"):
            os.close(private_dir(self.path))
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            file = os.open(self.path / "lock", flags, 0o600)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.read(file, 32).decode("ascii", "replace").strip()
                raise UsageError(
                    f"Another run is active here{f' (process {pid})' if pid else ''}.",
                    hint="Wait for it, or stop it with Ctrl+C.",
                ) from None
            os.truncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(file)


def total_usage(tasks: Iterable[TaskState]) -> Usage:
    """The usage of some tasks together."""
    return sum((Usage.from_json(task.usage) for task in tasks), Usage())
