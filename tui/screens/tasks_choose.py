"""Which task file to run: those that were found, or one by its path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui.figures import plural
from tui.widgets.plain import one_line


@dataclass(frozen=True, slots=True)
class TaskFileRow:
    """A file with `tasks` checkboxes, of which `done` are set."""

    path: Path
    tasks: int
    done: int


class ChooseTasks(ModalScreen[Path | None]):
    """Dismissed with the path of a task file, or None. A path may be typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "close", "back", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#path"
    DEFAULT_CSS = """
    ChooseTasks { align: center middle; background: $background 55%; }
    ChooseTasks #box {
        width: 84; max-width: 96%; height: auto; max-height: 90%;
        background: $surface; border: round $primary; padding: 0 1;
        border-title-color: $text-primary; border-title-style: bold;
        border-subtitle-color: $text-muted;
    }
    ChooseTasks #path, ChooseTasks #path:focus {
        border: none; height: 1; padding: 0; background: $surface; margin: 0 0 1 0;
    }
    ChooseTasks #files { border: none; padding: 0; background: $surface; max-height: 16; }
    ChooseTasks #none { color: $text-muted; }
    """

    def __init__(self, root: Path, rows: Sequence[TaskFileRow]) -> None:
        super().__init__()
        self._root = root
        self._rows = rows
        self._shown: list[TaskFileRow] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = Content("run a task file")
            box.border_subtitle = Content("enter chooses · esc goes back")
            path = Input(placeholder="Type to filter, or a path", id="path")
            path.cursor_blink = False
            yield path
            files = OptionList(id="files", compact=True)
            files.can_focus = False
            yield files
            yield Static("No Markdown file with checkboxes is near.", id="none", markup=False)

    def on_mount(self) -> None:
        self._draw("")

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
        files.clear_options()
        files.add_options(
            Option(
                Content.assemble(
                    Content(one_line(name)).truncate(44, ellipsis=True, pad=True),
                    (f"  {plural(row.tasks, 'task')}, {row.done} done", "$text-muted"),
                )
            )
            for name, row in found
        )
        files.highlighted = 0 if found else None
        files.display = bool(found)
        self.query_one("#none").display = not found
