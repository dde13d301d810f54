"""The chat screen, driven by keys, with a scripted agent behind it."""

from __future__ import annotations

from typing import Any

import pytest
from textual import events as keys

from tests.screens.driving import NARROW, answer, running, say, turn, until
from tests.support.fake_agent import MODEL, Ask, FakeSession, Hold, World, record
from tui.agent import events
from tui.app import HoldfastApp
from tui.bridge import SessionChoice
from tui.commands import COMMANDS
from tui.errors import ProviderError, SessionError
from tui.messages import Usage
from tui.permissions.base import Answer, Call, Decision
from tui.screens.help import HelpScreen
from tui.widgets.approval import ApprovalModal
from tui.widgets.conversation.items import (
    AssistantItem,
    Item,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tui.widgets.keys import HELP

WRITE = Call("t1", "edit_file", "write", "a.py", None, ("a.py",), "diff", "--- a\n+++ a\n-1\n+2\n")
ASKED = Decision("ask", "it changes a file", "default", "standard")


def items(app: HoldfastApp, kind: type[Item]) -> list[Any]:
    return [item for item in app.chat.conversation.items if isinstance(item, kind)]


async def test_a_prompt_becomes_a_conversation() -> None:
    world = World()
    world.scripts.append(turn(events.ThinkingDelta("Hm."), *answer("Hello there.")))
    async with running(world) as (app, pilot):
        await say(pilot, "hi you")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert world.agent.sent == ["hi you"]
        assert app.chat.prompt.text == ""
        assert [item.text for item in items(app, UserItem)] == ["go"]
        assert [item.text for item in items(app, AssistantItem)] == ["Hello there."]
        (thinking,) = items(app, ThinkingItem)
        assert (thinking.text, thinking.streaming, thinking.folded) == ("Hm.", False, True)
        assert not app.chat.busy


async def test_shift_enter_and_ctrl_j_make_new_lines() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("a", "shift+enter", "b", "ctrl+j", "c")
        assert app.chat.prompt.text == "a\nb\nc"
        assert app.chat.prompt.size.height == 3


async def test_the_prompt_grows_to_eight_rows() -> None:
    async with running(World()) as (app, pilot):
        for _ in range(12):
            await pilot.press("x", "ctrl+j")
        await pilot.pause()
        assert app.chat.prompt.size.height == 8


async def test_nothing_is_sent_from_an_empty_prompt() -> None:
    world = World()
    async with running(world) as (_, pilot):
        await pilot.press("space", "enter")
        assert world.agent.sent == []


async def test_up_and_down_recall_what_was_sent() -> None:
    world = World()
    async with running(world) as (app, pilot):
        for text in ("one", "two"):
            await say(pilot, text)
            await until(pilot, lambda: not app.bridge.busy)
        await pilot.press("d")
        shown: list[str] = []
        for key in ("up", "up", "up", "down", "down"):
            await pilot.press(key)
            shown.append(app.chat.prompt.text)
        assert shown == ["two", "one", "one", "two", "d"]


async def test_history_is_kept_for_the_next_run_of_the_folder() -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, "remember me")
        await until(pilot, lambda: not app.bridge.busy)
    async with running(World()) as (app, pilot):
        await pilot.press("up")
        assert app.chat.prompt.text == "remember me"


async def test_a_paste_of_a_megabyte_is_one_word_and_sent_whole() -> None:
    world = World()
    text = "line of text\n" * 80_000
    async with running(world) as (app, pilot):
        await pilot.press("a", "space")
        app.chat.prompt.post_message(keys.Paste(text))
        await pilot.pause()
        assert app.chat.prompt.text.startswith("a [paste 1: 80,001 lines, ")
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.agent.sent))
        assert world.agent.sent == ["a " + text]


async def test_a_short_paste_stays_as_it_is() -> None:
    async with running(World()) as (app, pilot):
        app.chat.prompt.post_message(keys.Paste("two\r\nlines"))
        await pilot.pause()
        assert app.chat.prompt.text == "two\nlines"


async def test_what_is_typed_meanwhile_is_queued_and_shown() -> None:
    world, hold = World(), Hold()
    world.scripts.append(turn(hold, *answer("done")))
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: app.bridge.busy)
        await say(pilot, "and then")
        assert world.agent.steered == ["and then"]
        assert app.chat.queued.texts == ("and then",)
        assert app.chat.queued.display
        hold.release()
        await until(pilot, lambda: world.agent.sent == ["work", "and then"])
        await until(pilot, lambda: not app.bridge.busy)
        assert not app.chat.queued.display


