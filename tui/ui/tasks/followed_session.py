"""The session of a task on another machine, drawn as far as the store has it, and as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from tui.batch.run_control import GrowingSession
from tui.core.dataclass import dataclass
from tui.ui.fact_renderer import FactRenderer
from tui.ui.screens.tasks import TasksScreen
from tui.ui.widgets.conversation.items import AssistantItem, Item, UserItem
from tui.ui.widgets.conversation.items_view import PreparedItems
from tui.ui.widgets.record_items import ItemFollower, RestoredItems, outputs_of


@dataclass(frozen=True, slots=True)
class SessionGrowth:
    """The items that came and changed with a read, and the results of calls in it. With `prepared`
    items, what was drawn before is void."""

    prepared: PreparedItems | None
    came: Sequence[Item]
    changed: Sequence[Item]
    outputs: Mapping[str, str]


class FollowedSession:
    """Reads the `session` of task `index`, and draws on a screen what is new."""

    def __init__(self, index: int, session: GrowingSession, screen: TasksScreen) -> None:
        self.index, self._session, self._screen = index, session, screen
        self._items = ItemFollower()
        self._begun: int = 0
        self._reading = False
        self.renderer = FactRenderer(screen)

    @property
    def is_due(self) -> bool:
        """True if there may be something new, and nobody reads it."""
        return self._session.is_behind and not self._reading

    async def read(self) -> SessionGrowth:
        """Read what came. Raises HoldfastError."""
        self._reading = True
        try:
            return await asyncio.to_thread(self._read)
        finally:
            self._reading = False

    def draw(self, growth: SessionGrowth) -> None:
        """Draw what came."""
        if growth.prepared is None:
            self.renderer.extend(growth.came, growth.changed, growth.outputs)
            return
        items = [*growth.came]
        answers = (item.text for item in reversed(items) if isinstance(item, AssistantItem))
        turns = sum(isinstance(item, UserItem) for item in items)
        past = RestoredItems(items, self._items.calls, {**growth.outputs}, next(answers, ""), turns)
        self.renderer = FactRenderer(self._screen)
        self.renderer.resume(past, growth.prepared)

    def _read(self) -> SessionGrowth:
        session, before = self._session, len(self._session.records)
        session.read()
        afresh = session.begun != self._begun
        if afresh:
            self._items, self._begun, before = ItemFollower(), session.begun, 0
        came, changed = self._items.advance(session.records)
        prepared = self._screen.conversation.prepare(came) if afresh else None
        return SessionGrowth(prepared, came, changed, outputs_of(session.records[before:]))
