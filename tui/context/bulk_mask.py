"""Masking many results at once: what would be masked and what it would save, before it is done.

Pure: whether a file changed is asked of a function that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tui.context.overrides import (
    SPEAKING,
    Overlay,
    Stand,
    chars,
    content_of,
    overlays_of,
    pins_of,
    stand,
)
from tui.core.messages import tool_calls
from tui.session.records import Record


@dataclass(frozen=True, slots=True)
class Read:
    """A file as read_file found it. `time` is when the result was recorded, as in the record.

    `path` is as the tool resolved it, or as the model named it where the record does not say;
    `size`, `mtime_ns` and `sha256` are None where it does not say.
    """

    path: str
    time: str
    size: int | None = None
    mtime_ns: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A tool result that could be masked: not pinned, not masked, and worth it.

    `age` is in turns; `saves` the tokens that masking it saves; `read` what it read, where that
    is what it did.
    """

    id: str
    age: int
    chars: int
    saves: int
    read: Read | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Results to be masked, and the estimated tokens that this saves."""

    reason: str
    targets: tuple[str, ...]
    saves: int

    def overlays(self) -> list[Overlay]:
        return [Overlay(target, "masked", reason=self.reason) for target in self.targets]


def ages(records: Iterable[Record]) -> dict[str, int]:
    """How many turns ago each record that speaks was made; 0 in the last turn.

    A turn begins with a user message that holds no result (R34): what was typed into a round of
    tools begins none.
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
) -> list[Result]:
    """The results that could be masked, oldest first.

    `stands` is how they stand now, `weigh` what one weighs in tokens if it stood so, None being
    as recorded; it raises KeyError for a record that is not in the request.
    """
    pinned, masked, turns = pins_of(records), overlays_of(records), ages(records)
    called: dict[str, Mapping[str, Any]] = {}
    found: list[Result] = []
    for record in records:
        if record.type == "assistant":
            calls = tool_calls(content_of(record))
            called.update((str(call.get("id")), call) for call in calls)
        if record.type != "tool_result" or record.id in pinned:
            continue
        overlay = masked.get(record.id)
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
            found.append(Result(record.id, turns[record.id], size, saves, _read(record, call)))
    return found


def older(found: Iterable[Result], turns: int) -> Plan:
    """Results more than `turns` turns old."""
    return _plan(f"older than {_count(turns, 'turn')}", (r for r in found if r.age > turns))


def larger(found: Iterable[Result], most: int) -> Plan:
    """Results of more than `most` characters, as they stand now."""
    return _plan(f"over {_count(most, 'character')}", (r for r in found if r.chars > most))


def outdated(found: Iterable[Result], changed: Callable[[Read], bool]) -> Plan:
    """Reads of files that are not any more what was read. `changed` may block, and is asked once
    for each read."""
    stale = (r for r in found if r.read is not None and changed(r.read))
    return _plan("reads of files changed since", stale)


def _plan(reason: str, chosen: Iterable[Result]) -> Plan:
    kept = list(chosen)
    return Plan(reason, tuple(r.id for r in kept), sum(r.saves for r in kept))


def _read(record: Record, call: Mapping[str, Any]) -> Read | None:
    """What a result of read_file read: as its details say, else as it was asked for."""
    if record.data.get("name") != "read_file" or record.data.get("is_error"):
        return None
    details = _object(record.data.get("details"))
    path = details.get("path") or _object(call.get("input")).get("path")
    if not isinstance(path, str) or not path:
        return None
    sha = details.get("sha256")
    return Read(
        path,
        record.time,
        _number(details.get("size")),
        _number(details.get("mtime_ns")),
        sha if isinstance(sha, str) else None,
    )


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
