"""edit_file: replace an exact passage of a text file, whatever its line endings."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from threading import Event
from typing import Annotated, ClassVar

from tui.core.errors import ToolError
from tui.core.formatting import size
from tui.core.messages import ToolOutput, text_block
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext, about
from tui.tools.diff import UnifiedDiff, unified
from tui.tools.file_access import (
    WHOLE_FILE_LIMIT,
    Snapshot,
    in_thread,
    missing,
    replace_file,
    resolve,
    take_snapshot,
)
from tui.tools.text_decoding import DecodedText, decode, printable


class EditFileParams(Params, frozen=True, kw_only=True):
    path: Annotated[str, about("The file, relative to the workspace or absolute.")]
    old_string: Annotated[
        str, about("The passage to replace, exactly as read_file shows it, blanks included.")
    ]
    new_string: Annotated[str, about("The replacement; may be empty.")]
    replace_all: Annotated[
        bool, about("Replace every occurrence; otherwise there must be exactly one.")
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

    async def preview(self, params: EditFileParams, ctx: ToolContext) -> CallPreview:
        _, _, _, (_, diff) = await self._prepare(params, ctx, whole=True)
        return CallPreview("diff", diff.text)

    async def _prepare(
        self, params: EditFileParams, ctx: ToolContext, *, whole: bool = False
    ) -> tuple[Path, bytes, Snapshot, tuple[list[int], UnifiedDiff]]:
        """The new bytes and what they replace. Raises ToolError where the edit cannot work."""
        _check(params)
        path = await resolve(ctx, params.path)
        shown = printable(ctx.workspace.show(path))
        found = await in_thread(lambda _stop: take_snapshot(path, shown))
        if found is None:
            raise await in_thread(lambda _stop: missing(ctx.workspace, path))
        ctx.files.check_unchanged(found, shown)
        data, report = await in_thread(partial(_edit, params, found, shown, whole))
        return path, data, found, report


def _check(params: EditFileParams) -> None:
    if not params.old_string:
        raise ToolError(
            "old_string is empty.",
            hint="To insert, name a neighboring line in old_string and repeat it in new_string; "
            "to create a file use write_file.",
        )
    if params.old_string == params.new_string:
        raise ToolError("old_string and new_string are the same; there is nothing to change.")
    for name, value in (("old_string", params.old_string), ("new_string", params.new_string)):
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            raise ToolError(
                f"{name} contains half a surrogate pair, which isn't valid text.",
                hint="Send the character as a whole.",
            )


def _edit(
    params: EditFileParams, found: Snapshot, shown: str, whole: bool, _stop: Event
) -> tuple[bytes, tuple[list[int], UnifiedDiff]]:
    if found.data is None:
        raise ToolError(
            f"{shown} is too large to edit: {size(found.stat.st_size)}, "
            f"the limit is {size(WHOLE_FILE_LIMIT)}.",
            hint="Change it with a command (sed, a short script) through run_command.",
        )
    file = decode(found.data, shown)
    if not file.valid and not params.new_string.isascii():
        raise ToolError(
            f"{shown} isn't UTF-8, so the encoding of the new characters is unknown.",
            hint="Use ASCII characters only, or convert the file with a command first.",
        )
    new, starts = replace_passage(file.text, params.old_string, params.new_string)
    lines = [file.text.count("\n", 0, start) + 1 for start in starts[:1000]]
    if not starts:
        raise not_found(file, params.old_string, params.new_string, shown)
    if len(starts) > 1 and not params.replace_all:
        at = ", ".join(map(str, lines[:10])) + (", …" if len(starts) > 10 else "")
        raise ToolError(
            f"old_string occurs {len(starts)} times in {shown} (lines {at}).",
            hint="Add lines around it until it is unique, or set replace_all.",
        )
    if new == file.text:
        raise ToolError(
            "The two strings differ only in line endings, which edit_file preserves.",
            hint="Convert line endings with a command.",
        )
    return file.encode(new), (lines, _diff(file, new, shown, whole=whole))


def _diff(file: DecodedText, new: str, shown: str, *, whole: bool) -> UnifiedDiff:
    old = file.text
    if not file.valid:
        old, new = (
            t.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for t in (old, new)
        )
    return unified(old, new, shown, whole=whole)


_SHOWN_LINES = 12
_COMPARED_LINES = 20_000


def replace_passage(text: str, old: str, new: str) -> tuple[str, list[int]]:
    """`text` with every `old` replaced by `new`, and where each stood in `text`.

    CRLF and LF count as the same in the search. A replacement gets the line ending that the
    passage has, else the one that the text has first; everything outside it is untouched.
    """
    flat, old, new = (s.replace("\r\n", "\n") for s in (text, old, new))
    starts = [m.start() for m in re.finditer(re.escape(old), flat)]
    if len(flat) == len(text):
        return flat.replace(old, new), starts
    crlf = [m.start() - n for n, m in enumerate(re.finditer("\r\n", text))]
    default = "\r\n" if flat.index("\n") == crlf[0] else "\n"
    pieces: list[str] = []
    spots: list[int] = []
    done = 0
    for start in starts:
        begin = start + bisect_left(crlf, start)
        end = start + len(old) + bisect_left(crlf, start + len(old))
        passage = text[begin:end]
        first = passage.find("\n")
        ending = default if first < 0 else "\r\n" if passage[first - 1 : first] == "\r" else "\n"
        pieces += (text[done:begin], new.replace("\n", ending))
        spots.append(begin)
        done = end
    return "".join((*pieces, text[done:])), spots


def not_found(file: DecodedText, old: str, new: str, shown: str) -> ToolError:
    """Why `old` is not in the file, as far as can be told, and what comes close."""
    said = f"old_string isn't in {shown}."
    if shown.lower().endswith(".ipynb"):
        said += " A notebook is edited as its JSON, which read_file shows with raw=true."
    if "\ufffd" in old and not file.valid:
        return ToolError(
            said,
            hint="The file isn't UTF-8: choose a passage without the characters shown as \ufffd.",
        )
    lines = file.text.replace("\r\n", "\n").split("\n")
    if (span := _same_but_blanks(lines, old)) is not None:
        return ToolError(
            f"{said} Lines {span[0] + 1}-{span[1]} differ from it only in blanks "
            f"(indentation, tabs, line ends):\n{_excerpt(lines, *span)}\n",
            hint="Copy the passage exactly as it is in the file.",
        )
    if new.strip() and new.replace("\r\n", "\n") in file.text.replace("\r\n", "\n"):
        return ToolError(
            f"{said} But new_string is: the change may have been made already.",
            hint="Read the file to check.",
        )
    if (span := _closest(lines, old)) is not None:
        return ToolError(
            f"{said} The closest lines are {span[0] + 1}-{span[1]}:\n{_excerpt(lines, *span)}\n",
            hint="Read the file again and copy the passage exactly.",
        )
    return ToolError(said, hint="Read the file again and copy the passage exactly.")


def _same_but_blanks(lines: list[str], old: str) -> tuple[int, int] | None:
    """The lines, as a half-open range, that hold `old` when all blanks are left out."""
    wanted = "".join(old.split())
    if not wanted:
        return None
    bare = ["".join(line.split()) for line in lines]
    at = "".join(bare).find(wanted)
    if at < 0:
        return None
    ends = list(accumulate(map(len, bare)))
    return bisect_left(ends, at + 1), bisect_left(ends, at + len(wanted)) + 1


def _closest(lines: list[str], old: str) -> tuple[int, int] | None:
    """Where the longest line of `old` nearly stands, with as many lines around as `old` has."""
    wanted = old.replace("\r\n", "\n").split("\n")
    key = max(wanted, key=lambda line: len(line.strip())).strip()[:500]
    matcher = difflib.SequenceMatcher(autojunk=False, b=key)
    best, score = -1, 0.6
    for number, line in enumerate(islice(lines, _COMPARED_LINES)):
        matcher.set_seq1(line.strip()[:500])
        if matcher.real_quick_ratio() > score and matcher.quick_ratio() > score:
            ratio = matcher.ratio()
            if ratio > score:
                best, score = number, ratio
    if best < 0:
        return None
    start = max(0, best - [line.strip()[:500] for line in wanted].index(key))
    return start, min(start + len(wanted), len(lines))


def _excerpt(lines: list[str], start: int, stop: int) -> str:
    shown = [line if len(line) <= 300 else f"{line[:300]}…" for line in lines[start:stop]]
    if len(shown) > _SHOWN_LINES:
        shown = [*shown[:_SHOWN_LINES], "…"]
    text = "\n".join(shown)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