async def test_escape_stops_and_gives_back_what_was_queued() -> None:
    world = World()
    world.scripts.append(turn(events.TextDelta("I am"), Hold()))
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: bool(items(app, AssistantItem)))
        await say(pilot, "later")
        await pilot.press("escape")
        await until(pilot, lambda: not app.bridge.busy)
        assert [item.streaming for item in items(app, AssistantItem)] == [False]
        assert "Stopped" in items(app, NoticeItem)[-1].text
        assert app.chat.prompt.text == "later"
        assert not app.chat.busy


async def test_ctrl_c_stops_then_clears_then_quits() -> None:
    world = World()
    world.scripts.append(turn(Hold()))
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: app.bridge.busy)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.bridge.busy)
        await pilot.press("x", "ctrl+c")
        assert app.chat.prompt.text == ""
        await pilot.press("ctrl+c")
        assert "again to quit" in app.chat.notice.text
        world.clock.elapsed += 3
        await pilot.press("ctrl+c")
        assert app.is_running
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert world.agent.closed
    assert app.return_code == 0


async def test_what_ctrl_c_cleared_comes_back_with_up() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("l", "o", "s", "t", "ctrl+c", "up")
        assert app.chat.prompt.text == "lost"


async def test_ctrl_d_quits_only_when_the_prompt_is_empty() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await pilot.press("a", "b", "left", "ctrl+d")
        assert app.chat.prompt.text == "a"
        await pilot.press("backspace", "ctrl+d")
        await until(pilot, lambda: world.agent.closed)


