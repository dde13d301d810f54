"""The places that a session is watched from, the chat and the desk, and how its screen leads back
there or takes the session over."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from textual.screen import Screen

from tui.app.door.lines import Hello, SessionStatus
from tui.app.services import SessionChoice
from tui.core.clock import Clock
from tui.core.paths import Folders
from tui.desk.host import DeskHost, DeskRow
from tui.ui.desk.session_screen import SessionScreen
from tui.ui.toolkit.base_screen import uncovered

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend


class TakeOver(Protocol):
    """Continues a session here."""

    def __call__(self, hello: Hello, /) -> str:
        """Return why that can't be; "" if it is done."""
        ...


class OverAnotherScreen:
    """A session watched over another screen, which is there again afterwards."""

    def __init__(self, take_over: TakeOver) -> None:
        self._take_over = take_over

    def leave(self, screen: Screen[None]) -> None:
        if screen.is_current:
            screen.dismiss(None)

    def take_over(self, screen: Screen[None], hello: Hello) -> str:  # noqa: ARG002 - the port's
        return self._take_over(hello)

    def follow(self, hello: Hello | None, status: SessionStatus) -> None:
        """Do nothing: the terminal's title and tab are those of the screen below."""


def over_desk(
    host: DeskHost, row: DeskRow, take_over: TakeOver, clock: Clock, home: Folders
) -> SessionScreen:
    """Return the screen of a session on the desk."""
    place = OverAnotherScreen(take_over)
    return SessionScreen(host, row.id, clock, place=place, home=home)


async def watch(frontend: ScreenFrontend, session: str) -> None:
    """Show a session of this machine live, over the chat."""
    from tui.desk.local_host import LocalHost  # noqa: PLC0415 - on demand

    services = frontend.services
    host = LocalHost(services.folders, services.clock)

    async def close(_: object) -> None:
        await host.close()

    row = DeskRow(id=session)
    await frontend.app.push_screen(over_chat(frontend, host, row), close)


def over_chat(frontend: ScreenFrontend, host: DeskHost, row: DeskRow) -> SessionScreen:
    """Return the screen of a session that is watched over the chat, which takes it over."""

    def take_over(hello: Hello) -> str:
        if frontend.conversation.busy:
            return "The agent in the chat is busy: stop it first, or wait until it is done."
        uncovered(frontend.app, frontend.chat)
        frontend.switch_session(SessionChoice(Path(hello.path), attach=True))
        return ""

    services = frontend.services
    return over_desk(host, row, take_over, services.clock, services.folders)
