"""The left side of the chat: the conversation, its notices, and the search in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

from tui.core.clock import Clock
from tui.ui.widgets.context_meter import ContextMeter
from tui.ui.widgets.notices import NoticeLine, NoticeText, QueuedPrompts
from tui.ui.widgets.panes import CachedVertical, PaneRule

if TYPE_CHECKING:
    from tui.ui.widgets.conversation.items import Item
    from tui.ui.widgets.conversation.view import ConversationView
    from tui.ui.widgets.notices import TodoList
    from tui.ui.widgets.retry_banner import RetryBanner
    from tui.ui.widgets.search_bars import FindBar
    from tui.ui.widgets.welcome_text import StartNotices


SAID_S = 4.0
"""Seconds that a line is shown in the rule."""


class ConversationSide(CachedVertical):
    """Conversation, notices and meter, one below the other.

    `intro` is shown while nothing has been said; `end` are the last items of the session that will
    be opened. `conversation`, `todos` and `retry` exist after `furnish`, `conversation` earlier if
    there is an `end`; the find bar exists once it is asked for.
    """

    conversation: ConversationView
    todos: TodoList
    retry: RetryBanner

    def __init__(self, intro: Widget, end: Sequence[Item] = (), *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self.queued = QueuedPrompts(id="queued")
        self.notice = NoticeLine(id="notice")
        self.meter = ContextMeter(id="meter")
        self.rule = PaneRule("conversation", id="conversation-rule")
        self._intro = intro
        self.begun = bool(end)
        if end:
            self._begin(end)
        self._find: FindBar | None = None
        self._at_start: StartNotices | None = None

    def compose(self) -> ComposeResult:
        yield self.rule
        yield self._intro
        if self.begun:
            yield self.conversation
        yield self.queued
        yield self.notice
        yield self.meter

    async def furnish(self, clock: Clock) -> None:
        """Add what the first frame does without."""
        from tui.ui.widgets.notices import TodoList  # noqa: PLC0415
        from tui.ui.widgets.retry_banner import RetryBanner  # noqa: PLC0415

        self.todos = TodoList(id="todos")
        self.retry = RetryBanner(clock, id="retry")
        if self.begun:
            await self.mount(self.todos, after=self.conversation)
        else:
            self._begin()
            await self.mount(self.conversation, self.todos, after=self._intro)
        await self.mount(self.retry, after=self.queued)

    def say_at_start(self, notice: NoticeText) -> None:
        """Show a notice beside the first screen; it goes with that."""
        from tui.ui.widgets.welcome_text import StartNotices  # noqa: PLC0415 - seldom needed

        if self._at_start is None:
            self._at_start = StartNotices(id="start-notices")
            self.mount(self._at_start, before=self._intro)
        self._at_start.notices += (notice,)

    def end_start(self) -> None:
        """Remove the notices of the first screen: something else begins."""
        if self._at_start is not None:
            self._at_start.remove()
            self._at_start = None

    def _begin(self, end: Sequence[Item] = ()) -> None:
        from tui.ui.widgets.conversation.view import ConversationView  # noqa: PLC0415

        self.conversation = ConversationView(id="conversation")
        self.conversation.extend(end)
        self.begun = True

    def say(self, text: str) -> None:
        """Show a line for a while, in the rule above the conversation: nothing moves."""
        if not self.rule.display:
            self.notice.say(text, "success")
            return
        self.rule.right = said = Content.styled(text, "$text-success")
        self.set_timer(SAID_S, lambda: self._unsay(said))

    def _unsay(self, said: Content) -> None:
        if self.rule.right is said:
            self.rule.right = Content("")

    def on_descendant_focus(self) -> None:
        self.rule.lit = True

    def on_descendant_blur(self) -> None:
        self.rule.lit = self.has_focus_within

    @property
    def finding(self) -> bool:
        """True while the find bar is open."""
        return self._find is not None and self._find.opened

    async def find(self, text: str = "") -> None:
        """Open the find bar, with a text to search for."""
        from tui.ui.widgets.search_bars import FindBar  # noqa: PLC0415 - only where it is asked for

        if self._find is None:
            self._find = FindBar(id="find")
            await self.mount(self._find, before=self.meter)
        self._find.open(text)

    def end_find(self) -> None:
        """Close the find bar, if it is open; it then posts `SearchBar.Closed`."""
        if self._find and self._find.opened:
            self._find.action_close()

    def on_find_bar_wanted(self, event: FindBar.Wanted) -> None:
        event.stop()
        self.conversation.find(event.text, back=event.back, from_end=event.from_end)
        if self._find and not event.text:
            self._find.say()

    def on_conversation_view_matches(self, event: ConversationView.Matches) -> None:
        event.stop()
        if self._find:
            self._find.say(event.at, event.total, more=event.more, last=event.last)

    def on_search_bar_closed(self) -> None:
        self.conversation.end_find()
