"""Shows beside its screen how a run is going: in the terminal's title and tab, by the bell, and in
the events that F12 shows."""

from __future__ import annotations

from tui.batch.events import BatchEvent, FromAgent
from tui.batch.state import RunState
from tui.core import facts
from tui.core.dataclass import dataclass
from tui.core.facts import Notice
from tui.ui.notifications import Notifier
from tui.ui.terminal import State, TerminalStatus
from tui.ui.widgets.fact_log import FactLog


@dataclass(slots=True)
class RunSignals:
    """Signals of one run; `name` is the task file's."""

    terminal: TerminalStatus
    notifier: Notifier
    log: FactLog
    name: str

    def begin(self, state: RunState) -> None:
        """Show that the run is being worked on."""
        self.notifier.begin()
        self._tell(state, "working")

    def see(self, event: BatchEvent, state: RunState) -> None:
        """Show an event and the tasks' new state."""
        match event:
            case FromAgent(event=inner):
                self.log.add(inner)
                waits = facts.awaits_person(inner)
                if waits or isinstance(inner, facts.Parked):
                    self.notifier.see(inner)
                    self._tell(state, "waiting")
                elif waits is False or isinstance(inner, facts.RequestSent):
                    self._tell(state, "working")
            case Notice():
                self.log.add(event)
            case _:
                self._tell(state)

    def end(self, state: RunState, *, done: bool) -> None:
        """Show that the run has ended; `done` if nothing remains."""
        self.notifier.end(done=done)
        self._tell(state, "idle")

    def _tell(self, state: RunState, what: State | None = None) -> None:
        done = sum(task.status == "completed" for task in state.tasks)
        self.terminal.show(name=f"{self.name} {done}/{len(state.tasks)}", state=what)
