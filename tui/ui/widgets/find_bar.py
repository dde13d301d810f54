"""Find in the conversation: a row above the prompt while something is looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from tui.ui.widgets.key_hints import in_rows

_KEYS = (("↑ ↓", "next"), ("esc", "close"))
_NOTHING = Content.styled("not found", "$text-warning")


class FindBar(Horizontal):
    """Hidden until `open`. It only asks; whoever answers calls `say`."""

    DEFAULT_CSS = """
    FindBar { height: 1; width: 1fr; padding: 0 1; display: none; background: $panel; }
    FindBar.-open { display: block; }
    FindBar Static { height: 1; width: auto; }
    FindBar Input, FindBar Input:focus {
        width: 1fr; height: 1; border: none; padding: 0; background: $panel;
        background-tint: $panel 0%;
    }
    FindBar #find-keys { max-width: 60%; padding: 0 0 0 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,ctrl+f,f3", "next(True)", show=False),
        Binding("down,shift+enter", "next(False)", show=False),
        Binding("escape,ctrl+c", "close", show=False),
    ]

    @dataclass
    class Wanted(Message):
        """Look for `text`: from the end (`anew`), or on from where it was found last."""

        text: str
        back: bool = True
        anew: bool = False

    class Closed(Message):
        """The person has seen enough."""

    _said = Content("")

    def compose(self) -> ComposeResult:
        yield Static(Content.styled("find ", "$text-secondary"), markup=False)
        words = Input(placeholder="in this conversation", id="find-text", select_on_focus=True)
        words.cursor_blink = False
        yield words
        yield Static(id="find-keys", markup=False)

    @property
    def opened(self) -> bool:
        return self.has_class("-open")

    def open(self, text: str = "") -> None:
        """Show it, and take the keys."""
        words = self.query_one(Input)
        self.add_class("-open")
        words.focus()
        if text and text != words.value:
            words.value = text
        elif words.value:
            self.post_message(self.Wanted(words.value, anew=True))
        self.say()

    def say(self, at: int = 0, total: int = 0, *, more: bool = False, last: bool = False) -> None:
        """How it stands; see `Conversation.Found`. Nothing, where nothing is looked for."""
        looking = bool(self.query_one(Input).value)
        self._said = _standing(at, total, more=more, last=last) if looking else Content("")
        self._show()

    def _show(self) -> None:
        """What was said, and the keys as far as there is room beside what is looked for."""
        said = f"{self._said.plain}   " if self._said else ""
        keys = in_rows(_KEYS, int(self.size.width * 0.6) - 4 - len(said), rows=1)
        parts = [part for part in (self._said, keys) if part]
        self.query_one("#find-keys", Static).update(Content("   ").join(parts))

    def on_resize(self) -> None:
        self._show()

    def action_next(self, back: bool) -> None:
        if text := self.query_one(Input).value:
            self.post_message(self.Wanted(text, back))

    def action_close(self) -> None:
        self.remove_class("-open")
        self.post_message(self.Closed())

    @on(Input.Submitted)
    def _older(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_next(True)

    @on(Input.Changed)
    def _edited(self, event: Input.Changed) -> None:
        event.stop()
        if self.opened:
            self.post_message(self.Wanted(event.value, anew=True))


def _standing(at: int, total: int, *, more: bool, last: bool) -> Content:
    if not total:
        return Content.styled("searching …", "$text-muted") if more else _NOTHING
    count = f"{total:,}+ …" if more else f"{total:,}"
    figures = Content.styled(f"{at:,} of {count}" if at else count, "$foreground")
    return Content.assemble(figures, (" · no more", "$text-warning")) if last else figures
