"""A session that a test plays the owner of, watched on the screen."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from tests.support.clock import FakeClock
from tests.support.desk import FakeChannel, FakeHost, line
from tests.ui.screens.driving import NARROW, until
from tui.app.door.lines import FactLine, Hello, RecordEnd, RecordLines, SessionStatus, Watch
from tui.core.clock import Clock
from tui.core.facts import Fact
from tui.core.facts.lines import plain_of
from tui.core.paths import folders
from tui.ui.desk.attached import AttachedApp

OWNER = Hello(session="s1", path="/x/s1.jsonl", cwd="/srv/shop", pid=4711, kind="background")
ON_SCREEN = Hello(session="s1", path="/x/s1.jsonl", cwd="/srv/shop", pid=99, kind="screen")
NOBODY = Hello(session="s1", path="/x/s1.jsonl", cwd="/srv/shop")
WORKING = SessionStatus(
    state="working", title="Fix the basket", model="claude-opus-4-8", branch="basket"
)
IDLE = SessionStatus(state="idle", title="Fix the basket", model="claude-opus-4-8")


def answer(number: int, text: str, *calls: dict[str, Any]) -> str:
    content = [{"type": "text", "text": text}, *calls]
    return line("assistant", number, content=content, model="claude-opus-4-8")


def fact(happened: Fact) -> FactLine:
    return FactLine(fact=plain_of(happened))


@asynccontextmanager
async def attached(
    *lines: str,
    hello: Hello = OWNER,
    status: SessionStatus = WORKING,
    host: FakeHost | None = None,
    size: tuple[int, int] = NARROW,
    clock: Clock | None = None,
) -> AsyncGenerator[tuple[AttachedApp, Pilot[None], FakeChannel]]:
    """The app, which shows the record of a session."""
    host = host or FakeHost()
    app = AttachedApp(host, "s1", home=folders(), clock=clock or FakeClock())
    async with app.run_test(size=size) as pilot:
        channel = await host.channel()
        await channel.got(Watch)
        begin(channel, *lines, hello=hello, status=status)
        await until(pilot, lambda: bool(app.watching.watched.branch) == bool(lines))
        await until(pilot, lambda: app.watching.watched.hello is not None)
        yield app, pilot, channel


def begin(
    channel: FakeChannel,
    *lines: str,
    hello: Hello = OWNER,
    status: SessionStatus = WORKING,
) -> None:
    """What an owner says first, with the whole record."""
    last = json.loads(lines[-1])["id"] if lines else ""
    channel.tell(hello, status, RecordLines(lines=lines, afresh=True), RecordEnd(last=last))


def rows(app: AttachedApp) -> list[str]:
    """What the terminal shows, row by row."""
    strips = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
    return [strip.text.rstrip() for strip in strips]


def seen(app: AttachedApp, text: str) -> bool:
    return any(text in row for row in rows(app))
