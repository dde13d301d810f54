"""A day's sessions for the desk, and the desk driven by keys."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from tests.support.clock import FakeClock
from tests.support.desk import FakeHost
from tests.ui.screens.driving import WIDE, until
from tui.app.door.lines import AskedLine, State
from tui.core.clock import Clock, timestamp
from tui.core.paths import Folders, folders
from tui.core.questions import AnswerChoice, UserQuestion
from tui.desk.host import DeskHost, DeskRow
from tui.permissions.asked import Asked, AskedCall, AskedPlan, AskedQuestions
from tui.permissions.types import Call, Decision
from tui.ui.desk.app import DeskApp
from tui.ui.desk.places import TakeOver
from tui.ui.toolkit.base_screen import BaseScreen

NOW = FakeClock().now()
COMMAND = "pytest -q tests/store --maxfail=1"


def ago(minutes: float) -> str:
    """The time of so many minutes before a fake clock begins."""
    return timestamp(NOW - timedelta(minutes=minutes))


def call(command: str = COMMAND, risk: str = "standard") -> AskedCall:
    """A command that asks."""
    asked = Call(
        *("t1", "run_command", "run", command, command, (), "command", command, "pytest commands"),
        always=("run_command(pytest *)",),
    )
    reason = "`pytest` isn't on the read-only list"
    return AskedCall(asked, Decision("ask", reason, "rules", risk))  # pyright: ignore[reportArgumentType]


CHOICES = (AnswerChoice("SQLite", "one file"), AnswerChoice("Postgres", "many writers"))
QUESTION = AskedQuestions(
    (UserQuestion("Storage", "Which database should the sessions live in?", CHOICES),), ""
)
PLAN = AskedPlan("Split the parser", "1. Move the lexer.\n2. Test it.")


def row(id_: str, state: State, title: str, **given: Any) -> DeskRow:
    """A session; `asked` is what it asks."""
    asked: Asked | None = given.pop("asked", None)
    usual: dict[str, Any] = {"kind": "background", "started": ago(60), "since": ago(5)}
    if asked is not None:
        usual["questions"] = (AskedLine(number=f"q-{id_}", asked=asked, since=ago(5)),)
    return DeskRow(id=id_, state=state, title=title, **{**usual, **given})


def day() -> list[DeskRow]:
    """Sessions in every state."""
    store, fast = "/home/me/src/store", "/home/me/src/holdfast"
    opus = "claude-opus-5"
    return [
        row(
            *("a1b2c3d4e5f6", "waiting", "fix the flaky test in test_store.py"),
            asked=call(),
            cwd=store,
            branch="fix/flaky-store",
            cost_usd=0.42,
            since=ago(0.7),
            started=ago(42),
            model=opus,
        ),
        row(
            *("b1b2c3d4e5f6", "waiting", "move the sessions into a database"),
            asked=QUESTION,
            cwd=fast,
            branch="main",
            cost_usd=3.1,
            since=ago(9),
        ),
        row(
            *("c1b2c3d4e5f6", "working", "port the parser to Rust"),
            detail="Run cargo build --release",
            cwd="/home/me/src/parser",
            branch="rust",
            cost_usd=1.27,
            since=ago(0.2),
            started=ago(30),
        ),
        row(
            *("d1b2c3d4e5f6", "working", "add a retry banner that never takes the focus"),
            detail="answering",
            cwd=fast,
            branch="banner",
            cost_usd=0.08,
            since=ago(3),
            started=ago(8),
        ),
        row(
            *("e1b2c3d4e5f6", "parked", "write the release notes"),
            detail="rate limit, until 14:15",
            cwd=fast,
            branch="main",
            cost_usd=0.9,
            since=ago(20),
        ),
        row(
            *("f1b2c3d4e5f6", "idle", "read the README"),
            kind="screen",
            cwd="/home/me",
            cost_usd=0.02,
            since=ago(55),
        ),
        row(
            *("91b2c3d4e5f6", "done", "make the suite faster"),
            detail="All 212 tests pass. I replaced each sleep with a condition.",
            cwd=store,
            branch="speed",
            cost_usd=2.41,
            since=ago(80),
        ),
        row(
            *("81b2c3d4e5f6", "failed", "日本語の題名 and more"),
            detail="The server refused the key (401).",
            cwd="/home/me/src/site",
            since=ago(90),
            branch="main",
        ),
        row(
            *("71b2c3d4e5f6", "interrupted", "a long run"),
            cwd="/home/me/src/site",
            since=ago(1500),
            seen=True,
        ),
        *(
            row(f"5{number:011}", "saved", f"older session {number}", since=ago(4000 + number))
            for number in range(14)
        ),
    ]


class LiveSession(BaseScreen, Screen[None]):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """Stands in for the live view of a session."""

    DEFAULT_CSS = "LiveSession { background: $background; }"

    def __init__(
        self, host: DeskHost, shown: DeskRow, _take: TakeOver, _clock: Clock, _home: Folders
    ) -> None:
        super().__init__()
        self.host, self.shown = host, shown

    def compose(self) -> ComposeResult:
        yield Static(f"live: {self.shown.title}", markup=False)


@asynccontextmanager
async def desk(
    hosts: Sequence[FakeHost] | None = None,
    size: tuple[int, int] = WIDE,
    clock: FakeClock | None = None,
) -> AsyncGenerator[tuple[DeskApp, Pilot[None]]]:
    """The desk of some machines, by default this one with a day of sessions, once it lists them."""
    hosts = [FakeHost("", day())] if hosts is None else hosts
    folder = Path("/home/me/src")
    app = DeskApp(
        hosts, folder=folder, home=folders(), opener=LiveSession, clock=clock or FakeClock()
    )
    async with app.run_test(size=size) as pilot:
        for host in hosts:
            host.put()
        await pilot.pause()
        await until(pilot, lambda: not app.desk.is_reading)
        yield app, pilot


def text_of(app: DeskApp) -> str:
    """What the terminal shows."""
    strips = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
    return "\n".join(strip.text.rstrip() for strip in strips)


def at_cursor(app: DeskApp) -> str:
    """The title of the session under the cursor."""
    return app.desk.row.title if app.desk.row is not None else ""


def on_screen(app: DeskApp, title: str) -> int:
    """The row of the terminal in which a session's title begins."""
    rows = text_of(app).split("\n")
    return next(at for at, line in enumerate(rows) if title in line)
