"""`holdfast desk`: the desk on a terminal of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from textual.screen import Screen

from tui.app import launch_config
from tui.app.door.lines import Hello
from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.core.clock import Clock
from tui.core.config import Config
from tui.core.errors import ConfigError
from tui.core.paths import Folders, folders
from tui.core.standard_output import print_text
from tui.desk.host import DeskHost, DeskRow
from tui.desk.hosts import hosts_of
from tui.settings import bare
from tui.ui.desk import desk_rows
from tui.ui.desk.attached import taking_over
from tui.ui.desk.desk_rows import SessionKey
from tui.ui.desk.desk_screen import DeskScreen
from tui.ui.desk.desk_signals import DeskSignals
from tui.ui.desk.places import TakeOver, over_desk
from tui.ui.desk.session_screen import SessionScreen
from tui.ui.desk.watching_app import QUIT_WITHIN_S, WatchingApp, take_terminal
from tui.ui.toolkit import themes
from tui.ui.toolkit.base_screen import BaseScreen, note_for
from tui.ui.widgets.keys import APP_KEYS, DESK_KEYS, HELP, HERE

_ONLY_THE_CHAT: Final = "Only a session's own screen has this."


class SessionOpener(Protocol):
    """Makes the screen that shows a session of a host live."""

    def __call__(
        self, host: DeskHost, row: DeskRow, take_over: TakeOver, clock: Clock, home: Folders, /
    ) -> Screen[Any]: ...


class DeskApp(WatchingApp):
    """Shows the sessions of `hosts`, which it closes at the end. `folder` is where a new session
    begins by default; `opener` makes the screen of one session; `notices` are shown in a corner
    first."""

    CSS_PATH = ["../app.tcss", "../screens/chat.tcss", "desk.tcss"]  # noqa: RUF012
    current: SessionKey | None = None

    def __init__(
        self,
        hosts: Sequence[DeskHost],
        *,
        folder: Path,
        home: Folders,
        opener: SessionOpener = over_desk,
        config: Config | None = None,
        theme: str = themes.DEFAULT_DARK,
        clock: Clock | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        super().__init__(config or Config(), theme, clock, notices)
        self._hosts, self._home, self._make_screen = hosts, home, opener
        self._signals = DeskSignals(self.terminal, self.notifier)
        self.desk = DeskScreen(hosts, self, self.clock, folder=folder)
        self.desk.awaited = True

    def get_default_screen(self) -> Screen[Any]:
        return self.desk

    async def on_unmount(self) -> None:
        await asyncio.gather(*(host.close() for host in self._hosts), return_exceptions=True)

    # What the desk asks

    def open_session(self, host: DeskHost, row: DeskRow) -> None:
        self.push_screen(self._make_screen(host, row, self.take_over, self.clock, self._home))

    def leave_desk(self) -> None:
        self.exit()

    def count(self, rows: Sequence[DeskRow]) -> None:
        self._signals.show(rows)

    def take_over(self, hello: Hello) -> str:
        """Leave the desk to continue a session in its place."""
        self.taken = hello
        self.exit()
        return ""

    # Keys that work everywhere

    @property
    def _watched(self) -> SessionScreen | None:
        """The screen of the session that is open over the desk."""
        screens = (screen for screen in self.screen_stack if isinstance(screen, SessionScreen))
        return next(screens, None)

    def action_command(self, name: str) -> None:
        """A key that leads to another screen of a chat: there is none here."""
        if name == "help":
            self.action_help()
        elif (watched := self._watched) is not None:
            watched.action_not_here(name)
        else:
            self.desk.notice.say(_ONLY_THE_CHAT, hint="F1 shows the keys.")

    def action_next_effort(self) -> None:
        self.action_command("effort")

    def action_output(self) -> None:
        if (watched := self._watched) is not None:
            watched.action_show_output()
        else:
            self.desk.notice.say(_ONLY_THE_CHAT, hint="F1 shows the keys.")

    async def action_debug_view(self) -> None:
        """F12: the facts of the session that is open; the desk itself has none."""
        from tui.ui.screens.debug_log import toggle_debug_log  # noqa: PLC0415 - on demand

        if (watched := self._watched) is not None:
            await toggle_debug_log(self, watched.fact_log)
        else:
            self.desk.notice.say("Open a session first: F12 shows what happens in it.")

    async def action_palette(self) -> None:
        """Ctrl+P: the keys' actions, to be chosen by name; again closes them."""
        from tui.ui.commands.palette import open_run_palette  # noqa: PLC0415 - on demand

        await open_run_palette(self, self.desk, DESK_KEYS)

    def action_help(self) -> None:
        """F1: the keys that work here, and the manual; again closes it."""
        from tui.ui.screens.help import HelpScreen, HelpSection  # noqa: PLC0415 - on demand

        if isinstance(self.screen, HelpScreen):
            self.screen.dismiss()
        elif not any(isinstance(screen, HelpScreen) for screen in self.screen_stack):
            within = (self.screen.focused or self.screen).ancestors_with_self
            names = [type(widget).__name__ for widget in within]
            here = next((HERE[name] for name in names if name in HERE), DESK_KEYS)
            title = next(title for title, table in HELP if table is here)
            everywhere = [key for key in APP_KEYS if hasattr(self, f"action_{key.action}")]
            tables = ((title, here), ("Everywhere", everywhere))
            self.push_screen(
                HelpScreen([HelpSection.of(*table, self.own_keys) for table in tables])
            )

    def action_interrupt(self) -> None:
        """Ctrl+C in a session, or over a question. The desk itself stops a turn by it."""
        above = [screen for screen in self.screen_stack if isinstance(screen, BaseScreen)]
        next((screen for screen in reversed(above) if screen.takes_interrupt()), None)

    async def action_quit_if_again(self, key: str) -> None:
        """Quit at the second press; all sessions run on."""
        if self.quit_press.asked():
            await self.action_quit()
        else:
            note_for(self.screen, QUIT_WITHIN_S, f"Press {key} again to leave the desk.")

    async def action_quit(self) -> None:
        self.exit()


def open_desk(options: Options) -> int:
    """Run `holdfast desk` on a terminal and return the exit code.

    Raises:
        UsageError: If there is no terminal, or a host's name can't be one.
    """
    take_terminal("The desk needs a terminal.")
    home, folder = folders(), workspace_of(options)
    try:
        config, notices = launch_config.prepare(options).config, ()
    except ConfigError as error:
        config, notices = bare.own(home)
        notices = notices or (str(error),)
    app = DeskApp(
        hosts_of(home, options.opening.hosts),
        folder=folder,
        home=home,
        config=config,
        theme=options.screen.theme or config.theme,
        notices=notices,
    )
    code = app.run_to_end()
    if app.takeover.gone:
        return code  # nobody is there to read it
    if app.taken is not None:
        from tui.ui.start.fullscreen_main import open_screen  # noqa: PLC0415 - once it is wanted

        return open_screen(taking_over(options, app.taken), None)
    if words := desk_rows.leaving_words(app.desk.sessions):
        print_text(words)
    return code
