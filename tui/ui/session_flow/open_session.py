"""The way to a session: is the folder trusted, which session, how is a model reached."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual.app import App

from tui.app.ports import Agent, Opening, SessionChoice
from tui.app.resume import shelf_of
from tui.core.errors import CredentialsError, HoldfastError, SessionInUseError
from tui.ui.session_flow.credentials_prompt import set_up
from tui.ui.session_flow.resume_options import Resuming, picked_choice
from tui.ui.turn_controller import Bridge

if TYPE_CHECKING:
    from tui.ui.widgets.confirmation import Confirmation, Question

log = logging.getLogger(__name__)


class Way:
    """Leads to a session, with the questions that come before it. Called from a worker.

    What cannot be opened is told on the screen; nothing is raised.
    """

    def __init__(self, app: App[Any], bridge: Bridge, resuming: Resuming) -> None:
        self._app = app
        self._bridge = bridge
        self._say = bridge.chat.notice.say
        self._resuming = resuming

    async def first(self, opening: Opening) -> None:
        """The first session of a run."""
        services = self._bridge.services
        if services.untrusted:
            await self._ask_trust(services.untrusted)
        choice = opening.choice
        if choice is None:
            from tui.ui.screens.sessions import SessionsScreen  # noqa: PLC0415 - on demand

            picked = await self._app.push_screen_wait(SessionsScreen(shelf_of(services)))
            choice = picked_choice(picked) if picked else SessionChoice()
        await self._open(choice)

    async def other(self, choice: SessionChoice) -> None:
        """Leave the session that is shown for another one."""
        if self._bridge.busy:
            self._say("The agent is at work.", "warning", hint="Esc stops it.")
        elif not self._bridge.opening:
            await self._open(choice)

    async def _open(self, choice: SessionChoice) -> None:
        """Open a session. Where none can be opened, what was sent to it is typed again."""
        try:
            await self._try(choice)
        finally:
            self._bridge.give_back()

    async def _try(self, choice: SessionChoice) -> None:
        """Without a key over the welcome screen, as often as it takes."""
        while True:
            try:
                if choice.foreign and choice.path is not None:
                    wanted = await self._resuming.from_elsewhere(choice.path)
                else:
                    wanted = await self._tried(choice)
                    if wanted == choice:
                        await self._resuming.opened(choice)
                        await self._ask_elevated()
                        return
                choice = wanted or SessionChoice()
                if wanted is None and self._bridge.agent:
                    return
            except SessionInUseError as error:
                wanted = await self._resuming.in_use(choice, error)
                choice = wanted or SessionChoice()
                if wanted is None and self._bridge.agent:
                    return
            except CredentialsError as error:
                if not await self._welcome(error):
                    return
            except HoldfastError as error:
                self._say(error.message, "error", hint=error.hint)
                if self._bridge.agent or choice == SessionChoice():
                    return
                choice = SessionChoice()
            except Exception as error:
                log.exception("the session could not be opened")
                what = f"The session could not be opened ({type(error).__name__})."
                self._say(what, "error", hint="The details are in the log file.")
                return

    async def _tried(self, choice: SessionChoice) -> SessionChoice | None:
        """Open a session; the choice where it is open, else the one that was made instead."""
        wanted: SessionChoice | None = choice

        async def accept(agent: Agent) -> bool:
            nonlocal wanted
            wanted = await self._resuming.accept(choice, agent)
            return wanted == choice

        await self._bridge.open(choice, accept)
        return wanted

    async def _ask_trust(self, brought: Sequence[str]) -> None:
        from tui.ui.widgets.confirmation import Question  # noqa: PLC0415 - on demand

        question = Question(
            "Trust this folder?",
            "It brings files that change how holdfast works here: settings, instructions,"
            " commands. Until you trust it they can only make things stricter.",
            yes="Trust it",
            no="Not now",
            details=tuple(brought),
        )
        trusted = await self._app.push_screen_wait(self._unasked(question))
        try:
            await self._bridge.services.decide_trust(trusted)
        except HoldfastError as error:
            self._say(error.message, "warning", hint=error.hint)

    async def _ask_elevated(self) -> None:
        """A session that was elevated is so again only where the person says so (K47)."""
        if self._bridge.agent is None or not self._bridge.agent.was_elevated:
            return
        from tui.ui.widgets.confirmation import Question  # noqa: PLC0415 - on demand

        question = Question(
            "Elevate again?",
            "This session was elevated when it was left: nothing was asked, and the file tools"
            " could leave the folder. It is not elevated now.",
            yes="Elevate it",
            no="Ask me as usual",
        )
        if await self._app.push_screen_wait(self._unasked(question)):
            self._bridge.submit("/elevated on")

    def _unasked(self, question: Question) -> Confirmation:
        """A question that comes by itself: what is being typed still goes to the prompt."""
        from tui.ui.widgets.confirmation import Confirmation  # noqa: PLC0415 - on demand

        chat = self._bridge.chat
        return Confirmation(question, chat.clock, chat.prompt.insert)

    async def _welcome(self, why: CredentialsError) -> bool:
        """Ask how to reach a model. False when the person wants none."""
        said = await set_up(self._app, self._bridge.services, why.message)
        if said is None:
            if self._bridge.agent is None:
                await self._app.action_quit()
            return False
        if said:
            self._say(said, "success")
        return True
