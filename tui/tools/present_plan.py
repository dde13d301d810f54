"""present_plan: show the person a plan, which ends plan mode once they approve it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, ClassVar, TypeAlias

from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about


class PresentPlanParams(Params, frozen=True):
    title: Annotated[str, about("What it is about, in three to six words.", min_length=1)]
    plan: Annotated[str, about("The whole plan, as Markdown.", min_length=1)]


PresentPlanCall: TypeAlias = Callable[[PresentPlanParams, ToolContext], Awaitable[ToolOutput]]


class PresentPlan(Tool[PresentPlanParams]):
    name: ClassVar[str] = "present_plan"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = PresentPlanParams

    def __init__(self, present: PresentPlanCall) -> None:
        self._present = present

    def label(self, params: PresentPlanParams) -> str:
        return params.title

    async def run(self, params: PresentPlanParams, ctx: ToolContext) -> ToolOutput:
        return await self._present(params, ctx)
