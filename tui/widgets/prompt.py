"""Where the person types: several lines, a history, and long pastes folded into a word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from tui.widgets.figures import plural, size
from tui.widgets.keys import PROMPT_KEYS, bindings
from tui.widgets.prompt_history import PromptHistory

if TYPE_CHECKING:
    from tui.widgets.suggesting.popup import Suggestions

MAX_ROWS = 8

FOLD_CHARS = 2000
FOLD_LINES = 20
"""A paste beyond either is shown as one word, and sent whole."""


_CHOOSING = frozenset({"up", "down", "tab", "enter", "escape"})


class Prompt(TextArea):
    """A text area that sends on Enter. Grows to eight rows.

    `value` is what would be sent: pastes that were folded are whole in it. `suggestions` follow
    what is typed, once there are any; only while they are open do they get keys.
    """

    BINDINGS = bindings(PROMPT_KEYS)  # pyright: ignore[reportAssignmentType]

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
    Prompt:light .text-area--cursor, Prompt:dark .text-area--cursor {{
        background: $input-cursor-background; color: $input-cursor-foreground;
    }}
    Prompt .text-area--placeholder {{ color: $text-muted; }}
    """

    @dataclass
    class Submitted(Message):
        """The person pressed Enter on something. Whoever takes it calls `accept`."""

        prompt: Prompt
        text: str

    class Edited(Message):
        """The person changed the text."""

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
        self.suggestions: Suggestions | None = None

    @property
    def value(self) -> str:
        text = self.text
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

    def put_whole(self, text: str) -> None:
        """As `put`, for a text that may be long: it is folded then."""
        self._pastes.clear()
        self.put(self._fold(text))

    def put_back(self, text: str) -> None:
        """Bring a text back that was sent in vain, before whatever was typed since."""
        shown = self._fold(text)
        self.put(f"{shown}\n{self.text}" if self.text else shown)

    def add_paste(self, text: str) -> None:
        """Insert at the cursor, folded into one word when it is long."""
        clean = self._fold(text.replace("\r\n", "\n").replace("\r", "\n"))
        if result := self._replace_via_keyboard(clean, *self.selection):
            self.move_cursor(result.end_location)
            self._set = self.text
            self.post_message(self.Edited())
        if self.suggestions is not None:
            self.suggestions.close()

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
            if self.text.strip():
                self.post_message(self.Submitted(self, self.value))
        elif not self.text and event.key in {"home", "end"}:
            event.stop()
            event.prevent_default()
            await self.run_action(f"screen.scroll('{event.key}')")

    async def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.add_paste(event.text)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
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
        before = text[:cursor]
        self.move_cursor((before.count("\n"), cursor - before.rfind("\n") - 1))
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

    @property
    def _cursor(self) -> int:
        """How many characters stand before the cursor."""
        row, column = self.cursor_location
        return sum(len(self.document.get_line(n)) + 1 for n in range(row)) + column

    def action_newline(self) -> None:
        self._replace_via_keyboard("\n", *self.selection)

    def action_cursor_up(self, select: bool = False) -> None:
        if not select and self.navigator.is_first_wrapped_line(self.cursor_location):
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

    def _fold(self, text: str) -> str:
        """What is shown of a text: a word for it when it is long."""
        if len(text) <= FOLD_CHARS and text.count("\n") < FOLD_LINES:
            return text
        self._pasted += 1
        lines = plural(text.count("\n") + 1, "line")
        word = f"[paste {self._pasted}: {lines}, {size(len(text.encode(errors='replace')))}]"
        self._pastes[word] = text
        return word
