"""A task's folder on the machine that works on it: made from the store, and put into it. Blocks.

    work/    an ordinary checkout, on the branch of the run, at the commit it had come to
    data/    sessions and full outputs of the task alone, as in the platform's data folder
    new/     how the files of the checkout were when they were new, if a later task may have them

It always has the same path, on every machine where it can: the model has read it, so only there
can a lost task go on as if nothing had happened.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from tui.batch.cluster import spare_checkouts
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.run_spec import BOOT_FILE, STATE_FILE, TASK_FILE, RunSpec
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.batch.git import RUNNING
from tui.batch.isolation import excluded_paths
from tui.batch.state import RUN_DIR, RunState, TaskState, named
from tui.core.dataclass import dataclass, field
from tui.core.errors import os_error_as
from tui.core.files import read_small, replace_file
from tui.core.git.checkout import Checkout
from tui.core.git.door import git
from tui.core.git.snapshot import changed_paths, commit_tree, paths_between, put_back, tree_of
from tui.core.paths import Folders
from tui.core.private_files import private_folder
from tui.core.workspace import PRIVATE_DIR
from tui.session.checkpoints.scratch import remove_tree

_REFS: Final = "refs.json"
_KEPT: Final = "refs/holdfast/"
"""Refs that are part of a task: what its failed attempts had done."""
_SKIPPED: Final = (".lock", ".tmp", ".draft", "/lock")
_PERSON: Final = {"name": "GIT_AUTHOR_NAME", "email": "GIT_AUTHOR_EMAIL"}
_PIECE: Final = "{:012d}"
_FILE_MAX: Final = 64_000_000
"""Bytes of a file of a task's own that are put into the store; a larger one isn't."""
_ROOMS: Final = ("run", "tool-results", "plans")
"""The folders in `.holdfast/` that are a task's own."""


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """A task's state as it goes into the store: `files` that are new or changed, by their paths in
    the tree, None for one that is gone, and the commits that hold its `works`, first that of all
    its files as they are, made upon `head`. Of these the store may lack the `new` ones, which are
    in `repository`. `known` is for `Workplace.stored`."""

    files: Mapping[str, bytes | None]
    works: tuple[str, ...]
    head: str
    new: tuple[str, ...]
    repository: Path
    known: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, "tuple[int, int]"])


