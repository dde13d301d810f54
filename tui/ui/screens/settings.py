"""The settings screen: a table, a filter, and a field in the row being changed.

`tui.settings.schema` describes the settings; `tui.settings.edit` writes the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.widgets import Input, Static

from tui.app.reports import Row
from tui.core.errors import HoldfastError
from tui.core.paths import shorten
from tui.core.text_cleaning import visible
from tui.settings.edit import Changes, changes_of_text, changes_to_default
from tui.settings.schema import Setting, field_text, search
from tui.ui.screens import setting_rows
from tui.ui.screens.panel import Panel
from tui.ui.screens.picker import ModelsScreen, pick_theme
from tui.ui.screens.setting_rows import Line, SettingRows, SettingsState
from tui.ui.screens.table_screen import TableScreen
from tui.ui.widgets.dialog import TextField
from tui.ui.widgets.keys import SETTINGS_KEYS, bindings
from tui.ui.widgets.notices import NoticeText
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.questions import EditText

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend

NARROW: Final = 72
"""Columns of a screen below which a choice is explained under the list."""
_MODELS: Final = {("model",), ("small_model",)}
"""Settings whose choices are the models that are known, or any other name."""
_BOUND: Final = frozenset(key for row in SETTINGS_KEYS for key in row.keys.split(","))


class ChoicesScreen(Panel[str]):
    """The choices of a setting, each with what it does. Dismissed with one, or None."""

    LEAVE = "back"
    KEYS: ClassVar[Mapping[str, str]] = {"save": "enter"}

    def __init__(self, setting: Setting, now: str) -> None:
        marks = {now: ("●", "primary")}
        rows = [
            Row(
                visible(option) or "default",
                (about,) if (about := setting.choices.get(option, "")) else (),
                option,
                *marks.get(option, ("○", "muted")),
                (about,),
                frozenset({"save"}),
            )
            for option in setting.options
        ]
        super().__init__(rows, title=setting.label, classes="")
        self._first = list(setting.options).index(now) if now in setting.options else 0

    def on_mount(self) -> None:
        self.call_after_refresh(self.rows.move_to, self._first)

    def about(self, row: Row) -> Sequence[str]:
        """Explain below what there is no room for beside a choice."""
        return row.about if self.size.width < NARROW else ()

    def row_chosen(self, index: int) -> None:  # noqa: ARG002 - the cursor is there
        if self.row is not None:
            self.dismiss(self.row.key)


class SettingsScreen(TableScreen[None]):
    """The settings as a table. The filter starts with `words`."""

    CSS_PATH = "settings.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(SETTINGS_KEYS),
        Binding("escape,ctrl+c", "close", "back", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#rows"

    def __init__(self, frontend: ScreenFrontend, words: str = "") -> None:
        super().__init__()
        self._frontend, self._words = frontend, words
        self._standing = SettingsState(frontend)
        self._lines: list[Line] = []
        self._before = ""
        self._changing = asyncio.Lock()  # one change at a time, each based on the last

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield self.filter_row("/", "Filter", self._words, select_on_focus=False)
        yield PaneRule()
        yield Static(id="columns", markup=False)
        with Container(id="list"):
            yield SettingRows(id="rows")
            yield TextField(id="field", select_on_focus=False)
        yield Static(id="empty", markup=False)
        yield self.notice
        yield PaneRule(id="keys-rule")
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
        if not self.query("#rows"):  # a change may end after the screen
            return
        before, words = self.chosen, self.filter_field.value
        settings = () if self._standing.problem else self._standing.rows
        matches = search(settings, words)
        self._lines = list(setting_rows.lines_of(matches))
        keys = [line.key if isinstance(line, Setting) else None for line in self._lines]
        at = keys.index(before.key) if before and before.key in keys else 0
        self.rows.show_lines(self._lines, at)
        self.show_empty("" if matches else setting_rows.empty_text(words, self._standing.problem))
        self.set_class(self._standing.problem is not None, "-broken")
        file, width = shorten(self._standing.folders.config_file), self.size.width
        self.put("title", setting_rows.settings_title(file, settings, width - 2))
        cells = max(20, self.rows.row_width or width - 3)
        self.put("columns", Content(setting_rows.heading(cells)))
        self._explain()

    def _explain(self) -> None:
        """Show the details of the setting under the cursor, and the keys that work now."""
        if setting := self.chosen:
            self.put("details", setting_rows.setting_details(setting))
        hints = setting_rows.HINTS
        if self._standing.problem is not None:
            hints = setting_rows.BROKEN_HINTS
        elif self.has_class("-field"):
            hints = setting_rows.FIELD_HINTS
        elif self.filter_field.has_focus:
            hints = setting_rows.FILTER_HINTS if self._lines else setting_rows.NONE_HINTS
        self.show_keys(hints)

    def _say(self, notice: NoticeText) -> None:
        self.notice.say(visible(notice.text), notice.kind, hint=visible(notice.hint))

    def refuse(self, error: HoldfastError) -> None:
        self._say(NoticeText(error.message, "error", error.hint))

    def row_moved(self, index: int) -> None:  # noqa: ARG002
        self._leave_field()
        self.notice.clear()
        self._explain()

    def on_descendant_focus(self) -> None:
        self._explain()

    # The filter

    def on_key(self, event: events.Key) -> None:
        """Start the filter with a letter that is not a key here."""
        letter = event.character
        if self.rows.has_focus and letter and event.is_printable and event.key not in _BOUND:
            event.stop()
            words = self.filter_field
            words.value += letter
            words.focus()
            words.cursor_position = len(words.value)

    def action_filter(self) -> None:
        self.filter_field.focus()

    @on(Input.Changed, "#filter")
    def _filter_changed(self) -> None:
        self.notice.clear()
        self._draw()

    @on(Input.Submitted, "#filter")
    def _filter_set(self) -> None:
        self.rows.focus()
        self.action_change()

    async def action_close(self) -> None:
        """Esc: close the field, the filter, then the screen, once a change being saved is
        applied."""
        words = self.filter_field
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

    def row_chosen(self, index: int) -> None:  # noqa: ARG002
        self.action_change()

    @work(group="change")
    async def action_change(self) -> None:
        """Change the setting under the cursor: switch it, choose, type, or go elsewhere."""
        async with self._alone():
            await self._change()

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Allow one change at a time, and no key to close the screen before it is saved."""
        async with self._changing:
            self.awaited = True
            try:
                yield
            finally:
                self.awaited = False

    async def _change(self) -> None:
        setting = self.chosen
        if setting is None:
            return
        self.notice.clear()
        match "choice" if setting.key in _MODELS else setting.kind:
            case "switch" | "choice":
                try:
                    word = await self._choose(setting)
                except HoldfastError as error:
                    self.refuse(error)
                    return
                if word is not None:
                    await self._try(setting, changes_of_text(setting, word))
            case "list" | "entries":
                await self._edit_lines(setting)
            case "fixed":
                if work := self._frontend.view("mcp", ""):
                    self._frontend.app.run_worker(work, group="command")
            case _:
                self._open_field(setting)

    async def _choose(self, setting: Setting) -> str | None:
        """Return the chosen option. Raises HoldfastError for a theme that cannot be shown."""
        if setting.key == ("theme",):
            return await pick_theme(self._frontend.app, setting.name, enter="save")
        now = field_text(setting.edited)
        if setting.key in _MODELS:
            return await self._choose_model(setting, now)
        if setting.kind == "switch":
            return next(option for option in setting.options if option != now)
        return await self._frontend.app.push_screen_wait(ChoicesScreen(setting, now))

    async def _choose_model(self, setting: Setting, now: str) -> str | None:
        """Return a model of the list of /model, or a name that was typed."""
        from tui.app.models import listed  # noqa: PLC0415 - on demand

        services = self._frontend.services
        rows = await listed(services, await asyncio.to_thread(services.whole_name, now))
        picker = ModelsScreen(rows, title=setting.label, enter="save")
        return await self._frontend.app.push_screen_wait(picker)

    async def _edit_lines(self, setting: Setting) -> None:
        if setting.hidden:
            self._say(
                NoticeText(
                    "This entry contains a key, which is hidden.", hint="Press e to open the file."
                )
            )
            return

        async def save(text: str) -> None:
            notice = await self._standing.save(setting, changes_of_text(setting, text))
            self._draw()
            self._say(notice)

        what = f"{setting.description.help}\n{setting_rows.setting_facts(setting)}"
        modal = EditText(f"{setting.label}: {setting.name}", what, field_text(setting.edited), save)
        await self.app.push_screen_wait(modal)  # pyright: ignore[reportUnknownMemberType]

    def _open_field(self, setting: Setting) -> None:
        field = self.query_one("#field", Input)
        self._before = "" if setting.hidden else field_text(setting.edited)
        field.placeholder = "hidden; type a new value" if setting.hidden else ""
        field.value = self._before
        field.cursor_position = len(field.value)
        self.add_class("-field")
        self._place_field()
        field.focus()
        self._explain()

    def _place_field(self) -> None:
        """Place the field over the value of the row being changed."""
        if not self.has_class("-field"):
            return
        rows, field = self.rows, self.query_one("#field", Input)
        name, value, origin = setting_rows.columns(rows.row_width)
        field.styles.offset = (name, rows.cursor - round(rows.scroll_y))
        field.styles.width = value + origin

    def _leave_field(self) -> None:
        if self.has_class("-field"):
            self.remove_class("-field")
            self.rows.focus()
            self._explain()

    @on(Input.Blurred, "#field")
    def _field_blurred(self) -> None:
        if self.is_current:
            self._leave_field()

    @on(Input.Submitted, "#field")
    async def _field_set(self, event: Input.Submitted) -> None:
        setting = self.chosen
        if setting is None or event.value == self._before:
            done = True
        else:
            async with self._alone():
                done = await self._try(setting, changes_of_text(setting, event.value))
        if done:
            self._leave_field()

    @work(group="change")
    async def action_reset(self) -> None:
        """Remove the setting under the cursor from the file."""
        async with self._alone():
            setting = self.chosen
            if setting is None or setting.kind == "fixed":
                return
            if setting.own is None:
                self._say(NoticeText(f"{setting.name} isn't set in your file."))
            else:
                await self._try(setting, changes_to_default(setting))

    @work(group="change")
    async def action_undo(self) -> None:
        """Undo the last change made here."""
        async with self._alone():
            await self._report(self._standing.undo())

    @work(group="change")
    async def action_edit_file(self) -> None:
        """Open the file in the person's editor."""
        async with self._alone():
            await self._report(self._standing.edit_file())

    async def _try(self, setting: Setting, wanted: Changes) -> bool:
        """Save a change and show the outcome. False if it was refused."""
        return await self._report(self._standing.save(setting, wanted))

    async def _report(self, work: Awaitable[NoticeText]) -> bool:
        try:
            notice = await work
        except HoldfastError as error:
            self.refuse(error)
            return False
        finally:
            self._draw()
        self._say(notice)
        return True
