"""Shows beside its screen how a run is going: in the terminal's title and tab, by the bell, and in
the events that F12 shows."""

from __future__ import annotations

from tui.batch.events import BatchEvent, FromAgent
from tui.batch.state import RunState
from tui.core import facts
from tui.core.dataclass import dataclass, field, replace
from tui.core.facts import Notice
from tui.core.formatting import plural
from tui.ui.notifications import Notifier
from tui.ui.program_status import ProgramStatus, TurnStatus
from tui.ui.terminal import TerminalStatus
from tui.ui.widgets.fact_log import FactLog


@dataclass(slots=True)
class RunSignals:
    """Signals of one run; `name` is the task file's."""

    terminal: TerminalStatus
    notifier: Notifier
    log: FactLog
    name: str
    _turns: dict[int, TurnStatus] = field(default_factory=dict[int, TurnStatus])
    """What each task does and asks, by its number: several may run at once."""

    def begin(self, state: RunState) -> None:
        """Show that the run is being worked on."""
        self.notifier.begin()
        self._turns.clear()
        self._tell(state, ProgramStatus("working"))

    def see(self, event: BatchEvent, state: RunState) -> None:
        """Show an event and the tasks' new state."""
        match event:
            case FromAgent(task, inner):
                self.log.add(inner)
                if facts.awaits_person(inner) or isinstance(inner, facts.Parked):
                    self.notifier.see(inner)
                if status := self._turns.setdefault(task, TurnStatus()).see(inner):
                    asked = (turn.asked for turn in self._turns.values() if turn.asked)
                    self._tell(state, next(asked, status))
            case Notice():
                self.log.add(event)
            case _:
                self._tell(state)

    def end(self, state: RunState, *, done: bool) -> None:
        """Show that the run has ended; `done` if nothing remains."""
        self.notifier.end(done=done)
        failed = sum(task.status == "failed" for task in state.tasks)
        problem = ProgramStatus("error", f"{plural(failed, 'task')} failed")
        self._tell(state, problem if failed else ProgramStatus("done" if done else "idle"))

    def _tell(self, state: RunState, status: ProgramStatus | None = None) -> None:
        tasks = len(state.tasks)
        done = sum(task.status == "completed" for task in state.tasks)
        percent = 100 * done // tasks if tasks else None
        status = replace(status or self.terminal.status, percent=percent)
        self.terminal.show_status(status, name=f"{self.name} {done}/{tasks}")
