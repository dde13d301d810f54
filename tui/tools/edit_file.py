"""edit_file: replace passages of a text file, whatever its line endings; all of them or none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from tui.core.dataclass import dataclass, replace
from tui.core.errors import ToolError
from tui.core.formatting import size
from tui.core.messages import ToolOutput, text_block
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext, about
from tui.tools.diff import UnifiedDiff, unified
from tui.tools.file_access import (
    WHOLE_FILE_LIMIT,
    in_thread,
    missing,
    replace_file,
    resolve,
    take_snapshot,
)
from tui.tools.file_ledger import SeenFile, Snapshot
from tui.tools.stale_text import ELSEWHERE, difference, refused
from tui.tools.text_decoding import DecodedText, decode, printable, valid_text
from tui.tools.text_match import CELL_MARK, TextMatch, find_matches, flatten, splice

if TYPE_CHECKING:
    from tui.tools.new_content import NewContent
    from tui.tools.notebook_cells import NotebookCells

_LISTED = 10
"""Lines of an ambiguous passage, or of many changes, that are named."""


# One change. A docstring would go into the tool's schema.
class TextEdit(Params, frozen=True, kw_only=True):
    old_string: Annotated[str, about("The passage to replace, exactly as in the file.")]
    new_string: Annotated[str, about("The replacement; may be empty.")]
    replace_all: Annotated[
        bool, about("Replace every occurrence; otherwise there must be exactly one.")
    ] = False


class EditFileParams(Params, frozen=True, kw_only=True):
    path: Annotated[str, about("The file, relative to the workspace or absolute.")]
    edits: Annotated[
        tuple[TextEdit, ...],
        about("The changes, applied in this order, all or none.", min_length=1),
    ]


@dataclass(frozen=True, slots=True)
class _Edited:
    """The result of the edits. `places` are their line numbers, or the numbers of a notebook's
    cells; `notes` and `differences` describe passages that matched only nearly."""

    new: NewContent
    unit: str
    places: list[int]
    diff: UnifiedDiff
    notes: list[str]
    differences: list[str]


class EditFile(Tool[EditFileParams]):
    name: ClassVar[str] = "edit_file"
    effect: ClassVar[Effect] = "write"
    params: ClassVar[type[Params]] = EditFileParams

    def parse(self, arguments: object) -> EditFileParams:
        """Accept a single change outside of `edits` as well: many models send it that way."""
        if isinstance(arguments, dict):
            arguments = _with_edits(cast("dict[str, Any]", arguments))
        return super().parse(arguments)

    async def run(self, params: EditFileParams, ctx: ToolContext) -> ToolOutput:
        path, snapshot, edited = await self._prepare(params, ctx)
        details, notes = await replace_file(ctx, path, edited.new.data, snapshot)
        diff, shown = edited.diff, printable(ctx.workspace.show(path))
        line = f"Edited {shown} {_where(edited, len(params.edits))}: {diff.summary} lines."
        line = " ".join([line, *edited.new.notes, *notes])
        return ToolOutput(
            [text_block("\n".join([line, *edited.notes]))],
            summary=" · ".join([diff.summary, *edited.differences]),
            display=diff.text,
            details=details,
        )

    async def preview(self, params: EditFileParams, ctx: ToolContext) -> CallPreview:
        _, _, edited = await self._prepare(params, ctx, whole=True)
        return CallPreview("diff", edited.diff.text)

    async def _prepare(
        self, params: EditFileParams, ctx: ToolContext, *, whole: bool = False
    ) -> tuple[Path, Snapshot, _Edited]:
        """Check the edits and apply them in memory. Raises ToolError if they cannot work."""
        for number in range(len(params.edits)):
            with _numbered(params, number):
                _check(params.edits[number])
        path = await resolve(ctx, params.path)
        shown = printable(ctx.workspace.show(path))
        snapshot = await in_thread(lambda _stop: take_snapshot(path, shown))
        if snapshot is None:
            raise await in_thread(lambda _stop: missing(ctx.workspace, path))
        seen = ctx.files.before(snapshot, shown)
        edit = partial(_edit, params, snapshot, shown, whole)
        if seen is None:
            return path, snapshot, await in_thread(edit)
        work = partial(_of_changed, params, edit, seen, snapshot)
        return path, snapshot, await in_thread(work)


def _with_edits(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with all changes in `edits`. Raises ToolError if it is not clear which
    are meant."""
    single = {
        name: arguments[name]
        for name in ("old_string", "new_string", "replace_all")
        if name in arguments
    }
    rest = {name: value for name, value in arguments.items() if name not in single}
    edits: object = rest.get("edits")
    # Some models send the list as a JSON text.
    if isinstance(edits, str):
        with suppress(ValueError, RecursionError):
            rest["edits"] = edits = json.loads(edits)
    if not single and "edits" not in rest and set(rest) == {"path"}:
        raise ToolError(
            "edit_file was given no changes.",
            hint="Put them into edits: objects with old_string and new_string.",
        )
    if not single:
        return rest
    if edits and single.get("old_string"):
        raise ToolError(
            "Both edits and a single old_string are given, so it isn't clear what comes first.",
            hint="Put every change into edits.",
        )
    return rest if edits else {**rest, "edits": [single]}


