"""What every app of this program does alike: colors, exit, and the worst case."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from io import TextIOWrapper
from time import monotonic, sleep
from types import FrameType
from typing import Any, ClassVar, Final, NoReturn, cast

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual._compositor import Compositor, CompositorUpdate
from textual.app import App, ComposeResult
from textual.await_remove import AwaitRemove
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.filter import LineFilter
from textual.geometry import Region, Size
from textual.screen import UPDATE_PERIOD, ModalScreen, Screen
from textual.strip import Strip
from textual.theme import Theme
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import WorkerFailed

from tui.core.clock import Clock
from tui.core.errors import ConfigError
from tui.core.keymap import DEFAULT_KEYS, Keymap
from tui.core.paths import folders
from tui.ui.start.terminal_takeover import TERMINAL_GONE, TerminalTakeover
from tui.ui.toolkit import themes
from tui.ui.toolkit.answer_guard import AnswerGuard, place_of
from tui.ui.toolkit.frame_pacing import FramePacing
from tui.ui.toolkit.key_parser import Unclassified
from tui.ui.toolkit.key_sequencer import KeySequencer
from tui.ui.toolkit.screen_diff import PaintedScreen

log = logging.getLogger(__name__)

SMALLEST = Size(40, 10)
"""Columns and rows below which nothing can be drawn that is of use."""
YIELD_S = 0.00005
"""So long the loop rests after a key's echo, for else the thread that writes it would wait for the
interpreter until the loop has nothing to do."""
_PAINT_S = 0.25
"""How long a frame is waited for; a screen that is being left paints none."""
STANDS_OUT = 2.0
"""The contrast (WCAG's, 1 to 21) from which a background says something: it marks a place."""


_NO_KEY = "none"
"""No terminal sends it; Textual takes "" for a key that was not changed."""


class Colourless(LineFilter):
    """Takes every color out (NO_COLOR); a background that marked something becomes reverse."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, style and colourless(style, background), control)
            for text, style, control in segments
        ]


_COLOURLESS = (Colourless(),)


@lru_cache(2048)
def colourless(style: Style, background: Color) -> Style:
    """A style without its colors, on a widget with this background."""
    marks = style.bgcolor is not None and not style.bgcolor.is_default
    marks = (
        marks and themes.contrast(Color.from_rich_color(style.bgcolor), background) >= STANDS_OUT
    )
    return Style(
        bold=style.bold,
        dim=style.dim,
        italic=style.italic,
        underline=style.underline,
        strike=style.strike,
        reverse=style.reverse or marks or None,
        link=style.link,
        meta=style.meta or None,
    )


def draw_in_utf8() -> str:
    """See to it that screens are drawn in UTF-8, whatever the locale says.

    Returns what the person should know of it, "" where the locale says the same.
    """
    drawn, encoding = sys.__stderr__, getattr(sys.__stderr__, "encoding", "utf-8")
    if not isinstance(drawn, TextIOWrapper) or encoding.replace("-", "").lower() == "utf8":
        return ""
    drawn.reconfigure(encoding="utf-8", errors="replace")
    return (
        f"The locale's encoding is {encoding}; Holdfast draws in UTF-8 anyway. "
        "If the screen looks broken: export LANG=C.UTF-8."
    )


def fits(size: Size) -> bool:
    """Whether a terminal of this size has room for a screen."""
    return size.width >= SMALLEST.width and size.height >= SMALLEST.height


class _Compositor(Compositor):
    def _get_renders(
        self, crop: Region | None = None
    ) -> Iterator[tuple[Region, Region, list[Strip]]]:
        """From front to back, as far as anything can be seen: Textual cuts the rows of all that
        lies behind to pieces too, and throws those away."""
        for region, clip, strips in super()._get_renders(crop):
            yield region, clip, strips
            if crop and region.intersection(clip).contains_region(crop):
                return


class BaseScreen(Widget):
    """What every screen has: its workers end before its widgets, and its size is that of now.

    Of two sizes on their way to a screen at once, Textual lays out the one, tells the screen of
    that as of a third, lays out the other, and so on without end. A screen that is left loses its
    widgets first, and only then its workers, which would look for them.

    A class inherits style rules and names from its first base alone, which is this one. Without the
    name for what is selected, the mouse drawn over a text would end the program.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"screen--selection"}
    DEFAULT_CSS = """
    BaseScreen > .screen--selection {
        background: $screen-selection-background;
        color: $screen-selection-foreground;
    }
    """

    awaited: bool = False
    """Whether somebody waits for its answer. What a key leads to opens over it then; any other
    screen closes first."""

    _echoed_at = float("-inf")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._compositor = _Compositor()

    def on_idle(self) -> None:
        """Show a key's effect at once: Textual's next frame is up to 33 ms away after another one,
        and while an answer comes there often was another one."""
        screen, now = cast("Any", self), monotonic()
        focused_changed = screen.focused in screen._dirty_widgets  # noqa: SLF001
        if focused_changed and now - self._echoed_at >= UPDATE_PERIOD:
            self._echoed_at = now
            screen._on_timer_update()  # noqa: SLF001
            sleep(YIELD_S)

    def note(self, text: str) -> None:
        """Show a line about the keys; "" takes it away."""
        if text:
            self.notify(text, severity="warning", markup=False)

    def remove(self) -> AwaitRemove:
        self.workers.cancel_node(self)  # pyright: ignore[reportUnknownMemberType] - Worker's result
        return super().remove()

    @on(events.ScreenResume)
    def _styled_when_composed(self, event: events.ScreenResume) -> None:
        """All widgets have just got their styles when a screen comes for the first time."""
        event.refresh_styles &= bool(cast("Any", self).stack_updates)

    @on(events.Resize)
    def _only_the_size_of_now(self, event: events.Resize) -> None:
        if event.size != self.app.size:  # pyright: ignore[reportUnknownMemberType] - Textual's App
            event.stop()
            event.prevent_default()


