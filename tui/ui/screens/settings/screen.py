"""The screen of the settings: a table, a filter, and a field in the row that is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import ClassVar, Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from tui.core.errors import HoldfastError
from tui.core.paths import shorten
from tui.core.text_cleaning import visible
from tui.settings.edit import Changes, changes_of_text, changes_to_default
from tui.settings.schema import Setting, field_text, search
from tui.ui.screens.picker import PickScreen
from tui.ui.screens.settings import labels
from tui.ui.screens.settings.listing import SettingRows
from tui.ui.screens.settings.port import Port, Said
from tui.ui.screens.settings.rows import WIDE, Line, columns, heading, lines_of
from tui.ui.screens.settings.state import Standing
from tui.ui.toolkit.base_app import Sized
from tui.ui.widgets import key_hints
from tui.ui.widgets.edit_text import EditText
from tui.ui.widgets.keys import SETTINGS_KEYS, bindings
from tui.ui.widgets.notice import NoticeLine
from tui.ui.widgets.pane_title import PaneRule
from tui.ui.widgets.row_list import Rows

FEW: Final = 3
"""So many words are gone through one by one; of more one is chosen from a list."""

_BOUND: Final = frozenset(key for row in SETTINGS_KEYS for key in row.keys.split(","))


class SettingsScreen(Sized, Screen[None]):
    """`words` is what the filter begins with."""

    CSS_PATH = "settings.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(SETTINGS_KEYS),
        Binding("escape,ctrl+c", "close", "back", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#rows"

    def __init__(self, port: Port, words: str = "") -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self._port = port
        self._words = words
        self._standing = Standing(port)
        self._lines: list[Line] = []
        self._before = ""
        self._changing = asyncio.Lock()  # one change at a time, each on what the last one left
        self.notice = NoticeLine(id="notice")

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        with Horizontal(id="filter-row"):
            yield Static("/", id="caret", markup=False)
            words = Input(
                self._words, placeholder="Type to filter", id="filter", select_on_focus=False
            )
            words.cursor_blink = False
            yield words
        yield PaneRule()
        yield Static(id="columns", markup=False)
        with Container(id="list"):
            yield SettingRows(id="rows")
            field = Input(id="field", select_on_focus=False)
            field.cursor_blink = False
            yield field
        yield Static(id="empty", markup=False)
        yield self.notice
        yield PaneRule()
        yield Static(id="details", markup=False)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self.watch(self.rows, "scroll_y", self._place_field, init=False)
        self._draw()
        self.load()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    @property
    def rows(self) -> SettingRows:
        return self.query_one("#rows", SettingRows)

    @property
    def shown(self) -> Sequence[Setting]:
        """The settings as they are filtered now."""
        return [line for line in self._lines if isinstance(line, Setting)]

    @property
    def chosen(self) -> Setting | None:
        """The setting under the cursor."""
        at = self.rows.cursor
        line = self._lines[at] if at < len(self._lines) else None
        return line if isinstance(line, Setting) else None

    # What is shown

    @work(exclusive=True, group="load")
    async def load(self) -> None:
        """Read the settings."""
        await self._standing.read()
        self._draw()

    def _draw(self) -> None:
        if not self.query("#rows"):  # a change that was begun may end after the screen
            return
        kept, field = self.chosen, self.query_one("#filter", Input)
        found = [] if self._standing.problem else search(self._standing.rows, field.value)
        self._lines = lines_of(found)
        keys = [line.key if isinstance(line, Setting) else None for line in self._lines]
        at = keys.index(kept.key) if kept and kept.key in keys else 0
        self.rows.show_lines(self._lines, at)
        self.set_class(not found, "-empty")
        self.set_class(self._standing.problem is not None, "-broken")
        self.query_one("#empty", Static).update(
            Content(labels.nothing(field.value, self._standing.problem))
        )
        file = shorten(self._port.folders.config_file)
        readable = () if self._standing.problem else self._standing.rows
        self.query_one("#title", Static).update(labels.title(file, readable, self.size.width - 2))
        width = max(20, self.rows.row_width or self.size.width - 3)
        self.query_one("#columns", Static).update(Content(heading(width)))
        self._tell()

    def _tell(self) -> None:
        """What the setting under the cursor is, and the keys that work now."""
        if setting := self.chosen:
            self.query_one("#details", Static).update(labels.details(setting))
        hints = labels.HINTS
        if self._standing.problem is not None:
            hints = labels.BROKEN_HINTS
        elif self.has_class("-field"):
            hints = labels.FIELD_HINTS
        elif self.query_one("#filter", Input).has_focus:
            hints = labels.FILTER_HINTS if self._lines else labels.NONE_HINTS
        keys = key_hints.in_rows(hints, self.size.width - 2)
        self.query_one("#keys", Static).update(keys)

    def _say(self, said: Said) -> None:
        self.notice.say(visible(said.text), said.kind, hint=visible(said.hint))

    def _refuse(self, error: HoldfastError) -> None:
        self._say(Said(error.message, "error", error.hint))

    @on(Rows.Moved)
    def _moved(self, event: Rows.Moved) -> None:
        event.stop()
        self._leave_field()
        self.notice.clear()
        self._tell()

    def on_descendant_focus(self) -> None:
        self._tell()

    # The filter

    def on_key(self, event: events.Key) -> None:
        """A letter that is no key of its own begins the filter."""
        letter = event.character
        if self.rows.has_focus and letter and event.is_printable and event.key not in _BOUND:
            event.stop()
            words = self.query_one("#filter", Input)
            words.value += letter
            words.focus()
            words.cursor_position = len(words.value)

    def action_filter(self) -> None:
        self.query_one("#filter", Input).focus()

    @on(Input.Changed, "#filter")
    def _filter_changed(self) -> None:
        self.notice.clear()
        self._draw()

    @on(Input.Submitted, "#filter")
    def _filter_set(self) -> None:
        self.rows.focus()
        self.action_change()

    def action_move(self, step: int) -> None:
        self.rows.action_move(step)

    async def action_close(self) -> None:
        """Esc: the field, the filter, then the screen, once what is being saved counts."""
        words = self.query_one("#filter", Input)
        if self.has_class("-field"):
            self._leave_field()
            self.notice.clear()
        elif words.value or words.has_focus:
            words.value = ""
            self.rows.focus()
        else:
            async with self._changing:
                self.dismiss(None)

    # Changing

    @on(Rows.Chosen)
    def _chosen(self, event: Rows.Chosen) -> None:
        event.stop()
        self.action_change()

    @work(group="change")
    async def action_change(self) -> None:
        """Change the setting under the cursor: the next word, a field, lines, or elsewhere."""
        async with self._changing:
            await self._change()

    async def _change(self) -> None:
        setting = self.chosen
        if setting is None:
            return
        self.notice.clear()
        match setting.kind:
            case "switch" | "choice":
                word = await self._choose(setting)
                if word is not None:
                    await self._try(setting, changes_of_text(setting, word))
            case "list" | "entries":
                await self._edit_lines(setting)
            case "fixed":
                self._port.servers()
            case _:
                self._open_field(setting)

    async def _choose(self, setting: Setting) -> str | None:
        options, now = setting.options, field_text(setting.edited)
        at = options.index(now) if now in options else -1
        if len(options) <= FEW:
            return options[(at + 1) % len(options)]
        rows = [
            [(f"{visible(option):<24}", "text"), ("now" if option == now else "", "accent")]
            for option in options
        ]
        before, theme = self.app.theme, setting.key == ("theme",)  # pyright: ignore[reportUnknownMemberType]
        problems: dict[int, HoldfastError] = {}

        def show(index: int) -> None:
            try:
                if theme:
                    self._port.try_theme(options[index])
            except HoldfastError as error:
                problems[index] = error

        picker = PickScreen(setting.name, rows, cursor=max(0, at), on_move=show, enter="save")
        index = await self.app.push_screen_wait(picker)  # pyright: ignore[reportUnknownMemberType]
        if theme:
            self._port.try_theme(before)
        if index in problems:
            self._refuse(problems[index])
            return None
        return None if index is None else options[index]

    async def _edit_lines(self, setting: Setting) -> None:
        if setting.hidden:
            self._say(Said("An entry holds a key, which is not shown.", hint="e opens the file."))
            return

        async def save(text: str) -> None:
            said = await self._standing.save(setting, changes_of_text(setting, text))
            self._draw()
            self._say(said)

        what = f"{setting.description.help}\n{labels.facts(setting)}"
        modal = EditText(setting.name, what, field_text(setting.edited), save)
        await self.app.push_screen_wait(modal)  # pyright: ignore[reportUnknownMemberType]

    def _open_field(self, setting: Setting) -> None:
        field = self.query_one("#field", Input)
        self._before = "" if setting.hidden else field_text(setting.edited)
        field.placeholder = "not shown; type it anew" if setting.hidden else ""
        field.value = self._before
        field.cursor_position = len(field.value)
        self.add_class("-field")
        self._place_field()
        field.focus()
        self._tell()

    def _place_field(self) -> None:
        """Over the value of the row that is changed."""
        if not self.has_class("-field"):
            return
        rows, field = self.rows, self.query_one("#field", Input)
        name, value, origin = columns(rows.row_width)
        field.styles.offset = (name, rows.cursor - round(rows.scroll_y))
        field.styles.width = value + origin

    def _leave_field(self) -> None:
        if self.has_class("-field"):
            self.remove_class("-field")
            self.rows.focus()
            self._tell()

    @on(Input.Blurred, "#field")
    def _field_left(self) -> None:
        if self.is_current:
            self._leave_field()

    @on(Input.Submitted, "#field")
    async def _field_set(self, event: Input.Submitted) -> None:
        setting = self.chosen
        if setting is None or event.value == self._before:
            done = True
        else:
            async with self._changing:
                done = await self._try(setting, changes_of_text(setting, event.value))
        if done:
            self._leave_field()

    @work(group="change")
    async def action_reset(self) -> None:
        """Take the setting under the cursor out of the file."""
        async with self._changing:
            setting = self.chosen
            if setting is None or setting.kind == "fixed":
                return
            if setting.own is None:
                self._say(Said(f"{setting.name} is not set in your file."))
            else:
                await self._try(setting, changes_to_default(setting))

    @work(group="change")
    async def action_undo(self) -> None:
        """Take back the last change that was made here."""
        async with self._changing:
            await self._tell_of(self._standing.undo())

    @work(group="change")
    async def action_edit_file(self) -> None:
        """The file in the person's editor."""
        async with self._changing:
            await self._tell_of(self._edit_file())

    async def _edit_file(self) -> Said:
        said = await self._port.edit_file()
        await self._standing.take_up()
        return said

    async def _try(self, setting: Setting, wanted: Changes) -> bool:
        """Save a change and say what came of it. False where it was refused."""
        return await self._tell_of(self._standing.save(setting, wanted))

    async def _tell_of(self, work: Awaitable[Said]) -> bool:
        try:
            said = await work
        except HoldfastError as error:
            self._refuse(error)
            return False
        finally:
            self._draw()
        self._say(said)
        return True