@contextmanager
def _numbered(params: EditFileParams, number: int) -> Generator[None]:
    """Add to an error which of several edits it is about."""
    try:
        yield
    except ToolError as error:
        count = len(params.edits)
        if count == 1:
            raise
        message = f"Edit {number + 1} of {count}: {error.message} Nothing was changed."
        raise ToolError(message, hint=error.hint) from error


def _check(edit: TextEdit) -> None:
    if not edit.old_string:
        raise ToolError(
            "old_string is empty.",
            hint="To insert, name a neighboring line in old_string and repeat it in new_string; "
            "to create a file use write_file.",
        )
    if edit.old_string == edit.new_string:
        raise ToolError("old_string and new_string are the same; there is nothing to change.")
    for name, value in (("old_string", edit.old_string), ("new_string", edit.new_string)):
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            raise ToolError(
                f"{name} contains half a surrogate pair, which isn't valid text.",
                hint="Send the character as a whole.",
            )


def _edit(
    params: EditFileParams, found: Snapshot, shown: str, whole: bool, _stop: Event
) -> _Edited:
    if found.data is None:
        raise ToolError(
            f"{shown} is too large to edit: {size(found.stat.st_size)}, "
            f"the limit is {size(WHOLE_FILE_LIMIT)}.",
            hint="Change it with a command (sed, a short script) through run_command.",
        )
    from tui.tools.new_content import new_content  # noqa: PLC0415 - for a write only

    file = decode(found.data, shown)
    cells = _cells(file, params, found.path)
    unit = "cell" if cells else "line"
    old = new = cells.text if cells else file.text
    places: list[int] = []
    notes: list[str] = []
    differences: dict[str, None] = {}
    # Each edit sees the text that the ones before it have made.
    for number, edit in enumerate(params.edits):
        with _numbered(params, number):
            if not file.valid and not edit.new_string.isascii():
                file.encode(edit.new_string, shown)
            matches = _matches(file, new, edit, shown, unit)
            before = new
            new, starts = splice(before, matches)
            if new == before:
                raise ToolError(
                    "The two strings differ only in line endings, which edit_file preserves.",
                    hint="Convert line endings with a command.",
                )
            places += [_place(before, start, unit) for start in starts[:1000]]
            if matches[0].differences:
                from tui.tools.near_lines import near_miss  # noqa: PLC0415 - few edits miss

                which = f"old_string of edit {number + 1}"
                which = which if len(params.edits) > 1 else "old_string"
                notes.append(near_miss(flatten(before), matches[0], which))
                differences |= dict.fromkeys(matches[0].differences)
    if new == old:
        raise ToolError("The edits undo each other; nothing was changed.")
    if cells:
        new = cells.with_text(new)
    diff = unified(valid_text(file.text), valid_text(new), shown, whole=whole)
    content = new_content(file, new, found.path, shown)
    return _Edited(content, unit, places, diff, notes, list(differences))


def _cells(file: DecodedText, params: EditFileParams, path: Path) -> NotebookCells | None:
    """Return the cells of a notebook that the edits are about; None for other files, and for edits
    of the JSON around them."""
    if path.suffix.lower() != ".ipynb":
        return None
    from tui.tools.notebook_cells import cells_of  # noqa: PLC0415 - seldom needed

    if (cells := cells_of(file.text)) is None:
        return None
    first = flatten(params.edits[0].old_string)
    return None if first in flatten(file.text) and first not in flatten(cells.text) else cells


def _place(text: str, position: int, unit: str) -> int:
    """Return the number of the line at a position, or that of the notebook's cell."""
    return (
        text.count(CELL_MARK, 0, position) if unit == "cell" else text.count("\n", 0, position) + 1
    )


