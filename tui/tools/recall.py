"""recall: read messages that are not in the window."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, ClassVar, Final

from tui.core.dataclass import dataclass
from tui.core.errors import ToolError
from tui.core.late_pattern import late_pattern
from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.file_access import resolve
from tui.tools.paging import PageLimits

_ADDRESS: Final = late_pattern(r"(?:([0-9a-f]{3,12}):)?([0-9]{1,7})(?:-([0-9]{1,7}))?")

_OF_LINES: Final = late_pattern(r":[0-9][0-9,+-]*$")


class RecallParams(Params, frozen=True, kw_only=True):
    query: Annotated[str, about("Words to find, newest first.")] = ""
    message: Annotated[str, about("Address: 12, 12-15, or ID:12 of another session.")] = ""
    blame: Annotated[str, about("FILE:10-20: which prompts wrote it, and why.")] = ""
    offset: Annotated[int, about("As a page says.", ge=0)] = 0

    @property
    def file(self) -> str:
        """The path in `blame`, without its lines."""
        return _OF_LINES.sub("", self.blame)

    @property
    def lines(self) -> str:
        """The lines in `blame`, as given; "" for all."""
        return self.blame[len(self.file) :].removeprefix(":")


@dataclass(frozen=True, slots=True)
class MessageAddress:
    """The address of messages: the id of their session, "" for this one, and their numbers."""

    session: str
    first: int
    last: int

    @classmethod
    def of(cls, text: str) -> MessageAddress:
        """Parse an address. Raises ToolError for an invalid one."""
        match = _ADDRESS.fullmatch(text.strip())
        if match is None:
            raise ToolError(f"{text} is no address.", hint="Give 12, 12-15 or ID:12.")
        session, first, last = match.groups()
        address = cls(session or "", int(first), int(last or first))
        if address.last < address.first:
            raise ToolError("The range is empty.", hint="The second number can't be smaller.")
        return address

    @classmethod
    def is_one(cls, text: str) -> bool:
        """True if a text reads as an address."""
        return _ADDRESS.fullmatch(text.strip()) is not None


class Recall(Tool[RecallParams]):
    """Reads what is not in the window. `recall` takes the parameters, the limits of a page, and the
    real path of the file to blame, and returns the text and a short summary."""

    name: ClassVar[str] = "recall"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = RecallParams

    def __init__(
        self, recall: Callable[[RecallParams, PageLimits, Path | None], Awaitable[tuple[str, str]]]
    ) -> None:
        self._recall = recall

    async def run(self, params: RecallParams, ctx: ToolContext) -> ToolOutput:
        if not params.query.strip() and not params.message.strip() and not params.blame:
            raise ToolError("Nothing asked for.", hint="Give a query, an address, or lines.")
        path = await resolve(ctx, params.file) if params.blame else None
        lines = ctx.guard.clamp_lines
        limits = PageLimits(lines, ctx.read_page_bytes, lines)
        text, summary = await self._recall(params, limits, path)
        return ToolOutput.text(text, summary=summary)

    def label(self, params: RecallParams) -> str:
        if params.blame:
            return f"who wrote {params.blame}"
        return params.query.strip() or f"message {params.message}"

    def subject(self, params: RecallParams) -> str:
        return params.file or params.query

    def paths(self, params: RecallParams) -> tuple[str, ...]:
        return (params.file,) if params.blame else ()
