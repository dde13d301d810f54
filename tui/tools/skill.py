"""skill: load the instructions of a skill that the user installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar

from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.file_access import in_thread


class SkillParams(Params, frozen=True, kw_only=True):
    name: Annotated[str, about("The skill's name, from the list of skills.", min_length=1)]
    arguments: Annotated[str, about("What to use it on, if the skill asks for that.")] = ""


class Skill(Tool[SkillParams]):
    """Loads a skill. `look_up` takes a name and arguments, and returns the text; it is called in a
    thread."""

    name: ClassVar[str] = "skill"
    effect: ClassVar[Effect] = "read"
    params: ClassVar[type[Params]] = SkillParams

    def __init__(self, look_up: Callable[[str, str], str]) -> None:
        self._look_up = look_up

    async def run(self, params: SkillParams, ctx: ToolContext) -> ToolOutput:  # noqa: ARG002
        text = await in_thread(lambda _stop: self._look_up(params.name, params.arguments))
        return ToolOutput.text(text, summary="loaded")

    def label(self, params: SkillParams) -> str:
        return f"{params.name} {params.arguments}".rstrip()

    def subject(self, params: SkillParams) -> str:
        return params.name.strip().lstrip("/")
