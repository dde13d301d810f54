"""e in F2: the context as the model saw it at any request, read-only, and what changed since."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from tui.app.reports.context_changes import (
    change_lines,
    change_summary,
    changes_between,
    request_diff,
)
from tui.app.reports.timeline import AROUND, moment_lines, moment_title, parts_change, parts_lines
from tui.context.masks import record_of
from tui.context.past_context import UNTOLD, ContextThen, estimated_at, seen_at
from tui.context.request_replay import RequestReplay
from tui.context.timeline import RequestInput, SessionTimeline, TimelineStep, next_around
from tui.context.token_ledger import Kind
from tui.core.formatting import money, plural, tokens
from tui.core.gc_pause import gc_pause
from tui.core.text_cleaning import one_line
from tui.session.records import Record
from tui.ui.screens import context_rows
from tui.ui.screens.context_item import texts_of
from tui.ui.screens.context_rows import LedgerRow, Order
from tui.ui.screens.sent_request import SentRequestScreen, sent_request
from tui.ui.screens.table_screen import TableScreen, whole_facts
from tui.ui.widgets.keys import PAST_KEYS, Keys, bindings
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.row_list import RowList
from tui.ui.widgets.timeline_view import TimelineView

if TYPE_CHECKING:
    from tui.agent.agent import Agent

_KEPT: Final = 8
"""Most requests whose items are kept."""
_KEYS: Final[Keys] = (
    ("← →", "request"),
    ("d", "what changed"),
    ("m", "mark to compare"),
    ("b", "break"),
    ("n", "prompt"),
    ("enter", "open"),
    ("tab", "request"),
    ("t k", "sort"),
    ("esc", "now"),
)
_SORTS: Final = {"prompt": "prompt", "context": "change of the context"}


class ContextPastScreen(TableScreen[None]):
    """The strip of the context over the session, and the items of the request under its cursor.

    `timeline` is what is known of that of the session. Dismissed where now is wanted.
    """

    DEFAULT_CSS = """
    ContextPastScreen #strip { height: 5; }
    ContextPastScreen.-short #strip { height: 3; }
    ContextPastScreen #moment { height: 2; padding: 0 1; text-wrap: nowrap; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(PAST_KEYS),
        Binding("escape,f2,q", "dismiss", "now", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#rows"

    def __init__(self, agent: Agent, timeline: SessionTimeline, record: str = "") -> None:
        """`record` is the id of the request to begin with, "" for the last one."""
        super().__init__()
        self._agent, self.timeline, self._record = agent, timeline, record
        self._records: Sequence[Record] = tuple(agent.session.records)
        self._replay: RequestReplay | None = None
        self._known: dict[int, ContextThen] = {}
        self._unfolded: frozenset[Kind] = frozenset()
        self._order: Order = "tokens"
        self._working = False
        self._marked: int | None = None
        self.place = 0
        """The request that is shown, by its place among those that were answered."""
        self.shown: Sequence[LedgerRow] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield TimelineView(id="strip")
        yield Static(id="moment", markup=False)
        yield PaneRule(id="items-rule")
        yield Static(id="columns", markup=False)
        yield RowList(id="rows")
        yield Static(id="empty", markup=False)
        yield from self.foot()

    def on_mount(self) -> None:
        strip = self.query_one(TimelineView)
        strip.can_focus = False
        self._say_title("Reading the record…")
        self.show_keys(_KEYS)
        self._read()

    def on_resize(self) -> None:
        self.show_keys(_KEYS)
        self._draw()

    @property
    def strip(self) -> TimelineView:
        return self.query_one(TimelineView)

    @work(group="read", exclusive=True)
    async def _read(self) -> None:
        self.timeline = await asyncio.to_thread(_folded, self.timeline, self._records)
        requests = self.timeline.requests.steps
        if not len(requests):
            self._say_title("")
            self.show_empty("Nothing was sent yet.")
            return
        ids = [self.timeline.steps[step].record for step in requests]
        self.place = ids.index(self._record) if self._record in ids else len(ids) - 1
        self.strip.show(self.timeline, requests[self.place])
        self._go(self.place)

    # Which request

    def _step(self, place: int) -> TimelineStep:
        return self.timeline.steps[self.timeline.requests.steps[place]]

    @property
    def _base(self) -> int:
        """The request with which this one is compared."""
        marked = self._marked
        return self.place - 1 if marked is None or marked == self.place else marked

    def _go(self, place: int) -> None:
        count = len(self.timeline.requests)
        if not count:
            return
        self.place = max(0, min(place, count - 1))
        self.strip.move_to(self.timeline.requests.steps[self.place])
        self._draw()
        if not self._working:
            self._rebuild()

    @work(group="rebuild")
    async def _rebuild(self) -> None:
        """Rebuild what is asked for, in a thread, until it is the one under the cursor."""
        self._working = True
        try:
            while missing := self._missing():
                found = await asyncio.to_thread(self._seen, missing)
                while len(self._known) + len(found) > _KEPT:
                    del self._known[next(iter(self._known))]
                self._known |= found
        finally:
            self._working = False
        self._draw()

    def _missing(self) -> list[int]:
        wanted = (place for place in sorted({self._base, self.place}) if place >= 0)
        return [place for place in wanted if place not in self._known]

    def _seen(self, places: Sequence[int]) -> dict[int, ContextThen]:
        """List the items of requests, by their places. Blocks."""
        replay = self._replay = self._replay or RequestReplay(self._records)
        found = dict[int, ContextThen]()
        for place in places:
            step = self._step(place)
            sent = step.sent
            counted = sent.tokens if sent and sent.counted else 0
            number = replay.number_of(step.record)
            if number is None:
                found[place] = estimated_at(replay, step.record, step.number, counted)
            else:
                found[place] = seen_at(replay, number, counted)
        return found

    # What is shown

    def _say_title(self, text: str) -> None:
        head = "context then"
        shown = whole_facts(text, self.size.width - len(head) - 5)
        title = Content.assemble((head, "bold $text-warning"), (f"   {shown}", "$text-muted"))
        self.put("title", title)

    def _draw(self) -> None:
        if not len(self.timeline.requests):
            return
        step, seen = self._step(self.place), self._known.get(self.place)
        count = len(self.timeline.requests)
        facts = [f"request {step.number} ({self.place + 1:,} of {count:,})", "read-only"]
        if step.sent is not None and step.sent.tokens:
            cached = f"{step.sent.cached / step.sent.tokens:.0%}".replace("%", " %")
            size = tokens(step.sent.tokens)
            known = f"{size}, {cached} cached"
            facts.insert(1, known if step.sent.counted else f"about {size}, not counted")
        if step.usd:
            facts.insert(-1, money(step.usd))
        self._say_title(" · ".join(facts))
        width = self.size.width - 2
        place = self.timeline.requests.steps[self.place]
        clock = moment_title(self.timeline, place).partition(" · ")[0]
        lines = [f"{clock} · {moment_lines(self.timeline, place)[-1]}", self._changed(seen)]
        self.put("moment", Content("\n".join(whole_facts(line, width) for line in lines)))
        self._show_rows(seen, width)

    def _changed(self, seen: ContextThen | None) -> str:
        if self._base < 0:
            return "the first request"
        before = self._known.get(self._base)
        if seen is None or before is None:
            return "Rebuilding it from the record…"
        if seen.problem or before.problem:
            more = parts_change(self._sent(self._base), self._sent(self.place))
            return f"Compared with request {self._step(self._base).number}, about {more}"
        return change_summary(before, seen, self._between())

    def _sent(self, place: int) -> RequestInput | None:
        return self._step(place).sent

    def _between(self) -> list[TimelineStep]:
        first, second = sorted((self._base, self.place))
        steps = self.timeline.requests.steps
        return changes_between(self.timeline, steps[first], steps[second])

    def _show_rows(self, seen: ContextThen | None, width: int) -> None:
        items = seen.items if seen else ()
        rows = [LedgerRow(item, None) for item in items]
        self.shown = context_rows.arranged(rows, "", self._order, self._unfolded)
        window = self._agent.models.window
        shown = self.shown
        self.rows.show(
            len(shown),
            lambda at, width: context_rows.row_parts(shown[at], width, window),
            cursor=min(self.rows.cursor, max(0, len(shown) - 1)),
        )
        self.put("columns", Content(context_rows.heading(max(20, width - 1))))
        problem = seen.problem if seen else ""
        self.show_empty(self._without_items(problem) if problem else "")
        rule = self.query_one("#items-rule", PaneRule)
        told = "what its messages tell, about: the request isn't in the record"
        title = told if seen and seen.estimated else "what the model saw then"
        rule.title = Content.styled(title, "$text-warning")
        marked = "" if self._marked is None else f"compared with {self._step(self._marked).number}"
        order = context_rows.ORDERS[self._order][0]
        count = "" if problem else f"{plural(len(items), 'item')}, {order}"
        rule.right = Content.styled(marked or count, "$text-muted")

    def _without_items(self, problem: str) -> str:
        """Say what is known of a request that can't be rebuilt, such as one of another program."""
        said = f"Its items can't be listed: {problem}."
        sent = self._sent(self.place)
        if sent is None or not sent.tokens:
            return said
        return "\n".join(["By kind, as estimated:", "", *parts_lines(sent), "", said])

    # Keys

    @on(TimelineView.StepChanged)
    def _moved(self, event: TimelineView.StepChanged) -> None:
        """Take the request at or before a moment that was clicked."""
        event.stop()
        place = bisect_right(self.timeline.requests.steps, event.step) - 1
        if place != self.place:
            self._go(max(0, place))

    def action_request(self, by: int) -> None:
        self.notice.clear()
        if by > 0 and self.place >= len(self.timeline.requests) - 1:
            self.notice.say("This was the last request. Esc returns to the next one, now.")
            return
        self._go(self.place + by)

    def action_first(self) -> None:
        self._go(0)

    def action_sort(self, order: Order) -> None:
        """Sort in an order; the same order again restores that of the request."""
        self._order = "request" if self._order == order else order
        self._draw()
        self.rows.move_to(0)

    def action_mark(self, sort: str, by: int) -> None:
        """Go to the first request after the next mark of a sort, or after the previous one."""
        steps, marks = self.timeline.requests.steps, self.timeline.marks[sort].steps
        after = {bisect_right(steps, mark - 1) for mark in marks} - {len(steps)}
        at = self.place
        if (place := next_around(sorted(after), at, by)) is None:
            self.notice.say(f"No other {_SORTS[sort]}.")
            return
        self._go(place)
        if (place - at) * by < 0:
            self.notice.say(AROUND[by])

    async def action_set_mark(self) -> None:
        """Compare with the request under the cursor from now on; on it, with the one before."""
        if not len(self.timeline.requests):
            return
        self._marked = None if self._marked == self.place else self.place
        if self._marked is None:
            self.notice.say("Compared with the request before again.")
        else:
            self.notice.say(f"Compared with request {self._step(self.place).number}: now move.")
        self._go(self.place)

    @work(group="open", exclusive=True)
    async def action_difference(self) -> None:
        """Show what changed since the request before, or the marked one, in words and as a diff."""
        base, place = sorted((self._base, self.place))
        if base < 0:
            self.notice.say("This is the first request: there is nothing before it.")
            return
        before, after = self._known.get(base), self._known.get(place)
        if self._working or before is None or after is None:
            self.notice.say("It is still being rebuilt.")
            return
        if problem := before.problem or after.problem:
            self.notice.say(f"It can't be compared: {problem}.")
            return
        words = change_lines(before, after, self._between())
        if before.estimated or after.estimated:
            diff = ["There is no diff: a request isn't in the record.", "", *UNTOLD.split("\n")]
        else:
            diff = await asyncio.to_thread(
                request_diff, RequestReplay(self._records), before.number, after.number
            )
        title = f"What changed from request {before.number} to {after.number}"
        self._open(title, "\n".join([*words, "", *diff]))

    @work(group="open", exclusive=True)
    async def action_sent(self) -> None:
        """Show the request under the cursor exactly as it was sent."""
        if not len(self.timeline.requests):
            return
        sent = await asyncio.to_thread(sent_request, self._step(self.place).record, self._records)
        if sent is None:
            self.notice.say("The record doesn't say how it was sent.")
        else:
            self._open(*sent)

    def row_chosen(self, index: int) -> None:
        """Unfold or fold a sum; open an item as the model saw it."""
        row, seen = self.shown[index], self._known.get(self.place)
        if seen is None:
            return
        if row.parts:
            kind: Kind = row.item.kind
            self._unfolded = self._unfolded ^ frozenset[Kind]({kind})
            self._draw()
            return
        id_, _ = record_of(row.item.id)
        record = next((one for one in self._records if one.id == id_), None)
        texts = texts_of(record, seen.stands.get(id_), seen.fixed.get(row.item.id, ""))
        state = context_rows.state_name(row.item)
        facts = [row.item.kind, one_line(row.item.label[:200]), *([state] if state else [])]
        self._open(f"{' · '.join(facts)}, in request {seen.number}", texts.sent or "(not sent)")

    def _open(self, title: str, text: str) -> None:
        self.app.push_screen(SentRequestScreen(title, text, wrap=True))  # pyright: ignore[reportUnknownMemberType]


def _folded(known: SessionTimeline, records: Sequence[Record]) -> SessionTimeline:
    """Fold records: what is new of them into what is known, or all of them. Blocks."""
    with gc_pause():
        if known.follow(records):
            return known
        made = SessionTimeline(known.prices, known.cwd)
        made.extend(records)
        return made
