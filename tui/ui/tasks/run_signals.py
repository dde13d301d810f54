"""How a run stands, said beside its screen: in the terminal's title and tab, by the bell, and in
the events that F12 shows."""

from __future__ import annotations

from dataclasses import dataclass

from tui.batch.events import BatchEvent, FromAgent
from tui.batch.state import RunState
from tui.core import facts
from tui.ui.notifications import Notifier
from tui.ui.terminal import State, TerminalStatus
from tui.ui.widgets.event_log import EventLog


@dataclass(slots=True)
class RunSignals:
    """`name` is the task file's."""

    terminal: TerminalStatus
    notifier: Notifier
    log: EventLog
    name: str

    def begin(self, state: RunState) -> None:
        """The run is being worked on from now on."""
        self.notifier.begin()
        self._tell(state, "working")

    def see(self, event: BatchEvent, state: RunState) -> None:
        """What happened, and how the tasks stand since."""
        match event:
            case FromAgent(event=inner):
                self.log.add(inner)
                waits = facts.awaits_person(inner)
                if waits or isinstance(inner, facts.Parked):
                    self.notifier.see(inner)
                    self._tell(state, "waiting")
                elif waits is False or isinstance(inner, facts.RequestSent):
                    self._tell(state, "working")
            case _:
                self._tell(state)

    def end(self, state: RunState, *, done: bool) -> None:
        """The run has ended; `done` where nothing is left."""
        self.notifier.end(done=done)
        self._tell(state, "idle")

    def _tell(self, state: RunState, what: State | None = None) -> None:
        done = sum(task.status == "completed" for task in state.tasks)
        self.terminal.show(name=f"{self.name} {done}/{len(state.tasks)}", state=what)
