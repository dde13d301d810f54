"""Suggestions above the prompt, which keeps the focus."""

from __future__ import annotations

import asyncio
import heapq
import re
import threading
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol, TypeAlias

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui.app.commands import find
from tui.core.dataclass import dataclass
from tui.core.text_cleaning import one_line

LIMIT: Final = 50


def rank(
    query: str, candidates: Sequence[str], *, stop: Callable[[], bool] = lambda: False
) -> list[str]:
    """Return the candidates that fit, best first; without a query the first ones as they come.

    A candidate is a name or a path. Best is one whose last part is the query, then one whose last
    part begins with it, contains it, or contains its letters in order; then paths that contain it,
    or its letters. Among equals, the one whose letters end first, then the shortest. Small letters
    fit both cases. `stop` ends a search that is no longer needed.
    """
    if not query:
        return list(candidates[:LIMIT])
    exact = any(map(str.isupper, query))
    fits = re.compile(
        "".join(f"[^{re.escape(c)}]*{re.escape(c)}" for c in query), 0 if exact else re.IGNORECASE
    ).match
    matches: list[tuple[int, int, int, str]] = []
    for number, candidate in enumerate(candidates):
        if number % 5000 == 0 and stop():  # not each time, which would slow the search
            return []
        if whole := fits(candidate):
            last = candidate.rstrip("/").rpartition("/")[2]
            own = fits(last)
            tight = (own or whole).end()
            place = _place(query, candidate, last, exact=exact, own=own is not None)
            matches.append((place, tight, len(candidate), candidate))
    return [candidate for *_, candidate in heapq.nsmallest(LIMIT, matches)]


def _place(query: str, candidate: str, last: str, *, exact: bool, own: bool) -> int:
    """Return how well a candidate fits, 0 best."""
    name, path = (last, candidate) if exact else (last.lower(), candidate.lower())
    if name == query:
        return 0
    if name.startswith(query):
        return 1
    if query in name:
        return 2
    if own:
        return 3
    return 4 if query in path else 5


QueryKind: TypeAlias = Literal["command", "argument", "file"]

_COMMAND = re.compile(r"/([\w:.-]*)\Z")
_ARGUMENT = re.compile(r"/(\w[\w:.-]*)[ \t]+([^\n]*)\Z")
_FILE_QUERY = re.compile(r"(?:\A|\s)@(\"[^\"\n]*|[^\s\"]*)\Z")


@dataclass(frozen=True, slots=True)
class CompletionQuery:
    """A text to complete.

    `query` is in the text from `start` up to the cursor; `command` is the command whose argument it
    is, "" otherwise.
    """

    kind: QueryKind
    query: str
    start: int
    command: str = ""


def asked(text: str, cursor: int) -> CompletionQuery | None:
    """Return what may be completed at the cursor, None for nothing.

    A command and its argument are at the very beginning; a file is a word that begins with @, in
    double quotes if it contains blanks.
    """
    before = text[:cursor]
    if match := _COMMAND.match(before):
        return CompletionQuery("command", match[1], 1)
    if match := _ARGUMENT.match(before):
        command = find(match[1])
        if command is not None and command.takes_file:
            return CompletionQuery("file", match[2].removeprefix("@"), match.start(2))
        return CompletionQuery("argument", match[2], match.start(2), match[1].lower())
    if match := _FILE_QUERY.search(before):
        query = match[1].removeprefix('"')
        return CompletionQuery("file", query, match.start(1))
    return None


def completed(text: str, cursor: int, wanted: CompletionQuery, choice: str) -> tuple[str, int]:
    """Return the text with a choice in place of the query, and the new place of the cursor.

    A blank follows, so that typing continues; none after a folder, which is narrowed further: nor
    is its quote closed.
    """
    word, after = choice, text[cursor:]
    if wanted.kind == "file":
        if text.startswith('"', wanted.start):
            after = after.removeprefix('"')
        if re.search(r"\s", choice):
            word = f'"{choice}' if choice.endswith("/") else f'"{choice}"'
    if not choice.endswith("/") and not after.startswith((" ", "\n")):
        word += " "
    return text[: wanted.start] + word + after, wanted.start + len(word)


IGNORED: Final = "ignored"
"""Beside a file that is offered last."""
ROWS: Final = 6
_OTHER_ROWS: Final = 5
"""Rows around the suggestions: the header, one of the conversation, the prompt with its rule, the
keys."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One suggestion: the text to insert, and a few words about it.

    `words` are what is searched, or the value if they are empty; `needs` is true for a command that
    does nothing without an argument.
    """

    value: str
    detail: str = ""
    words: str = ""
    needs: bool = False


