"""edit_file: replace an exact passage of a text file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from threading import Event
from typing import Annotated, ClassVar

from msgspec import Meta

from tui.core.errors import ToolError
from tui.core.messages import ToolOutput, text_block
from tui.tools.atomic_replace import replace_file
from tui.tools.base import Effect, Params, Preview, Tool, ToolContext
from tui.tools.diff import Diff, unified
from tui.tools.file_access import WHOLE_FILE_LIMIT, Snapshot, in_thread, missing, take_snapshot
from tui.tools.text_decoding import decode, printable, size_text
from tui.tools.text_match import not_found, replace_passage


class EditFileParams(Params, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="The file, relative to the workspace or absolute.")]
    old_string: Annotated[
        str,
        Meta(description="The passage to replace, exactly as read_file shows it, blanks included."),
    ]
    new_string: Annotated[str, Meta(description="What stands there afterwards; may be empty.")]
    replace_all: Annotated[
        bool, Meta(description="Replace every occurrence; otherwise there must be exactly one.")
    ] = False


class EditFile(Tool[EditFileParams]):
    name: ClassVar[str] = "edit_file"
    effect: ClassVar[Effect] = "write"
    params: ClassVar[type[Params]] = EditFileParams

    async def run(self, params: EditFileParams, ctx: ToolContext) -> ToolOutput:
        path, data, found, (lines, diff) = await self._prepare(params, ctx)
        details = await replace_file(ctx, path, data, found)
        where = f"at line {lines[0]}" if len(lines) == 1 else f"{len(lines)} times"
        said = f"Edited {printable(ctx.workspace.show(path))} {where}: {diff.summary} lines."
        return ToolOutput(
            [text_block(said)], summary=diff.summary, display=diff.text, details=details
        )

    async def preview(self, params: EditFileParams, ctx: ToolContext) -> Preview:
        _, _, _, (_, diff) = await self._prepare(params, ctx)
        return Preview("diff", diff.text)

    async def _prepare(
        self, params: EditFileParams, ctx: ToolContext
    ) -> tuple[Path, bytes, Snapshot, tuple[list[int], Diff]]:
        """The new bytes and what they replace. Raises ToolError where the edit cannot work."""
        _check(params)
        path = ctx.workspace.resolve(params.path)
        shown = printable(ctx.workspace.show(path))
        found = await in_thread(lambda _stop: take_snapshot(path, shown))
        if found is None:
            raise await in_thread(lambda _stop: missing(ctx.workspace, path))
        ctx.files.check_unchanged(found, shown)
        data, report = await in_thread(partial(_edit, params, found, shown))
        return path, data, found, report


def _check(params: EditFileParams) -> None:
    if not params.old_string:
        raise ToolError(
            "old_string is empty.",
            hint="To insert, name a neighbouring line in old_string and repeat it in new_string; "
            "to create a file use write_file.",
        )
    if params.old_string == params.new_string:
        raise ToolError("old_string and new_string are the same; there is nothing to change.")
    for name, value in (("old_string", params.old_string), ("new_string", params.new_string)):
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            raise ToolError(
                f"{name} holds half a surrogate pair, which is no valid text.",
                hint="Send the character as a whole.",
            )


def _edit(
    params: EditFileParams, found: Snapshot, shown: str, _stop: Event
) -> tuple[bytes, tuple[list[int], Diff]]:
    if found.data is None:
        raise ToolError(
            f"{shown} is too large to edit: {size_text(found.stat.st_size)}, "
            f"the limit is {size_text(WHOLE_FILE_LIMIT)}.",
            hint="Change it with a command (sed, a short script) through run_command.",
        )
    file = decode(found.data, shown)
    if not file.valid and not params.new_string.isascii():
        raise ToolError(
            f"{shown} is not UTF-8, so the encoding of the new characters is not known.",
            hint="Use ASCII characters only, or convert the file with a command first.",
        )
    new, starts = replace_passage(file.text, params.old_string, params.new_string)
    lines = [file.text.count("\n", 0, start) + 1 for start in starts[:1000]]
    if not starts:
        raise not_found(file, params.old_string, params.new_string, shown)
    if len(starts) > 1 and not params.replace_all:
        at = ", ".join(map(str, lines[:10])) + (", …" if len(starts) > 10 else "")
        raise ToolError(
            f"old_string is found {len(starts)} times in {shown} (lines {at}).",
            hint="Add lines around it until it is unique, or set replace_all.",
        )
    if new == file.text:
        raise ToolError(
            "The two strings differ only in line endings, which edit_file keeps as they are.",
            hint="Convert line endings with a command.",
        )
    return file.encode(new), (lines, _diff(file.text, new, shown, valid=file.valid))


def _diff(old: str, new: str, shown: str, *, valid: bool) -> Diff:
    if not valid:
        old, new = (
            t.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for t in (old, new)
        )
    return unified(old, new, shown)
