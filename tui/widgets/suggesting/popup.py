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

from tui.widgets.plain import one_line
from tui.widgets.suggesting.asked import Asked, asked, completed
from tui.widgets.suggesting.rank import rank

ROWS: Final = 6


@dataclass(frozen=True, slots=True)
class Choice:
    """One suggestion: what would be inserted, and a few words about it."""

    value: str
    detail: str = ""


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

    @property
    def opened(self) -> bool:
        return bool(self.choices)

    @property
    def kind(self) -> str:
        """What is being completed: command, argument or file; "" while closed."""
        return self._asked.kind if self._asked and self.opened else ""

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
        self._stop = stop = threading.Event()
        self.run_worker(self._look(wanted, stop), exclusive=True, group="suggestions")

    def move(self, step: int) -> None:
        """The row before or after, round and round."""
        if self.choices:
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
        rows: list[Content] = []
        for number, (choice, name) in enumerate(zip(shown, names, strict=True), first):
            chosen = number == self.cursor
            row = Content.assemble(
                ("❯ " if chosen else "  ", "bold $text-primary"),
                (name.ljust(column), "bold $foreground" if chosen else "$foreground"),
                (one_line(choice.detail), "$text-muted"),
            ).truncate(width, ellipsis=True)
            rows.append(row.stylize("on $block-cursor-background") if chosen else row)
        return Content("\n").join(rows)

    def _first(self) -> int:
        """The first row in sight: the chosen one always is."""
        return max(0, min(self.cursor - ROWS + 1, len(self.choices) - ROWS))

    async def _look(self, wanted: Asked, stop: threading.Event) -> None:
        found = await self._found(wanted, stop)
        if not stop.is_set():
            done = len(found) == 1 and found[0].value == wanted.query
            self.choices = () if done else tuple(found)

    async def _found(self, wanted: Asked, stop: threading.Event) -> Sequence[Choice]:
        if wanted.kind == "file":
            paths = await self._sources.files()
            best = await asyncio.to_thread(rank, wanted.query, paths, stop=stop.is_set)
            return [Choice(path) for path in best]
        if wanted.kind == "command":
            offered = self._sources.commands()
        else:
            offered = await self._sources.arguments(wanted.command)
        by_value = {choice.value: choice for choice in offered}
        return [by_value[value] for value in rank(wanted.query, list(by_value))]


def _same_word(wanted: Asked, dismissed: Asked | None) -> bool:
    return dismissed is not None and (wanted.kind, wanted.start) == (
        dismissed.kind,
        dismissed.start,
    )