@dataclass(slots=True)
class Workplace:
    """The folder of one task at `place`, for a run of `spec`. `make` first."""

    place: Path
    spec: RunSpec
    _known: dict[str, tuple[int, int]] = field(default_factory=dict[str, "tuple[int, int]"])
    """Size and time of each file when it was last put into the store."""
    _brought: set[str] = field(default_factory=set[str])
    """The commits of works that the store has."""
    _settles_at: float = 0.0
    """The time, of the clock of files, from which the index is worth to be refreshed: what is as
    old as the index, in whole seconds, is read at each look."""

    @property
    def top(self) -> Path:
        """The top of the checkout."""
        return self.place / "work"

    @property
    def target(self) -> Path:
        """The folder in which the tasks work."""
        return self.top / self.spec.inside

    @property
    def base(self) -> Path:
        """The repository on this machine that has what the run begins from, and nothing of other
        tasks: confined commands read it."""
        return self.place.parent / "base.git"

    @property
    def task_file(self) -> Path:
        """The task file, where no task can commit it."""
        named = self.spec.task_file
        return self.top / named if named else self.target / PRIVATE_DIR / TASK_FILE

    @property
    def _new(self) -> Path:
        return self.place / "new"

    @property
    def _spares(self) -> Path:
        return self.place.parent / "spare"

    def folders(self, usual: Folders) -> Folders:
        """The program's folders for this task: its data is its own."""
        return Folders(self.place / "data", usual.config, usual.cache, usual.log)

    def make(self, store: TaskStore, run: str, commit: str, entry: TaskEntry) -> bool:
        """Make the folder again: from the state of the task in `commit`, else as every task begins.
        `run` is the commit of the run. True if the task goes on where it was. Raises StoreError,
        GitError."""
        goes_on = bool(entry.head) and entry.place == str(self.place)
        with os_error_as(StoreError, f"Can't make {self.place}"):
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in ("work", "data"):
                remove_tree(self.place / name)
            (self.place / "data").mkdir(mode=0o700)
        works = store.parents(commit)[1:] if goes_on else []
        self._brought = {self.spec.base, *works, *([entry.head] if goes_on else [])}
        self._check_out(store, entry.head if goes_on else self.spec.base, works)
        if Path(os.path.realpath(self.target)) != self.target:
            raise StoreError(f"{self.target} is a link that the task committed; it isn't followed.")
        if entry.head:
            self._restore(store, commit, work=goes_on)
        if goes_on:
            self._put_work(works[0], entry.head)
        private_folder(self.target / PRIVATE_DIR)
        if not goes_on:
            state = msgspec.json.decode(store.read(run, STATE_FILE), type=RunState)
            here = replace(
                state,
                task_file=named(self.task_file),
                tasks=tuple(_for(entry, task) for task in state.tasks),
            )
            self._write(self.target / RUN_DIR / STATE_FILE, msgspec.json.encode(here))
        self._write(self.task_file, store.read(run, TASK_FILE))
        if self.spec.boot:
            self._write(self.target / PRIVATE_DIR / BOOT_FILE, store.read(run, BOOT_FILE))
        return goes_on

    def snapshot(self, store: TaskStore) -> TaskSnapshot:
        """The task's state as it is now; the commit of its files is made where the store's mirror
        has its objects. Raises GitError, StoreError."""
        checkout = Checkout.of(self.top)
        if self._settles_at and time.time() >= self._settles_at:
            self._settles_at = 0.0
            checkout.git("update-index", "-q", "--refresh")
        head = checkout.commit()
        out = excluded_paths(self.top, self.target, self.task_file)
        changed = [
            path
            for path in sorted(changed_paths(checkout))
            if not any(path == one or path.startswith(f"{one}/") for one in out)
        ]
        work = head
        if changed:
            env = {
                **self.spec.identity,
                "GIT_OBJECT_DIRECTORY": str(store.mirror / "objects"),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(checkout.common / "objects"),
            }
            tree = tree_of(checkout, head, changed, env)
            work = commit_tree(checkout, tree, [head], "holdfast: work so far\n", env=env)
        refs = dict(self._refs(checkout))
        known = dict(self._known)
        files = dict(self._changed_files(known))
        files[_REFS] = json.dumps(refs, sort_keys=True).encode()
        kept = sorted({*refs.values()} - {work, head})
        new = tuple(one for one in (head, *kept) if one not in self._brought)
        return TaskSnapshot(files, (work, *kept), head, new, checkout.common, known)

    def stored(self, snapshot: TaskSnapshot) -> None:
        """A snapshot is in the store: the next one has what has changed since."""
        self._known = dict(snapshot.known)
        self._brought.update(snapshot.new)

    def remove(self, *, spare: bool = False) -> None:
        """Remove all of it: the store has what counts. Where nothing works in it any more, the next
        task of the run may have the checkout as a `spare` one."""
        if spare and self._new.exists():
            spare_checkouts.give(self._spares, self.top, self._new)
        remove_tree(self.place)

    # Making it

    def _check_out(self, store: TaskStore, start: str, works: list[str]) -> None:
        remove_tree(self._new)
        spare = not works and spare_checkouts.take(self._spares, self.top, self._new)
        checkout = self._with_git(store, start, works, fresh=not spare)
        if spare:
            try:
                spare_checkouts.renew(checkout, self._new)
            except (OSError, msgspec.DecodeError):
                checkout = self._with_git(store, start, works, fresh=True)
        checkout.git("reset", "-q", "--hard")
        self._settles_at = int(time.time()) + 1.0
        remove_tree(self._new)
        if not works:
            spare_checkouts.note(checkout, self._new)

    def _with_git(self, store: TaskStore, start: str, works: list[str], *, fresh: bool) -> Checkout:
        """Make git's folder of the checkout, and the checkout itself where it is a `fresh` one."""
        top, branch = self.top, self.spec.branch
        remove_tree(top if fresh else top / ".git")
        top.mkdir(mode=0o700, exist_ok=True)
        git(top, "init", "-q", "-b", branch, str(top))
        base = store.base(self.spec.base, self.base)
        inside = top / ".git"
        self._write(inside / "objects" / "info" / "alternates", f"{base}/objects\n".encode())
        settings = (inside / "config").read_text("utf-8", "surrogateescape")
        settings += "[user]\n"
        for key, name in _PERSON.items():
            if value := self.spec.identity.get(name):
                settings += f"\t{key} = {_quoted(value)}\n"
        self._write(inside / "config", os.fsencode(settings))
        if works:
            store.fetch(works, into=top)
        git(top, "update-ref", f"refs/heads/{branch}", start)
        return Checkout.of(top)

    def _restore(self, store: TaskStore, commit: str, *, work: bool) -> None:
        """Put the task's own files back; those of its record alone, unless its `work` goes on."""
        pieces: dict[str, list[str]] = {}
        files = store.files(commit)
        for path in files:
            whole, _, last = path.rpartition("/")
            grown = whole.endswith(".jsonl") and last.isdigit()
            pieces.setdefault(whole if grown else path, []).append(path)
        contents = store.read_all(files)
        for path, parts in pieces.items():
            room, _, rest = path.partition("/")
            if room == "private" and not work:
                self._known[path] = 0, 0  # gone, as the next snapshot says
                continue
            if room == "private" and rest.partition("/")[0] not in _ROOMS:
                continue
            data = b"".join(contents[part] for part in sorted(parts))
            if room in {"data", "private"}:
                folder = self.place / "data" if room == "data" else self.target / PRIVATE_DIR
                self._write(folder / rest, data)
                self._known[path] = len(data), 0
            elif path == _REFS:
                for ref, aim in json.loads(data).items():
                    if work:
                        git(self.top, "update-ref", ref, aim)

    def _put_work(self, work: str, head: str) -> None:
        """Make the files as they were when the task was lost."""
        if work == head:
            return
        checkout = Checkout.of(self.top)
        put_back(checkout, work, paths_between(checkout, head, work))
        checkout.git("reset", "-q")

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file. No part of its path may be a link: the task may have committed one."""
        with os_error_as(StoreError, f"Can't write {path}"):
            replace_file(path, data, real=True)

    # Looking at it

    def _refs(self, checkout: Checkout) -> Iterator[tuple[str, str]]:
        words = ("for-each-ref", "--format=%(objecttype) %(objectname) %(refname)", _KEPT, RUNNING)
        for line in checkout.git(*words).splitlines():
            kind, commit, ref = line.split(" ", 2)
            if kind == "commit":
                yield ref, commit

    def _changed_files(
        self, known: dict[str, tuple[int, int]]
    ) -> Iterator[tuple[str, bytes | None]]:
        """Yield the files of record and run that are not as `known`, which is kept up to date. What
        is only appended to goes in pieces."""
        seen = set[str]()
        rooms = {f"data/{name}": self.place / "data" / name for name in ("sessions", "outputs")}
        private = self.target / PRIVATE_DIR
        if not private.is_symlink():
            rooms |= {f"private/{name}": private / name for name in _ROOMS}
        for room, folder in rooms.items():
            for file in _files_in(folder):
                path = f"{room}/{file.relative_to(folder)}"
                seen.add(path)
                yield from _changed_file(path, file, known)
        for path in [*known]:
            if path not in seen:
                del known[path]
                yield path, None


def _changed_file(
    path: str, file: Path, known: dict[str, tuple[int, int]]
) -> Iterator[tuple[str, bytes | None]]:
    try:
        state = file.lstat()
        size, before = state.st_size, known.get(path, (0, 0))
        if (size, state.st_mtime_ns) == before or size > _FILE_MAX:
            return
        data, _ = read_small(file, limit=_FILE_MAX, real=True)
    except OSError:
        return
    if not path.endswith(".jsonl"):
        known[path] = size, state.st_mtime_ns
        yield path, data
        return
    begin = before[0]
    if len(data) < begin:  # cut: all of it again
        yield path, None
        begin = 0
    end = data.rfind(b"\n") + 1
    known[path] = end, state.st_mtime_ns
    if end > begin:
        yield f"{path}/{_PIECE.format(begin)}", data[begin:end]


def _quoted(value: str) -> str:
    """A value as git's settings have it."""
    plain = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


def _for(entry: TaskEntry, task: TaskState) -> TaskState:
    """A task of the run as this place has it: those of others count as done."""
    return task if task.index in entry.tasks else replace(task, status="completed")


def _files_in(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder) if not folder.is_symlink() else ():
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if not str(path).endswith(_SKIPPED) and path.is_file() and not path.is_symlink():
                yield path
