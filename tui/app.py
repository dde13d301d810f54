"""The full screen: themes, the way to a session, global keys. It routes; others do the work."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from textual import on, work
from textual.app import App, SystemCommand
from textual.screen import Screen

from tui import commands, themes
from tui.bridge import AppServices, Bridge, SessionChoice
from tui.commands import COMMANDS, Desk
from tui.early import Typed
from tui.errors import ConfigError, CredentialsError, HoldfastError
from tui.paths import shorten, workspace_slug
from tui.screens.chat import MODES, ChatScreen
from tui.widgets.conversation.view import Conversation
from tui.widgets.keys import APP_KEYS, bindings
from tui.widgets.prompt import Prompt
from tui.widgets.prompt_history import PromptHistory

log = logging.getLogger(__name__)

QUIT_WITHIN_S = 2.0
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_NEW = SessionChoice()


class HoldfastApp(App[None]):
    """The program on the full screen.

    `choice` is the session to begin with, None shows the browser first; `prompt` is sent as if
    it had been typed. `early` ends the first frame and says what was typed there.
    """

    TITLE = "holdfast"
    CSS_PATH = ["app.tcss", "screens/chat.tcss"]  # noqa: RUF012 - the default screen loads none
    BINDINGS = bindings(APP_KEYS)  # pyright: ignore[reportAssignmentType]

    def __init__(
        self,
        services: AppServices,
        *,
        choice: SessionChoice | None = _NEW,
        prompt: str | None = None,
        theme: str = themes.DEFAULT_DARK,
        early: Callable[[], Typed] | None = None,
    ) -> None:
        super().__init__()
        self._early = early
        self._typed = Typed()
        self._services = services
        self._choice = choice
        self._first_prompt = prompt
        self._asked_to_quit = float("-inf")
        history = services.folders.data / "history" / f"{workspace_slug(services.workspace)}.jsonl"
        self.chat = ChatScreen(services.clock, PromptHistory(history), version=services.version)
        self.bridge = Bridge(self, self.chat, services)
        self.desk = Desk(self, self.bridge, self.open_session, self.use_theme)
        try:
            problems = self.use_theme(theme, now=False)
        except ConfigError as error:
            self.use_theme(themes.DEFAULT_DARK, now=False)
            problems = (error,)
        self._theme_problems = problems

    def get_default_screen(self) -> Screen[Any]:
        return self.chat

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return {"rule": "#808080"}

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:  # noqa: ARG002
        for command in COMMANDS:
            run = partial(self.action_command, command.name)
            yield SystemCommand(f"/{command.name}", command.help, run)

    def on_load(self) -> None:
        """Take over from the first frame, right before the driver takes the terminal."""
        self._typed = self._early() if self._early else Typed()

    def on_mount(self) -> None:
        folder = shorten(self._services.workspace)
        self.chat.header.state = replace(self.chat.header.state, folder=folder)
        for problem in self._theme_problems[:1]:
            self.chat.notice.say(problem.message, "warning", hint=problem.hint)
        self.app_resume_signal.subscribe(self, self._resumed)  # pyright: ignore[reportUnknownMemberType]
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in _SIGNALS:
                asyncio.get_running_loop().add_signal_handler(number, self._leave)
        if self._first_prompt:
            self.bridge.submit(self._first_prompt)
        if self._typed.draft:
            self.chat.prompt.put(self._typed.draft)
        for text in self._typed.sent:
            self.call_later(commands.route, self.desk, text)
        self.call_after_refresh(self.begin)

    async def on_unmount(self) -> None:
        await self.bridge.close()
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in _SIGNALS:
                asyncio.get_running_loop().remove_signal_handler(number)

    @work(group="session")
    async def begin(self) -> None:
        """The first session: after the question of trust, and the browser where it was wanted."""
        if self._services.untrusted:
            await self._ask_trust()
        choice = self._choice
        if choice is None:
            from tui.screens.sessions import SessionsScreen  # noqa: PLC0415

            browser = SessionsScreen(self._services.list_sessions, self._services.clock)
            row = await self.push_screen_wait(browser)
            choice = SessionChoice(row.path if row else None)
        await self._open(choice)

    @work(group="session")
    async def open_session(self, choice: SessionChoice) -> None:
        """Leave the session that is shown for another one."""
        if self.bridge.busy:
            self.chat.notice.say("The agent is at work.", "warning", hint="Esc stops it.")
        elif not self.bridge.opening:
            await self._open(choice)

    def use_theme(self, name: str, *, now: bool = True) -> tuple[ConfigError, ...]:
        """Change the colours; says what was wrong with the theme's file. Raises ConfigError."""
        loaded = themes.load(name, self._services.folders.config / "themes")
        self.register_theme(loaded.theme)
        if now:
            self.theme = name
        else:
            self.set_reactive(App.theme, name)
            self.stylesheet.set_variables(self.get_css_variables())
        return loaded.problems

    async def action_command(self, name: str) -> None:
        """Run a command by its name, from a key, a click or the palette."""
        command = commands.find(name)
        if command and command.run is None:
            self.bridge.submit(f"/{name}")
        else:
            await commands.route(self.desk, f"/{name}")

    def action_toggle_verbose(self) -> None:
        on = self.chat.header.state.verbose
        self.bridge.submit(f"/verbose {'off' if on else 'on'}")

    def action_next_mode(self) -> None:
        agent, order = self.bridge.agent, tuple(MODES)
        if agent is not None:
            agent.mode = order[(order.index(agent.mode) + 1) % len(order)]
            self.chat.show_mode(agent.mode)

    async def action_interrupt(self) -> None:
        """Ctrl+C: stop, else clear, and again quit."""
        if self.bridge.cancel():
            return
        if self.chat.prompt.text:
            self.chat.prompt.accept()
            return
        now = self._services.clock.monotonic()
        if now - self._asked_to_quit <= QUIT_WITHIN_S:
            await self.action_quit()
        self._asked_to_quit = now
        self.chat.notice.say("Press Ctrl+C again to quit.")

    async def action_quit(self) -> None:
        """Close the session, then leave."""
        try:
            await self.bridge.close()
        except HoldfastError:
            log.exception("the session could not be closed")
        self.exit()

    @on(Prompt.Submitted)
    async def _submitted(self, event: Prompt.Submitted) -> None:
        if await commands.route(self.desk, event.text):
            event.prompt.accept()

    @on(Prompt.QuitAsked)
    async def _quit_asked(self) -> None:
        await self.action_quit()

    @on(ChatScreen.StopAsked)
    def _stop_asked(self) -> None:
        self.bridge.cancel()

    @on(Conversation.ItemSelected)
    def _item_selected(self, event: Conversation.ItemSelected) -> None:
        self.bridge.presenter.open_output(event.item)

    async def _ask_trust(self) -> None:
        from tui.widgets.confirmation import Confirmation, Question  # noqa: PLC0415

        question = Question(
            "Trust this folder?",
            "It brings files that change how holdfast works here: settings, instructions,"
            " commands. Until you trust it they can only make things stricter.",
            yes="Trust it",
            no="Not now",
            details=self._services.untrusted,
        )
        trusted = await self.push_screen_wait(Confirmation(question))
        try:
            await self._services.decide_trust(trusted)
        except HoldfastError as error:
            self.chat.notice.say(error.message, "warning", hint=error.hint)

    async def _open(self, choice: SessionChoice) -> None:
        """Open a session; without a key over the welcome screen, as often as it takes."""
        while True:
            try:
                await self.bridge.open(choice)
            except CredentialsError as error:
                if not await self._welcome(error):
                    return
            except HoldfastError as error:
                self.chat.notice.say(error.message, "error", hint=error.hint)
                if self.bridge.agent or choice == _NEW:
                    return
                choice = _NEW
            except Exception as error:
                log.exception("the session could not be opened")
                what = f"The session could not be opened ({type(error).__name__})."
                self.chat.notice.say(what, "error", hint="The details are in the log file.")
                return
            else:
                return

    async def _welcome(self, why: CredentialsError) -> bool:
        """Ask how to reach a model. False when the person wants none."""
        from tui.screens.welcome import WelcomeScreen  # noqa: PLC0415

        problem = ""
        while True:
            screen = WelcomeScreen(self._services.probe_servers, why.message, problem)
            setup = await self.push_screen_wait(screen)
            if setup is None:
                if self.bridge.agent is None:
                    await self.action_quit()
                return False
            try:
                said = await self._services.set_up(setup)
            except HoldfastError as error:
                problem = str(error)
                continue
            if said:
                self.chat.notice.say(said, "success")
            return True

    def _fatal_error(self) -> None:
        """A mistake of the program itself: the details go to the log, not to the terminal."""
        log.critical("the screen failed", exc_info=self._exception)
        self.panic(
            "holdfast: stopped by a mistake of its own. "
            "What was recorded is safe; the details are in the log file."
        )

    def _resumed(self, _: object) -> None:
        """After fg: the terminal shows nothing of what was drawn before."""
        self.refresh(layout=True)

    def _leave(self) -> None:
        self.run_worker(self.action_quit(), group="leave")
