"""/agents: a session's sub-agents and the available kinds; and the screen that shows one, while it
works and afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, cast

from rich.cells import cell_len, set_cell_size
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.agent.sub_agent_list import SubAgent, SubAgentList
from tui.app.reports import Row
from tui.app.reports.agents import agent_row, facts_of, kind_row, seconds_of
from tui.core.clock import Clock
from tui.core.formatting import plural
from tui.core.text_cleaning import clean, one_line
from tui.session.records import Record
from tui.settings.agent_definitions import AgentDefinitions
from tui.ui.screens.table_screen import TableDialog, whole_words
from tui.ui.toolkit.base_app import BaseScreen
from tui.ui.widgets.conversation.items import AssistantItem
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.keys import AGENTS_KEYS, SUB_AGENT_KEYS, Keys, bindings, in_rows
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.record_items import ItemFollower
from tui.ui.widgets.row_list import Part, RowList

FOLLOW_S: Final = 0.25
"""Seconds between updates of what is working."""

_KEYS: Final = (("enter", "open"), ("x", "stop"))


class AgentsScreen(TableDialog[str | None]):
    """Dismissed with the id of the call whose sub-agent is to be shown, or None."""

    CSS_PATH = "sub_agents.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(AGENTS_KEYS),
        Binding("escape,q,ctrl+c", "dismiss", "close", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#agents"

    def __init__(self, agents: SubAgentList, kinds: AgentDefinitions, clock: Clock) -> None:
        super().__init__(classes="-table")
        self._agents, self._kinds, self._clock = agents, kinds, clock
        self._shown: list[Row] = []
        self._drawn: object = None

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "sub-agents"):
            yield RowList(id="agents")
            yield Static("", id="about", markup=False)

    def on_mount(self) -> None:
        self.refresh_agents()
        self.set_interval(FOLLOW_S, self.follow)

    def follow(self) -> None:
        """Draw the rows again if anything shown has changed."""
        if self._state() != self._drawn:
            self.refresh_agents()

    def _state(self) -> object:
        return [
            (one.call_id, one.state, one.now, one.calls, int(seconds_of(one, self._clock)))
            for one in self._agents.all
        ]

    def refresh_agents(self) -> None:
        """Show the current state: the newest sub-agent first, and the kinds below."""
        before = self._row
        agents = [agent_row(one, self._clock) for one in reversed(self._agents.all)]
        self._shown = [*agents, *map(kind_row, self._kinds.all.values())]
        places = {row.key: place for place, row in enumerate(self._shown)}
        cursor = places.get(before.key, 0) if before is not None else 0
        self.rows.show(len(self._shown), self._draw, cursor=cursor)
        self._explain()
        self._drawn = self._state()

    def action_stop(self) -> None:
        """Stop the sub-agent under the cursor."""
        row = self._row
        one = self._agents.of_call(row.key) if row else None
        if one is not None and one.works:
            one.stop()
            self.refresh_agents()

    def row_chosen(self, index: int) -> None:
        if "open" in self._shown[index].actions:
            self.dismiss(self._shown[index].key)

    def row_moved(self, index: int) -> None:  # noqa: ARG002
        self._explain()

    @property
    def _row(self) -> Row | None:
        return self._shown[self.rows.cursor] if self._shown else None

    def _draw(self, index: int, width: int) -> Sequence[Part]:
        row = self._shown[index]
        if not row.actions:
            column = min(max(len(name) for name in self._kinds.all), width // 3)
            about = whole_words(one_line(row.values[0][: 2 * width]), max(8, width - column - 4))
            return [
                ("  ", "muted"),
                (f"{set_cell_size(row.name, column)}  ", "text"),
                (about, "muted"),
            ]
        facts = row.values[0]
        name = whole_words(row.name, max(width // 2, width - 4 - cell_len(facts)))
        return [(f"{row.mark} ", row.look), (name, "text"), (f"  {facts}", "muted")]

    def _explain(self) -> None:
        """Show the details of the row under the cursor, and the keys."""
        row = self._row
        actions = row.actions if row else ()
        self.put("about", Content(clean("\n".join(row.about if row else ()))))
        self.show_keys(*(key for key in _KEYS if key[1] in actions), ("esc", "close"))


class SubAgentScreen(BaseScreen, Screen[None]):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """The conversation of a sub-agent, followed while it works. `records` are all that it has so
    far, and grow with it."""

    CSS_PATH = "sub_agents.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(SUB_AGENT_KEYS),
        Binding("escape,q", "dismiss", "back", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "ConversationView"

    def __init__(self, one: SubAgent, records: Sequence[Record], clock: Clock) -> None:
        super().__init__()
        self.one, self._records, self._clock = one, records, clock
        self._items = ItemFollower()
        self._changed = True

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield ConversationView(id="sub-conversation")
        yield PaneRule(id="keys-rule")
        yield Static(id="keys", markup=False)

    @property
    def view(self) -> ConversationView:
        return self.query_one(ConversationView)

    def on_mount(self) -> None:
        self.one.watch.append(self._note)
        self.set_interval(FOLLOW_S, self.follow)
        self.follow()
        self.view.action_edge(1)

    def on_unmount(self) -> None:
        if self._note in self.one.watch:
            self.one.watch.remove(self._note)

    def on_resize(self) -> None:
        self._show_head()

    def _note(self) -> None:
        self._changed = True

    def follow(self) -> None:
        """Show what is new."""
        if self._changed or self.one.works:
            self._show_head()
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

    def _show_head(self) -> None:
        one, width = self.one, self.size.width
        doing = f" · {one.now}" if one.works and one.now else ""
        name = whole_words(f"{one.agent}: {one.description}", max(20, width // 2))
        facts = f"{facts_of(one, self._clock)}{doing}"
        title = Content.assemble((name, "bold"), (f"  {one_line(facts)}", "$text-muted"))
        self.query_one("#title", Static).update(title)
        keys: Keys = (
            *((("x", "stop"),) if one.works else ()),
            ("y", "copy the answer"),
            ("enter", "fold"),
            ("esc", "back"),
        )
        self.query_one("#keys", Static).update(in_rows(keys, width - 2, rows=1))

    def on_conversation_view_item_selected(self, event: ConversationView.ItemSelected) -> None:
        event.stop()  # its outputs are not the chat's

    def action_stop(self) -> None:
        """Stop the sub-agent where it is."""
        if self.one.works:
            self.one.stop()

    def action_page(self, step: int) -> None:
        self.view.action_page(step)

    def action_copy(self) -> None:
        """Copy its last answer."""
        answers = (
            item.text for item in reversed(self.view.items) if isinstance(item, AssistantItem)
        )
        if text := next(answers, ""):
            self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]
            copied = f"Copied {plural(len(text), 'character')}."
            cast("App[Any]", self.app).notify(copied, markup=False)
