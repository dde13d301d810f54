"""Shows beside the desk how its sessions are: in the terminal's title and tab, and by the bell."""

from __future__ import annotations

from collections.abc import Iterable

from tui.core.dataclass import dataclass
from tui.desk.host import DeskRow
from tui.ui.desk.desk_rows import grouped, title_of
from tui.ui.notifications import Notifier
from tui.ui.terminal import State, TerminalStatus


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
        state: State = "working" if groups["working"] or groups["parked"] else "idle"
        self.terminal.waiting = len(waiting)
        self.terminal.show(name="desk", state="waiting" if waiting else state)
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
            self.notifier.need(f"{title_of(news[0])}: needs your answer.")
