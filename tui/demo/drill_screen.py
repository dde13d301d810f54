"""The screen of a drill: the program's own, with a mark in the header and the faults announced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from textual import on

from tui.agent import events
from tui.app.options.arguments import Options
from tui.app.ports import SessionChoice
from tui.app.program import CompositionRoot
from tui.core.clock import Clock
from tui.core.messages import text_block
from tui.demo.drill import INTRO, Drill, with_faults
from tui.provider.base import Provider
from tui.session.session import Session
from tui.ui import app
from tui.ui.app import HoldfastApp
from tui.ui.frontend import TurnEnded
from tui.ui.start.terminal_takeover import TerminalTakeover

MARK = "DRILL"

_TURNS = 6
_NOTE = "This is here to be shortened, once the model says that its context is full. " * 8
_SHEETS = Path(app.__file__).parent

_DELAY_S = 0.02
"""Between two pieces of an answer, so that a person sees where the fault strikes."""


class DrillProgram(CompositionRoot):
    """Wires a session whose model plays the faults of a drill."""

    def __init__(self, root: Path, drill: Drill, theme: str) -> None:
        options = Options(practice=True, cwd=root / "project", theme=theme)
        super().__init__(options, None)
        self.drill = drill
        self.launch = replace(
            self.launch,
            notices=(INTRO, drill.announcement()),
            practice_delay_s=_DELAY_S,
            around=self._with_faults,
        )

    def _open(self, choice: SessionChoice) -> Session:
        session = super()._open(choice)
        if choice.path is None and "overflow" in self.drill.names:
            _fill(session, self.launch.model)
        return session

    def _with_faults(self, model: Provider, clock: Clock) -> Provider:
        return with_faults(model, self.drill, clock)


def _fill(session: Session, model: str) -> None:
    """Records a conversation, so that there is something to shorten."""
    exchanges = [(f"Keep note {n} in mind. {_NOTE}", f"I will. {_NOTE}") for n in range(1, _TURNS)]
    for asked, answer in (*exchanges, ("Is that enough to fill a context?", "For a drill it is.")):
        session.append("user", content=[text_block(asked)], text=asked)
        session.append("assistant", content=[text_block(answer)], model=model, usage={})
    session.append("title", title="drill")


class ScratchApp(HoldfastApp):
    """The program in a folder of `tui.demo.scratch.place`, with a mark in the header."""

    CSS_PATH = [_SHEETS / "app.tcss", _SHEETS / "screens" / "chat.tcss"]  # noqa: RUF012 - as there

    def __init__(self, program: CompositionRoot, *, theme: str, mark: str) -> None:
        super().__init__(
            program.opening, theme=theme, clock=program.clock, first=TerminalTakeover(None)
        )
        self._mark = mark

    def on_mount(self) -> None:
        self.chat.header.state = replace(self.chat.header.state, mark=self._mark)


class DrillApp(ScratchApp):
    """Says which fault comes next, and puts a prompt for it into the input line."""

    def __init__(self, program: DrillProgram, *, theme: str) -> None:
        super().__init__(program, theme=theme, mark=MARK)
        self.drill = program.drill

    @classmethod
    def at(cls, root: Path, faults: Sequence[str], *, theme: str) -> DrillApp:
        """A drill in a folder of `tui.demo.drill.place`."""
        return cls(DrillProgram(root, Drill(faults), theme), theme=theme)

    def on_mount(self) -> None:
        self._lay_ready()

    @on(TurnEnded)
    def _next_step(self, ended: TurnEnded) -> None:
        if self.drill.turn_ended(failed=ended.outcome == "failed"):
            self.frontend.renderer.show(events.Notice(self.drill.announcement()))
            self._lay_ready()

    def _lay_ready(self) -> None:
        step = self.drill.step
        if step is not None and not self.chat.prompt.text:
            self.chat.prompt.put(step.prompt)
