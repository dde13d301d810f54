"""The conversation on a scripted agent: turns, the queue, questions, failures, sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.context.pictures import png
from tests.plain.face import talking, until
from tests.support.clock import ManualClock
from tests.support.script import Ask, Hold
from tests.support.world import OldSession, World, old_path, record
from tui.app.dialog_data import (
    AnswerOption,
    ChoiceQuestion,
    KeySetup,
    ModelRow,
    PracticeSetup,
    ServerSetup,
)
from tui.app.services import SessionChoice
from tui.core import facts
from tui.core.errors import CredentialsError, SessionInUseError
from tui.core.messages import Usage
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Call, Decision
from tui.plain.fact_speaker import SOON_S
from tui.session.drafts import UnsentWork
from tui.session.records import Finding
from tui.settings.trust import TrustItem

CALL = Call(
    "t1", "run_command", "run", "rm -rf build", "rm -rf build",
    preview_kind="command", preview="rm -rf build", scope="rm -rf build",
)  # fmt: skip
DECISION = Decision("ask", "It deletes files.", "policy", "standard")
DONE = facts.TurnFinished("done", Usage(1, 1), None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.clock = ManualClock()
    return world


async def test_a_turn_is_said_by_its_lines_and_what_was_typed_is_not_repeated(world: World) -> None:
    world.scripts.append(
        [
            facts.UserMessage("go"),
            facts.RequestSent(1, 10, "m", 1),
            *(facts.TextDelta(piece) for piece in ("I'll ", "look", ".\n", "Two ", "lines.")),
            facts.AssistantMessage("I'll look.\nTwo lines.", "tool_use", Usage()),
            facts.ToolStarted("1", "read_file", {}, "a.py"),
            facts.ToolFinished("1", "read_file", False, 0.1, None, "3 lines", "x\ny\nz"),
        ]
    )
    async with talking(world) as (talk, face):
        face.prompts.append("go")
        await until(lambda: len(face.began_with) == 2)
        assert face.said == [
            "Holdfast: I'll look.",
            "Two lines.",
            "Tool read_file a.py: finished in 0.1 s, 3 lines.",
        ]
        assert talk.drafts.answer == ""
        face.prompts.append("/output")
        await until(lambda: face.said[-1] == "End of output.")
        assert face.said[-5:] == ["Output of read_file a.py:", "x", "y", "z", "End of output."]


async def test_what_an_attempt_streamed_is_void_when_another_follows(world: World) -> None:
    world.scripts.append(
        [
            facts.UserMessage("go"),
            facts.RequestSent(1, 10, "m", 1),
            facts.TextDelta("Never said"),
            facts.RetryScheduled(1, 3, 4, "The server broke off.", None, "stream_broken", None, 10),
            facts.RequestSent(1, 10, "m", 2),
            facts.TextDelta("Said."),
            facts.AssistantMessage("Said.", "end_turn", Usage()),
        ]
    )
    async with talking(world) as (_, face):
        face.prompts.append("go")
        await until(lambda: "Holdfast: Said." in face.said)
        assert "Never" not in face.text
        assert (
            "Retry 1 of 3 in 4 s (10 characters received were discarded). Ctrl+C stops."
            in face.text
        )


async def test_what_is_typed_meanwhile_is_queued_and_commands_are_done_at_once(
    world: World,
) -> None:
    hold = Hold()
    world.scripts.append([facts.UserMessage("go"), hold, facts.UserMessage("and this")])
    async with talking(world) as (talk, face):
        face.prompts.append("go")
        await until(lambda: talk.busy)
        face.listener.typed("and this")
        face.listener.typed("/status")
        face.listener.typed("/rewind")
        await until(lambda: "Doing: running a turn or a command." in face.said)
        assert world.agent.queue == ("and this",)
        assert "Queued: sent as soon as the agent can take it." in face.said
        assert "The agent is working. Press Ctrl+C to stop it." in face.said
        hold.release()
        await until(lambda: "You: and this" in face.said)


async def test_what_is_typed_while_a_turn_is_stopped_becomes_one_of_its_own(world: World) -> None:
    world.scripts += [[facts.UserMessage("go"), Hold()], [facts.UserMessage("next")]]
    async with talking(world) as (talk, face):
        face.prompts.append("go")
        await until(lambda: talk.busy)
        face.listener.interrupt()
        face.listener.typed("next")
        await until(lambda: world.agent.sent == ["go", "next"])
        assert "Stopped. What should it do instead?" in face.said


async def test_a_long_silence_is_spoken_of(world: World) -> None:
    hold = Hold()
    world.scripts.append(
        [facts.UserMessage("go"), facts.ToolStarted("1", "run_command", {}, "make"), hold]
    )
    async with talking(world) as (talk, face):
        face.prompts.append("go")
        await until(lambda: world.agent.runs("1"))
        clock = world.clock
        assert isinstance(clock, ManualClock)
        await until(lambda: SOON_S in clock.slept)
        assert not face.said
        clock.advance(SOON_S)
        await until(lambda: face.said == ["Tool run_command make: started."])
        clock.advance(30)
        await until(lambda: "still working" in face.text)
        assert face.said[-1] == "Tool run_command make: still working after 30 s; Ctrl+C stops."
        hold.release()
        await until(lambda: not talk.busy)


async def test_R15_a_long_wait_is_spoken_of_at_its_marks_only(world: World) -> None:
    until_ = (world.clock.now() + timedelta(hours=2, seconds=30)).isoformat()
    hold = Hold()
    world.scripts.append([facts.UserMessage("go"), facts.Parked(until_, "Come later."), hold])
    clock = world.clock
    assert isinstance(clock, ManualClock)
    async with talking(world) as (talk, face):
        face.prompts.append("go")
        await until(lambda: "Parked until" in face.text)
        for seconds in (30, 3600, 1800):
            before = len(face.said)
            await until(lambda seconds=seconds: seconds in clock.slept)
            clock.advance(seconds)
            await until(lambda before=before: len(face.said) > before)
        assert face.said[-3:] == [
            f"Still waiting: {left} left; Ctrl+C stops."
            for left in ("2 h 00 min", "1 h 00 min", "30 min 00 s")
        ]
        hold.release()
        await until(lambda: not talk.busy)
        said = len(face.said)
        clock.advance(1800)
        await asyncio.sleep(0.01)
        assert len(face.said) == said


async def test_a_full_context_is_said_once(world: World) -> None:
    full = facts.ContextMeasured(170_000, 1, 1, 200_000, {}, "catalogue")
    world.scripts.append([facts.UserMessage("go"), full, full])
    async with talking(world) as (_, face):
        face.prompts.append("go")
        await until(lambda: len(face.began_with) == 2)
        assert face.said == [
            "Context: 85 percent of the context, 170,000 of 200,000 tokens, compacts at 80 percent."
        ]


@pytest.mark.parametrize(
    ("typed", "answer", "reason"),
    [
        (["1"], "once", ""),
        (["2"], "session", ""),
        (["always"], "always", ""),
        (["4", "not that folder"], "no", "not that folder"),
        (["4", ""], "no", ""),
        (["no: keep it"], "no", "keep it"),
        ([None], "no", ""),
        (["", "y", "5", "1"], "once", ""),
    ],
)
async def test_an_approval(world: World, typed: list[str | None], answer: str, reason: str) -> None:
    world.scripts.append([facts.UserMessage("go"), Ask(CALL, DECISION)])
    async with talking(world, answers=typed) as (_, face):
        face.prompts.append("go")
        await until(lambda: world.agent.answers)
        assert (world.agent.answers[0].answer, world.agent.answers[0].reason) == (answer, reason)
        assert face.said[:5] == [
            "Question: run this command?",
            "run_command, the command: rm -rf build",
            "Risk: standard.",
            "Why you're asked: It deletes files.",
            "2 and 3 allow rm -rf build. Type ? for the rules. Can reach beyond this folder.",
        ]
        assert face.asked[0] == "1 once, 2 this session, 3 always, 4 no: "
        assert not face.answers
        assert face.bells == 1


async def test_what_only_counts_once_takes_no_lasting_yes(world: World) -> None:
    world.scripts.append([facts.UserMessage("go"), Ask(CALL, replace(DECISION, once=True))])
    async with talking(world, answers=["2", "1"]) as (_, face):
        face.prompts.append("go")
        await until(lambda: world.agent.answers)
        assert world.agent.answers[0].answer == "once"
        assert face.asked == ["1 once, 4 no: "] * 2
        assert "You're asked each time." in face.text
        assert "Answer 1 or 4." in face.said


@pytest.mark.parametrize("walls", [False, True])
async def test_nothing_permanent_is_offered_for_what_is_high_risk(
    world: World, *, walls: bool
) -> None:
    risky = replace(DECISION, risk="high-risk", walls=walls, level=Level.WORKSPACE)
    world.scripts.append([facts.UserMessage("go"), Ask(CALL, risky)])
    async with talking(world, answers=["3", "1"]) as (_, face):
        face.prompts.append("go")
        await until(lambda: world.agent.answers)
        offered = "2 this session, " if walls else ""
        assert face.asked == [f"1 once, {offered}4 no: "] * 2
        assert f"Answer 1{', 2' if walls else ''} or 4." in face.said


async def test_the_rules_behind_the_answers_are_said_when_asked_for(world: World) -> None:
    world.scripts.append([facts.UserMessage("go"), Ask(CALL, DECISION)])
    async with talking(world, answers=["?", "1"]) as (_, face):
        face.prompts.append("go")
        await until(lambda: world.agent.answers)
        head = face.said.index(
            "2 allows this until the session ends, 3 saves it for every session:"
        )
        assert face.said[head + 1] == "  run_command"


async def test_a_text_is_no_answer_and_is_not_lost(world: World) -> None:
    world.scripts.append([facts.UserMessage("go"), Ask(CALL, DECISION)])
    async with talking(world, answers=["1 more thing for later", "4", ""]) as (_, face):
        face.prompts.append("go")
        await until(lambda: world.agent.answers)
        assert world.agent.answers[0].answer == "no"
        assert "Answer 1, 2, 3 or 4." in face.said
        await until(lambda: world.agent.queue or len(world.agent.sent) == 2)
        assert "1 more thing for later" in [*world.agent.queue, *world.agent.sent]


async def test_what_could_disguise_itself_is_spelt_out_in_a_question(world: World) -> None:
    evil = "echo safe\x1b[2K\rrm -rf ~ \u202e"
    call = Call("t", "run_command", "run", evil, evil, preview_kind="command", preview=evil)
    world.scripts.append([facts.UserMessage("go"), Ask(call, DECISION)])
    async with talking(world, answers=["4", ""]) as (_, face):
        face.prompts.append("go")
        await until(lambda: world.agent.answers)
        assert "echo safe\\x1b[2K\\x0drm -rf ~ \\u202e" in face.text
        assert "\x1b" not in face.text


async def test_a_diff_is_read_as_added_and_removed(world: World) -> None:
    text = "--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n"
    call = Call("t", "edit_file", "write", "f.py", preview_kind="diff", preview=text)
    world.scripts.append([facts.UserMessage("go"), Ask(call, DECISION)])
    async with talking(world, answers=["1"]) as (_, face):
        face.prompts.append("go")
        await until(lambda: world.agent.answers)
        assert face.said[:6] == [
            "Question: make this change?",
            "edit_file, f.py: 1 line added, 1 removed",
            "File f.py",
            "At line 1:",
            "  kept: same",
            "  removed: old",
        ]


async def test_R12_a_refused_request_offers_the_ways_on(world: World) -> None:
    world.tried = "strict"
    error = facts.ErrorRaised("invalid_request", "messages.3 is wrong", True)
    world.scripts += [
        [facts.UserMessage("go"), error, facts.TurnFinished("failed")],
        [facts.AssistantMessage("Well.", "end_turn", Usage())],
    ]
    async with talking(world, answers=["2"]) as (_, face):
        face.prompts.append("go")
        await until(lambda: "Holdfast: Well." in face.said)
        assert world.agent.repaired == ["strict", "text_only"]
        assert "1: Drop thinking: drop invalid parts and all thinking blocks" in face.said
        assert "Tried so far: repair and retry." in face.said


async def test_a_failure_of_another_kind_asks_nothing(world: World) -> None:
    error = facts.ErrorRaised("overloaded", "Too busy.", True, "Try later.")
    world.scripts.append([facts.UserMessage("go"), error, facts.TurnFinished("failed")])
    async with talking(world) as (_, face):
        face.prompts.append("go")
        await until(lambda: len(face.began_with) == 2)
        assert face.said[-2:] == [
            "Error, overloaded: Too busy. Try later.",
            "This failed. Nothing is lost.",
        ]


async def test_a_mistake_inside_a_turn_gives_the_prompt_back(world: World) -> None:
    world.scripts.append([ValueError("oops")])
    async with talking(world) as (_, face):
        face.prompts.append("precious words")
        await until(lambda: len(face.began_with) == 2)
        assert "Error: Something went wrong (ValueError)." in face.text
        assert face.began_with[-1] == "precious words"


async def test_without_a_key_it_asks_how_to_reach_a_model(world: World) -> None:
    world.refusals.append(CredentialsError("No API key found."))
    async with talking(world, answers=["1", "sk-ant-1"]) as (talk, face):
        assert world.set_up_with == [KeySetup("sk-ant-1")]
        assert talk.agent is not None
        assert "sk-ant" not in face.text


async def test_an_address_without_a_scheme_is_taken_and_said(world: World) -> None:
    world.refusals.append(CredentialsError("No API key found."))
    async with talking(world, answers=["2", "localhost:4000", "m", ""]) as (_, face):
        assert world.set_up_with == [ServerSetup("http://localhost:4000", "m")]
        assert "Using http://localhost:4000." in face.said


async def test_without_a_key_and_an_answer_it_ends(world: World) -> None:
    world.refusals.append(CredentialsError("No API key found."))
    with pytest.raises(CredentialsError):
        async with talking(world, answers=[None]):
            pass


async def test_the_practice_model_is_one_answer_away(world: World) -> None:
    world.refusals.append(CredentialsError("No API key found."))
    async with talking(world, answers=["3"]):
        assert world.set_up_with == [PracticeSetup()]


async def test_trust_is_asked_for(world: World) -> None:
    world.undecided = (TrustItem("model", "Sets model = x", "1"),)
    async with talking(world, answers=["1"]) as (_, face):
        assert world.granted == [{"model"}]
        assert "Sets model = x" in face.said


async def test_what_would_hide_in_a_question_about_trust_is_spelt_out(world: World) -> None:
    world.undecided = (TrustItem("hooks", "Runs safe\u202egpj.sh\u200b", "1"),)
    async with talking(world, answers=["3"]) as (_, face):
        assert "Runs safe\\u202egpj.sh\\u200b" in face.said


async def test_K47_a_session_is_elevated_again_only_by_a_yes(world: World) -> None:
    world.add_row("old", hours=1)
    path = world.rows[0].path
    world.old[path] = OldSession()
    world.was_elevated = True
    async with talking(world, answers=["2"], choice=SessionChoice(path)) as (_, face):
        assert "Elevate again?" in face.said
        await until(lambda: face.began_with)
        assert world.agent.sent == []
    async with talking(world, answers=["1"], choice=SessionChoice(path)):
        await until(lambda: world.agent.directives.elevated)
    async with talking(world, choice=SessionChoice(path, same=True)) as (_, face):
        assert "Elevate again?" not in face.said  # after a rewind: no dialog takes its keys


async def test_a_resumed_session_says_where_it_stands(world: World) -> None:
    world.add_row("fix the test", hours=1, messages=4)
    path = world.rows[0].path
    world.old[path] = OldSession()
    left = UnsentWork("half a prompt", ("queued",), "half an answer", commands=("!make",))
    world.old[path].unsent = left
    async with talking(world, choice=SessionChoice(path)) as (_, face):
        await until(lambda: face.began_with)
        assert "Session: fix the test, 2 prompts." in face.said
        assert any(line.startswith("Holdfast said last: Part 3") for line in face.said)
        assert "half an answer" in face.said
        assert "!make" in face.said
        assert face.began_with == ["queued\nhalf a prompt"]
        assert "at its end" not in " ".join(face.said)


async def test_a_message_to_begin_at_is_said_not_to_count(world: World) -> None:
    world.add_row("fix the test", hours=1, messages=4)
    path = world.rows[0].path
    world.old[path] = OldSession()
    async with talking(world, choice=SessionChoice(path, message="1")) as (_, face):
        await until(lambda: "at its end, not at a message" in " ".join(face.said))
        assert "--fork begins a copy that ends there" in " ".join(face.said)


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [("1", {"take_over": True}), ("2", {"read_only": True}), (None, {})],
)
async def test_a_session_that_is_open_elsewhere(
    world: World, answer: str | None, chosen: dict[str, bool]
) -> None:
    world.add_row("old", hours=1)
    path = world.rows[0].path
    world.refusals.append(SessionInUseError("Process 9 has it open."))
    async with talking(world, answers=[answer], choice=SessionChoice(path)):
        wanted = replace(SessionChoice(path), **chosen) if chosen else SessionChoice()
        assert world.chosen == [SessionChoice(path), wanted]


async def test_damage_is_told_before_a_session_is_gone_on_with(world: World) -> None:
    world.add_row("old", hours=1)
    path = world.rows[0].path
    world.old[path] = OldSession()
    world.old[path].findings = (Finding("B52", "line 3", "left out"),)
    async with talking(world, answers=["1"], choice=SessionChoice(path)) as (talk, face):
        assert "line 3: left out." in face.said
        assert talk.agent is world.agents[0]
    async with talking(world, answers=["4"], choice=SessionChoice(path)):
        assert world.chosen[-1] == SessionChoice()
        assert world.agents[-2].closed


async def test_a_draft_is_kept_on_the_way_out(world: World) -> None:
    async with talking(world) as (talk, face):
        face.unsent = "half a thought"
        await talk.close()
        session = world.agent.watched
        assert session.drafts[-1] == ("half a thought", (), "")
        assert world.agent.closed


async def test_notes_are_saved_before_a_session_is_left(world: World) -> None:
    async with talking(world) as (_, face):
        world.agent.remember()
        face.prompts.append("/new")
        await until(lambda: len(world.agents) == 2)
        assert "1 line to memory: " in face.text
        await until(lambda: world.agents[0].closed)


async def test_a_model_that_is_too_small_is_asked_about(world: World) -> None:
    world.models = (ModelRow("small", 8_000),)
    async with talking(world, answers=["2", "1"]) as (_, face):
        face.prompts += ["/model small", "/model small"]
        await until(lambda: world.agent.models.current == "small")
        assert len(face.asked) == 2


async def test_a_command_of_ones_own_and_the_shell(world: World, tmp_path: Path) -> None:
    async with talking(world) as (talk, face):
        folder = talk.services.folders.config / "commands"
        folder.mkdir(parents=True)
        (folder / "look.md").write_text("Look at $ARGUMENTS well.")
        face.prompts += ["!echo heard; echo twice", "/look a.py"]
        await until(lambda: world.agent.sent)
        assert face.said[:2] == ["heard", "twice"]
        assert world.agent.sent == ["/look a.py"]
        assert "Look at a.py well." in world.agent.attached[0]
        assert "twice" in world.agent.attached[0]


async def test_a_command_of_the_person_waits_for_the_turn_and_for_a_crash(world: World) -> None:
    hold = Hold()
    world.scripts.append([facts.UserMessage("go"), hold])
    async with talking(world) as (talk, face):
        face.prompts.append("go")
        await until(lambda: talk.busy)
        face.listener.typed("!echo heard")
        await until(lambda: "Queued: runs after the current work." in face.said)
        talk.drafts.leave()
        assert world.agent.watched.drafted_commands == ("!echo heard",)
        assert "heard" not in face.said
        hold.release()
        await until(lambda: any(line.startswith("Your command: finished") for line in face.said))
        assert face.said[-3:-1] == ["Your command echo heard: started.", "heard"]
        face.prompts.append("next")
        await until(lambda: len(world.agent.sent) == 2)
        assert "heard" in world.agent.attached[1]


async def test_the_output_of_a_failed_command_of_the_person_is_said_once(world: World) -> None:
    async with talking(world) as (_, face):
        face.prompts.append("!echo told; exit 3")
        await until(lambda: len(face.said) == 2)
        assert face.said[0] == "told"
        assert face.said[1].startswith("Your command: failed after")


async def test_ctrl_c_before_a_turn_begins_gives_the_text_back(world: World) -> None:
    async with talking(world) as (talk, face):
        await until(lambda: face.began_with)
        talk.submit("never mind")
        assert face.listener.interrupt()
        await until(lambda: len(face.began_with) == 2)
        assert face.began_with[1] == "never mind"
        assert world.agent.sent == []


async def test_ctrl_c_at_the_prompt_is_no_turns(world: World) -> None:
    async with talking(world) as (_, face):
        await until(lambda: face.began_with)
        assert not face.listener.interrupt()
        face.prompts.append("go")
        await until(lambda: world.agent.sent == ["go"])


async def test_what_is_typed_while_the_context_is_compacted_is_sent_after_it(world: World) -> None:
    async with talking(world) as (talk, face):
        held, release = asyncio.Event(), asyncio.Event()

        async def compaction() -> AsyncIterator[facts.Fact]:
            held.set()
            await release.wait()
            yield facts.Notice("Done.")

        assert talk.start_side_work("compacting", compaction())
        await held.wait()
        face.listener.typed("and then this")
        await until(lambda: "Queued: sent after the current work." in face.said)
        release.set()
        await until(lambda: world.agent.sent == ["and then this"])
        assert world.agent.queue == ()


async def test_an_image_that_goes_along_is_said_and_the_prompt_is_not(world: World) -> None:
    (world.workspace / "a.png").write_bytes(png(8, 8).ljust(75, b"\0"))
    async with talking(world) as (_, face):
        face.prompts.append("what is in @a.png?")
        await until(lambda: len(face.began_with) == 2)
        assert face.said == ["With image 1: a.png 8 by 8 75 B."]


async def test_commands_that_an_earlier_run_left_are_told_and_not_run(world: World) -> None:
    world.add_row("old", hours=1)
    path = world.rows[0].path
    world.old[path] = OldSession()
    world.old[path].unsent = UnsentWork("typed", commands=("!make",))
    async with talking(world, choice=SessionChoice(path)) as (_, face):
        await until(lambda: face.began_with == ["typed"])
        told = [line for line in face.said if "!make" in line]
        assert told == ["!make"]
        assert "Holdfast closed before this could run:" in face.said


async def test_read_only_takes_no_prompt(world: World) -> None:
    path = old_path()
    world.old[path] = OldSession(records=[record("user", 0, text="hi")], read_only=True)
    async with talking(world, choice=SessionChoice(path, read_only=True)) as (_, face):
        face.prompts.append("do it")
        await until(lambda: len(face.began_with) == 2)
        assert face.began_with[-1] == "do it"
        assert world.agent.sent == []


async def test_K47_elevation_is_decided_before_interrupted_calls_are_made_again(
    world: World,
) -> None:
    path = old_path()
    call = {"type": "tool_use", "id": "t1", "name": "run_command", "input": {"command": "make"}}
    records = [
        record("user", 0, text="go", content=[{"type": "text", "text": "go"}]),
        record("assistant", 1, content=[call], model="m"),
        record("intent", 2, call_id="t1", tool="run_command", effect="run"),
    ]
    world.old[path] = OldSession(records=records)
    world.was_elevated = True
    async with talking(world, answers=["2", "2"], choice=SessionChoice(path)) as (_, face):
        await until(lambda: world.agent.again == ["t1"])
        elevated = face.said.index("Elevate again?")
        assert elevated < face.said.index("The last run of this session was interrupted.")


def asks(*questions: dict[str, object]) -> list[facts.Fact]:
    called = facts.ToolStarted("q1", "ask_user", {"questions": list(questions)})
    return [facts.UserMessage("go"), facts.RequestSent(1, 10, "m", 1), called]


DATABASE: dict[str, object] = {
    "header": "Database",
    "question": "Which database?",
    "choices": [{"label": "SQLite", "description": "One file"}, {"label": "PostgreSQL"}],
}
EXTRAS = DATABASE | {"header": "Extras", "question": "Which extras?", "several": True}


async def test_the_models_questions_are_numbered_lines_one_after_the_other(world: World) -> None:
    world.scripts.append(asks(DATABASE, EXTRAS))
    answers = ["postgres please, if you can", "9", "1", "1, 3", "and backups"]
    async with talking(world, answers=answers) as (_, face):
        face.prompts.append("go")
        await until(lambda: "Answered: SQLite, and backups." in face.said)
        first = face.said.index("Question 1 of 2, Database: Which database?")
        assert face.said[first + 1 : first + 7] == [
            "1: SQLite: One file",
            "2: PostgreSQL",
            "3: in your own words",
            "Answer 1 to 3.",
            "Answer 1 to 3.",
            "Answered: SQLite.",
        ]
        assert face.asked == [
            *3 * ["1 to 3, or just Enter for no answer: "],
            "1 to 3, several with commas, or just Enter for no answer: ",
            "Your answer: ",
        ]
        # what was no answer was meant for the prompt
        await until(
            lambda: "postgres please, if you can" in world.agent.sent + list(world.agent.queue)
        )


@pytest.mark.parametrize("typed", ["", None])
async def test_a_question_of_the_model_may_stay_unanswered(world: World, typed: str | None) -> None:
    world.scripts.append(asks(DATABASE))
    async with talking(world, answers=[typed]) as (_, face):
        face.prompts.append("go")
        await until(lambda: "Not answered." in face.said)
        assert face.bells == 1


async def test_a_plan_is_read_and_approved_by_a_number(world: World) -> None:
    called = facts.ToolStarted("p1", "present_plan", {"title": "Rename", "plan": "1. Rename it."})
    script = [facts.UserMessage("go"), facts.RequestSent(1, 10, "m", 1), called]
    world.scripts += [script, script]
    async with talking(world, answers=["3", "Tests first", "2"]) as (_, face):
        world.agent.permissions.mode = "plan"
        face.prompts.append("go")
        await until(lambda: "Answered: Say what to change." in face.said)
        assert "Plan: Rename" in face.said
        assert "End of the plan." in face.said
        assert world.agent.permissions.mode == "plan"
        await until(lambda: len(face.began_with) == 2)
        face.prompts.append("go")
        await until(lambda: world.agent.permissions.mode == "accept_edits")
        face.prompts.append("/plan show")
        await until(lambda: face.said.count("Plan: Rename") == 3)


async def test_the_prompt_gives_way_to_a_question_that_comes_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = asyncio.Event()

    async def answer(question: str, *, hidden: bool = False) -> str:
        del hidden
        face.asked.append(question)
        await answered.wait()
        return "1"

    async with talking(world) as (talk, face):
        monkeypatch.setattr(face, "answer", answer)
        await until(lambda: len(face.began_with) == 1)
        question = ChoiceQuestion("Start it?", "", (AnswerOption("s", "Start", "start"),))
        chosen = asyncio.create_task(talk.frontend.choose(question))
        await until(lambda: face.asked)
        face.prompts.append("1")  # what is typed answers, and is no prompt
        for _ in range(20):
            await asyncio.sleep(0)
        assert (len(face.began_with), [*face.prompts]) == (1, ["1"])
        face.prompts.clear()
        answered.set()
        assert await chosen == "start"
        await until(lambda: len(face.began_with) == 2)
        assert not world.agent.sent