async def test_deltas_of_a_failed_attempt_are_taken_back() -> None:
    world, hold = World(), Hold()
    retry = events.RetryScheduled(1, 3, 4.0, "rate limited", 429, "rate_limit")
    world.scripts.append(
        turn(
            events.TextDelta("half an ans"),
            events.ToolInputDelta("t9", "read_file", '{"pa'),
            retry,
            hold,
            events.RequestSent(1, 100, MODEL, 2),
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
        await until(pilot, lambda: not app.bridge.busy)
        assert [item.text for item in items(app, AssistantItem)] == ["whole"]
        assert items(app, ToolItem) == []
        assert "rate limited · retry 1 of 3 in 4 s" in items(app, NoticeItem)[0].text
        assert not app.chat.retry.display


async def test_a_tool_call_from_writing_to_its_result() -> None:
    world, hold = World(), Hold()
    world.scripts.append(
        turn(
            events.ToolInputDelta("t1", "run_command", '{"command": "ls"}'),
            events.AssistantMessage("", "tool_use", Usage(10, 5)),
            events.ToolStarted("t1", "run_command", {"command": "ls"}, "ls"),
            events.ToolOutputChunk("t1", "a.py\n"),
            events.ToolOutputChunk("t1", "b.py\n"),
            hold,
            events.ToolFinished("t1", "run_command", False, 0.2, None, "2 files", "a.py\nb.py"),
        )
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: "b.py" in app.chat.output.text)
        (item,) = items(app, ToolItem)
        assert (item.state, item.label) == ("running", "ls")
        assert "run_command ls" in app.chat.output_rule.title.plain
        hold.release()
        await until(pilot, lambda: not app.bridge.busy)
        assert (item.state, item.summary, item.seconds) == ("ok", "2 files", 0.2)
        assert app.chat.output.text == "a.py\nb.py"


async def test_a_selected_tool_call_shows_its_output_again() -> None:
    world = World()
    world.scripts.append(
        turn(
            *(
                step
                for n in ("1", "2")
                for step in (
                    events.ToolStarted(n, "read_file", {"path": n}, f"{n}.py"),
                    events.ToolFinished(n, "read_file", False, 0.1, None, "", f"text of {n}"),
                )
            )
        )
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert app.chat.output.text == "text of 2"
        app.chat.conversation.focus()
        await until(pilot, lambda: app.focused is app.chat.conversation)
        await pilot.press("up", "up")
        await until(pilot, lambda: app.chat.output.text == "text of 1")


async def test_calls_that_the_turn_left_open_are_shown_as_interrupted() -> None:
    world = World()
    started = events.ToolStarted("t1", "run_command", {"command": "sleep 9"}, "sleep 9")
    world.scripts.append(turn(started, Hold()))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: bool(items(app, ToolItem)))
        await pilot.press("escape")
        await until(pilot, lambda: not app.bridge.busy)
        assert items(app, ToolItem)[0].state == "interrupted"


async def test_k47_elevated_is_shown_and_marks_the_calls_it_let_through() -> None:
    world = World()
    world.scripts.append(
        turn(
            events.DirectivesChanged(think=False, verbose=False, elevated=True),
            events.ToolStarted("t1", "run_command", {"command": "make"}, "make"),
            events.PermissionAnswered("t1", "run_command", "allow", "elevated"),
            events.ToolFinished("t1", "run_command", False, 1.0, None, "built", "ok"),
        )
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert app.chat.header.state.elevated
        assert items(app, ToolItem)[0].summary == "ELEVATED · built"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("1", Answer("once")),
        ("2", Answer("session")),
        ("3", Answer("always")),
        ("escape", Answer("no")),
    ],
)
async def test_an_approval_is_answered_by_one_key(key: str, expected: Answer) -> None:
    world = World()
    world.scripts.append(turn(Ask(WRITE, ASKED), *answer("done")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        world.clock.elapsed += 0.6
        await pilot.press(key)
        await until(pilot, lambda: not app.bridge.busy)
        assert world.agent.answers == [expected]


async def test_a_no_with_its_reason() -> None:
    world = World()
    world.scripts.append(turn(Ask(WRITE, ASKED), *answer("done")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        world.clock.elapsed += 0.6
        await pilot.press("4", "n", "o", "t", "space", "1", "enter")
        await until(pilot, lambda: not app.bridge.busy)
        assert world.agent.answers == [Answer("no", "not 1")]


async def test_escape_leaves_the_reason_before_it_refuses() -> None:
    world = World()
    world.scripts.append(turn(Ask(WRITE, ASKED)))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        world.clock.elapsed += 0.6
        await pilot.press("4", "x", "escape", "1")
        await until(pilot, lambda: not app.bridge.busy)
        assert world.agent.answers == [Answer("once")]


async def test_a_key_meant_for_the_prompt_never_approves() -> None:
    world = World()
    world.scripts.append(turn(Ask(WRITE, ASKED)))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        for key in ("1", "2", "escape"):
            world.clock.elapsed += 0.4
            await pilot.press(key)
        assert isinstance(app.screen, ApprovalModal)
        assert app.chat.prompt.text == "12"
        world.clock.elapsed += 0.5
        await pilot.press("2")
        await until(pilot, lambda: not app.bridge.busy)
        assert world.agent.answers == [Answer("session")]


async def test_an_approval_is_answered_by_the_mouse() -> None:
    world = World()
    world.scripts.append(turn(Ask(WRITE, ASKED)))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await pilot.click("#always")
        assert world.agent.answers == []
        world.clock.elapsed += 0.6
        await pilot.click("#always")
        await until(pilot, lambda: not app.bridge.busy)
        assert world.agent.answers == [Answer("always")]


@pytest.mark.parametrize("kind", ["command", "diff", "text"])
async def test_all_of_a_long_question_can_be_seen_and_its_answers_too(kind: Any) -> None:
    text = f"--- a\n+++ a\n+{'x' * 200} TAIL\n"
    if kind != "diff":
        text = f"echo {'word ' * 60}; rm -rf TAIL"
    world = World()
    call = Call("t1", "run_command", "run", text, text, (), kind, text)
    long = Call("t2", "run_command", "run", text, text, (), kind, text * 40)
    world.scripts.append(turn(Ask(call, ASKED), Ask(long, ASKED)))
    async with running(world, NARROW) as (app, pilot):
        await say(pilot, "go")
        for asked in (call, long):
            await until(pilot, lambda asked=asked: getattr(app.screen, "call", None) is asked)
            preview = app.screen.query_one("#preview")
            assert preview.children[0].region.right <= app.screen.region.right
            assert app.screen.query_one("#refuse").region in app.screen.region
            if asked is call:
                shown = "".join(
                    strip.text
                    for strip in preview.children[0].render_lines(preview.children[0].size.region)
                )
                assert "TAIL" in shown
            else:
                assert preview.max_scroll_y > 0
                await pilot.press("end")
                await until(pilot, lambda p=preview: p.scroll_y == p.max_scroll_y)
            world.clock.elapsed += 0.6
            await pilot.press("1")
        await until(pilot, lambda: not app.bridge.busy)


async def test_an_escape_sequence_in_a_question_is_spelt_out() -> None:
    world = World()
    evil = "ls\x1b[2K\rrm -rf ~"
    world.scripts.append(
        turn(Ask(Call("t1", "run_command", "run", evil, evil, (), "command", evil), ASKED))
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        assert "ls\\x1b[2K\\x0drm -rf ~" in str(app.screen.query_one("#preview Static").render())


async def test_stopping_the_turn_takes_the_question_away() -> None:
    world = World()
    world.scripts.append(turn(Ask(WRITE, ASKED)))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.bridge.busy)
        assert app.screen is app.chat
        assert world.agent.answers == []


async def test_an_unknown_command_keeps_what_was_typed() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "/modle x")
        assert app.chat.prompt.text == "/modle x"
        assert "There is no /modle. Did you mean /model?" in app.chat.notice.text
        assert world.agent.sent == []
        await pilot.press("y")
        assert app.chat.notice.text == ""


@pytest.mark.parametrize("text", ["/usr/bin/x is broken", " /modle x", "/", "//"])
async def test_what_is_no_command_is_sent(text: str) -> None:
    world = World()
    async with running(world) as (_, pilot):
        await say(pilot, text)
        await until(pilot, lambda: world.agent.sent == [text])


@pytest.mark.parametrize("text", ["/think", "/think /verbose look at it", "/elevated off"])
async def test_directives_go_to_the_agent_as_typed(text: str) -> None:
    world = World()
    async with running(world) as (_, pilot):
        await say(pilot, text)
        await until(pilot, lambda: world.agent.sent == [text])


async def test_f12_switches_verbose_on_and_off() -> None:
    world = World()
    world.scripts.append([events.DirectivesChanged(think=False, verbose=True, elevated=False)])
    async with running(world) as (app, pilot):
        await pilot.press("f12")
        await until(pilot, lambda: app.chat.header.state.verbose)
        await until(pilot, lambda: not app.bridge.busy)
        await pilot.press("f12")
        await until(pilot, lambda: world.agent.sent == ["/verbose on", "/verbose off"])


async def test_a_turn_that_failed_before_it_began_gives_the_prompt_back() -> None:
    world = World()
    world.scripts.append(
        [
            events.ErrorRaised("unknown", "The disk is full.", True, "Free some space."),
            events.TurnFinished("failed"),
        ]
    )
    async with running(world) as (app, pilot):
        await say(pilot, "precious words")
        await until(pilot, lambda: not app.bridge.busy)
        assert app.chat.prompt.text == "precious words"
        assert items(app, NoticeItem)[-1].text == "The disk is full. Free some space."
        assert items(app, NoticeItem)[-1].kind == "error"


async def test_a_turn_that_failed_later_does_not() -> None:
    world = World()
    world.scripts.append(turn(events.TurnFinished("failed")))
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
        await until(pilot, lambda: not app.bridge.busy)
        assert said in items(app, NoticeItem)[-1].text
        assert app.chat.prompt.text == "go"
        assert not app.chat.busy
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.sent == ["go", "go"])


async def test_figures_of_the_turn_reach_the_status_line() -> None:
    world = World()
    for cost in (0.25, 0.5, None):
        world.scripts.append(turn(events.TurnFinished("done", Usage(10, 5), cost)))
    async with running(world) as (app, pilot):
        for n, cost in enumerate((0.25, 0.75, None), start=1):
            await say(pilot, "go")
            await until(pilot, lambda n=n: app.chat.status.state.turns == n)
            assert app.chat.status.state.cost_usd == cost


async def test_storage_trouble_is_shown_until_it_is_over() -> None:
    world, hold = World(), Hold()
    broken, mended = events.StorageChanged(False, "no space left"), events.StorageChanged(True)
    world.scripts.append(turn(broken, hold, mended))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.trouble == "no space left")
        hold.release()
        await until(pilot, lambda: not app.bridge.busy)
        assert app.chat.status.state.trouble == ""


async def test_todos_live_while_something_is_open() -> None:
    world, hold = World(), Hold()
    todo = {"text": "test it", "status": "in_progress"}
    done = todo | {"status": "completed"}
    world.scripts.append(turn(events.TodosChanged((todo,)), hold, events.TodosChanged((done,))))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.todos.display)
        hold.release()
        await until(pilot, lambda: not app.bridge.busy)
        assert not app.chat.todos.display


async def test_shift_tab_goes_through_the_modes() -> None:
    world = World()
    async with running(world) as (app, pilot):
        seen: list[str] = []
        for _ in range(3):
            await pilot.press("shift+tab")
            seen.append(world.agent.mode)
        assert seen == ["accept_edits", "plan", "ask"]
        await pilot.press("shift+tab")
        assert app.chat.prompt_rule.right.plain == "accepts edits"


async def test_f4_folds_the_side_and_opens_it_over_on_narrow_screens() -> None:
    async with running(World()) as (app, pilot):
        side, left = app.chat.query_one("#side"), app.chat.query_one("#left")
        assert side.display
        await pilot.press("f4")
        assert not side.display
    async with running(World(), NARROW) as (app, pilot):
        side, left = app.chat.query_one("#side"), app.chat.query_one("#left")
        assert not side.display
        assert app.chat.query_one("#meter-line").display
        await pilot.press("f4")
        assert side.display
        assert not left.display
        await pilot.press("escape")
        assert left.display


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (100, 30), (80, 24), (60, 20)])
async def test_nothing_is_clipped_at_any_size(size: tuple[int, int]) -> None:
    async with running(World(), size) as (app, _):
        screen = app.chat.region
        for widget in app.chat.query("*"):
            if widget.display and widget.region.area and widget.parent is not app.chat.prompt:
                assert widget.region in screen, widget
        assert app.chat.status.region.bottom == size[1]
        assert app.chat.prompt.region.height == 1


