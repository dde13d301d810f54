"""What an earlier run left open: calls without a result, and commands that still run (decision 32).

Commands outlive the program only where it was killed. They are told by their process id and the
time of their birth, so that no other process that has got the number since is taken for one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, cast

from tui.context.interrupted_calls import Interrupted, interrupted_calls, with_file
from tui.core.messages import Block, blocks_of, tool_calls
from tui.session.records import Finding, Record
from tui.tools.process import born


@dataclass(frozen=True, slots=True)
class Orphan:
    """A command that an earlier run of the session started and that still runs."""

    pid: int
    born: str
    command: str
    started: str


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Calls that have no result and are not settled, and commands that still run."""

    calls: tuple[Interrupted, ...] = ()
    orphans: tuple[Orphan, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.calls or self.orphans)


def left_open(records: Sequence[Record], root: Path) -> Leftovers:
    """What the branch of a session left open. `root` is its workspace. Blocks: files are read."""
    calls = tuple(_with_file(call, root) for call in interrupted_calls(records) if not call.settled)
    return Leftovers(calls, tuple(_orphans(records)))


def new_findings(records: Sequence[Record], findings: Sequence[Finding]) -> list[Finding]:
    """The findings that no repair record of the branch has told before (R9: told once)."""
    told = {
        (item.get("code"), item.get("where"), item.get("action"))
        for record in records
        if record.type == "repair" and "rung" not in record.data
        for item in dicts_of(record.data.get("findings"))
    }
    return [f for f in findings if (f.code, f.where, f.action) not in told]


def dicts_of(value: object) -> list[dict[str, Any]]:
    """The objects of a list that was read from a file."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _with_file(call: Interrupted, root: Path) -> Interrupted:
    if call.effect != "write" or not call.path:
        return call
    path = root / call.path
    try:
        with path.open("rb") as file:
            return with_file(call, file_digest(file, "sha256").hexdigest())
    except (FileNotFoundError, NotADirectoryError):
        return with_file(call, None)
    except OSError:
        return call


def _orphans(records: Sequence[Record]) -> list[Orphan]:
    found: list[Orphan] = []
    for record in records:
        pid, birth = record.data.get("pid"), record.data.get("born")
        if record.type != "job" or not isinstance(pid, int) or not isinstance(birth, str):
            continue
        if birth and born(pid) == birth:
            found.append(Orphan(pid, birth, str(record.data.get("command", "")), record.time))
    return found


def calls_of(records: Sequence[Record], ids: Collection[str]) -> list[Block]:
    """The calls of these ids, in the order in which they were made."""
    wanted, found = set(ids), list[Block]()
    for record in records:
        if record.type == "assistant":
            calls = tool_calls(blocks_of(record.data.get("content")))
            found += [call for call in calls if call.get("id") in wanted]
    return found
