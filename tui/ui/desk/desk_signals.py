"""Shows beside the desk how its sessions are: in the terminal's title and tab, and by the bell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tui.app.door.lines import SessionStatus, State
from tui.core.dataclass import dataclass
from tui.core.formatting import plural
from tui.desk.host import DeskRow
from tui.ui import program_status
from tui.ui.desk.desk_rows import Group, grouped, quoted
from tui.ui.notifications import Notifier
from tui.ui.program_status import ProgramStatus
from tui.ui.terminal import TerminalStatus

_STATES: Final[Mapping[State, program_status.State]] = {
    "waiting": "blocked",
    "working": "working",
    "parked": "waiting",
    "done": "done",
    "failed": "error",
}


def session_status(status: SessionStatus) -> ProgramStatus:
    """Return a session's state as the terminal is told of it."""
    return ProgramStatus(_STATES.get(status.state, "idle"), status.detail)


def _status(groups: Mapping[Group, Sequence[DeskRow]]) -> ProgramStatus:
    """The state of all sessions in one."""
    if waiting := len(groups["waiting"]):
        verb = "waits" if waiting == 1 else "wait"
        return ProgramStatus("blocked", f"{plural(waiting, 'session')} {verb} for you", "question")
    if working := len(groups["working"]):
        return ProgramStatus("working", plural(working, "session"))
    return ProgramStatus("waiting" if groups["parked"] else "idle")


@dataclass(slots=True)
class DeskSignals:
    """Signals of one desk. `asked` are the questions that wait, of which the person was called."""

    terminal: TerminalStatus
    notifier: Notifier
    asked: frozenset[tuple[str, str, str]] = frozenset()

    def show(self, rows: Iterable[DeskRow]) -> None:
        """Show the sessions as they are now, and call the person for each that begins to wait."""
        groups = grouped(rows)
        waiting = groups["waiting"]
        self.terminal.waiting = len(waiting)
        self.terminal.show_status(_status(groups), name="desk")
        asked = {
            (row.host, row.id, number): row
            for row in waiting
            for number in [one.number for one in row.questions] or [row.since]
        }
        news = list({id(row): row for key, row in asked.items() if key not in self.asked}.values())
        self.asked = frozenset(asked)
        if len(news) > 1:
            self.notifier.need(f"{len(news)} sessions need your answer.")
        elif news:
            self.notifier.need(f"{quoted(news[0])} needs your answer.")
