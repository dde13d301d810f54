"""Merges the commits of a worktree into the branch that it came from. Blocks."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from tui.core.formatting import plural
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.worktree import Worktree, some
from tui.core.git.worktree_state import busy_with, changed_files, count, state_of
from tui.core.paths import shorten


class MergeConflictError(GitError):
    """Both sides changed the same files."""


def merge(
    tree: Worktree, commit: str = "", *, message: str = "", beside: Collection[str] = ()
) -> str:
    """Merge a worktree's commits, up to `commit` where one is given, into the branch that it
    came from, where that is checked out. What was done, in a sentence. `beside` are files, by
    their path from the top, that no merge waits for. Raises GitError, and then nothing has
    changed; MergeConflictError where both sides changed the same."""
    state, target = state_of(tree), _target(tree)
    by_hand = f"Merge it yourself: git merge {state.branch or state.head[:8]}"
    if not tree.base:
        raise GitError(f"{tree.name} was made from a commit, not from a branch.", hint=by_hand)
    now = target.branch
    if now != tree.base:
        raise GitError(
            f"{shorten(target.top)} is on {now or 'no branch'}, not on {tree.base}.",
            hint=f"Switch to it there first: git switch {tree.base}",
        )
    if target.merges_by_program():
        raise GitError(
            "This repository's own settings name a program that merges files.", hint=by_hand
        )
    _check_clean(target, beside)
    wanted = commit or state.head
    target.git("rev-parse", "--verify", "-q", f"{wanted}^{{commit}}")
    if not (ahead := count(target, f"HEAD..{wanted}")):
        raise GitError(
            f"Nothing to merge: {tree.base} has every commit of {tree.name}.",
            hint="Commit the changes first." if state.changed else "",
        )
    _merge(tree, target, wanted, message or f"Merge worktree {tree.name}")
    commits, where = plural(ahead, "commit"), shorten(target.top)
    return f"Merged {commits} of {tree.name} into {tree.base} in {where}."


def _target(tree: Worktree) -> Checkout:
    """The checkout that a worktree came from. Raises GitError."""
    target = Checkout.of(tree.origin)
    if target.common != tree.checkout.common:
        raise GitError(f"{shorten(tree.origin)} isn't in the repository of {tree.name}.")
    return target


def _merge(tree: Worktree, target: Checkout, commit: str, message: str) -> None:
    quietly = ("--no-edit", "--no-stat", "--no-autostash", "-m", message)
    before = target.git("rev-parse", "HEAD").strip()
    try:
        target.git("merge", *quietly, commit, env=target.identity())
    except GitError as error:
        raise _undone(tree, target, before, error) from error


def _check_clean(target: Checkout, beside: Collection[str]) -> None:
    if busy := busy_with(target.git_dir):
        raise GitError(
            f"A {busy} is in progress in {shorten(target.top)}.", hint="Finish or abort it first."
        )
    if changed := tuple(name for name in changed_files(target, "no") if name not in beside):
        raise GitError(
            f"{shorten(target.top)} has uncommitted changes: {some(changed)}.",
            hint="Commit or stash them first, so that a merge can be undone.",
        )


def conflicts_in(checkout: Checkout) -> list[str]:
    """The files that a merge has left to be solved. Raises GitError."""
    return checkout.names("diff", "--name-only", "-z", "--diff-filter=U")


def _undone(tree: Worktree, target: Checkout, before: str, error: GitError) -> GitError:
    """A merge that failed is taken back. The error to raise."""
    conflicts = list[str]()
    with suppress(GitError):
        conflicts = conflicts_in(target)
    if target.commit("MERGE_HEAD"):
        target.git("merge", "--abort")
    if target.git("rev-parse", "HEAD").strip() != before:
        return GitError(
            f"The merge failed, and {shorten(target.top)} is no longer at {before[:8]}.",
            hint=f"Look at it there: git log {before[:8]}..",
        )
    if not conflicts:
        return error
    return MergeConflictError(
        f"Both sides changed {some(conflicts)}. The merge was undone; nothing is lost.",
        hint=f"Bring {tree.base} into the worktree, solve it there, then merge again: "
        f"git merge {tree.base}",
    )
