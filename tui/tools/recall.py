"""recall: read messages that a summary has replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar

from tui.core.errors import ToolError
from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.file_access import in_thread


class RecallParams(Params, frozen=True, kw_only=True):
    query: Annotated[str, about("Words that the messages contain.", max_length=400)] = ""
    first: Annotated[int, about("The first message to read, from 1.", ge=0)] = 0
    last: Annotated[int, about("The last message to read.", ge=0)] = 0


class Recall(Tool[RecallParams]):
    """`look_up` takes query, first and last, and returns the text; it is called in a thread."""

    name: ClassVar[str] = "recall"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = RecallParams

    def __init__(self, look_up: Callable[[str, int, int], str]) -> None:
        self._look_up = look_up

    async def run(self, params: RecallParams, ctx: ToolContext) -> ToolOutput:  # noqa: ARG002
        if not params.query.strip() and not params.first:
            raise ToolError("Nothing asked for.", hint="Give a query, or first and last.")
        if params.last and params.last < params.first:
            raise ToolError("The range is empty.", hint="last can't be before first.")
        text = await in_thread(lambda _stop: self._look_up(params.query, params.first, params.last))
        return ToolOutput.text(text, summary=f"{text.count(chr(10) + '--- ')} messages")

    def label(self, params: RecallParams) -> str:
        return params.query or f"messages {params.first} to {params.last or 'the end'}"

    def subject(self, params: RecallParams) -> str:
        return params.query
