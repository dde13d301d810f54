"""todo_write: the task list that the person sees."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, ClassVar

from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Todo, Tool, ToolContext, about


class TodoWriteParams(Params, frozen=True, kw_only=True):
    todos: Annotated[list[Todo], about("The whole list, in order; [] clears it.", max_length=100)]


class TodoWrite(Tool[TodoWriteParams]):
    name: ClassVar[str] = "todo_write"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = TodoWriteParams

    async def run(self, params: TodoWriteParams, ctx: ToolContext) -> ToolOutput:
        ctx.host.set_todos(params.todos)
        if not params.todos:
            return ToolOutput.text("The list is empty now.", summary="empty")
        count = Counter(item.status for item in params.todos)
        return ToolOutput.text(
            f"The list has {len(params.todos)} items: {count['completed']} completed, "
            f"{count['in_progress']} in progress, {count['pending']} pending.",
            summary=self.label(params),
        )

    def label(self, params: TodoWriteParams) -> str:
        done = sum(item.status == "completed" for item in params.todos)
        return f"{done}/{len(params.todos)} done"
