"""apply_patch: change, add, move and delete several files with one patch; all of it or nothing."""

from __future__ import annotations

import stat as stats
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import Annotated, ClassVar

from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import ToolError
from tui.core.formatting import size
from tui.core.messages import ToolOutput, text_block
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext, about
from tui.tools.diff import UnifiedDiff, unified
from tui.tools.file_access import WHOLE_FILE_LIMIT, in_thread, missing, resolve, take_snapshot
from tui.tools.file_batch import NEW_MODE, FileWrite, write_files
from tui.tools.file_ledger import SeenFile, Snapshot
from tui.tools.patch_format import FilePatch, label_of, parse_patch
from tui.tools.patch_hunks import Patched, added_text, apply_hunks
from tui.tools.stale_text import ELSEWHERE, StaleFileError, difference, refusal, refused
from tui.tools.text_decoding import DecodedText, decode, printable, valid_text


class ApplyPatchParams(Params, frozen=True, kw_only=True):
    patch: Annotated[str, about("The whole patch, from *** Begin Patch to *** End Patch.")]


@dataclass(slots=True)
class _Plan:
    """The effect of a patch: the writes, and for each file a line for the model and its diff."""

    writes: list[FileWrite] = field(default_factory=list[FileWrite])
    lines: list[str] = field(default_factory=list[str])
    diffs: list[UnifiedDiff] = field(default_factory=list[UnifiedDiff])
    notes: list[str] = field(default_factory=list[str])
    elsewhere: list[str] = field(default_factory=list[str])
    """Changes to the files since the model saw them, in words."""

    @property
    def diff(self) -> str:
        return "\n".join(diff.text for diff in self.diffs if diff.text)

    @property
    def summary(self) -> str:
        added, removed = (
            sum(getattr(diff, name) for diff in self.diffs) for name in ("added", "removed")
        )
        return f"+{added} −{removed}"


@dataclass(frozen=True, slots=True)
class _Place:
    """A path of a patch: its real path, its name for the model, its present state, and the state
    that the model last saw."""

    path: Path
    shown: str
    found: Snapshot | None
    seen: SeenFile | None

    @property
    def known(self) -> bool:
        """True if the model has read it."""
        return self.seen is not None

    @property
    def stale(self) -> bool:
        """True if the model knows the file in another state."""
        return bool(self.seen and self.found and not self.seen.is_still(self.found))


class ApplyPatch(Tool[ApplyPatchParams]):
    name: ClassVar[str] = "apply_patch"
    effect: ClassVar[Effect] = "write"
    params: ClassVar[type[Params]] = ApplyPatchParams

    def parse(self, arguments: object) -> ApplyPatchParams:
        """Parse the arguments and the patch, so that the permissions know every path of a call."""
        params = super().parse(arguments)
        parse_patch(params.patch)
        return params

    def subject(self, params: ApplyPatchParams) -> str:
        return ", ".join(self.paths(params))

    def paths(self, params: ApplyPatchParams) -> tuple[str, ...]:
        files = parse_patch(params.patch)
        return tuple(dict.fromkeys(path for file in files for path in file.paths))

    def label(self, params: ApplyPatchParams) -> str:
        return label_of(self.paths(params))

    async def run(self, params: ApplyPatchParams, ctx: ToolContext) -> ToolOutput:
        plan = await self._plan(params, ctx)
        files, notes = await write_files(ctx, plan.writes)
        return ToolOutput(
            [text_block("\n".join([*plan.lines, *notes, *plan.notes, *plan.elsewhere]))],
            summary=plan.summary
            + " · not exact" * bool(plan.notes)
            + f" · {ELSEWHERE}" * bool(plan.elsewhere),
            display=plan.diff,
            details={"files": files},
        )

    async def preview(self, params: ApplyPatchParams, ctx: ToolContext) -> CallPreview:
        return CallPreview("diff", (await self._plan(params, ctx, whole=True)).diff)

    async def _plan(
        self, params: ApplyPatchParams, ctx: ToolContext, *, whole: bool = False
    ) -> _Plan:
        """Plan everything that will be written. Raises ToolError if any of it cannot or must not
        be."""
        plan = _Plan()
        used: set[Path] = set()
        for file in _joined(parse_patch(params.patch)):
            places = [await self._place(ctx, path) for path in file.paths]
            for place in places:
                if place.path in used:
                    raise _refused(f"The patch names {place.shown} twice.", "Name it once.")
                used.add(place.path)
            await self._check(ctx, file, places)
            await in_thread(partial(_add, plan, file, places, whole))
        return plan

    async def _place(self, ctx: ToolContext, named: str) -> _Place:
        path = await resolve(ctx, named)
        shown = printable(ctx.workspace.show(path))
        snapshot = await in_thread(lambda _stop: take_snapshot(path, shown))
        return _Place(path, shown, snapshot, ctx.files.seen(path))

    async def _check(self, ctx: ToolContext, file: FilePatch, places: Sequence[_Place]) -> None:
        """Check that files exist that must, none exists that must not, and none that is deleted or
        moved as a whole has changed since the model read it."""
        place, target = places[0], places[-1]
        if file.action == "add" and place.found is not None:
            raise _refused(
                f"{place.shown} exists already, so it can't be added.",
                "Update it, or replace it with write_file.",
            )
        if file.action != "add":
            if place.found is None:
                error = await in_thread(lambda _stop: missing(ctx.workspace, place.path))
                raise _refused(error.message, error.hint)
            if not place.known and file.action == "delete" and not file.hunks:
                ctx.files.before(place.found, place.shown)
            if place.stale and place.seen and (file.action == "delete" or not file.hunks):
                raise await refusal(place.seen, place.found, place.shown)
        if target is not place and target.found is not None:
            raise _refused(
                f"{target.shown} exists already, so nothing can be moved there.",
                "Choose another name, or delete it first.",
            )