class TooSmall(BaseScreen, ModalScreen[None]):
    """Covers everything while the terminal is too small, and goes by itself; below what opened
    meanwhile, once that has gone."""

    DEFAULT_CSS = """
    TooSmall { align: center middle; background: $background; }
    TooSmall Static { width: 100%; height: auto; text-align: center; }
    TooSmall.-fits { background: transparent; }
    TooSmall.-fits Static { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "app.interrupt", show=False)]

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def on_screen_resume(self) -> None:
        self.on_resize()

    def on_resize(self) -> None:
        size = self.app.size  # pyright: ignore[reportUnknownMemberType] - Textual's App
        self.set_class(fits(size), "-fits")
        if fits(size):
            if self.app.screen is self:  # pyright: ignore[reportUnknownMemberType]
                self.dismiss()
            return
        self.query_one(Static).update(
            f"This terminal is {size.width} × {size.height}.\n"
            f"Holdfast needs at least {SMALLEST.width} × {SMALLEST.height}."
        )


ENDING: Final = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU),
)
"""The signals that end a program where nothing answers them. From the keyboard none comes: there
Ctrl+C is a key."""
LONGEST_S: Final = 5.0
"""From this long after a signal on, another one ends the program at once."""


class ThemedApp(KeySequencer):
    """An app in the colors of a theme's file, on a terminal that has room for it.

    `run_to_end` runs it; so every app ends alike, whatever ends it.
    """

    ENABLE_COMMAND_PALETTE = False  # there is one of our own

    own_keys: Keymap = DEFAULT_KEYS
    """The keys of the chat's actions, as the person has set them."""

    pacing: FramePacing | None = None
    """Whether the terminal keeps up, where the driver knows."""

    failure: Exception | None = None
    """What ended it, where that was an error."""

    _signal = 0
    _signalled_at = 0.0
    _heed: Callable[[int], object] | None = None

    def __init__(
        self, *, clock: Clock | None = None, takeover: TerminalTakeover | None = None
    ) -> None:
        self.takeover = takeover or TerminalTakeover(None)
        self.takeover.failed = self._handle_exception
        super().__init__(clock=clock, driver_class=self.takeover.driver)
        self.pacing = self.takeover.pacing
        self.guard = AnswerGuard(self.clock)
        self._painted = PaintedScreen()
        self._frame_held = False

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, lambda _: self.resumed())  # pyright: ignore[reportUnknownMemberType, reportUnknownLambdaType]
        self.screen_change_signal.subscribe(self, lambda _: self._cover(self.size))  # pyright: ignore[reportUnknownMemberType, reportUnknownLambdaType]

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, Unclassified):
            # As soon as it comes: no key that it was sent before can have its turn yet.
            self.guard.unclassified(event.held_back_s, place_of(self.focused or self.screen))
        await super().on_event(event)

    async def pass_on(self, event: events.Key | events.Paste) -> None:
        if isinstance(event, events.Paste):
            taken = self.guard.takes_paste(event, self.focused, self.screen)
        else:
            taken = self.guard.takes(event, self.arrived_at, self.focused, self.screen)
            taken = taken or self.claims(event)
        if not taken:
            await super().pass_on(event)

    def claims(self, event: events.Key) -> bool:  # noqa: ARG002
        """Whether a key means something to the app before anything else gets it."""
        return False

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Send only what the terminal does not show yet, once it is through with what it got."""
        sent: Any = renderable
        if isinstance(renderable, CompositorUpdate):
            sent = None if self._holds_frames() else self._painted.difference(renderable)
        super()._display(screen, sent)  # pyright: ignore[reportUnknownMemberType]

    async def painted(self) -> None:
        """Until what has changed is painted."""
        done = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PAINT_S):
                self.call_after_refresh(done.set)
                await done.wait()

    def _holds_frames(self) -> bool:
        """Whether the terminal is behind. `_catch_up` shows later what was not shown now."""
        if not self.pacing:
            return False
        already, self._frame_held = self._frame_held, True  # before it is asked: `wake` may come
        if self.pacing.ready():
            self._frame_held = False
        elif not already:
            loop = asyncio.get_running_loop()

            def wake() -> None:
                if self._frame_held:
                    with suppress(RuntimeError):  # the loop has ended
                        loop.call_soon_threadsafe(self._catch_up)

            self.pacing.wake = wake
            self.set_timer(self.pacing.patience_s, self._catch_up)
        return self._frame_held

    def _catch_up(self) -> None:
        if self._frame_held:
            self._frame_held = False
            self.refresh()

    def run_to_end(self) -> int:
        """Run until the app is left. Returns the exit code; raises what it failed with.

        Whatever ends it, a signal, an exception in any thread, or a terminal that goes, the
        terminal is put back, where there is one, before this returns.
        """
        before = {number: signal.signal(number, self._signalled) for number in ENDING}
        abort = os.abort

        def aborted() -> NoReturn:
            self.takeover.release()
            abort()  # its signal comes too late to do anything

        os.abort = aborted
        try:
            self.run()
        finally:
            os.abort = abort
            self.takeover.release()  # where the app could not any more
            self.takeover.fall_silent()
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)
        if self.takeover.gone:
            return TERMINAL_GONE
        if self.failure:
            raise self.failure
        return self.return_code or 0

    def heed_ends(self, leave: Callable[[int], object]) -> None:
        """To be called when the app can be left: from here on `leave` is called in the loop with
        the number of each signal that ends a program, with 0 where the terminal has gone; at once,
        if that has been so before."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._callback_failed)

        def heed(number: int) -> None:
            if self.is_running:  # else it leaves already
                leave(number)

        # No signal is the loop's: who hands the terminal to another program replaces the handler
        # for so long, and a loop that hangs would heed none.
        self._heed = lambda number: loop.call_soon_threadsafe(heed, number)
        self.takeover.listen(lambda: heed(0))
        if self._signal:
            leave(self._signal)

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        now = monotonic()
        if self._signal and now - self._signalled_at > LONGEST_S:
            self.takeover.release()
            os._exit(128 + number)
        if not self._signal:
            self._signal, self._signalled_at = number, now
        if self._heed:
            with suppress(RuntimeError):  # the loop has ended
                self._heed(number)

    def _callback_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A callback of the loop belongs to nobody who could tell; a task's error is its own."""
        error = context.get("exception")
        if isinstance(error, Exception) and "handle" in context:
            self._handle_exception(error)
        else:
            loop.default_exception_handler(context)

    def on_resize(self, event: events.Resize) -> None:
        self._painted.forget()
        self._cover(event.size)

    def _cover(self, size: Size) -> None:
        """Cover what nobody could read in so small a terminal: also what opens there."""
        if self.screen_stack and not fits(size) and not isinstance(self.screen, TooSmall):
            self.push_screen(TooSmall())

    def get_line_filters(self) -> Sequence[LineFilter]:
        return _COLOURLESS if self.no_color else super().get_line_filters()

    @property
    def few_colours(self) -> bool:
        """Whether the terminal has no more than sixteen."""
        return self.console.color_system in {"standard", "windows"}

    def get_css_variables(self) -> dict[str, str]:
        variables = super().get_css_variables()
        if self.few_colours:
            variables |= themes.grey_tints(self.current_theme)
            self.theme_variables = variables
        return variables

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return {"rule": "#808080"}

    def use_theme(self, name: str, *, now: bool = True) -> tuple[ConfigError, ...]:
        """Change the colors; says what was wrong with the theme's file. Raises ConfigError."""
        loaded = themes.load(name, folders().config / "themes")
        self.put_on(loaded.theme, now=now)
        return loaded.problems

    def put_on(self, theme: Theme, *, now: bool = True) -> None:
        """Change to the colors of a theme; not `now`, before the first frame."""
        before = self.available_themes.get(theme.name)
        self.set_class(self.few_colours, "-few-colours")
        self.register_theme(theme)
        if not now:
            self.set_reactive(App.theme, theme.name)
            self.stylesheet.set_variables(self.get_css_variables())
        elif self.theme != theme.name:
            self.theme = theme.name
        elif theme != before:  # its file has changed
            self.mutate_reactive(App.theme)

    def guess_theme(self, name: str, look: Mapping[str, str] | None = None) -> None:
        """Begin with a theme that may not exist any more, before anything is drawn. Where `look`
        remembers it, its file need not be read yet."""
        if look and look.get("theme") == name:
            self.put_on(themes.remembered(look), now=False)
            return
        try:
            self.use_theme(name, now=False)
        except ConfigError:
            self.use_theme(themes.DEFAULT_DARK, now=False)

    def correct_theme(self, name: str) -> tuple[ConfigError, ...]:
        """Change from the guessed theme to the one that the configuration names, or to the usual
        one where that is broken. Returns what is wrong with it."""
        try:
            return self.use_theme(name)
        except ConfigError as error:
            self.use_theme(themes.DEFAULT_DARK)
            return (error,)

    def use_keys(self, keymap: Keymap) -> None:
        """Bind the actions of the chat to these keys, from the next key on."""
        self.own_keys = keymap
        self.set_keymap(
            {
                name: ",".join(keys) or _NO_KEY
                for name, keys in keymap.items()
                if keys != DEFAULT_KEYS[name]
            }
        )

    def resumed(self) -> None:
        """After fg, and after another program had the terminal."""
        self.action_redraw()

    def action_redraw(self) -> None:
        """Ctrl+L, and after fg: all of the screen, whatever another program has written over it."""
        self._painted.forget()
        self.refresh(layout=True)

    def _handle_exception(self, error: Exception) -> None:
        """A mistake of the program itself: it ends, and whoever runs it says so. The details go to
        the log, not to the terminal."""
        self._return_code = 1
        if isinstance(error, WorkerFailed):  # it has no traceback of its own
            error = cast("Exception", error.error)
        if self._exception is None:
            self._exception = error
            cast("asyncio.Event", vars(self)["_exception_event"]).set()
        if self.failure is not None:  # whoever runs the app logs the first
            log.info("another error while the screen ends", exc_info=error)
        self.failure = self.failure or error
        self._close_messages_no_wait()
