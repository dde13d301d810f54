"""The state of a tool call on its way, and what all calls of one agent share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tui.agent.agent_context import AgentContext
from tui.agent.edit_checks import EditChecks
from tui.agent.hooks import HookRunner
from tui.agent.server_features import ServerFeatures
from tui.agent.supervised_commands import SupervisedCommands
from tui.core.dataclass import dataclass, field, replace
from tui.core.messages import Block, ToolOutput, object_of
from tui.core.text_cleaning import current_lines
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Call, Decision
from tui.tools.base import Params, Tool, ToolContext
from tui.tools.limits.receipt import Keep

PARTIAL_CHARS = 2000
"""The length of an interrupted call's output in its record."""
_SHOWN_FILES = 5


@dataclass(slots=True)
class PendingCall:
    """A call without a result yet."""

    call: Block
    repeat: bool = False
    """True if a person lets it run again, although nobody knows what it did before."""
    cut: str = ""
    """The text of its result, if the answer ended before the call did."""
    started: float | None = None
    """The time on the clock from which its seconds count."""
    tool: Tool[Any] | None = None
    """The tool that it calls, once its arguments are known to be right."""
    output: ToolOutput | None = None
    """The output of the tool up to an interrupt."""
    partial: str = ""
    """The end of what it has printed."""
    finished: ToolOutput | None = None
    """The output of the tool, while hooks and checks add to it."""
    recorded: bool = False
    """True once its result is in the record."""

    @property
    def id(self) -> str:
        return str(self.call["id"])

    @property
    def name(self) -> str:
        return str(self.call.get("name"))

    @property
    def input(self) -> dict[str, Any]:
        return object_of(self.call.get("input"))

    @property
    def keep(self) -> Keep:
        """The part of its output that matters if not all of it fits."""
        return self.tool.keep if self.tool is not None else "head"

    def add_output(self, text: str) -> None:
        self.partial = current_lines(self.partial + text)[-PARTIAL_CHARS:]


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call whose arguments are right, with everything that it takes to run it."""

    state: PendingCall
    call: Call
    """The call as the permissions see it."""
    tool: Tool[Any]
    params: Params
    context: ToolContext
    levels: Collection[Level]
    """The levels at which the sandbox can hold its command; none for anything else."""
    notes: tuple[str, ...] = ()
    """Lines for the end of its result: what hooks said before it ran."""

    @property
    def key(self) -> tuple[object, ...]:
        """The values by which another call is the same one again."""
        return self.call.tool, self.call.subject, self.call.paths, self.call.background


@dataclass(frozen=True, slots=True)
class StoppedCommand:
    """A command that was stopped at a level where it could write, and the level that it needs."""

    key: tuple[object, ...]
    level: Level
    wider: Level
    needs: str
    wrote: tuple[str, ...]
    known: bool
    """True if `wrote` is complete."""

    def asking(self, decision: Decision) -> Decision:
        """Return the question of the same call at the wider level."""
        files = ", ".join(self.wrote[:_SHOWN_FILES])
        if more := len(self.wrote[_SHOWN_FILES:]):
            files = f"{files} and {more} more"
        wrote = f"wrote {files}" if files else "wrote nothing in the workspace"
        wrote = wrote if self.known else "may have written files"
        why = f"The sandbox stopped it: it {self.needs}. That try {wrote}."
        return replace(decision, answer="ask", reason=why, by="sandbox", level=self.wider)


@dataclass(slots=True)
class CallContext:
    """The state that the calls of one agent share."""

    ctx: AgentContext
    features: ServerFeatures
    hooks: HookRunner
    checks: EditChecks = field(init=False)
    commands: SupervisedCommands = field(init=False)
    stopped: StoppedCommand | None = None
    """The last command, if walls stopped it and it may have written."""

    def __post_init__(self) -> None:
        self.checks = EditChecks(self.ctx)
        self.commands = SupervisedCommands(self.ctx)