def _of_changed(
    params: EditFileParams,
    edit: Callable[[Event], _Edited],
    seen: SeenFile,
    found: Snapshot,
    stop: Event,
) -> _Edited:
    """Return the result of `edit` for a file that has changed since the model saw it. Raises
    StaleFileError unless its passages have not."""
    shown = printable(params.path)
    change = difference(seen, found, shown)
    try:
        edited = edit(stop)
    except ToolError as error:
        raise refused(change, found, shown) from error
    # The passages of a notebook's cells are not as such in its JSON: there, changed lines decide.
    passages = [flatten(each.old_string) if edited.unit == "line" else "" for each in params.edits]
    if change is None or edited.differences or not change.spares(edited.new.text, passages):
        raise refused(change, found, shown)
    return replace(edited, notes=[change.note], differences=[ELSEWHERE])


def _matches(
    file: DecodedText, text: str, edit: TextEdit, shown: str, unit: str
) -> list[TextMatch]:
    """Find the places of an edit. Raises ToolError for no place, and for several that aren't
    wanted."""
    flat, old, new = map(flatten, (text, edit.old_string, edit.new_string))
    if edit.replace_all:  # exact places only; a near match must be the only one
        each = re.finditer(re.escape(old), flat)
        if exact := [TextMatch(hit.start(), hit.end(), new) for hit in each]:
            return exact
    matches = find_matches(flat, old, new)
    if not matches:
        raise not_found(replace(file, text=text), old, new, shown)
    if len(matches) == 1:
        return matches
    places = _listed([_place(flat, match.start, unit) for match in matches], unit)
    if differences := matches[0].differences:
        raise ToolError(
            f"old_string isn't in {shown} exactly, and nearly in {len(matches)} places "
            f"({places}), where {' and '.join(differences)}.",
            hint="Copy the passage exactly as it is in the file.",
        )
    raise ToolError(
        f"old_string occurs {len(matches)} times in {shown} ({places}).",
        hint="Add lines around it until it is unique, or set replace_all.",
    )


def _where(edited: _Edited, edits: int) -> str:
    """Return where a file was edited, in words."""
    places, count = _listed(edited.places, edited.unit), len(edited.places)
    if count == 1:
        return f"{'in' if edited.unit == 'cell' else 'at'} {places}"
    if edits > 1:
        return f"in {count} places ({places})"
    return f"{count} times" + f" ({places})" * (edited.unit == "cell")


def _listed(places: Sequence[int], unit: str) -> str:
    """Return the numbers of lines or cells, with the word; a cell is named once."""
    numbers = list(dict.fromkeys(places)) if unit == "cell" else list(places)
    word = unit if len(numbers) == 1 else f"{unit}s"
    return f"{word} {', '.join(map(str, numbers[:_LISTED]))}" + ", …" * (len(numbers) > _LISTED)


def not_found(file: DecodedText, old: str, new: str, shown: str) -> ToolError:
    """Explain why `old` is not in the file, as far as that is known, and show what comes close."""
    message = f"old_string isn't in {shown}."
    if shown.lower().endswith(".ipynb"):
        message += " Copy from the cells of the notebook as read_file shows them, or its raw JSON."
    if "\ufffd" in old and not file.valid:
        return ToolError(
            message,
            hint="The file isn't UTF-8: choose a passage without the characters shown as \ufffd.",
        )
    from tui.tools.near_lines import closest, excerpt, same_but_blanks  # noqa: PLC0415 - few edits miss

    flat = flatten(file.text)
    lines = [line.removeprefix(CELL_MARK) for line in flat.split("\n")]
    if (span := same_but_blanks(lines, old)) is not None:
        return ToolError(
            f"{message} Lines {span[0] + 1}-{span[1]} differ from it only in blanks "
            f"(indentation, tabs, line ends):\n{excerpt(lines, *span)}\n",
            hint="Copy the passage exactly as it is in the file.",
        )
    # The model may repeat an edit whose result it has forgotten.
    if new.strip() and flatten(new) in flat:
        return ToolError(
            f"{message} But new_string is: the change may have been made already.",
            hint="Read the file to check.",
        )
    if (span := closest(lines, old)) is not None:
        return ToolError(
            f"{message} The closest lines are {span[0] + 1}-{span[1]}:\n{excerpt(lines, *span)}\n",
            hint="Read the file again and copy the passage exactly.",
        )
    return ToolError(message, hint="Read the file again and copy the passage exactly.")
