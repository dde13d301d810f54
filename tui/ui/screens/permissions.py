"""/permissions: the rules in force, to take back, and the session's decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.content import Content

from tui.app.commands.permissions import revoke
from tui.app.reports.permissions import PermissionRows, permission_rows
from tui.core.errors import HoldfastError
from tui.core.text_cleaning import clean
from tui.ui.screens.panel import Panel
from tui.ui.toolkit.answer_guard import USELESS_S, guard_of
from tui.ui.toolkit.base_screen import note_for

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.ui.frontend import ScreenFrontend


class PermissionsScreen(Panel[None]):
    """A row for each rule and each decision, as `permission_rows` makes them."""

    NAME = "permissions"
    KEYS: ClassVar[Mapping[str, str]] = {"revoke": "r", "copy": "y"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "revoke", "revoke the rule", show=False),
        Binding("y", "copy", "copy", show=False),
    ]

    def __init__(self, frontend: ScreenFrontend, agent: Agent, rows: PermissionRows) -> None:
        super().__init__(rows[0])
        self._frontend, self._agent, self._rules = frontend, agent, rows[1]

    @work(group="revoke", exclusive=True)
    async def action_revoke(self) -> None:
        """Take back the rule under the cursor."""
        if (row := self.row) is None or "revoke" not in row.actions:
            return
        if not guard_of(self).deliberate:  # held down, it would take back all that follow
            note_for(self, USELESS_S, "Release r, then press it again.")
            return
        try:
            await revoke(self._frontend.conversation, self._agent, self._rules[row.key])
        except HoldfastError as error:
            self.put("about", Content(clean(str(error))))
            return
        self._given, self._rules = await rows_of(self._frontend, self._agent)
        self.draw()


async def rows_of(frontend: ScreenFrontend, agent: Agent) -> PermissionRows:
    """Find the rules and decisions of now."""
    elevated = frontend.chat.header.state.elevated
    return await permission_rows(agent, frontend.services, elevated=elevated)
