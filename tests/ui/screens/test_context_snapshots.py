"""Pictures of the context inspector."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from textual.pilot import Pilot

from tests.support.world import World
from tests.ui.screens.driving import session_open, until
from tests.ui.screens.inspected import Inspected, worked
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of, here
from tui.ui.screens.context import ContextScreen
from tui.ui.screens.context_changes import BulkMenu
from tui.ui.screens.context_item import ContextItemScreen
from tui.ui.widgets.file_viewer.pane import FilePane

LARGE = 4
"""The row of a large result."""


def inspected(
    agent: Callable[[], Any],
    then: Callable[[ContextScreen, Pilot[None]], Awaitable[None]] | None = None,
) -> Callable[[Stage], Shot]:
    async def drive(pilot: Pilot[None]) -> None:
        app = here(pilot.app)
        await until(pilot, lambda: session_open(app))
        screen = ContextScreen(agent(), lambda _: None)
        await app.push_screen(screen)
        await until(pilot, lambda: app.screen is screen)
        if then:
            await then(screen, pilot)
        await pilot.pause()

    return lambda stage: (stage.app(World()), drive)


async def changed(screen: ContextScreen, pilot: Pilot[None]) -> None:
    screen.rows.move_to(LARGE)
    await pilot.press("m", "p")
    await until(pilot, lambda: "pinned" in screen.notice.text)


def outdated() -> Inspected:
    agent = worked()
    results = [one.id for one in agent.session.records if one.type == "tool_result"]
    agent.stale = {results[0], results[4]}
    return agent


async def shown(screen: ContextScreen, pilot: Pilot[None]) -> None:
    await until(pilot, lambda: any(row.outdated for row in screen.shown))
    await pilot.press("slash", *"outdated", "enter", "d")
    await until(pilot, lambda: "src/m0.py" in screen.notice.text)


async def filtered(_: ContextScreen, pilot: Pilot[None]) -> None:
    await pilot.press("slash", *"pytest")


async def item(screen: ContextScreen, pilot: Pilot[None]) -> None:
    await pilot.press("t")
    screen.rows.move_to(len(screen.shown) - 2)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, ContextItemScreen))
    whole = pilot.app.screen.query_one("#whole", FilePane).view
    await until(pilot, lambda: "Output too large" in whole.text())


async def bulk(_: ContextScreen, pilot: Pilot[None]) -> None:
    await pilot.press("b")
    await until(pilot, lambda: isinstance(pilot.app.screen, BulkMenu))
    await pilot.press("left", "left")


async def request(screen: ContextScreen, pilot: Pilot[None]) -> None:
    await pilot.press("tab")
    view = screen.query_one("#request", FilePane).view
    await until(pilot, lambda: "// system" in view.text() and not view.following)
    await until(pilot, lambda: view.scroll_offset.y == 0)


PICTURES: Pictures = {
    "items": Picture(ContextScreen, inspected(worked, changed)),
    "filtered": Picture(ContextScreen, inspected(worked, filtered), state=True),
    "outdated": Picture(ContextScreen, inspected(outdated, shown), state=True),
    "request": Picture(ContextScreen, inspected(worked, request), state=True),
    "nothing yet": Picture(ContextScreen, inspected(Inspected), state=True),
    "item": Picture(ContextItemScreen, inspected(lambda: worked("/nowhere/big.txt"), item)),
    "bulk": Picture(BulkMenu, inspected(worked, bulk)),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
