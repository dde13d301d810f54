"""The changes that a session and others made in the workspace, by its checkpoints and its record.

A difference between two checkpoints is the session's own if one of its commands ran in between (see
`tui.agent.checkpoints`); the writes of its file tools are in their results. Everything else was
changed by somebody else: the person, an editor, git. Everything that compares checkpoints blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias

from tui.context.file_changes import FileChange, changes
from tui.core.dataclass import dataclass
from tui.core.messages import object_of, string_of
from tui.session.checkpoints.entries import Change, CheckpointError, PathEntry
from tui.session.records import CHECKPOINT, Record

Difference: TypeAlias = Callable[[str, str], Sequence[Change]]
"""Lists the differences between two checkpoints, named by their ids."""
_State: TypeAlias = PathEntry | str | None
"""The state in which a file was left: its entry, its hash alone (the file tools), or gone."""


@dataclass(frozen=True, slots=True)
class WorkspaceChanges:
    """The changes in the workspace since a moment: by the session itself (`own`), by others
    (`others`), and by its file tools where no checkpoint has them (`beside`)."""

    known: bool = True
    """True if checkpoints were compared; otherwise only `beside` is filled."""
    own: tuple[Change, ...] = ()
    others: tuple[Change, ...] = ()
    edited_since: tuple[Path, ...] = ()
    """Files of `others` that the session had changed before."""
    beside: tuple[FileChange, ...] = ()

    @property
    def own_files(self) -> list[Path]:
        """The session's changed files as a person would list them: nothing ignored, no folders."""
        return [*files_of(self.own), *(change.path for change in self.beside)]


def files_of(found: Iterable[Change]) -> list[Path]:
    """The files among changes: nothing that git ignores, no folders."""
    return [change.path for change in found if not (change.ignored or change.is_folder)]


def checkpoint_at(records: Sequence[Record], place: int) -> str:
    """The checkpoint of the files at a prompt or a request in the record; "" if there is none.

    The checkpoint of a prompt is recorded once it is taken, which may be after the first request.
    A prompt that needed none has that of the next one, if no call that may change files ended
    between them.
    """
    user = next((one.id for one in reversed(records[: place + 1]) if one.type == "user"), "")
    later = (one for one in records[place:] if one.type == CHECKPOINT)
    before = (one for one in reversed(records[:place]) if one.type == CHECKPOINT)
    own = next((_id(one) for one in later if user and one.data.get("prompt") == user), "")
    return own or next(map(_id, before), "") or _next_checkpoint(records[place:])


def _next_checkpoint(records: Sequence[Record]) -> str:
    changing = set[object]()
    for record in records:
        call_id = record.data.get("call_id")
        if record.type == CHECKPOINT:
            return _id(record)
        if record.type == "intent" and record.data.get("effect") != "read":
            changing.add(call_id)
        elif record.type == "tool_result" and call_id in changing:
            break
    return ""


def changed_since(
    records: Sequence[Record], place: int, now: str, difference: Difference
) -> WorkspaceChanges:
    """Compare the files at a prompt with the checkpoint `now`.

    Raises CheckpointError if a checkpoint that is needed isn't stored any more.
    """
    written = changes(records[place:])
    start = checkpoint_at(records, place)
    if not start or not now:
        return WorkspaceChanges(known=False, beside=tuple(written))
    differences = difference(start, now)
    last = _last_states(records[place:], start, now, difference)
    own = [change for change in differences if _is(change.new, last.get(change.path, _NOBODY))]
    known = {change.path for change in differences}
    mine = {change.path for change in own}
    return WorkspaceChanges(
        own=tuple(own),
        others=tuple(change for change in differences if change.path not in mine),
        edited_since=tuple(path for path in last if path in known - mine),
        beside=tuple(change for change in written if change.path not in known),
    )


def changed_between(
    records: Sequence[Record],
    branch: Sequence[Record],
    then: str,
    now: str,
    difference: Difference,
) -> WorkspaceChanges:
    """Compare the files where another branch ended, at the checkpoint `then`, with those `now`,
    while the session is on `records`. Own changes are those of both branches since they parted.

    Raises CheckpointError if a checkpoint that is needed isn't stored any more.
    """
    pairs = zip(records, branch, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0].id == pair[1].id, pairs))
    here, there = records[shared:], branch[shared:]
    if not then or not now:
        return WorkspaceChanges(known=False)
    differences = difference(then, now)
    start = _first_state(here) or now
    last = _last_states(here, start, now, difference)
    theirs = _paths_of(there, difference)
    since = {change.path for change in difference(start, now)}
    # Changed here: ours if it is still as we left it. Changed there alone: ours unless somebody
    # changed it here since.
    own = [
        change
        for change in differences
        if (
            _is(change.new, last[change.path])
            if change.path in last
            else change.path in theirs and change.path not in since
        )
    ]
    mine = {change.path for change in own}
    return WorkspaceChanges(
        own=tuple(own),
        others=tuple(change for change in differences if change.path not in mine),
        edited_since=tuple(
            change.path
            for change in differences
            if change.path not in mine and (change.path in last or change.path in theirs)
        ),
    )


