"""The text areas below the prompt's class: long pastes and images are one word each, cuts are
kept."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.reactive import reactive
from textual.widgets import TextArea

from tui.app.prompt_history import Span
from tui.core.formatting import plural, size
from tui.ui.widgets.character_area import CharacterArea

if TYPE_CHECKING:
    from textual._text_area_theme import TextAreaTheme
    from textual.document._document import EditResult
    from textual.document._edit import Edit
    from textual.geometry import Region
    from textual.strip import Strip

    from tui.app.attachments import PromptImages

FOLD_CHARS = 2000
FOLD_LINES = 20
"""A paste beyond either is shown as one word, and sent completely."""

_WORD = re.compile(r"\[(?:image|paste) \d+: [^\[\]\n]+\]")


def _is_long(text: str) -> bool:
    return len(text) > FOLD_CHARS or text.count("\n") >= FOLD_LINES


class PlaceholderArea(CharacterArea):
    """A text area with words that stand for pastes and images.

    `value` is the text with pastes expanded and the words for images. `images` knows the images,
    once there is a session to send them to.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"prompt--image"}

    unread_pastes: reactive[int] = reactive(0, repaint=False, init=False)
    """Number of pastes that may yet become images."""

    _styled: TextAreaTheme | None = None
    """The theme whose styles are current."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, highlight_cursor_line=False)
        self.disable_messages(self.SelectionChanged)  # nobody needs it, five times for each key
        self._pastes: dict[str, str] = {}
        """The texts of the words. Those of a text that was sent stay, since it may come back."""
        self._pasted = 0
        self._images: PromptImages | None = None
        self._unlooked: list[str] = []  # pasted before `images` was known
        self._typed = 0
        self._pasting = False

    def notify_style_update(self) -> None:
        self._styled = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw as Textual does, without looking up all styles of the text again for each key."""
        if self._styled is self._theme:
            return super(TextArea, self).render_lines(crop)
        self._styled = self._theme
        return super().render_lines(crop)

    @property
    def images(self) -> PromptImages | None:
        return self._images

    @images.setter
    def images(self, images: PromptImages | None) -> None:
        self._images = images
        unlooked, self._unlooked = self._unlooked, []
        for pasted in unlooked:
            self.attach_paths(pasted)

    @property
    def value(self) -> str:
        return self.unfolded(self.text)

    def folded(self, text: str) -> str:
        """Return the form of a text that is shown. A long one has words for the pastes in it that
        are known; if it has none, it is one word."""
        if not _is_long(text) and self.unfolded(text) == text:
            return text
        shown = text
        for word, paste in sorted(self._pastes.items(), key=lambda one: -len(one[1])):
            shown = shown.replace(paste, word)
        if not _is_long(shown) and self.unfolded(shown) == text:
            return shown
        return self._named(text)

    def _named(self, paste: str) -> str:
        """Return the word for a paste, a new one if it has none."""
        for word, known in self._pastes.items():
            if known == paste:
                return word
        lines = plural(paste.removesuffix("\n").count("\n") + 1, "line")
        extent = f"{lines}, {size(len(paste.encode(errors='replace')))}"
        self._pasted += 1
        while (word := f"[paste {self._pasted}: {extent}]") in self.text:
            self._pasted += 1
        self._pastes[word] = paste
        return word

    def learn(self, text: str, pasted: Sequence[Span]) -> None:
        """Know the pastes in a text that comes back."""
        for start, end in pasted:
            self._named(text[start:end])

    @property
    def pasted(self) -> list[Span]:
        """The places in `value` that are shown as words."""
        places, longer = list[Span](), 0
        for word in _WORD.finditer(self.text):
            if paste := self._pastes.get(word[0]):
                start = word.start() + longer
                places.append((start, start + len(paste)))
                longer += len(paste) - len(word[0])
        return places

    def unfolded(self, text: str) -> str:
        """Return the text of what is shown, with pastes expanded."""
        return _WORD.sub(lambda word: self._pastes.get(word[0], word[0]), text)

    def add_paste(self, text: str) -> None:
        """Insert at the cursor, folded into one word if it is long.

        Paths of images are replaced by the words for them, once they have been read.
        """
        plain = text.replace("\r\n", "\n").replace("\r", "\n")
        shown = self.folded(plain)
        if shown == plain:
            self.attach_paths(shown)
        self.insert_at_cursor(shown)

    def insert_at_cursor(self, text: str) -> None:
        """Replace the selection with a text that nobody typed; the cursor goes after it."""
        with self._not_typed():
            result = self._replace_via_keyboard(text, *self.selection)
        if result:
            self.move_cursor(result.end_location)

    @contextmanager
    def _not_typed(self) -> Generator[None]:
        before, self._pasting = self._pasting, True
        try:
            yield
        finally:
            self._pasting = before

    def edit(self, edit: Edit) -> EditResult:
        """Edit as Textual does; `_typed` stays the number of first characters that were typed."""
        start, end = self._index(edit.top), self._index(edit.bottom)
        put = 0 if self._pasting else len(edit.text)
        if start <= self._typed:
            self._typed = start + put + (max(0, self._typed - end) if put == len(edit.text) else 0)
        return super().edit(edit)

    def undo(self) -> None:
        with self._only_shared():
            super().undo()

    def redo(self) -> None:
        with self._only_shared():
            super().redo()

    @contextmanager
    def _only_shared(self) -> Generator[None]:
        """Count what an undone edit restores as typed only if it was in the same place before."""
        before = self.text[: self._typed]
        yield
        pairs = enumerate(zip(before, self.text, strict=False))
        shared = min(len(before), len(self.text))
        self._typed = next((n for n, (old, new) in pairs if old != new), shared)

    def load_text(self, text: str) -> None:
        self._typed = 0
        super().load_text(text)

    def _index(self, location: tuple[int, int]) -> int:
        """Return how many characters precede a location."""
        row, column = location
        return sum(len(self.document.get_line(n)) + 1 for n in range(row)) + column

    def attach_paths(self, pasted: str) -> None:
        """Find the images whose paths were pasted, as soon as `images` is there. Commands keep
        paths."""
        if self.images is None:
            self._unlooked.append(pasted)
        elif not self.text.startswith("!") and self.images.could_hold(pasted):
            self.unread_pastes += 1
            self.run_worker(self._attach_images(self.images, pasted), group="attach")

    async def _attach_images(self, images: PromptImages, pasted: str) -> None:
        """Replace pasted paths of images with the words for them."""
        try:
            words = await images.of_paste(pasted)
            at = self.text.rfind(pasted) if words else -1
            if words and at >= 0:
                end = at + len(pasted.rstrip(" "))  # a terminal ends a dropped path with a blank
                with self._not_typed():
                    self.replace(words, self.location(at), self.location(end))
        finally:
            self.unread_pastes -= 1

    def action_paste(self) -> None:
        """Ctrl+V: paste the system's clipboard, an image or a text."""
        if self.images is None:
            super().action_paste()
        else:
            self.unread_pastes += 1
            self.run_worker(self._paste_clipboard(self.images), group="attach")

    async def _paste_clipboard(self, images: PromptImages) -> None:
        try:
            text, copied = await images.of_clipboard()
            if copied:
                self.add_paste(text)
            elif text:
                self.insert_at_cursor(text)
        finally:
            self.unread_pastes -= 1

    def get_line(self, line_index: int) -> Text:
        """Return a line of the text, with the words of images styled."""
        line = super().get_line(line_index)
        if self.images is not None and "[image " in line.plain:
            style = self.get_component_rich_style("prompt--image", partial=True)
            for match in _WORD.finditer(line.plain):
                if self.images.knows(match[0]):
                    line.stylize(style, *match.span())
        return line

    def action_delete_left(self) -> None:
        """Delete the character before the cursor, or a whole word for a paste or an image."""
        if not self._delete_placeholder(before=True):
            super().action_delete_left()

    def action_delete_right(self) -> None:
        """Like `action_delete_left`, for what follows the cursor."""
        if not self._delete_placeholder(before=False):
            super().action_delete_right()

    def _delete_placeholder(self, *, before: bool) -> bool:
        """Delete such a word at the cursor. True if there was one."""
        row, column = self.cursor_location
        line = self.document.get_line(row)
        at = line[column - 1 : column] == "]" if before else line[column : column + 1] == "["
        if not at or not self.selection.is_empty:
            return False
        for match in _WORD.finditer(line):
            start, end = match.span()
            known = match[0] in self._pastes or (self.images and self.images.knows(match[0]))
            if known and column == (end if before else start):
                self._delete_via_keyboard((row, start), (row, end))
                return True
        return False

    def location(self, index: int) -> tuple[int, int]:
        """Return the row and column of a character."""
        before = self.text[:index]
        return before.count("\n"), index - before.rfind("\n") - 1


