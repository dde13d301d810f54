"""task: start a sub-agent, which works in a session of its own."""

from __future__ import annotations

from typing import Annotated, ClassVar

from tui.tools.base import AgentTool, Effect, Params, about
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


class SubAgentTool(AgentTool[TaskParams]):
    """Starts a sub-agent. Its calls pass the permissions by themselves, one by one."""

    name: ClassVar[str] = "task"
    effect: ClassVar[Effect] = "none"
    keep: ClassVar[Keep] = "ends"
    params: ClassVar[type[Params]] = TaskParams

    def subject(self, params: TaskParams) -> str:
        return params.agent

    def label(self, params: TaskParams) -> str:
        return f"{params.agent}: {params.description}"