def checkpoint_at_end(records: Iterable[Record], branch: Sequence[Record]) -> str:
    """The checkpoint of the files where a branch ended, by all records of its session; "" where
    none is known."""
    end = branch[-1].id if branch else ""
    left = [r for r in records if r.type == "rewind" and r.data.get("left") == end]
    if left and (known := _id(left[-1])):
        return known
    last = max((n for n, record in enumerate(branch) if record.type == CHECKPOINT), default=-1)
    return "" if last < 0 or changes(branch[last:]) else _id(branch[last])


def git_branch_at(records: Sequence[Record]) -> str:
    """The branch that git was on after the last of these records, as far as the model was told; ""
    where that isn't known."""
    for record in reversed(records):
        facts = object_of(record.data.get("facts")) if record.type in _TOLD else {}
        if _GIT in facts:
            return string_of(facts[_GIT])
    return ""


def own_paths(
    records: Sequence[Record], places: Sequence[int], difference: Difference
) -> list[set[Path]]:
    """Collect for each place in a record the files that the session changed since, even if they are
    back in their old state by now. Checkpoints that aren't stored any more are skipped."""
    touched = _touched(records, difference)
    by_place: list[set[Path]] = []
    paths: set[Path] = set()
    end = len(records)
    for place in sorted(places, reverse=True):
        for number in range(place, end):
            paths.update(touched.get(number, ()))
        end = place
        by_place.append(set(paths))
    return by_place[::-1]


_NOBODY = "nobody"
_OWN = frozenset({"call", "job"})
_GIT = "Git branch"
_TOLD = frozenset({"frame", "notice"})


def _touched(records: Sequence[Record], difference: Difference) -> dict[int, set[Path]]:
    touched: dict[int, set[Path]] = {}
    for number, before, record in _own_checkpoints(records, ""):
        if before:
            try:
                touched[number] = set(files_of(difference(before, _id(record))))
            except CheckpointError:
                continue
    for number, record in enumerate(records):
        if written := changes([record]):
            touched.setdefault(number, set()).update(change.path for change in written)
    return touched


def _paths_of(records: Sequence[Record], difference: Difference) -> set[Path]:
    """The paths that a session changed in a part of its record."""
    return {path for paths in _touched(records, difference).values() for path in paths}


def _first_state(records: Sequence[Record]) -> str:
    """The first checkpoint that is known of a part of a record; "" where there is none."""
    taken = (_id(record) for record in records if record.type in {CHECKPOINT, "rewind"})
    return next(filter(None, taken), "")


def _last_states(
    records: Sequence[Record], start: str, now: str, difference: Difference
) -> dict[Path, _State]:
    """The states in which the session itself left the files it changed."""
    last: dict[Path, _State] = {}
    ours = frozenset({*_OWN, "rewind"})
    own = {
        number: (before, _id(record))
        for number, before, record in _own_checkpoints(records, start, ours)
    }
    end = start
    for number, record in enumerate(records):
        if number in own:
            for change in difference(*own[number]):
                last[change.path] = change.new
        if record.type == CHECKPOINT:
            end = _id(record)
        for change in changes([record]):
            last[change.path] = change.after_sha256
    # A command that still runs may have changed anything since the last checkpoint.
    if _open(records):
        for change in difference(end, now):
            last[change.path] = change.new
    return last


def _own_checkpoints(
    records: Sequence[Record], start: str, by: Collection[str] = _OWN
) -> Iterable[tuple[int, str, Record]]:
    """Yield the checkpoints taken after the session's own commands: place, the id before,
    record."""
    before = start
    for number, record in enumerate(records):
        if record.type == CHECKPOINT:
            if record.data.get("by") in by:
                yield number, before, record
            before = _id(record)
        elif record.type == "rewind":
            before = _id(record) or before


def _open(records: Sequence[Record]) -> bool:
    """True if a call that runs something has begun and not ended."""
    begun = {
        r.data.get("call_id")
        for r in records
        if r.type == "intent" and r.data.get("effect") == "run"
    }
    return bool(begun - {r.data.get("call_id") for r in records if r.type == "tool_result"})


def _is(entry: PathEntry | None, state: _State) -> bool:
    """True if a file is as it was left."""
    if isinstance(state, str):
        return entry is not None and entry.digest is not None and entry.digest.hex() == state
    return entry.same(state) if entry is not None else state is None


def _id(record: Record) -> str:
    return str(record.data.get("checkpoint") or "")
