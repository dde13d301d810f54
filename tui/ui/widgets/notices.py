"""Above the prompt: a notice, queued messages, the to-do list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from tui.core.dataclass import dataclass
from tui.core.text_cleaning import one_line
from tui.ui.widgets.keys import in_a_row
from tui.ui.widgets.panes import TextLines, hanging

Kind: TypeAlias = Literal["info", "warning", "error", "success"]

_NOTICE_MARKS: dict[Kind, tuple[str, str]] = {
    "info": ("·", "$text-secondary"),
    "success": ("✓", "$text-success"),
    "warning": ("!", "$text-warning"),
    "error": ("✗", "$text-error"),
}
_MARK = 2
"""Cells of a mark."""


@dataclass(frozen=True, slots=True)
class NoticeText:
    """The text of a notice line."""

    text: str
    kind: Kind = "info"
    hint: str = ""


def notice_lines(notice: NoticeText, width: int) -> list[Content]:
    """Return a notice in rows of `width` cells, its text beside its mark."""
    glyph, style = _NOTICE_MARKS[notice.kind]
    text = Content.assemble(
        (one_line(notice.text), style if notice.kind in {"warning", "error"} else "$foreground"),
        (f" {one_line(notice.hint)}" if notice.hint else "", "$text-muted"),
    )
    return hanging(Content.styled(f"{glyph} ", f"bold {style}"), text.wrap(max(8, width - _MARK)))


class NoticeLine(TextLines):
    """Hidden when there is nothing to say. At most three rows, five where there is
    room; the text is never markup."""

    DEFAULT_CSS = """
    NoticeLine { height: auto; max-height: 3; width: 1fr; padding: 0 1; display: none; }
    NoticeLine.-shown { display: block; }
    """

    content: reactive[Content] = reactive(Content(""), layout=True)

    def say(self, text: str, kind: Kind = "info", *, hint: str = "") -> None:
        """Show a text until the next one, or until `clear`."""
        glyph, style = _NOTICE_MARKS[kind]
        self.content = Content.assemble(
            (f"{glyph} ", f"bold {style}"),
            (one_line(text), style if kind in {"warning", "error"} else "$foreground"),
            (f" {one_line(hint)}" if hint else "", "$text-muted"),
        )
        self.add_class("-shown")

    def clear(self) -> None:
        self.remove_class("-shown")

    @property
    def text(self) -> str:
        """The shown text, "" if there is none."""
        return self.content.plain if self.has_class("-shown") else ""

    def lines(self, width: int) -> list[Content]:
        """Return the text beside its mark."""
        mark, text_shown = self.content[:_MARK], self.content[_MARK:]
        return hanging(mark, text_shown.wrap(max(8, width - _MARK)))


ROWS = 3
_KEY = (("↑", "edit"),)


class QueuedPrompts(Widget):
    """One row per text, at most three; hidden if nothing waits. The first row names the key that
    takes them back into the prompt, unless that is done elsewhere (`key`). The texts in `going` are
    on their way to another process."""

    key = True

    DEFAULT_CSS = f"""
    QueuedPrompts {{ height: auto; max-height: {ROWS}; width: 1fr; padding: 0 1; display: none; }}
    QueuedPrompts.-some {{ display: block; }}
    """

    texts: reactive[tuple[str, ...]] = reactive((), layout=True)
    going: reactive[tuple[str, ...]] = reactive((), layout=True)

    def watch_texts(self) -> None:
        self.set_class(bool(self.texts or self.going), "-some")

    def watch_going(self) -> None:
        self.watch_texts()

    def render(self) -> Content:
        width = max(1, self.content_size.width)
        every = [*(("queued ", text) for text in self.texts)]
        every += (("sending ", text) for text in self.going)
        shown = every if len(every) <= ROWS else every[: ROWS - 1]
        rows = [
            Content.assemble((word, "$text-secondary"), (one_line(text), "$text-muted"))
            for word, text in shown
        ]
        key = in_a_row(_KEY)
        room = width - key.cell_length - 1
        if rows and room > 0 and self.key:
            rows[0] = Content.assemble(rows[0].truncate(room, ellipsis=True, pad=True), " ", key)
        rows = [row.truncate(width, ellipsis=True) for row in rows]
        if more := len(every) - len(shown):
            rows.append(Content.styled(f"       and {more} more", "$text-muted"))
        return Content("\n").join(rows)


TODO_ROWS = 20
"""Most rows, however high the screen is."""

_TODO_MARKS = {
    "completed": ("✓", "$text-success", "$text-muted"),
    "in_progress": ("▸", "$text-primary", "bold $foreground"),
    "pending": ("○", "$text-muted", "$text-muted"),
}


def todo_lines(todos: Sequence[dict[str, str]], rows: int = TODO_ROWS) -> Content:
    """Return at most `rows` rows: a heading, then the items around the current one; in a single row
    only that one."""
    done = sum(todo.get("status") == "completed" for todo in todos)
    room = max(0, rows - 1)
    current = next((i for i, t in enumerate(todos) if t.get("status") != "completed"), len(todos))
    start = max(0, min(current - (room > 2), len(todos) - room))
    below = len(todos) - start - room
    if rows == 1 and current < len(todos):
        at = f" · {done} of {len(todos)} done"
        return Content.assemble(_todo_line(todos[current]), (at, "$text-muted"))
    heading = f"to do  {done} of {len(todos)} done" + (f" · {below} more below" * (below > 0))
    lines = [Content.styled(heading, "$text-muted")]
    lines += [_todo_line(todo) for todo in todos[start : start + room]]
    return Content("\n").join(lines)


def _todo_line(todo: dict[str, str]) -> Content:
    glyph, mark, style = _TODO_MARKS.get(todo.get("status", ""), _TODO_MARKS["pending"])
    return Content.assemble((f"{glyph} ", mark), (one_line(todo.get("text", "")), style))


class TodoList(Widget):
    """Shown while something on the list is open. Set `todos` to change it."""

    DEFAULT_CSS = """
    TodoList { height: auto; max-height: 25vh; width: 1fr; padding: 0 1; display: none; }
    TodoList.-live { display: block; }
    """

    todos: reactive[tuple[dict[str, str], ...]] = reactive((), layout=True)

    def watch_todos(self) -> None:
        self.set_class(any(t.get("status") != "completed" for t in self.todos), "-live")

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return min(TODO_ROWS, 1 + len(self.todos))

    def render(self) -> Content:
        width = max(1, self.content_size.width)
        lines = todo_lines(self.todos, self.content_size.height or TODO_ROWS).split("\n")
        return Content("\n").join([line.truncate(width, ellipsis=True) for line in lines])
