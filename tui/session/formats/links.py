"""Ids and links to parents, by which a program finds the conversation in a file of lines."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Iterator
from typing import Any

from tui.core.messages import object_of, string_of
from tui.session.formats.lines import MendedLine, Repairs, encoded
from tui.session.jsonl import JsonObject

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SPACE = uuid.UUID("6f2a5e0c-7a55-4a0e-9a0d-2f5f1d1f7c11")


def session_id(name: str, lines: list[MendedLine]) -> str:
    """The id for a session that has lost its own: the one in the `name` of its file, or else one
    of its content."""
    own = UUID.search(name)
    return own[0] if own else str(uuid.uuid5(_SPACE, lines[0].raw.hex() if lines else name))


def texts_in(lines: list[MendedLine], name: str) -> Iterator[str]:
    """The texts in a field of records, or of their payloads."""
    for line in lines:
        for value in (line.value, object_of(line.value.get("payload"))):
            if text := string_of(value.get(name)):
                yield text


def with_first(
    lines: list[MendedLine],
    repairs: Repairs,
    is_first: Callable[[JsonObject], bool],
    type_: str,
    make: Callable[[JsonObject], JsonObject],
) -> list[MendedLine]:
    """The lines, beginning with what `is_first`. Without such a record, one of the type is made of
    what is known of it, or of nothing."""
    place = next((place for place, line in enumerate(lines) if is_first(line.value)), None)
    if place == 0:
        return lines
    if place is not None:
        repairs.add(lines[place].number, "moved to the start of the file", b"")
        return [lines[place], *lines[:place], *lines[place + 1 :]]
    broken = next((one for one in lines if one.value.get("type") == type_), None)
    value = make(broken.value if broken else {})
    if broken:
        what = "the first record lacked what the program reads of it: it was made again"
        repairs.add(broken.number, what, broken.raw)
    else:
        repairs.add(0, "the first record was missing: one was made", b"")
    return [MendedLine(0, encoded(value), value), *(one for one in lines if one is not broken)]


def distinct(lines: list[MendedLine], key: str, repairs: Repairs) -> list[MendedLine]:
    """The lines, each with an id of its own in `key`, and without copies."""
    seen: dict[str, JsonObject] = {}
    out: list[MendedLine] = []
    for line in lines:
        own = line.value.get(key)
        if isinstance(own, str) and seen.get(own) == line.value:
            repairs.add(line.number, "a copy of an earlier record: set aside", line.raw)
            continue
        if isinstance(own, str):
            if own in seen:
                own = str(uuid.uuid5(_SPACE, f"{own} {line.number} {len(out)}"))
                line = repairs.changed(line, "its id was taken: it has a new one", {key: own})  # noqa: PLW2901 - with that id
            seen[own] = line.value
        out.append(line)
    return out


def linked(
    lines: list[MendedLine],
    keys: tuple[str, str],
    repairs: Repairs,
    in_tree: Callable[[JsonObject], bool],
    *,
    needs_parent: Callable[[JsonObject], bool] = lambda _: False,
    roots: Collection[object] = (),
) -> list[MendedLine]:
    """The lines, each with a way to the first: what leads nowhere or in a circle is linked to the
    record before it, but for `roots`. `keys` are those of the id and the parent. In one pass."""
    key, parent = keys
    parents: dict[str, Any] = {}
    sides: dict[str, bool] = {}
    for line in lines:
        if isinstance(own := line.value.get(key), str) and in_tree(line.value):
            parents[own] = line.value.get(parent)
            if parents[own] is None and parents.keys() != {own} and needs_parent(line.value):
                parents[own] = ""  # as if it was lost
            sides[own] = line.value.get("isSidechain") is True
    changed = _link(parents, sides, roots)
    out: list[MendedLine] = []
    for line in lines:
        own = line.value.get(key)
        if isinstance(own, str) and own in changed:
            what = "linked to the record before" if parents[own] else "a new beginning"
            new = {parent: parents[own]}
            line = repairs.changed(line, f"its parent was lost: {what}", new)  # noqa: PLW2901 - as linked
        out.append(line)
    return out


def _link(parents: dict[str, Any], sides: dict[str, bool], roots: Collection[object]) -> set[str]:
    """Mend the parents, in the order of the file. Returns whose are new."""
    rooted: set[str] = set()
    last: dict[bool, str] = {}
    changed: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        at: Any = start
        while at is not None and not (isinstance(at, str) and at in rooted):
            if isinstance(at, str) and at in parents and at not in path:
                path[at] = None
                at = parents[at]
                continue
            lost = next(reversed(path))  # its parent is not there, or closes a circle
            elsewhere = isinstance(at, str) and at not in path and at
            if elsewhere and (sides[lost] or sides[lost] not in last):
                break  # it continues a record of another file
            parents[lost] = None if lost in roots else last.get(sides[lost])
            changed.add(lost)
            at = parents[lost]
        rooted.update(path)
        last[sides[start]] = start
    return changed
