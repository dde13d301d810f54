"""Pictures of the desk: a busy day, other machines, nothing yet, and what lies over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs
from textual.pilot import Pilot
from textual.screen import Screen

from tests.context.sessions import answer, prompt, records
from tests.support.clock import ManualClock
from tests.support.desk import FakeHost
from tests.ui.desk.samples import LiveSession, call, day, row
from tests.ui.screens.driving import until
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of
from tui.core.paths import folders
from tui.desk.host import DeskRow
from tui.session.records import Header
from tui.ui.desk.app import DeskApp
from tui.ui.desk.desk_screen import DeskScreen
from tui.ui.desk.new_session import NewSessionDialog
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.panes import PaneRule

SAID = (
    prompt("The test in test_store.py fails one time in ten. Find out why, and fix it."),
    answer("It reads the index before the writer has closed it. I'll wait for the file instead."),
)


def recorded(rows: Sequence[DeskRow], folder: Path) -> list[DeskRow]:
    """The same sessions, the first one with a record."""
    path = folder / "session.jsonl"
    head = Header(rows[0].id, "2026-11-21T08:18:00.000Z", rows[0].cwd, "holdfast 1")
    lines = [head.to_line(), *(record.to_line() for record in records(*SAID))]
    path.write_bytes(b"".join(lines))
    return [structs.replace(rows[0], path=str(path)), *rows[1:]]


def shown(
    hosts: Callable[[Path], list[FakeHost]], *keys: str, screen: type[Screen[Any]] | None = None
) -> Callable[[Stage], Shot]:
    """The desk of some machines once its preview stands, and keys pressed there."""

    def make(stage: Stage) -> Shot:
        machines = hosts(stage.folder)
        clock = ManualClock()
        app = DeskApp(
            machines,
            folder=Path("/home/me"),
            home=folders(),
            opener=LiveSession,
            theme=stage.theme,
            clock=clock,
        )

        async def drive(pilot: Pilot[None]) -> None:
            for machine in machines:
                machine.put()
            await until(pilot, lambda: not app.desk.is_reading)
            if any(one.path for machine in machines for one in machine.rows):
                view = app.desk.query_one("#preview", ConversationView)
                await until(pilot, lambda: bool(view.items))
            await pilot.press(*keys)
            await until(pilot, lambda: screen is None or isinstance(app.screen, screen))
            rule = app.desk.query_one("#preview-rule", PaneRule)
            chosen = app.desk.row
            await until(pilot, lambda: chosen is None or chosen.id in rule.title.plain)
            await pilot.pause()

        return app, drive

    return make


def here(folder: Path) -> list[FakeHost]:
    return [FakeHost("", recorded(day(), folder))]


def several(folder: Path) -> list[FakeHost]:
    far = [structs.replace(one, host="mill") for one in day()[1:6]]
    gone = FakeHost("barn")
    gone.problem = "Connection refused"
    return [*here(folder), FakeHost("mill", far), gone]


def hanging(_: Path) -> list[FakeHost]:
    stuck = {"problem": "It hasn't answered for 9 s.", "cost_usd": 0.12, "cwd": "/home/me/src"}
    return [
        FakeHost(
            "",
            [
                row("c3b2c3d4e5f6", "waiting", "clean up", asked=call("rm -rf build", "high-risk")),
                row("d3b2c3d4e5f6", "working", "a process that was stopped", **stuck),
            ],
        )
    ]


PICTURES: Pictures = {
    "busy": Picture(DeskScreen, shown(here)),
    "several machines": Picture(DeskScreen, shown(several), state=True),
    "a problem": Picture(DeskScreen, shown(hanging, "down"), state=True),
    "nothing yet": Picture(DeskScreen, shown(lambda _: [FakeHost()]), state=True),
    "filtered": Picture(DeskScreen, shown(here, "slash", *"store"), state=True),
    "answer": Picture(ApprovalModal, shown(here, "a", screen=ApprovalModal), state=True),
    "new": Picture(
        NewSessionDialog, shown(several, "n", *"fix it", screen=NewSessionDialog), fresh=True
    ),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
