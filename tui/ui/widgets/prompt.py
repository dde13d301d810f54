"""Where the person types: several lines, a history; long pastes and images are each a word."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from tui.app.prompt_history import PromptHistory
from tui.core.formatting import plural, size
from tui.ui.widgets.keys import PROMPT_KEYS, bindings
from tui.ui.widgets.kill_ring import KillRingArea

if TYPE_CHECKING:
    from tui.ui.widgets.autocomplete import Suggestions

MAX_ROWS = 8

FOLD_CHARS = 2000
FOLD_LINES = 20
"""A paste beyond either is shown as one word, and sent whole."""


_CHOOSING = frozenset({"up", "down", "tab", "enter", "escape"})
_WORD = re.compile(r"\[(?:image|paste) \d+: [^\[\]\n]+\]")


class Attachments(Protocol):
    """Who knows the images behind words; `tui.app.attachments.PromptImages` says what
    each does."""

    def knows(self, word: str) -> bool: ...
    def could_hold(self, text: str) -> bool: ...
    def recall(self, text: str) -> None: ...
    async def of_paste(self, text: str) -> str | None: ...
    async def of_clipboard(self) -> tuple[str, bool]: ...


class Prompt(KillRingArea):
    """A text area that sends on Enter. Grows to eight rows.

    `value` is what would be sent: pastes that were folded are whole in it, images are the words
    for them. `images` knows those, once there is a session to send them to. `suggestions` follow
    what is typed, once there are any; only while they are open do they get keys. `take_back`
    takes what waits to be sent out of the queue, and is the text of it.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"prompt--image"}

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(PROMPT_KEYS),
        Binding("alt+left", "cursor_word_left", show=False),  # habits from elsewhere
        Binding("alt+right", "cursor_word_right", show=False),
        Binding("ctrl+b", "cursor_left", show=False),
    ]

    DEFAULT_CSS = f"""
    Prompt, Prompt:focus {{
        height: auto;
        max-height: {MAX_ROWS};
        width: 1fr;
        border: none;
        padding: 0;
        background: $background;
        scrollbar-size-vertical: 1;
    }}
    Prompt .text-area--cursor-line {{ background: transparent; }}
    Prompt .text-area--placeholder {{ color: $text-muted; }}
    Prompt .prompt--image {{ color: $text-accent; }}
    """

    @dataclass
    class Submitted(Message):
        """The person pressed Enter on something. Whoever takes it calls `accept`."""

        prompt: Prompt
        text: str

    class Edited(Message):
        """The person changed the text."""

    @dataclass
    class Addressed(Message):
        """Another one is meant now. `to`: "!" a shell, "!!" one of which the model is told
        nothing, "" the model."""

        to: str

    class QuitAsked(Message):
        """Ctrl+D in an empty prompt."""

    def __init__(
        self,
        history: PromptHistory | None = None,
        *,
        placeholder: str = "",
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(placeholder=placeholder, id=id, highlight_cursor_line=False)
        self.set_reactive(TextArea.cursor_blink, False)  # an idle program wakes up for nothing
        self.past = history or PromptHistory()
        self._pastes: dict[str, str] = {}
        self._pasted = 0
        self._set = ""
        self._to = ""
        self._looking = 0  # so many pastes may yet become images
        self._send_then = False
        self.suggestions: Suggestions | None = None
        self._images: Attachments | None = None
        self._unlooked: list[str] = []  # pasted before it was known who attaches
        self.take_back: Callable[[], str] | None = None

    @property
    def images(self) -> Attachments | None:
        return self._images

    @images.setter
    def images(self, images: Attachments | None) -> None:
        self._images = images
        unlooked, self._unlooked = self._unlooked, []
        for pasted in unlooked:
            self.attach_paths(pasted)

    @property
    def value(self) -> str:
        return self.unfolded(self.text)

    def unfolded(self, text: str) -> str:
        """The text of what is shown: pastes whole."""
        for word, paste in self._pastes.items():
            text = text.replace(word, paste)
        return text

    def put(self, text: str) -> None:
        """Replace what is typed; the cursor goes to the end."""
        self._set = text
        self.load_text(text)
        self.move_cursor(self.document.end)
        if self.suggestions is not None:
            self.suggestions.close()
        if self.images is not None and "[image " in text:
            self.images.recall(text)

    def put_whole(self, text: str) -> None:
        """As `put`, for a text that may be long: it is folded then."""
        self._pastes.clear()
        self.put(self.folded(text))

    def put_back(self, text: str) -> None:
        """Bring a text back that was sent in vain, before whatever was typed since."""
        shown = self.folded(text)
        self.put(f"{shown}\n{self.text}" if self.text else shown)

    def add_paste(self, text: str) -> None:
        """Insert at the cursor, folded into one word when it is long.

        Paths of images are replaced by the words for them, once they have been read.
        """
        plain = text.replace("\r\n", "\n").replace("\r", "\n")
        clean = self.folded(plain)
        if clean == plain:
            self.attach_paths(clean)
        if result := self._replace_via_keyboard(clean, *self.selection):
            self.move_cursor(result.end_location)
            self._set = self.text
            self.post_message(self.Edited())
        if self.suggestions is not None:
            self.suggestions.close()

    def attach_paths(self, pasted: str) -> None:
        """Find the images whose paths were pasted, as soon as somebody can. Commands keep paths."""
        if self.images is None:
            self._unlooked.append(pasted)
        elif not self.text.startswith("!") and self.images.could_hold(pasted):
            self._looking += 1
            self.run_worker(self._attach_images(self.images, pasted), group="attach")

    def accept(self, text: str | None = None) -> None:
        """`text` (else all there is) has been taken: remember it and begin anew.

        What was typed behind it since it was submitted stays.
        """
        value = self.value
        taken = value if text is None else text
        self.past.add(taken)
        self._pastes.clear()
        self.put(value[len(taken) :] if value.startswith(taken) else "")

    async def on_key(self, event: events.Key) -> None:
        if self._suggested(event.key):
            event.stop()
            event.prevent_default()
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            if not self._broken_line():
                self._send()
        elif event.key == "alt+d":  # else its letter would be typed
            event.stop()
            event.prevent_default()
            self.action_delete_word_right()
        elif not self.text and event.key in {"home", "end"}:
            event.stop()
            event.prevent_default()
            await self.run_action(f"screen.scroll('{event.key}')")
        elif not self.text and event.character == "?":
            event.stop()
            event.prevent_default()
            await self.run_action("app.command('help')")

    def _broken_line(self) -> bool:
        """Whether a backslash stood before the cursor: there is a new line in its place then.
        A shell command keeps it, since to a shell it says that the command goes on."""
        row, column = self.cursor_location
        if not self.selection.is_empty or self.document.get_line(row)[:column][-1:] != "\\":
            return False
        start = column if self.text.startswith("!") else column - 1
        self._replace_via_keyboard("\n", (row, start), (row, column))
        return True

    def _send(self) -> None:
        """Send what stands here; while a paste may yet become an image, once that is known."""
        self._send_then = bool(self._looking)
        if not self._looking and self.text.strip():
            self.post_message(self.Submitted(self, self.value))

    async def _attach_images(self, images: Attachments, pasted: str) -> None:
        """Put the words for images in the place of their pasted paths."""
        try:
            words = await images.of_paste(pasted)
            at = self.text.rfind(pasted) if words else -1
            if words and at >= 0:
                end = at + len(pasted.rstrip(" "))  # a terminal ends a dropped path with a blank
                self.replace(words, self._place(at), self._place(end))
        finally:
            self._looking -= 1
            if self._send_then and not self._looking:
                self._send()

    def action_paste(self) -> None:
        """Ctrl+V: what the system's clipboard holds, an image or a text."""
        if self.images is None:
            super().action_paste()
        else:
            self.run_worker(self._paste_clipboard(self.images), group="attach")

    async def _paste_clipboard(self, images: Attachments) -> None:
        self._looking += 1
        try:
            text, copied = await images.of_clipboard()
        finally:
            self._looking -= 1
        if copied:
            self.add_paste(text)
        elif text and (result := self._replace_via_keyboard(text, *self.selection)):
            self.move_cursor(result.end_location)
        if self._send_then and not self._looking:
            self._send()

    def get_line(self, line_index: int) -> Text:
        """A line of the text; the words of images look like what they are."""
        line = super().get_line(line_index)
        if self.images is not None and "[image " in line.plain:
            style = self.get_component_rich_style("prompt--image", partial=True)
            for found in _WORD.finditer(line.plain):
                if self.images.knows(found[0]):
                    line.stylize(style, *found.span())
        return line

    def action_delete_left(self) -> None:
        """Delete the character before the cursor; a word for a paste or an image as a whole."""
        if not self._delete_word(before=True):
            super().action_delete_left()

    def action_delete_right(self) -> None:
        """As `action_delete_left`, of what stands behind the cursor."""
        if not self._delete_word(before=False):
            super().action_delete_right()

    def _delete_word(self, *, before: bool) -> bool:
        """Whether such a word stood at the cursor; it is gone then."""
        row, column = self.cursor_location
        line = self.document.get_line(row)
        at = line[column - 1 : column] == "]" if before else line[column : column + 1] == "["
        if not at or not self.selection.is_empty:
            return False
        for found in _WORD.finditer(line):
            start, end = found.span()
            if column == (end if before else start) and self._is_placeholder(found[0]):
                self._delete_via_keyboard((row, start), (row, end))
                return True
        return False

    def _is_placeholder(self, word: str) -> bool:
        """Whether a word stands for a paste or an image."""
        return word in self._pastes or (self.images is not None and self.images.knows(word))

    async def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.add_paste(event.text)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        to = next((mark for mark in ("!!", "!") if self.text.startswith(mark)), "")
        if to != self._to:
            self._to = to
            self.post_message(self.Addressed(to))
        if self.text != self._set:
            self._set = self.text
            self.post_message(self.Edited())
            self._follow()

    def on_blur(self) -> None:
        if self.suggestions is not None:
            self.suggestions.close()

    def pick(self, *, send: bool = False) -> None:
        """Put the chosen suggestion into the text; with `send`, send what is complete with it."""
        popup = self.suggestions
        if popup is None or (chosen := popup.chosen) is None:
            return
        whole = popup.kind == "argument" or (popup.kind == "command" and not chosen.needs)
        text, cursor = popup.apply(self.text, self._cursor)
        if send and whole and cursor >= len(text.rstrip()):
            self.put(text.rstrip())
            self.post_message(self.Submitted(self, self.value))
            return
        self.put(text)
        self.move_cursor(self._place(cursor))
        self.post_message(self.Edited())
        self._follow()

    def _suggested(self, key: str) -> bool:
        """Whether a key was for the suggestions."""
        popup = self.suggestions
        if popup is None or not popup.opened or key not in _CHOOSING:
            return False
        self._follow()  # a letter may have come since
        if not popup.opened:
            return False
        if key == "escape":
            popup.dismiss()
        elif not popup.fresh:
            return key == "tab"
        elif key in {"up", "down"}:
            popup.move(1 if key == "down" else -1)
        elif key == "enter" and popup.kind == "argument" and not popup.meant:
            return False
        else:
            self.pick(send=key == "enter")
        return True

    def _follow(self) -> None:
        if self.suggestions is not None:
            self.suggestions.follow(self.text, self._cursor)

    def _place(self, index: int) -> tuple[int, int]:
        """The row and column of a character."""
        before = self.text[:index]
        return before.count("\n"), index - before.rfind("\n") - 1

    def action_newline(self) -> None:
        self._replace_via_keyboard("\n", *self.selection)

    def action_cursor_up(self, select: bool = False) -> None:
        if not select and self.navigator.is_first_wrapped_line(self.cursor_location):
            if self.take_back and (waiting := self.take_back()):
                self.put_back(waiting)
                return
            self._recall(self.past.back(self.value))
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        if not select and self.navigator.is_last_wrapped_line(self.cursor_location):
            self._recall(self.past.forward(self.value))
        else:
            super().action_cursor_down(select)

    def action_delete_or_quit(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.QuitAsked())

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.put_whole(text)

    def folded(self, text: str) -> str:
        """What is shown of a text: a word for it when it is long."""
        if len(text) <= FOLD_CHARS and text.count("\n") < FOLD_LINES:
            return text
        self._pasted += 1
        lines = plural(text.removesuffix("\n").count("\n") + 1, "line")
        word = f"[paste {self._pasted}: {lines}, {size(len(text.encode(errors='replace')))}]"
        self._pastes[word] = text
        return word
