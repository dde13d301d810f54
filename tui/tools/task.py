"""task: start a sub-agent, which works in a session of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, ClassVar, TypeAlias

from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.limits.receipt import Keep


class TaskParams(Params, frozen=True, kw_only=True):
    description: Annotated[
        str, about("What it is about, in three to six words, for the user.", min_length=1)
    ]
    prompt: Annotated[str, about("All that it needs to know.", min_length=1)]
    agent: Annotated[str, about("The kind of sub-agent.")] = "general"
    resume: Annotated[
        str, about("The session of an earlier sub-agent, to continue it instead of a new one.")
    ] = ""


RunSubAgent: TypeAlias = Callable[[TaskParams, ToolContext], Awaitable[ToolOutput]]


class SubAgentTool(Tool[TaskParams]):
    """Starts a sub-agent. Its calls pass the permissions by themselves, one by one."""

    name: ClassVar[str] = "task"
    effect: ClassVar[Effect] = "none"
    keep: ClassVar[Keep] = "ends"
    params: ClassVar[type[Params]] = TaskParams

    def __init__(self, run: RunSubAgent) -> None:
        self._run = run

    def subject(self, params: TaskParams) -> str:
        return params.agent

    def label(self, params: TaskParams) -> str:
        return f"{params.agent}: {params.description}"

    async def run(self, params: TaskParams, ctx: ToolContext) -> ToolOutput:
        return await self._run(params, ctx)
