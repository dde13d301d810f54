"""A watched session: what its view is told, over lines that are cut and owners that end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tests.support.clock import FakeClock, ManualClock
from tests.support.desk import FakeChannel, FakeHost, prompt
from tui.app.door.lines import (
    AskedLine,
    Ended,
    FactLine,
    GiveAnswer,
    Hello,
    LineError,
    OwnerNotice,
    RecordEnd,
    RecordLines,
    RequestOutcome,
    SendPrompt,
    SessionStatus,
    Settled,
    StopTurn,
    UnsentLine,
    Watch,
)
from tui.core.clock import Clock
from tui.core.errors import HoldfastError
from tui.core.facts import Fact, TextDelta, UserMessage
from tui.core.facts.lines import plain_of
from tui.desk.watched_session import CUT, ELSEWHERE, ENDED, UNKNOWN, UNSAID, WatchedSession
from tui.permissions.asked import AskedCall
from tui.permissions.types import Answer, Call, Decision
from tui.session.records import Record

OWNER = Hello(session="s1", path="/x/s1.jsonl", cwd="/x", pid=7, kind="background")
NEXT_OWNER = Hello(session="s1", path="/x/s1.jsonl", cwd="/x", pid=8, kind="background")
NOBODY = Hello(session="s1", path="/x/s1.jsonl", cwd="/x")
CALL = AskedCall(
    Call("c1", "run_command", "run", "make", command="make"), Decision("ask", "no rule", "mode")
)
QUESTION = AskedLine(number="q1", asked=CALL)


class NotingView:
    """Notes what it is told, in words."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def greet(self, hello: Hello) -> None:
        self.log.append(f"hello {hello.kind} {hello.pid}")

    async def restore(self, records: Sequence[Record], damaged: int) -> None:
        texts = [str(one.data.get("text")) for one in records]
        self.log.append(f"restore {' '.join(texts)}" + (f" damaged {damaged}" * bool(damaged)))

    def show(self, fact: Fact) -> None:
        self.log.append(f"fact {getattr(fact, 'text', fact.type)}")

    def asked(self, line: AskedLine) -> None:
        self.log.append(f"ask {line.number}")

    def settle(self, number: str, why: str) -> None:
        self.log.append(f"settle {number}: {why}")

    def state_changed(self, status: SessionStatus) -> None:
        self.log.append(f"state {status.state}")

    def say(self, notice: OwnerNotice) -> None:
        self.log.append(f"say {notice.text}")

    def restore_unsent(self, work: UnsentLine) -> None:
        self.log.append(f"unsent {' '.join(work.texts)}, {work.answer}")

    def line_cut(self, reason: str, again_at: float) -> None:
        self.log.append(f"cut {reason} until {again_at:g}")

    def line_back(self) -> None:
        self.log.append("back")

    def ended(self, line: Ended) -> None:
        self.log.append(f"ended {line.state}")


@asynccontextmanager
async def watched(
    host: FakeHost, clock: Clock | None = None
) -> AsyncGenerator[tuple[WatchedSession, NotingView]]:
    view = NotingView()
    session = WatchedSession(host, "s1", view, clock or ManualClock())
    running = asyncio.create_task(session.run())
    try:
        yield session, view
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not done():  # noqa: ASYNC110 - on anything
            await asyncio.sleep(0)


async def begin(channel: FakeChannel, *lines: str, hello: Hello = OWNER) -> None:
    """What an owner says first, up to the end of its record."""
    await channel.got(Watch)
    channel.tell(
        hello,
        SessionStatus(state="working"),
        RecordLines(lines=lines, afresh=True),
        RecordEnd(last=f"r{len(lines)}" if lines else ""),
    )


def told(fact: Fact) -> FactLine:
    return FactLine(fact=plain_of(fact))


async def test_the_record_comes_before_what_happens() -> None:
    host = FakeHost()
    async with watched(host) as (session, view):
        channel = await host.channel()
        assert (await channel.got(Watch)).after == ""
        channel.tell(OWNER, SessionStatus(state="working"), told(TextDelta("too early")))
        channel.tell(RecordLines(lines=(prompt(1, "one"),), afresh=True))
        channel.tell(RecordLines(lines=(prompt(2, "two"),)), RecordEnd(last="r2"))
        channel.tell(told(TextDelta("now")))
        await until(lambda: "fact now" in view.log)
    assert view.log == ["hello background 7", "state working", "restore one two", "fact now"]
    assert [one.id for one in session.branch] == ["r1", "r2"]


