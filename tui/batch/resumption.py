"""A task that a killed run was at continues where it was, if nothing about it is uncertain.

Its session, its files and its commands are then as the kill left them: a command that still runs is
waited for, the result of one that has ended is kept, and the next request is the one that the kill
prevented. Otherwise the task begins again, with the files as they were before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tui.agent.interrupted_work import interrupted_work
from tui.agent.supervised_commands import place_of
from tui.batch.state import TaskState
from tui.core.dataclass import dataclass
from tui.core.errors import SessionError
from tui.core.messages import Usage, blocks_of, text_of
from tui.core.paths import Folders
from tui.core.text_cleaning import one_line
from tui.session import catalog
from tui.session.lock import holder
from tui.session.reader import read
from tui.session.records import Record

_SPOKEN = frozenset({"user", "assistant", "tool_result", "interrupt", "error", "parked"})


@dataclass(frozen=True, slots=True)
class Resumption:
    """The place where a task continues: its session, and the ids of the calls that have no result
    yet.

    `running` are the labels of those whose commands still run. `answer` is the last one where the
    model had ended its turn, with the size of its request, `context`, in tokens; else "".
    """

    path: Path
    calls: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    answer: str = ""
    context: int = 0

    @property
    def words(self) -> str:
        """For the person."""
        still = f" Still running: {', '.join(map(one_line, self.running))}." if self.running else ""
        return f"and it goes on where it was.{still}"


def first_record_of(records: Sequence[Record], index: int) -> str:
    """The id of the record with which a task's last attempt begins; "" if it is not there."""
    marked = (
        after.id
        for mark, after in pairwise(records)
        if mark.type == "task" and mark.data.get("index") == index
    )
    return next(iter([*marked][::-1]), "")


def resumption_of(task: TaskState, folders: Folders, target: Path) -> Resumption | None:
    """Find where a task continues; None where it has to begin again: its prompt isn't in the
    record, a call may or may not have happened, or somebody else has its session open. Blocks."""
    try:
        path = catalog.resolve(task.session_id or "", folders)
        loaded = read(path)
    except SessionError:
        return None
    records = loaded.branch
    if loaded.findings or holder(path) or not first_record_of(records, task.index):
        return None
    place = place_of(folders, loaded.header.id)
    work = interrupted_work(records, target, path, place)
    known = all(call.recovery in {"result", "start"} for call in work.calls)
    if work.orphans or not known:
        return None
    calls = tuple(call.call_id for call in work.calls)
    running = tuple(call.label for call in work.calls if call.kept == "running")
    last = next((one for one in reversed(records) if one.type in _SPOKEN), None)
    if last is None or last.type != "assistant" or last.data.get("stop_reason") != "end_turn":
        return Resumption(path, calls, running)
    answer = text_of(blocks_of(last.data.get("content"))) or " "
    context = Usage.from_json(last.data.get("usage")).context
    return Resumption(path, answer=answer, context=context)
