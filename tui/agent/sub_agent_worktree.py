"""A sub-agent in a git worktree of its own: its tools, its commands and its sandbox work there.

An unchanged one is removed at the end. Another stays, and the parent learns where its work is.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError, ToolError
from tui.core.git.door import GitError
from tui.core.git.removal import remove
from tui.core.git.repository import Repository
from tui.core.git.worktree import EnteredWorktree, UseLock, in_use
from tui.core.git.worktree_state import diffstat, state_of

if TYPE_CHECKING:
    from tui.agent.agent_context import AgentContext
    from tui.core.workspace import Workspace
    from tui.permissions.sandbox.confinement import Confinement

_ID_CHARS: Final = 6
_NAME_CHARS: Final = 40


@dataclass(slots=True)
class SubAgentWorktree:
    """The worktree of one run of a sub-agent. `outcome` is its end in words for the model, and
    `stays` those for the person where it is still there."""

    entered: EnteredWorktree
    workspace: Workspace
    confinement: Confinement | None
    outcome: str = ""
    stays: str = ""
    _lock: UseLock = field(init=False)

    role: Final = (
        "You work in a git worktree, on a branch of your own. Commit what you finish, so that it "
        "can be merged."
    )

    def __post_init__(self) -> None:
        self._lock = in_use(self.entered.tree)
        self._lock.share()

    @classmethod
    async def make(cls, ctx: AgentContext, agent: str, session_id: str) -> SubAgentWorktree:
        """The worktree of a sub-agent's session, in which it continues after an earlier run. Raises
        ToolError where there can be none."""
        root = ctx.workspace.root
        agent = re.sub(r"^[^A-Za-z0-9]+", "", agent)[:_NAME_CHARS] or "agent"
        name = f"{agent}-{session_id[:_ID_CHARS]}"

        def enter() -> EnteredWorktree:
            return Repository.of(root).enter(name, root)

        try:
            entered = await asyncio.to_thread(enter)
            results = None if ctx.workspace.scratch else ctx.workspace.tool_results.parent
            workspace = replace(ctx.workspace, root=entered.folder, spare=results, temporary=None)
            walls = ctx.toolbox.confinement
            return cls(entered, workspace, walls.around(workspace, session_id) if walls else None)
        except HoldfastError as error:
            why = f"This sub-agent works in a git worktree only. {error.message}"
            raise ToolError(why, hint=error.hint) from error

    @property
    def welcome(self) -> str:
        """Say where it works, and what is not there, in a line."""
        tree = self.entered.tree
        return " ".join((f"Works in the worktree {tree.name}.", *self.entered.notes))

    async def leave(self) -> None:
        """Remove the worktree if nothing has changed in it, else say where the work is."""
        self._lock.release()
        self.outcome = await asyncio.to_thread(self._end)

    def _end(self) -> str:
        tree = self.entered.tree
        try:
            repository = Repository.of(tree.origin)
            state = state_of(tree)
            if state.is_empty:
                remove(repository, tree, state)
                return "[It worked in a git worktree, which was unchanged and is removed.]"
            self.stays = f"in worktree {tree.name}"
            sizes = diffstat(tree)
        except GitError as error:
            return f"[Its worktree {tree.path} may still be there: {error.message}]"
        branch = state.branch or state.head
        parts = [f"Its work is in the worktree {tree.path}, branch {branch}"]
        parts += [state.words(tree.target), *filter(None, [sizes])]
        merge = f"To merge its commits: git merge {branch}"
        first = "; commit the changed files there first" if state.changed else ""
        return f"[{' · '.join(parts)}. {merge}{first}.]"
