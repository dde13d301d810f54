"""Pictures of the sessions: found, looked at, repaired, in use elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from textual.pilot import Pilot

from tests.context.sessions import answer, records
from tests.context.sessions import prompt as asked
from tests.support.world import OldSession, World
from tests.ui.screens.driving import until
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of, press
from tui.app.damage_report import Damage
from tui.app.services import SessionChoice
from tui.core.errors import SessionInUseError
from tui.session.records import Finding
from tui.ui.screens.repair import RepairScreen
from tui.ui.screens.sessions import SessionsScreen
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.questions import AskText, ChoiceDialog

FOUND = (
    Finding("B52", "line 4 (byte 1200)", "skipped: not valid JSON"),
    Finding("B43", "line 7 (byte 2900)", "NUL bytes left out"),
    Finding("B40", "line 12 (byte 5400)", "the last line is cut short; left out"),
)


def shelf() -> World:
    world = World()
    world.add_row("fix the flaky test in test_store.py", hours=0.3)
    world.add_row("add a retry banner that counts down and never takes the focus", hours=5)
    world.add_row("read the README", hours=50, messages=1230, state="interrupted")
    world.add_row("日本語の題名 and more", hours=900, messages=3, state="needs_repair")
    return world


def browser(*keys: str, screen: type[object] = SessionsScreen) -> Callable[[Stage], Shot]:
    """The browser once its preview stands, and keys pressed in it."""

    async def drive(pilot: Pilot[None]) -> None:
        await press("f3")(pilot)
        preview = pilot.app.screen.query_one("#preview", ConversationView)
        await until(pilot, lambda: bool(preview.items))
        await pilot.press(*keys)
        await until(pilot, lambda: isinstance(pilot.app.screen, screen))

    return lambda stage: (stage.app(shelf()), drive)


def searched(stage: Stage) -> Shot:
    async def drive(pilot: Pilot[None]) -> None:
        await browser("ctrl+f", *"some")(stage)[1](pilot)
        screen = pilot.app.screen
        assert isinstance(screen, SessionsScreen)
        await until(pilot, lambda: bool(screen.rows.virtual_size.height > 4))
        await pilot.pause(0.2)

    return stage.app(shelf()), drive


def without(*keys: str, said: str) -> Callable[[Stage], Shot]:
    async def drive(pilot: Pilot[None]) -> None:
        await press("f3", *keys)(pilot)
        empty = pilot.app.screen.query_one("#empty")
        await until(pilot, lambda: said in str(empty.render()))

    return lambda stage: (stage.app(World()), drive)


def damaged(stage: Stage) -> Shot:
    def sides(_: Damage, number: int) -> tuple[str, str]:
        return f'{{"type": "user", "id": "{number}", "par', "(skipped: not valid JSON)"

    stage.monkeypatch.setattr(Damage, "sides", sides)
    stage.monkeypatch.setattr("tui.app.open_session.new_session_id", lambda: "48aa0f6f9cbe")
    world = World()
    world.add_row("fix the test", hours=1)
    path = world.rows[0].path.parent.parent / "20261121T070000Z-00f3a2c1d0e9.jsonl"
    stage.monkeypatch.setenv("HOME", str(path.parent.parent.parent))
    told = records(asked("fix the flaky test"), answer("Done."))
    world.old[path] = OldSession(records=told, findings=FOUND, title="fix the test")

    async def drive(pilot: Pilot[None]) -> None:
        await press("down")(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, RepairScreen)
        await until(pilot, lambda: '"id": "1"' in screen.sides()[0])

    return stage.app(world, choice=SessionChoice(path)), drive


def in_use(stage: Stage) -> Shot:
    world = World()
    busy = "The session is open in process 4242 on atlas since 2026-11-21 08:00 UTC."
    world.refusals.append(SessionInUseError(busy))
    world.add_row("fix the test", hours=1)
    return stage.app(world, choice=SessionChoice(world.rows[0].path)), press()


def taken_over(stage: Stage) -> Shot:
    world = World()
    lost = "Process 4242 on atlas took the session over at 09:12."

    async def drive(pilot: Pilot[None]) -> None:
        await press()(pilot)
        world.agent.watched.take_over(lost)
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceDialog))

    return stage.app(world), drive


PICTURES: Pictures = {
    "browser": Picture(SessionsScreen, browser(), fresh=True),
    "searched": Picture(SessionsScreen, searched, state=True),
    "nothing yet": Picture(SessionsScreen, without(said="Every conversation"), state=True),
    "rename": Picture(AskText, browser("ctrl+r", screen=AskText), fresh=True),
    "export": Picture(ChoiceDialog, browser("ctrl+e", screen=ChoiceDialog), state=True, fresh=True),
    "damaged": Picture(RepairScreen, damaged),
    "in use": Picture(ChoiceDialog, in_use, fresh=True),
    "taken over": Picture(ChoiceDialog, taken_over, state=True),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
