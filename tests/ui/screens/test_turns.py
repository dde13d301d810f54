"""A turn on the screen, from the prompt to its end, however it ends."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.idle import threads_held
from tests.support.script import MODEL, Burst, Hold
from tests.support.world import World
from tests.ui.screens.driving import answer, app_of, items, running, say, session_open, turn, until
from tui.app.services import Opening
from tui.app.work import BURST
from tui.core import facts, gc_pause
from tui.core.errors import HoldfastError, ProviderError
from tui.core.messages import Usage
from tui.tools.registry import title
from tui.ui.tool_calls import ToolCalls
from tui.ui.widgets.conversation.item_renderer import source
from tui.ui.widgets.conversation.items import (
    AssistantItem,
    AttemptItem,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)


async def test_a_prompt_becomes_a_conversation() -> None:
    world = World()
    world.scripts.append(turn(facts.ThinkingDelta("Hm."), *answer("Hello there.")))
    async with running(world) as (app, pilot):
        await say(pilot, "hi you")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert world.agent.sent == ["hi you"]
        assert app.chat.prompt.text == ""
        assert [item.text for item in items(app, UserItem)] == ["hi you"]
        assert [item.text for item in items(app, AssistantItem)] == ["Hello there."]
        (thinking,) = items(app, ThinkingItem)
        assert (thinking.text, thinking.streaming, thinking.folded) == ("Hm.", False, True)
        assert not app.chat.busy


async def test_the_header_shows_the_title_that_comes_after_the_first_turn() -> None:
    world = World()
    world.scripts += [turn(*answer("Seen.")), turn(*answer("Done."))]
    async with running(world) as (app, pilot):
        await say(pilot, "Read a.py. Fix it.")
        await until(pilot, lambda: app.chat.header.state.title == "Read a.py")
        await say(pilot, "/rename mine")
        await until(pilot, lambda: app.chat.header.state.title == "mine")
        await say(pilot, "Go.")
        await until(pilot, lambda: app.chat.status.state.turns == 2)
        assert app.chat.header.state.title == "mine"


async def test_what_is_typed_meanwhile_is_queued_and_shown() -> None:
    world, hold = World(), Hold()
    world.scripts.append(turn(hold, *answer("done")))
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: app.conversation.busy)
        await say(pilot, "and then")
        assert world.agent.queue == ("and then",)
        assert app.chat.queued.texts == ("and then",)
        assert app.chat.queued.display
        hold.release()
        await until(pilot, lambda: world.agent.sent == ["work", "and then"])
        await until(pilot, lambda: not app.conversation.busy)
        assert not app.chat.queued.display


async def test_escape_stops_and_gives_back_what_was_queued() -> None:
    world = World()
    world.scripts.append(turn(facts.TextDelta("I am"), Hold()))
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: bool(items(app, AssistantItem)))
        await say(pilot, "later")
        await pilot.press("escape")
        await until(pilot, lambda: not app.conversation.busy)
        assert [item.streaming for item in items(app, AssistantItem)] == [False]
        assert "Stopped" in items(app, NoticeItem)[-1].text
        assert app.chat.prompt.text == "later"
        assert not app.chat.busy


async def test_what_is_sent_while_a_stopped_turn_closes_is_the_next_turn() -> None:
    world = World()
    world.scripts.extend([turn(facts.TextDelta("I am"), Hold()), turn(*answer("Yes."))])
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: bool(items(app, AssistantItem)))
        app.conversation.submit("queued before")
        app.conversation.cancel()
        app.conversation.submit("another way")
        app.conversation.submit("quickly")
        assert app.chat.queued.texts == ("queued before", "another way", "quickly")
        await until(pilot, lambda: world.agent.sent == ["work", "another way", "quickly"])
        await until(pilot, lambda: not app.conversation.busy)
        assert app.chat.prompt.text == "queued before"
        assert app.chat.queued.texts == ()


async def test_what_is_sent_while_a_shell_command_runs_is_the_next_turn() -> None:
    world = World(Path.cwd())
    world.scripts.append(turn(*answer("Yes.")))
    async with running(world) as (app, pilot):
        app.conversation.run_shell("exec sleep 300")
        await until(pilot, lambda: bool(items(app, ToolItem)))
        app.conversation.submit("and now?")
        assert app.chat.queued.texts == ("and now?",)
        assert world.agent.sent == []
        await pilot.press("escape")
        await until(pilot, lambda: world.agent.sent == ["and now?"])
        assert app.chat.queued.texts == ()


async def test_a_shell_command_stopped_before_its_first_step_leaves_nothing_busy() -> None:
    world = World(Path.cwd())
    world.scripts.append(turn(*answer("Yes.")))
    async with running(world) as (app, pilot):
        app.conversation.run_shell("exec sleep 300")
        assert app.conversation.cancel()
        await until(pilot, lambda: not app.conversation.busy)
        app.conversation.submit("and now?")
        await until(pilot, lambda: world.agent.sent == ["and now?"])


async def test_a_turn_stopped_before_its_first_step_is_not_sent() -> None:
    world = World()
    async with running(world) as (app, pilot):
        app.conversation.submit("never mind")
        assert app.conversation.cancel()
        await until(pilot, lambda: app.chat.prompt.text == "never mind")
        assert world.agent.sent == []
        assert not app.chat.busy


async def test_a_shell_command_sent_before_the_session_stands_keeps_its_output(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.scripts.append(turn(*answer("Yes.")))
    opens, app = threading.Event(), app_of(world)
    load = app._load  # pyright: ignore[reportPrivateUsage] - held until all is sent

    def later() -> Opening:
        opens.wait(PATIENCE_S)
        return load()

    app._load = later  # pyright: ignore[reportPrivateUsage]
    async with app.run_test() as pilot:
        with threads_held():
            for text in ("!echo one", "!echo two", "and now?"):
                app.chat.prompt.put(text)
                await pilot.press("enter")
        assert app.chat.queued.texts == ("!echo one", "!echo two", "and now?")
        opens.set()
        await until(pilot, lambda: session_open(app) and world.agent.sent == ["and now?"])
        assert [(item.label, item.preview) for item in items(app, ToolItem)] == [
            ("echo one", "one"),
            ("echo two", "two"),
        ]
        assert app.chat.queued.texts == ()
        assert app.chat.prompt.text == ""


async def test_a_shell_command_runs_where_no_session_can_be_opened(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.refusals.append(HoldfastError("The folder is away."))
    app = app_of(world)
    async with app.run_test() as pilot:
        app.chat.prompt.put("!echo one")
        await pilot.press("enter")
        await until(pilot, lambda: bool(items(app, ToolItem)) and not app.conversation.busy)
        app.conversation.run_shell("echo two")
        await until(pilot, lambda: not app.conversation.busy)
        assert [item.preview for item in items(app, ToolItem)] == ["one", "two"]
        assert app.chat.queued.texts == ()


async def test_deltas_of_a_failed_attempt_are_taken_back() -> None:
    world, hold = World(), Hold()
    retry = facts.RetryScheduled(1, 3, 4.0, "rate limited", 429, "rate_limit")
    world.scripts.append(
        turn(
            facts.TextDelta("half an ans"),
            facts.ToolInputDelta("t9", "read_file", '{"pa'),
            retry,
            hold,
            facts.RequestSent(1, 100, MODEL, 2),
            *answer("whole"),
        )
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.retry.display)
        assert app.chat.retry.remaining == 4
        world.clock.elapsed += 1.5
        app.chat.retry.tick()
        assert app.chat.retry.remaining == 3
        assert app.focused is app.chat.prompt
        hold.release()
        await until(pilot, lambda: not app.conversation.busy)
        assert [item.text for item in items(app, AssistantItem)] == ["whole"]
        assert items(app, ToolItem) == []
        (failed,) = items(app, AttemptItem)
        assert source(failed).startswith("attempt 1 failed: rate limited (429) · next after 4 s")
        assert failed.text == "half an ans"
        assert not app.chat.retry.display


async def test_a_tool_call_from_writing_to_its_result() -> None:
    world, hold = World(), Hold()
    world.scripts.append(
        turn(
            facts.ToolInputDelta("t1", "run_command", '{"command": "ls"}'),
            facts.AssistantMessage("", "tool_use", Usage(10, 5)),
            facts.ToolStarted("t1", "run_command", {"command": "ls"}, "ls"),
            facts.ToolOutputChunk("t1", "a.py\n"),
            facts.ToolOutputChunk("t1", "b.py\n"),
            hold,
            facts.ToolFinished("t1", "run_command", False, 0.2, None, "2 files", "a.py\nb.py"),
        )
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: "b.py" in app.chat.output.text)
        (item,) = items(app, ToolItem)
        assert (item.state, item.label) == ("running", "ls")
        assert "Run ls" in app.chat.side.rule.title.plain
        hold.release()
        await until(pilot, lambda: not app.conversation.busy)
        assert (item.state, item.summary, item.seconds) == ("ok", "2 files", 0.2)
        assert app.chat.output.text == "a.py\nb.py"


async def test_calls_that_wait_their_turn_name_what_they_are_about() -> None:
    async with running(World()) as (app, _):
        calls = ToolCalls(app.chat)
        written = [calls.write("t1", "run_command", '{"comm'), calls.write("t2", "read_file", "{")]
        assert calls.write("t1", "run_command", 'and": "pytest -q"}') is None
        for item in written:
            assert item
            app.chat.add(item)
        calls.written()
        assert [source(one) for one in items(app, ToolItem)] == ["Run pytest -q", "Read"]


async def test_a_call_of_a_tool_found_by_search_has_the_name_of_that_tool() -> None:
    async with running(World()) as (app, _):
        chat = app.chat
        calls = ToolCalls(chat)
        written = calls.write("t1", "call_tool", "")
        assert written is not None
        chat.add(written)
        calls.begin("t1", "mcp__shop__refund", {"id": 7}, "id=7")
        (item,) = items(app, ToolItem)
        assert title(item.name, item.label) == "shop: refund id=7"


async def test_calls_that_the_turn_left_open_are_shown_as_interrupted() -> None:
    world = World()
    started = facts.ToolStarted("t1", "run_command", {"command": "sleep 9"}, "sleep 9")
    world.scripts.append(turn(started, Hold()))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: bool(items(app, ToolItem)))
        await pilot.press("escape")
        await until(pilot, lambda: not app.conversation.busy)
        assert items(app, ToolItem)[0].state == "interrupted"


async def test_a_turn_that_failed_before_it_began_gives_the_prompt_back() -> None:
    world = World()
    world.scripts.append(
        [
            facts.ErrorRaised("unknown", "The disk is full.", True, "Free some space."),
            facts.TurnFinished("failed"),
        ]
    )
    async with running(world) as (app, pilot):
        await say(pilot, "precious words")
        await until(pilot, lambda: not app.conversation.busy)
        assert app.chat.prompt.text == "precious words"
        notice = items(app, NoticeItem)[-1]
        assert (notice.text, notice.hint) == ("The disk is full.", "Free some space.")
        assert notice.kind == "error"


async def test_the_words_of_a_server_end_before_the_hint_begins() -> None:
    world = World()
    told = facts.ErrorRaised("auth", "invalid x-api-key", True, "The same request fails again.")
    world.scripts.append([told, facts.TurnFinished("failed")])
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: bool(items(app, NoticeItem)))
        shown = source(items(app, NoticeItem)[-1])
        assert shown == "invalid x-api-key. The same request fails again."


async def test_a_turn_that_failed_later_does_not() -> None:
    world = World()
    world.scripts.append(turn(facts.TurnFinished("failed")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert app.chat.prompt.text == ""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ProviderError("network", "No connection.", hint="Try again."),
            "No connection. Try again.",
        ),
        (RuntimeError("a bug"), "Something went wrong (RuntimeError)."),
    ],
)
async def test_a_broken_agent_does_not_take_the_screen_with_it(error: Exception, said: str) -> None:
    world = World()
    world.scripts.append([error])
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: not app.conversation.busy)
        assert said in source(items(app, NoticeItem)[-1])
        assert app.chat.prompt.text == "go"
        assert not app.chat.busy
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.sent == ["go"])


async def test_figures_of_the_turn_reach_the_screen() -> None:
    world = World()
    for cost in (0.25, 0.5, None):
        measured = facts.ContextMeasured(
            41_000, 41_000, 0, 1_000_000, {}, "server", cache_share=0.97, cost_usd=cost
        )
        world.scripts.append(turn(measured, facts.TurnFinished("done", Usage(10, 5), cost)))
    async with running(world) as (app, pilot):
        for n, cost in enumerate((" · $0.25", " · $0.50", ""), start=1):
            await say(pilot, "go")
            await until(pilot, lambda n=n: app.chat.status.state.turns == n)
            meter = app.chat.left.meter.render()
            assert meter.plain.startswith(f"41k of 1M · cache 97 %{cost}  ━")


async def test_a_burst_of_ten_thousand_events_leaves_room_for_the_keys() -> None:
    world = World()
    world.scripts.append(turn(Burst(10_000)))
    async with running(world) as (app, _):
        rounds = 0
        app.conversation.submit("go")
        while app.chat.status.state.turns == 0:
            rounds += 1
            await asyncio.sleep(0)
        (item,) = items(app, AssistantItem)
        assert item.text == "".join(f"{number} " for number in range(10_000))
        assert rounds > 10_000 / BURST


async def test_old_objects_are_collected_once_no_key_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    world, rests = World(), list[float]()
    world.scripts.append(turn(*answer("Done.")))
    async with running(world) as (app, pilot):
        monkeypatch.setattr(gc_pause, "rest", lambda: rests.append(app.clock.monotonic()))
        await say(pilot, "hi you")
        await until(pilot, lambda: not app.conversation.busy)
        world.clock.elapsed = app.arrived_at + 1
        await until(pilot, lambda: bool(rests))
        assert rests == [app.arrived_at + 1]