async def test_damaged_lines_are_counted_and_end_nothing() -> None:
    host = FakeHost()
    async with watched(host) as (session, view):
        channel = await host.channel()
        await begin(channel, prompt(1, "one"), '{"type": "us', "[1]", prompt(2, "two"))
        channel.tell(LineError("odd"), FactLine(fact={"type": "tomorrow's"}), told(TextDelta("on")))
        await until(lambda: "fact on" in view.log)
    assert "restore one two damaged 2" in view.log
    assert session.unread == 2
    assert len([one for one in view.log if one.startswith("say ")]) == 1


async def test_a_line_that_is_cut_is_opened_again_from_the_last_record() -> None:
    host, clock = FakeHost(), ManualClock()
    async with watched(host, clock) as (session, view):
        first = await host.channel()
        await begin(first, prompt(1, "one"))
        first.cut()
        await until(lambda: bool(session.cut))
        assert view.log[-1] == "cut The line is cut. until 0.5"
        clock.advance(0.5)
        second = await host.channel(2)
        assert (await second.got(Watch)).after == "r1"
        second.tell(OWNER, SessionStatus(state="idle"))
        second.tell(RecordLines(lines=(prompt(2, "two"),)), RecordEnd(last="r2"))
        await until(lambda: "back" in view.log)
    assert "restore one two" in view.log
    assert not session.cut


async def test_the_waits_grow_and_end_once_the_host_is_back() -> None:
    host, clock = FakeHost("ceres"), ManualClock()
    host.refuses, host.problem = HoldfastError("ceres is gone."), "ceres is gone."
    async with watched(host, clock) as (_, view):
        for tries, wait in enumerate((0.5, 1, 2, 4, 5, 5), 1):
            await until(lambda tries=tries: len(view.log) == tries)
            assert view.log[-1] == f"cut ceres is gone. until {clock.elapsed + wait:g}"
            if tries < 6:
                await pass_by(clock, wait)
        host.refuses = None
        host.say_problem("")
        await pass_by(clock, 0.25)  # of the five seconds
        async with asyncio.timeout(10):
            await host.channel()


async def pass_by(clock: ManualClock, seconds: float) -> None:
    """Let time go by in small steps, and who waits for it go on."""
    for _ in range(round(seconds / 0.25)):
        clock.advance(0.25)
        for _ in range(5):
            await asyncio.sleep(0)


async def test_a_person_can_have_it_tried_again_at_once() -> None:
    host, clock = FakeHost(), ManualClock()
    host.refuses = HoldfastError("gone")
    async with watched(host, clock) as (session, view):
        await until(lambda: bool(view.log))
        host.refuses = None
        session.retry()
        clock.advance(0.25)
        async with asyncio.timeout(10):
            await host.channel()


async def test_a_request_is_sent_again_to_the_same_owner_until_it_is_answered() -> None:
    host, clock = FakeHost(), FakeClock()
    async with watched(host, clock) as (session, _):
        first = await host.channel()
        await begin(first)
        await until(lambda: session.hello is not None)
        asking = asyncio.create_task(session.prompt("do it"))
        sent = await first.got(SendPrompt)
        first.cut()
        second = await host.channel(2)
        await begin(second)
        again = await second.got(SendPrompt)
        assert again == sent
        second.tell(RequestOutcome(number=sent.number, outcome="joined"))
        assert (await asking).outcome == "joined"
        second.cut()
        third = await host.channel(3)
        await begin(third)
        third.tell(told(TextDelta("x")))
        await asyncio.sleep(0.01)
        assert not third.sent_of(SendPrompt)


async def test_what_is_typed_while_the_line_is_cut_waits_for_it() -> None:
    host, clock = FakeHost(), ManualClock()
    async with watched(host, clock) as (session, _):
        first = await host.channel()
        await begin(first)
        first.cut()
        await until(lambda: bool(session.cut))
        asking = asyncio.create_task(session.prompt("later"))
        await asyncio.sleep(0)
        assert session.unsent == ["later"]
        clock.advance(0.5)
        second = await host.channel(2)
        await begin(second)
        sent = await second.got(SendPrompt)
        assert session.unsent == []
        second.tell(RequestOutcome(number=sent.number, outcome="sent"))
        assert (await asking).outcome == "sent"


