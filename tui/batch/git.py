"""One git commit per task; a failed task's files are restored. Blocks.

In place, on the branch that is checked out. What a failed attempt had done is kept under
`refs/holdfast/…` before anything is put back, and only paths that the task changed are touched.
The task file and `.holdfast/` are never looked at, committed or restored; submodules and
repositories inside are left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from tui.batch.commit_hooks import CommitHooks, HookRefusedError
from tui.batch.isolation import Isolation, IsolationError, excluded_paths
from tui.core.dataclass import dataclass, field
from tui.core.errors import UsageError
from tui.core.files import REMAINS
from tui.core.git.checkout import Checkout, NoCheckoutError
from tui.core.git.door import GitError, NoGitError
from tui.core.git.merge import finish_merge
from tui.core.git.placing import clear
from tui.core.git.snapshot import (
    changed_paths,
    commit_tree,
    filtered,
    paths_between,
    put_back,
    tree_of,
)
from tui.core.git.storing import store
from tui.core.git.worktree import some
from tui.core.git.worktree_state import busy_with

RUNNING: Final = "refs/worktree/holdfast/running"
"""The ref to the commit where a task began, for as long as it runs: a killed run is put back to it.
It belongs to the work tree alone: another one of the same repository may have a run of its own."""
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

    `kept_out` are real paths that do not count. Commits are made without hooks unless there are
    `hooks`, and unsigned unless `sign`. Use `find` to make one.
    """

    checkout: Checkout
    kept_out: tuple[str, ...]
    hooks: CommitHooks | None = None
    sign: bool = False
    name = "git"
    _base: str = field(default="", init=False)
    _branch: str = field(default="", init=False)

    @classmethod
    def find(
        cls, target: Path, task_file: Path, hooks: CommitHooks | None = None, *, sign: bool = False
    ) -> GitIsolation | None:
        """The isolation of a folder; None where it is in no git work tree, or git is missing.
        Raises GitError where git would act on another repository than the folder's."""
        try:
            checkout = Checkout.of(target)
        except (NoCheckoutError, NoGitError):
            return None
        return cls(checkout, excluded_paths(checkout.top, target, task_file), hooks, sign)

    @property
    def top(self) -> Path:
        """The folder of the work tree."""
        return self.checkout.top

    def check(self) -> None:
        """Raise UsageError where tasks cannot be kept apart: a dirty tree, a merge in progress."""
        if what := busy_with(self.checkout.git_dir):
            raise UsageError(
                f"A {what} is in progress in {self.top}.", hint="Finish or abort it first."
            )
        if lock := self._lock():
            raise UsageError(f"Git's index is locked: {lock} exists.", hint=_UNLOCK)
        finish_merge(self.checkout)
        if one := filtered(self.checkout, self.checkout.names("ls-files", "-z")):
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
        clear(self.top, remains)
        return [path for path in changed if path not in remains]

    def begin(self) -> str:
        """A task begins here. Returns the commit it starts from. Raises IsolationError where the
        index is locked: what the task does could not be committed."""
        if lock := self._lock():
            raise IsolationError(f"Git's index is locked: {lock} exists.", hint=_UNLOCK)
        self._base, self._branch = self.checkout.commit(), self.checkout.ref
        if self._base:
            self.checkout.git("update-ref", RUNNING, self._base)
        return self._base

    def resume(self) -> bool:
        """Continue from where the task began, if what is checked out was made from that."""
        base = self.checkout.commit(RUNNING)
        if not base or busy_with(self.checkout.git_dir) or not self.checkout.has(base):
            return False
        self._base, self._branch = base, self.checkout.ref
        self._less_remains(self._changed())
        return True

    def recover(self, label: str) -> str:
        """Put back what a killed run left behind, kept under `label`; "" if it left nothing."""
        self._base = self.checkout.commit(RUNNING)
        if not self._base:
            return ""
        self._branch = self.checkout.ref
        return self.undo(label)

    def finish(self) -> None:
        """The outcome is saved: nothing is to be recovered."""
        self.checkout.git("update-ref", "-d", RUNNING)
        self._base = ""

    def keep(self, message: str) -> str:
        """The task is done: one commit on the branch. Returns its id, "" if nothing changed.

        Commits that the task made itself become part of it; one clean commit stays as it is, or is
        signed. Raises IsolationError where the task has left the branch, HookRefusedError where a
        hook of the project refuses the commit.
        """
        self._same_branch()
        head = self.checkout.commit()
        paths = self._paths(head)
        if not paths:
            return ""
        if one := filtered(self.checkout, paths):
            raise IsolationError(_FILTERED.format(*one), hint=_FILTER_HINT.format(one[1]))
        if self.hooks is not None and self._base and not self._is_one_commit(head):
            self._commit_with_hooks(self.hooks, paths, head, message)
            head = self.checkout.commit()
            paths = self._paths(head)
            message = self.checkout.git("log", "-1", "--format=%B", head)
        clean = self._is_one_commit(head)
        if not clean or self.sign:
            tree = f"{head}^{{tree}}" if clean else tree_of(self.checkout, self._base, paths)
            if clean:
                message = self.checkout.git("log", "-1", "--format=%B", head)
            commit = self._made_commit(tree, message)
            self.checkout.git("update-ref", "-m", "holdfast: task", "HEAD", commit, head)
            if not clean:
                store(self.checkout, paths)
            head = commit
        return head

    def stop(self) -> None:
        if self.hooks is not None:
            self.hooks.stop()

    def _made_commit(self, tree: str, message: str) -> str:
        try:
            return commit_tree(self.checkout, tree, [self._base], message, sign=self.sign)
        except GitError as error:
            if not self.sign:
                raise
            raise IsolationError(
                f"The commit couldn't be signed: {error.message}",
                hint="Your own git settings say how (a repository's can't name the program); "
                "nobody can be asked for a passphrase. Or leave it out: [batch] sign = false",
            ) from error

    def _commit_with_hooks(
        self, hooks: CommitHooks, paths: list[str], head: str, message: str
    ) -> None:
        """Commit the paths upon the base as git does, hooks included. A hook that changed files and
        then refused, as formatters do, is asked once more about what it made of them."""
        if head != self._base:
            self.checkout.git("update-ref", "-m", "holdfast: task", "HEAD", self._base, head)
        store(self.checkout, paths)
        before = tree_of(self.checkout, self._base, paths)
        try:
            hooks.commit(self.checkout, message)
        except HookRefusedError:
            paths = self._paths(self._base)
            if tree_of(self.checkout, self._base, paths) == before:
                raise
            store(self.checkout, paths)
            hooks.commit(self.checkout, message)

    def undo(self, label: str) -> str:
        """The task failed: keep what it did under a ref, put its files back. Returns the ref.

        "" if it changed nothing. Raises IsolationError where the task has left the branch; its
        work then stays where it is.
        """
        self._same_branch()
        head = self.checkout.commit()
        paths = self._paths(head)
        ref = f"refs/holdfast/{_ref_name(label)}"
        if not paths and head == self._base:
            self.finish()
            return ""
        tree = tree_of(self.checkout, self._base, paths)
        commit = commit_tree(self.checkout, tree, [head], f"holdfast: {label}\n")
        self.checkout.git("update-ref", ref, commit)
        if head != self._base:
            self.checkout.git("update-ref", "-m", "holdfast: task undone", "HEAD", self._base, head)
        put_back(self.checkout, self._base, paths)
        self.finish()
        return ref

    def _paths(self, head: str) -> list[str]:
        """Everything that differs from the base, in commits or in files."""
        paths = self._changed()
        if head != self._base:
            between = paths_between(self.checkout, self._base, head)
            paths |= {path for path in between if self._counts(path)}
        return sorted(paths)

    def _changed(self) -> set[str]:
        """Paths that count and differ from HEAD."""
        return {path for path in changed_paths(self.checkout) if self._counts(path)}

    def _counts(self, path: str) -> bool:
        return not any(path == out or path.startswith(out + "/") for out in self.kept_out)

    def _is_one_commit(self, head: str) -> bool:
        """True if the task committed all it did by itself, in one commit of nothing else."""
        if head == self._base or not self._base or self._changed():
            return False
        made = self.checkout.git("rev-list", f"{self._base}..{head}").split()
        first = self.checkout.git("rev-list", "--parents", "-1", head).split()
        clean = all(map(self._counts, paths_between(self.checkout, self._base, head)))
        return len(made) == 1 and first[1:] == [self._base] and clean

    def _same_branch(self) -> None:
        now = self.checkout.ref
        if now != self._branch:
            raise IsolationError(
                f"The task switched from {self._branch or 'it began on'} to {now or 'none'}.",
                hint="Its work stays there. Return with git switch, then run again.",
            )

    def _lock(self) -> Path | None:
        """Find the lock of the index that another git, or one that was killed, has left."""
        lock = self.checkout.git_dir / "index.lock"
        return lock if os.path.lexists(lock) else None


def _ref_name(label: str) -> str:
    """A label as a part of a ref's name."""
    safe = re.sub(r"[^A-Za-z0-9._/-]+", "-", label)
    return re.sub(r"\.{2,}|/{2,}|(?<=/)\.|\.lock\b", "-", safe).strip("-./") or "attempt"
