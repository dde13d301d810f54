"""The rules that decide if a call of one agent may run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tui.agent.limits import Limits, PendingRequests
from tui.core.dataclass import dataclass, field, replace
from tui.permissions.gate import Gate
from tui.permissions.types import Approver
from tui.settings.hook_files import Hooks


@dataclass(slots=True)
class CallRules:
    """The permissions, the person who is asked, the limits of the run and the person's hooks."""

    gate: Gate
    approver: Approver
    limits: Limits = field(default_factory=Limits)
    find_hooks: Callable[[], Hooks] | None = None
    """Reads the person's hooks; None where there can be none; blocks."""

    asking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Held while the person is asked: one question at a time, of sub-agents too."""
    writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Held while a call writes or runs something, which sub-agents do one after the other."""
    under_way: PendingRequests = field(default_factory=PendingRequests, init=False)
    """The requests of the agent and its sub-agents, where the run has limits."""
    hooks: asyncio.Task[Hooks] | None = field(default=None, init=False)
    """The person's hooks, read once for a session and its sub-agents."""

    def for_sub_agent(self, *, isolated: bool) -> CallRules:
        """The rules of a sub-agent: it asks in turn with its parent, and unless it works in a
        folder of its own it also writes in turn. What it spends counts at its parent."""
        rules = replace(self, limits=Limits())
        rules.asking = self.asking
        if not isolated:
            rules.writing = self.writing
        return rules
