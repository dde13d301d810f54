"""`holdfast attach` on a terminal: one session, watched live in a program of its own."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from textual.screen import Screen

from tui.app.door.lines import Hello, SessionStatus
from tui.app.options.arguments import Options
from tui.core.clock import Clock
from tui.core.config import Config
from tui.core.paths import Folders, folders, shorten
from tui.core.standard_output import print_text
from tui.desk.host import DeskHost
from tui.settings import bare
from tui.ui.desk.desk_signals import session_status
from tui.ui.desk.session_screen import SessionScreen
from tui.ui.desk.session_words import busy
from tui.ui.desk.watching_app import WatchingApp, take_terminal
from tui.ui.program_status import State
from tui.ui.toolkit import themes
from tui.ui.widgets.keys import (
    APP_KEYS,
    HELP,
    HERE,
    PANE_KEYS,
    PROMPT_KEYS,
    WATCH_KEYS,
)

Opens: TypeAlias = Callable[[Options], int]
"""Opens the session that options name on its own screen, and returns the exit code."""

_CALLS: Final[Mapping[State, str]] = {
    "blocked": "Needs your answer.",
    "waiting": "Waiting for the server.",
}
_WATCHED: Final = next(title for title, table in HELP if table is WATCH_KEYS)


class AttachedApp(WatchingApp):
    """Watches one session. `taken` is who had it, once the person has chosen to take it over;
    `notices` are shown in a corner first."""

    CSS_PATH = ["../app.tcss", "../screens/chat.tcss"]  # noqa: RUF012

    def __init__(
        self,
        host: DeskHost,
        session: str,
        *,
        home: Folders,
        config: Config | None = None,
        theme: str = themes.DEFAULT_DARK,
        clock: Clock | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        super().__init__(config or Config(), theme, clock, notices)
        self._host = host
        self.watching = SessionScreen(host, session, self.clock, place=self, home=home)

    def get_default_screen(self) -> SessionScreen:
        return self.watching

    async def on_unmount(self) -> None:
        await self._host.close()

    # What the session's screen asks

    def leave(self, screen: Screen[None]) -> None:  # noqa: ARG002 - there is one
        self.exit()

    def take_over(self, screen: Screen[None], hello: Hello) -> str:  # noqa: ARG002 - as above
        self.taken = hello
        self.exit()
        return ""

    def follow(self, hello: Hello | None, status: SessionStatus) -> None:
        """Show in the terminal's title and tab what the session does."""
        name = status.title or (shorten(hello.cwd) if hello is not None else "")
        now, before = session_status(status), self.terminal.state
        if now.state in _CALLS and before not in _CALLS:
            self.notifier.need(_CALLS[now.state])
        self.terminal.show_status(now, name=name)

    # Keys that work everywhere

    def action_command(self, name: str) -> None:
        """A key that leads to another screen of a chat: there is none here."""
        if name == "help":
            self.action_help()
        else:
            self.watching.action_not_here(name)

    def action_next_effort(self) -> None:
        self.watching.action_not_here("next_effort")

    def action_output(self) -> None:
        self.watching.action_show_output()

    async def action_debug_view(self) -> None:
        """F12: every fact of the session since it is watched; again closes it."""
        from tui.ui.screens.debug_log import toggle_debug_log  # noqa: PLC0415 - on demand

        await toggle_debug_log(self, self.watching.fact_log)

    async def action_palette(self) -> None:
        """Ctrl+P: the keys' actions, to be chosen by name; again closes them."""
        from tui.ui.commands.palette import open_run_palette  # noqa: PLC0415 - on demand

        await open_run_palette(self, self.watching, WATCH_KEYS)

    def action_help(self) -> None:
        """F1: the keys that work here, and the manual; again closes it."""
        from tui.ui.screens.help import HelpScreen, HelpSection  # noqa: PLC0415 - on demand

        if isinstance(self.screen, HelpScreen):
            self.screen.dismiss()
        elif not any(isinstance(screen, HelpScreen) for screen in self.screen_stack):
            within = (self.screen.focused or self.screen).ancestors_with_self
            here = {HERE[name] for one in within if (name := type(one).__name__) in HERE}
            everywhere = [key for key in APP_KEYS if hasattr(self, f"action_{key.action}")]
            sections = [
                replace(HelpSection.of(title, table, self.own_keys), here=table in here)
                for title, table in HELP
                if table in here or table in (WATCH_KEYS, PROMPT_KEYS, PANE_KEYS)
            ]
            sections.sort(key=lambda section: (not section.here, section.title != _WATCHED))
            sections.append(HelpSection.of("Everywhere", everywhere, self.own_keys))
            self.push_screen(HelpScreen(sections))

    def action_interrupt(self) -> None:
        self.watching.action_interrupt()

    async def action_quit_if_again(self, key: str) -> None:
        """Quit at the second press; the session runs on."""
        if self.quit_press.asked():
            await self.action_quit()
        else:
            self.watching.notice.say(f"Press {key} again to leave; the session stays as it is.")

    async def action_quit(self) -> None:
        self.watching.action_leave()


def open_attached(options: Options, host: DeskHost, session: str, opens: Opens) -> int:
    """Watch a session of a host on the terminal, and return the exit code. Closes the host.

    `opens` opens its own screen if the person takes it over.

    Raises:
        UsageError: If there is no terminal.
    """
    take_terminal("The live view needs a terminal.")
    home = folders()
    config, notices = bare.own(home)
    theme = options.screen.theme or config.theme
    app = AttachedApp(host, session, home=home, config=config, theme=theme, notices=notices)
    code = app.run_to_end()
    if app.takeover.gone:
        return code  # nobody is there to read it
    if app.taken is not None:
        return opens(taking_over(options, app.taken))
    watched, far = app.watching.watched, f"ssh://{host.name}/" if host.name else ""
    known = watched.hello.session if watched.hello is not None else ""
    print_text(parting_words(known or shlex.quote(session), watched.status, far))
    return code


def parting_words(session: str, status: SessionStatus, far: str = "") -> str:
    """Return the line on leaving a session that was watched."""
    again = f"holdfast attach {far}{session} looks in again."
    return f"{session} runs on; {again}" if busy(status) else f"{session} stays as it is; {again}"


def taking_over(options: Options, hello: Hello) -> Options:
    """Return the options that continue a session in the place of its owner, in its folder."""
    os.chdir(hello.cwd)
    return options.having(command="chat", target=None, resume=hello.path, attach=True)
