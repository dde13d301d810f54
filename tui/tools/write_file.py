"""write_file: create a file or replace it as a whole."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, ClassVar

from tui.core.errors import ToolError
from tui.core.formatting import size
from tui.core.messages import ToolOutput, text_block
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext, about
from tui.tools.diff import UnifiedDiff, unified
from tui.tools.file_access import in_thread, replace_file, resolve, take_snapshot
from tui.tools.file_ledger import Snapshot
from tui.tools.stale_text import refusal
from tui.tools.text_decoding import DecodedText, decode, printable, valid_text

if TYPE_CHECKING:
    from tui.tools.new_content import NewContent


class WriteFileParams(Params, frozen=True, kw_only=True):
    path: Annotated[
        str, about("The file, relative to the workspace or absolute. Missing folders are created.")
    ]
    content: Annotated[str, about("The whole new content, written exactly as given.")]


class WriteFile(Tool[WriteFileParams]):
    name: ClassVar[str] = "write_file"
    effect: ClassVar[Effect] = "write"
    params: ClassVar[type[Params]] = WriteFileParams

    async def run(self, params: WriteFileParams, ctx: ToolContext) -> ToolOutput:
        path, new, snapshot, diff = await self._prepare(params, ctx)
        shown = printable(ctx.workspace.show(path))
        if snapshot is not None and snapshot.data == new.data:
            line = f"{shown} already has exactly this content."
            return ToolOutput.text(" ".join([line, *new.notes]), summary="no change")
        details, notes = await replace_file(ctx, path, new.data, snapshot)
        if snapshot is None:
            lines = "1 line" if diff.added == 1 else f"{diff.added} lines"
            line, summary = f"Created {shown}: {size(len(new.data))}.", f"new, {lines}"
        else:
            line, summary = f"Replaced {shown}: {diff.summary} lines.", diff.summary
        line = " ".join([line, *new.notes, *notes])
        return ToolOutput([text_block(line)], summary=summary, display=diff.text, details=details)

    async def preview(self, params: WriteFileParams, ctx: ToolContext) -> CallPreview:
        _, _, _, diff = await self._prepare(params, ctx, whole=True)
        return CallPreview("diff", diff.text)

    async def _prepare(
        self, params: WriteFileParams, ctx: ToolContext, *, whole: bool = False
    ) -> tuple[Path, NewContent, Snapshot | None, UnifiedDiff]:
        """Compare the new content with the file. Raises ToolError if it cannot or must not be
        written."""
        path = await resolve(ctx, params.path)
        shown = printable(ctx.workspace.show(path))
        snapshot = await in_thread(lambda _stop: take_snapshot(path, shown))
        seen = ctx.files.before(snapshot, shown) if snapshot else None
        work = partial(_compare, path, shown, params.content, whole, snapshot)
        new, diff = await in_thread(work)
        if snapshot and seen and snapshot.data != new.data:
            raise await refusal(seen, snapshot, shown)
        return path, new, snapshot, diff


def _compare(
    path: Path, shown: str, content: str, whole: bool, found: Snapshot | None, _stop: Event
) -> tuple[NewContent, UnifiedDiff]:
    """Return the new content, in the form of the text that is there, and the difference."""
    old: DecodedText | None = None
    with suppress(ToolError):
        old = decode(found.data, shown) if found and found.data is not None else None
    from tui.tools.new_content import whole_content  # noqa: PLC0415 - for a write only

    new = whole_content(old or DecodedText(""), content, path, shown)
    if old is not None:
        was, now = valid_text(old.text), valid_text(new.text)
        return new, unified(was, now, shown, whole=whole)
    diff = unified(None, content, shown, whole=whole)
    if found is not None:
        was = size(found.stat.st_size)
        text = f"{shown}: {was}, not shown as text, is replaced by:\n{diff.text}"
        diff = UnifiedDiff(text, diff.added, 0)
    return new, diff
