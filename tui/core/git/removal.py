"""Removes worktrees, and keeps what was not committed in them as a commit. Blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from tui.core.dataclass import dataclass, replace
from tui.core.git.door import GitError, listed
from tui.core.git.repository import Repository
from tui.core.git.snapshot import commit_tree
from tui.core.git.storing import store
from tui.core.git.worktree import Worktree, in_use, some, write_note
from tui.core.git.worktree_state import WorktreeState, count, fresh_index, state_of

_DIFFERENT: Final = (
    "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard", "--deduplicate",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RemovedWorktree:
    """The remains of a worktree that was removed: the branch that stayed, "" for none, and the ref
    of a commit that holds what was not committed, "" for nothing."""

    branch: str
    ref: str

    @property
    def words(self) -> str:
        """Its remains, in sentences; "" for nothing."""
        parts = [
            f"Its branch {self.branch} is still there." if self.branch else "",
            f"What wasn't committed is saved: git show {self.ref}" if self.ref else "",
        ]
        return " ".join(filter(None, parts))


def check_removable(tree: Worktree, state: WorktreeState) -> None:
    """Raises GitError for a worktree that holds what can't be saved."""
    if state.inner:
        raise GitError(
            f"The worktree {tree.name} holds {some(state.inner)}, with a repository of its own. "
            "Its commits would be lost.",
            hint="Move it out of the worktree, or delete it, first.",
        )


def agree(tree: Worktree, state: WorktreeState) -> None:
    """The person lets a worktree go as it is now. Raises GitError."""
    write_note(replace(tree, agreed=state.fingerprint))


def remove(repository: Repository, tree: Worktree, state: WorktreeState) -> RemovedWorktree:
    """Remove a worktree that is still in a state that was looked at. Its branch stays unless
    others have its commits; what was not committed stays as a commit under
    `refs/holdfast/worktrees/`. Raises GitError."""
    lock = in_use(tree)
    if not lock.acquire():
        raise GitError(
            f"Another session works in the worktree {tree.name}.", hint="Leave that one first."
        )
    try:
        return _remove(repository, tree, state)
    finally:
        lock.release()


def _remove(repository: Repository, tree: Worktree, state: WorktreeState) -> RemovedWorktree:
    """Remove a worktree that nobody else can enter meanwhile."""
    if state_of(tree).fingerprint != state.fingerprint:
        raise GitError(
            f"The worktree {tree.name} has just changed, so it wasn't removed.",
            hint="Look at it again: /worktree list",
        )
    check_removable(tree, state)
    ref, main = "", repository.main
    if state.changed or state.loose or state.busy:
        commit = _saved(tree, state)
        ref = f"refs/holdfast/worktrees/{tree.name}-{commit[:8]}"
        main.git("update-ref", ref, commit)
    repository.remove_files(tree.path)
    repository.remove_place()
    branch = tree.own_branch
    tip = main.commit(f"refs/heads/{branch}")
    others = ("--not", f"--exclude={branch}", "--branches", "--tags", "--remotes")
    with suppress(GitError):
        if tip and not count(main, tip, *others):
            main.git("branch", "-q", "-D", branch)
            return RemovedWorktree("", ref)
    return RemovedWorktree(branch if tip else "", ref)


def _saved(tree: Worktree, state: WorktreeState) -> str:
    """A commit of the files as they are, on top of the worktree's. Where the index holds
    something else, that is its second parent, as in a stash."""
    here, parents = tree.checkout, [state.head]
    staged = here.answer("write-tree")  # none in the middle of a merge
    with fresh_index(tree, state.head) as env:
        before = here.git("write-tree", env=env).strip()
        absent = set(_outside_the_cone(tree))
        different = [path for path in here.names(*_DIFFERENT, env=env) if path not in absent]
        inner = set(here.submodules(env))
        store(here, (path for path in different if path not in inner), env)
        changed = listed(inner.intersection(different))
        here.git("update-index", "--add", "-z", "--stdin", stdin=changed, env=env)
        content = here.git("write-tree", env=env).strip()
    if staged not in {"", before, content}:
        parents += [commit_tree(here, staged, parents, f"Staged in {tree.name}\n")]
    return commit_tree(here, content, parents, f"Uncommitted in {tree.name}\n")


def _outside_the_cone(tree: Worktree) -> Iterator[str]:
    """The files that git did not check out: a sparse checkout has not deleted them."""
    for one in tree.checkout.names("ls-files", "-v", "-z"):
        if one.startswith(("S ", "s ")) and not os.path.lexists(tree.path / one[2:]):
            yield one[2:]
