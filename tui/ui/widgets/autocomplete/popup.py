"""What may come next, in rows above the prompt; the prompt keeps the focus and hands over keys."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui.core.text_cleaning import one_line
from tui.ui.widgets.autocomplete.asked import Asked, asked, completed
from tui.ui.widgets.autocomplete.rank import LIMIT, rank

ROWS: Final = 6


@dataclass(frozen=True, slots=True)
class Choice:
    """One suggestion: what would be inserted, and a few words about it.

    `words` are what is looked in, the value where they are empty; `needs`: a command that
    does nothing without an argument.
    """

    value: str
    detail: str = ""
    words: str = ""
    needs: bool = False


class Sources(Protocol):
    """Where suggestions come from. Everything in them is data: it is cleaned when drawn."""

    def commands(self) -> Sequence[Choice]:
        """All commands, without the slash."""
        ...

    async def arguments(self, command: str) -> Sequence[Choice]:
        """What a command takes, as far as it can be listed."""
        ...

    async def files(self) -> Sequence[str]:
        """Paths of the workspace, folders with a final slash."""
        ...


class Suggestions(Widget):
    """Follows what is typed; hidden while there is nothing to suggest."""

    DEFAULT_CSS = f"""
    Suggestions {{
        height: auto; max-height: {ROWS}; width: 1fr; padding: 0 1; display: none;
        background: $surface;
    }}
    Suggestions.-open {{ display: block; }}
    """

    choices: reactive[tuple[Choice, ...]] = reactive((), layout=True)
    cursor: reactive[int] = reactive(0)

    @dataclass
    class Picked(Message):
        """A row was clicked: what `apply` would do is wanted."""

        suggestions: Suggestions

    def __init__(self, sources: Sources, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._sources = sources
        self._asked: Asked | None = None
        self._dismissed: Asked | None = None
        self._stop = threading.Event()
        self._answered: Asked | None = None
        self._moved = False

    @property
    def opened(self) -> bool:
        return bool(self.choices)

    @property
    def kind(self) -> str:
        """What is being completed: command, argument or file; "" while closed."""
        return self._asked.kind if self._asked and self.opened else ""

    @property
    def fresh(self) -> bool:
        """Whether the rows are those of what is typed now."""
        return self.opened and self._answered == self._asked

    @property
    def meant(self) -> bool:
        """Whether the person asked for a row: by typing a part of it, or by moving to it."""
        return self._moved or bool(self._asked and self._asked.query)

    @property
    def chosen(self) -> Choice | None:
        """The row under the cursor."""
        return self.choices[self.cursor] if self.choices else None

    def close(self) -> None:
        """Nothing is being typed any more; the next letter opens it again."""
        self._stop.set()
        self._asked = self._answered = None
        self.choices = ()

    def follow(self, text: str, cursor: int) -> None:
        """Look at what is typed now. What was asked for before is not looked for any more."""
        wanted = asked(text, cursor)
        if wanted == self._asked:
            return
        self._asked = wanted
        self._stop.set()
        if wanted is None or _same_word(wanted, self._dismissed):
            self.choices = ()
            self._dismissed = self._dismissed if wanted else None
            return
        self._dismissed = None
        self._moved = False
        self._stop = stop = threading.Event()
        if wanted.kind == "command":  # at once, so that Enter never meets old rows
            self._show(wanted, self._ranked(wanted.query, self._sources.commands()))
            return
        self.run_worker(self._look(wanted, stop), exclusive=True, group="suggestions")

    def move(self, step: int) -> None:
        """The row before or after, round and round."""
        if self.choices:
            self._moved = True
            self.cursor = (self.cursor + step) % len(self.choices)

    def apply(self, text: str, cursor: int) -> tuple[str, int]:
        """The text with the chosen row in it, and where the cursor stands then."""
        if not self.choices or self._asked is None:
            return text, cursor
        return completed(text, cursor, self._asked, self.choices[self.cursor].value)

    def dismiss(self) -> None:
        """Close, until another word is typed."""
        self._dismissed = self._asked
        self.choices = ()

    def on_click(self, event: events.Click) -> None:
        index = self._first() + event.y
        if index < len(self.choices):
            event.stop()
            self._moved = True
            self.cursor = index
            self.post_message(self.Picked(self))

    def watch_choices(self) -> None:
        self.set_class(self.opened, "-open")
        self.cursor = 0

    def render(self) -> Content:
        width = max(1, self.content_size.width)
        first = self._first()
        shown = self.choices[first : first + ROWS]
        names = [one_line(choice.value) for choice in shown]
        column = min(max((len(name) for name in names), default=0) + 2, max(12, width // 2))
        last, count = first + len(shown) - 1, self._count()
        rows: list[Content] = []
        for number, (choice, name) in enumerate(zip(shown, names, strict=True), first):
            chosen = number == self.cursor
            row = Content.assemble(
                ("❯ " if chosen else "  ", "bold $text-primary"),
                (name.ljust(column), "bold $foreground" if chosen else "$foreground"),
                (one_line(choice.detail), "$text-muted"),
            )
            tail = count if number == last else ""
            row = row.truncate(max(0, width - len(tail)), ellipsis=True, pad=True)
            row = Content.assemble(row, (tail, "$text-muted"))
            rows.append(row.stylize("on $block-cursor-background") if chosen else row)
        return Content("\n").join(rows)

    def _count(self) -> str:
        """Which row it is of how many, where not all are in sight."""
        total = len(self.choices)
        more = "+" if total == LIMIT else ""
        return f"  {self.cursor + 1} of {total}{more}" if total > ROWS else ""

    def _first(self) -> int:
        """The first row in sight: the chosen one always is."""
        return max(0, min(self.cursor - ROWS + 1, len(self.choices) - ROWS))

    async def _look(self, wanted: Asked, stop: threading.Event) -> None:
        found = await self._found(wanted, stop)
        if not stop.is_set():
            self._show(wanted, found)

    def _show(self, wanted: Asked, found: Sequence[Choice]) -> None:
        self._answered = wanted
        done = len(found) == 1 and found[0].value == wanted.query
        self.choices = () if done else tuple(found)
        self.cursor = 0

    async def _found(self, wanted: Asked, stop: threading.Event) -> Sequence[Choice]:
        if wanted.kind == "file":
            paths = await self._sources.files()
            best = await asyncio.to_thread(rank, wanted.query, paths, stop=stop.is_set)
            return [Choice(path) for path in best]
        return self._ranked(wanted.query, await self._sources.arguments(wanted.command))

    @staticmethod
    def _ranked(query: str, offered: Sequence[Choice]) -> list[Choice]:
        by_words = {choice.words or choice.value: choice for choice in offered}
        return [by_words[words] for words in rank(query, list(by_words))]


def _same_word(wanted: Asked, dismissed: Asked | None) -> bool:
    return dismissed is not None and (wanted.kind, wanted.start) == (
        dismissed.kind,
        dismissed.start,
    )
