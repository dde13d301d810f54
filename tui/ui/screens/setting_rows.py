"""The settings screen's data: reading, changing and undoing settings; their lines in any width; the
texts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from textual.content import Content
from textual.geometry import Region

from tui.core.dataclass import dataclass, replace
from tui.core.errors import ConfigError
from tui.core.formatting import size
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line, visible
from tui.session.writer import make_private
from tui.settings.edit import Changes, SettingsEdit, change_settings, take_back
from tui.settings.fields import heading_of
from tui.settings.layers import LoadedSettings, Table, config_problem, merge, own_table
from tui.settings.schema import Key, Setting, table
from tui.settings.validation import dotted
from tui.ui.screens.external_programs import open_file
from tui.ui.screens.table_screen import cell
from tui.ui.toolkit import themes
from tui.ui.widgets.notices import NoticeText
from tui.ui.widgets.row_list import Part, RowList

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend

WIDE: Final = 100
_VALUE: Final = 80
"""Most cells of a value; its source is shown beside it."""
_LABEL, _KEY = 27, 23
"""Cells of a label with its mark, and of a key; a label has at most 24 characters."""
_SMALL = 50
"""With fewer cells in a row there is no room for the origin."""
MARK: Final = "•"
"""Marks a value that differs from the default."""
_LOOKS: Final = {"user": "text", "project": "secondary"}


@dataclass(frozen=True, slots=True)
class SectionHeading:
    """The line over the settings of a section."""

    section: Key

    @property
    def table(self) -> str:
        """The table in the file, "" for the top."""
        return f"[{dotted(self.section)}]" if self.section else ""

    @property
    def about(self) -> str:
        return heading_of(self.section)


Line: TypeAlias = Setting | SectionHeading


def lines_of(settings: Sequence[Setting]) -> Iterator[Line]:
    """Yield the settings, each section under its heading."""
    above: Key | None = None
    for setting in settings:
        if setting.section != above:
            yield SectionHeading(setting.section)
        above = setting.section
        yield setting


def columns(width: int) -> tuple[int, int, int]:
    """Return the cells of label and key together, of the value, and of the origin. Without room for
    the key or the origin, they are shown under the rows."""
    if width >= WIDE - 2:
        name, origin = _LABEL + _KEY, 26
    else:
        name, origin = _LABEL, 14 if width >= _SMALL else 0
    return name, max(8, min(_VALUE, width - name - origin)), origin


def heading(width: int) -> str:
    """Return the names of the columns."""
    name, value, origin = columns(width)
    head = f"  {'setting':<{_LABEL - 2}}{'key':<{name - _LABEL}}" if name > _LABEL else "  setting"
    return f"{head:<{name}}{'value':<{value}}{'source'[:origin]:<{origin}}"


def line_parts(line: Line, width: int) -> list[Part]:
    """Return one line in `width` cells. Values that differ from the default are marked."""
    if isinstance(line, SectionHeading):
        return [(line.about, "primary"), (f"  {visible(line.table)}", "muted")]
    name, value, origin = columns(width)
    place = line.places[-1] if line.places else None
    key = dotted(line.key[-1:]) if line.label != line.key[-1] else ""
    mark = MARK if line.changed else " "
    return [
        (f"{mark} ", "accent"),
        (f"{cell(visible(line.label), _LABEL - 3)} ", "text"),
        (f"{cell(visible(key), name - _LABEL - 1)} " if name > _LABEL else "", "muted"),
        (f"{cell(visible(line.shown), value - 1)} ", "accent" if line.changed else "muted"),
        (cell(line.origin, origin), _LOOKS.get(place, "warning") if place else "muted"),
    ]


class SettingRows(RowList):
    """Rows whose cursor skips the headings."""

    _lines: Sequence[Line] = ()

    def show_lines(self, lines: Sequence[Line], cursor: int) -> None:
        """Show other lines, with the cursor on this one or the next setting."""
        self._lines = lines
        self.show(len(lines), self._parts, cursor=self._near(cursor, 1))
        self._reveal_heading()

    def move_to(self, index: int) -> None:
        super().move_to(self._near(index, 1 if index >= self.cursor else -1))
        self._reveal_heading()

    def _parts(self, index: int, width: int) -> Sequence[Part]:
        return line_parts(self._lines[index], width)

    def _near(self, index: int, step: int) -> int:
        index = max(0, min(index, len(self._lines) - 1))
        for way in (step, -step):
            at = index
            while 0 <= at < len(self._lines):
                if isinstance(self._lines[at], Setting):
                    return at
                at += way
        return 0

    def _reveal_heading(self) -> None:
        above = self.cursor - 1
        if self.size.height > 1 and above >= 0 and isinstance(self._lines[above], SectionHeading):
            self.scroll_to_region(Region(0, above, 1, 2), animate=False, force=True)


HINTS: Final = (
    ("enter", "change"),
    ("d", "default"),
    ("u", "undo"),
    ("/", "filter"),
    ("e", "edit file"),
    ("esc", "back"),
)
NONE_HINTS: Final = (("esc", "all settings"),)
BROKEN_HINTS: Final = (("e", "edit file"), ("esc", "back"))
FIELD_HINTS: Final = (("enter", "save"), ("esc", "cancel"))
FILTER_HINTS: Final = (("enter", "change"), ("↑ ↓", "choose"), ("esc", "all settings"))

READING: Final = "Reading the settings …"


def settings_title(file: str, settings: Sequence[Setting], width: int) -> Content:
    """Return the head: how many settings differ from their defaults, and the file if there is
    room."""
    changed = sum(setting.changed for setting in settings)
    count = f"{MARK} {changed:,} of {len(settings):,} changed" if changed else "all defaults"
    head = Content.styled("settings", "bold $text-primary")
    for fact in (count if settings else "", visible(file)):
        whole = Content.assemble(head, (f"   {fact}", "$text-muted"))
        head = whole if fact and whole.cell_length <= width else head
    return head


def setting_details(setting: Setting) -> Content:
    """Describe a setting: what it does, its allowed values, when a change takes effect, and what
    overrides it."""
    lines = [
        Content.assemble(
            (visible(setting.label), "bold $text-accent"),
            (f"  {visible(setting.name)}", "$text-muted"),
            (f"  {setting.description.help}", "$foreground"),
        ),
        Content.styled(setting_facts(setting), "$text-muted"),
    ]
    notes = list(setting.notes)
    if setting.hidden:
        notes.append("It contains a key or login, which is hidden.")
    if notes:
        lines.append(Content.styled(visible(" ".join(notes)), "$text-warning"))
    return Content("\n").join(lines)


def setting_facts(setting: Setting) -> str:
    """Return the allowed values, the default, and when a change takes effect."""
    if setting.kind == "fixed":
        return f"enter shows the servers · edit them in the file with e · {setting.when}"
    value = setting.value
    large = setting.key[-1].endswith("bytes") and isinstance(value, int) and value >= 10_000
    parts = [
        setting.allowed,
        f"default: {setting.words_of(setting.default)}",
        f"now: {size(value)}" if large else "",
        setting.when,
    ]
    return " · ".join(filter(None, parts))


def saved_notice(setting: Setting) -> NoticeText:
    """Return the notice for a change, from the setting as it is now."""
    if setting.notes and setting.places[-1:] not in {("user",), ("profile",)} and not setting.adds:
        return NoticeText(
            f"Saved {setting.name}, but another source overrides it.", "warning", setting.notes[0]
        )
    return NoticeText(
        f"{setting.name} is now {setting.shown}: {setting.when}.", "success", "u undoes it."
    )


def empty_text(words: str, problem: ConfigError | None) -> str:
    """Return the text in place of the rows."""
    if problem is not None:
        hint = f"{problem.hint}\n" if problem.hint else ""
        return (
            f"{visible(problem.message)}\n{visible(hint)}\n"
            "Settings can't be changed here until that is fixed. Press e to open the file."
        )
    if words:
        return f"No setting matches “{one_line(words)}”.\nPress Esc to show all."
    return READING


class SettingsState:
    """The program's settings on a front end, changed one at a time.

    `rows` are all of them as last read; `problem` is why they could not be read since.
    """

    def __init__(self, frontend: ScreenFrontend) -> None:
        self.rows: Sequence[Setting] = ()
        self.problem: ConfigError | None = None
        self._frontend, self._services = frontend, frontend.services
        self.folders = self._services.folders
        self._loaded: LoadedSettings | None = None
        self._edits: list[SettingsEdit] = []

    async def read(self) -> None:
        """Read all layers. Any error is `problem` afterwards."""
        from tui.agent.launch import PRACTICE  # noqa: PLC0415 - loaded with the first session

        try:
            self._loaded = await asyncio.to_thread(self._services.read_settings)
        except ConfigError as error:
            self.problem = error
            return
        self.problem = None
        agent, config = self._frontend.conversation.agent, self._loaded.config
        model = agent.models.current if agent and agent.models.current != PRACTICE else config.model
        known = tuple(themes.available(self.folders.config / "themes"))
        self.rows = table(self._loaded, models=(model,), themes=known)

    async def take_up(self) -> None:
        """Read the files and apply the changes: at once if possible, else with the next session.

        Raises:
            HoldfastError: If that fails.
        """
        await self.read()
        if self._loaded is None or self.problem is not None:
            return
        self._services.settings.change_to(self._loaded.config)
        await self._services.use_settings()

    async def save(self, setting: Setting, wanted: Changes) -> NoticeText:
        """Write a change and apply it. Raises HoldfastError; if the change itself was refused,
        nothing is written."""
        edit = await asyncio.to_thread(change_settings, self.folders, wanted, accept=self._accept)
        if edit is None:
            return NoticeText(f"{setting.name} is unchanged.")
        self._edits.append(edit)
        await self.take_up()
        return saved_notice(next((row for row in self.rows if row.key == setting.key), setting))

    async def undo(self) -> NoticeText:
        """Undo the last change. Raises HoldfastError."""
        if not self._edits:
            return NoticeText("Nothing to undo here.")
        await asyncio.to_thread(take_back, self.folders, self._edits[-1])
        self._edits.pop()
        await self.take_up()
        return NoticeText("Undone: the file is back as it was.", "success")

    async def edit_file(self) -> NoticeText:
        """Open config.toml in the person's editor, and apply it if it is valid. Raises
        HoldfastError."""
        file = self.folders.config_file
        try:
            make_private(file.parent)
            file.touch(mode=0o600, exist_ok=True)
            before = file.read_bytes()
        except OSError as error:
            text = f"Can't open {shorten(file)}: {error.strerror or error}."
            return NoticeText(text, "error")
        if problem := await open_file(self._frontend.app, file, "editor"):
            return NoticeText(problem, "error")
        wrong = await asyncio.to_thread(config_problem, file)
        await self.take_up()
        if wrong:
            return NoticeText(wrong.message, "error", wrong.hint or "Press e to open it again.")
        if await asyncio.to_thread(file.read_bytes) == before:
            return NoticeText("Settings unchanged.")
        return NoticeText("The settings are valid.", "success", "Changes that can apply now do.")

    def _accept(self, mine: Table) -> None:
        """Refuse a change that conflicts with the other layers. Raises ConfigError."""
        layers = self._loaded.layers if self._loaded else ()
        merge(
            [
                one if (table := own_table(one, mine)) is None else replace(one, table=table)
                for one in layers
            ]
        )
