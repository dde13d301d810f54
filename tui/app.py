"""The full screen: themes, the way to a session, global keys. It routes; others do the work."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from textual import on, work
from textual.app import App, SystemCommand
from textual.screen import Screen

import tui
from tui import themes
from tui.clock import Clock, SystemClock
from tui.early import Typed
from tui.errors import ConfigError, CredentialsError, HoldfastError
from tui.paths import folders, shorten, workspace_slug
from tui.screens.chat import MODES, ChatScreen
from tui.widgets.keys import APP_KEYS, bindings
from tui.widgets.prompt import Prompt
from tui.widgets.prompt_history import PromptHistory

if TYPE_CHECKING:
    from tui.bridge import Bridge, Opening, SessionChoice
    from tui.commands import Desk
    from tui.handover import HandOver
    from tui.widgets.conversation.view import Conversation

log = logging.getLogger(__name__)

QUIT_WITHIN_S = 2.0
_AFTER_THE_FIRST_FRAME = (
    "aiofiles",
    "tui.commands",
    "tui.widgets.conversation.view",
    "tui.widgets.output_view",
)
"""Imported in a thread, so that what imports them later waits for nothing."""

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class HoldfastApp(App[None]):
    """The program on the full screen.

    Its first frame needs few imports. Then `load` runs in a thread and returns what the rest
    works with; prompts and commands given meanwhile wait for it. What it raises ends the app and
    is `failure` afterwards. `theme` is a guess until then; `first` is what it follows.

    `bridge` and `desk` exist from then on, when `ready` is true.
    """

    TITLE = "holdfast"
    CSS_PATH = ["app.tcss", "screens/chat.tcss"]  # noqa: RUF012 - the default screen loads none
    BINDINGS = bindings(APP_KEYS)  # pyright: ignore[reportAssignmentType]

    bridge: Bridge
    desk: Desk

    def __init__(
        self,
        load: Callable[[], Opening],
        *,
        theme: str = themes.DEFAULT_DARK,
        clock: Clock | None = None,
        version: str = tui.__version__,
        first: HandOver | None = None,
    ) -> None:
        super().__init__(driver_class=first.driver if first else None)
        self.failure: Exception | None = None
        self.ready = False
        self._load = load
        self._first = first
        self._waiting: list[str] = []
        self._clock = clock or SystemClock()
        self._asked_to_quit = float("-inf")
        self.chat = ChatScreen(
            self._clock, version=version, layout_file=folders().data / "screen.json"
        )
        try:
            self.use_theme(theme, now=False)
        except ConfigError:
            self.use_theme(themes.DEFAULT_DARK, now=False)

    def get_default_screen(self) -> Screen[Any]:
        return self.chat

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return {"rule": "#808080"}

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:  # noqa: ARG002
        from tui.commands import COMMANDS  # noqa: PLC0415 - as all of tui.commands: see `ready`

        for command in COMMANDS:
            run = partial(self.action_command, command.name)
            yield SystemCommand(f"/{command.name}", command.help, run)

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, self._resumed)  # pyright: ignore[reportUnknownMemberType]
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in _SIGNALS:
                asyncio.get_running_loop().add_signal_handler(number, self._leave)
        typed = self._first.typed() if self._first else Typed()
        if typed.draft:
            self.chat.prompt.put(typed.draft)
        for text in typed.sent:
            self._wait(text)
        self.call_after_refresh(self.begin)

    async def on_unmount(self) -> None:
        if self.ready:
            await self.bridge.close()
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in _SIGNALS:
                asyncio.get_running_loop().remove_signal_handler(number)

    @work(group="session")
    async def begin(self) -> None:
        """What comes after the first frame: the rest of the program, then the first session.

        Questions come before it: whether the folder is trusted, and which session is wanted.
        """
        if self._first:
            self._first.listen()
        try:
            opening = await asyncio.to_thread(self._prepare)
        except Exception as error:  # noqa: BLE001 - for whoever runs the app
            self.failure = error
            self.exit()
            return
        await self._furnish(opening)
        if opening.services.untrusted:
            await self._ask_trust(opening.services.untrusted)
        choice = opening.choice
        if choice is None:
            from tui.bridge import SessionChoice  # noqa: PLC0415
            from tui.screens.sessions import SessionsScreen  # noqa: PLC0415

            browser = SessionsScreen(opening.services.list_sessions, self._clock)
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
        loaded = themes.load(name, folders().config / "themes")
        self.register_theme(loaded.theme)
        if now:
            self.theme = name
        else:
            self.set_reactive(App.theme, name)
            self.stylesheet.set_variables(self.get_css_variables())
        return loaded.problems

    async def action_command(self, name: str) -> None:
        """Run a command by its name, from a key, a click or the palette."""
        await self._do(f"/{name}")

    async def action_mark(self, what: Literal["mask", "pin"]) -> None:
        """Mask or pin the tool call under the cursor, or undo that."""
        if self.ready:
            await self.bridge.mark(what)

    async def action_toggle_verbose(self) -> None:
        on = self.chat.header.state.verbose
        await self._do(f"/verbose {'off' if on else 'on'}")

    def action_next_mode(self) -> None:
        agent, order = self.bridge.agent if self.ready else None, tuple(MODES)
        if agent is not None:
            agent.mode = order[(order.index(agent.mode) + 1) % len(order)]
            self.chat.show_mode(agent.mode)

    async def action_interrupt(self) -> None:
        """Ctrl+C: stop, else clear, and again quit."""
        if self.ready and self.bridge.cancel():
            return
        if self.chat.prompt.text:
            self.chat.prompt.accept()
            return
        now = self._clock.monotonic()
        if now - self._asked_to_quit <= QUIT_WITHIN_S:
            await self.action_quit()
        self._asked_to_quit = now
        self.chat.notice.say("Press Ctrl+C again to quit.")

    async def action_quit(self) -> None:
        """Close the session, then leave."""
        try:
            if self.ready:
                await self.bridge.close()
        except HoldfastError:
            log.exception("the session could not be closed")
        self.exit()

    @on(Prompt.Submitted)
    async def _submitted(self, event: Prompt.Submitted) -> None:
        if await self._do(event.text):
            event.prompt.accept()

    @on(Prompt.QuitAsked)
    async def _quit_asked(self) -> None:
        await self.action_quit()

    @on(ChatScreen.StopAsked)
    def _stop_asked(self) -> None:
        if self.ready:
            self.bridge.cancel()

    def on_conversation_item_selected(self, event: Conversation.ItemSelected) -> None:
        self.bridge.presenter.open_output(event.item)

    def _prepare(self) -> Opening:
        """In a thread: import what the rest needs, and load it."""
        for module in _AFTER_THE_FIRST_FRAME:
            import_module(module)
        return self._load()

    async def _furnish(self, opening: Opening) -> None:
        """Complete the screen, then do what was asked for meanwhile."""
        from tui.bridge import Bridge  # noqa: PLC0415
        from tui.commands import Desk  # noqa: PLC0415

        services = opening.services
        self._correct_theme(opening.theme)
        await self.chat.furnish()
        self.bridge = Bridge(self, self.chat, services)
        self.desk = Desk(self, self.bridge, self.open_session, self.use_theme)
        self.ready = True
        self.chat.header.state = replace(self.chat.header.state, folder=shorten(services.workspace))
        history = services.folders.data / "history" / f"{workspace_slug(services.workspace)}.jsonl"
        self.chat.prompt.past = PromptHistory(history)
        await self.chat.prompt.past.load()
        waiting, self._waiting = self._waiting, []
        self.chat.queued.texts = ()
        if opening.prompt:
            self.bridge.submit(opening.prompt)
        for text in waiting:
            self.chat.prompt.past.add(text)
            if not await self._do(text):
                self.chat.prompt.put_back(text)

    async def _do(self, text: str) -> bool:
        """A command, a shell line or a prompt. False when it should stay in the prompt."""
        if not self.ready:
            self._wait(text)
            return True
        from tui.commands import route  # noqa: PLC0415

        return await route(self.desk, text)

    def _wait(self, text: str) -> None:
        """Keep a text until `ready`, and show that it waits."""
        self._waiting.append(text)
        self.chat.queued.texts = tuple(self._waiting)

    def _correct_theme(self, name: str) -> None:
        """Change from the guessed theme to the one that the configuration names."""
        try:
            problems = self.use_theme(name)
        except ConfigError as error:
            self.use_theme(themes.DEFAULT_DARK)
            problems = (error,)
        for problem in problems[:1]:
            self.chat.notice.say(problem.message, "warning", hint=problem.hint)

    async def _ask_trust(self, brought: Sequence[str]) -> None:
        from tui.widgets.confirmation import Confirmation, Question  # noqa: PLC0415

        question = Question(
            "Trust this folder?",
            "It brings files that change how holdfast works here: settings, instructions,"
            " commands. Until you trust it they can only make things stricter.",
            yes="Trust it",
            no="Not now",
            details=tuple(brought),
        )
        trusted = await self.push_screen_wait(Confirmation(question))
        try:
            await self.bridge.services.decide_trust(trusted)
        except HoldfastError as error:
            self.chat.notice.say(error.message, "warning", hint=error.hint)

    async def _open(self, choice: SessionChoice) -> None:
        """Open a session. Where none can be opened, what was sent to it is typed again."""
        try:
            await self._open_with_patience(choice)
        finally:
            self.bridge.give_back()

    async def _open_with_patience(self, choice: SessionChoice) -> None:
        """Without a key over the welcome screen, as often as it takes."""
        from tui.bridge import SessionChoice  # noqa: PLC0415

        while True:
            try:
                await self.bridge.open(choice)
            except CredentialsError as error:
                if not await self._welcome(error):
                    return
            except HoldfastError as error:
                self.chat.notice.say(error.message, "error", hint=error.hint)
                if self.bridge.agent or choice == SessionChoice():
                    return
                choice = SessionChoice()
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
            screen = WelcomeScreen(self.bridge.services.probe_servers, why.message, problem)
            setup = await self.push_screen_wait(screen)
            if setup is None:
                if self.bridge.agent is None:
                    await self.action_quit()
                return False
            try:
                said = await self.bridge.services.set_up(setup)
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
