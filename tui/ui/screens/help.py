"""F1: every key and command, from the tables that bind them, and the manual."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.strip import Strip
from textual.visual import Visual
from textual.widgets import ContentSwitcher, Input, Static

from tui.app import manual
from tui.app.manual import Match
from tui.core.dataclass import dataclass
from tui.core.keymap import Keymap
from tui.ui.screens.table_screen import cell
from tui.ui.widgets import markdown
from tui.ui.widgets.character_input import CharacterInput
from tui.ui.widgets.dialog import Dialog
from tui.ui.widgets.keys import Key, explained, section_title
from tui.ui.widgets.line_view import LineView, RenderedItem, strips
from tui.ui.widgets.markdown.text import Line
from tui.ui.widgets.panes import TextLines
from tui.ui.widgets.row_list import Part, RowList

_SCROLL: Final = ("↑ ↓ pgup pgdn", "scroll")
_KEYS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "keys": (_SCROLL, ("tab", "the manual"), ("type", "filter"), ("esc", "close")),
    "topics": (("enter", "read"), ("tab", "keys"), ("esc", "back")),
    "page": (_SCROLL, ("esc", "back")),
}
"""The hints in the lower border for each view."""


@dataclass(frozen=True, slots=True)
class HelpSection:
    """A heading and its rows: what is pressed or typed, and what it does. `here` is true if it
    works on the screen under the help."""

    title: str
    rows: tuple[tuple[str, str], ...]
    here: bool = False

    @classmethod
    def of(cls, title: str, keys: Iterable[Key], keymap: Keymap) -> HelpSection:
        """Return the section of a table of keys, as a person has set them."""
        return cls(section_title(title, keymap), tuple(explained(keys, keymap)))


_COLUMN_MIN, _COLUMN_MAX = 22, 28
"""Cells for the column of keys in a wide table: 22 for every section whose keys fit there, so that
their effects are below each other; at most 28 for the others."""


def help_lines(sections: Sequence[HelpSection], width: int) -> list[Content]:
    """Return all sections in two columns of `width` cells together.

    The first is as wide as its widest row; if that is too much, wider ones get a row of their own.
    """
    lines: list[Content] = []
    for section in sections:
        widest = max([_COLUMN_MIN, *(len(left) + 3 for left, _ in section.rows)])
        column = min(widest, max(12, width * 2 // 5), _COLUMN_MAX)
        if lines:
            lines.append(Content(""))
        mark = ("  ● here", "$text-success") if section.here else ""
        lines.append(Content.assemble((section.title, "bold $text-primary"), mark))
        for left, right in section.rows:
            alone = len(left) > column - 2
            if alone:
                lines.append(Content.styled(left, "$text-accent"))
            for index, part in enumerate(textwrap.wrap(right, max(12, width - column))):
                name = "" if index or alone else left
                head = Content.styled(name.ljust(column), "$text-accent")
                lines.append(Content.assemble(head, (part, "$foreground")))
    return lines


@dataclass(frozen=True, slots=True)
class HelpHit:
    """A row of search results, in two columns. Enter opens `match`; a heading has none."""

    left: str
    right: str = ""
    match: Match | None = None

    def parts(self, column: int, width: int) -> Sequence[Part]:
        """Return the row, with that many cells for its first column."""
        if self.match is None:
            return [(self.left, "primary"), (f"  {self.right}", "success")]
        return [
            (cell(self.left, column) + "  ", "accent"),
            (cell(self.right, width).rstrip(), "text"),
        ]


def hits_in(sections: Sequence[HelpSection], words: str) -> list[HelpHit]:
    """Return the keys and commands that contain all words, under their headings, then the matching
    sections of the manual; without words, the topics of the manual."""
    if not words:
        return [HelpHit(each.name, each.summary, Match(each, "", "")) for each in manual.topics()]
    topics = {topic.name: topic for topic in manual.topics()}
    hits: list[HelpHit] = []
    words_sought = words.casefold().split()
    for section in sections:
        rows = [
            (left, right)
            for left, right in section.rows
            if all(word in f"{left} {right}".casefold() for word in words_sought)
        ]
        if rows:
            hits.append(HelpHit(section.title, "● here" if section.here else ""))
        for left, right in rows:
            topic = topics["commands" if left.startswith("/") else "keys"]
            hits.append(HelpHit(left, right, Match(topic, section.title, right)))
    if matches := manual.search(words):
        hits.append(HelpHit("Manual"))
        hits += [HelpHit(match.place, match.line, match) for match in matches]
    return hits


class HelpTable(TextLines):
    """A table as high as its rows are at its width. Only rows that are visible are drawn: all of
    them take 40 ms."""

    DEFAULT_CSS = "HelpTable { width: 1fr; height: auto; }"

    def __init__(self, sections: Sequence[HelpSection]) -> None:
        super().__init__()
        self._sections = sections
        self._made: tuple[int, list[Content]] = (0, [])

    def lines(self, width: int) -> list[Content]:
        if self._made[0] != width:
            self._made = width, help_lines(self._sections, width)
        return self._made[1]

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        row = self.lines(width)[y : y + 1]
        if not row or self.text_selection is not None:  # that may begin in any row
            return super().render_line(y)
        return Visual.to_strips(self, row[0], width, 1, self.visual_style)[0]


class ManualPage(LineView):
    """One topic of the manual, with the words of the search marked."""

    COMPONENT_CLASSES: ClassVar[set[str]] = markdown.COMPONENTS
    DEFAULT_CSS = markdown.css("ManualPage")

    _text = ""
    _words: re.Pattern[str] | None = None
    _drawn: RenderedItem | None = None

    def show(self, match: Match, words: str) -> None:
        """Show a topic from the matching section, with the first of the words visible."""
        self._text = match.topic.text
        parts = "|".join(map(re.escape, words.split()))
        self._words = re.compile(rf"(?<!\w)(?:{parts})", re.IGNORECASE) if parts else None
        self._redraw()
        self._viewport.clear()
        self._viewport.extend([1])
        self._viewport.following = False
        self._touch()
        self.call_after_refresh(self._go_to, match.heading)

    def _go_to(self, heading: str) -> None:
        lines = self._picture(0).lines
        heads = (n for n, row in enumerate(lines) if row.lead == "## " and row.text == heading)
        head, height = next(heads, 0), self._viewport.height
        word = self._words
        hits = (n for n in range(head, len(lines)) if word and word.search(lines[n].text))
        hit = next(hits, head)
        self._scroll(head if hit < head + height else hit - height // 3)

    def _picture(self, index: int) -> RenderedItem:  # noqa: ARG002 - there is one
        if self._drawn is None:
            self._drawn = RenderedItem(markdown.render(self._text, self._look, self._width))
        return self._drawn

    def _redraw(self) -> None:
        self._drawn = None

    def _styles(self) -> dict[str, Style]:
        return markdown.styles(self)

    def _overlay(self, index: int, row: int, line: Line) -> Line:  # noqa: ARG002
        if self._words is None:
            return line
        spots = (match.span() for match in self._words.finditer(line.text))
        return strips.marked(line, spots, Style(reverse=True))


class HelpScreen(Dialog[None]):
    """The keys and commands, after Tab the manual; typing filters them all.

    F1, ? or Esc close it; Esc first leaves a page and clears the search. `words` are those of
    /help: a topic, or something to search for.
    """

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "back", "back", show=False),
        Binding("tab,shift+tab", "other_view", show=False),
        Binding("up", "move('row', -1)", show=False),
        Binding("down", "move('row', 1)", show=False),
        Binding("pageup", "move('page', -1)", show=False),
        Binding("pagedown", "move('page', 1)", show=False),
        Binding("home", "move('edge', -1)", show=False, priority=True),
        Binding("end", "move('edge', 1)", show=False, priority=True),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#search"

    def __init__(self, sections: Sequence[HelpSection], words: str = "") -> None:
        super().__init__(classes="-table")
        self._sections, self._words = sections, words
        self._hits: list[HelpHit] = []

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "help", *_KEYS["keys"]):
            with Horizontal(id="search-row"):
                yield Static("›", id="caret", markup=False)
                search = CharacterInput(placeholder="Filter keys, commands, manual", id="search")
                search.cursor_blink = False
                yield search
            with ContentSwitcher(initial="keys"):
                with VerticalScroll(id="keys", can_focus=False):
                    yield HelpTable(self._sections)
                topics = RowList(id="topics", one_click=True)
                topics.can_focus = False
                yield topics
                page = ManualPage(id="page")
                page.can_focus = False
                yield page

    def on_mount(self) -> None:
        if not self._words:
            return
        topics = manual.named(self._words)
        if len(topics) == 1:
            self._open(Match(topics[0], "", ""), "")
        else:
            self.query_one("#search", Input).value = self._words

    @property
    def view(self) -> str:
        """The current view: "keys", "topics" or "page"."""
        return self.query_one(ContentSwitcher).current or ""

    def _show(self, view: str) -> None:
        self.query_one(ContentSwitcher).current = view
        self.show_keys(*_KEYS[view])

    def _list(self, words: str) -> None:
        """List what matches the words; without words, the topics of the manual."""
        hits = self._hits = hits_in(self._sections, words)
        longest = max((len(hit.left) for hit in hits if hit.match), default=0)

        def draw(index: int, width: int) -> Sequence[Part]:
            if not hits:
                return [("No key, command or topic matches.", "muted")]
            return hits[index].parts(min(longest, 36, width * 2 // 5), width)

        first = next((at for at, hit in enumerate(hits) if hit.match), 0)
        self.query_one("#topics", RowList).show(len(hits) or 1, draw, cursor=first)
        self._show("topics")

    def _open(self, match: Match, words: str) -> None:
        self._show("page")
        self.query_one(ManualPage).show(match, words)

    @on(Input.Changed, "#search")
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        words = event.value.strip()
        if words == "?":  # the key that opened it
            self.dismiss()
        elif words:
            self._list(words)
        else:
            self._show("keys")

    @on(Input.Submitted, "#search")
    def _enter(self, event: Input.Submitted) -> None:
        event.stop()
        if self.view == "topics":
            self.query_one("#topics", RowList).action_choose()
        elif self.view == "keys":
            self.dismiss()

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        match = self._hits[event.index].match if self._hits else None
        if match is not None:
            self._open(match, self.query_one("#search", Input).value)

    def action_back(self) -> None:
        """Go back from a page to the list, from the list to the keys, then close."""
        search = self.query_one("#search", Input)
        if self.view == "page":
            self._list(search.value.strip())
        elif search.value:
            search.value = ""
        else:
            self.dismiss()

    def action_other_view(self) -> None:
        """Switch to the topics of the manual, or back to the keys."""
        if self.view == "keys":
            self._list("")
        elif self.query_one("#search", Input).value:
            self.query_one("#search", Input).value = ""
        else:
            self._show("keys")

    def action_move(self, kind: str, step: int) -> None:
        """Scroll the view, or move the cursor in the list: by a "row", a "page", or to an
        "edge"."""
        match self.view:
            case "keys":
                self._scroll_keys(kind, step)
            case "topics":
                rows = self.query_one("#topics", RowList)
                moves = {"row": self._move_cursor, "page": rows.action_page}
                moves.get(kind, rows.action_edge)(step)
            case _:
                page = self.query_one(ManualPage)
                {"row": page.action_rows, "page": page.action_page, "edge": page.action_edge}[kind](
                    step
                )

    def _move_cursor(self, step: int) -> None:
        """Move to the next row that can be opened."""
        rows = self.query_one("#topics", RowList)
        at = rows.cursor + step
        while 0 <= at < len(self._hits) and self._hits[at].match is None:
            at += step
        if 0 <= at < len(self._hits):
            rows.move_to(at)

    def _scroll_keys(self, kind: str, step: int) -> None:
        keys = self.query_one("#keys", VerticalScroll)
        rows = {"row": 1, "page": max(1, keys.size.height - 1), "edge": keys.max_scroll_y}[kind]
        keys.scroll_relative(y=step * rows, animate=False)
