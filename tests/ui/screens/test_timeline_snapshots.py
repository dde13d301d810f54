"""Pictures of the timeline."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from textual.pilot import Pilot

from tests.context.worked_session import WorkedSession
from tests.support.world import World
from tests.ui.screens.driving import session_open, until
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of, here
from tui.ui.screens.timeline import TimelineScreen
from tui.ui.screens.timeline_moment import MomentOpener


def at(*keys: str, turns: int = 12) -> Callable[[Stage], Shot]:
    async def drive(pilot: Pilot[None]) -> None:
        app = here(pilot.app)
        await until(pilot, lambda: session_open(app))
        agent: Any = SimpleNamespace(
            session=SimpleNamespace(records=WorkedSession().made(turns, 12))
        )
        screen = TimelineScreen(agent, {}, MomentOpener(app.frontend))
        await app.push_screen(screen)
        await until(pilot, lambda: bool(screen.timeline.steps) or not turns)
        await pilot.press(*keys)
        await pilot.pause()

    return lambda stage: (stage.app(World()), drive)


PICTURES: Pictures = {
    "whole": Picture(TimelineScreen, at("home", "n", "n", "n", "b")),
    "closer": Picture(TimelineScreen, at("home", "t", "plus", "plus", "plus", "plus"), state=True),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
