"""Merges what tasks have committed elsewhere into the branch of their run, in the file's order.

Conflicts are kept: what can't be merged stays in a worktree, with what to do about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from tui.batch import prompts
from tui.batch.events import BatchEvent, TaskMerged
from tui.batch.run_store import RunStore
from tui.batch.state import TaskState
from tui.batch.task_worktrees import TaskWorktrees
from tui.core.git.door import GitError
from tui.core.git.merge import MergeConflictError


class MergeQueue:
    """Merges tasks of a run, and knows which of its worktrees are in conflict."""

    def __init__(self, worktrees: TaskWorktrees) -> None:
        self._worktrees = worktrees
        self._conflicts: set[str] = set()

    async def merge(
        self,
        book: RunStore,
        publish: Callable[[BatchEvent], None],
        still_comes: Callable[[TaskState], bool] | None,
    ) -> None:
        """Merge what is done in worktrees, in the order of the file: a task waits for those before
        it that are still to come; None to merge everything that can be."""
        blocked: dict[str, int] = {}
        for index in range(len(book.state.tasks)):
            task = book.task(index)
            if task.status == "unmerged" and task.worktree:
                if task.worktree in blocked:
                    why = f"Task {blocked[task.worktree] + 1} of its group has to be merged first."
                    await self._unmerged(book, publish, task, why)
                elif task.worktree in self._conflicts or not await self._merge_one(
                    book, publish, task
                ):
                    blocked[task.worktree] = index
            elif still_comes is not None and still_comes(task):
                return

    async def _merge_one(
        self, book: RunStore, publish: Callable[[BatchEvent], None], task: TaskState
    ) -> bool:
        """Merge a task. False where it cannot be: the state says why, and what to do."""
        name = task.worktree or ""
        solved = task.error_class == "conflict"  # by now, as a later commit of the worktree
        commit = "" if solved else task.change or ""
        message = prompts.merge_message(task.index, task.task)
        try:
            placed = book.state.placed
            base = placed.branch if placed else ""
            await asyncio.to_thread(self._worktrees.merge, name, commit, message, base)
        except MergeConflictError as error:
            self._conflicts.add(name)
            await self._unmerged(book, publish, task, str(error), "conflict")
            return False
        except GitError as error:
            await self._unmerged(book, publish, task, str(error))
            return False
        await book.rest(replace(task, status="completed", message=None, error_class=None))
        publish(TaskMerged(task.index, "completed", task.change, ""))
        return True

    async def _unmerged(
        self,
        book: RunStore,
        publish: Callable[[BatchEvent], None],
        task: TaskState,
        message: str,
        error_class: str | None = None,
    ) -> None:
        """Note why a task is not merged, and report it once."""
        if task.message != message or task.error_class != error_class:
            await book.save(replace(task, message=message, error_class=error_class))
            publish(TaskMerged(task.index, "unmerged", task.change, message))
