"""The permissions of one agent: the mode, the rules in force, and the folders that it works in."""

from __future__ import annotations

from pathlib import Path

from tui.agent.agent_context import AgentContext
from tui.core.config import Config, Permissions
from tui.core.dataclass import dataclass, replace
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy, decide
from tui.permissions.rules import require_tools
from tui.permissions.types import Call, Decision, Mode
from tui.tools.base import StartReader
from tui.tools.registry import TOOLS


@dataclass(slots=True)
class AgentPermissions:
    """Shows and changes what one agent may do; a change counts from the next call."""

    _ctx: AgentContext

    @property
    def gate(self) -> Gate:
        """The rules in force, and what was granted for this session."""
        return self._ctx.rules.gate

    @property
    def mode(self) -> Mode:
        return self._ctx.state.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._ctx.state.mode = mode

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that the model has."""
        return tuple(self._ctx.toolbox.tools)

    @property
    def configured(self) -> Permissions:
        """The settings that the agent was made with."""
        return self._ctx.config.permissions

    @property
    def unconfined(self) -> bool:
        """True if no sandbox is known to confine commands, though one was meant to."""
        confinement = self._ctx.toolbox.confinement
        return confinement is not None and confinement.missing

    @property
    def start_reader(self) -> StartReader | None:
        """Starts a program of ours that reads behind the walls; None where none are known."""
        walls = self._ctx.toolbox.confinement
        return walls.start_reader if walls is not None and walls.known_levels else None

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the file tools, the workspace first."""
        return self._ctx.workspace.roots

    def add_dir(self, folder: Path) -> bool:
        """Let the tools work in a real folder too. False if they may, elevated or not."""
        ctx = self._ctx
        if replace(ctx.workspace, widened=False, readable=()).contains(folder):
            return False
        ctx.workspace = replace(ctx.workspace, extra=(*ctx.workspace.extra, folder))
        if ctx.toolbox.confinement is not None:
            ctx.toolbox.confinement.workspace = ctx.workspace
        return True

    def take_up(self, config: Config) -> None:
        """Apply changed settings where a running session can: the rules, and the redaction. What
        was granted for the session stays. Raises UsageError."""
        gate, rules = self.gate, config.permissions
        read = Policy.of(allow=rules.allow, ask=rules.ask, deny=rules.deny)
        require_tools((*read.deny, *read.ask), {*TOOLS, *self._ctx.toolbox.tools})
        gate.policy = replace(gate.policy, allow=read.allow, ask=read.ask, deny=read.deny)
        self._ctx.session.redact = config.redact == "record"

    def try_call(self, call: Call) -> Decision:
        """Decide about a call as it would be decided now. Nothing is run, asked or recorded."""
        ctx, walls = self._ctx, self._ctx.toolbox.confinement
        return decide(
            call,
            self.gate.policy,
            mode=ctx.state.mode,
            elevated=ctx.state.elevated,
            grants=self.gate.grants,
            workspace=ctx.workspace,
            holds=walls.known_levels if walls is not None else (),
        )