class KillRingArea(PlaceholderArea):
    """Keeps what Ctrl+W, Ctrl+U, Ctrl+K and Alt+D delete for `action_yank`, as in a shell's command
    line. Cuts that follow each other directly are one."""

    _cut = ""
    _cut_at: tuple[str, int] | None = None  # text and cursor after the last cut

    def get_cursor_line_start_location(self, smart_home: bool = False) -> tuple[int, int]:  # noqa: ARG002 - as Textual has it
        """Return the start of a line of the text, however many rows of the screen it takes."""
        return self.cursor_location[0], 0

    def get_cursor_line_end_location(self) -> tuple[int, int]:
        row = self.cursor_location[0]
        return row, len(self.document.get_line(row))

    def action_delete_word_left(self) -> None:
        with self._collect_cut():
            super().action_delete_word_left()

    def action_delete_word_right(self) -> None:
        with self._collect_cut():
            super().action_delete_word_right()

    def action_delete_to_start_of_line(self) -> None:
        with self._collect_cut():
            super().action_delete_to_start_of_line()

    async def action_delete_to_end_of_line_or_delete_line(self) -> None:
        with self._collect_cut():
            await super().action_delete_to_end_of_line_or_delete_line()

    def action_yank(self) -> None:
        """Insert the last cut at the cursor. Without one, redo: different programs use the same key
        for the two."""
        if not self._cut:
            self.action_redo()
        else:
            self.insert_at_cursor(self.folded(self._cut))

    @property
    def _cursor(self) -> int:
        """Number of characters before the cursor."""
        return self._index(self.cursor_location)

    @contextmanager
    def _collect_cut(self) -> Generator[None]:
        """Keep what is deleted within the block."""
        text, at = self.text, self._cursor
        yield
        after, start = self.text, self._cursor
        gone = self.unfolded(text[start : start + len(text) - len(after)])
        if not gone:
            return
        if self._cut_at != (text, at):
            self._cut = gone
        else:
            self._cut = gone + self._cut if start < at else self._cut + gone
        self._cut_at = after, start