@pytest.mark.parametrize("how", ["on the same line", "on another line"])
@pytest.mark.parametrize(
    ("recorded", "outcome"), [(("do it",), "sent"), (("something else",), "refused")]
)
async def test_a_prompt_whose_owner_ended_is_in_the_record_or_nobody_knows(
    how: str, recorded: tuple[str, ...], outcome: str
) -> None:
    host, clock = FakeHost(), FakeClock()
    async with watched(host, clock) as (session, _):
        channel = await host.channel()
        await begin(channel, prompt(1, "before"))
        await until(lambda: bool(session.branch))
        asking = asyncio.create_task(session.prompt(" do it "))
        await channel.got(SendPrompt)
        if how == "on another line":
            channel.cut()
            channel = await host.channel(2)
            await channel.got(Watch)
        channel.tell(NEXT_OWNER, SessionStatus(state="idle"))
        lines = tuple(prompt(2 + at, text) for at, text in enumerate(recorded))
        channel.tell(RecordLines(lines=lines), RecordEnd(last="r2"))
        done = await asking
        assert done.outcome == outcome
        assert done.text == ("" if outcome == "sent" else UNKNOWN)
        assert len(channel.sent_of(SendPrompt)) == (how == "on the same line")  # never twice


async def test_the_same_prompt_of_earlier_proves_nothing() -> None:
    host, clock = FakeHost(), FakeClock()
    async with watched(host, clock) as (session, view):
        channel = await host.channel()
        await begin(channel, prompt(1, "go on"))
        channel.tell(told(UserMessage("go on")))  # a second one, since
        await until(lambda: "fact go on" in view.log)
        asking = asyncio.create_task(session.prompt("go on"))
        await channel.got(SendPrompt)
        channel.tell(NOBODY, SessionStatus(state="interrupted"))
        channel.tell(RecordLines(lines=(prompt(2, "go on"),)), RecordEnd(last="r2"))
        assert (await asking).outcome == "refused"


async def test_a_prompt_to_nobody_waits_for_what_the_host_makes_of_it() -> None:
    host = FakeHost()
    async with watched(host) as (session, _):
        channel = await host.channel()
        await begin(channel, hello=NOBODY)
        await until(lambda: session.hello is not None)
        asking = asyncio.create_task(session.prompt("again"))
        sent = await channel.got(SendPrompt)
        channel.tell(NEXT_OWNER, SessionStatus(state="working"), RecordEnd())
        channel.tell(RequestOutcome(number=sent.number, outcome="sent"))
        assert (await asking).outcome == "sent"
        assert len(channel.sent_of(SendPrompt)) == 1


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("after", [NOBODY, NEXT_OWNER])
async def test_a_prompt_to_nobody_starts_no_second_process_after_a_cut(
    recorded: bool, after: Hello
) -> None:
    host, clock = FakeHost(), ManualClock()
    async with watched(host, clock) as (session, _):
        channel = await host.channel()
        await begin(channel, hello=NOBODY)
        await until(lambda: session.hello is not None)
        asking = asyncio.create_task(session.prompt("again"))
        await channel.got(SendPrompt)
        channel.cut()
        await until(lambda: bool(session.cut))
        clock.advance(0.5)
        again = await host.channel(2)
        await begin(again, *([prompt(1, "again")] if recorded else []), hello=after)
        outcome = await asking
        assert not again.sent_of(SendPrompt)
    if recorded:
        assert outcome.outcome == "sent"
    else:
        assert (outcome.outcome, outcome.text) == ("refused", UNSAID)
        assert "check the conversation" in outcome.hint


async def test_a_question_is_put_once_and_settled_where_it_was_answered() -> None:
    host = FakeHost()
    async with watched(host) as (session, view):
        channel = await host.channel()
        channel.tell(OWNER, SessionStatus(state="waiting"), QUESTION, RecordEnd(), QUESTION)
        await until(lambda: "restore " in view.log)
        asking = asyncio.create_task(session.answer("q1", Answer("once")))
        given = await channel.got(GiveAnswer)
        assert (given.to, given.answer["answer"], given.answer["by"]) == ("q1", "once", "person")
        channel.tell(Settled(number="q1"), RequestOutcome(number=given.number, outcome="done"))
        assert (await asking).outcome == "done"
    assert view.log.count("ask q1") == 1
    assert f"settle q1: {ELSEWHERE}" in view.log
    assert not session.questions


