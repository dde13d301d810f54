"""/worktree: the worktree that this session works in, and the others of the repository."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui.app.dialog_data import YesNoQuestion
from tui.app.reports import Report
from tui.core.errors import UsageError
from tui.core.formatting import plural
from tui.core.git.door import GitError
from tui.core.git.merge import merge
from tui.core.git.removal import agree, check_removable, remove
from tui.core.git.repository import Repository
from tui.core.git.worktree import Worktree
from tui.core.git.worktree_state import WorktreeState, state_of
from tui.core.paths import shorten

if TYPE_CHECKING:
    from tui.app.conversation import Conversation

_WORDS = "/worktree, /worktree list, /worktree merge [NAME] and /worktree remove [NAME]"


async def worktree(conversation: Conversation, argument: str) -> None:
    """Show the worktree, list all, merge one or remove one. Raises HoldfastError."""
    action, _, name = argument.partition(" ")
    repository = await asyncio.to_thread(Repository.of, conversation.services.workspace)
    name = name.strip()
    match action:
        case "" if not name:
            await _show(conversation, repository)
        case "list" if not name:
            await _list(conversation, repository)
        case "merge":
            await _merge(conversation, repository, name)
        case "remove":
            await _remove(conversation, repository, name)
        case _:
            raise UsageError(f"/worktree can't {argument!r}.", hint=f"There are {_WORDS}.")


async def _show(conversation: Conversation, repository: Repository) -> None:
    here = conversation.services.workspace
    tree = await asyncio.to_thread(repository.at, here)
    if tree is None:
        await _list(conversation, repository)
        return
    state = await asyncio.to_thread(state_of, tree)
    behind = f", {state.behind:,} behind" if state.behind else ""
    lines = [
        f"Folder: {shorten(here)}",
        f"Branch: {state.branch or f'none, at {state.head[:8]}'}",
        f"Made from: {tree.target} in {shorten(tree.origin)}",
        f"Commits: {state.ahead:,} ahead of {tree.target}{behind}",
        f"Now: {state.words(tree.target)}",
    ]
    conversation.frontend.report(Report(f"Worktree {tree.name}", lines))


async def _list(conversation: Conversation, repository: Repository) -> None:
    frontend = conversation.frontend

    def lines() -> list[str]:
        here = repository.at(conversation.services.workspace)
        found: list[str] = []
        for name in repository.names():
            try:
                tree = repository.find(name)
                state = state_of(tree)
            except GitError as error:
                found.append(f"{name} · {error.message}")
                continue
            mark = " (here)" if here and here.path == tree.path else ""
            branch = state.branch or state.head[:8]
            found.append(f"{tree.name}{mark} · {branch} · {state.words(tree.target)}")
        return found

    found = await asyncio.to_thread(lines)
    if not found:
        frontend.say("No worktrees here.", hint="Start one with: holdfast --worktree NAME")
        return
    frontend.report(
        Report(f"{plural(len(found), 'worktree')} in {shorten(repository.place)}", found)
    )


async def _merge(conversation: Conversation, repository: Repository, name: str) -> None:
    """Merge the commits; what is not committed is named first."""
    if not conversation.says_idle():
        return
    tree = await asyncio.to_thread(_named, conversation, repository, name)
    state = await asyncio.to_thread(state_of, tree)
    if state.changed and state.ahead:
        question = YesNoQuestion(
            f"Merge {plural(state.ahead, 'commit')} into {tree.target}?",
            f"{plural(len(state.changed), 'file')} in {tree.name} "
            f"{'isn' if len(state.changed) == 1 else 'aren'}'t committed and won't be merged.",
            "Merge the commits",
            "Cancel",
            details=state.changed,
        )
        if not await conversation.frontend.confirm(question):
            return
    done = await asyncio.to_thread(merge, tree)
    hint = f"/worktree remove {tree.name} removes the worktree."
    conversation.frontend.say(done, "success", hint=hint)


async def _remove(conversation: Conversation, repository: Repository, name: str) -> None:
    """Remove one; where something would be lost, the person is asked. The one that the session
    works in goes when it is left."""
    frontend = conversation.frontend
    if not conversation.says_idle():
        return
    tree = await asyncio.to_thread(_named, conversation, repository, name)
    state = await asyncio.to_thread(state_of, tree)
    check_removable(tree, state)
    if not state.is_empty and not await frontend.confirm(_removal(tree, state)):
        return
    if await asyncio.to_thread(repository.at, conversation.services.workspace) == tree:
        await asyncio.to_thread(agree, tree, state)
        frontend.say(
            f"The worktree {tree.name} is removed when you leave it, unless it changes before.",
            hint="/quit leaves it.",
        )
        return
    removed = await asyncio.to_thread(remove, repository, tree, state)
    frontend.say(f"Removed the worktree {tree.name}.", "success", hint=removed.words)


def _removal(tree: Worktree, state: WorktreeState) -> YesNoQuestion:
    stays: list[str] = []
    if state.ahead:
        stays.append(f"Its commits stay on {state.branch or 'a ref'}.")
    if state.changed or state.loose or state.busy:
        stays.append("What isn't committed is saved as a commit of its own.")
    if state.ignored:
        stays.append("Ignored files are lost.")
    details = [*state.changed, *(f"{name} (ignored)" for name in state.ignored)]
    return YesNoQuestion(
        f"Remove the worktree {tree.name}?",
        f"It has {state.words(tree.target)}. {' '.join(stays)}",
        "Remove",
        "Cancel",
        details=details,
    )


def _named(conversation: Conversation, repository: Repository, name: str) -> Worktree:
    """The worktree of a name, without one the one that the session works in."""
    if name:
        return repository.find(name)
    tree = repository.at(conversation.services.workspace)
    if tree is None:
        raise UsageError(
            "This session doesn't work in a worktree.", hint="Name one: /worktree list shows them."
        )
    return tree
