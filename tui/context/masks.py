"""Plans for masking: many results at once, with the tokens that this saves, and single images.

Pure: a function that is passed in says whether a file has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tui.context.ledger_items import AT
from tui.context.overrides import (
    MEDIA,
    SPEAKING,
    Overlay,
    Stand,
    chars,
    content_of,
    hides,
    overlays_of,
    pins_of,
    stand,
)
from tui.core.dataclass import dataclass
from tui.core.formatting import plural
from tui.core.messages import object_of, string_of, tool_calls
from tui.session.records import Record


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that read_file read. `time` is when the result was recorded, as in the record.

    `path` is as the tool resolved it, or as the model named it if the record does not say; `size`,
    `mtime_ns` and `sha256` are None if it does not say.
    """

    path: str
    time: str
    size: int | None = None
    mtime_ns: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class MaskableResult:
    """A tool result that could be masked: not pinned, not masked, and large enough.

    `age` is in turns; `saves` the tokens that masking it saves; `read` the file that it read, if it
    is a read.
    """

    id: str
    age: int
    chars: int
    saves: int
    read: FileRead | None = None


@dataclass(frozen=True, slots=True)
class MaskPlan:
    """Results to be masked, and the estimated tokens that this saves."""

    reason: str
    targets: tuple[str, ...]
    saves: int
    wait: bool = False
    """True if it takes effect at the next break."""

    def overlays(self) -> list[Overlay]:
        return [
            Overlay(target, "masked", reason=self.reason, wait=self.wait) for target in self.targets
        ]


def ages(records: Iterable[Record]) -> dict[str, int]:
    """The age of each sent record in turns; 0 for the last turn.

    A turn begins with a prompt after an answer without calls: text typed while tools were running
    begins none.
    """
    turn, free = 0, True
    begun: dict[str, int] = {}
    for record in records:
        if record.type not in SPEAKING:
            continue
        content = content_of(record)
        if record.type == "user":
            turn += free
            free = False
        elif content or record.type == "tool_result":
            calls = tool_calls(content) if record.type == "assistant" else True
            free = record.type == "interrupt" or not calls
        begun[record.id] = turn
    return {id_: turn - then for id_, then in begun.items()}


def results(
    records: Sequence[Record],
    *,
    stands: Mapping[str, Stand],
    weigh: Callable[[str, Stand | None], int],
) -> list[MaskableResult]:
    """Return the results that could be masked, oldest first.

    `stands` are their current stand-ins. `weigh` returns the tokens of one with a stand-in, None
    meaning as recorded; it raises KeyError for a record that is not in the request.
    """
    pinned, masked, turns = pins_of(records), overlays_of(records), ages(records)
    called: dict[str, Mapping[str, Any]] = {}
    maskable: list[MaskableResult] = []
    for record in records:
        if record.type == "assistant":
            calls = tool_calls(content_of(record))
            called.update((str(call.get("id")), call) for call in calls)
        if record.type != "tool_result" or record.id in pinned:
            continue
        overlay = masked.get(record.id)
        # Masking must change the result, and save tokens.
        instead = stand(record, Overlay(record.id, "masked"))
        if instead is None or (overlay and overlay.view == "masked"):
            continue
        now = stands.get(record.id)
        try:
            saves = weigh(record.id, now) - weigh(record.id, instead)
        except KeyError:
            continue
        if saves > 0:
            size = chars(now.blocks if now else content_of(record))
            call = called.get(str(record.data.get("call_id")), {})
            maskable.append(
                MaskableResult(record.id, turns[record.id], size, saves, _read(record, call))
            )
    return maskable


def older(found: Iterable[MaskableResult], turns: int) -> MaskPlan:
    """Plan to mask the results more than `turns` turns old."""
    return _plan(f"older than {plural(turns, 'prompt')}", (r for r in found if r.age > turns))


def larger(found: Iterable[MaskableResult], most: int) -> MaskPlan:
    """Plan to mask the results that now have more than `most` characters."""
    return _plan(f"over {plural(most, 'character')}", (r for r in found if r.chars > most))


def outdated(found: Iterable[MaskableResult], changed: Callable[[FileRead], bool]) -> MaskPlan:
    """Plan to mask the reads of files that have changed since. `changed` may block, and is called
    once for each read."""
    stale = (r for r in found if r.read is not None and changed(r.read))
    return _plan("reads of files changed since", stale)


def _plan(reason: str, chosen: Iterable[MaskableResult]) -> MaskPlan:
    targets = list(chosen)
    return MaskPlan(reason, tuple(r.id for r in targets), sum(r.saves for r in targets))


def _read(record: Record, call: Mapping[str, Any]) -> FileRead | None:
    """The file that a result of read_file read: from its details, otherwise from the call."""
    if record.data.get("name") != "read_file" or record.data.get("is_error"):
        return None
    details = object_of(record.data.get("details"))
    path = string_of(details.get("path") or object_of(call.get("input")).get("path"))
    if not path:
        return None
    size, changed = (_number(details.get(name)) for name in ("size", "mtime_ns"))
    sha = details.get("sha256")
    return FileRead(path, record.time, size, changed, sha if isinstance(sha, str) else None)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def record_of(id_: str) -> tuple[str, int | None]:
    """Split the id of an item of the context: its record, and the block's index for an image."""
    record, _, place = id_.partition(AT)
    return (record, int(place)) if place.isdecimal() else (id_, None)


def one_image(records: Sequence[Record], target: str, place: int, *, hide: bool) -> Overlay:
    """Return the overlay that hides one image of a record, or shows it again; the others stay as
    they are. A record that is masked as a whole is shown as a whole."""
    record = next((record for record in records if record.id == target), None)
    images = {
        n
        for n, block in enumerate(content_of(record) if record else ())
        if block.get("type") in MEDIA
    }
    now = overlays_of(records).get(target)
    hidden: set[int] = set()
    if now is not None and now.view == "masked" and not hide:
        return Overlay(target, "full")
    if now is not None and now.view == "imageless":
        hidden = {place for place in images if hides(now, place)}
    hidden = (hidden | {place} if hide else hidden - {place}) & images
    smaller = now.images if now is not None else {}
    if not hidden and not smaller:
        return Overlay(target, "full")
    return Overlay(target, "imageless", blocks=tuple(sorted(hidden)), images=smaller)
