"""The session under the desk's cursor, more closely: its question whole, or how its conversation
ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from tui.app.door.lines import AskedLine
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.text_cleaning import one_line, visible
from tui.desk.host import DeskRow
from tui.permissions.asked import AskedCall, AskedPlan, AskedQuestions
from tui.tools.registry import title
from tui.ui.desk.desk_rows import GROUPS, RUNNING, does_words, group_of, key_of, preview_title
from tui.ui.widgets.conversation.items import Item, ToolItem
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.keys import code_styled
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.record_items import end_of

REST_S: Final = 0.06
"""Seconds that the cursor has to rest before a session is shown."""
AGAIN_S: Final = 1.0
"""Seconds before the end of a session that works is read again."""
_SHOWN_CHARS: Final = 20_000

FileState: TypeAlias = tuple[str, int, int]
"""A path, its time of change in nanoseconds, its size."""


class DeskPreview(Vertical):
    """Shows the session given to `follow`, once that has not changed for a moment."""

    DEFAULT_CSS = """
    DeskPreview #asked {
        height: auto; max-height: 60%; padding: 0 1; scrollbar-size-vertical: 1; display: none;
    }
    DeskPreview #asked-text { height: auto; color: $foreground; }
    DeskPreview.-asked #asked { display: block; }
    DeskScreen.-tall #asked { margin: 0 0 1 0; }
    DeskPreview.-alone #asked { max-height: 100%; }
    DeskPreview.-alone #preview { display: none; }
    """

    def __init__(self) -> None:
        super().__init__(id="preview-side")
        self._row: DeskRow | None = None
        self._shown: FileState | None = None
        self._soon: Timer | None = None

    def compose(self) -> ComposeResult:
        yield PaneRule(id="preview-rule")
        with VerticalScroll(id="asked", can_focus=False):
            yield Static(id="asked-text", markup=False)
        view = ConversationView(id="preview")
        view.can_focus = False
        yield view

    def follow(self, row: DeskRow | None) -> None:
        """Show this session soon, and again when it has changed."""
        before, self._row = self._row, row
        if row is before:
            return
        same = row is not None and before is not None and key_of(row) == key_of(before)
        same = same and row is not None and before is not None and row.questions == before.questions
        if same and self._soon is not None:
            return
        if self._soon is not None:
            self._soon.stop()
        if not same:
            self._shown = None
        self._soon = self.set_timer(AGAIN_S if same else REST_S, self._due)

    def _due(self) -> None:
        self._soon = None
        self._show(self._row)

    @work(exclusive=True, group="preview")
    async def _show(self, row: DeskRow | None) -> None:
        if not self.display:
            return
        self.query_one(PaneRule).title = preview_title(row) if row is not None else Content("")
        asked = [_questions(row)] if row is not None and row.questions else []
        if row is None or row.host or not row.path:
            self._say([*asked, *([_state_words(row)] if row is not None and not asked else [])])
            return
        try:
            state = await asyncio.to_thread(_state_of, Path(row.path))
            if state != self._shown:
                items = await asyncio.to_thread(end_of, Path(row.path))
                self._end(_live(items, row) if group_of(row) in RUNNING else items)
            self._shown = state
            self._say(asked, alone=False)
        except (HoldfastError, OSError) as error:
            problem = Content.styled(one_line(str(error)), "$text-muted")
            self._say([*(asked or [_state_words(row)]), problem])

    def _end(self, items: Sequence[Item]) -> None:
        """Show how a conversation ends."""
        view = self.query_one(ConversationView)
        view.clear()
        view.extend(items)
        view.action_edge(1)

    def _say(self, parts: Sequence[Content], *, alone: bool = True) -> None:
        """Show texts over the end of the conversation, or `alone`."""
        if alone:
            self._shown = None
        text, shown = Content("\n\n").join(parts), self.query_one("#asked-text", Static)
        if shown.content != text:
            shown.update(text)
            self.query_one("#asked").scroll_home(animate=False)
        self.set_class(bool(parts), "-asked")
        self.set_class(alone, "-alone")

    def on_conversation_view_item_selected(self, event: ConversationView.ItemSelected) -> None:
        event.stop()  # a preview is only for looking


def _live(items: Sequence[Item], row: DeskRow) -> Sequence[Item]:
    """Return items of a session in which something runs: a call without a result runs, or the first
    of them waits for the person."""
    asks = bool(row.questions)
    for item in items:
        if isinstance(item, ToolItem) and item.state == "interrupted":
            item.state, item.summary = "waiting" if asks else "running", ""
            asks = False
    return items


def _state_of(path: Path) -> FileState:
    status = path.stat()
    return str(path), status.st_mtime_ns, status.st_size


def _questions(row: DeskRow) -> Content:
    """Return the first question of a session in full, and how many there are after it."""
    first, *others = row.questions
    more = f"\n… and {plural(len(others), 'more question')} after it" if others else ""
    return Content.assemble(asked_text(first), (more, "$text-muted"))


def _state_words(row: DeskRow) -> Content:
    """Return what is known of a session whose record can't be read here."""
    state = Content.assemble((GROUPS[group_of(row)], "bold"), f"  {does_words(row)}")
    return Content("\n").join([state, Content.styled("Press Enter to open it.", "$text-muted")])


def asked_text(line: AskedLine) -> Content:
    """Return a question in full, with every character that could hide or disguise itself spelt
    out."""
    match line.asked:
        case AskedCall(call, decision):
            risky = decision.risk == "high-risk"
            whole = call.preview in {"", call.subject}
            name = title(call.tool, call.subject)
            head = Content.assemble(
                (_safe(f"{call.agent}: ") if call.agent else "", "$text-secondary"),
                (_safe(name), "bold"),
                (" · high-risk" if risky else "", "$text-error"),
            )
            body = Content("" if whole else _safe(call.preview))
            why = code_styled(_safe(decision.reason), "$text-secondary")
            return Content("\n").join([part for part in (head, body, why) if part.plain])
        case AskedQuestions(questions, agent):
            lines = [Content.styled(_safe(agent), "$text-secondary")] if agent else []
            for question in questions:
                lines.append(Content.styled(_safe(question.text), "bold"))
                for number, choice in enumerate(question.choices, 1):
                    about = f"  {_safe(choice.description)}" if choice.description else ""
                    lines.append(
                        Content.assemble(
                            (f"  {number} ", "$text-accent"),
                            _safe(choice.label),
                            (about, "$text-muted"),
                        )
                    )
            return Content("\n").join(lines)
        case AskedPlan(named, plan):
            head = Content.styled(_safe(named), "bold")
            return Content("\n").join([head, Content(_safe(plan))])


def _safe(text: str) -> str:
    return visible(text[:_SHOWN_CHARS])
