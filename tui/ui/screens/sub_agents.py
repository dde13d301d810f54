"""/agents: a session's sub-agents and the available kinds; and the screen that shows one, while it
works and afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual.app import App
from textual.binding import BindingType

from tui.agent.sub_agent_list import SubAgent, SubAgentList
from tui.app.reports import Row, problem_row
from tui.app.reports.agents import agent_row, facts_of, kind_key, kind_row
from tui.core.clock import Clock
from tui.core.errors import HoldfastError
from tui.core.text_cleaning import one_line
from tui.session.records import Record
from tui.settings.agent_definitions import AgentDefinitions
from tui.ui.screens.conversation_reader import ConversationReader
from tui.ui.screens.panel import Panel, copy
from tui.ui.screens.read_screen import ReadScreen
from tui.ui.widgets.conversation.items import AssistantItem
from tui.ui.widgets.keys import AGENTS_KEYS, SUB_AGENT_KEYS, Keys, bindings
from tui.ui.widgets.record_items import ItemFollower

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend

FOLLOW_S: Final = 0.25
"""Seconds between updates of what is working."""


class AgentsScreen(Panel[str]):
    """The sub-agents of a session, the newest first, and below them the kinds there are. Dismissed
    with the id of the call whose sub-agent is to be shown, or None."""

    NAME = "sub-agents"
    KEYS: ClassVar[Mapping[str, str]] = {"open": "enter", "stop": "x", "edit": "e"}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(AGENTS_KEYS)]

    def __init__(self, agents: SubAgentList, kinds: AgentDefinitions, clock: Clock) -> None:
        super().__init__()
        self._agents, self._definitions, self._clock = agents, kinds, clock
        self._kinds = [*map(kind_row, kinds.all.values()), *map(problem_row, kinds.problems)]

    def rows_now(self) -> Sequence[Row]:
        agents = [agent_row(one, self._clock) for one in reversed(self._agents.all)]
        return [*agents, *self._kinds]

    def action_stop(self) -> None:
        """Stop the sub-agent under the cursor."""
        one = self._agents.of_call(self.row.key) if self.row else None
        if one is not None and one.works:
            one.stop()
            self.draw()

    def row_chosen(self, index: int) -> None:
        row = self.row
        if row is None or "open" not in row.actions:
            return
        kind = next((k for k in self._definitions.all.values() if kind_key(k) == row.key), None)
        if kind is None:
            self.dismiss(row.key)
        elif kind.path is None:
            self.app.push_screen(ReadScreen(f"sub-agent {row.name}", kind.prompt))  # pyright: ignore[reportUnknownMemberType]
        else:
            super().row_chosen(index)


class SubAgentScreen(ConversationReader):
    """The conversation of a sub-agent, followed while it works. `records` are all that it has so
    far, and grow with it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(SUB_AGENT_KEYS)]

    def __init__(self, one: SubAgent, records: Sequence[Record], clock: Clock) -> None:
        super().__init__()
        self.one, self._records, self._clock = one, records, clock
        self._items = ItemFollower()
        self._changed = True

    def on_mount(self) -> None:
        self.one.watch.append(self._note)
        self.set_interval(FOLLOW_S, self.follow)
        self.follow()
        self.view.action_edge(1)

    def on_unmount(self) -> None:
        if self._note in self.one.watch:
            self.one.watch.remove(self._note)

    def _note(self) -> None:
        self._changed = True

    def follow(self) -> None:
        """Show what is new."""
        if self._changed or self.one.works:
            self.show_head()
            self.view.tick(self._clock.monotonic())
        if not self._changed:
            return
        self._changed = False
        came, changed = self._items.advance(self._records)
        if not self.one.works:
            changed += self._items.end()
        self.view.extend(came)
        for item in changed:
            self.view.changed(item)

    def head(self) -> tuple[str, str, Keys]:
        one = self.one
        doing = f" · {one.now}" if one.works and one.now else ""
        keys: Keys = (
            *((("x", "stop"),) if one.works else ()),
            ("y", "copy the answer"),
            ("enter", "fold"),
            ("esc", "back"),
        )
        facts = one_line(f"{facts_of(one, self._clock)}{doing}")
        return f"{one.agent}: {one.description}", facts, keys

    def action_stop(self) -> None:
        """Stop the sub-agent where it is."""
        if self.one.works:
            self.one.stop()

    def action_copy(self) -> None:
        """Copy its last answer."""
        answers = (
            item.text for item in reversed(self.view.items) if isinstance(item, AssistantItem)
        )
        if text := next(answers, ""):
            copy(cast("App[Any]", self.app), text)


async def open_sub_agent(frontend: ScreenFrontend, call_id: str) -> None:
    """Show the sub-agent that a call started."""
    agent = frontend.conversation.agent
    one = agent.sub_agents.of_call(call_id) if agent else None
    if agent is None or one is None:
        frontend.say("This call started no sub-agent.")
        return
    try:
        records = await asyncio.to_thread(agent.sub_agents.records_of, one)
    except HoldfastError as error:
        frontend.say(error.message, "warning", hint=error.hint)
        return
    frontend.app.push_screen(SubAgentScreen(one, records, frontend.services.clock))