async def test_a_question_outlives_a_short_cut_but_no_long_one() -> None:
    host, clock = FakeHost(), ManualClock()
    async with watched(host, clock) as (session, view):
        channel = await host.channel()
        channel.tell(OWNER, SessionStatus(state="waiting"), QUESTION, RecordEnd())
        await until(lambda: "restore " in view.log)
        channel.cut()
        await until(lambda: bool(session.cut))
        clock.advance(0.5)
        second = await host.channel(2)
        second.tell(OWNER, SessionStatus(state="waiting"), QUESTION, RecordEnd())
        await until(lambda: "back" in view.log)
        assert view.log.count("ask q1") == 1
        assert not any(one.startswith("settle") for one in view.log)
        host.refuses = HoldfastError("gone")
        second.cut()
        await until(lambda: bool(session.cut))
        clock.advance(0.5)
        await until(lambda: f"settle q1: {CUT}" in view.log)
        host.refuses = None
        clock.advance(1)
        third = await host.channel(3)
        third.tell(OWNER, SessionStatus(state="waiting"), QUESTION, RecordEnd())
        await until(lambda: view.log.count("ask q1") == 2)


@pytest.mark.parametrize("ends", [(Ended(state="done"),), (NOBODY, RecordEnd())])
async def test_a_question_ends_with_its_owner(ends: tuple[Any, ...]) -> None:
    host = FakeHost()
    async with watched(host) as (_, view):
        channel = await host.channel()
        channel.tell(OWNER, SessionStatus(state="waiting"), QUESTION, RecordEnd(), *ends)
        await until(lambda: f"settle q1: {ENDED}" in view.log)


async def test_stopping_what_has_ended_is_done() -> None:
    host = FakeHost()
    async with watched(host) as (session, _):
        channel = await host.channel()
        await begin(channel)
        await until(lambda: session.hello is not None)
        asking = asyncio.create_task(session.stop())
        await channel.got(StopTurn)
        channel.tell(NOBODY, SessionStatus(state="stopped"), RecordEnd())
        assert (await asking).outcome == "done"


async def test_a_file_that_grows_without_its_owner_is_followed() -> None:
    host = FakeHost()
    async with watched(host) as (_, view):
        channel = await host.channel()
        await begin(channel, prompt(1, "one"), hello=NOBODY)
        channel.tell(RecordLines(lines=(prompt(2, "two"),)))
        await until(lambda: "restore one two" in view.log)
        channel.tell(RecordLines(lines=(prompt(1, "anew"),), afresh=True))
        await until(lambda: "restore anew" in view.log)


async def test_a_rewound_branch_is_the_one_that_is_shown() -> None:
    host = FakeHost()
    async with watched(host, FakeClock()) as (_, view):
        channel = await host.channel()
        await begin(channel, prompt(1, "one"), prompt(2, "two"))
        await until(lambda: "restore one two" in view.log)
        channel.cut()
        second = await host.channel(2)
        rewound = json.dumps(json.loads(prompt(3, "instead")) | {"parent": "r1"})
        second.tell(OWNER, SessionStatus(state="idle"), RecordLines(lines=(rewound,)))
        second.tell(RecordEnd(last="r3"))
        await until(lambda: "restore one instead" in view.log)


async def test_a_hundred_cuts_lose_no_record_and_double_no_prompt() -> None:
    host, clock = FakeHost(), FakeClock()
    async with watched(host, clock) as (session, view):
        sent: list[str] = []
        for count in range(1, 101):
            channel = await host.channel(count)
            after = (await channel.got(Watch)).after
            known = int(after[1:]) if after else 0
            channel.tell(OWNER, SessionStatus(state="working"))
            lines = tuple(prompt(number, f"p{number}") for number in range(known + 1, count + 1))
            channel.tell(RecordLines(lines=lines), RecordEnd(last=f"r{count}"))
            await until(lambda count=count: len(session.branch) == count)
            asking = asyncio.create_task(session.prompt(f"mine {count}"))
            request = await channel.got(SendPrompt)
            sent.append(request.text)
            channel.tell(RequestOutcome(number=request.number, outcome="sent"))
            assert (await asking).outcome == "sent"
            channel.cut()
            await until(lambda: bool(session.cut))
        assert sent == [f"mine {count}" for count in range(1, 101)]
        assert [one.data["text"] for one in session.branch] == [f"p{n}" for n in range(1, 101)]
    assert len([one for one in view.log if one.startswith("cut")]) == 100