async def test_typing_reaches_the_prompt_from_anywhere() -> None:
    async with running(World()) as (app, pilot):
        app.chat.output.focus()
        await pilot.pause()
        await pilot.press("Z")
        assert app.chat.prompt.text == "Z"
        assert app.focused is app.chat.prompt


async def test_keys_of_the_pane_stay_with_the_pane() -> None:
    async with running(World()) as (app, pilot):
        app.chat.show_output("x", "line\n" * 100)
        app.chat.output.focus()
        await pilot.pause()
        await pilot.press("g")
        assert app.chat.prompt.text == ""


async def test_the_end_stays_in_sight_when_rows_around_it_come_and_go() -> None:
    async with running(World()) as (app, pilot):
        for n in range(60):
            app.chat.add(NoticeItem(f"line {n}"))
        await until(pilot, lambda: app.chat.conversation.max_scroll_y > 0)
        for texts in (("a", "b"), (), ("c",), ()):
            app.chat.queued.texts = texts
            await pilot.pause()
            await pilot.pause()
            assert app.chat.conversation.following
        await pilot.resize_terminal(*NARROW)
        await pilot.pause()
        assert app.chat.conversation.following


async def test_sending_goes_to_the_end() -> None:
    async with running(World()) as (app, pilot):
        for n in range(60):
            app.chat.add(NoticeItem(f"line {n}"))
        await until(pilot, lambda: app.chat.conversation.max_scroll_y > 0)
        await pilot.press("pageup")
        await until(pilot, lambda: not app.chat.conversation.following)
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.conversation.following)


