"""`--worktree`: a session that works in a git worktree of its own, from entering it to leaving it.

A session that is resumed goes back into the worktree that it worked in, if that is still there.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from tui.app.options.arguments import Options
from tui.app.session_path import session_worktree_folder, workspace_of
from tui.app.unattended_commands import unattended_commands
from tui.core.errors import HoldfastError, UsageError
from tui.core.git.door import GitError
from tui.core.git.removal import remove
from tui.core.git.repository import Repository
from tui.core.git.worktree import EnteredWorktree, Worktree, in_use
from tui.core.git.worktree_state import state_of
from tui.core.paths import folders, shorten
from tui.core.text_cleaning import clean
from tui.core.workspace import checkout_of, worktree_of


@contextmanager
def in_worktree(options: Options) -> Generator[Options]:
    """The options for work in the worktree that they name; as they are where they mean none.
    At the end an unchanged one is removed, and its end is reported. Raises UsageError."""
    try:
        entered = _entered(options)
        lock = None if isinstance(entered, Options) else in_use(entered.tree)
        if lock:
            lock.share()
    except GitError as error:
        raise UsageError(error.message, hint=error.hint) from error
    if isinstance(entered, Options):
        yield entered
        return
    assert lock
    tree = entered.tree
    try:
        notices = (_welcome(entered), *entered.notes)
        yield options.having(cwd=entered.folder, worktree=None, notices=notices)
    finally:
        lock.release()
        lines = leave(tree)
        with suppress(OSError):  # nobody may be there to read it
            out = sys.stderr if options.printing.headless else sys.stdout
            out.write("".join(f"{clean(line)}\n" for line in lines))
            out.flush()


def leave(tree: Worktree) -> list[str]:
    """Remove a worktree in which nothing is lost, or that the person let go. What became of it,
    in lines."""
    if not tree.path.is_dir():
        return [f"The worktree {tree.name} is gone. Its branch was {tree.own_branch}."]
    runs = [one for one in unattended_commands(folders()) if one.state == "running"]
    if any(Path(one.cwd).is_relative_to(tree.path) for one in runs):
        return [f"The worktree {tree.name} stays: a command still runs in it. See `holdfast ps`."]
    try:
        repository = Repository.of(tree.origin)
        tree = repository.find(tree.name)
        state = state_of(tree)
        if state.is_empty or tree.agreed == state.fingerprint:
            removed = remove(repository, tree, state)
            why = " Nothing had changed in it." if state.is_empty else ""
            return [f"Removed the worktree {tree.name}.{why}", *filter(None, [removed.words])]
    except HoldfastError as error:
        return [f"The worktree {tree.name} stays: {error.message}"]
    lines = [f"The worktree {tree.name} stays: {state.words(tree.target)}."]
    if tree.agreed:
        lines = [f"The worktree {tree.name} stays: it changed after you removed it."]
    merge = f" · merge: git merge {state.branch or state.head[:8]}" if state.ahead else ""
    return [*lines, f"Back to it: holdfast -w {tree.name}{merge}"]


def _entered(options: Options) -> EnteredWorktree | Options:
    """The worktree that the options mean, else the options."""
    if options.opening.worktree is not None:
        folder = workspace_of(options)
        return Repository.of(folder).enter(options.opening.worktree, folder)
    with suppress(HoldfastError):  # reported when the session is opened
        cwd = session_worktree_folder(options)
        top = worktree_of(cwd) if cwd else None
        if cwd is None or top is None:
            return options
        if top.is_dir():
            repository = Repository.of(top)
            if repository.at(top):
                return _entered_again(repository, top, cwd)
        elif (checkout := checkout_of(cwd)).is_dir():
            notice = f"The worktree {top.name} is gone: working in {shorten(checkout)}."
            return replace(options, cwd=checkout, notices=(notice,))
    return options


def _entered_again(repository: Repository, top: Path, cwd: Path) -> EnteredWorktree:
    folder = repository.top / cwd.relative_to(top)
    return repository.enter(top.name, folder)


def _welcome(entered: EnteredWorktree) -> str:
    tree = entered.tree
    if not entered.new:
        return f"Back in the worktree {tree.name}, which came from {tree.target}."
    return f"Working in the new worktree {tree.name}, made from {tree.target}: {shorten(tree.path)}"
