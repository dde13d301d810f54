"""The screen of the tour: the program's own, with the panel on every screen of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from textual import events as keys
from textual import on
from textual.binding import Binding
from textual.screen import Screen, SystemModalScreen

from tui.agent.events import Event
from tui.app.options.arguments import Options
from tui.app.ports import Opening
from tui.app.program import CompositionRoot
from tui.core.clock import Clock
from tui.demo.drill.screen import ScratchApp
from tui.demo.drill.tour import Stage
from tui.demo.tour import scene
from tui.demo.tour.observations import BUSY, CHAT, OUTPUT, WHOLE
from tui.demo.tour.panel import TourPanel
from tui.demo.tour.tour import Said, Tour
from tui.provider.base import Provider
from tui.ui.frontend import TurnEnded
from tui.ui.screens.output_side import OutputSide
from tui.ui.widgets.event_log import EventLog
from tui.ui.widgets.prompt import Prompt

MARK = "TOUR"

_LOOK_S = 0.2
"""How often it is looked where the person is, beside the moments that tell it."""
_DELAY_S = 0.02
"""Between two pieces of an answer, so that a person sees it stream."""


class TourProgram(CompositionRoot):
    """Wires a session whose model meets the faults of a tour."""

    def __init__(self, root: Path, theme: str) -> None:
        super().__init__(Options(practice=True, cwd=root / "project", theme=theme), None)
        self.tour = Tour(scene.furnish(root, self.clock))
        self.launch = replace(self.launch, practice_delay_s=_DELAY_S, around=self._stage)

    def _stage(self, model: Provider, clock: Clock) -> Provider:
        return Stage(model, self.tour, clock)


class Listened(EventLog):
    """The log of the debug view; the tour hears every event too."""

    def __init__(self, clock: Clock, tour: Tour) -> None:
        super().__init__(clock)
        self._tour = tour

    def add(self, event: Event) -> None:
        super().add(event)
        self._tour.hear(event)


class TourApp(ScratchApp):
    """Follows what the person does, says what comes next, and lays a prompt ready for it."""

    BINDINGS = [  # noqa: RUF012 - as there
        Binding("f8", "tour_back", show=False, priority=True),
        Binding("f9", "tour_skip", show=False, priority=True),
    ]

    def __init__(self, program: TourProgram, *, theme: str) -> None:
        super().__init__(program, theme=theme, mark=MARK)
        self.tour = program.tour
        self._said: Said | None = None
        self._laid = ""
        self._own = False
        self._again = False  # a turn ended: the prompt is laid once more if the step is not done

    @classmethod
    def at(cls, root: Path, *, theme: str) -> TourApp:
        """A tour in a folder of `tui.demo.tour.scene.place`."""
        return cls(TourProgram(root, theme), theme=theme)

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(self, self._screen_changed)  # pyright: ignore[reportUnknownMemberType]
        self.set_interval(_LOOK_S, self.look)

    async def pass_on(self, event: keys.Key | keys.Paste) -> None:
        if isinstance(event, keys.Key) and event.key == "enter" and self._nothing_typed:
            self.action_tour_skip()
            return
        await super().pass_on(event)

    async def action_quit(self) -> None:
        """Leave at once: nothing of the tour is kept."""
        await self._go()

    def action_tour_skip(self) -> None:
        """Go on to the next step."""
        self.tour.skip()
        self.look()

    def action_tour_back(self) -> None:
        """Take the step before once more."""
        self.tour.back()
        self.look()

    def look(self) -> None:
        """See where the person is, and say what comes next."""
        if not self.ready or self.conversation.agent is None:
            return
        tour, where = self.tour, self._where()
        records = self.conversation.agent.session.records
        tour.look(where, narrow=self.chat.has_class("-narrow"), records=records)
        said = tour.said()
        self._show(said)
        before, self._said = self._said, said
        again, self._again = self._again, False
        moved = before is None or said.title != before.title
        if moved or (said.lay and (again or said != before)):
            self._lay_ready(said.lay)

    async def _complete(self, opening: Opening) -> None:
        await super()._complete(opening)
        self.frontend.log = Listened(self.conversation.services.clock, self.tour)

    async def _do(self, text: str) -> bool:
        match text.strip():
            case "/back":
                self.action_tour_back()
            case "/next" | "/skip":
                self.action_tour_skip()
            case "/tour":
                self.tour.restart()
                self.look()
            case _:
                return await super()._do(text)
        return True

    @on(TurnEnded)
    def _turn_over(self) -> None:
        self._again = True
        self.look()

    @on(OutputSide.Sized)
    def _sized(self) -> None:
        self.look()

    @on(TourPanel.Sized)
    def _panel_sized(self) -> None:
        self.chat.panes.arrange()

    @on(Prompt.Edited)
    def _typed(self) -> None:
        self._own = True

    @on(Prompt.Submitted)
    def _sent(self) -> None:
        self._own = False

    def _screen_changed(self, _: Screen[object]) -> None:
        self.call_later(self.look)

    def _where(self) -> str:
        chat = self.chat
        if self.screen is not chat:
            return type(self.screen).__name__
        if chat.has_class("-narrow"):
            if chat.has_class("-over"):
                return WHOLE if chat.side.whole else OUTPUT
        elif chat.has_class("-whole"):
            return WHOLE
        return BUSY if self.conversation.busy or self.conversation.opening else CHAT

    @property
    def _nothing_typed(self) -> bool:
        prompt = self.chat.prompt
        return (
            self.ready
            and self.screen is self.chat
            and prompt.has_focus
            and not prompt.text.strip()
            and self._where() == CHAT
        )

    def _show(self, said: Said) -> None:
        """On the screen that is shown, whichever it is."""
        screen = self.screen
        if isinstance(screen, SystemModalScreen) or not screen.is_mounted:
            return
        panels = screen.query(TourPanel)
        if not panels:
            screen.mount(TourPanel(said))
        elif panels.first().said != said:
            panels.first().show(said)

    def _lay_ready(self, text: str) -> None:
        """Put a prompt there, unless the person has typed one."""
        prompt = self.chat.prompt
        if self._own and prompt.text.strip() and prompt.text != self._laid:
            return
        self._own = False
        if text or prompt.text == self._laid:
            prompt.put(text)
        self._laid = text
        if self.screen is self.chat:
            prompt.focus()