async def test_what_is_typed_before_the_session_stands_is_sent_then() -> None:
    world = World()
    async with running(world, prompt="first") as (_, pilot):
        await until(pilot, lambda: world.agent.sent == ["first"])


async def test_a_session_is_resumed_with_all_that_was_said() -> None:
    world = World()
    world.add_row("the old one", hours=2)
    path = world.rows[0].path
    old = [
        record("user", 1, content=[{"type": "text", "text": "hello"}], text="hello"),
        record("assistant", 2, content=[{"type": "text", "text": "Hi."}]),
    ]
    world.old[path] = FakeSession(path=path, records=old, title="the old one")
    async with running(world) as (app, pilot):
        await pilot.press("f3")
        await until(pilot, lambda: app.screen is not app.chat)
        await pilot.press("o", "l", "d", "enter")
        await until(pilot, lambda: len(world.agents) == 2)
        await until(pilot, lambda: app.chat.header.state.title == "the old one")
        assert world.chosen[-1] == SessionChoice(path)
        assert world.agents[0].closed
        shown = [*items(app, UserItem), *items(app, AssistantItem)]
        assert [item.text for item in shown] == ["hello", "Hi."]
        assert app.chat.status.state.turns == 1


async def test_new_begins_anew_and_closes_the_old_session() -> None:
    world = World()
    world.scripts.append(turn(*answer("x")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        await say(pilot, "/new")
        await until(pilot, lambda: len(world.agents) == 2)
        await until(pilot, lambda: not app.chat.conversation.items)
        assert world.agents[0].closed
        assert app.chat.status.state.turns == 0


async def test_a_session_that_cannot_be_opened_leaves_the_one_that_is() -> None:
    world = World()
    async with running(world) as (app, pilot):
        world.refusals.append(SessionError("It is open elsewhere.", hint="Close it there."))
        await say(pilot, "/new")
        await until(pilot, lambda: "open elsewhere" in app.chat.notice.text)
        assert not world.agent.closed
        await say(pilot, "still here")
        await until(pilot, lambda: world.agent.sent == ["still here"])


async def test_a_resumed_session_that_cannot_be_opened_falls_back_to_a_new_one() -> None:
    world = World()
    world.add_row("gone", hours=1)
    world.refusals.append(SessionError("It cannot be read."))
    async with running(world, choice=SessionChoice(world.rows[0].path)) as (app, pilot):
        await until(pilot, lambda: len(world.agents) == 1)
        assert "cannot be read" in app.chat.notice.text
        assert [choice.path for choice in world.chosen] == [world.rows[0].path, None]


async def test_model_shows_and_switches() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "/model")
        assert MODEL in app.chat.notice.text
        await say(pilot, "/model claude-opus-5-5")
        await until(pilot, lambda: world.agent.model == "claude-opus-5-5")
        assert app.chat.header.state.model == "claude-opus-5-5"


async def test_theme_switches_and_is_kept() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "/theme daylight")
        await until(pilot, lambda: app.theme == "daylight")
        assert world.themes_saved == ["daylight"]
        await say(pilot, "/theme mauve")
        await until(pilot, lambda: "no such theme" in app.chat.notice.text)
        assert app.theme == "daylight"


