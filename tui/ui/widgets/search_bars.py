"""Search bars above the prompt: for text in the conversation, or an earlier prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from tui.core.dataclass import dataclass
from tui.core.text_cleaning import one_line
from tui.ui.widgets.dialog import TextField
from tui.ui.widgets.keys import in_rows

_FIND_KEYS = (("↑ ↓", "next"), ("esc", "close"))
_NOTHING = Content.styled("not found", "$text-warning")


class SearchBar(Vertical):
    """Hidden until it is opened; Esc closes it."""

    DEFAULT_CSS = """
    SearchBar { height: auto; width: 1fr; padding: 0 1; display: none; background: $panel; }
    SearchBar.-open { display: block; }
    """

    class Closed(Message):
        """The search was closed; the prompt's text stays."""

    @property
    def opened(self) -> bool:
        return self.has_class("-open")

    def action_close(self) -> None:
        self.remove_class("-open")
        self.post_message(self.Closed())


class FindBar(SearchBar):
    """Hidden until `open`. It only asks; the receiver answers by `say`."""

    DEFAULT_CSS = """
    FindBar { height: 1; layout: horizontal; }
    FindBar Static { height: 1; width: auto; }
    FindBar #find-keys { max-width: 60%; padding: 0 0 0 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,ctrl+f,f3", "next(True)", show=False),
        Binding("down,shift+enter", "next(False)", show=False),
        Binding("escape,ctrl+c", "close", show=False),
    ]

    @dataclass
    class Wanted(Message):
        """Search for `text`: from the end (`from_end`), or on from the last hit."""

        text: str
        back: bool = True
        from_end: bool = False

    _said = Content("")

    def compose(self) -> ComposeResult:
        yield Static(Content.styled("find ", "$text-secondary"), markup=False)
        yield TextField(placeholder="in this conversation", id="find-text")
        yield Static(id="find-keys", markup=False)

    def open(self, text: str = "") -> None:
        """Show the bar, and take the keys."""
        words = self.query_one(Input)
        self.add_class("-open")
        words.focus()
        if text and text != words.value:
            words.value = text
        elif words.value:
            self.post_message(self.Wanted(words.value, from_end=True))
        self.say()

    def say(self, at: int = 0, total: int = 0, *, more: bool = False, last: bool = False) -> None:
        """Show the state of the search (see `ConversationView.Matches`), or nothing without a
        text."""
        looking = bool(self.query_one(Input).value)
        self._said = _matches_label(at, total, more=more, last=last) if looking else Content("")
        self._show()

    def _show(self) -> None:
        """Show the state, and the keys as far as there is room beside the text."""
        state = f"{self._said.plain}   " if self._said else ""
        keys = in_rows(_FIND_KEYS, int(self.size.width * 0.6) - 4 - len(state), rows=1)
        parts = [part for part in (self._said, keys) if part]
        self.query_one("#find-keys", Static).update(Content("   ").join(parts))

    def on_resize(self) -> None:
        self._show()

    def action_next(self, back: bool) -> None:
        if text := self.query_one(Input).value:
            self.post_message(self.Wanted(text, back))

    @on(Input.Submitted)
    def _older(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_next(True)

    @on(Input.Changed)
    def _edited(self, event: Input.Changed) -> None:
        event.stop()
        if self.opened:
            self.post_message(self.Wanted(event.value, from_end=True))


def _matches_label(at: int, total: int, *, more: bool, last: bool) -> Content:
    if not total:
        return Content.styled("searching …", "$text-muted") if more else _NOTHING
    count = f"{total:,}+ …" if more else f"{total:,}"
    figures = Content.styled(f"{at:,} of {count}" if at else count, "$foreground")
    return Content.assemble(figures, (" · no more", "$text-warning")) if last else figures


ROWS: Final = 5
_SEARCH_KEYS = (("enter", "take"), ("ctrl+r", "older"), ("esc", "close"))
_WORDS = 40
"""Cells for the search text, its name and the edges; the keys give way to them."""


def matching(entries: Sequence[str], query: str) -> list[str]:
    """Return the entries that contain every word of a query, the newest first, each once."""
    words = query.casefold().split()
    return [
        entry
        for entry in dict.fromkeys(reversed(entries))
        if all(word in entry.casefold() for word in words)
    ]


class PromptSearch(SearchBar):
    """Hidden until `open`. It does not touch the prompt: the receiver of `Taken` does."""

    DEFAULT_CSS = f"""
    PromptSearch #found {{ height: auto; max-height: {ROWS}; width: 1fr; }}
    PromptSearch #search-row {{ height: 1; width: 1fr; }}
    PromptSearch #search-row Static {{ height: 1; width: auto; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,up", "move(1)", show=False),
        Binding("down", "move(-1)", show=False),
        Binding("tab", "take", show=False),
        Binding("escape,ctrl+c,ctrl+g", "close", show=False),
    ]

    @dataclass
    class Taken(Message):
        """The person wants this entry in the prompt."""

        text: str

    _entries: Sequence[str] = ()
    _found: Sequence[str] = ()
    _at = 0

    def compose(self) -> ComposeResult:
        yield Static(id="found", markup=False)
        with Horizontal(id="search-row"):
            yield Static(Content.styled("history ", "$text-secondary"), markup=False)
            yield TextField(placeholder="part of an earlier prompt", id="search-text")
            yield Static(id="search-keys", markup=False)

    @property
    def chosen(self) -> str | None:
        """The prompt under the cursor."""
        return self._found[self._at] if self._found else None

    def open(self, entries: Sequence[str]) -> None:
        """Show the bar for these entries, oldest first, and take the keys."""
        self._entries = entries
        words = self.query_one(Input)
        words.value = ""
        self.add_class("-open")
        words.focus()
        self._search("")

    def action_move(self, step: int) -> None:
        """Move to an older or newer entry."""
        if self._found:
            self._at = max(0, min(len(self._found) - 1, self._at + step))
            self._draw()

    def action_take(self) -> None:
        chosen = self.chosen
        self.action_close()
        if chosen is not None:
            self.post_message(self.Taken(chosen))

    @on(Input.Submitted)
    def _enter(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_take()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self.opened:
            self._search(event.value)

    def on_resize(self) -> None:
        if self.opened:
            self._draw()

    def _search(self, query: str) -> None:
        self._found, self._at = matching(self._entries, query), 0
        self._draw()

    def _draw(self) -> None:
        width = max(10, self.size.width - 2)
        first = max(0, self._at - ROWS + 1)
        rows: list[Content] = []
        for number, entry in enumerate(self._found[first : first + ROWS], first):
            chosen = number == self._at
            row = Content.assemble(
                ("› " if chosen else "  ", "bold $text-primary"),
                (one_line(entry[:1000]), "bold $foreground" if chosen else "$foreground"),
            )
            rows.append(row.truncate(width, ellipsis=True))
        rows.reverse()  # the newest is next to the prompt
        nothing = Content.styled("No earlier prompt matches.", "$text-warning")
        self.query_one("#found", Static).update(Content("\n").join(rows) if rows else nothing)
        count = f"{self._at + 1} of {len(self._found)}   " if self._found else ""
        keys = in_rows(_SEARCH_KEYS, self.size.width - len(count) - _WORDS, rows=1)
        status = Content.assemble((f"  {count}", "$foreground"), keys)
        self.query_one("#search-keys", Static).update(status)
