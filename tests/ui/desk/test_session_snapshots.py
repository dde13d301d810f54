"""Pictures of a session that is watched: while it works, asks, has ended, and out of reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.screen import Screen

from tests.support.clock import ManualClock
from tests.support.desk import FakeChannel, FakeHost, line, prompt
from tests.ui.desk.watching import NOBODY, OWNER, WORKING, answer, begin, fact
from tests.ui.screens.driving import until
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of
from tui.app.door.lines import AskedLine, FactLine, FromOwner, Hello, SessionStatus
from tui.core import facts
from tui.core.paths import Folders
from tui.permissions.asked import AskedCall
from tui.permissions.types import Call, Decision
from tui.ui.desk.attached import AttachedApp
from tui.ui.desk.session_screen import SessionScreen
from tui.ui.widgets.approval import ApprovalModal

TEST = {"type": "tool_use", "id": "t1", "name": "run_command", "input": {"command": "pytest -q"}}
RECORD = (
    prompt(1, "The basket forgets its last item when two tabs are open. Find out why."),
    answer(2, "Both tabs write the *whole* basket, so the later one wins. I run its tests.", TEST),
)
FAILED = line(
    "tool_result",
    3,
    call_id="t1",
    name="run_command",
    content=[{"type": "text", "text": "1 failed, 41 passed"}],
    is_error=True,
    seconds=12.5,
    summary="exit 1",
)
TESTING: Sequence[FromOwner] = (
    fact(facts.ToolStarted("t1", "run_command", {"command": "pytest -q"}, "pytest -q", 75.0)),
    fact(facts.ToolOutputChunk("t1", "tests/test_basket.py ....F\n")),
    fact(facts.QueueChanged(("and write down what you learned",))),
)
ANSWERING: Sequence[FromOwner] = (
    fact(facts.RequestSent(2, 900, "claude-opus-4-8", 1)),
    fact(facts.TextDelta("The failing test saves twice:\n\n1. the first tab writes `[a, b]`,\n")),
    fact(facts.TextDelta("2. the second one, which never saw `b`, writes `[a, c]`.\n")),
)
CALL = Call(
    "c1", "run_command", "run", "git push", command="git push", preview_kind="command",
    preview="git push", scope="`git push`",
)  # fmt: skip
ASKING: Sequence[FromOwner] = (
    SessionStatus(state="waiting", title="Fix the basket", model="claude-opus-4-8"),
    AskedLine(number="q1", asked=AskedCall(CALL, Decision("ask", "No rule allows it.", "mode"))),
)
DONE = SessionStatus(state="done", title="Fix the basket", model="claude-opus-4-8")


def session(
    *comes: FromOwner,
    lines: Sequence[str] = RECORD,
    hello: Hello = OWNER,
    status: SessionStatus = WORKING,
    host: str = "",
    then: Callable[[FakeHost], None] | None = None,
    on_top: type[Screen[Any]] = SessionScreen,
) -> Callable[[Stage], Shot]:
    """A session with a record, and what its owner tells after that."""

    def make(stage: Stage) -> Shot:
        machine = FakeHost(host)
        folder = stage.folder
        home = Folders(data=folder, config=folder, cache=folder, log=folder)
        clock = ManualClock()
        app = AttachedApp(machine, "s1", home=home, theme=stage.theme, clock=clock)

        async def drive(pilot: Pilot[None]) -> None:
            channel: FakeChannel = await machine.channel()
            begin(channel, *lines, hello=hello, status=status)
            channel.tell(*comes)
            await until(pilot, lambda: bool(app.watching.watched.branch))
            await until(pilot, lambda: isinstance(app.screen, on_top))
            told = sum(isinstance(one, FactLine) for one in comes)
            await until(pilot, lambda: app.watching.fact_log.version >= told)
            if then is not None:
                then(machine)
            await pilot.pause()

        return app, drive

    return make


def cut(host: FakeHost) -> None:
    host.channels[0].cut()


PICTURES: Pictures = {
    "answering": Picture(SessionScreen, session(*ANSWERING, lines=(*RECORD, FAILED))),
    "testing": Picture(SessionScreen, session(*TESTING), state=True),
    "asking": Picture(ApprovalModal, session(*ASKING, on_top=ApprovalModal), state=True),
    "ended": Picture(
        SessionScreen, session(lines=(*RECORD, FAILED), hello=NOBODY, status=DONE), state=True
    ),
    "cut": Picture(SessionScreen, session(host="ceres", then=cut), state=True),
}


@each_of(PICTURES)
def test_a_watched_session(picture: Picture, take: Take, own_folders: Path) -> None:
    take(picture)
