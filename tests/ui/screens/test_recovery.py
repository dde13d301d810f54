"""After a failure: the keys of the banner, /retry, /model and the dialog with the ways on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from textual.pilot import Pilot

from tests.support.script import MODEL, Hold, Step
from tests.support.world import OldSession, World, old_path, record
from tests.ui.screens.driving import answer, items, running, say, turn, until
from tui.app.dialog_data import KeySetup, ModelRow
from tui.app.services import SessionChoice
from tui.context.repair_levels import REPAIR_LEVELS
from tui.core import facts
from tui.core.facts import Fact
from tui.ui.app import HoldfastApp
from tui.ui.frontend import TurnEnded
from tui.ui.screens.picker import ModelsScreen
from tui.ui.screens.recovery import RecoveryScreen
from tui.ui.screens.welcome import WelcomeScreen
from tui.ui.toolkit.answer_guard import QUIET_S, TYPING_S
from tui.ui.widgets.conversation.items import AssistantItem, AttemptItem, NoticeItem, UserItem
from tui.ui.widgets.questions import Confirmation

RETRY = facts.RetryScheduled(2, 3, 4.0, "Too many requests.", 429, "rate_limit", "req_1", 11)
PARKED = facts.Parked("2026-11-21T09:23:00.000Z", "Usage limit reached.")
OTHER = "claude-haiku-5-5"
ROWS = (
    ModelRow(MODEL, 200_000, "catalogue", "$2/$10", "$2 in, $10 out"),
    ModelRow(OTHER, 200_000, "catalogue", fallback=1),
    ModelRow("tiny-model", 8_000, "config"),
)


def failed(error_class: str, *, told: str = "messages.3: tool_use without a result") -> list[Step]:
    error = facts.ErrorRaised(error_class, told, True, "The same request fails again.")
    return turn(error, facts.TurnFinished("failed"))


def waiting(event: Fact = RETRY) -> World:
    world = World()
    world.models, world.fallbacks = ROWS, (OTHER,)
    world.scripts.append(turn(facts.TextDelta("half an ans"), event, Hold()))
    return world


async def begin(app: HoldfastApp, pilot: Pilot[None]) -> None:
    """Send a prompt, and wait until something is waited for."""
    await say(pilot, "go")
    await until(pilot, lambda: app.chat.retry.display)


async def to_banner(app: HoldfastApp, pilot: Pilot[None]) -> None:
    """One Tab from the prompt, wherever the banner stands in the row."""
    await pilot.press("tab")
    assert app.focused is app.chat.retry


async def test_typed_keys_go_to_the_prompt_while_it_counts_down() -> None:
    world = waiting()
    async with running(world) as (app, pilot):
        await begin(app, pilot)
        await pilot.press("r", "f", "space", "r")
        assert app.chat.prompt.text == "rf r"
        assert world.agent.wishes == []


@pytest.mark.parametrize("event", [RETRY, PARKED], ids=["retry", "parked"])
@pytest.mark.parametrize(("key", "wish"), [("r", "now"), ("f", "other")])
async def test_r_and_f_count_once_tab_has_come_to_the_banner(
    event: Fact, key: str, wish: str
) -> None:
    world = waiting(event)
    async with running(world) as (app, pilot):
        await begin(app, pilot)
        await to_banner(app, pilot)
        await pilot.press(key)
        await until(pilot, lambda: world.agent.wishes == [wish])
        assert app.chat.prompt.text == ""


async def test_a_click_gives_the_banner_the_focus() -> None:
    world = waiting()
    async with running(world) as (app, pilot):
        await begin(app, pilot)
        await pilot.click("#retry")
        assert app.focused is app.chat.retry


async def test_f_is_typed_where_there_is_no_other_model() -> None:
    world = waiting()
    world.models = ROWS[:1]
    async with running(world) as (app, pilot):
        await begin(app, pilot)
        await to_banner(app, pilot)
        await pilot.press("f")
        await until(pilot, lambda: app.chat.prompt.text == "f")
        assert world.agent.wishes == []


@pytest.mark.parametrize("focused", [True, False])
async def test_esc_stops_what_is_waited_for(focused: bool) -> None:
    world = waiting()
    async with running(world) as (app, pilot):
        await begin(app, pilot)
        if focused:
            await to_banner(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: not app.conversation.busy)
        assert not app.chat.retry.display
        assert app.focused is app.chat.prompt


@pytest.mark.parametrize(("text", "wish"), [("/retry", "now"), ("/retry other", "other")])
async def test_the_command_does_what_the_key_does(text: str, wish: str) -> None:
    world = waiting()
    async with running(world) as (app, pilot):
        await begin(app, pilot)
        await say(pilot, text)
        await until(pilot, lambda: world.agent.wishes == [wish])


async def test_R18_what_was_streamed_is_void_at_once_and_stays_in_the_line() -> None:
    async with running(waiting()) as (app, pilot):
        await begin(app, pilot)
        assert items(app, AssistantItem) == []
        (line,) = items(app, AttemptItem)
        assert (line.error_class, line.status, line.delay_s) == ("rate_limit", 429, 4.0)
        assert (line.request_id, line.received, line.text) == ("req_1", 11, "half an ans")
        assert line.folded


async def test_a_switch_is_one_line_with_cause_and_way_back() -> None:
    world = World()
    switched = facts.ModelSwitched(
        MODEL, OTHER, f"{MODEL}: overloaded", "2026-11-21T09:01:00.000Z", "overloaded", 529
    )
    back = facts.ModelSwitched(OTHER, MODEL, f"{MODEL} is available again")
    world.scripts.append(turn(switched, *answer("Hello.")))
    world.scripts.append(turn(back, *answer("Again.")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        (line,) = items(app, NoticeItem)
        assert line.text.startswith(f"{MODEL}: overloaded. Switched to {OTHER}. Back to {MODEL} at")
        assert line.text.endswith(f"or with /model {MODEL}.")
        assert app.chat.header.state.model == OTHER
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 2)
        assert items(app, NoticeItem)[-1].text == (
            f"Back to the model {MODEL}: {MODEL} is available again."
        )
        assert app.chat.header.state.model == MODEL


async def test_O22_a_compaction_is_shown_while_it_is_made() -> None:
    world = World()
    making, sent = Hold(), Hold()
    world.scripts.append(
        turn(
            facts.OverflowCompactionStarted(2, 3, 204_000),
            facts.CompactionStarted("overflow", 204_000, 120),
            making,
            facts.CompactionFinished(204_000, 41_000, 114, "They talked.", "overflow"),
            facts.RecoveryStep("compaction", "it was summarised", 204_000, 41_000),
            sent,
            facts.RequestSent(7, 41_000, MODEL, 1),
            *answer("Hello."),
        )
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.retry.display)
        assert "context full · compacting 2 of 3, 204k tokens" in str(app.chat.retry.render())
        await pilot.press("tab")  # there is no key of the banner now
        assert app.focused is not app.chat.retry
        making.release()
        await until(pilot, lambda: "compacted, retrying" in str(app.chat.retry.render()))
        assert app.chat.retry.display
        sent.release()
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert not app.chat.retry.display
        assert [item.text for item in items(app, NoticeItem)] == [
            # Once, and not by both facts.
            "The request was too large: it was summarised, 204k → 41.0k tokens. It is sent again."
        ]


def told(app: HoldfastApp) -> list[tuple[str, str]]:
    return [(item.kind, item.text) for item in items(app, NoticeItem)]


async def compaction() -> AsyncIterator[Fact]:
    yield facts.CompactionStarted("manual", 50_000, 12)
    yield facts.CompactionFinished(50_000, 8_000, 12, "what was said", "manual")


async def test_R35_what_came_of_a_compaction_is_the_last_word() -> None:
    done = "Compacted 50.0k → 8.0k tokens: a summary replaces 12 messages."
    async with running(World()) as (app, pilot):
        show = app.frontend.renderer.show
        show(facts.Notice("📝 Saving context..."))
        show(facts.MemorySaved("/home/me/proj/.holdfast/MEMORY.md", 2))
        app.conversation.start_side_work("compacting", compaction())
        await until(pilot, lambda: not app.conversation.busy)
        assert told(app)[1:] == [
            ("info", "Saved 2 lines to memory: /home/me/proj/.holdfast/MEMORY.md."),
            ("success", f"{done} /uncompact restores everything."),
        ]
        assert items(app, NoticeItem)[-1].detail == "what was said"
        show(facts.CompactionUndone(50_100))
        assert told(app)[-1] == (
            "success",
            "Sending the full conversation again: 50.1k tokens. /compact summarizes it again.",
        )


async def test_what_came_of_an_exam_is_a_card_with_every_fact() -> None:
    fact = {"question": "When?", "answer": "on Fridays", "quote": "Never on Fridays.", "given": ""}
    asked = ({**fact, "held": True}, {**fact, "question": "Who?", "held": False})
    async with running(World()) as (app, _):
        show = app.frontend.renderer.show
        show(facts.ExamFinished(asked, 1, 1, "m", cost_usd=0.0041))
        card = items(app, NoticeItem)[-1]
        assert (card.kind, card.text) == (
            "success", "Summary checked: 1 of 2 facts kept, 1 more sent in full ($0.0041)."
        )  # fmt: skip
        assert card.detail.splitlines() == [
            "✗ Who? — on Fridays", "  “Never on Fridays.”", "✓ When? — on Fridays"
        ]  # fmt: skip
        show(facts.ExamFinished(asked, 1, 0, "m", "It was busy."))
        assert told(app)[-1] == (
            "warning",
            (
                "Summary checked: 1 of 2 facts kept, 1 lost for lack of room."
                " Not all of it was checked: It was busy."
            ),
        )
        show(facts.ExamFinished((), 0, 0, "m", "It was busy."))
        assert told(app)[-1] == ("warning", "The summary wasn't checked: It was busy.")


@pytest.mark.parametrize("problem", ["it was interrupted", "It is not smaller."])
async def test_R11_a_compaction_that_failed_says_why(problem: str) -> None:
    async with running(World()) as (app, _):
        app.frontend.renderer.show(
            facts.CompactionFinished(50_000, 50_000, 0, "", "automatic", problem)
        )
        assert told(app) == [("warning", f"Not compacted: {problem.rstrip('.')}.")]


async def test_the_loop_breaker_says_so_in_a_card() -> None:
    world = World()
    stopped = facts.LoopStopped("run_command", {"command": "make"}, 5)
    world.scripts.append(turn(stopped))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        line = items(app, NoticeItem)[-1]
        assert "run_command was called 5 times in a row with the same result" in line.text
        assert line.detail == "command: make"


async def test_silence_is_counted_from_five_seconds_on_and_ends_with_a_sign_of_life() -> None:
    world = World()
    alive, end = Hold(), Hold()
    world.scripts.append(turn(alive, facts.Alive(), end, *answer("Hello.")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: bool(world.agent.scripted.requests))

        def line() -> str:
            app.chat._tick()  # pyright: ignore[reportPrivateUsage] - the timer's, twice a second
            return app.chat.prompt_rule.title.plain

        world.clock.elapsed += 4.9
        assert "nothing received" not in line()
        world.clock.elapsed += 0.2
        assert "nothing received for 5 s" in line()
        alive.release()
        await until(pilot, lambda: "nothing received" not in line())
        assert app.chat.prompt_rule.title.plain.startswith(("⠋", "⠙", "⠹", "⠸", "⠼", "⠴"))
        end.release()


async def test_R15_a_parked_session_goes_on_by_itself_when_it_is_opened() -> None:
    world = World()
    told = [
        record("user", 1, content=[{"type": "text", "text": "go"}], text="go"),
        record("parked", 2, until=PARKED.until, reason=PARKED.reason, error_class="rate_limit"),
    ]
    world.old[old_path()] = OldSession(records=told)
    world.scripts.append(turn(*answer("Here I am.")))
    async with running(world, choice=SessionChoice(old_path())) as (app, pilot):
        await until(pilot, lambda: bool(items(app, AssistantItem)))
        assert world.agent.went_on == 1
        assert world.agent.sent == []


# The dialog


async def refused(app: HoldfastApp, pilot: Pilot[None], world: World) -> RecoveryScreen:
    """Send a prompt that fails, and wait for the dialog; its keys count."""
    await say(pilot, "look at it")
    await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))
    world.clock.elapsed += QUIET_S
    assert isinstance(app.screen, RecoveryScreen)
    return app.screen


def refusing(error_class: str = "invalid_request", rungs: int = 0) -> World:
    world = World()
    world.models = ROWS
    world.tried = REPAIR_LEVELS[rungs - 1] if rungs else None
    world.scripts.append(failed(error_class))
    return world


async def test_R12_a_refused_request_shows_the_error_and_the_ways_on() -> None:
    world = refusing()
    async with running(world) as (app, pilot):
        screen = await refused(app, pilot, world)
        assert [way.name for way in screen.trouble.ways] == [*REPAIR_LEVELS, "new"]
        assert "tool_use without a result" in screen.trouble.error
        assert screen.trouble.findings is not None
        world.scripts.append([facts.RequestSent(1, 100, MODEL, 1), *answer("It works.")])
        await pilot.press("1")
        await until(pilot, lambda: bool(items(app, AssistantItem)))
        assert world.agent.repaired == ["strict"]
        assert world.agent.went_on == 1
        assert [item.text for item in items(app, UserItem)] == ["look at it"]


async def test_R13_the_same_refusal_again_offers_the_next_rung() -> None:
    world = refusing()
    world.scripts.append(failed("invalid_request")[1:])
    async with running(world) as (app, pilot):
        first = await refused(app, pilot, world)
        await pilot.press("1")
        await until(
            pilot, lambda: app.screen is not first and isinstance(app.screen, RecoveryScreen)
        )
        assert isinstance(app.screen, RecoveryScreen)
        ways = [way.name for way in app.screen.trouble.ways]
        assert ways == ["drop_thinking", "text_only", "summary_only", "new"]
        assert app.screen.trouble.before == ("repair and retry",)


async def test_R13_on_the_last_rung_only_a_new_session_is_left() -> None:
    world = refusing(rungs=4)
    async with running(world) as (app, pilot):
        screen = await refused(app, pilot, world)
        assert [way.name for way in screen.trouble.ways] == ["new"]


async def test_esc_keeps_everything_and_retry_shows_it_again() -> None:
    world = refusing()
    async with running(world) as (app, pilot):
        await refused(app, pilot, world)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert world.agent.repaired == []
        assert world.agent.went_on == 0
        world.agent.session.records = [
            record("user", 1, text="look at it"),
            record("error", 2, error_class="invalid_request", message="no", request_id="req_9"),
        ]
        await say(pilot, "/retry")
        await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))
        assert isinstance(app.screen, RecoveryScreen)
        assert app.screen.trouble.request_id == "req_9"


async def test_what_is_typed_when_it_opens_is_no_answer() -> None:
    world = refusing()
    async with running(world) as (app, pilot):
        await say(pilot, "look at it")
        await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))
        await pilot.press("1", "enter", "escape", "x")
        assert isinstance(app.screen, RecoveryScreen)
        assert app.chat.prompt.text == "1x"
        world.clock.elapsed += QUIET_S
        await pilot.press("y")
        assert app.chat.prompt.text == "1xy"
        await pilot.press("escape")
        assert isinstance(app.screen, RecoveryScreen)
        world.clock.elapsed += QUIET_S
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert app.chat.prompt.text == "1xy"


async def test_who_types_a_prompt_under_the_dialog_chooses_nothing_with_it() -> None:
    world = refusing()
    async with running(world) as (app, pilot):
        screen = await refused(app, pilot, world)
        await pilot.press(*"try", "space", *"2", "enter")
        assert app.screen is screen
        assert app.chat.prompt.text == "try 2"
        world.clock.elapsed += TYPING_S
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.repaired == ["strict"])
        assert app.chat.prompt.text == "try 2"


async def test_a_new_session_gets_the_prompt_laid_ready() -> None:
    world = refusing(rungs=4)
    async with running(world) as (app, pilot):
        await refused(app, pilot, world)
        world.agent.session.records = [record("user", 1, text="look at it")]
        await pilot.press("1")
        await until(pilot, lambda: len(world.agents) == 2)
        await until(pilot, lambda: app.chat.prompt.text == "look at it")


async def test_another_key_is_used_in_the_same_session_and_goes_on() -> None:
    world = refusing("auth")
    async with running(world) as (app, pilot):
        screen = await refused(app, pilot, world)
        assert [way.name for way in screen.trouble.ways] == ["key", "retry"]
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.press("enter", *"secret", "enter")
        await until(pilot, lambda: world.agent.went_on == 1)
        assert world.set_up_with == [KeySetup("secret")]
        assert (len(world.agents), world.agent.reconnected) == (1, 1)


async def test_an_overflow_that_stays_offers_another_model_and_goes_on_with_it() -> None:
    world = refusing("context_overflow")
    async with running(world) as (app, pilot):
        screen = await refused(app, pilot, world)
        assert [way.name for way in screen.trouble.ways] == ["model", "context", "new"]
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: world.agent.went_on == 1)
        assert world.agent.models.current == OTHER


@pytest.mark.parametrize("error_class", ["network", "timeout", "server", "refusal", "unknown"])
async def test_other_failures_need_no_dialog(error_class: str) -> None:
    world = refusing(error_class)
    async with running(world) as (app, pilot):
        await say(pilot, "look at it")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        app.post_message(TurnEnded("done"))
        await pilot.pause()
        assert app.screen is app.chat


# /retry and /model


async def test_retry_goes_on_after_a_failed_turn() -> None:
    world = refusing("network")
    world.scripts.append([facts.RequestSent(1, 100, MODEL, 1), *answer("Hello.")])
    async with running(world) as (app, pilot):
        await say(pilot, "look at it")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        await say(pilot, "/retry")
        await until(pilot, lambda: bool(items(app, AssistantItem)))
        assert world.agent.went_on == 1


async def test_retry_says_that_there_is_nothing_to_do() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "/retry")
        assert "Nothing to retry" in app.chat.notice.text
        await say(pilot, "/retry other")
        assert "/model switches" in app.chat.notice.text
        await say(pilot, "/retry tomorrow")
        assert "/retry other" in app.chat.notice.text


async def test_the_picker_shows_what_fits_and_switches() -> None:
    world = World()
    world.models = ROWS
    async with running(world) as (app, pilot):
        await say(pilot, "/model")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))
        assert isinstance(app.screen, ModelsScreen)
        rows = app.screen.rows
        shown = [rows.render_line(y).text for y in range(rows.size.height)]
        assert shown[0].split() == ["●", MODEL, "200k", "$2/$10"]
        assert any("tiny-model" in row and "too small" in row for row in shown)
        await pilot.press("end")
        await pilot.press("down", "down")
        await until(pilot, lambda: "needs 82.1k" in str(app.screen.query_one("#about").render()))
        await pilot.press(*"haiku", "enter")
        await until(pilot, lambda: world.agent.models.current == OTHER)
        assert app.chat.header.state.model == OTHER


async def test_a_name_that_is_not_listed_may_be_typed() -> None:
    world = World()
    world.models = ROWS
    async with running(world) as (app, pilot):
        await say(pilot, "/model")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))
        await pilot.press(*"llama", "enter")
        await until(pilot, lambda: world.agent.models.current == "llama")


@pytest.mark.parametrize(("key", "model"), [("y", "tiny-model"), ("escape", MODEL)])
async def test_a_model_that_is_too_small_is_asked_about(key: str, model: str) -> None:
    world = World()
    world.models = ROWS
    async with running(world) as (app, pilot):
        await say(pilot, "/model tiny-model")
        await until(pilot, lambda: isinstance(app.screen, Confirmation))
        await pilot.press(key)
        await until(pilot, lambda: app.screen is app.chat)
        await pilot.pause()
        assert world.agent.models.current == model
