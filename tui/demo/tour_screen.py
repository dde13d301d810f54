"""The screen of the tour: the program's own, with the panel on every screen of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual import events as keys
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import SystemModalScreen
from textual.style import Style
from textual.widgets import Static

from tui.app.services import Opening
from tui.core.clock import Clock, SystemClock
from tui.core.facts import Fact
from tui.demo import tour_scene
from tui.demo.drill_screen import GuidedApp, GuidedProgram
from tui.demo.tour_progress import TITLE, PanelText, Tour
from tui.demo.tour_steps import BUSY, CHAT, OUTPUT, WHOLE
from tui.ui.frontend import TurnEnded
from tui.ui.screens.output_side import OutputSide
from tui.ui.toolkit.key_sequencer import Pressed
from tui.ui.widgets.fact_log import FactLog
from tui.ui.widgets.keys import code_styled
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.prompt import Prompt

MARK = "TOUR"

_POLL_S = 0.2
"""Seconds between checks of where the person is, besides the events that show it."""

_WIDE, _TALL = 72, 22
"""With fewer columns the panel is shorter; with fewer rows it shows only what comes next."""

_KEYS = (
    ("f8", "back", "app.tour_back"),
    ("f9", "skip", "app.tour_skip"),
    ("ctrl+q", "leave", "app.quit"),
)


class TourPanel(Vertical):
    """Shows a text of the tour. It never takes the focus; its keys can be clicked."""

    DEFAULT_CSS = """
    TourPanel { dock: bottom; width: 100%; height: auto; background: $panel; }
    TourPanel Static { width: 1fr; height: auto; padding: 0 1; max-height: 3; }
    TourPanel .happened { color: $text-muted; max-height: 2; }
    """

    class Sized(Message):
        """Posted when it takes more or fewer rows."""

    def __init__(self, text: PanelText) -> None:
        super().__init__()
        self.text = text
        self._rule = PaneRule()
        self._happened = Static(classes="happened", markup=False)
        self._now = Static(classes="now", markup=False)

    def compose(self) -> ComposeResult:
        yield self._rule
        yield self._happened
        yield self._now

    def on_mount(self) -> None:
        self.show(self.text)

    def on_resize(self) -> None:
        self.show(self.text)
        self.post_message(self.Sized())

    def show(self, text: PanelText) -> None:
        """Show another text."""
        self.text = text
        width, height = self.app.size  # pyright: ignore[reportUnknownMemberType]
        wide = width >= _WIDE
        title = text.title if wide else text.title.removeprefix(TITLE)
        self._rule.title = Content.styled(title, "bold $text-secondary")
        keys = [key for key in _KEYS if not (text.over and key[0] == "f9")]
        self._rule.right = _keys(keys if wide else keys[-2:])
        self._happened.update(marked(text.happened))
        self._happened.display = bool(text.happened) and height >= _TALL
        self._now.update(marked(text.now))

    async def on_click(self, event: keys.Click) -> None:
        if action := event.style.meta.get("key"):
            await self.run_action(str(action))


def marked(text: str) -> Content:
    """Style a text of the tour; what is in backticks is a key."""
    return code_styled(text, "bold $text-accent")


def _keys(keys: Sequence[tuple[str, str, str]]) -> Content:
    shown = [
        Content.assemble((key, "$text-accent"), (f" {what}", "$text-muted")).stylize(
            Style.from_meta({"key": action})
        )
        for key, what, action in keys
    ]
    return Content("   ").join(shown)


class TourProgram(GuidedProgram):
    """Prepares the scene of the tour."""

    def __init__(self, root: Path, theme: str) -> None:
        self.tour = Tour(tour_scene.prepare(root, SystemClock()))
        super().__init__(root, self.tour, theme)


class ObservedFactLog(FactLog):
    """The log of the debug view, which passes every event on to the tour."""

    def __init__(self, clock: Clock, tour: Tour) -> None:
        super().__init__(clock)
        self._tour = tour

    def add(self, event: Fact) -> None:
        super().add(event)
        self._tour.hear(event)


class TourApp(GuidedApp):
    """Follows what the person does, says what comes next, and puts a prompt into the input line."""

    BINDINGS = [  # noqa: RUF012 - as there
        Binding("f8", "tour_back", show=False, priority=True),
        Binding("f9", "tour_skip", show=False, priority=True),
    ]

    def __init__(self, program: TourProgram) -> None:
        super().__init__(program, mark=MARK)
        self.tour = program.tour
        self._shown: PanelText | None = None
        self._laid = ""
        self._own = False
        self._again = False  # after a turn: put the prompt there again if the step is not done

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(self, lambda _: self.call_later(self.follow))  # pyright: ignore[reportUnknownMemberType, reportUnknownLambdaType]
        self.set_interval(_POLL_S, self.follow)

    async def pass_on(self, event: Pressed) -> None:
        prompt = self.chat.prompt
        typing = self.ready and self.screen is self.chat and prompt.has_focus
        empty = typing and not prompt.text.strip() and self._where() == CHAT
        if isinstance(event, keys.Key) and event.key == "enter" and empty:
            self.action_tour_skip()
            return
        await super().pass_on(event)

    async def action_quit(self) -> None:
        """Leave at once: nothing of the tour is kept."""
        await self._go()

    def action_tour_skip(self) -> None:
        """Go on to the next step."""
        self.tour.skip()
        self.follow()

    def action_tour_back(self) -> None:
        """Go back to the step before."""
        self.tour.back()
        self.follow()

    @on(OutputSide.Resized)
    def follow(self) -> None:
        """Show what comes next, depending on where the person is now."""
        if not self.screen_stack or not self.ready or self.conversation.agent is None:
            return
        tour, where = self.tour, self._where()
        records = self.conversation.agent.session.records
        narrow, output = self.chat.has_class("-narrow"), self.chat.side.display
        tour.observe(where, narrow=narrow, output=output, records=records)
        text = tour.panel_text()
        self._show(text)
        before, self._shown = self._shown, text
        again, self._again = self._again, False
        moved = before is None or text.title != before.title
        if moved or (text.lay and (again or text != before)):
            self._lay_ready(text.lay)

    async def _complete(self, opening: Opening) -> None:
        await super()._complete(opening)
        self.frontend.log = ObservedFactLog(self.conversation.services.clock, self.tour)

    async def _do(self, text: str) -> bool:
        match text.strip():
            case "/back":
                self.action_tour_back()
            case "/next" | "/skip":
                self.action_tour_skip()
            case "/tour":
                self.tour.restart()
                self.follow()
            case _:
                return await super()._do(text)
        return True

    @on(TurnEnded)
    def _turn_over(self) -> None:
        self._again = True
        self.follow()

    @on(TourPanel.Sized)
    def _panel_sized(self) -> None:
        self.chat.panes.arrange()

    @on(Prompt.Edited)
    def _typed(self) -> None:
        self._own = True

    @on(Prompt.Submitted)
    def _sent(self) -> None:
        self._own = False

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

    def _show(self, text: PanelText) -> None:
        """Show a text on the current screen, whichever it is."""
        screen = self.screen
        if isinstance(screen, SystemModalScreen) or not screen.is_mounted:
            return
        panels = screen.query(TourPanel)
        if not panels:
            screen.mount(TourPanel(text))
        elif panels.first().text != text:
            panels.first().show(text)

    def _lay_ready(self, text: str) -> None:
        """Put a prompt into the input line, unless the person has typed one."""
        prompt = self.chat.prompt
        if self._own and prompt.text.strip() and prompt.text != self._laid:
            return
        self._own = False
        if text or prompt.text == self._laid:
            prompt.put_typed(text, len(text))
        self._laid = text
        if self.screen is self.chat:
            prompt.focus()
