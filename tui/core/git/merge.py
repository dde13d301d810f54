"""Merges the commits of a worktree into the branch that it came from. Blocks."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.core.apart import folder_apart
from tui.core.files import REMAINS
from tui.core.formatting import plural
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.placing import clear, take
from tui.core.git.snapshot import (
    changed_paths,
    commit_tree,
    filtered,
    paths_between,
    put_back,
    put_files,
    put_in_index,
    tree_of,
)
from tui.core.git.worktree import Worktree, some
from tui.core.git.worktree_state import busy_with, changed_files, count, state_of
from tui.core.paths import shorten

MERGING: Final = "refs/worktree/holdfast/merging"
"""The commit that a merge began from, while it is being made: a kill leaves it."""


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
    finish_merge(target)
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


def finish_merge(checkout: Checkout) -> bool:
    """Put the files of a merge that a kill cut off in their places, where nobody has changed them
    since. False where no merge was cut off. Raises GitError."""
    before = checkout.commit(MERGING)
    if not before or checkout.commit("MERGE_HEAD"):
        return False
    head = checkout.commit()
    words = ("diff-index", "--cached", "-z", "--name-only", "--no-renames", head)
    paths = {*paths_between(checkout, before, head), *checkout.names(*words)}
    if checkout.has(before) and not filtered(checkout, paths):
        now = tree_of(checkout, before, sorted(paths))
        put_back(checkout, head, sorted(paths.difference(paths_between(checkout, before, now))))
        clear(checkout.top, filter(REMAINS.fullmatch, changed_paths(checkout)))
    checkout.git("update-ref", "-d", MERGING)
    return head != before


def _target(tree: Worktree) -> Checkout:
    """The checkout that a worktree came from. Raises GitError."""
    target = Checkout.of(tree.origin)
    if target.common != tree.checkout.common:
        raise GitError(f"{shorten(tree.origin)} isn't in the repository of {tree.name}.")
    return target


def _merge(tree: Worktree, target: Checkout, commit: str, message: str) -> None:
    """Make the merge, and put the files that change in their places: without any file where git
    can do that, and both sides agree."""
    before, own = target.git("rev-parse", "HEAD").strip(), set(changed_files(target, "no"))
    merged = _merged(target, before, commit, message)
    if not merged:
        _merge_apart(tree, target, commit, message, before=before, own=own)
        return
    paths = {kind: _changed(target, before, merged, kind) for kind in ("A", "D", "MT")}
    every = [path for some in paths.values() for path in some]
    if overwritten := (*sorted(own & {*every}), *_overwritten(target, before, paths["A"])):
        raise _replacing(target, overwritten)
    # From here on a kill leaves what the next merge finishes.
    target.git("update-ref", MERGING, before)
    target.git("update-ref", "ORIG_HEAD", before)
    placed = put_in_index(target, merged, every)
    target.git("update-ref", "-m", f"merge {tree.name}", "HEAD", merged, before)
    put_files(target, *placed)
    target.git("update-ref", "-d", MERGING)


def _merged(target: Checkout, before: str, commit: str, message: str) -> str:
    """The merge of a commit into another, in a commit that is on no branch yet; the first one where
    nothing else is to be merged. "" where both sides changed the same, and for a git before 2.38,
    which needs files for it."""
    if target.answer("merge-base", before, commit) == before:
        return commit if target.answer("config", "--get", "merge.ff") != "false" else ""
    tree = target.answer("merge-tree", "--write-tree", "--no-messages", before, commit)
    return commit_tree(target, tree, [before, commit], f"{message}\n") if tree else ""


def _replacing(target: Checkout, paths: Sequence[str]) -> GitError:
    return GitError(
        f"The merge would replace {some(paths)} in {shorten(target.top)}. It was "
        "undone; nothing is lost.",
        hint="Commit it or move it away first.",
    )


def _merge_apart(
    tree: Worktree, target: Checkout, commit: str, message: str, *, before: str, own: set[str]
) -> None:
    """Let git merge in a folder apart, which is empty: it writes the files that change, and a
    command may exchange a folder meanwhile. Then they are put in their places."""
    quietly = ("--no-edit", "--no-stat", "--no-autostash", "-m", message)
    target.git("update-ref", MERGING, before)
    with folder_apart(GitError) as apart:
        there = {"GIT_WORK_TREE": str(apart)}
        who = target.identity()
        try:
            target.git("merge", *quietly, commit, env={**who, **there}, folder=apart)
        except GitError as error:
            undone = _undone(tree, target, before, error, apart)
            target.git("update-ref", "-d", MERGING)
            raise undone from error
        changed = {kind: _changed(target, before, "HEAD", kind) for kind in ("A", "D", "MT")}
        own.intersection_update(path for paths in changed.values() for path in paths)
        if overwritten := (*sorted(own), *_overwritten(target, before, changed["A"])):
            target.git("update-ref", "-m", "holdfast: merge undone", "HEAD", before)
            target.git("read-tree", before)
            target.answer("update-index", "-q", "--refresh")
            target.git("update-ref", "-d", MERGING)
            raise _replacing(target, overwritten)
        clear(target.top, changed["D"])
        written = (
            path for path in (*changed["A"], *changed["MT"]) if os.path.lexists(apart / path)
        )
        take(target, apart, written)
    target.git("update-ref", "-d", MERGING)


def _changed(target: Checkout, before: str, after: str, kind: str) -> list[str]:
    """The paths that a merge has added (A), deleted (D) or given another content (MT)."""
    words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", f"--diff-filter={kind}")
    return target.git(*words, before, after).split("\0")[:-1]


def _overwritten(target: Checkout, before: str, added: Iterable[str]) -> Iterator[str]:
    """Yield what lies at the paths that a merge adds, or in the place of their folders, and that
    git has no copy of."""
    known = set(target.git("ls-tree", "-r", "-z", "--name-only", before).split("\0"))
    for path in added:
        for part in (path, *map(str, Path(path).parents[:-1])):
            place = target.top / part
            is_folder = part != path and place.is_dir() and not place.is_symlink()
            if part not in known and os.path.lexists(place) and not is_folder:
                yield part
                break


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


def _undone(
    tree: Worktree, target: Checkout, before: str, error: GitError, apart: Path
) -> GitError:
    """Take a merge back that failed, and return the error to raise."""
    conflicts = list[str]()
    with suppress(GitError):
        conflicts = conflicts_in(target)
    if target.commit("MERGE_HEAD"):
        target.git("merge", "--abort", env={"GIT_WORK_TREE": str(apart)}, folder=apart)
        target.answer("update-index", "-q", "--refresh")
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
