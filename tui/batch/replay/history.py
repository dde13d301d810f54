"""The session that a replay begins with: what was said before the prompt, in another folder.

The conversation is that of the record, and the folder's path in it is the new one's. What requests
began with, and what was said at their ends, is made again: the system prompt is the one that is
tried.
Everything here blocks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from tui.batch.replay.recorded import RecordedPrompt, relocated
from tui.core.clock import Clock, timestamp
from tui.core.facts import TitleChanged
from tui.core.paths import Folders
from tui.session import copies
from tui.session.records import CHECKPOINT, Record, new_id

_MADE_ANEW: Final = frozenset(
    {"frame", "notice", "request", "reload", "break", "break_billed", CHECKPOINT}
)
"""Types of records that belong to the requests and the folder of then."""


def begin_session(
    source: RecordedPrompt, name: str, folder: Path, *, folders: Folders, clock: Clock
) -> Path:
    """Write the session of the replay of a case, by its name, in `folder`, up to the prompt. Raises
    StorageError."""
    kept = [one for one in source.branch[: source.start] if one.type not in _MADE_ANEW]
    header = copies.header_of(source.loaded, clock=clock, cwd=folder)
    header = replace(header, cwd=str(folder))
    path = copies.place_of(header, folders=folders, clock=clock)
    old, new = str(source.root), str(folder)
    records: list[Record] = []
    for one in kept:
        parent = records[-1].id if records else None
        data = _moved(one.data, old, new)
        if one.type == "directive":
            data["elevated"] = False  # the options of the replay say that
        records.append(replace(one, parent=parent, data=data))
    title, now = TitleChanged(f"Replay: {name}"), clock.now()
    parent = records[-1].id if records else None
    id_ = new_id(now, after=parent or "")
    records.append(Record(title.recorded_as(), id_, parent, timestamp(now), title.to_record()))
    copies.write_family(path, header, records, source.loaded.children, clock=clock)
    return path


def _moved(data: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return cast("dict[str, Any]", _value(data, old, new))


def _value(value: object, old: str, new: str) -> object:
    match value:
        case str():
            return relocated(value, old, new)
        case list():
            return [_value(one, old, new) for one in cast("list[object]", value)]
        case dict():
            fields = cast("dict[str, object]", value)
            return {name: _value(one, old, new) for name, one in fields.items()}
        case _:
            return value
