"""Pictures of a session in time: the timeline, and the context as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from textual.pilot import Pilot

from tests.context.worked_session import WorkedSession
from tests.support.world import World
from tests.ui.screens.driving import session_open, until
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of, here
from tests.ui.screens.test_context_past import worked
from tui.context.timeline import SessionTimeline
from tui.ui.screens.context_past import ContextPastScreen
from tui.ui.screens.sent_request import SentRequestScreen
from tui.ui.screens.timeline import TimelineScreen
from tui.ui.screens.timeline_moment import MomentOpener


def at(*keys: str, turns: int = 12) -> Callable[[Stage], Shot]:
    async def drive(pilot: Pilot[None]) -> None:
        app = here(pilot.app)
        await until(pilot, lambda: session_open(app))
        agent: Any = SimpleNamespace(
            session=SimpleNamespace(
                header=SimpleNamespace(cwd="/w"), records=WorkedSession().made(turns, 12)
            )
        )
        screen = TimelineScreen(agent, {}, MomentOpener(app.frontend))
        await app.push_screen(screen)
        await until(pilot, lambda: bool(screen.timeline.steps) or not turns)
        await pilot.press(*keys)
        await pilot.pause()

    return lambda stage: (stage.app(World()), drive)


def then(stage: Stage) -> Shot:
    """The context at the second request of a session of three."""

    async def drive(pilot: Pilot[None]) -> None:
        app = here(pilot.app)
        await until(pilot, lambda: session_open(app))
        agent = await worked(stage.folder)
        records = [replace(one, time="2026-11-24T12:08:00Z") for one in agent.session.records]
        session = SimpleNamespace(header=SimpleNamespace(cwd="/w"), records=records)
        shown: Any = SimpleNamespace(session=session, models=agent.models)
        past = ContextPastScreen(shown, SessionTimeline({}))
        await app.push_screen(past)
        await until(pilot, lambda: bool(past.shown))
        await pilot.press("left")
        await pilot.pause()

    return stage.app(World()), drive


def sent(stage: Stage) -> Shot:
    """A request to read."""
    text = '// messages\n{"role": "user", "content": [{"type": "text", "text": "Fix it"}]}\n'

    async def drive(pilot: Pilot[None]) -> None:
        app = here(pilot.app)
        await until(pilot, lambda: session_open(app))
        await app.push_screen(SentRequestScreen("Request 2, exactly as it was sent", text))
        await pilot.pause()

    return stage.app(World()), drive


PICTURES: Pictures = {
    "the whole session": Picture(TimelineScreen, at()),
    "whole": Picture(TimelineScreen, at("home", "n", "n", "n", "b")),
    "closer": Picture(TimelineScreen, at("home", "t", "plus", "plus", "plus", "plus"), state=True),
    "the context then": Picture(ContextPastScreen, then),
    "a request as it was sent": Picture(SentRequestScreen, sent),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
