"""present_plan: show the person a plan, which ends plan mode once they approve it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from tui.tools.base import AgentTool, Effect, Params, about


class PresentPlanParams(Params, frozen=True):
    title: Annotated[str, about("What it is about, in three to six words.", min_length=1)]
    plan: Annotated[str, about("The whole plan, as Markdown.", min_length=1)]


class PresentPlan(AgentTool[PresentPlanParams]):
    name: ClassVar[str] = "present_plan"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = PresentPlanParams

    def label(self, params: PresentPlanParams) -> str:
        return params.title
