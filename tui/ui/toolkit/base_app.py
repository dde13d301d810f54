"""The base of every app: colors, exit, and handling of the worst case."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from io import TextIOWrapper
from time import monotonic
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from rich.console import RenderableType
from textual import events
from textual._compositor import CompositorUpdate
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.filter import LineFilter
from textual.geometry import Size
from textual.keys import key_to_character
from textual.screen import Screen
from textual.selection import Selection
from textual.theme import Theme
from textual.widget import Widget
from textual.worker import WorkerFailed

from tui.core import clipboard
from tui.core.clock import Clock
from tui.core.errors import ConfigError
from tui.core.keyboard_layouts import digit, latin
from tui.core.keymap import DEFAULT_KEYS, Keymap, shown
from tui.core.paths import folders
from tui.ui.start.terminal_takeover import TERMINAL_GONE, TerminalTakeover
from tui.ui.toolkit import themes
from tui.ui.toolkit.answer_guard import (
    QUIET_S,
    USELESS_S,
    AnswerGuard,
    AnswerPlace,
    place_of,
    writes,
)
from tui.ui.toolkit.base_screen import BaseScreen, TooSmall, copy, fits, note_for
from tui.ui.toolkit.familiar_keys import MEANT
from tui.ui.toolkit.frame_pacing import FramePacing
from tui.ui.toolkit.key_parser import DoubtfulKey, Received, StatusAnswer, Unclassified
from tui.ui.toolkit.key_sequencer import CommandLine, KeySequencer, Pressed
from tui.ui.toolkit.late_stylesheet import LateStylesheet
from tui.ui.toolkit.screen_diff import PaintedScreen

if TYPE_CHECKING:
    from tui.ui.terminal import TerminalStatus

log = logging.getLogger(__name__)

_PAINT_S = 0.25
"""Seconds to wait for a frame; a screen that is being left paints none."""
_NO_KEY = "none"
"""A key that no terminal sends; Textual takes "" for a key that was not changed."""


def draw_in_utf8() -> str:
    """Draw screens in UTF-8, whatever the locale says.

    Returns a message for the person, "" if the locale says UTF-8 too.
    """
    drawn, encoding = sys.__stderr__, getattr(sys.__stderr__, "encoding", "utf-8")
    if not isinstance(drawn, TextIOWrapper) or encoding.replace("-", "").lower() == "utf8":
        return ""
    drawn.reconfigure(encoding="utf-8", errors="replace")
    return (
        f"The locale's encoding is {encoding}; Holdfast draws in UTF-8 anyway. "
        "If the screen looks broken: export LANG=C.UTF-8."
    )


ENDING: Final = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU),
)
"""Signals that end a program unless they are handled. None comes from the keyboard: there Ctrl+C is
a key."""
LONGEST_S: Final = 5.0
"""Seconds after a signal from which another one ends the program at once."""


class ThemedApp(KeySequencer):
    """An app in the colors of a theme file, on a terminal that has room for it.

    Every app runs by `run_to_end`, so all end in the same way, whatever ends them.
    """

    ENABLE_COMMAND_PALETTE = False  # we have our own

    own_keys: Keymap = DEFAULT_KEYS
    """The keys of the chat's actions, as the person has set them."""

    pacing: FramePacing | None = None
    """Knows whether the terminal keeps up, if the driver can tell."""

    failure: Exception | None = None
    """The error that ended the app, if any."""

    copies_selection = True
    """True if a text is copied as soon as it is selected."""

    _copied: Mapping[Widget, Selection] = MappingProxyType({})
    _to_copy: str | None = None
    _signal = 0
    _signalled_at = 0.0
    _heed: Callable[[int], object] | None = None

    def __init__(
        self, *, clock: Clock | None = None, takeover: TerminalTakeover | None = None
    ) -> None:
        self.takeover = takeover or TerminalTakeover(None)
        self.takeover.failed = self._handle_exception
        self._terminal: TerminalStatus | None = None
        super().__init__(clock=clock, driver_class=self.takeover.driver)
        self.stylesheet = LateStylesheet(variables=self.theme_variables)
        self.pacing = self.takeover.pacing
        self.guard = AnswerGuard(self.clock)
        self._pressed_over: Screen[Any] | None = None
        """The screen that was on top when the current key was given to it."""
        self._painted = PaintedScreen()
        self._frame_held = False
        self._useless: set[str] = set()  # keys of which it was said

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text by the terminal, by tmux and by the desktop's own program."""
        super().copy_to_clipboard(text)
        copies, self._to_copy = self._to_copy is not None, text
        if not copies and not self.is_headless:
            self.run_worker(self._copy(), group="copy")

    async def _copy(self) -> None:
        """Hand what was copied to other programs, one text after the other: the last one stays."""
        text = None
        while text != self._to_copy and (text := self._to_copy) is not None:
            await asyncio.to_thread(clipboard.write, text)
        self._to_copy = None

    def on_text_selected(self) -> None:
        """Copy what was selected, once."""
        screen = self.screen
        if not self.copies_selection or screen.selections is self._copied:
            return
        self._copied = screen.selections
        text = screen.get_selected_text()
        if text and text.strip():
            copy(next(iter(screen.selections)), text)

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, lambda _: self.resumed())  # pyright: ignore[reportUnknownMemberType, reportUnknownLambdaType]
        self.screen_change_signal.subscribe(self, lambda _: self._cover(self.size))  # pyright: ignore[reportUnknownMemberType, reportUnknownLambdaType]
        self.screen_change_signal.subscribe(self, self._opened, immediate=True)  # pyright: ignore[reportUnknownMemberType]

    def _opened(self, screen: Screen[Any]) -> None:
        if isinstance(screen, BaseScreen) and not screen.is_mounted:
            screen.opened_at = self.clock.monotonic()
            beneath = next(iter(self.screen_stack[-2:-1]), None)
            comes_by_itself = isinstance(screen, AnswerPlace) and screen.unasked
            if comes_by_itself and isinstance(beneath, AnswerPlace):
                self.guard.give_up(beneath)
        if isinstance(screen, AnswerPlace):
            screen.call_later(lambda: self.guard.greet(screen, screen.focused))

    def pop_screen(self) -> AwaitComplete:
        """Close the screen on top. If it closes by itself, a key that was meant for it answers
        nothing below it, and sends nothing."""
        top, now = self.screen, self.clock.monotonic()
        if self.key_acts and now - self.arrived_at < QUIET_S:
            return super().pop_screen()
        if isinstance(top, AnswerPlace):
            self.guard.give_up(top)
        closed = super().pop_screen()
        if isinstance(self.screen, AnswerPlace):
            self.screen.presses.quiet_from = now
        elif isinstance(top, TooSmall):  # no key is meant for it
            pass
        elif self.guard.draft is not None and self.screen is self.guard.draft.screen:
            self.guard.hold_sending(now + QUIET_S)
        return closed

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, Unclassified):
            # At once: no key that was sent after it can have had its turn yet.
            self.guard.unclassified(event.held_back_s, place_of(self.focused or self.screen))
        elif isinstance(event, Received):
            self.screen.post_message(event)
        elif isinstance(event, StatusAnswer) and self._terminal:
            self._terminal.answered(event.known)
        await super().on_event(event)

    async def pass_on(self, event: Pressed) -> None:
        taken = False
        if not isinstance(event, CommandLine):
            # Whoever presses a key is here, also where a terminal has not told that they returned;
            # and the guard has to know which field has the focus.
            self.app_focus = True
        if isinstance(event, events.Key):
            if isinstance(self.screen, BaseScreen) and self._is_unseen(self.screen):
                event = DoubtfulKey(event, follows=False)
                if self.wait_for_mount(event):
                    return
            self._pressed_over = self.screen
            self.guard.press(event, self.arrived_at, self.screen)
        if (
            isinstance(self.screen, BaseScreen)
            and not isinstance(event, CommandLine)
            and self.screen.takes(event)
        ):
            return
        if isinstance(event, events.Paste):
            taken = self.guard.takes_paste(event, self.focused, self.screen)
        elif isinstance(event, events.Key):
            answers = not writes(self.focused) and place_of(self.focused or self.screen)
            if answers and (number := digit(event.character)):
                event.key = number  # its character stays, in case it begins a text
            taken = self.guard.takes(event, self.arrived_at, self.focused, self.screen)
            taken = taken or self.claims(event)
        if not taken:
            await super().pass_on(event)

    def _is_overtaken(self, event: events.Key) -> bool:
        """True if a question came up while a key was on its way, which is no answer to it."""
        screen = self.screen
        came = isinstance(screen, AnswerPlace) and screen.unasked
        if not came or screen is self._pressed_over:
            return False
        return self.guard.takes(event, self.arrived_at, self.focused, screen)

    def _is_unseen(self, screen: BaseScreen) -> bool:
        """True if the current key was pressed before a screen was there that the person opens. What
        comes by itself takes no such key: it was meant for the prompt."""
        if isinstance(screen, AnswerPlace) and screen.unasked:
            return False
        return not screen.is_mounted or self.arrived_at < screen.opened_at

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        """Run a key's binding; for a letter of another script that nothing took, that of the key in
        its place, but not where a key answers: there it may begin a word."""
        field = self.focused if priority else None
        if field is not None and field.check_consume_key(key, key_to_character(key)):
            return False  # as Textual finds, by asking that of every key of each binding
        if await super()._check_bindings(key, priority):
            return True
        letter = latin(key) if not priority and len(key) == 1 else ""
        if not letter or place_of(self.focused or self.screen):
            return False
        return await super()._check_bindings(letter)

    def claims(self, event: events.Key) -> bool:  # noqa: ARG002
        """True if the app itself uses a key, before anything else gets it."""
        return False

    async def on_key(self, event: events.Key) -> None:
        """Look for the use of a key that no widget has taken: its binding, else what it means in
        other programs. If there is none, say so once."""
        event.prevent_default()
        if self._is_overtaken(event):
            return
        textual: Any = self
        if await textual._check_bindings(event.key):  # noqa: SLF001 - what Textual does here
            return
        for key in self._meant_by(event):
            for first in (True, False):
                if await textual._check_bindings(key, priority=first):  # noqa: SLF001 - as above
                    return
        name, place = event.key, place_of(self.focused or self.screen)
        self.guard.pressed_in_vain(event, self.arrived_at)
        if not (event.is_printable or "+" in name or name[1:].isdigit()):
            return
        text = shown(name) if not event.is_printable else event.character or name
        if isinstance(place, BaseScreen):
            place.tell_useless(text)
        elif name not in self._useless and not place:
            self._useless.add(name)
            self.say_useless(text)

    def _meant_by(self, event: events.Key) -> Sequence[str]:
        """Return the keys that a key may stand for here, the likeliest first."""
        place = place_of(self.focused or self.screen)
        if place and (place.unasked or event.is_printable):
            return ()  # there a letter is an answer, or text
        if event.is_printable and writes(self.focused):
            return ()
        enter = self.screen.active_bindings.get("enter")
        if event.key == "space" and enter and enter.binding.action == "choose":
            return ("enter",)
        return (MEANT[event.key],) if event.key in MEANT else ()

    def say_useless(self, key: str) -> None:
        """Say that a key does nothing here."""
        note_for(self.screen, USELESS_S, f"{key} does nothing here. F1 shows the keys.")

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Send only what the terminal does not show yet, once it has drawn what it got."""
        sent: Any = renderable
        if isinstance(renderable, CompositorUpdate):
            sent = None if self._holds_frames() else self._painted.difference(renderable)
        with getattr(self._driver, "whole_frame", nullcontext)():
            super()._display(screen, sent)  # pyright: ignore[reportUnknownMemberType]

    async def painted(self) -> None:
        """Wait until all changes are painted."""
        done = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PAINT_S):
                self.call_after_refresh(done.set)
                await done.wait()

    def _holds_frames(self) -> bool:
        """True if the terminal is behind. `_catch_up` shows later what is held now."""
        if not self.pacing:
            return False
        already, self._frame_held = self._frame_held, True  # set before asking: `wake` may come
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
        """Run until the app is left, and return the exit code; raises the error that the app failed
        with.

        Whatever ends it (a signal, an exception in any thread, a terminal that goes away), the
        terminal is restored before this returns, if it is still there.
        """
        before = {number: signal.signal(number, self._signalled) for number in ENDING}
        # An abort ends the process without any cleanup, so the terminal is restored first.
        abort = os.abort

        def aborted() -> NoReturn:
            self.takeover.release()
            abort()  # its signal would come too late

        os.abort = aborted
        try:
            self.run()
        finally:
            os.abort = abort
            self.takeover.release()  # if the app no longer could
            self.takeover.fall_silent()
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)
        if self.takeover.gone:
            return TERMINAL_GONE
        if self.failure:
            raise self.failure
        return self.return_code or 0

    def use_terminal(self, terminal: TerminalStatus) -> None:
        """Let `terminal` show what the program does, beside the screen: find out what it knows, and
        take back what it shows whenever the terminal is given back."""
        self._terminal, self.takeover.leaving = terminal, terminal.leave
        self.run_worker(terminal.ask_tmux(), group="terminal")
        terminal.ask()

    def heed_ends(self, leave: Callable[[int], object]) -> None:
        """Call `leave` in the loop when something ends the program.

        To be called once the app can be left. `leave` gets the number of each signal that ends a
        program, or 0 if the terminal has gone; it is called at once if that has happened before.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._callback_failed)

        def heed(number: int) -> None:
            if self.is_running:  # otherwise it is leaving already
                leave(number)

        # Not a signal handler of the loop: handing the terminal to another program replaces the
        # handler meanwhile, and a loop that hangs would handle none.
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
        """End the app for an error in a callback, which nobody would report; a task reports its
        own."""
        error = context.get("exception")
        if isinstance(error, Exception) and "handle" in context:
            self._handle_exception(error)
        else:
            loop.default_exception_handler(context)

    def on_resize(self, event: events.Resize) -> None:
        self._painted.forget()
        self._cover(event.size)

    def _cover(self, size: Size) -> None:
        """Cover the screen if the terminal is too small to read it, including one that has just
        opened."""
        if self.screen_stack and not fits(size) and not isinstance(self.screen, TooSmall):
            self.push_screen(TooSmall())

    def get_line_filters(self) -> Sequence[LineFilter]:
        console = os.environ.get("TERM") == "linux"
        if not (console or self.no_color):
            return super().get_line_filters()
        from tui.ui.toolkit.line_filters import COLOURLESS, CONSOLE  # noqa: PLC0415 - few need it

        filters = [COLOURLESS] if self.no_color else super().get_line_filters()
        return [*filters, CONSOLE] if console else filters

    @property
    def few_colours(self) -> bool:
        """True if the terminal has no more than sixteen colors."""
        return self.console.color_system in {"standard", "windows"}

    def _load_screen_css(self, screen: Screen[Any]) -> None:
        """Read a screen's own rules, and give them to it. Textual also applies all rules again to
        all that is open, but a screen's rules are about nothing else."""
        paths = [path for path in screen.css_path if not self.stylesheet.has_source(str(path))]
        for path in paths:
            self.stylesheet.read(path)
        if paths:
            self.stylesheet.reparse()
            self.stylesheet.update(screen)

    def get_css_variables(self) -> dict[str, str]:
        variables = super().get_css_variables()
        if self.few_colours:
            variables |= themes.grey_tints(self.current_theme)
            self.theme_variables = variables
        return variables

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return {"rule": "#808080"}

    def use_theme(self, name: str, *, now: bool = True) -> tuple[ConfigError, ...]:
        """Change the theme and return the problems of its file. Raises ConfigError."""
        loaded = themes.load(name, folders().config / "themes")
        self.put_on(loaded.theme, now=now)
        return loaded.problems

    def put_on(self, theme: Theme, *, now: bool = True) -> None:
        """Change to the colors of a theme; with `now` false, before the first frame."""
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
        """Start with a theme that may no longer exist, before anything is drawn. If `look`
        remembers it, its file need not be read yet."""
        if look and look.get("theme") == name:
            self.put_on(themes.remembered(look), now=False)
            return
        try:
            self.use_theme(name, now=False)
        except ConfigError:
            self.use_theme(themes.DEFAULT_DARK, now=False)

    def correct_theme(self, name: str) -> tuple[ConfigError, ...]:
        """Change from the guessed theme to the configured one, or to the default if that is broken.
        Returns the theme's problems."""
        try:
            return self.use_theme(name)
        except ConfigError as error:
            self.use_theme(themes.DEFAULT_DARK)
            return (error,)

    def use_keys(self, keymap: Keymap) -> None:
        """Bind the chat's actions to these keys, from the next key on."""
        self.own_keys = keymap
        self.set_keymap(
            {
                name: ",".join(keys) or _NO_KEY
                for name, keys in keymap.items()
                if keys != DEFAULT_KEYS[name]
            }
        )

    def resumed(self) -> None:
        """Redraw after fg, and after another program had the terminal."""
        self.action_redraw()

    def action_redraw(self) -> None:
        """Ctrl+L, and after fg: redraw the whole screen, whatever another program has written over
        it."""
        self._painted.forget()
        self.refresh(layout=True)

    def _handle_exception(self, error: Exception) -> None:
        """End the app after a bug, which the caller of the app reports. Details go to the log, not
        to the terminal."""
        self._return_code = 1
        if isinstance(error, WorkerFailed):  # it has no traceback of its own
            error = cast("Exception", error.error)
        if self._exception is None:
            self._exception = error
            cast("asyncio.Event", vars(self)["_exception_event"]).set()
        if self.failure is not None:  # the caller of the app logs the first
            log.info("another error while the screen ends", exc_info=error)
        self.failure = self.failure or error
        self._close_messages_no_wait()
