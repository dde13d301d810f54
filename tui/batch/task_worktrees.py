"""The branches and git worktrees in which tasks of other processes are. Everything here blocks.

Tasks of one group share one, as they share a session. What a task has committed there is merged
into the branch that the run began on.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tui.batch.commit_hooks import CommitHooks
from tui.batch.git import GitIsolation
from tui.batch.isolation import Isolation, excluded_paths
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import UsageError, os_error_as
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.merge import MergeConflictError, conflicts_in, finish_merge, merge
from tui.core.git.removal import remove
from tui.core.git.repository import Repository
from tui.core.git.worktree import UseLock, Worktree, branch_for, in_use
from tui.core.git.worktree_state import state_of
from tui.core.paths import shorten

_ALONE: Final = "Or run the tasks one after the other, without --parallel."


@dataclass(slots=True)
class TaskPlace:
    """The folder where tasks are worked on, and the isolation that keeps them apart there."""

    folder: Path
    isolation: Isolation
    lock: UseLock | None = field(default=None, repr=False)

    def leave(self) -> None:
        """Say to others that nobody works here any more."""
        if self.lock is not None:
            self.lock.release()


@dataclass(frozen=True, slots=True)
class TaskWorktrees:
    """The worktrees of a run in `target`; `task_file` is its path as it was named. Tasks are
    committed with `hooks`, and signed, as in the folder itself."""

    target: Path
    task_file: Path
    hooks: CommitHooks | None = None
    sign: bool = False

    def check(self) -> None:
        """Raise UsageError, with what to do, where no task can have a worktree that is merged."""
        try:
            repository = Repository.of(self.target)
        except GitError as error:
            raise UsageError(
                f"--parallel works in git worktrees. {error.message}", hint=_ALONE
            ) from error
        if not repository.here.commit():
            raise UsageError(
                f"--parallel works in git worktrees, and {shorten(repository.top)} has no commit.",
                hint=f"Commit something first. {_ALONE}",
            )
        if not repository.here.branch:
            raise UsageError(
                f"--parallel merges tasks into a branch, and {shorten(repository.top)} is on none.",
                hint=f"Switch to one with git switch. {_ALONE}",
            )
        if repository.here.merges_by_program():
            raise UsageError(
                "--parallel merges tasks, and this repository's own settings name a program that "
                "merges files, which isn't run.",
                hint=_ALONE,
            )

    def branch(self) -> str:
        """The branch that the run is on. Raises GitError. Blocks."""
        return self._repository().here.branch

    def enter(self, name: str) -> TaskPlace:
        """The worktree of a name, made from the branch as it is now where there is none. Raises
        GitError."""
        repository = self._repository()
        entered = repository.enter(name, self.target)
        tree = entered.tree
        file = Path(os.path.realpath(self.task_file.parent)) / self.task_file.name
        if file.is_relative_to(repository.top):
            file = tree.path / file.relative_to(repository.top)
        isolation = GitIsolation.find(entered.folder, file, self.hooks, sign=self.sign)
        if isolation is None:
            raise GitError(f"{shorten(tree.path)} can't be read as a git worktree.")
        lock = in_use(tree)
        lock.share()
        return TaskPlace(entered.folder, isolation, lock)

    def existing(self, name: str) -> TaskPlace | None:
        """The worktree of a name, which is to be left; None where it is gone. Raises
        GitError."""
        return self.enter(name) if name in self._repository().names() else None

    def merge(self, name: str, commit: str, message: str, base: str = "") -> None:
        """Merge what a worktree has, up to `commit`, "" for all. One that has only a branch so far,
        which comes from `base`, "" for the run's branch as it is now, is made if both sides changed
        the same. Nothing is done where the run's branch has it already. Raises GitError; the branch
        is then as before."""
        repository = self._repository()
        made = repository.get(name)
        tree = made or _unmade(repository, name, base)
        own = "HEAD" if made else f"refs/heads/{branch_for(name)}"
        wanted = commit or tree.checkout.commit(own)
        if Checkout.of(tree.origin).has(wanted):
            return
        try:
            merge(tree, wanted, message=message, beside=repository.beside)
        except MergeConflictError as error:
            tree = repository.enter(name, self.target).tree
            raise MergeConflictError(
                error.message,
                hint=f"Solve it in {shorten(tree.path)}: git merge {tree.base}, then commit. "
                "The next run merges it.",
            ) from error

    def conclude(self, commit: str, message: str) -> bool:
        """Commit a merge of `commit` that a kill cut off once it was made, and put its files in
        their places. False where there is none, or where conflicts are left in it. Raises
        GitError."""
        here = self._repository().here
        if here.commit("MERGE_HEAD") != commit:
            return here.has(commit) and finish_merge(here)
        place = here.git_dir / "MERGE_MSG"
        with os_error_as(GitError, f"Can't read {place}"):
            written = place.read_text(encoding="utf-8", errors="replace")
        if written.strip() != message.strip() or conflicts_in(here):
            return False  # somebody else's, or for somebody to solve
        if here.has(commit):
            here.git("merge", "--quit")  # it is committed, only its traces are left
        else:
            here.git("commit", "-q", "--no-edit", "--no-verify", env=here.identity())
        finish_merge(here)
        return True

    def leave(self, name: str) -> str:
        """Remove a worktree if nothing is lost with it, else say in a sentence what is in it."""
        try:
            repository = self._repository()
            if (tree := repository.get(name)) is None:
                branch = branch_for(name)
                if (commit := repository.here.commit(f"refs/heads/{branch}")) and (
                    repository.here.has(commit)
                ):
                    repository.here.git("branch", "-q", "-D", branch)
                return ""
            state = state_of(tree)
            if not state.is_empty:
                return f"The worktree {name} stays: {state.words(tree.target)}."
            remove(repository, tree, state)
        except GitError as error:
            return f"The worktree {name} stays: {error.message}"
        return ""

    def _repository(self) -> Repository:
        repository = Repository.of(self.target)
        return replace(
            repository, beside=excluded_paths(repository.top, self.target, self.task_file)
        )


def _unmade(repository: Repository, name: str, base: str) -> Worktree:
    """A worktree that is only a branch so far."""
    here = repository.here
    return Worktree(name, here, here.top, base or here.branch)
