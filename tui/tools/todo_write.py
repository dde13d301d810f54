"""todo_write: the task list that the person sees."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Todo, Tool, ToolContext


class TodoItem(Params, frozen=True, kw_only=True):
    text: Annotated[str, Meta(min_length=1, description="What is to be done, in a few words.")]
    status: Annotated[
        Literal["pending", "in_progress", "completed"],
        Meta(description="Keep one item in progress while there is work."),
    ]


class TodoWriteParams(Params, frozen=True, kw_only=True):
    todos: Annotated[
        list[TodoItem], Meta(max_length=100, description="The whole list, in order; [] clears it.")
    ]


class TodoWrite(Tool[TodoWriteParams]):
    name: ClassVar[str] = "todo_write"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = TodoWriteParams

    async def run(self, params: TodoWriteParams, ctx: ToolContext) -> ToolOutput:
        ctx.set_todos([Todo(item.text, item.status) for item in params.todos])
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
