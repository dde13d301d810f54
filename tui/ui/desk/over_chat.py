"""F7 in the chat: the desk over it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.desk.host import DeskHost, DeskRow
from tui.desk.hosts import hosts_of
from tui.ui.desk.desk_rows import SessionKey
from tui.ui.desk.desk_screen import DeskScreen
from tui.ui.desk.places import over_chat

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend


class DeskOverChat:
    """Leads from the desk over a chat to sessions, and back to the chat. Closes `hosts` once the
    desk is left."""

    def __init__(self, frontend: ScreenFrontend, hosts: Sequence[DeskHost]) -> None:
        self._frontend, self._hosts = frontend, hosts
        services = frontend.services
        self.screen = DeskScreen(hosts, self, services.clock, folder=services.workspace)

    @property
    def current(self) -> SessionKey | None:
        agent = self._frontend.conversation.agent
        return ("", agent.session.id) if agent is not None else None

    async def show(self) -> None:
        """Show the desk over the chat."""

        async def close(_: object) -> None:
            await asyncio.gather(*(host.close() for host in self._hosts), return_exceptions=True)

        await self._frontend.app.push_screen(self.screen, close)

    def open_session(self, host: DeskHost, row: DeskRow) -> None:
        self._frontend.app.push_screen(over_chat(self._frontend, host, row))

    def leave_desk(self) -> None:
        if self.screen.is_current:
            self.screen.dismiss(None)

    def count(self, rows: Sequence[DeskRow]) -> None:
        """Do nothing: the terminal's title and tab are the chat's."""


async def show(frontend: ScreenFrontend) -> None:
    """Show the sessions of this machine, and of those that the settings name. Raises UsageError
    for a name that is no machine's, ConfigError."""
    services = frontend.services
    hosts = await asyncio.to_thread(hosts_of, services.folders, clock=services.clock)
    await DeskOverChat(frontend, hosts).show()
