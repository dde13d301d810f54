"""One git commit per task; a failed task's files are restored. Blocks.

In place, on the branch that is checked out. What a failed attempt had done is kept under
`refs/holdfast/…` before anything is put back, and only paths that the task changed are touched.
The task file and `.holdfast/` are never looked at, committed or restored; submodules and
repositories inside are left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tui.batch.isolation import Isolation, IsolationError, excluded_paths
from tui.core.errors import UsageError
from tui.core.files import REMAINS
from tui.core.git.checkout import Checkout, NoCheckoutError
from tui.core.git.door import GitError, NoGitError, listed
from tui.core.git.placing import clear, place
from tui.core.git.storing import store
from tui.core.git.worktree import some
from tui.core.git.worktree_state import busy_with, index_apart

RUNNING: Final = "refs/worktree/holdfast/running"
"""Where a task began, for as long as it runs: what a killed run is put back to. Of the work tree
alone: another one of the same repository may have a run of its own."""
_BETWEEN: Final = (
    "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=all",
)  # fmt: skip
_FILTERED: Final = (
    "{} goes through the filter {}, which only this repository's own settings name. Holdfast "
    "doesn't run it, so the file would be committed with the wrong content."
)
_FILTER_HINT: Final = (
    "If you know what it runs, name it in your own settings: git config --global filter.{}.clean …"
)
_UNLOCK: Final = "If no git command is running there, remove that file, then run again."


@dataclass(slots=True)
class GitIsolation(Isolation):
    """Isolation of the tasks run in `target`, a folder of a git work tree.

    `kept_out` are real paths that do not count. Use `find` to make one.
    """

    checkout: Checkout
    kept_out: tuple[str, ...]
    name = "git"
    _base: str = field(default="", init=False)
    _branch: str = field(default="", init=False)

    @classmethod
    def find(cls, target: Path, task_file: Path) -> GitIsolation | None:
        """The isolation of a folder; None where it is in no git work tree, or git is missing.
        Raises GitError where git would act on another repository than the folder's."""
        try:
            checkout = Checkout.of(target)
        except (NoCheckoutError, NoGitError):
            return None
        return cls(checkout, excluded_paths(checkout.top, target, task_file))

    @property
    def top(self) -> Path:
        """The folder of the work tree."""
        return self.checkout.top

    @property
    def git_dir(self) -> Path:
        """What git keeps of it."""
        return self.checkout.git_dir

    def check(self) -> None:
        """Raise UsageError where tasks cannot be kept apart: a dirty tree, a merge in progress."""
        if what := busy_with(self.git_dir):
            raise UsageError(
                f"A {what} is in progress in {self.top}.", hint="Finish or abort it first."
            )
        if lock := self._lock():
            raise UsageError(f"Git's index is locked: {lock} exists.", hint=_UNLOCK)
        if one := self._filtered(self._run("ls-files", "-z").split("\0")):
            raise UsageError(_FILTERED.format(*one), hint=_FILTER_HINT.format(one[1]))
        if changed := self._less_remains(self._changed()):
            raise UsageError(
                f"The work tree has uncommitted changes: {some(sorted(changed))}.",
                hint="Commit or stash them first: each task becomes its own commit.",
            )

    def _less_remains(self, changed: Collection[str]) -> list[str]:
        """The changes, without what a killed run left of a file that it was about to replace: that
        is removed."""
        remains = {path for path in changed if REMAINS.fullmatch(path)}
        for path in remains:
            clear(self.top, path)
        return [path for path in changed if path not in remains]

    def begin(self) -> str:
        """A task begins here. Returns the commit it starts from. Raises IsolationError where the
        index is locked: what the task does could not be committed."""
        if lock := self._lock():
            raise IsolationError(f"Git's index is locked: {lock} exists.", hint=_UNLOCK)
        self._base, self._branch = self._head(), self._current_branch()
        if self._base:
            self._run("update-ref", RUNNING, self._base)
        return self._base

    def resume(self) -> bool:
        """Go on from where the task began, if what is checked out was made from that."""
        base = self._answer("rev-parse", "--verify", "-q", RUNNING)
        if not base or busy_with(self.git_dir):
            return False
        if self._answer("merge-base", base, "HEAD") != base:
            return False
        self._base, self._branch = base, self._current_branch()
        self._less_remains(self._changed())
        return True

    def recover(self, label: str) -> str:
        """Put back what a killed run left behind, kept under `label`; "" if it left nothing."""
        self._base = self._answer("rev-parse", "--verify", "-q", RUNNING)
        if not self._base:
            return ""
        self._branch = self._current_branch()
        return self.undo(label)

    def finish(self) -> None:
        """The outcome is saved: nothing is to be recovered."""
        self._run("update-ref", "-d", RUNNING)
        self._base = ""

    def keep(self, message: str) -> str:
        """The task is done: one commit on the branch. Returns its id, "" if nothing changed.

        Commits that the task made itself become part of it; one clean commit stays as it is.
        Raises IsolationError where the task has left the branch.
        """
        self._same_branch()
        head = self._head()
        paths = self._paths(head)
        if not paths:
            return ""
        if one := self._filtered(paths):
            raise IsolationError(_FILTERED.format(*one), hint=_FILTER_HINT.format(one[1]))
        if not self._is_one_commit(head):
            tree = self._tree(paths)
            parents = ("-p", self._base) if self._base else ()
            commit = self._commit(tree, *parents, "-F", "-", stdin=message)
            self._run("update-ref", "-m", "holdfast: task", "HEAD", commit, head)
            self._index(paths)
            head = commit
        return head

    def undo(self, label: str) -> str:
        """The task failed: keep what it did under a ref, put its files back. Returns the ref.

        "" if it changed nothing. Raises IsolationError where the task has left the branch; its
        work then stays where it is.
        """
        self._same_branch()
        head = self._head()
        paths = self._paths(head)
        ref = f"refs/holdfast/{_ref_name(label)}"
        if not paths and head == self._base:
            self.finish()
            return ""
        tree = self._tree(paths)
        parents = ("-p", head) if head else ()
        kept = self._commit(tree, *parents, "-m", f"holdfast: {label}")
        self._run("update-ref", ref, kept)
        if head != self._base:
            self._run("update-ref", "-m", "holdfast: task undone", "HEAD", self._base, head)
        self._restore(paths)
        self.finish()
        return ref

    def _restore(self, paths: Sequence[str]) -> None:
        """The paths as they were in the base, in the work tree and in the index."""
        printed = self._run("ls-tree", "-r", "-z", self._base or self._empty_tree())
        known = {entry.partition("\t")[2]: entry for entry in printed.split("\0") if entry}
        new = [path for path in paths if path not in known]
        for path in new:
            clear(self.top, path)
        self._run("update-index", "--force-remove", "-z", "--stdin", stdin=listed(new))
        old = [path for path in paths if path in known]
        entries = listed(known[path] for path in old)
        self._run("update-index", "-z", "--index-info", stdin=entries)
        with _as_isolation_error():
            place(self.checkout, old)

    def _paths(self, head: str) -> list[str]:
        """Everything that differs from the base, in commits or in files."""
        found = self._changed()
        if head != self._base:
            printed = self._run(*_BETWEEN, self._base or self._empty_tree(), head)
            found |= {path for path in printed.split("\0") if path and self._counts(path)}
        return sorted(found)

    def _changed(self) -> set[str]:
        """Paths that differ from HEAD. A repository inside the repository is left alone."""
        printed = self._run(
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=all",
        )
        paths = (entry[3:] for entry in printed.split("\0") if entry)
        return {path for path in paths if not path.endswith("/") and self._counts(path)}

    def _filtered(self, paths: Iterable[str]) -> tuple[str, str] | None:
        """The first of the paths that only a filter of the repository's own settings would store
        as it should be, and the filter: it isn't run."""
        own = self.checkout.own_filters()
        if not own:
            return None
        said = self._run("check-attr", "-z", "--stdin", "filter", stdin=listed(filter(None, paths)))
        words = said.split("\0")
        found = zip(words[::3], words[2::3], strict=False)
        return next(((path, name) for path, name in found if name in own), None)

    def _counts(self, path: str) -> bool:
        return not any(path == out or path.startswith(out + "/") for out in self.kept_out)

    def _tree(self, paths: Sequence[str]) -> str:
        """A tree of the base with the paths as they are now; the real index is not touched."""
        with _as_isolation_error(), index_apart() as env:
            self._run("read-tree", self._base or "--empty", env=env)
            self._index(paths, env=env)
            return self._run("write-tree", env=env).strip()

    def _index(self, paths: Sequence[str], *, env: dict[str, str] | None = None) -> None:
        """The paths as they are now into an index."""
        with _as_isolation_error():
            store(self.checkout, paths, env)

    def _is_one_commit(self, head: str) -> bool:
        """Whether the task committed all it did by itself, in one commit of nothing else."""
        if head == self._base or not self._base or self._changed():
            return False
        made = self._run("rev-list", f"{self._base}..{head}").split()
        first = self._run("rev-list", "--parents", "-1", head).split()
        everything = self._run(*_BETWEEN, self._base, head)
        clean = all(self._counts(path) for path in everything.split("\0") if path)
        return len(made) == 1 and first[1:] == [self._base] and clean

    def _same_branch(self) -> None:
        now = self._current_branch()
        if now != self._branch:
            raise IsolationError(
                f"The task switched from {self._branch or 'it began on'} to {now or 'none'}.",
                hint="Its work stays there. Return with git switch, then run again.",
            )

    def _lock(self) -> Path | None:
        """What another git, or one that was killed, has left to keep the index."""
        lock = self.git_dir / "index.lock"
        return lock if os.path.lexists(lock) else None

    def _current_branch(self) -> str:
        """The branch's full name; "" while the head is detached."""
        return self._answer("symbolic-ref", "-q", "HEAD")

    def _head(self) -> str:
        """The commit that is checked out; "" before the first one."""
        return self._answer("rev-parse", "--verify", "-q", "HEAD")

    def _empty_tree(self) -> str:
        """The id of the tree of nothing, which is another one with each kind of hash."""
        return self._run("hash-object", "-t", "tree", "--stdin").strip()

    def _commit(self, *args: str, stdin: str = "") -> str:
        """Make a commit object, as the person whom git knows, or as nobody. Returns its id."""
        return self._run("commit-tree", *args, stdin=stdin, env=self.checkout.identity()).strip()

    def _answer(self, *args: str) -> str:
        """What git prints in one line; "" where it refuses."""
        with suppress(IsolationError):
            return self._run(*args).strip()
        return ""

    def _run(self, *args: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
        """What git prints. Raises IsolationError with git's own words."""
        with _as_isolation_error():
            return self.checkout.git(*args, stdin=stdin, env=env)


@contextmanager
def _as_isolation_error() -> Generator[None]:
    try:
        yield
    except GitError as error:
        raise IsolationError(error.message, hint=error.hint) from error


def _ref_name(label: str) -> str:
    """A label as a part of a ref's name."""
    safe = re.sub(r"[^A-Za-z0-9._/-]+", "-", label)
    return re.sub(r"\.{2,}|/{2,}|(?<=/)\.|\.lock\b", "-", safe).strip("-./") or "attempt"
