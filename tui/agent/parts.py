"""What an agent is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui.agent.limits import Limits
from tui.context.system_prompt import Injected
from tui.core.clock import Clock
from tui.core.config import Config
from tui.core.messages import Block
from tui.core.output_store import OutputStore
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate
from tui.permissions.types import Approver
from tui.provider.base import ModelInfo, Provider
from tui.provider.retry import RetryControl
from tui.session.session import Session
from tui.tools.base import Tool
from tui.tools.jobs import Jobs

if TYPE_CHECKING:
    from tui.tools.mcp import Servers


@dataclass(frozen=True, slots=True)
class Parts:
    """What an agent is made of. The agent owns the session, the provider, the
    jobs and, unless they are shared, the servers.

    `fallbacks` are models of the same provider to go on with, in this order; `control` ends the
    provider's waits; `max_wait_s` bounds the agent's own for a server's limits, None is no bound.

    `switches` are directives to begin with (-y, --verbose), `notices` what the person should
    know before the first turn. `layers` are the names and texts that `system` is made of, for
    the ledger; `cache` is the folder where token ratios are kept, None to keep none. `injected`
    says what became of the files in the system prompt. `servers` are the MCP servers, None where
    none is configured.
    """

    session: Session
    provider: Provider
    model: ModelInfo
    tools: Mapping[str, Tool[Any]]
    gate: Gate
    approver: Approver
    workspace: Workspace
    system: list[Block]
    config: Config
    clock: Clock
    jobs: Jobs
    fallbacks: Sequence[str] = ()
    control: RetryControl = field(default_factory=RetryControl)
    max_wait_s: float | None = None
    limits: Limits = field(default_factory=Limits)
    switches: Mapping[str, bool] = field(default_factory=dict[str, bool])
    notices: Sequence[str] = ()
    layers: Sequence[tuple[str, str]] = ()
    cache: Path | None = None
    kept: OutputStore | None = None
    injected: Sequence[Injected] = ()
    servers: Servers | None = None
    servers_shared: bool = False
