"""Which task file to run: those that were found, or one by its path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui.core.formatting import plural
from tui.core.text_cleaning import one_line
from tui.ui.widgets.dialog import Dialog

_NONE: Final = "No Markdown file with checkboxes is near. The path of one can be typed."


@dataclass(frozen=True, slots=True)
class TaskFileRow:
    """A file with `tasks` checkboxes, of which `done` are set."""

    path: Path
    tasks: int
    done: int


class ChooseTasks(Dialog[Path | None]):
    """Dismissed with the path of a task file, or None. A path may be typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "close", "back", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#path"
    DEFAULT_CSS = """
    ChooseTasks #path-row { height: 1; margin: 0 0 1 0; }
    ChooseTasks #caret { width: 2; color: $text-primary; text-style: bold; }
    ChooseTasks #path, ChooseTasks #path:focus {
        width: 1fr; border: none; height: 1; padding: 0; background: $surface;
        background-tint: $background 0%;
    }
    ChooseTasks #files { border: none; padding: 0; background: $surface; }
    ChooseTasks #files > .option-list--option { padding: 0 1; }
    ChooseTasks #none { color: $text-muted; }
    """

    def __init__(self, root: Path, rows: Sequence[TaskFileRow]) -> None:
        super().__init__()
        self._root = root
        self._rows = rows
        self._shown: list[TaskFileRow] = []

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "run a task file", ("enter", "choose"), ("esc", "back")):
            with Horizontal(id="path-row"):
                yield Static("❯", id="caret", markup=False)
                path = Input(placeholder="Type to filter, or a path", id="path")
                path.cursor_blink = False
                yield path
            files = OptionList(id="files", compact=True)
            files.can_focus = False
            yield files
            yield Static(_NONE, id="none", markup=False)

    def on_mount(self) -> None:
        self.call_after_refresh(self._draw, "")

    def on_resize(self) -> None:
        self._draw(self.query_one("#path", Input).value)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_move(self, by: int) -> None:
        files = self.query_one("#files", OptionList)
        if self._shown:
            files.highlighted = ((files.highlighted or 0) + by) % len(self._shown)

    @on(Input.Changed, "#path")
    def _typed(self, event: Input.Changed) -> None:
        self._draw(event.value)

    @on(Input.Submitted, "#path")
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        at = self.query_one("#files", OptionList).highlighted
        if at is not None and at < len(self._shown):
            self.dismiss(self._shown[at].path)
        elif typed := event.value.strip():
            self.dismiss(self._root / Path(typed).expanduser())

    @on(OptionList.OptionSelected, "#files")
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._shown[event.option_index].path)

    def _draw(self, wanted: str) -> None:
        named = [(str(row.path.relative_to(self._root)), row) for row in self._rows]
        found = [(name, row) for name, row in named if wanted.strip().lower() in name.lower()]
        self._shown = [row for _, row in found]
        files = self.query_one("#files", OptionList)
        column = max(12, min(60, self.size.width - 36))
        files.clear_options()
        files.add_options(
            Option(
                Content.assemble(
                    Content(one_line(name)).truncate(column, ellipsis=True, pad=True),
                    (f"  {plural(row.tasks, 'task')}, {row.done} done", "$text-muted"),
                )
            )
            for name, row in found
        )
        files.highlighted = 0 if found else None
        files.display = bool(found)
        files.styles.height = min(len(found), self.rows_left(2))
        nothing = self.query_one("#none", Static)
        nothing.display = not found
        typed = one_line(wanted.strip())
        said = f"None of those found is so named: Enter takes {typed} as a path."
        nothing.update(Content(said if typed else _NONE))
