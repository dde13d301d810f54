"""The program's own screen with a guide, and with the drill, which announces the faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from textual import on

from tui.app.options.arguments import Options
from tui.app.program import Program
from tui.app.services import SessionChoice
from tui.core import facts
from tui.core.clock import Clock
from tui.core.facts import AssistantMessage, TitleChanged, UserMessage
from tui.core.messages import Usage, text_block
from tui.demo.drill_steps import INTRO, Drill
from tui.demo.guide import Guide
from tui.provider.base import Provider, Request
from tui.provider.practice.faults import FaultyProvider
from tui.provider.practice.script import Fault
from tui.session.session import Session
from tui.ui import app
from tui.ui.app import HoldfastApp
from tui.ui.frontend import TurnEnded

MARK = "DRILL"

_TURNS = 6
_NOTE = "This is here to be shortened, once the model says that its context is full. " * 8
_SHEETS = Path(app.__file__).parent

_DELAY_S = 0.02
"""Seconds between two pieces of an answer, so that a person sees where the fault strikes."""


class GuidedProgram(Program):
    """Sets up a session in a folder of `tui.demo.guide.place`, whose model meets the faults of a
    guide."""

    def __init__(self, root: Path, guide: Guide[Any], theme: str) -> None:
        super().__init__(Options().having(practice=True, cwd=root / "project", theme=theme), None)
        self._guide, self.theme = guide, theme
        self.launch = self.launch.reached(practice_delay_s=_DELAY_S, around=self._with_faults)

    def _with_faults(self, model: Provider, clock: Clock) -> Provider:
        async def strike(request: Request) -> Fault | None:
            return self._guide.strike(request.model)

        return FaultyProvider(model, strike, clock)


class GuidedApp(HoldfastApp):
    """The program with a mark in the header."""

    CSS_PATH = [_SHEETS / "app.tcss", _SHEETS / "screens" / "chat.tcss"]  # noqa: RUF012 - as there

    def __init__(self, program: GuidedProgram, *, mark: str) -> None:
        super().__init__(program.opening, theme=program.theme, clock=program.clock)
        self._mark = mark

    def on_mount(self) -> None:
        self.chat.header.state = replace(self.chat.header.state, mark=self._mark)
        if self.chat.start is not None:
            self.chat.start.rows = None  # the guide's own steps say what comes first


class DrillProgram(GuidedProgram):
    """Announces what a drill is and the first fault."""

    def __init__(self, root: Path, drill: Drill, theme: str) -> None:
        super().__init__(root, drill, theme)
        self.drill = drill
        self.launch = replace(self.launch, notices=(INTRO, drill.announcement()))

    def _open(self, choice: SessionChoice) -> Session:
        session = super()._open(choice)
        if choice.path is None and "overflow" in self.drill.names:
            _fill(session, self.launch.model)
        return session


def _fill(session: Session, model: str) -> None:
    """Record a conversation, so that there is something to shorten."""
    exchanges = [(f"Keep note {n} in mind. {_NOTE}", f"I will. {_NOTE}") for n in range(1, _TURNS)]
    for asked, answer in (*exchanges, ("Is that enough to fill a context?", "For a drill, yes.")):
        session.record(UserMessage(asked, content=[text_block(asked)], typed=asked))
        said = [text_block(answer)]
        session.record(AssistantMessage(answer, "end_turn", Usage(), content=said, model=model))
    session.record(TitleChanged("drill"))


class DrillApp(GuidedApp):
    """Announces each fault, and puts a prompt for it into the input line."""

    def __init__(self, program: DrillProgram) -> None:
        super().__init__(program, mark=MARK)
        self.drill = program.drill

    def on_mount(self) -> None:
        self._lay_ready()

    @on(TurnEnded)
    def _next_step(self, ended: TurnEnded) -> None:
        if self.drill.turn_ended(failed=ended.outcome == "failed"):
            self.frontend.renderer.show(facts.Notice(self.drill.announcement()))
            self._lay_ready()

    def _lay_ready(self) -> None:
        if not self.chat.prompt.text:
            self.chat.prompt.put_typed(self.drill.step.prompt, len(self.drill.step.prompt))