class Sources(Protocol):
    """The source of suggestions. Everything in them is data: it is cleaned when drawn."""

    def commands(self) -> Sequence[Suggestion]:
        """Return all commands, without the slash."""
        ...

    async def arguments(self, command: str) -> Sequence[Suggestion]:
        """Return what a command takes, as far as it can be listed."""
        ...

    async def files(self) -> Sequence[str]:
        """Return the paths of the workspace, folders with a final slash."""
        ...

    async def unlisted(self, query: str) -> Sequence[str]:
        """Return paths that fit and are not among `files`, as git ignores them."""
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

    choices: reactive[tuple[Suggestion, ...]] = reactive((), layout=True)
    cursor: reactive[int] = reactive(0)

    @dataclass
    class Picked(Message):
        """A row was clicked: the receiver should call `apply`."""

        suggestions: Suggestions

    def __init__(self, sources: Sources, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._sources = sources
        self._asked: CompletionQuery | None = None
        self._dismissed: CompletionQuery | None = None
        self._stop = threading.Event()
        self._answered: CompletionQuery | None = None
        self._moved = False

    @property
    def opened(self) -> bool:
        return bool(self.choices)

    @property
    def kind(self) -> str:
        """The kind of completion: command, argument or file; "" while closed."""
        return self._asked.kind if self._asked and self.opened else ""

    @property
    def fresh(self) -> bool:
        """True if the rows belong to the current text."""
        return self.opened and self._answered == self._asked

    @property
    def meant(self) -> bool:
        """True if the person asked for a row, by typing a part of it or by moving to it."""
        return self._moved or bool(self._asked and self._asked.query)

    @property
    def chosen(self) -> Suggestion | None:
        """The row under the cursor."""
        return self.choices[self.cursor] if self.choices else None

    def close(self) -> None:
        """Close; the next letter that is typed opens it again."""
        self._stop.set()
        self._asked = self._answered = None
        self.choices = ()

    def follow(self, text: str, cursor: int) -> None:
        """Suggest for the current text. An earlier search is stopped."""
        wanted = asked(text, cursor)
        if wanted == self._asked:
            return
        self._asked = wanted
        self._stop.set()
        before = self._dismissed
        if not (wanted and before and (wanted.kind, wanted.start) == (before.kind, before.start)):
            self._dismissed = None  # otherwise the same word is being typed
        if wanted is None or self._dismissed:
            self.choices = ()
            return
        self._moved = False
        self._stop = stop = threading.Event()
        if wanted.kind == "command":  # at once, so that Enter never meets old rows
            self._show(wanted, _ranked(wanted.query, self._sources.commands()))
        else:
            self.run_worker(self._search(wanted, stop), exclusive=True, group="suggestions")

    def renew(self) -> None:
        """Suggest again for the same text: there are other commands now."""
        wanted, chosen = self._asked, self.chosen
        if wanted is None or wanted.kind != "command" or self._dismissed:
            return
        self._show(wanted, _ranked(wanted.query, self._sources.commands()))
        if self._moved and chosen is not None:
            names = [choice.value for choice in self.choices]
            self.cursor = names.index(chosen.value) if chosen.value in names else 0

    def move(self, step: int) -> None:
        """Move to the row before or after, wrapping around."""
        if self.choices:
            self._moved = True
            self.cursor = (self.cursor + step) % len(self.choices)

    def apply(self, text: str, cursor: int) -> tuple[str, int]:
        """Return the text with the chosen row in it, and the new place of the cursor."""
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
        shown = self.choices[first : first + self._rows]
        names = [one_line(choice.value) for choice in shown]
        column = min(max((len(name) for name in names), default=0) + 2, max(12, width // 2))
        last, count = first + len(shown) - 1, self._count()
        rows: list[Content] = []
        for number, (choice, name) in enumerate(zip(shown, names, strict=True), first):
            chosen = number == self.cursor
            row = Content.assemble(
                ("› " if chosen else "  ", "bold $text-primary"),
                (name.ljust(column), "bold $foreground" if chosen else "$foreground"),
                (one_line(choice.detail), "$text-muted"),
            )
            tail = count if number == last else ""
            row = row.truncate(max(0, width - len(tail)), ellipsis=True, pad=True)
            row = Content.assemble(row, (tail, "$text-muted"))
            rows.append(row.stylize("on $block-cursor-background") if chosen else row)
        return Content("\n").join(rows)

    def _count(self) -> str:
        """Return the number of the row and the total, if not all rows are visible."""
        total = len(self.choices)
        more = "+" if total == LIMIT else ""
        return f"  {self.cursor + 1} of {total}{more}" if total > self._rows else ""

    def _first(self) -> int:
        """Return the first visible row: the chosen one always is."""
        return max(0, min(self.cursor - self._rows + 1, len(self.choices) - self._rows))

    @property
    def _rows(self) -> int:
        """Number of visible rows; the lowest terminals keep their other lines."""
        return max(1, min(ROWS, self.screen.size.height - _OTHER_ROWS))

    async def _search(self, wanted: CompletionQuery, stop: threading.Event) -> None:
        if wanted.kind == "file":
            paths = await self._sources.files()
            best = await asyncio.to_thread(rank, wanted.query, paths, stop=stop.is_set)
            folder = wanted.query if wanted.query.endswith("/") else None  # taken: what is in it?
            suggestions = [Suggestion(path) for path in best if path != folder]
            if wanted.query and not stop.is_set():
                ignored = await self._sources.unlisted(wanted.query)
                suggestions += [Suggestion(path, IGNORED) for path in ignored]
        else:
            suggestions = _ranked(wanted.query, await self._sources.arguments(wanted.command))
        if not stop.is_set():
            self._show(wanted, suggestions)

    def _show(self, wanted: CompletionQuery, found: Sequence[Suggestion]) -> None:
        self._answered = wanted
        done = len(found) == 1 and found[0].value == wanted.query
        self.choices = () if done else tuple(found)
        self.cursor = 0


def _ranked(query: str, offered: Sequence[Suggestion]) -> list[Suggestion]:
    by_words = {choice.words or choice.value: choice for choice in offered}
    return [by_words[words] for words in rank(query, list(by_words))]
