"""A session's door: what its watchers are told, and what they may ask of it."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.app.door.owned import Patient, Watcher, connected, owned, watcher
from tests.support.clock import PATIENCE_S
from tests.support.provider import Hang, call, say
from tui.app.door import door
from tui.app.door.door import KnownFacts, WatchStart
from tui.app.door.lines import (
    Ended,
    FactLine,
    GiveAnswer,
    Hello,
    OwnerNotice,
    RecordEnd,
    RecordLines,
    RequestOutcome,
    SendPrompt,
    SessionStatus,
    Settled,
    StopTurn,
    Watch,
    line_of,
)
from tui.app.door.owner import SessionDoor
from tui.app.door.sockets import DoorListener, folder_of
from tui.core import facts
from tui.core.config import Config, Price
from tui.core.errors import StorageError
from tui.core.facts.lines import fact_of
from tui.core.messages import Usage
from tui.permissions.asked import AskedCall
from tui.permissions.types import Answer

WRITE = [call("write_file", path="new.txt", content="hello\n")]
RUN = [call("run_command", command="touch made")]


def texts(one: Watcher) -> str:
    return "".join(fact.text for fact in one.facts if isinstance(fact, facts.TextDelta))


async def test_who_comes_is_told_who_has_the_session_and_how_it_is(tmp_path: Path) -> None:
    async with owned(tmp_path) as session:
        one = await session.watcher()
        hello, status = one.lines
        assert isinstance(hello, Hello)
        assert (hello.session, hello.pid, hello.kind) == (session.id, os.getpid(), "program")
        assert hello.path == str(session.agent.session.path)
        assert isinstance(status, SessionStatus)
        assert (status.state, status.detail) == ("idle", "")
        assert await one.watch() == ""
        assert isinstance(await one.until_fact(facts.SessionStarted), facts.SessionStarted)


async def test_a_watchers_prompt_is_sent_and_all_see_the_answer(tmp_path: Path) -> None:
    async with owned(tmp_path, say("Hello there.")) as session:
        one, other = await session.watcher(), await session.watcher()
        await one.watch()
        await other.watch()
        assert (await one.ask(SendPrompt, text="hi")).outcome == "sent"
        for each in (one, other):
            await each.until_fact(facts.TurnFinished)
            assert texts(each) == "Hello there."
            await each.state("idle")
        prompts = [fact.text for fact in other.facts if isinstance(fact, facts.UserMessage)]
        assert prompts == ["hi"]


async def test_a_late_watcher_gets_what_streams_once(tmp_path: Path) -> None:
    async with owned(tmp_path, Hang("The answer so far")) as session:
        first = await session.watcher()
        await first.watch()
        await first.ask(SendPrompt, text="hi")
        await first.until_fact(facts.TextDelta)
        late = await session.watcher()
        assert late.lines[-1] == (await late_status(late))
        last = await late.watch()
        assert last == session.agent.session.records[-1].id
        await late.until_fact(facts.TextDelta)
        assert texts(late) == "The answer so far"
        assert not [fact for fact in late.facts if isinstance(fact, facts.UserMessage)]
        assert (await late.ask(StopTurn)).outcome == "done"
        await late.until_fact(facts.TurnFinished, lambda fact: fact.outcome == "interrupted")
        assert (await late.ask(StopTurn)).outcome == "refused"


async def test_a_turn_that_is_over_is_never_said_to_start(tmp_path: Path) -> None:
    async with owned(tmp_path, "Done.") as session:
        one = await session.watcher()
        await one.watch()
        await one.ask(SendPrompt, text="hi")
        await one.until_fact(facts.TurnFinished)
        over = len(one.lines)
        await one.until(SessionStatus, lambda status: status.state == "idle")
        later = [line.detail for line in one.lines[over:] if isinstance(line, SessionStatus)]
        assert "starting" not in later


async def late_status(one: Watcher) -> SessionStatus:
    status = one.lines[-1]
    assert isinstance(status, SessionStatus)
    assert (status.state, status.detail) == ("working", "answering")
    return status


async def test_a_question_is_answered_by_a_watcher_and_withdrawn_elsewhere(tmp_path: Path) -> None:
    approver = Patient()
    async with owned(tmp_path, WRITE, say("Done."), approver=approver) as session:
        one, other = await session.watcher(), await session.watcher()
        await one.watch()
        await one.ask(SendPrompt, text="write")
        question = await one.question()
        assert isinstance(question.asked, AskedCall)
        assert question.asked.call.tool == "write_file"
        waiting = await one.state("waiting")
        assert waiting.detail == "write_file(new.txt)"
        assert (await other.question()).number == question.number
        assert approver.asked == 1
        done = await other.ask(GiveAnswer, to=question.number, answer={"answer": "once"})
        assert done.outcome == "done"
        assert (await one.until(Settled)).number == question.number
        await one.until_fact(facts.TurnFinished)
        assert (session.conversation.services.workspace / "new.txt").read_text() == "hello\n"
        assert approver.withdrawn == 1
        again = await one.ask(GiveAnswer, to=question.number, answer={"answer": "no"})
        assert again.outcome == "refused"
        assert "doesn't wait any more" in again.text


async def test_the_persons_own_answer_settles_it_for_watchers(tmp_path: Path) -> None:
    approver = Patient()
    async with owned(tmp_path, WRITE, say("Done."), approver=approver) as session:
        one = await session.watcher()
        await one.watch()
        await one.ask(SendPrompt, text="write")
        question = await one.question()
        approver.answer.set_result(Answer("no", "not now"))
        assert (await one.until(Settled)).number == question.number
        late = await session.watcher()
        await one.until_fact(facts.TurnFinished)
        assert not [line for line in late.lines if isinstance(line, type(question))]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"answer": "always"}, "isn't offered"),
        ({"answer": "once", "changed": {"path": "other"}}, "can't be changed"),
        ({"answer": "maybe"}, "no answer"),
        ({"answers": []}, "no answer"),
        ("once", "no answer"),
        (None, "no answer"),
    ],
)
async def test_an_answer_that_is_not_offered_is_refused(
    tmp_path: Path, answer: Any, says: str
) -> None:
    push = [call("run_command", command="git push --force")]
    async with owned(tmp_path, push, say("Done."), approver=Patient()) as session:
        one = await session.watcher()
        await one.ask(SendPrompt, text="push")
        question = await one.question()
        refused = await one.ask(GiveAnswer, to=question.number, answer=answer)
        assert refused.outcome == "refused"
        assert says in refused.text
        assert (await session.watcher()).lines[1] == await waiting_now(one)


async def waiting_now(one: Watcher) -> SessionStatus:
    return next(line for line in reversed(one.lines) if isinstance(line, SessionStatus))


async def test_a_watcher_is_always_a_person(tmp_path: Path) -> None:
    async with owned(tmp_path, WRITE, say("Done."), approver=Patient()) as session:
        one = await session.watcher()
        await one.watch()
        await one.ask(SendPrompt, text="write")
        question = await one.question()
        given = {"answer": "no", "reason": "why?", "by": "elevated"}
        await one.ask(GiveAnswer, to=question.number, answer=given)
        answered = await one.until_fact(facts.PermissionAnswered)
        assert (answered.answer, answered.by, answered.reason) == ("no", "person", "why?")


async def test_a_request_that_comes_again_has_no_second_effect(tmp_path: Path) -> None:
    async with owned(tmp_path, say("one"), say("two")) as session:
        one = await session.watcher()
        await one.watch()
        prompt = SendPrompt(number="n1", text="hi")
        one.send(prompt)
        assert (await one.until(RequestOutcome)).outcome == "sent"
        other = await session.watcher()
        other.send(prompt)
        assert (await other.until(RequestOutcome)).outcome == "sent"
        await one.until_fact(facts.TurnFinished)
        await one.state("idle")
        assert len([fact for fact in one.facts if isinstance(fact, facts.UserMessage)]) == 1


async def test_two_watchers_with_the_same_numbers_get_no_outcome_of_the_other(
    tmp_path: Path,
) -> None:
    async with owned(tmp_path, RUN, say("ok"), approver=Patient()) as session:
        one, other = await session.watcher(), await session.watcher()
        await one.watch()
        one.send(SendPrompt(number="1", text="go"))
        assert (await one.until(RequestOutcome)).outcome == "sent"
        question = await other.question()
        answer = {"answer": "once"}
        other.send(GiveAnswer(number="1", to=question.number, answer=answer))
        outcome = await other.until(RequestOutcome)
        assert (outcome.outcome, outcome.text) == ("refused", "Another request had this number.")
        assert not [line for line in one.lines if isinstance(line, Settled)]
        other.send(GiveAnswer(number="2", to=question.number, answer=answer))
        assert (await other.until(RequestOutcome)).outcome == "done"


async def test_a_request_that_comes_twice_before_its_outcome_is_answered_to_both(
    tmp_path: Path,
) -> None:
    async with owned(tmp_path, say("one")) as session:
        one, other = await session.watcher(), await session.watcher()
        for each in (one, other):
            each.send(SendPrompt(number="n1", text="hi"))
        for each in (one, other):
            assert (await each.until(RequestOutcome)).outcome == "sent"


async def test_a_flood_of_wishes_to_watch_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with owned(tmp_path, say("one")) as session:
        starts = 0
        start = SessionDoor.start

        def counted(self: SessionDoor) -> WatchStart:
            nonlocal starts
            starts += 1
            return start(self)

        monkeypatch.setattr(SessionDoor, "start", counted)
        one = await session.watcher()
        one.writer.write(line_of(Watch()) * 5000)
        assert (await one.ask(SendPrompt, text="hi")).outcome == "sent"
        await one.until_fact(facts.TurnFinished)
        assert starts < 50


async def test_a_flood_of_requests_is_refused_and_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "REMEMBERED", 0)
    monkeypatch.setattr(door, "AT_WORK", 8)
    async with owned(tmp_path, say("one")) as session:
        one = await session.watcher()
        one.writer.write(b"".join(line_of(StopTurn(number=f"{n}")) for n in range(100)))
        outcomes = [await one.until(RequestOutcome) for _ in range(100)]
        assert sum(one.text == "Too many requests wait already." for one in outcomes) == 92
        assert (await one.ask(SendPrompt, text="hi")).outcome == "sent"


@pytest.mark.parametrize("text", ["/model", "/quit", "exit", "/clear", "# remember this"])
async def test_commands_that_need_the_screen_are_refused(tmp_path: Path, text: str) -> None:
    async with owned(tmp_path) as session:
        one = await session.watcher()
        refused = await one.ask(SendPrompt, text=text)
        assert refused.outcome == "refused"
        assert "needs the session's own screen" in refused.text
        assert refused.hint


async def test_directives_and_the_persons_commands_work(tmp_path: Path) -> None:
    async with owned(tmp_path, say("ok")) as session:
        one = await session.watcher()
        await one.watch()
        assert (await one.ask(SendPrompt, text="/verbose on")).outcome == "sent"
        assert (await one.until_fact(facts.DirectivesChanged, lambda fact: fact.verbose)).verbose
        await one.state("idle")
        assert (await one.ask(SendPrompt, text="!echo from afar")).outcome == "sent"
        ended = await one.until_fact(facts.ToolFinished)
        assert "from afar" in ended.text
        late = await session.watcher()
        await late.watch()
        assert "from afar" in (await late.until_fact(facts.ToolFinished)).text


async def test_a_prompt_joins_the_turn_that_runs(tmp_path: Path) -> None:
    approver = Patient()
    async with owned(tmp_path, WRITE, say("Done."), approver=approver) as session:
        one = await session.watcher()
        await one.watch()
        await one.ask(SendPrompt, text="write")
        question = await one.question()
        assert (await one.ask(SendPrompt, text="and quickly")).outcome == "joined"
        await one.ask(GiveAnswer, to=question.number, answer={"answer": "once"})
        await one.until_fact(facts.UserMessage, lambda fact: fact.text == "and quickly")


async def test_what_the_owner_says_is_told(tmp_path: Path) -> None:
    async with owned(tmp_path) as session:
        one = await session.watcher()
        await one.watch()
        session.conversation.frontend.say("The disk is nearly full.", "warning", hint="Free some.")
        notice = await one.until(OwnerNotice)
        assert (notice.text, notice.level, notice.hint) == (
            "The disk is nearly full.",
            "warning",
            "Free some.",
        )


async def test_the_end_is_said(tmp_path: Path) -> None:
    async with owned(tmp_path, say("All is well.")) as session:
        one = await session.watcher()
        await one.watch()
        await one.ask(SendPrompt, text="hi")
        await one.until_fact(facts.TurnFinished)
        home, id_ = session.home, session.id
        await session.conversation.close()
        ended = await one.until(Ended)
        assert (ended.state, ended.detail) == ("done", "All is well.")
        assert await one.receive() is None
        with pytest.raises(FileNotFoundError):
            connected(home, id_)


async def test_a_session_in_memory_is_told_by_its_lines(tmp_path: Path) -> None:
    async with owned(tmp_path, say("Hello."), in_memory=True) as session:
        one = await session.watcher()
        await one.watch()
        await one.ask(SendPrompt, text="hi")
        await one.until_fact(facts.TurnFinished)
        late = await session.watcher()
        late.send(Watch())
        lines = await late.until(RecordLines)
        assert lines.afresh
        assert any("Hello." in line for line in lines.lines)
        assert (await late.until(RecordEnd)).last == session.agent.session.records[-1].id


async def test_what_a_full_disk_does_not_take_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with owned(tmp_path, say("Hello.")) as session:
        one = await session.watcher()
        await one.watch()
        await one.ask(SendPrompt, text="hi")
        await one.until_fact(facts.TurnFinished)

        async def full() -> None:
            raise StorageError("The disk is full.")

        with monkeypatch.context() as patched:
            patched.setattr(session.agent.session, "sync", full)
            late = await session.watcher()
            late.send(Watch())
            lines = await late.until(RecordLines)
        assert lines.afresh
        assert any("Hello." in line for line in lines.lines)
        assert await late.until(RecordEnd)


async def test_no_record_is_told_twice_however_late_one_comes(tmp_path: Path) -> None:
    """A watcher that comes at any moment of a turn has each message once: in the file up to the
    record that it is told, or after it."""
    starts: list[tuple[WatchStart, int]] = []
    shown: list[Any] = []
    read = [call("read_file", path="a.txt")]
    async with owned(tmp_path, read, say("Done.")) as session:
        conversation = session.conversation
        conversation.watch(shown.append)
        (conversation.services.workspace / "a.txt").write_text("text")
        assert conversation.submit("hi") == "sent"
        while conversation.busy:
            start = conversation.door.start()
            assert inspect.iscoroutine(start.saved)
            start.saved.close()
            starts.append((start, len(shown)))
            await asyncio.sleep(0)
        records = session.agent.session.records
    assert any(start.known for start, _ in starts)  # some came between the disk and the screen
    assert len({start.messages[0] for start, _ in starts}) > 3
    for start, at in starts:
        first, *others = start.messages
        assert isinstance(first, RecordEnd)
        had = next((n + 1 for n, each in enumerate(records) if each.id == first.last), 0)
        told = [fact_of(one.fact) for one in others if isinstance(one, FactLine)]
        known = KnownFacts(start.known)
        told += [fact for fact in shown[at:] if not known.has(fact)]
        for kind, count in ((facts.UserMessage, 1), (facts.AssistantMessage, 2)):
            recorded = [one for one in records[:had] if one.type == kind.recorded_as()]
            assert len(recorded) + sum(isinstance(one, kind) for one in told) == count
        ends = [one for one in records[:had] if one.type == "tool_result"]
        assert len(ends) + sum(isinstance(one, facts.ToolFinished) for one in told) == 1
        words = "".join(one.text for one in told if isinstance(one, facts.TextDelta))
        answered = sum(one.type == "assistant" for one in records[:had])
        assert words == ("Done." if answered < 2 else "")
        begun = sum(isinstance(one, facts.ToolStarted) for one in told)
        assert begun == (not ends)


async def test_one_that_does_not_read_is_cut_off_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "BACKLOG", 100_000)
    async with owned(tmp_path) as session:
        idle = connected(session.home, session.id)
        idle.send(line_of(Watch()))
        one = await session.watcher()
        await one.watch()
        for number in range(200):
            session.conversation.frontend.show(facts.Notice(f"{number} " + 10_000 * "x"))
            await one.until_fact(facts.Notice)
        with idle:
            size = 0
            while data := idle.recv(1 << 20):
                size += len(data)
        assert size < 1_500_000
        assert (await one.ask(SendPrompt, text="/model")).outcome == "refused"


async def test_a_burst_is_told_in_one(tmp_path: Path) -> None:
    async with owned(tmp_path) as session:
        one = await session.watcher()
        await one.watch()
        show = session.conversation.frontend.show
        show(facts.RequestSent(1, 1, "m", 1))
        for number in range(500):
            show(facts.TextDelta(f"{number},"))
        show(facts.Notice("over"))
        await one.until_fact(facts.Notice)
        deltas = [fact for fact in one.facts if isinstance(fact, facts.TextDelta)]
        assert len(deltas) == 1
        assert deltas[0].text.endswith("498,499,")


async def test_with_nobody_there_no_fact_is_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with owned(tmp_path) as session:
        monkeypatch.setattr(door, "plain_of", None)
        for _ in range(100):
            session.conversation.frontend.show(facts.TextDelta("x"))
        await asyncio.sleep(0.06)
        await session.watcher()  # only looks at the state
        session.conversation.frontend.show(facts.Notice("x"))
        await asyncio.sleep(0.06)


async def test_what_is_no_line_is_refused_in_words(tmp_path: Path) -> None:
    async with owned(tmp_path) as session:
        one = await session.watcher()
        for line in (b"nonsense\n", b"[]\n", b'{"type":"of_tomorrow"}\n', b"\xff\xfe\n"):
            one.writer.write(line)
            refused = await one.until(RequestOutcome)
            assert (refused.number, refused.outcome) == ("", "refused")
        one.writer.write(b"\n")
        assert (await one.ask(StopTurn)).outcome == "refused"


async def test_half_a_character_is_no_end_of_the_owner(tmp_path: Path) -> None:
    async with owned(tmp_path) as session:
        one = await session.watcher()
        await one.watch()
        session.conversation.frontend.show(facts.Notice("half \ud800 done"))
        assert (await one.until_fact(facts.Notice)).text == "half ? done"


# Sockets


async def test_the_folder_of_the_sockets_is_private(tmp_path: Path) -> None:
    async with owned(tmp_path) as session:
        place = folder_of(session.home)
        assert place.stat().st_mode & 0o777 == 0o700
        assert [path.name for path in place.iterdir()] == [f"{session.id}.sock"]


async def test_a_long_path_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / ("long" * 40)))
    async with owned(tmp_path) as session:
        assert len(str(folder_of(session.home))) > 107
        assert (await (await watcher(session.home, session.id)).until(Hello)).session == session.id


async def test_the_socket_of_a_dead_owner_is_replaced(tmp_path: Path) -> None:
    async with owned(tmp_path) as session:
        home, id_ = session.home, session.id
    place = folder_of(home)
    with socket.socket(socket.AF_UNIX) as dead:
        handle = os.open(place, os.O_RDONLY)
        dead.bind(f"/proc/self/fd/{handle}/{id_}.sock")
        os.close(handle)
    with pytest.raises(ConnectionRefusedError):
        connected(home, id_)
    listener = DoorListener(home, id_)
    with connected(home, id_):
        listener.accept().close()
    newer = DoorListener(home, id_)
    listener.close()  # it is not its own any more
    with connected(home, id_):
        newer.accept().close()
    newer.close()
    assert not [*place.iterdir()]


async def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    async with owned(tmp_path) as session:
        home = session.home
    place, other = folder_of(home), tmp_path / "other"
    other.mkdir(mode=0o700)
    place.rmdir()
    place.symlink_to(other)
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        DoorListener(home, "abc")
    assert not list(other.iterdir())


async def test_a_session_works_without_its_door(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "data"
    async with owned(tmp_path, say("Hello."), say("Again.")) as session:
        home = session.home
    place = folder_of(home)
    place.rmdir()
    place.write_text("in the way")
    async with owned(tmp_path, say("Hello.")) as session:
        assert [fact.type async for fact in session.conversation.send("hi")][-1] == "turn_finished"
    assert caplog.text.count("No other process can watch this session") == 1


async def test_facts_come_back_whole(tmp_path: Path) -> None:
    async with owned(tmp_path) as session:
        one = await session.watcher()
        await one.watch()
        chunk = facts.ToolOutputChunk("1", "\x1b[31mred\x1b[0m", "picture")
        session.conversation.frontend.show(chunk)
        assert await one.until_fact(facts.ToolOutputChunk) == chunk
        lines = [line for line in one.lines if isinstance(line, FactLine)]
        assert fact_of(lines[-1].fact) == chunk


async def test_many_come_and_go(tmp_path: Path) -> None:
    async with owned(tmp_path) as session:
        for _ in range(30):
            one = await watcher(session.home, session.id)
            one.close()
        async with asyncio.timeout(PATIENCE_S):
            assert (await (await session.watcher()).ask(StopTurn)).outcome == "refused"


@pytest.mark.parametrize(
    "paid",
    [
        facts.TitleChanged("Hello", "test-model"),
        facts.CacheWarmed(1, 0.1, "", "test-model", Usage(1000, 1)),
        facts.GoalChanged("checked", "be done", model="test-model"),
    ],
)
async def test_what_is_paid_for_beside_the_conversation_is_in_the_cost_at_once(
    tmp_path: Path, paid: facts.TitleChanged | facts.CacheWarmed | facts.GoalChanged
) -> None:
    config = Config(prices={"test-model": Price(input=10.0, output=50.0)})
    async with owned(tmp_path, config=config) as session:
        one = await session.watcher()
        data = {"model": "test-model", "usage": Usage(1000, 1).to_json()}
        session.agent.session.append(type(paid).recorded_as(), **data)
        show = session.agent._ctx.events.aside  # pyright: ignore[reportPrivateUsage] - where it is shown
        assert show is not None
        show(paid)
        status = await one.until(SessionStatus)
        assert status.cost_usd == pytest.approx(0.01005)  # pyright: ignore[reportUnknownMemberType]
