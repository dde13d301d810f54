"""The end of a session, read without the rest: to be shown while the whole is loaded."""

from __future__ import annotations

import os
from pathlib import Path

from tui.errors import SessionError
from tui.session.lines import Findings, parse, split
from tui.session.reader import active_branch, open_session
from tui.session.records import Record

END_BYTES = 256 * 1024
"""So much of the file is read: more than a screen, whatever its size."""


def read_end(path: Path) -> list[Record]:
    """The last records of a session's active branch, oldest first; [] where none can be read.

    A look, not a load: damage is passed over without a finding. Blocks for a few milliseconds;
    raises SessionError only where the file itself cannot be read.
    """
    with open_session(path) as stream:
        try:
            at = max(0, os.fstat(stream.fileno()).st_size - END_BYTES)
            stream.seek(at)
            lines = split(stream.read)
            if at:
                next(lines, None)  # the first is cut
            objects = [value for _, value in parse(lines, Findings())]
        except OSError as error:
            raise SessionError(f"{path} cannot be read: {error.strerror or error}.") from error
    records: list[Record] = []
    for value in objects:
        kind, id_, parent = value.get("type"), value.get("id"), value.get("parent")
        if isinstance(kind, str) and isinstance(id_, str) and isinstance(parent, str | None):
            data = {k: v for k, v in value.items() if k not in {"type", "id", "parent", "time"}}
            records.append(Record(kind, id_, parent, str(value.get("time", "")), data))
    return active_branch([record for record in records if record.type != "session"])
