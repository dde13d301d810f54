"""write_file: create a file or replace it as a whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from threading import Event
from typing import Annotated, ClassVar

from tui.core.errors import ToolError
from tui.core.formatting import size
from tui.core.messages import ToolOutput, text_block
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext, about
from tui.tools.diff import UnifiedDiff, unified
from tui.tools.file_access import in_thread, replace_file, resolve, take_snapshot
from tui.tools.file_ledger import Snapshot
from tui.tools.stale_text import refusal
from tui.tools.text_decoding import decode, printable


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
        path, data, snapshot, diff = await self._prepare(params, ctx)
        shown = printable(ctx.workspace.show(path))
        if snapshot is not None and snapshot.data == data:
            return ToolOutput.text(
                f"{shown} already has exactly this content.", summary="no change"
            )
        details = await replace_file(ctx, path, data, snapshot)
        if snapshot is None:
            lines = "1 line" if diff.added == 1 else f"{diff.added} lines"
            line, summary = f"Created {shown}: {size(len(data))}.", f"new, {lines}"
        else:
            line, summary = f"Replaced {shown}: {diff.summary} lines.", diff.summary
        return ToolOutput([text_block(line)], summary=summary, display=diff.text, details=details)

    async def preview(self, params: WriteFileParams, ctx: ToolContext) -> CallPreview:
        _, _, _, diff = await self._prepare(params, ctx, whole=True)
        return CallPreview("diff", diff.text)

    async def _prepare(
        self, params: WriteFileParams, ctx: ToolContext, *, whole: bool = False
    ) -> tuple[Path, bytes, Snapshot | None, UnifiedDiff]:
        """Compare the new content with the file. Raises ToolError if it cannot or must not be
        written."""
        path = await resolve(ctx, params.path)
        shown = printable(ctx.workspace.show(path))
        try:
            data = params.content.encode()
        except UnicodeEncodeError as error:
            raise ToolError(
                "The content contains half a surrogate pair, which isn't valid text.",
                hint="Send the character as a whole.",
            ) from error
        snapshot, diff = await in_thread(partial(_compare, path, shown, params.content, whole))
        seen = ctx.files.before(snapshot, shown) if snapshot else None
        if snapshot and seen and snapshot.data != data:
            raise await refusal(seen, snapshot, shown)
        return path, data, snapshot, diff


def _compare(
    path: Path, shown: str, content: str, whole: bool, _stop: Event
) -> tuple[Snapshot | None, UnifiedDiff]:
    snapshot = take_snapshot(path, shown)
    if snapshot is None:
        return None, unified(None, content, shown, whole=whole)
    try:
        old = decode(snapshot.data, shown).text if snapshot.data is not None else None
    except ToolError:
        old = None
    if old is not None:
        return snapshot, unified(old, content, shown, whole=whole)
    was = size(snapshot.stat.st_size)
    new = unified(None, content, shown, whole=whole)
    return snapshot, UnifiedDiff(
        f"{shown}: {was}, not shown as text, is replaced by:\n{new.text}", new.added, 0
    )
