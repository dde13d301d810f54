"""skill: load the instructions of a skill that the user installed."""

from __future__ import annotations

from typing import Annotated, ClassVar, Protocol

from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.file_access import in_thread


class SkillParams(Params, frozen=True, kw_only=True):
    name: Annotated[str, about("The skill's name, from the list of skills.", min_length=1)]
    arguments: Annotated[str, about("What to use it on, if the skill asks for that.")] = ""


class SkillTexts(Protocol):
    """The texts of the skills that there are."""

    def instructions(self, name: str, arguments: str) -> str:
        """Return what the model gets of a skill. Blocks; raises ToolError."""
        ...


class Skill(Tool[SkillParams]):
    """Loads a skill."""

    name: ClassVar[str] = "skill"
    effect: ClassVar[Effect] = "read"
    params: ClassVar[type[Params]] = SkillParams

    def __init__(self, skills: SkillTexts) -> None:
        self._skills = skills

    async def run(self, params: SkillParams, ctx: ToolContext) -> ToolOutput:  # noqa: ARG002
        text = await in_thread(
            lambda _stop: self._skills.instructions(params.name, params.arguments)
        )
        return ToolOutput.text(text, summary="loaded")

    def label(self, params: SkillParams) -> str:
        return f"{params.name} {params.arguments}".rstrip()

    def subject(self, params: SkillParams) -> str:
        return params.name.strip().lstrip("/")