def _refused(message: str, hint: str = "") -> ToolError:
    return ToolError(f"{message} Nothing was changed.", hint=hint)


def _joined(files: Sequence[FilePatch]) -> list[FilePatch]:
    """Merge all updates of one path into one."""
    joined: dict[str, FilePatch] = {}
    merged: list[FilePatch] = []
    for file in files:
        first = joined.get(file.path)
        if file.action == "update" and first is not None and not (first.target and file.target):
            first.hunks += file.hunks
            first.target = first.target or file.target
            continue
        if file.action == "update":
            joined[file.path] = file
        merged.append(file)
    return merged


def _add(plan: _Plan, file: FilePatch, places: Sequence[_Place], whole: bool, _stop: Event) -> None:
    """Add the changes to one file to the plan."""
    try:
        match file.action:
            case "add":
                _add_new(plan, file, places[0], whole)
            case "delete":
                _add_deleted(plan, file, places[0], whole)
            case "update":
                _add_updated(plan, file, places, whole)
    except StaleFileError:
        raise
    except ToolError as error:
        raise _refused(error.message, error.hint) from error


def _add_new(plan: _Plan, file: FilePatch, place: _Place, whole: bool) -> None:
    from tui.tools.new_content import new_content  # noqa: PLC0415 - for a write only

    text = added_text(file)
    mode = 0o777 if file.mode is not None and file.mode & stats.S_IXUSR else NEW_MODE
    data = new_content(DecodedText(""), text, place.path, place.shown).data
    plan.writes.append(FileWrite(place.path, data, None, mode))
    plan.diffs.append(unified(None, text, place.shown, whole=whole))
    plan.lines.append(f"Created {place.shown}: {size(len(data))}.")


def _add_deleted(plan: _Plan, file: FilePatch, place: _Place, whole: bool) -> None:
    assert place.found is not None
    if place.found.data is None:
        raise _too_large(place, "Delete it with a command.")
    try:
        text = valid_text(decode(place.found.data, place.shown).text)
    except ToolError:
        if file.hunks:
            raise
        diff = UnifiedDiff(f"{place.shown}: not shown as text, is deleted", 0, 0)
    else:
        if file.hunks and apply_hunks(file, text, place.shown).text:
            raise ToolError(
                f"{place.shown} holds more than the patch removes, so it isn't deleted.",
                hint="Read it again; *** Delete File deletes it whatever it holds.",
            )
        diff = unified(text, None, place.shown, whole=whole)
    plan.writes.append(FileWrite(place.path, None, place.found))
    plan.diffs.append(diff)
    plan.lines.append(f"Deleted {place.shown}.")


def _add_updated(plan: _Plan, file: FilePatch, places: Sequence[_Place], whole: bool) -> None:
    from tui.tools.new_content import NewContent, new_content  # noqa: PLC0415 - for a write only

    place, target = places[0], places[-1]
    snapshot = place.found
    assert snapshot is not None
    if snapshot.data is None:
        raise _too_large(place, "Change it with a command (sed, a short script).")
    new, moved = NewContent(snapshot.data), target is not place
    before = after = ""
    if file.hunks:
        source = decode(snapshot.data, place.shown)
        patched = _patched(file, place, source.text)
        if patched.text == source.text and not moved:
            raise ToolError(f"The patch changes nothing in {place.shown}.")
        new = new_content(source, patched.text, target.path, target.shown)
        plan.notes += patched.notes
        plan.elsewhere += filter(None, [patched.changed_elsewhere])
        before, after = valid_text(source.text), valid_text(patched.text)
    name = place.shown if moved else ""
    diff = unified(before, after, target.shown, whole=whole, moved_from=name)
    if moved:
        # A move is a new file and a deletion.
        mode = stats.S_IMODE(snapshot.stat.st_mode) & 0o777
        plan.writes.append(FileWrite(target.path, new.data, None, mode, place.known))
        plan.writes.append(FileWrite(place.path, None, snapshot))
        line = f"Moved {place.shown} to {target.shown}: {diff.summary} lines."
    else:
        plan.writes.append(FileWrite(place.path, new.data, snapshot, known=place.known))
        line = f"Edited {place.shown}: {diff.summary} lines."
    plan.diffs.append(diff)
    plan.lines.append(" ".join([line, *new.notes]))


def _patched(file: FilePatch, place: _Place, text: str) -> Patched:
    """Apply the hunks of a file to a text. If it has changed since the model read it, they must not
    touch what changed: raises StaleFileError."""
    if place.seen is None or place.found is None or not place.stale:
        return apply_hunks(file, text, place.shown)
    change = difference(place.seen, place.found, place.shown)
    try:
        patched = apply_hunks(file, text, place.shown)
    except ToolError as error:
        raise refused(change, place.found, place.shown) from error
    passages = ["\n".join(hunk.old) for hunk in file.hunks]
    if change is None or patched.notes or not change.spares(patched.text, passages):
        raise refused(change, place.found, place.shown)
    return replace(patched, changed_elsewhere=change.note)


def _too_large(place: _Place, hint: str) -> ToolError:
    assert place.found is not None
    return ToolError(
        f"{place.shown} is too large to patch: {size(place.found.stat.st_size)}, "
        f"the limit is {size(WHOLE_FILE_LIMIT)}.",
        hint=hint,
    )
