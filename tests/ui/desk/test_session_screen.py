"""The live view of a session: what a person sees of it, and what their keys do."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from tests.support.clock import FakeClock, ManualClock
from tests.support.desk import FakeHost, prompt
from tests.ui.desk.watching import (
    IDLE,
    NOBODY,
    ON_SCREEN,
    OWNER,
    WORKING,
    answer,
    attached,
    begin,
    fact,
    seen,
)
from tests.ui.screens.driving import NARROW, WIDE, say, until
from tui.app.door.lines import (
    AskedLine,
    Ended,
    GiveAnswer,
    Hello,
    LineError,
    OwnerNotice,
    RecordEnd,
    RequestOutcome,
    SendPrompt,
    SessionStatus,
    Settled,
    StopTurn,
    UnsentLine,
    Watch,
    from_owner,
)
from tui.core import facts
from tui.core.errors import HoldfastError
from tui.core.messages import Usage
from tui.core.questions import AnswerChoice, UserQuestion
from tui.desk.host import DeskRow
from tui.permissions.asked import AskedCall, AskedPlan, AskedQuestions
from tui.permissions.types import Call, Decision
from tui.ui.desk.attached import AttachedApp, parting_words
from tui.ui.screens.debug_log import DebugLogScreen
from tui.ui.screens.help import HelpScreen, HelpTable
from tui.ui.screens.plan import PlanModal
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.conversation.items import AssistantItem, ToolItem
from tui.ui.widgets.questionnaire import QuestionnaireModal

pytestmark = pytest.mark.usefixtures("own_folders")

MAKE = AskedCall(
    Call("c1", "run_command", "run", "make deploy", command="make deploy", preview="make deploy"),
    Decision("ask", "no rule allows it", "mode"),
)
ASKED = AskedLine(number="q1", asked=MAKE)
CHOICES = AskedQuestions(
    (UserQuestion("Store", "Which store?", (AnswerChoice("Redis"), AnswerChoice("SQLite"))),), ""
)


async def shown(app: AttachedApp, pilot: Pilot[None], text: str) -> None:
    await until(pilot, lambda: seen(app, text))


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_the_record_and_then_the_stream_are_seen_as_at_home(size: tuple[int, int]) -> None:
    lines = (prompt(1, "why is it slow"), answer(2, "Because of **the index**."))
    async with attached(*lines, size=size) as (app, pilot, channel):
        await shown(app, pilot, "why is it slow")
        for text in ("Because of the index.", "shop", "Fix the basket", "claude-opus-4-8"):
            await shown(app, pilot, text)
        assert seen(app, "working")
        channel.tell(fact(facts.RequestSent(2, 100, "claude-opus-4-8", 1)))
        await shown(app, pilot, "waiting for claude-opus-4-8")
        channel.tell(fact(facts.TextDelta("I look ")), fact(facts.TextDelta("at the code.")))
        await shown(app, pilot, "I look at the code.")
        assert seen(app, "answering")
        channel.tell(fact(facts.ToolStarted("t1", "run_command", {"command": "make"}, "make", 75)))
        await until(pilot, lambda: isinstance(app.watching.conversation.newest, ToolItem))
        await shown(app, pilot, "make")
        channel.tell(fact(facts.TurnFinished("done")), IDLE)
        await shown(app, pilot, "── idle ─")


async def test_what_an_owner_left_unsent_is_in_the_prompt_again() -> None:
    async with attached(prompt(1, "go on"), hello=NOBODY) as (app, pilot, channel):
        texts = ("then the tests", "and the docs")
        channel.tell(UnsentLine(texts=texts, commands=("!make",), answer="I have just"))
        await shown(app, pilot, "Its process ended before this could run:")
        await shown(app, pilot, "!make")
        await shown(app, pilot, "I have just")
        await shown(app, pilot, "closed here before the answer was complete")
        await shown(app, pilot, "Its process ended before this was sent.")
        assert app.watching.prompt.value == "then the tests\nand the docs"
        channel.tell(UnsentLine(texts=("then the tests", "and the docs")))
        await pilot.pause()
        assert app.watching.prompt.value == "then the tests\nand the docs"


async def test_a_running_command_is_shown_with_its_time() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "run_command", "input": {"command": "pytest"}}
    async with attached(prompt(1, "test"), answer(2, "I test.", call)) as (app, pilot, channel):
        started = facts.ToolStarted("t1", "run_command", {"command": "pytest"}, "pytest", 75.0)
        channel.tell(fact(started))
        channel.tell(fact(facts.ToolOutputChunk("t1", "3 passed\n")))
        await shown(app, pilot, "1 min 15 s  Run pytest")
        assert seen(app, "pytest")
        channel.tell(fact(facts.TurnFinished("interrupted")), IDLE)
        await shown(app, pilot, "idle")


async def test_the_work_is_over_once_the_owner_rests_whatever_came_before() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        channel.tell(fact(facts.TextDelta("Done.")))
        await shown(app, pilot, "answering")
        channel.tell(fact(facts.TurnFinished("done")), WORKING, IDLE)
        await shown(app, pilot, "── idle ─")
        assert not app.watching.busy


async def test_who_comes_later_sees_for_how_long_the_session_has_worked() -> None:
    clock = FakeClock()
    since = (clock.now() - timedelta(seconds=75)).isoformat()
    status = SessionStatus(state="working", detail="answering", since=since)
    async with attached(prompt(1, "do it"), status=status, clock=clock) as (app, pilot, channel):
        await shown(app, pilot, "1 min 15 s  answering")
        channel.tell(fact(facts.TurnFinished("done")), IDLE)
        await shown(app, pilot, "── idle ─")
        channel.tell(fact(facts.RequestSent(1, 100, "claude-opus-4-8", 1)))
        await shown(app, pilot, "0 s  waiting for")


async def test_a_key_that_only_the_owner_has_is_not_offered() -> None:
    async with attached(prompt(1, "test")) as (app, pilot, channel):
        channel.tell(
            fact(facts.ToolStarted("t1", "run_command", {"command": "pytest"}, "pytest", 75.0))
        )
        await shown(app, pilot, "1 min 15 s  Run pytest")
        assert not seen(app, "Ctrl+B")


async def test_a_question_mark_that_follows_fast_is_text() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, _):
        for character in "why?":
            key = "question_mark" if character == "?" else character
            app.post_message(events.Key(key, character))
        await until(pilot, lambda: app.watching.prompt.text == "why?")
        assert not isinstance(app.screen, HelpScreen)


@pytest.mark.parametrize(
    ("hello", "status", "words"),
    [
        (OWNER, SessionStatus(state="working", detail="run_command pytest"), "run_command pytest"),
        (OWNER, SessionStatus(state="waiting", detail="make"), "waiting for you"),
        (OWNER, SessionStatus(state="parked", detail="until 14:00"), "parked: until 14:00"),
        (ON_SCREEN, IDLE, "── idle ─"),
        (NOBODY, SessionStatus(state="done"), "done · nobody has it open; a prompt continues it"),
        (NOBODY, SessionStatus(state="failed", detail="No key."), "failed: No key · nobody has it"),
        (
            NOBODY,
            SessionStatus(state="interrupted", detail="killed, or the machine restarted"),
            "its process was killed; nothing recorded is lost · a prompt continues it",
        ),
    ],
)
async def test_the_line_over_the_prompt_says_how_it_is(
    hello: Hello, status: SessionStatus, words: str
) -> None:
    lines = (prompt(1, "do it"), answer(2, "Yes."))
    async with attached(*lines, hello=hello, status=status) as (app, pilot, _):
        await shown(app, pilot, words)


async def test_an_owner_that_hangs_is_named() -> None:
    host = FakeHost()
    async with attached(prompt(1, "do it"), host=host) as (app, pilot, _):
        host.put(DeskRow(id="s1", problem="its process is stopped (SIGSTOP)"))
        app.watching._see_problem()  # pyright: ignore[reportPrivateUsage] - every two seconds
        await shown(app, pilot, "its process is stopped (SIGSTOP)")


async def test_a_killed_owner_ends_what_ran() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        channel.tell(fact(facts.TextDelta("I was about to")))
        await shown(app, pilot, "I was about to")
        channel.tell(Ended(state="interrupted"), NOBODY, SessionStatus(state="interrupted"))
        channel.tell(RecordEnd(last="r1"))
        await shown(app, pilot, "its process was killed; nothing recorded is lost")
        assert not app.watching.busy


async def test_enter_sends_the_prompt_to_the_owner() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        await say(pilot, "and the tests")
        sent = await channel.got(SendPrompt)
        assert sent.text == "and the tests"
        await shown(app, pilot, "sending and the tests")
        channel.tell(RequestOutcome(number=sent.number, outcome="queued"))
        channel.tell(fact(facts.QueueChanged(("and the tests",))))
        await shown(app, pilot, "queued and the tests")
        assert not seen(app, "sending")
        assert not seen(app, "↑ edit")  # it is the owner's by now
        channel.tell(fact(facts.QueueChanged(())), fact(facts.UserMessage("and the tests")))
        await until(pilot, lambda: not seen(app, "queued"))
        await shown(app, pilot, "and the tests")


async def test_a_pasted_directive_is_not_sent_to_the_owner_as_typed() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        app.post_message(events.Paste("/elevated on go"))
        await until(pilot, lambda: "go" in app.watching.prompt.text)
        await pilot.press("enter")
        await shown(app, pilot, "The prompt begins with a command that was pasted")
        assert app.watching.prompt.text == "/elevated on go"
        assert not channel.sent_of(SendPrompt)


async def test_a_refused_prompt_is_typed_again_with_the_reason() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        await say(pilot, "/model")
        sent = await channel.got(SendPrompt)
        text = "/model needs the session's own screen."
        channel.tell(RequestOutcome(number=sent.number, outcome="refused", text=text))
        await shown(app, pilot, text)
        assert app.watching.prompt.text == "/model"


async def test_a_prompt_whose_fate_nobody_knows_is_typed_again() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        await say(pilot, "more")
        await channel.got(SendPrompt)
        channel.tell(NOBODY, SessionStatus(state="interrupted"), RecordEnd(last="r1"))
        await shown(app, pilot, "Its process ended before it said that it had the prompt.")
        assert app.watching.prompt.text == "more"


async def test_a_prompt_starts_a_finished_session_again() -> None:
    done = SessionStatus(state="done")
    async with attached(prompt(1, "do it"), hello=NOBODY, status=done) as (app, pilot, channel):
        await say(pilot, "!ls")
        await shown(app, pilot, "Nobody has the session open who could do that.")
        assert app.watching.prompt.text == "!ls"
        await pilot.press("ctrl+c")
        await say(pilot, "again")
        sent = await channel.got(SendPrompt)
        assert sent.text == "again"
        channel.tell(RequestOutcome(number=sent.number, outcome="sent"))
        begin(channel, prompt(1, "do it"), prompt(2, "again"))
        await shown(app, pilot, "working")


async def test_esc_leaves_and_what_is_typed_is_there_at_the_next_look() -> None:
    host = FakeHost()
    async with attached(prompt(1, "do it"), host=host) as (app, pilot, _):
        await pilot.press(*"half")
        await pilot.press("escape")
        await shown(app, pilot, "Press Esc again to leave")
        await pilot.press("escape")
        await until(pilot, lambda: not app.is_running)
    assert host.closed
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        await until(pilot, lambda: app.watching.prompt.text == "half")
        await pilot.press("enter")
        assert (await channel.got(SendPrompt)).text == "half"
        await pilot.press("escape")
        await until(pilot, lambda: not app.is_running)
    async with attached(prompt(1, "do it")) as (app, pilot, _):
        assert not app.watching.prompt.text


async def test_ctrl_c_stops_the_turn_then_clears_then_leaves() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        await pilot.press("ctrl+c")
        stop = await channel.got(StopTurn)
        channel.tell(RequestOutcome(number=stop.number, outcome="done"))
        channel.tell(fact(facts.TurnFinished("interrupted")), IDLE)
        await shown(app, pilot, "idle")
        await pilot.press("x", "ctrl+c")
        assert not app.watching.prompt.text
        await pilot.press("ctrl+c")
        await shown(app, pilot, "Press Ctrl+C again to leave")
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.is_running)
    assert len(channel.sent_of(StopTurn)) == 1


async def test_a_question_opens_the_dialog_of_home_and_its_answer_goes_to_the_owner() -> None:
    clock = FakeClock()
    async with attached(prompt(1, "do it"), clock=clock) as (app, pilot, channel):
        channel.tell(ASKED)
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await shown(app, pilot, "make deploy")
        clock.elapsed += 1
        await pilot.press("1")
        given = await channel.got(GiveAnswer)
        assert (given.to, given.answer["answer"]) == ("q1", "once")
        channel.tell(RequestOutcome(number=given.number, outcome="done"), Settled(number="q1"))
        await until(pilot, lambda: app.screen is app.watching)
        assert not seen(app, "answered elsewhere")


async def test_no_dialog_outlives_what_it_asks_about() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        channel.tell(ASKED)
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        channel.tell(Settled(number="q1"))
        await until(pilot, lambda: app.screen is app.watching)
        await shown(app, pilot, "The question was answered elsewhere.")
        channel.tell(AskedLine(number="q2", asked=CHOICES))
        await until(pilot, lambda: isinstance(app.screen, QuestionnaireModal))
        channel.tell(Ended(state="interrupted"), NOBODY, SessionStatus(state="interrupted"))
        await until(pilot, lambda: app.screen is app.watching)
        await shown(app, pilot, "Its process ended: nobody waits for that answer any more.")
        assert not channel.sent_of(GiveAnswer)


async def test_several_questions_come_one_after_the_other() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        channel.tell(AskedLine(number="q1", asked=CHOICES))
        channel.tell(AskedLine(number="q2", asked=AskedPlan("Move it", "# Move it\n\n1. Move.")))
        channel.tell(ASKED)
        await until(pilot, lambda: isinstance(app.screen, QuestionnaireModal))
        channel.tell(Settled(number="q1"))
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal | PlanModal))
        assert isinstance(app.screen, PlanModal)  # the third took the number of the first
        channel.tell(Settled(number="q2"))
        await until(pilot, lambda: app.screen is app.watching)


async def test_a_refused_answer_is_said_and_the_question_put_again() -> None:
    clock = FakeClock()
    async with attached(prompt(1, "do it"), clock=clock) as (app, pilot, channel):
        channel.tell(ASKED)
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        clock.elapsed += 1
        await pilot.press("1")
        given = await channel.got(GiveAnswer)
        refused = RequestOutcome(number=given.number, outcome="refused", text="Not from here.")
        channel.tell(refused)
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        assert app.watching.notice.text.startswith("✗ Not from here.")


async def test_f7_leaves_a_question_unanswered() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        channel.tell(ASKED)
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await shown(app, pilot, "f7 leave")
        await pilot.press("f7")
        await until(pilot, lambda: not app.is_running)
    assert not channel.sent_of(GiveAnswer)


async def test_a_cut_line_is_said_and_opened_again() -> None:
    host, clock = FakeHost("ceres"), ManualClock()
    async with attached(prompt(1, "do it"), host=host, clock=clock) as (app, pilot, channel):
        await shown(app, pilot, "ceres:/srv/shop")
        host.refuses = HoldfastError("Connection refused.")
        channel.cut()
        await shown(app, pilot, "the line to ceres is cut; trying again in 1 s")
        clock.advance(0.5)
        await shown(app, pilot, "Connection refused; trying again in")
        await say(pilot, "later")
        await shown(app, pilot, "sending later")
        host.refuses = None
        clock.advance(1.0)
        second = await host.channel(2)
        assert (await second.got(Watch)).after == "r1"
        second.tell(OWNER, WORKING, RecordEnd(last="r1"))
        await shown(app, pilot, "The line is back.")
        assert (await second.got(SendPrompt)).text == "later"
        assert seen(app, "do it")


async def test_a_scroll_position_outlives_a_cut() -> None:
    lines = [prompt(1, "first")]
    lines += [answer(number, f"paragraph {number}\n\n" * 3) for number in range(2, 40)]
    host, clock = FakeHost(), ManualClock()
    async with attached(*lines, host=host, clock=clock) as (app, pilot, channel):
        await shown(app, pilot, "paragraph 39")
        await pilot.press("ctrl+home")
        await shown(app, pilot, "first")
        channel.cut()
        await shown(app, pilot, "is cut")
        clock.advance(0.5)
        second = await host.channel(2)
        second.tell(OWNER, WORKING, RecordEnd(last="r39"))
        await shown(app, pilot, "The line is back.")
        assert seen(app, "first")


async def test_keys_that_need_the_session_itself_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with attached(prompt(1, "do it"), size=WIDE) as (app, pilot, _):
        for key in ("f2", "f3", "f5", "f6", "f9", "shift+tab", "alt+p", "left"):
            app.watching.notice.clear()
            await pilot.press(key)
            await shown(app, pilot, "Only the session's own screen has this.")
            assert seen(app, "Ctrl+T takes the session over."), key


async def test_ctrl_t_takes_a_session_of_this_machine_over() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, _):
        await pilot.press("ctrl+t")
        await until(pilot, lambda: not app.is_running)
    assert app.taken == OWNER


async def test_ctrl_t_names_the_command_for_a_session_elsewhere() -> None:
    async with attached(prompt(1, "do it"), host=FakeHost("ceres")) as (app, pilot, _):
        await pilot.press("ctrl+t")
        await shown(app, pilot, "The session is on ceres: it is taken over there.")
        assert "ssh -t ceres holdfast -r s1" in app.watching.notice.text
        assert app.taken is None


async def test_f1_f4_and_f12_work(own_folders: Path) -> None:
    async with attached(prompt(1, "do it"), size=WIDE) as (app, pilot, channel):
        channel.tell(fact(facts.RequestSent(1, 100, "claude-opus-4-8", 1)))
        await shown(app, pilot, "waiting for")
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        told = str(app.screen.query_one(HelpTable).render())
        assert "continue the session in this terminal" in told
        await pilot.press("f1")
        await until(pilot, lambda: app.screen is app.watching)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("f1", "f12")
        await until(pilot, lambda: isinstance(app.screen, DebugLogScreen))
        screen = app.screen
        assert isinstance(screen, DebugLogScreen)
        assert [entry.kind for entry in screen.shown] == ["request_sent"]
        await pilot.press("f12", "f4")
        await until(pilot, lambda: bool(app.watching.side.display))


async def test_damage_is_counted_and_notices_are_shown() -> None:
    async with attached("{broken", prompt(2, "do it")) as (app, pilot, channel):
        await shown(app, pilot, "1 line of its file can't be read.")
        channel.tell(OwnerNotice(text="Moved to the background.", level="success"))
        await shown(app, pilot, "Moved to the background.")


async def test_a_full_disk_of_the_owner_is_shown() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        channel.tell(SessionStatus(state="working", unsaved="no space left on device"))
        await shown(app, pilot, "Not saved: no space left on device")
        channel.tell(SessionStatus(state="working"))
        await shown(app, pilot, "Everything is saved again.")


async def test_text_from_outside_steers_nothing() -> None:
    hostile = "\x1b]0;x\x07[bold]" + "漢" * 300
    status = SessionStatus(state="working", title=hostile, detail=hostile, model=hostile)
    async with attached(prompt(1, hostile), status=status) as (app, pilot, _):
        await shown(app, pilot, "[bold]")
        assert not any("\x1b" in row for row in app.title)


@pytest.mark.parametrize(
    "odd",
    [
        facts.Parked("9999-12-31T23:59:59-12:00", ""),
        facts.Parked("2026-11-21T09:00:00", ""),
        facts.Parked("no time", ""),
        facts.ContextMeasured(2**62, 1, 0, 1, {}, cache_share=1e308),
        facts.ContextChanged(({"call_id": "t1"},)),
        facts.FilesChanged(({"path": 7},), ""),
        facts.SourcesCited(({},)),
        facts.ContextFiles(({},)),
    ],
)
async def test_a_fact_of_a_hostile_machine_ends_nothing(odd: facts.Fact) -> None:
    host = FakeHost("box")
    async with attached(prompt(1, "do it"), host=host, size=WIDE) as (app, pilot, channel):
        channel.tell(fact(odd), fact(facts.TextDelta("It goes on.")))
        await shown(app, pilot, "It goes on.")
        assert app.is_running


async def test_a_question_without_a_question_is_not_put() -> None:
    data = b'{"type":"asked","number":"q1","asked":{"type":"questions","questions":[],"agent":""}}'
    with pytest.raises(LineError):
        from_owner(data)


async def test_the_stream_of_one_answer_stays_one_item() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        for piece in ("one", "two", "three", "four", "five"):
            channel.tell(fact(facts.TextDelta(f"{piece} ")))
        channel.tell(fact(facts.AssistantMessage("one two three four five ", "end_turn", Usage())))
        await shown(app, pilot, "one two three four five")
        items = [one for one in app.watching.conversation.items if isinstance(one, AssistantItem)]
        assert len(items) == 1


def test_the_parting_words_say_whether_it_runs_on() -> None:
    assert parting_words("s1", WORKING) == "s1 runs on; holdfast attach s1 looks in again."
    done = SessionStatus(state="done")
    assert parting_words("s1", done, "ssh://ceres/").startswith("s1 stays as it is;")
    assert "holdfast attach ssh://ceres/s1" in parting_words("s1", done, "ssh://ceres/")


async def test_nothing_runs_on_once_it_is_left() -> None:
    async with attached(prompt(1, "do it")) as (app, pilot, channel):
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)
    assert channel.closed
    assert not [one for one in asyncio.all_tasks() if "watch" in one.get_name()]
