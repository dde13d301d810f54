"""/permissions: the rules in force, to take back, and the session's decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ClassVar, TypeAlias

from textual import work
from textual.binding import Binding, BindingType
from textual.content import Content

from tui.app.reports import Row
from tui.app.reports.permissions import RuleRow
from tui.core.errors import HoldfastError
from tui.core.text_cleaning import clean
from tui.ui.screens.panel import Panel

Found: TypeAlias = tuple[Sequence[Row], Mapping[str, RuleRow]]


class PermissionsScreen(Panel[None]):
    """A row for each rule and each decision. `load` finds them again after a rule was revoked."""

    NAME = "permissions"
    KEYS: ClassVar[Mapping[str, str]] = {"revoke": "r", "copy": "y"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "revoke", "revoke the rule", show=False),
        Binding("y", "copy", "copy", show=False),
    ]

    def __init__(
        self,
        found: Found,
        load: Callable[[], Awaitable[Found]],
        revoke: Callable[[RuleRow], Awaitable[None]],
    ) -> None:
        super().__init__(found[0])
        self._rules, self._load, self._revoke = found[1], load, revoke

    @work(group="revoke", exclusive=True)
    async def action_revoke(self) -> None:
        """Take back the rule under the cursor."""
        if (row := self.row) is None or "revoke" not in row.actions:
            return
        try:
            await self._revoke(self._rules[row.key])
        except HoldfastError as error:
            self.put("about", Content(clean(str(error))))
            return
        self._given, self._rules = await self._load()
        self.draw()
