"""F2: what the next request holds, item by item; what is masked or pinned here can be undone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from tui.agent.events import Event
from tui.context import bulk, request
from tui.context.changed import checker
from tui.context.ledger import PARTS, Item, Ledger
from tui.context.overlay import Overlay, overlays_of, pins_of
from tui.context.view import View
from tui.errors import HoldfastError
from tui.provider.base import Request
from tui.screens.context_bulk import BulkMenu
from tui.screens.context_item import ContextItemScreen, Texts, texts_of
from tui.session.records import Record
from tui.widgets.context_meter import KINDS, MARK, MeterState, bar
from tui.widgets.copy_file import CopyFile
from tui.widgets.copy_pane import CopyPane
from tui.widgets.figures import plural, tokens
from tui.widgets.keys import CONTEXT_KEYS, bindings
from tui.widgets.ledger_rows import ORDERS, Order, Row, filtered, heading, ordered, row_parts, share
from tui.widgets.notice import NoticeLine
from tui.widgets.plain import one_line
from tui.widgets.rows import Rows
from tui.widgets.rule import PaneRule

FOLLOW_S = 1.0
"""How often the table is brought up to date while a turn runs behind it."""

_HINTS = (
    ("enter", "open"),
    ("m", "mask"),
    ("p", "pin"),
    ("u", "undo"),
    ("b", "many"),
    ("/", "filter"),
    ("t a k", "sort"),
    ("y", "copy"),
    ("tab", "request"),
    ("esc", "back"),
)
_EMPTY = """\
Nothing has been said yet, so there is nothing to look at.
Every message and every tool result of the next request will stand here, with what it weighs.
A result that is not needed any more can be masked: the model then sees one line in its place.
What is masked is not lost. The record keeps it, and u brings it back."""


class Session(Protocol):
    @property
    def records(self) -> Sequence[Record]: ...


class Inspected(Protocol):
    """What the inspector asks of an agent; `tui.agent.agent.Agent` says what each does."""

    @property
    def session(self) -> Session: ...
    @property
    def window(self) -> int: ...
    @property
    def ledger(self) -> Ledger: ...
    def view(self) -> View: ...
    def fixed_texts(self) -> Mapping[str, str]: ...
    def next_request(self, *, prompt_follows: bool = False) -> Request: ...
    async def overlay(self, changes: Sequence[Overlay]) -> Sequence[Event]: ...
    async def pin(self, pins: Mapping[str, bool]) -> Sequence[Event]: ...


class ContextScreen(Screen[None]):
    """`tell` gets the events of what is changed here; `root` is the workspace."""

    CSS_PATH = "context.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(CONTEXT_KEYS),
        Binding("escape,f2", "close", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#rows"

    def __init__(
        self, agent: Inspected, tell: Callable[[Event], None], root: Path = Path()
    ) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
        self._agent = agent
        self._tell = tell
        self._root = root
        self._all: list[Row] = []
        self._shown: list[Row] = []
        self._order: Order = "request"
        self._seen = -1
        self._undo: list[tuple[list[Overlay], dict[str, bool]]] = []
        self.notice = NoticeLine(id="notice")

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="totals", markup=False)
        with Horizontal(id="filter-row"):
            yield Static("/", id="caret", markup=False)
            words = Input(placeholder="kind, text, state or pinned", id="filter")
            words.cursor_blink = False
            yield words
        yield PaneRule("items", id="items-rule")
        yield Static(id="columns", markup=False)
        yield Rows(id="rows")
        yield CopyPane(id="request")
        yield Static(_EMPTY, id="empty", markup=False)
        yield self.notice
        yield PaneRule()
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self._agent.view()  # the ledger takes from it how each record stands now
        self._load()
        self.set_interval(FOLLOW_S, self._follow)

    def on_resize(self) -> None:
        self._draw()

    @property
    def rows(self) -> Rows:
        return self.query_one("#rows", Rows)

    @property
    def shown(self) -> Sequence[Row]:
        """The rows as they are sorted and filtered now."""
        return self._shown

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor."""
        return self._shown[self.rows.cursor] if self._shown else None

    # What is shown

    def _follow(self) -> None:
        if len(self._agent.session.records) != self._seen:
            self._load()

    def _load(self) -> None:
        records = self._agent.session.records
        self._seen = len(records)
        turns = bulk.ages(records)
        self._all = [Row(item, turns.get(item.id)) for item in self._agent.ledger.items()]
        self._draw()

    def _draw(self) -> None:
        kept = self.chosen
        words = self.query_one("#filter", Input).value
        self._shown = ordered(filtered(self._all, words), self._order)
        window, shown = self._agent.window, self._shown
        at = next((n for n, row in enumerate(shown) if kept and row.item.id == kept.item.id), None)
        cursor = self.rows.cursor if at is None else at
        self.rows.show(
            len(shown), lambda index, width: row_parts(shown[index], width, window), cursor=cursor
        )
        said = any(row.age is not None for row in self._all)
        self.set_class(not shown or (not said and not words), "-empty")
        if not shown and words:
            text = f"Nothing matches “{one_line(words)}”.\nEsc clears the filter."
            self.query_one("#empty", Static).update(Content(text))
        else:
            self.query_one("#empty", Static).update(Content(_EMPTY))
        self.query_one("#keys", Static).update(_keys(self.size.width - 2))
        self.query_one("#columns", Static).update(Content(heading(max(20, self.size.width - 2))))
        self.query_one("#items-rule", PaneRule).title = _tabs(request=self.has_class("-request"))
        right = "" if self.has_class("-request") else ORDERS[self._order]
        self.query_one("#items-rule", PaneRule).right = Content.styled(right, "$text-muted")
        self._head()

    def _head(self) -> None:
        items = [row.item for row in self._all]
        count, window = self._agent.ledger.tokens, self._agent.window
        states = [
            f"{n:,} {state}"
            for state in ("cut", "masked", "pruned", "summarised", "repaired")
            if (n := sum(item.state == state for item in items))
        ]
        pinned = sum(item.pinned for item in items)
        facts = [plural(len(items), "item"), *states, *([f"{pinned:,} pinned"] if pinned else [])]
        full = count / window if window else 0.0
        look = "$text-error" if full > 0.95 else "$text-warning" if full > MARK else "$foreground"
        title = Content.assemble(
            ("context", "bold $text-primary"),
            (f"   {tokens(count)}", f"bold {look}"),
            (f" / {tokens(window)}  {full:.0%}".replace("%", " %"), look),
            (f"   {' · '.join(facts)}", "$text-muted"),
        )
        self.query_one("#title", Static).update(title)
        parts: dict[str, int] = {}
        for item in items:
            part = PARTS[item.kind]
            parts[part] = parts.get(part, 0) + item.tokens
        state = MeterState(count, 0, count, window, parts)
        legend = Content("  ").join(
            [
                Content.assemble((glyph, style), (f" {kind} {tokens(parts[kind])}", "$text-muted"))
                for kind, (glyph, style) in KINDS.items()
                if parts.get(kind)
            ]
        )
        width = max(10, self.size.width - 2)
        lines = [bar(state, width), legend.truncate(width, ellipsis=True)]
        self.query_one("#totals", Static).update(Content("\n").join(lines))

    # Looking closer

    def _texts(self, item: Item) -> Texts:
        view, records = self._agent.view(), self._agent.session.records
        record = next((record for record in records if record.id == item.id), None)
        fixed = "" if record else self._agent.fixed_texts().get(item.id, "")
        return texts_of(record, view.stands.get(item.id), fixed)

    @on(Rows.Chosen)
    def _open(self, event: Rows.Chosen) -> None:
        item = self._shown[event.index].item
        screen = ContextItemScreen(item, self._texts(item), self._agent.window)
        self.app.push_screen(screen, self._after_item)  # pyright: ignore[reportUnknownMemberType]

    def _after_item(self, action: str | None) -> None:
        if action == "mask":
            self.action_mask()
        elif action == "pin":
            self.action_pin()

    def action_copy(self) -> None:
        """Copy the item as the model sees it, or the exact request."""
        if self.has_class("-request"):
            sent = request.to_json(self._agent.next_request(prompt_follows=True))
            text = json.dumps(sent, ensure_ascii=True, indent=2)
        elif row := self.chosen:
            text = self._texts(row.item).sent
        else:
            return
        self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]
        self.notice.say(f"Copied: {plural(len(text), 'character')}.", "success")

    async def action_other_tab(self) -> None:
        """Between the items and the request."""
        on = not self.has_class("-request")
        self.set_class(on, "-request")
        self.notice.clear()
        self._draw()
        pane = self.query_one("#request", CopyPane)
        if on:
            sent = self._agent.next_request(prompt_follows=True)
            text = await asyncio.to_thread(request.printed, sent)
            pane.show(CopyFile(text.encode("utf-8", "replace")))
            pane.view.focus()
        else:
            self.rows.focus()

    def action_sort(self, order: Order) -> None:
        """In an order; the same again gives the order of the request."""
        self._order = "request" if self._order == order else order
        self._draw()
        self.rows.move_to(0)

    def action_filter(self) -> None:
        if not self.has_class("-request"):
            self.add_class("-filter")
            self.query_one("#filter", Input).focus()

    @on(Input.Changed, "#filter")
    def _filter_changed(self) -> None:
        self._draw()

    @on(Input.Submitted, "#filter")
    def _filter_set(self) -> None:
        self.rows.focus()

    async def action_close(self) -> None:
        """Esc: the filter, the request, then the screen."""
        words = self.query_one("#filter", Input)
        if words.value or words.has_focus:
            words.value = ""
            self.remove_class("-filter")
            self.rows.focus()
        elif self.has_class("-request"):
            await self.action_other_tab()
        else:
            self.dismiss(None)

    # Changing

    def action_mask(self) -> None:
        """Mask the item under the cursor, or unmask it."""
        if row := self._speaking():
            view = "full" if row.item.state == "masked" else "masked"
            self.change([Overlay(row.item.id, view)], {})

    def action_pin(self) -> None:
        """Pin the item under the cursor, or let it go."""
        if row := self._speaking():
            self.change([], {row.item.id: not row.item.pinned})

    def _speaking(self) -> Row | None:
        row = self.chosen
        if self.has_class("-request") or row is None:
            return None
        if row.age is None:
            self.notice.say("Every request carries this: it can be neither masked nor pinned.")
            return None
        return row

    def action_undo(self) -> None:
        """Take back the last change that was made on this screen."""
        if self._undo:
            overlays, pins = self._undo.pop()
            self.change(overlays, pins, undo=True)
        else:
            self.notice.say("Nothing was changed here that could be undone.")

    @work(exclusive=True, group="bulk")
    async def action_many(self) -> None:
        """Mask many results at once, with the effect shown first."""
        records = list(self._agent.session.records)
        stands, weigh = self._agent.view().stands, self._agent.ledger.would
        found = bulk.results(records, stands=stands, weigh=weigh)
        stale = await asyncio.to_thread(bulk.outdated, found, checker(self._root))
        menu = BulkMenu(found, stale, self._agent.window)
        plan = await self.app.push_screen_wait(menu)  # pyright: ignore[reportUnknownMemberType]
        if plan is not None and plan.targets:
            self.change(plan.overlays(), {})

    @work(group="change")
    async def change(
        self, overlays: Sequence[Overlay], pins: Mapping[str, bool], *, undo: bool = False
    ) -> None:
        """Change how records stand, and say what that came to."""
        records = self._agent.session.records
        masks, pinned = overlays_of(records), pins_of(records)
        before = self._agent.ledger.tokens
        back = [masks.get(o.target, Overlay(o.target, "full", reason="undone")) for o in overlays]
        try:
            for event in await self._agent.overlay(overlays) if overlays else ():
                self._tell(event)
            for event in await self._agent.pin(pins) if pins else ():
                self._tell(event)
        except HoldfastError as error:
            self.notice.say(error.message, "error", hint=error.hint)
            return
        if not undo:
            self._undo.append((back, {target: target in pinned for target in pins}))
        self._load()
        self._say(overlays, pins, before - self._agent.ledger.tokens, undo=undo)

    def _say(
        self, overlays: Sequence[Overlay], pins: Mapping[str, bool], saved: int, *, undo: bool
    ) -> None:
        window = self._agent.window
        if overlays:
            masked = sum(overlay.view == "masked" for overlay in overlays)
            many = plural(len(overlays), "item")
            what = f"{many} masked" if masked else f"{many} as recorded again"
            effect = f"saves ~{tokens(saved)} tokens ({share(saved, window)})"
            if saved < 0:
                effect = f"costs ~{tokens(-saved)} tokens ({share(-saved, window)})"
            text = f"{what}: {effect}, from the next request on."
        else:
            what = "pinned" if any(pins.values()) else "not pinned any more"
            text = f"{plural(len(pins), 'item')} {what}."
        self.notice.say(
            f"Undone: {text}" if undo else text, "success", hint="" if undo else "u undoes it."
        )


def _tabs(*, request: bool) -> Content:
    on, off = "bold $text-primary", "$text-muted"
    return Content.assemble(
        ("items", off if request else on), ("  ", ""), ("request", on if request else off)
    )


def _keys(width: int) -> Content:
    """The keys, on two rows where one is too short."""
    hints = [
        Content.assemble((key, "$text-accent"), (f" {text}", "$text-muted")) for key, text in _HINTS
    ]
    space = Content("  ")
    whole = space.join(hints)
    if whole.cell_length <= width:
        return whole
    half = len(hints) - 4
    return Content("\n").join([space.join(hints[:half]), space.join(hints[half:])])
