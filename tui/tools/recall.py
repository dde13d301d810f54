"""recall: read what is not in the window."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, ClassVar

from tui.core.errors import ToolError
from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.paging import PageLimits


class RecallParams(Params, frozen=True, kw_only=True):
    query: Annotated[str, about("Words to search for.", max_length=400)] = ""
    session: Annotated[str, about("The id of another session; else this one.", max_length=40)] = ""
    first: Annotated[int, about("The first message to read, from 1.", ge=0)] = 0
    last: Annotated[int, about("The last message to read; else the first only.", ge=0)] = 0
    offset: Annotated[int, about("The line to begin at, as a page says.", ge=0)] = 0
    byte_offset: Annotated[int, about("The byte to begin at, as a page says.", ge=0)] = 0


class Recall(Tool[RecallParams]):
    """`recall` takes what is asked and the limits of a page, and returns the text and what it is
    in a few words."""

    name: ClassVar[str] = "recall"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = RecallParams

    def __init__(
        self, recall: Callable[[RecallParams, PageLimits], Awaitable[tuple[str, str]]]
    ) -> None:
        self._recall = recall

    async def run(self, params: RecallParams, ctx: ToolContext) -> ToolOutput:
        if not params.query.strip() and not params.first:
            raise ToolError("Nothing asked for.", hint="Give a query, or the number of a message.")
        if params.last and params.last < params.first:
            raise ToolError("The range is empty.", hint="last can't be before first.")
        lines = ctx.guard.clamp_lines
        limits = PageLimits(lines, ctx.read_page_bytes, lines)
        text, summary = await self._recall(params, limits)
        return ToolOutput.text(text, summary=summary)

    def label(self, params: RecallParams) -> str:
        if params.query.strip():
            return params.query
        to = f" to {params.last}" if params.last > params.first else ""
        where = f" of session {params.session}" if params.session else ""
        return f"message {params.first}{to}{where}"

    def subject(self, params: RecallParams) -> str:
        return params.query
