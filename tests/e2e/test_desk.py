"""This machine's desk with real sessions in the background: asked, answered, prompted, frozen and
killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.desk.real.recorder import SessionRecorder
from tests.support.desk_world import desk, receive_until
from tests.support.program import Program
from tui.app import background
from tui.app.background import BackgroundSession
from tui.app.door.lines import (
    AskedLine,
    Ended,
    GiveAnswer,
    Hello,
    RecordEnd,
    RequestOutcome,
    SendPrompt,
    Settled,
    StopTurn,
    Watch,
)
from tui.core.clock import SystemClock
from tui.core.paths import Folders, folders
from tui.desk.watched_session import UNKNOWN

pytest.importorskip("tui.app.door.door")

SCRIPT = """
[[turn]]
text = "I write."
tools = [{name = "write_file", input = {path = "new.txt", content = "hello"}}]
[[turn]]
text = "All done."
"""


@pytest.fixture
def kept(home: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(home)})


@pytest.fixture
def one(
    holdfast: Program,
    script: Callable[[str], str],
    kept: Folders,
    env: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Generator[BackgroundSession]:
    """A session in the background that will ask if it may write; what runs still is killed at the
    end."""
    monkeypatch.setenv("HOLDFAST_HOME", env["HOLDFAST_HOME"])
    done = holdfast("--bg", "write it", "--practice-script", script(SCRIPT))
    yield background.find(kept, done.stdout.split()[4], SystemClock().now())
    for still in background.sessions(kept, SystemClock().now()):
        background.send(still, signal.SIGKILL)


async def test_a_session_is_watched_answered_and_prompted(
    one: BackgroundSession, kept: Folders, holdfast: Program
) -> None:
    async with desk(kept) as at:
        row = await at.row_that(one.id, lambda row: row.questions)
        assert (row.state, row.kind, row.detail) == ("waiting", "background", "write_file(new.txt)")
        channel = await at.host.open(one.id)
        channel.send(Watch())
        _, asked = await receive_until(channel, AskedLine)
        await receive_until(channel, RecordEnd)
        channel.send(GiveAnswer(number="1", to=asked.number, answer={"answer": "once"}))
        before, _ = await receive_until(channel, Ended)
        assert any(isinstance(said, Settled) for said in before)
        assert [said.outcome for said in before if isinstance(said, RequestOutcome)] == ["done"]
        assert (holdfast.work / "new.txt").read_text() == "hello"
        row = await at.row_that(one.id, lambda row: row.state == "done")
        assert row.detail == "All done."
        channel.send(SendPrompt(number="2", text="once more"))
        _, outcome = await receive_until(channel, RequestOutcome)
        assert outcome.outcome == "sent"
        while True:
            _, met = await receive_until(channel, Hello)
            if met.kind == "background":
                break
        assert met.pid != one.pid


async def test_a_frozen_session_is_named_and_a_killed_one_is_interrupted(
    one: BackgroundSession, kept: Folders
) -> None:
    async with desk(kept) as at:
        await at.row_that(one.id, lambda row: row.questions)
        channel = await at.host.open(one.id)
        await receive_until(channel, AskedLine)
        os.kill(one.pid, signal.SIGSTOP)
        row = await at.row_that(one.id, lambda row: row.problem)
        assert "suspended" in row.problem
        channel.send(StopTurn(number="1"))
        _, outcome = await receive_until(channel, RequestOutcome)
        assert outcome.hint == f"`holdfast stop {one.id}` ends its process."
        os.kill(one.pid, signal.SIGKILL)
        _, ended = await receive_until(channel, Ended)
        assert ended.state == "interrupted"
        row = await at.row_that(one.id, lambda row: row.kind == "none")
        assert (row.state, row.questions) == ("interrupted", ())


async def test_a_prompt_that_its_owner_takes_along_is_given_back(
    one: BackgroundSession, kept: Folders
) -> None:
    async with desk(kept) as at:
        await at.row_that(one.id, lambda row: row.questions)
        recorder = SessionRecorder(at.host, one.id)
        await recorder.until(lambda: recorder.times)
        os.kill(one.pid, signal.SIGSTOP)
        asking = asyncio.create_task(recorder.watched.prompt("never taken"))
        await asyncio.sleep(0)  # it is on its way
        os.kill(one.pid, signal.SIGKILL)
        outcome = await asking
        assert (outcome.outcome, outcome.text) == ("refused", UNKNOWN)
        assert "check the conversation" in outcome.hint
        row = await at.row_that(one.id, lambda row: row.kind == "none")
        assert row.state == "interrupted"  # no process was started for it
        await recorder.close()


async def test_a_turn_is_stopped_from_elsewhere(one: BackgroundSession, kept: Folders) -> None:
    async with desk(kept) as at:
        await at.row_that(one.id, lambda row: row.questions)
        channel = await at.host.open(one.id)
        await receive_until(channel, AskedLine)
        channel.send(StopTurn(number="1"))
        _, outcome = await receive_until(channel, RequestOutcome)
        assert outcome.outcome == "done"
        row = await at.row_that(one.id, lambda row: row.state == "stopped")
        assert not row.problem
