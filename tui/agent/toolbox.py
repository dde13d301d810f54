"""The tools that an agent has, and what they work with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui.agent.skills import OfferedSkills
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field, replace
from tui.core.files import safe_name
from tui.core.output_store import OutputStore
from tui.session.session import Session
from tui.settings.agent_definitions import AgentDefinitions
from tui.tools.base import Tool
from tui.tools.file_ledger import FileLedger
from tui.tools.jobs import Jobs

if TYPE_CHECKING:
    from tui.permissions.sandbox.confinement import Confinement
    from tui.tools.lsp import Checkers
    from tui.tools.mcp import Servers


@dataclass(slots=True)
class Toolbox:
    """The tools of one agent and the services behind them.

    The agent owns the jobs and, unless they are shared, the servers. A sub-agent owns its jobs; all
    else is its parent's.
    """

    tools: dict[str, Tool[Any]]
    """The tools that requests list; those of MCP servers join and leave. A copy of the argument."""
    jobs: Jobs
    skills: OfferedSkills | None = None
    """The skills that the skill tool can load; read again with the project's files."""
    outputs: OutputStore | None = None
    """The full outputs that were cut; None where they go with their folder."""
    servers: Servers | None = None
    """The MCP servers, None where none is configured."""
    servers_shared: bool = False
    checkers: Checkers | None = None
    """The checkers that find problems in edited files; None where there are none."""
    confinement: Confinement | None = None
    """The confinement of commands; None where there is none."""
    kept: Path | None = None
    """The folder of running commands, for the next run of the program; None where there will be
    none."""
    find_agents: Callable[[], AgentDefinitions] | None = None
    """Reads the definitions of sub-agents, None where there can be none; blocks."""
    exports: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that hooks set for commands when the session began."""
    may_have: Callable[[str], bool] = lambda _: True
    """Says whether it may have a tool, by its name."""
    answers_only: bool = False
    """It has no tools at all."""
    ahead: bool = True
    """True if what the first call needs (sandbox, checkpoint) is made while the model thinks; else
    a run whose answer calls nothing does without."""

    deferred: dict[str, Tool[Any]] = field(default_factory=dict[str, "Tool[Any]"], init=False)
    """Tools of MCP servers that no request lists: the model finds them by search."""
    files: FileLedger = field(default_factory=FileLedger, init=False)
    """The files as the model last saw them, so that it overwrites nothing it has not seen."""
    by_sub_agents: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """The files that sub-agents wrote, by path: the SHA-256 of the last content from one."""
    touched: set[Path] = field(default_factory=set[Path], init=False)
    """The real paths that calls of file tools went to."""

    def __post_init__(self) -> None:
        if self.servers is not None:
            from tui.tools.mcp.read_mcp_resource import ReadMcpResource  # noqa: PLC0415 - if any

            reader = ReadMcpResource(self.servers)
            self.tools = {**self.tools, reader.name: reader}
        self.tools = {name: tool for name, tool in self.tools.items() if self.may_have(name)}

    def callable_tool(self, name: str) -> Tool[Any] | None:
        """A tool that the model may call, whether its requests list it or not."""
        return self.tools.get(name) or self.deferred.get(name)

    def for_sub_agent(
        self,
        session: Session,
        clock: Clock,
        withheld: Collection[str],
        may_have: Callable[[str], bool],
    ) -> Toolbox:
        """The toolbox of a sub-agent with `session`: the parent's tools without those `withheld`
        and its servers', which join by themselves; jobs of its own."""
        tools = {
            name: tool
            for name, tool in self.tools.items()
            if name not in withheld and not name.startswith("mcp__")
        }
        return replace(
            self,
            tools=tools,
            jobs=Jobs(clock, self.jobs.starter, session.path),
            outputs=self.outputs.of_session(session.path) if self.outputs else None,
            servers_shared=True,
            kept=self.kept.with_name(safe_name(session.id)) if self.kept and session.path else None,
            find_agents=None,
            may_have=may_have,
            answers_only=False,
        )
