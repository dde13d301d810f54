"""The agent's list of things to do, while there is one."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from tui.core.text_cleaning import one_line

ROWS = 20
"""At most, however high the screen is."""

_MARKS = {
    "completed": ("✓", "$text-success", "$text-muted"),
    "in_progress": ("▸", "$text-primary", "bold $foreground"),
    "pending": ("○", "$text-muted", "$text-muted"),
}


def todo_lines(todos: Sequence[dict[str, str]], rows: int = ROWS) -> Content:
    """At most `rows` rows: a heading, then a window around what is being done."""
    done = sum(todo.get("status") == "completed" for todo in todos)
    room = max(0, rows - 1)
    current = next((i for i, t in enumerate(todos) if t.get("status") != "completed"), len(todos))
    start = max(0, min(current - (room > 2), len(todos) - room))
    below = len(todos) - start - room
    heading = f"to do  {done} of {len(todos)} done" + (f" · {below} more below" * (below > 0))
    lines = [Content.styled(heading, "$text-muted")]
    for todo in todos[start : start + room]:
        glyph, mark, style = _MARKS.get(todo.get("status", ""), _MARKS["pending"])
        text = one_line(todo.get("text", ""))
        lines.append(Content.assemble((f"{glyph} ", mark), (text, style)))
    return Content("\n").join(lines)


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
        return min(ROWS, 1 + len(self.todos))

    def render(self) -> Content:
        width = max(1, self.content_size.width)
        lines = todo_lines(self.todos, self.content_size.height or ROWS).split("\n")
        return Content("\n").join([line.truncate(width, ellipsis=True) for line in lines])
