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
        path, data, found, diff = await self._prepare(params, ctx)
        shown = printable(ctx.workspace.show(path))
        if found is not None and found.data == data:
            return ToolOutput.text(
                f"{shown} already has exactly this content.", summary="no change"
            )
        details = await replace_file(ctx, path, data, found)
        if found is None:
            lines = "1 line" if diff.added == 1 else f"{diff.added} lines"
            said, summary = f"Created {shown}: {size(len(data))}.", f"new, {lines}"
        else:
            said, summary = f"Replaced {shown}: {diff.summary} lines.", diff.summary
        return ToolOutput([text_block(said)], summary=summary, display=diff.text, details=details)

    async def preview(self, params: WriteFileParams, ctx: ToolContext) -> CallPreview:
        _, _, _, diff = await self._prepare(params, ctx, whole=True)
        return CallPreview("diff", diff.text)

    async def _prepare(
        self, params: WriteFileParams, ctx: ToolContext, *, whole: bool = False
    ) -> tuple[Path, bytes, Snapshot | None, UnifiedDiff]:
        """What would be written over what. Raises ToolError where that cannot or must not be."""
        path = await resolve(ctx, params.path)
        shown = printable(ctx.workspace.show(path))
        try:
            data = params.content.encode()
        except UnicodeEncodeError as error:
            raise ToolError(
                "The content contains half a surrogate pair, which isn't valid text.",
                hint="Send the character as a whole.",
            ) from error
        found, diff = await in_thread(partial(_compare, path, shown, params.content, whole))
        seen = ctx.files.before(found, shown) if found else None
        if found and seen and found.data != data:
            raise await refusal(seen, found, shown)
        return path, data, found, diff


def _compare(
    path: Path, shown: str, content: str, whole: bool, _stop: Event
) -> tuple[Snapshot | None, UnifiedDiff]:
    found = take_snapshot(path, shown)
    if found is None:
        return None, unified(None, content, shown, whole=whole)
    try:
        old = decode(found.data, shown).text if found.data is not None else None
    except ToolError:
        old = None
    if old is not None:
        return found, unified(old, content, shown, whole=whole)
    was = size(found.stat.st_size)
    new = unified(None, content, shown, whole=whole)
    return found, UnifiedDiff(
        f"{shown}: {was}, not shown as text, is replaced by:\n{new.text}", new.added, 0
    )
