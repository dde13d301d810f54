"""The prompt: several lines, with a history and suggestions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from tui.app.prompt_history import PromptHistory
from tui.core.dataclass import dataclass
from tui.core.partly_typed import PartlyTyped, note_of
from tui.ui.widgets.keys import CHAT_KEYS, PROMPT_KEYS, SCREEN_KEYS, bindings
from tui.ui.widgets.vim_area import VimArea

if TYPE_CHECKING:
    from tui.ui.widgets.autocomplete import Suggestions

MAX_ROWS = 8

_CHOOSING = frozenset({"up", "down", "tab", "enter", "escape"})


class Prompt(VimArea):
    """A text area that sends on Enter. Grows to eight rows.

    `value` is the text to send. `suggestions` follow what is typed, once there are any, and get
    keys only while they are open. `take_back` removes the waiting texts from the queue and returns
    them. `stashed` was set aside and returns after the next prompt.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(PROMPT_KEYS),
        *bindings((*CHAT_KEYS, *SCREEN_KEYS)),  # otherwise those that edit text would come first
        # Habits from shells, editors and other agents
        Binding("alt+d,alt+delete,ctrl+delete", "delete_word_right", show=False),
        Binding("alt+backspace,ctrl+backspace", "delete_word_left", show=False),
        Binding("alt+left,alt+b", "cursor_word_left", show=False),
        Binding("alt+right,alt+f", "cursor_word_right", show=False),
        Binding("ctrl+n", "cursor_down", show=False),
        Binding("alt+full_stop", "app.next_effort", show=False),
        Binding("alt+comma", "app.next_effort(-1)", show=False),
        Binding("alt+less_than_sign", "screen.edge(-1)", show=False),
        Binding("alt+greater_than_sign", "screen.edge(1)", show=False),
    ]

    DEFAULT_CSS = f"""
    Prompt, Prompt:focus {{
        height: auto; max-height: {MAX_ROWS}; width: 1fr; border: none; padding: 0;
        background: $background; scrollbar-size-vertical: 1;
    }}
    Prompt .text-area--cursor-line {{ background: transparent; }}
    Prompt .text-area--placeholder {{ color: $text-muted; }}
    Prompt .prompt--image {{ color: $text-accent; }}
    """

    @dataclass
    class Submitted(Message):
        """The person pressed Enter on a text. The receiver calls `accept`."""

        prompt: Prompt
        text: str

    class Edited(Message):
        """The person changed the text."""

    @dataclass
    class Addressed(Message):
        """The text has another recipient. `to` is "!" for a shell, "!!" for one hidden from the
        model, "#" for the notes, "" for the model."""

        to: str

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.set_reactive(TextArea.cursor_blink, False)  # an idle program need not wake up
        self.past = PromptHistory()
        self._set = ""
        self._to = ""
        self._sent: dict[str, int] = {}  # what was sent, and how much of it was typed
        self._send_then = False
        self._chord = False  # Ctrl+X was pressed: Ctrl+E after it opens the editor
        self.stashed = ""
        self.suggestions: Suggestions | None = None
        self.take_back: Callable[[], str] | None = None
        self.leads_by = "app.command"
        """The action that opens what a key of the empty prompt is for, by its name."""

    def put(self, text: str) -> None:
        """Replace the text; the cursor goes to the end."""
        self._set = text
        self.load_text(text)
        self.move_cursor(self.document.end)
        self.on_blur()
        if self.images is not None and "[image " in text:
            self.images.recall(text)

    def put_typed(self, text: str, typed: int) -> None:
        """Like `put`, for a text whose first `typed` characters were typed."""
        self.put(text)
        self._typed = min(typed, len(text))

    def put_whole(self, text: str) -> None:
        """Like `put`, for a text that may be long: it is folded then."""
        self.learn(text, self.past.pasted_in(text))
        self.put(self.folded(text))

    def put_back(self, text: str) -> None:
        """Put a text that could not be sent back, before what was typed since."""
        shown = self.folded(text)
        self.put(f"{shown}\n{self.text}" if self.text else shown)

    def add_paste(self, text: str) -> None:
        super().add_paste(text)
        self._set = self.text
        self.post_message(self.Edited())
        self.on_blur()

    @property
    def submission(self) -> str:
        """`value`, with how much of it was typed."""
        value = self.value
        if self._typed >= len(self.text):
            return value
        folded = not self.text.startswith(value[:1])
        return PartlyTyped(value, 0 if folded else self._typed, folded=folded)

    def accept(self, text: str | None = None) -> None:
        """Remember `text` (by default, everything) as sent, and start over.

        Text that was typed after it since it was submitted stays.
        """
        value = self.value
        taken = value if text is None else text
        typed = self._typed
        self.past.add(taken, [span for span in self.pasted if span[1] <= len(taken)])
        self._sent[taken] = typed
        self.begin_insert()
        self.put(self.folded(value[len(taken) :]) if value.startswith(taken) else "")
        self._typed = min(len(self.text), max(0, typed - len(taken)))
        if text is not None and not self.text:
            self.action_stash()

    async def on_key(self, event: events.Key) -> None:
        if await self._takes(event):
            event.stop()
            event.prevent_default()

    async def _takes(self, event: events.Key) -> bool:
        """True if a key does something here that it does not in any text area."""
        chord, self._chord = self._chord, False
        if self._suggested(event.key):
            return True
        if event.key in self.keymap["send"]:
            if event.key != "enter" or not self._broken_line():
                self._send()
        elif not self.text and event.key in {"home", "end"}:
            await self.run_action(f"screen.edge({-1 if event.key == 'home' else 1})")
        elif not self.text and event.character == "?":
            await self.run_action(f"{self.leads_by}('help')")
        elif not self.text and event.key == "left":
            await self.run_action(f"{self.leads_by}('agents')")
        elif event.key == "ctrl+x" and self.selection.is_empty:
            self._chord = True  # alone it cuts a selection; a line would be lost by habit
        elif event.key == "ctrl+e" and chord:
            await self.run_action("app.edit_prompt")
        else:
            return await self.vim_takes(event)
        return True

    def _broken_line(self) -> bool:
        """Replace a backslash before the cursor by a new line. True if there was one.

        A shell command keeps it, since to a shell it means that the command continues.
        """
        row, column = self.cursor_location
        if not self.selection.is_empty or self.document.get_line(row)[:column][-1:] != "\\":
            return False
        start = column if self.text.startswith("!") else column - 1
        self._replace_via_keyboard("\n", (row, start), (row, column))
        return True

    def _send(self) -> None:
        """Send the text; if a paste may yet become an image, once that is known."""
        self._send_then = bool(self.unread_pastes)
        if not self.unread_pastes and self.text.strip():
            self.post_message(self.Submitted(self, self.submission))

    def watch_unread_pastes(self) -> None:
        if self._send_then and not self.unread_pastes:
            self._send()

    async def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.add_paste(event.text)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        to = next((mark for mark in ("!!", "!") if self.text.startswith(mark)), "")
        if self.text.startswith("# ") and note_of(self.submission):
            to = "#"
        if to != self._to:
            self._to = to
            self.post_message(self.Addressed(to))
        if self.text != self._set:
            self._set = self.text
            self.screen.post_message(self.Edited())  # not by way of what is around it
            self.suggest()

    def on_blur(self) -> None:
        if self.suggestions is not None:
            self.suggestions.close()

    def pick(self, *, send: bool = False) -> None:
        """Put the chosen suggestion into the text; with `send`, send a text that it completes."""
        popup = self.suggestions
        if popup is None or (chosen := popup.chosen) is None:
            return
        whole = popup.kind == "argument" or (popup.kind == "command" and not chosen.needs)
        text, cursor = popup.apply(self.text, self._cursor)
        following = self.text[self._cursor : self._cursor + 1].strip()
        typed = cursor if self._typed >= self._cursor and not following else self._typed
        if send and whole and cursor >= len(text.rstrip()):
            self.put(text.rstrip())
            self._typed = min(typed, len(self.text))
            self.post_message(self.Submitted(self, self.submission))
            return
        self.put(text)
        self._typed = typed
        self.move_cursor(self.location(cursor))
        self.post_message(self.Edited())
        self.suggest()

    def _suggested(self, key: str) -> bool:
        """True if a key was for the suggestions."""
        popup = self.suggestions
        if popup is None or not popup.opened or key not in _CHOOSING:
            return False
        self.suggest()  # a letter may have come since
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

    def suggest(self) -> None:
        """Suggest something for the text, if there is anything by now."""
        if self.suggestions is not None:
            self.suggestions.follow(self.text, self._cursor)

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

    def action_stash(self) -> None:
        """Set the text aside for another one first; a text set aside earlier takes its place."""
        before, self.stashed = self.stashed, self.value
        self._sent[self.stashed] = self._typed
        if before or self.stashed:
            self._recall(before)
            self.post_message(self.Edited())

    async def action_delete_or_quit(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            await self.run_action("app.quit_if_again('Ctrl+D')")

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.put_whole(text)
            self._typed = min(self._sent.get(text, 0), len(self.text))
