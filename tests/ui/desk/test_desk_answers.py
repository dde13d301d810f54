"""Questions answered from the list: the dialogs of home, one answer each, and none that outlives
its question."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from tests.support.clock import ManualClock
from tests.support.desk import FakeChannel, FakeHost
from tests.ui.desk.samples import PLAN, QUESTION, ago, call, desk, row, text_of
from tests.ui.screens.driving import until
from tui.app.door.lines import (
    Ended,
    GiveAnswer,
    LineError,
    RequestOutcome,
    Settled,
    StopTurn,
    line_of,
    to_owner,
)
from tui.core.errors import SessionError
from tui.core.questions import PlanReview, UserAnswer, UserAnswers
from tui.permissions.asked import Answered, Asked, answer_of
from tui.permissions.types import Answer
from tui.ui.desk.app import DeskApp
from tui.ui.desk.requests import PATIENCE_S
from tui.ui.screens.plan import PlanModal
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.questionnaire import QuestionnaireModal
from tui.ui.widgets.questions import Confirmation

SETTLE_S = 1.0
"""Seconds after which a key answers a dialog that came by itself."""


def waits(asked: Asked, id_: str = "a") -> FakeHost:
    return FakeHost("", [row(id_, "waiting", "the session", asked=asked)])


async def opened(app: DeskApp, pilot: Pilot[None], clock: ManualClock, dialog: type[Any]) -> None:
    """Open the dialog of the question under the cursor, and wait until keys answer it."""
    await pilot.press("a")
    await until(pilot, lambda: isinstance(app.screen, dialog))
    await pilot.pause()
    clock.advance(SETTLE_S)


async def given(pilot: Pilot[None], host: FakeHost, count: int) -> tuple[FakeChannel, GiveAnswer]:
    """The answer that came to the owner on a channel, the `count`th that was opened."""
    await until(
        pilot,
        lambda: len(host.channels) >= count and bool(host.channels[count - 1].sent_of(GiveAnswer)),
    )
    channel = host.channels[count - 1]
    return channel, channel.sent_of(GiveAnswer)[0]


def said(app: DeskApp) -> str:
    return app.desk.notice.text[2:]


async def closed(app: DeskApp, pilot: Pilot[None], text: str) -> None:
    await until(pilot, lambda: app.screen is app.desk and text in said(app))


CASES: list[tuple[Asked, type[Any], tuple[str, ...], Answered]] = [
    (call(), ApprovalModal, ("1",), Answer("once")),
    (call(), ApprovalModal, ("3",), Answer("always")),
    (call(), ApprovalModal, ("escape",), Answer("no")),
    (QUESTION, QuestionnaireModal, ("2",), UserAnswers((UserAnswer(("Postgres",)),))),
    (PLAN, PlanModal, ("1",), PlanReview("ask", PLAN.plan)),
]


@pytest.mark.parametrize(("asked", "dialog", "keys", "wanted"), CASES)
async def test_an_answer_goes_to_the_owner_and_its_taking_is_said(
    asked: Asked, dialog: type[Any], keys: tuple[str, ...], wanted: Answered
) -> None:
    host, clock = waits(asked), ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, dialog)
        await pilot.press(*keys)
        channel, sent = await given(pilot, host, 2)
        over_the_line = to_owner(line_of(sent))
        assert isinstance(over_the_line, GiveAnswer)
        assert sent.to == "q-a"
        assert answer_of(asked, over_the_line.answer) == wanted
        channel.tell(Settled(number="q-a"), RequestOutcome(number=sent.number, outcome="done"))
        await closed(app, pilot, "Answered: “the session”.")
        assert all(one.closed for one in host.channels)


async def test_the_first_of_two_desks_answers_and_the_dialog_of_the_other_closes() -> None:
    one, other, clock = waits(call()), waits(call()), ManualClock()
    async with desk([one], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, ApprovalModal)
        (await one.channel()).tell(Settled(number="another"))
        await pilot.pause()
        assert isinstance(app.screen, ApprovalModal)
        (await one.channel()).tell(Settled(number="q-a"))
        await closed(app, pilot, "“the session”: Answered elsewhere, or no longer asked.")
        assert not any(channel.sent for channel in one.channels)
    async with desk([other], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, ApprovalModal)
        await pilot.press("1")
        channel, sent = await given(pilot, other, 2)
        channel.tell(
            RequestOutcome(
                number=sent.number, outcome="refused", text="It was answered before.", hint="Look."
            )
        )
        await closed(app, pilot, "“the session”: It was answered before. Look.")


async def test_an_owner_that_says_nothing_is_waited_for_half_a_minute() -> None:
    host, clock = waits(call()), ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, ApprovalModal)
        await pilot.press("1")
        channel, _ = await given(pilot, host, 2)
        clock.advance(PATIENCE_S - 1)
        await pilot.pause()
        assert "confirmed" not in said(app)
        clock.advance(1)
        await closed(app, pilot, "“the session” hasn't confirmed the answer.")
        assert "If its question is still listed, answer it again." in said(app)
        assert channel.closed


async def test_a_question_that_leaves_the_list_closes_its_dialog() -> None:
    host, clock = waits(call()), ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, ApprovalModal)
        host.put(row("a", "working", "the session"))
        await closed(app, pilot, "Answered elsewhere, or no longer asked.")
        await opened_nothing(app, pilot)


async def opened_nothing(app: DeskApp, pilot: Pilot[None]) -> None:
    await pilot.press("a")
    await pilot.pause()
    assert app.screen is app.desk
    assert said(app) == "This session asks nothing now."


async def test_a_session_that_is_gone_from_the_list_closes_its_dialog() -> None:
    host, clock = waits(call()), ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, ApprovalModal)
        host.rows = []
        host.put()
        await until(pilot, lambda: app.screen is app.desk)


async def test_an_owner_that_ends_closes_the_dialog() -> None:
    host, clock = waits(QUESTION), ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, QuestionnaireModal)
        (await host.channel()).tell(LineError("?"), Ended(state="stopped"))
        await closed(app, pilot, "Its process ended, so the question is gone.")


async def test_a_line_that_is_cut_closes_the_dialog() -> None:
    host, clock = waits(QUESTION), ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, QuestionnaireModal)
        (await host.channel()).cut()
        await closed(app, pilot, "The line to the session is cut.")


async def test_a_machine_that_cannot_be_reached_closes_the_dialog_and_says_why() -> None:
    host, clock = waits(call()), ManualClock()
    host.refuses = SessionError("The session has ended.", hint="Look again.")
    async with desk([host], clock=clock) as (app, pilot):
        await pilot.press("a")
        await closed(app, pilot, "The session has ended. Look again.")


async def test_an_answer_is_sent_again_with_its_number_once_the_line_is_back() -> None:
    host, clock = waits(call()), ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, ApprovalModal)
        await pilot.press("1")
        channel, sent = await given(pilot, host, 2)
        channel.cut()
        await until(pilot, lambda: bool(clock.slept))
        clock.advance(5)
        again, resent = await given(pilot, host, 3)
        assert resent == sent
        again.tell(RequestOutcome(number=sent.number, outcome="done"))
        await closed(app, pilot, "Answered: “the session”.")


async def test_an_answer_whose_fate_is_unknown_is_called_so() -> None:
    host, clock = waits(call()), ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, ApprovalModal)
        await pilot.press("1")
        for count in (2, 3, 4):
            channel, _ = await given(pilot, host, count)
            channel.cut()
            await pilot.pause()
            await asyncio.sleep(0)
            clock.advance(5)
        await closed(app, pilot, "“the session” hasn't confirmed the answer.")


async def test_ctrl_c_leaves_a_question_unanswered() -> None:
    host, clock = waits(call()), ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await opened(app, pilot, clock, ApprovalModal)
        await pilot.press("ctrl+c")
        await closed(app, pilot, "Not answered; it still waits.")
        assert not any(channel.sent for channel in host.channels)


async def test_a_key_pressed_before_the_dialog_was_there_answers_nothing() -> None:
    host, clock = waits(call()), ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await pilot.press("a", "1")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await pilot.pause()
        assert not any(channel.sent for channel in host.channels)


async def test_a_turn_is_stopped_once_the_person_has_confirmed_it() -> None:
    host = FakeHost("", [row("w", "working", "busy", detail="Run make", since=ago(1))])
    async with desk([host], clock=ManualClock()) as (app, pilot):
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Confirmation))
        assert "Run make" in text_of(app)
        await pilot.press("n")
        await until(pilot, lambda: app.screen is app.desk)
        assert not host.channels
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Confirmation))
        await pilot.press("y")
        channel = await host.channel()
        stop = await channel.got(StopTurn)
        channel.tell(RequestOutcome(number=stop.number, outcome="done"))
        await closed(app, pilot, "Stopped: “busy”.")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Confirmation))
        await pilot.press("y")
        channel = await host.channel(2)
        stop = await channel.got(StopTurn)
        refused = RequestOutcome(
            number=stop.number, outcome="refused", text="It hangs.", hint="holdfast stop w"
        )
        channel.tell(refused)
        await closed(app, pilot, "“busy”: It hangs. holdfast stop w")


def test_every_answer_can_be_sent_as_data() -> None:
    for asked, _, _, answer in CASES:
        data = msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(answer)))
        assert answer_of(asked, data) == answer
