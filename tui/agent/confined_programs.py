"""The programs that run beside an agent, each in a sandbox: MCP servers, and checkers of files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from msgspec import convert

from tui.agent.launch import Launch, policy_of
from tui.core.clock import Clock
from tui.core.config import McpServer
from tui.core.dataclass import dataclass
from tui.core.redaction import child_environment
from tui.core.workspace import safe_search_path
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.environment import clean_environment, without_own_caches
from tui.permissions.sandbox.walls import Level
from tui.settings.credentials import SecretStore
from tui.settings.skills import plugins_of
from tui.settings.trust import trusted_programs

if TYPE_CHECKING:
    from tui.tools.lsp import Checkers
    from tui.tools.mcp import Servers

_MCP_LEVELS: Mapping[str, Level] = {
    "read-only": Level.READ_ONLY,
    "workspace": Level.WORKSPACE,
    "network": Level.NETWORK,
}


def confinement_of(launch: Launch, what: str) -> Confinement:
    """Make the confinement of programs that belong to no session."""
    settings, name = launch.config.sandbox, f"{what} {token_hex(8)}"
    confinement = Confinement.of_session(settings, launch.workspace, launch.folders, name)
    confinement.denied = policy_of(launch).denied_places
    return confinement


@dataclass(frozen=True, slots=True)
class McpSandbox:
    """The sandbox of MCP servers."""

    confinement: Confinement

    async def command(
        self, argv: Sequence[str], environment: Mapping[str, str], level: str
    ) -> list[str]:
        return await self.confinement.command(argv, environment, _MCP_LEVELS[level])

    async def close(self) -> None:
        await self.confinement.close()


def _plugin_servers(launch: Launch) -> Mapping[str, McpServer]:
    """The MCP servers of the person's plugins. Blocks."""
    entries = [plugin.servers for plugin in plugins_of(launch.folders)[0]]
    return {name: convert(entry, McpServer) for one in entries for name, entry in one.items()}


def make_servers(launch: Launch, session: str = "") -> Servers | None:
    """The MCP servers of a session, by its id, not started; without one, of several. None where
    there are none. A drill has none, and the practice model none behind an address."""
    configured = {} if launch.access.around is not None else launch.config.mcp
    if launch.access.around is None and not launch.bare:
        configured = {**_plugin_servers(launch), **configured}
    if launch.access.practice:
        configured = {name: one for name, one in configured.items() if not one.url}
    if not configured:
        return None
    from tui.tools.mcp import PATIENCE_S, SETTLED_S, Servers  # noqa: PLC0415 - if there are any

    root, scratch = launch.workspace.root, launch.workspace.scratch
    settings = launch.config.sandbox
    confinement = confinement_of(launch, "mcp")

    return Servers(
        configured,
        cwd=root,
        log_folder=scratch or launch.folders.log,
        patience_s=SETTLED_S if launch.one_turn else PATIENCE_S,
        environment=clean_environment(child_environment(), settings.keep_env),
        sandbox=McpSandbox(confinement),
        vault=SecretStore(os.environ, launch.folders),
        cache=launch.folders.cache,
        session=session,
    )


@dataclass(frozen=True, slots=True)
class _CheckerSandbox:
    """The sandbox of checkers; without one, with `unconfined`, only those run that are not in the
    folder."""

    confinement: Confinement
    root: Path
    unconfined: bool

    async def command(self, words: Sequence[str], environment: Mapping[str, str]) -> Sequence[str]:
        from tui.tools.lsp import NotConfinedError  # noqa: PLC0415 - as its caller

        if await self.confinement.engine() is not None:
            return await self.confinement.command(words, environment, Level.READ_ONLY)
        if self.root in Path(words[0]).parents or not self.unconfined:
            raise NotConfinedError(f"no sandbox confines it here ({self.confinement.reason})")
        return words

    async def close(self) -> None:
        await self.confinement.close()


def make_checkers(launch: Launch, clock: Clock) -> Checkers | None:
    """Make the checkers that find problems in edited files, nothing of them started; None where
    they are off, and in a drill."""
    settings, root = launch.config.diagnostics, launch.workspace.root
    if settings.mode == "off" or launch.access.around is not None or not launch.confined:
        return None
    from tui.tools.lsp import FINISH_S, LAST_S, CheckerPlace, Checkers  # noqa: PLC0415 - if it is on

    sandbox = launch.config.sandbox
    confinement = confinement_of(launch, "diagnostics")

    walls = _CheckerSandbox(confinement, root, unconfined=settings.unconfined)
    environment = without_own_caches(clean_environment(child_environment(), sandbox.keep_env))
    place = CheckerPlace(launch.workspace, environment, walls, clock)
    return Checkers(
        settings,
        place,
        safe_search_path(environment.get("PATH", ""), (root, *launch.workspace.extra)),
        brought=trusted_programs(root, launch.trust),
        patience_s=LAST_S if launch.one_turn else FINISH_S,
    )