async def test_copy_takes_the_last_answer() -> None:
    world = World()
    world.scripts.append(turn(*answer("**the** answer")))
    async with running(world) as (app, pilot):
        await say(pilot, "/copy")
        assert "no answer" in app.chat.notice.text
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        await say(pilot, "/copy")
        assert app.clipboard == "**the** answer"


@pytest.mark.parametrize("text", ["/status", "/usage"])
async def test_reports_stand_in_the_conversation(text: str) -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, text)
        report = items(app, NoticeItem)[-1]
        assert len(report.detail.splitlines()) >= 5
        assert not report.folded


async def test_the_shell_runs_what_follows_an_exclamation_mark(tmp_path: Any) -> None:
    world = World(tmp_path)
    async with running(world) as (app, pilot):
        await say(pilot, "!printf 'one two'")
        await until(pilot, lambda: bool(items(app, ToolItem)))
        (item,) = items(app, ToolItem)
        for _ in range(100):
            if item.state != "running":
                break
            await pilot.pause(0.02)
        assert item.state == "ok"
        assert app.chat.output.text == "one two"
        assert "not shown to the model" in item.summary
        assert world.agent.sent == []


async def test_help_is_made_from_the_tables() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        text = str(app.screen.query_one("Static").render())
        for command in COMMANDS:
            assert f"/{command.name}" in text
        for _, table in HELP:
            assert all(key.shown in text for key in table)
        await pilot.press("escape")
        assert app.screen is app.chat


async def test_tool_text_is_never_markup() -> None:
    world = World()
    evil = "[bold red]x[/] [@click=app.quit]here[/]"
    world.scripts.append(
        turn(
            events.TodosChanged(({"text": evil, "status": "pending"},)),
            events.ToolStarted("t1", "run_command", {"command": evil}, evil),
            events.ToolOutputChunk("t1", evil),
            events.Notice(evil),
            Hold(),
        )
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: bool(items(app, NoticeItem)))
        assert evil in app.chat.output_rule.title.plain
        assert evil in app.chat.todos.render().plain
        assert app.chat.output.text == evil
