"""Ctrl+R: the earlier prompts that hold what is typed, in rows above the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from tui.core.text_cleaning import one_line
from tui.ui.widgets.key_hints import in_rows

ROWS: Final = 5
_KEYS = (("enter", "take"), ("ctrl+r", "older"), ("esc", "close"))
_WORDS = 40
"""So many cells are for what is looked for, its name and the edges; the keys give way to them."""


def matching(entries: Sequence[str], query: str) -> list[str]:
    """The entries that hold every word of a query, the newest first, each once."""
    words = query.casefold().split()
    return [
        entry
        for entry in dict.fromkeys(reversed(entries))
        if all(word in entry.casefold() for word in words)
    ]


class PromptSearch(Vertical):
    """Hidden until `open`. The prompt itself is not touched: whoever hears `Taken` does that."""

    DEFAULT_CSS = f"""
    PromptSearch {{ height: auto; width: 1fr; padding: 0 1; display: none; background: $panel; }}
    PromptSearch.-open {{ display: block; }}
    PromptSearch #found {{ height: auto; max-height: {ROWS}; width: 1fr; }}
    PromptSearch #search-row {{ height: 1; width: 1fr; }}
    PromptSearch #search-row Static {{ height: 1; width: auto; }}
    PromptSearch Input, PromptSearch Input:focus {{
        width: 1fr; height: 1; border: none; padding: 0; background: $panel;
        background-tint: $panel 0%;
    }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,up", "move(1)", show=False),
        Binding("down", "move(-1)", show=False),
        Binding("tab", "take", show=False),
        Binding("escape,ctrl+c,ctrl+g", "close", show=False),
    ]

    @dataclass
    class Taken(Message):
        """The person wants this one in the prompt."""

        text: str

    class Closed(Message):
        """The search is over; what was typed before stands."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._entries: Sequence[str] = ()
        self._found: list[str] = []
        self._at = 0

    def compose(self) -> ComposeResult:
        yield Static(id="found", markup=False)
        with Horizontal(id="search-row"):
            yield Static(Content.styled("history ", "$text-secondary"), markup=False)
            words = Input(placeholder="a part of an earlier prompt", id="search-text")
            words.cursor_blink = False
            yield words
            yield Static(id="search-keys", markup=False)

    @property
    def opened(self) -> bool:
        return self.has_class("-open")

    @property
    def chosen(self) -> str | None:
        """The prompt under the cursor."""
        return self._found[self._at] if self._found else None

    def open(self, entries: Sequence[str]) -> None:
        """Show it for these entries, oldest first, and take the keys."""
        self._entries = entries
        words = self.query_one(Input)
        words.value = ""
        self.add_class("-open")
        words.focus()
        self._search("")

    def action_move(self, step: int) -> None:
        """To an older entry, or a newer one."""
        if self._found:
            self._at = max(0, min(len(self._found) - 1, self._at + step))
            self._draw()

    def action_take(self) -> None:
        chosen = self.chosen
        self.action_close()
        if chosen is not None:
            self.post_message(self.Taken(chosen))

    def action_close(self) -> None:
        self.remove_class("-open")
        self.post_message(self.Closed())

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
                ("❯ " if chosen else "  ", "bold $text-primary"),
                (one_line(entry[:1000]), "bold $foreground" if chosen else "$foreground"),
            )
            rows.append(row.truncate(width, ellipsis=True))
        rows.reverse()  # the newest stands next to the prompt
        nothing = Content.styled("No earlier prompt holds that.", "$text-warning")
        self.query_one("#found", Static).update(Content("\n").join(rows) if rows else nothing)
        count = f"{self._at + 1} of {len(self._found)}   " if self._found else ""
        keys = in_rows(_KEYS, self.size.width - len(count) - _WORDS, rows=1)
        told = Content.assemble((f"  {count}", "$foreground"), keys)
        self.query_one("#search-keys", Static).update(told)
