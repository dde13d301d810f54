"""/timeline (F9): the session in time, followed while a turn runs."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.style import Style
from textual.widgets import Static

from tui.app.reports.timeline import (
    AROUND,
    clock_words,
    moment_lines,
    moment_title,
    overview,
    prompt_steps,
)
from tui.app.reports.timeline_picture import CACHED, PARTS, Window, aligned, legend, signs, unread
from tui.context.timeline import SessionTimeline, next_around, outline
from tui.core.formatting import duration, money, plural, tokens
from tui.core.gc_pause import gc_pause
from tui.core.text_cleaning import one_line
from tui.session.records import Record
from tui.ui.screens.table_screen import SHORT, whole_facts
from tui.ui.screens.timeline_moment import MomentOpener
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.widgets.keys import TIMELINE_KEYS, Keys, bindings, in_rows
from tui.ui.widgets.notices import NoticeLine
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.timeline_view import TimelineView

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.core.config import Price

FOLLOW_S: Final = 1.0
"""Seconds between updates while a turn runs behind it."""
TALL: Final = 32
_SLICE: Final = 200
"""Records that are added at a time: about 4 ms."""
_FIRST: Final = 1000
"""Records after which the first picture is drawn."""
_RULE: Final = 12
"""Cells of the rule around its words."""
_PICTURES: Final = 8
"""After so large a part of them, at the latest, there is a new one."""
_SORTS: Final = {"prompt": "prompt", "context": "cache restart", "trouble": "trouble"}
_KEYS: Final[Keys] = (
    ("enter", "open"),
    ("← → ↑ ↓", "move"),
    ("s", "sums"),
    ("n", "prompt"),
    ("b", "break"),
    ("t", "checks"),
    ("e", "then"),
    ("+ -", "zoom"),
    ("c", "compare"),
    ("w", "files then"),
    ("x", "trouble"),
    ("esc", "back"),
)


class TimelineScreen(BaseScreen, Screen[None]):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """The picture, the moment under the cursor in words, and the keys. `timeline` is what is known
    from the last time it was open; `prompt` the number of the one where the cursor begins, "" for
    now."""

    DEFAULT_CSS = """
    TimelineScreen { background: $background; color: $foreground; }
    TimelineScreen #title {
        height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis;
    }
    TimelineScreen #legend { height: 1; padding: 0 1; text-wrap: nowrap; }
    TimelineScreen #moment { height: 4; padding: 0 1; }
    TimelineScreen.-tall #moment { height: 6; }
    TimelineScreen #keys { height: 1; padding: 0 1; }
    TimelineScreen.-short #legend { display: none; }
    TimelineScreen #other, TimelineScreen #other-rule { display: none; }
    TimelineScreen.-two #other, TimelineScreen.-two #other-rule { display: block; }
    TimelineScreen.-short #moment { height: 3; }
    TimelineScreen.-short.-sums #moment { height: 4; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(TIMELINE_KEYS),
        Binding("escape,q,f9", "dismiss", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "TimelineView"

    def __init__(
        self,
        agent: Agent,
        prices: Mapping[str, Price],
        opener: MomentOpener,
        timeline: SessionTimeline | None = None,
        prompt: str = "",
    ) -> None:
        super().__init__()
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (SHORT, "-high"), (TALL, "-tall")]
        self._agent, self._prices, self._opener = agent, prices, opener
        self.timeline = timeline or SessionTimeline(prices, agent.session.header.cwd)
        self._last, self._drawn, self._prompt = 0, 0, prompt
        self.notice = NoticeLine(id="notice")
        self._around = ""
        """Words for the move that the cursor makes now."""
        self._reading = ""
        """What the title says while the record is read."""
        self._sums = not prompt
        """The whole session is told in place of the moment: until the cursor is moved."""

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="legend", markup=False)
        yield TimelineView(id="picture")
        yield PaneRule(id="other-rule")
        yield TimelineView(id="other")
        yield PaneRule(id="moment-rule")
        yield Static(id="moment", markup=False)
        yield self.notice
        yield Static(id="keys", markup=False)

    @property
    def view(self) -> TimelineView:
        return self.query_one("#picture", TimelineView)

    @property
    def other(self) -> TimelineView:
        """The session that is compared with this one."""
        return self.query_one("#other", TimelineView)

    @property
    def _records(self) -> Sequence[Record]:
        return self._agent.session.records

    def on_mount(self) -> None:
        self._read()
        self.set_interval(FOLLOW_S, self.follow)

    def on_resize(self) -> None:
        self._show_texts()

    # What is new

    def follow(self) -> None:
        """Draw what came since, and what runs."""
        if self._reading:
            return
        records, known = self._records, self.timeline
        if not 0 <= len(records) - known.count <= _SLICE:
            self._read()
            return
        count = known.count
        if not known.follow(records):
            self._read()
        elif known.count != count:
            self._draw()

    @work(group="read", exclusive=True)
    async def _read(self) -> None:
        """Fold what is not yet known, in slices between which keys are served, and draw what there
        is each time that it has doubled, the rest in outline."""
        self._reading, drawn = "Reading the record…", 0
        self._show_title()
        records, view = tuple(self._records), self.view
        requests = outline(records)
        try:
            with gc_pause():
                known = self.timeline
                if known.prices != self._prices or not known.follow(records[: known.count]):
                    cwd = self._agent.session.header.cwd
                    self.timeline = SessionTimeline(self._prices, cwd)
                while (count := self.timeline.count) < len(records):
                    self.timeline.extend(records[count : count + _SLICE])
                    more = min(drawn, len(records) // _PICTURES)
                    count = self.timeline.count
                    if len(records) > count >= max(_FIRST, drawn + more):
                        read = 100 * count // len(records)
                        self._reading = f"Reading the record… {read} %, the rest is an outline"
                        view.left = unread(self.timeline, requests, len(records))
                        self._draw(first=not drawn)
                        drawn = count
                    await asyncio.sleep(0)
        finally:
            self._reading, view.left = "", None
        self._draw(first=not drawn)
        if steps := prompt_steps(self.timeline, self._prompt):
            self.view.move_to(self.timeline.steps.index(steps[0]))
        self._prompt = ""

    def _draw(self, *, first: bool = False) -> None:
        view = self.view
        steps = self.timeline.steps
        at_end = first or view.cursor >= self._last
        self._last = max(0, len(steps) - 1)
        view.show(self.timeline, self._last if at_end else view.cursor)
        self._drawn = view.cursor
        self._show_texts()
        self._align()

    def _align(self) -> None:
        """Show the same stretch of the other session, counted from the first prompt of each."""
        if not self.has_class("-two"):
            return
        view, other = self.view, self.other
        view.extent, other.extent = aligned([view.timeline, other.timeline])
        view.draw()
        shift = other.extent.start - view.extent.start
        sight = view.sight
        other.window = Window(sight.start + shift, sight.end + shift)
        other.draw()
        self._move_other()

    def _move_other(self) -> None:
        """Put the cursor of the other session where this one's is."""
        view, other = self.view, self.other
        if view.extent is None or other.extent is None or not self.timeline.steps:
            return
        at = self.timeline.steps[view.cursor].at + other.extent.start - view.extent.start
        other.cursor = max(0, bisect_right(other.timeline.anchors, at) - 1)
        other.refresh()

    # What is said

    def _show_texts(self) -> None:
        self._show_title()
        width = self.size.width - 2
        pieces = legend(width, colors=self.view.shaded)
        text = Content.assemble(*((piece, self._style(role)) for piece, role in pieces))
        self.query_one("#legend", Static).update(text)
        self.query_one("#keys", Static).update(in_rows(_KEYS, width, rows=1))
        self._show_moment()

    def _style(self, role: str) -> Style:
        """The style of a role in the picture."""
        if role.removesuffix(CACHED) in PARTS:
            return Style(foreground=self.view.fill(role))
        return Style.parse(f"$text-{role}")

    def _show_title(self) -> None:
        known = self.timeline
        prompts = plural(len(known.marks["prompt"]), "prompt")
        facts = [prompts, f"{duration(known.worked)} of work"]
        if jumped := clock_words(known):
            facts.append(jumped)
        if known.spent.total or known.unpriced:
            facts.append(money(known.usd) if known.usd is not None else "cost not known")
        if lost := known.totals.lost()[0].values():
            times, usd = sum(one.times for one in lost), sum(one.usd for one in lost)
            facts.append(f"{plural(times, 'cache restart')}{f', {money(usd)}' if usd else ''}")
        if known.inputs.values:
            facts.append(f"{tokens(known.inputs.values[-1])} in the last request")
        if running := known.running():
            facts.append(f"now: {one_line(running[-1].label)}")
        said = self._reading or whole_facts(
            " · ".join(facts), self.size.width - len("timeline") - 4
        )
        title = Content.assemble(("timeline", "bold"), (f"  {said}", "$text-muted"))
        self.query_one("#title", Static).update(title)

    def _show_moment(self) -> None:
        known, view = self.timeline, self.view
        rule, text = self.query_one("#moment-rule", PaneRule), self.query_one("#moment", Static)
        if not known.steps:
            rule.title = rule.right = Content("")
            text.update("Nothing has happened yet.")
            return
        width = self.size.width - 2
        self.set_class(self._sums, "-sums")
        if self._sums:
            read = "what has been read so far" if self._reading else "the whole session"
            self._show_rule(read)
            text.update(Content("\n").join(_sums(known, width)))
            return
        place = min(view.cursor, len(known.steps) - 1)
        self._show_rule(moment_title(known, place))
        lines = [whole_facts(one_line(line), width) for line in moment_lines(known, place)]
        text.update(
            Content("\n").join([Content.styled(lines[0], "bold"), *map(Content, lines[1:])])
        )

    def _show_rule(self, title: str) -> None:
        """Show what is told below the picture, and beside it what the signs of the picture mean."""
        rule, short = self.query_one("#moment-rule", PaneRule), self.size.height < SHORT
        pieces = signs(0 if short else self.size.width - len(title) - _RULE)
        rule.title = Content.styled(title, "$text-muted")
        rule.right = Content.assemble(*((piece, self._style(role)) for piece, role in pieces))

    @on(TimelineView.StepChanged)
    def _moved(self, event: TimelineView.StepChanged) -> None:
        event.stop()
        if event.view is not self.view:
            return
        self.notice.clear()
        if self._around:
            self.notice.say(self._around)
            self._around = ""
        self._sums = self._sums and event.step == self._drawn
        self._show_moment()
        if self.has_class("-two"):
            if self.view.window is not None:
                self._align()
            else:
                self._move_other()

    # Keys

    def action_time(self, by: int) -> None:
        self.view.move(by)

    def action_step(self, by: int) -> None:
        self.view.move_to(self.view.cursor + by)

    def action_page(self, by: int) -> None:
        self.view.page(by)

    def action_edge(self, by: int) -> None:
        self.view.move_to(0 if by < 0 else len(self.timeline.steps) - 1)

    def action_zoom(self, by: int) -> None:
        self.view.zoom(by)
        self._align()

    def action_mark(self, sort: str, by: int) -> None:
        """Go to the next or the previous mark of a sort."""
        self._go(self.timeline.marks[sort].steps, by, f"No other {_SORTS[sort]}.")

    def action_turn(self, by: int) -> None:
        """Go to the next or the previous check that turned."""
        checks, steps = self.timeline.marks["check"].steps, self.timeline.steps
        turned = [place for place in checks if steps[place].turned]
        self._go(turned, by, "No other check turned." if checks else "No checks were run.")

    def _go(self, places: Sequence[int], by: int, nothing: str) -> None:
        """Go to the next of some places; from the last one, to the first."""
        at = self.view.cursor
        if (place := next_around(places, at, by)) is None:
            self.notice.say(nothing)
            return
        self._around = AROUND[by] if (place - at) * by < 0 else ""
        self.view.move_to(place)

    def action_sums(self) -> None:
        """Tell the whole session in a few lines, or the moment under the cursor again."""
        self._sums, self._drawn = not self._sums, self.view.cursor
        self._show_moment()

    @work(group="open", exclusive=True)
    async def action_open(self) -> None:
        """Open the moment under the cursor."""
        if self.timeline.steps:
            step = self.timeline.steps[self.view.cursor]
            self._say(await self._opener.open(self._agent, step))

    @work(group="open", exclusive=True)
    async def action_workspace(self) -> None:
        """Show what had changed in the workspace by the moment under the cursor."""
        if self.timeline.steps:
            step = self.timeline.steps[self.view.cursor]
            self._say(await self._opener.workspace(self._agent, step))

    @work(group="other", exclusive=True)
    async def action_compare(self) -> None:
        """Draw another session below this one, from its first prompt on; or no longer."""
        if self.has_class("-two"):
            self.remove_class("-two")
            self.view.extent = self.view.window = None
            return
        found = await self._opener.other(self._prices)
        if isinstance(found, str):
            self._say(found)
            return
        title, self.other.timeline = found
        self.other.can_focus = False
        self.query_one("#other-rule", PaneRule).title = Content.styled(title, "$text-muted")
        self.add_class("-two")
        self.call_after_refresh(self._align)

    def action_past(self) -> None:
        """Show the context at the request under the cursor, or at the last one before it."""
        before = bisect_right(self.timeline.requests.steps, self.view.cursor)
        if not before:
            self._say("Nothing had been sent by then.")
            return
        step = self.timeline.steps[self.timeline.requests.steps[before - 1]]
        self._opener.past(self._agent, step.record, self.timeline)

    def action_copy(self) -> None:
        if self.timeline.steps:
            lines = moment_lines(self.timeline, self.view.cursor)
            self.app.copy_to_clipboard("\n".join(lines))  # pyright: ignore[reportUnknownMemberType]
            self.notice.say("Copied the moment.", "success")

    def _say(self, problem: str) -> None:
        if problem:
            self.notice.say(problem)


def _sums(timeline: SessionTimeline, width: int) -> list[Content]:
    """The lines about the whole session, their heads below each other."""
    lines = overview(timeline)
    wide = max(len(head) for head, _ in lines) + 2
    return [
        Content.assemble(
            (f"{head:<{wide}}", "$text-muted"), whole_facts(one_line(text), width - wide)
        )
        for head, text in lines
    ]
