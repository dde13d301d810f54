"""Pictures of terminals: live, with the person at the keyboard, replayed, asking for a secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.pilot import Pilot

from tests.support.fake_terminal import FakeTerminal, screen_of
from tests.support.world import World
from tests.ui.screens.driving import until
from tests.ui.screens.pictures import Picture, Pictures, Shot, Stage, Take, each_of, opened
from tui.agent.background_jobs import OwnedJob
from tui.core.questions import SecretQuestion
from tui.core.terminal_screen import ScreenRun
from tui.ui.app import HoldfastApp
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.replay import ReplayScreen
from tui.ui.screens.secret import SecretModal
from tui.ui.screens.terminal import TerminalWatchScreen
from tui.ui.widgets.conversation.items import TERMINAL, AssistantItem, ToolItem

if TYPE_CHECKING:
    from tui.tools.jobs import Job

DEBUGGED = screen_of(
    "> /home/ann/proj/calc.py(12)total()",
    [ScreenRun("-> ", "brightyellow", style="b"), ScreenRun("return", "magenta"),
     ScreenRun(" sum(prices) * "), ScreenRun("1.19", "cyan"), ScreenRun("  # VAT", "brightblack")],
    [ScreenRun("(Pdb) ", "green", style="b"), ScreenRun("p prices")],
    "[3, 4.5, '7']",
    [ScreenRun(" TypeError ", "brightwhite", "red", "b"), ScreenRun(" unsupported operand", "red")],
    [ScreenRun("(Pdb) ", "green", style="b")],
)  # fmt: skip


class StillTerminalJob:
    """A job with a terminal as it stands, without a process."""

    def __init__(self, *, ended: bool = False) -> None:
        self.id, self.command = "job-2", "python -m pdb calc.py"
        self.seconds, self.since = 83.0, datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
        self.ended, self.exit_code, self.stopped = ended, 0, False
        self.path = Path("terminal.cast")
        self.terminal = FakeTerminal(DEBUGGED)

    def state(self) -> str:
        return "exit code 0" if self.ended else "running"


def live(*keys: str, asks: bool = False, ended: bool = False) -> Callable[[Stage], Shot]:
    """A terminal as it is now, with keys pressed in it."""

    def make(stage: Stage) -> Shot:
        job = StillTerminalJob(ended=ended)
        screen = TerminalWatchScreen(OwnedJob(cast("Job", job)), job.terminal)

        async def drive(pilot: Pilot[None]) -> None:
            await opened(pilot)
            await pilot.app.push_screen(screen)
            await until(pilot, lambda: screen.is_mounted and screen.view.picture.rows > 0)
            await pilot.press(*keys)
            if asks:
                cast("HoldfastApp", pilot.app).run_worker(
                    screen.lets_cover("An approval waits: rm -r build")
                )
            await pilot.pause()

        return stage.app(World()), drive

    return make


def replayed(stage: Stage) -> Shot:
    """The end of a recording, paused."""
    stage.monkeypatch.chdir(stage.folder)
    events = [[0.5, "o", "\x1b[32m>>>\x1b[m "], [2.0, "i", "print(6*7)\r"],
        [2.1, "o", "print(6*7)\r\n42\r\n\x1b[32m>>>\x1b[m "]]  # fmt: skip
    lines = [{"version": 2, "width": 80, "height": 24}, *events]
    path = Path("terminal.cast")
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    screen = ReplayScreen(path, "job-2 python3")

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        await pilot.app.push_screen(screen)
        await until(pilot, lambda: screen.whole)
        await pilot.press("end")
        await pilot.pause()

    return stage.app(World()), drive


def secret(stage: Stage) -> Shot:
    """A password that a program reads, half typed."""

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        app = cast("HoldfastApp", pilot.app)
        question = SecretQuestion(
            "job-2", "sudo apt-get install ripgrep", "[sudo] password for ann:"
        )
        asking = asyncio.create_task(app.frontend.approver.ask_secret(question))
        await until(pilot, lambda: isinstance(app.screen, SecretModal))
        assert not asking.done()
        await pilot.press(*"secret")

    return stage.app(World()), drive


def cards(stage: Stage) -> Shot:
    """Steps in a terminal, as the conversation shows them."""

    def step(number: int, label: str, action: str, summary: str, **more: str) -> ToolItem:
        input_ = {"action": action} | ({"terminal": "job-2"} if action != "start" else {})
        item = ToolItem(f"t{number}", TERMINAL, label, "ok", summary=summary, input=input_)
        item.tail = more.get("tail", "")
        return item

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        chat = cast("HoldfastApp", pilot.app).chat
        failed = step(6, "job-3 ← ./install⏎", "send", "job-3 exit code 1",
            tail="Fetching …\nNo space left on device")  # fmt: skip
        failed.state, failed.input = "error", {"action": "send", "terminal": "job-3"}
        for item in (
            AssistantItem("I step through it."),
            step(1, "python -m pdb calc.py", "start", "job-2 running python", tail="(Pdb) "),
            step(2, "job-2 ← b 12⏎", "send", "job-2 running python"),
            step(3, "job-2 ← c⏎", "send", "job-2 running python"),
            step(4, "job-2 ← p prices⏎", "send", "job-2 running python",
                tail="> calc.py(12)total()\n(Pdb) p prices\n[3, 4.5, '7']\n(Pdb)"),
            failed,
        ):  # fmt: skip
            chat.add(item)
        await pilot.pause()

    return stage.app(World()), drive


PICTURES: Pictures = {
    "a terminal": Picture(TerminalWatchScreen, live()),
    "a terminal that has ended": Picture(TerminalWatchScreen, live(ended=True), state=True),
    "the person types": Picture(TerminalWatchScreen, live("t"), state=True),
    "an approval waits": Picture(TerminalWatchScreen, live("t", asks=True), state=True),
    "a replay": Picture(ReplayScreen, replayed),
    "a secret": Picture(SecretModal, secret),
    "cards of a terminal": Picture(ChatScreen, cards, state=True),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
