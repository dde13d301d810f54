"""The base of all dialogs, so that all work alike.

- A dialog is a box (`#box`) with a round border in the middle of the dimmed screen. Only those that
  need the conversation in view are at the bottom: a question of the agent, the debug view, and the
  theme picker, which dims nothing.
- The title is in the upper border. A thing is named in lower case ("model", "edit TASKS.md"); a
  question or a statement is a sentence ("Trust this folder?").
- The keys are in the lower border, as at the foot of every screen: the key, then what it does in a
  word or two, Esc last. Esc says "close" if there was only something to look at, "back" if
  something would have been done. If there is too little room, Esc is the last to go.
- The color of the border shows what is at stake: primary to look or to choose, `-warning` for a
  question of consequence, `-danger` for what failed or cannot be undone.
- Answers are `Choice`s with their keys, one below the other in `#answers`. At first the focus is on
  what the person asked for, which comes first; if a wrong answer costs something, on the cautious
  one, the last. Esc answers nothing. Those of an approval are in one row.
- If a key may not have been meant as an answer, the foot says so (`answer_guard`).
- There are three widths: a question, a list, a table (`-question`, none, `-table`). A dialog is as
  high as its content; what does not fit scrolls, and what is cut ends with an ellipsis.
- Below 24 rows there are no empty rows at the edges. The answers are always visible: the question
  scrolls above them.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Protocol, TypeVar

from textual import events, on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from tui.core.dataclass import dataclass
from tui.core.formatting import plural
from tui.core.text_cleaning import one_line
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.widgets.character_input import CharacterInput
from tui.ui.widgets.keys import SCREEN_KEYS, bindings, fitting, in_rows

T = TypeVar("T")
BoxT = TypeVar("BoxT", bound=Widget)
Key = tuple[str, str]

_TALL, _TINY = 24, 16
_NARROW = 50
"""With fewer columns, the share beside a box is one, which would look like a part of it."""
_GAP = "   "
SCROLL = ("↑ ↓", "scroll")
PAGES = ("pgup pgdn", "scroll")
"""Hints that are shown only if something can be scrolled; while something is below, the second
shows how much."""


class TextField(CharacterInput):
    """A field of one row without a border, on the background of its parent."""

    DEFAULT_CSS = """
    TextField { width: 1fr; height: 1; border: none; padding: 0; background: transparent; }
    TextField:focus { border: none; background-tint: $background 0%; }
    """

    cursor_blink = reactive(False, init=False)


class AskedAbout(VerticalScroll, can_focus=False):
    """A part of a dialog that may be longer than its place. The foot says how much is below."""

    class InSight(Message):
        """Posted when it is scrolled, or shows more or less."""

    def on_resize(self) -> None:
        self.post_message(self.InSight())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.InSight())


class LeaveQuestion(Protocol):
    """Leaves a question for later."""

    def __call__(self) -> object: ...


@dataclass(frozen=True, slots=True)
class LeaveKey:
    """A key that leaves a question unanswered, and what then is done."""

    key: str
    leave: LeaveQuestion


class Beneath(Protocol):
    """The screen below a dialog with a question."""

    def leave_room(self, top: int | None) -> None:
        """End above the row at which a question begins; None once it is answered."""


class Dialog(BaseScreen, ModalScreen[T]):
    """A box over the screen. `compose` yields one that went through `framed`."""

    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 55%; }
    Dialog #box {
        width: 92; max-width: 98%; height: auto; max-height: 96%;
        background: $surface; border: round $primary; padding: 1 2;
        border-title-color: $text-primary; border-title-style: bold;
        border-subtitle-color: $text-muted; scrollbar-size-vertical: 1; overflow-y: auto;
    }
    Dialog.-narrow #box { max-width: 100%; }
    Dialog .text { height: auto; color: $foreground; }
    Dialog #details {
        height: auto; max-height: 30vh; margin: 1 0 0 0; padding: 0 1; background: $background;
        scrollbar-size-vertical: 1;
    }
    Dialog #answers { height: auto; margin: 1 0 0 0; }
    Dialog #answers Choice { width: 1fr; margin: 0; background: $surface; }
    Dialog #answers Choice:focus { background: $primary; }
    Dialog #asker { height: 1; text-overflow: ellipsis; text-wrap: nowrap; }
    Dialog.-question #box { width: 76; }
    Dialog.-table #box { width: 112; }
    Dialog.-warning #box { border: round $warning; border-title-color: $text-warning; }
    Dialog.-danger #box { border: round $error; border-title-color: $text-error; }
    Dialog.-short #box { padding: 0 2; max-height: 100%; }
    Dialog.-tiny #answers { margin: 0; }
    Dialog.-tiny #details { max-height: 1000; }
    Dialog RowList { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(SCREEN_KEYS),
        Binding("pagedown", "scroll_text(1)", show=False),
        Binding("pageup", "scroll_text(-1)", show=False),
    ]

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (_TALL, "-tall")]
        self._keys: tuple[Key, ...] = ()
        self._note = ""
        self.leave_key: LeaveKey | None = None
        self.asker = ""
        """Whose question it is, where that isn't plain."""

    def framed(self, box: BoxT, title: str, *keys: Key) -> BoxT:
        """Return a box with its title in the upper border, and its keys in the lower one."""
        box.id = "box"
        box.border_title = Content(title)
        self._keys = keys
        return box

    def takes(self, event: events.Key | events.Paste) -> bool:
        if self.leave_key is None or not isinstance(event, events.Key):
            return super().takes(event)
        if event.key == self.leave_key.key:
            self.leave_key.leave()
            return True
        return super().takes(event)

    @property
    def waits_as(self) -> str:
        """The words for it while it can't be shown."""
        return "A question waits."

    @property
    def explained(self) -> tuple[str, tuple[Key, ...]]:
        """The title, and the keys with what they do."""
        return self.query_one("#box").border_title or "", self._keys

    @property
    def is_short(self) -> bool:
        """True if there are no empty rows at the edges."""
        return self.size.height < _TALL

    def free_rows(self, taken: int) -> int:
        """Return how many rows a box has room for beside those that are `taken` within its
        edges."""
        height = self.size.height
        return max(1, (height - 2 if self.is_short else height * 96 // 100 - 4) - taken)

    def show_keys(self, *keys: Key) -> None:
        """Show other keys from now on."""
        self._keys = keys
        self._foot()
        self.call_after_refresh(self._foot)

    def note(self, text: str) -> None:
        self._note = text
        self._foot()

    def action_scroll_text(self, pages: int) -> None:
        """Scroll the question's text, if it is longer than its place."""
        for part in self.query("#preview, #details, #asked, #said, #box"):
            if part.max_scroll_y > 0:
                part.scroll_relative(y=pages * (part.size.height - 1), animate=False)
                return

    def on_mount(self) -> None:
        if self.asker and not self.query("#asker"):  # subclasses call this, and Textual does
            text = Content.styled(one_line(self.asker), "bold $text-warning")
            self.query_one("#box").mount(Static(text, id="asker"), before=0)
        self.call_after_refresh(self._foot)

    def on_resize(self) -> None:
        self.set_class(self.size.height < _TINY, "-tiny")
        self.set_class(self.size.width < _NARROW, "-narrow")
        self.call_after_refresh(self._foot)

    @on(AskedAbout.InSight)
    def _foot(self) -> None:
        """Show the keys, as many as the border has room for."""
        longer = [part for part in self.query(VerticalScroll) if part.max_scroll_y > 0]
        below = max((round(part.max_scroll_y - part.scroll_y) for part in longer), default=0)
        pages = ("pgdn", plural(below, "more line")) if below else PAGES
        for box in self.query("#box"):
            keys = [key for key in self._keys if longer or key not in {SCROLL, PAGES}]
            if self.leave_key is not None and self.leave_key.key:
                keys.insert(len(keys) - 1, (self.leave_key.key, "leave"))
            keys = [pages if key == PAGES else key for key in keys]
            room = box.outer_size.width - 6
            box.border_subtitle = (
                _noted(self._note, keys, room) if self._note else in_rows(keys, room, rows=1)
            )


def _noted(note: str, keys: list[Key], room: int) -> Content:
    """Return a line about the keys, and those of them that fit beside it. If there is little room,
    only the first part of the line."""
    if len(note) > room:
        note = note.partition("; ")[0]
    line = Content.styled(note, "bold $text-warning").truncate(room, ellipsis=True)
    beside = fitting(keys, room - line.cell_length - len(_GAP))
    return Content.assemble(line, _GAP, beside) if beside.plain else line


async def answer_of(app: App[Any], dialog: Dialog[T]) -> T | None:
    """Show a dialog, once nothing keeps it from being seen, and wait for its result. If cancelled,
    close the dialog."""
    for screen in tuple(app.screen_stack):
        if isinstance(screen, BaseScreen):
            await screen.lets_cover(dialog.waits_as)
    answered: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

    def take(answer: T | None) -> None:
        if not answered.done():
            answered.set_result(answer)

    app.push_screen(dialog, take)
    try:
        return await answered
    except asyncio.CancelledError:
        _withdraw(app, dialog)
        raise


def _withdraw(app: App[Any], dialog: Dialog[Any]) -> None:
    """Close a dialog; one that is above it is left alone and closes first."""
    stack = app.screen_stack  # empty if the app has ended
    if stack[-1:] == [dialog]:
        dialog.dismiss(None)
    elif dialog in stack:

        def withdraw_when_on_top(_: object) -> None:
            if app.screen is dialog:
                app.call_later(_withdraw, app, dialog)

        app.screen_change_signal.subscribe(dialog, withdraw_when_on_top)  # pyright: ignore[reportUnknownMemberType]
