"""What is going on, over the prompt: the seconds are never what has no room."""

from __future__ import annotations

import re

import pytest

from tests.support.script import MODEL, Ask, Hold, Step
from tests.support.world import World
from tests.ui.screens.driving import items, running, say, turn, until
from tui.core import facts
from tui.core.messages import Usage
from tui.permissions.types import Call, Decision
from tui.ui.widgets.conversation.items import ToolItem


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
async def test_a_long_phase_gives_way_to_the_seconds_and_the_mode(size: tuple[int, int]) -> None:
    world = World()
    world.scripts.append(turn(Hold()))
    async with running(world, size) as (app, pilot):
        await say(pilot, "go")
        rule = app.chat.prompt_rule
        await until(pilot, lambda: "waiting for" in rule.title.plain)
        world.clock.elapsed += 4.5
        await until(pilot, lambda: " 4 s" in rule.render().plain)
        world.clock.elapsed += 8
        await until(pilot, lambda: " 12 s" in rule.render().plain)
        assert "waiting for" in rule.render().plain
        assert "ask first" in rule.render().plain
        assert ("nothing received for 12 s" in rule.render().plain) == (size[0] > 60)


def began(id_: str, name: str) -> Step:
    return facts.ToolStarted(id_, name, {})


def ended(id_: str, name: str) -> Step:
    return facts.ToolFinished(id_, name, False, 0.1, None)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
async def test_the_tokens_so_far_stand_beside_the_seconds_and_move_nothing(width: int) -> None:
    world = World()
    holds = [Hold() for _ in range(6)]
    busy = facts.RetryScheduled(1, 3, 0.0, "busy", 529, "overloaded")
    world.scripts.append(
        turn(
            *(facts.ThinkingDelta("x" * 400), holds[0], facts.TextDelta("é" * 1000), holds[1]),
            *(facts.TextDelta("y" * 4000), holds[2]),
            *(facts.AssistantMessage("é", "tool_use", Usage(1000, 9_500)), began("1", "x")),
            *(holds[3], ended("1", "x"), facts.RequestSent(2, 100, MODEL, 1)),
            *(facts.TextDelta("z" * 40_000), holds[4], busy, facts.RequestSent(2, 9, MODEL, 2)),
            *(holds[5], facts.AssistantMessage("zz", "end_turn", Usage(1000, 2))),
        )
    )
    figures = ("100", "600", "1.6k", "9.5k", "19.5k", "9.5k")
    seconds = (3, 3, 3, 0, 3, 3)  # those of the call while one runs
    places = set[int]()
    async with running(world, (width, 20)) as (app, pilot):
        await say(pilot, "go")
        rule = app.chat.prompt_rule
        world.clock.elapsed += 3
        for hold, passed, tokens in zip(holds, seconds, figures, strict=True):
            title = f" {passed} s · {tokens} tokens " if width > 40 else f" {passed} s  "
            await until(pilot, lambda: title in rule.title.plain)  # noqa: B023 - awaited at once
            phase = re.search("thinking|answering|waiting|x$", rule.title.plain)
            assert phase, rule.title.plain
            places.add(phase.start())
            hold.release()
        await until(pilot, lambda: not app.conversation.busy)
        assert rule.title.plain == ""
        world.scripts.append(turn(hold := Hold()))
        await say(pilot, "again")
        await until(pilot, lambda: "waiting" in rule.title.plain)
        assert "tokens" not in rule.title.plain  # of this turn
        hold.release()
    assert len(places) == 1


async def test_it_names_a_call_that_runs_and_counts_the_others() -> None:
    world = World()
    holds = [Hold() for _ in range(5)]
    world.scripts.append(
        turn(
            *(began("1", "grep_search"), began("2", "run_command"), began("3", "find_files")),
            holds[0],
            ended("1", "grep_search"),
            holds[1],
            facts.PermissionAsked("3", "find_files", "why"),
            holds[2],
            facts.PermissionAnswered("3", "find_files", "no", "person"),
            holds[3],
            *(ended("2", "run_command"), ended("3", "find_files")),
            holds[4],
        )
    )
    phases = [  # calls of one answer begin in any order
        "(Search|Run|find_files) and 2 more",
        "(Run|find_files) and 1 more",
        "waiting for your answer",
        "Run",
        "(working|waiting for claude-sonnet-5-5)",
    ]
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        for hold, phase in zip(holds, phases, strict=True):
            shown = re.compile(f"  {phase}$").search  # behind the figures
            await until(pilot, lambda: bool(shown(app.chat.prompt_rule.title.plain)))  # noqa: B023 - awaited at once
            hold.release()


async def test_its_seconds_are_those_of_the_card_while_a_command_runs() -> None:
    world, thinks, runs = World(), Hold(), Hold()
    begins = facts.ToolStarted("1", "run_command", {}, "pytest -q")
    world.scripts.append(turn(thinks, begins, runs, ended("1", "run_command")))
    async with running(world) as (app, pilot):

        def title() -> str:
            return app.chat.prompt_rule.title.plain

        await say(pilot, "go")
        await until(pilot, lambda: "waiting for" in title())
        world.clock.elapsed += 26
        await until(pilot, lambda: " 26 s  " in title())
        thinks.release()
        await until(pilot, lambda: "pytest -q" in title())
        world.clock.elapsed += 2
        await until(pilot, lambda: " 2 s · " in title())
        (card,) = items(app, ToolItem)
        await until(pilot, lambda: card.seconds == 2)
        runs.release()


async def test_beside_a_countdown_nothing_counts_up() -> None:
    world, waits = World(), Hold()
    retry = facts.RetryScheduled(1, 3, 30.0, "Overloaded", 529, "overloaded")
    world.scripts.append(turn(retry, waits))
    async with running(world) as (app, pilot):

        def title() -> str:
            return app.chat.prompt_rule.title.plain

        await say(pilot, "go")
        await until(pilot, lambda: "waiting to retry" in title())
        world.clock.elapsed += 4
        await until(pilot, lambda: "in 26 s" in str(app.chat.retry.render()))
        await pilot.pause(0.6)
        assert title().endswith("waiting to retry")
        waits.release()


async def test_a_call_that_is_written_waits_its_turn() -> None:
    world = World()
    first = Hold()
    call = Call("1", "edit_file", "write", "a.py")
    world.scripts.append(
        turn(
            facts.ToolInputDelta("1", "edit_file", "{"),
            facts.ToolInputDelta("2", "edit_file", "{"),
            first,
            facts.AssistantMessage("", "tool_use", Usage()),
            began("1", "edit_file"),
            Ask(call, Decision("ask", "why", "default")),
        )
    )
    async with running(world) as (app, pilot):

        def states() -> list[str]:
            return [item.state for item in items(app, ToolItem)]

        await say(pilot, "go")
        await until(pilot, lambda: states() == ["writing", "writing"])
        first.release()
        await until(pilot, lambda: states() == ["waiting", "written"])
        assert app.conversation.cancel()
        await until(pilot, lambda: states() == ["interrupted", "interrupted"])


async def test_K43_what_is_asked_is_said_as_it_holds() -> None:
    world = World()
    for on in (True, False):
        world.scripts.append([facts.DirectivesChanged(False, False, on)])
    async with running(world) as (app, pilot):

        def label() -> str:
            return app.chat.prompt_rule.right.plain

        assert label() == "ask first"
        await say(pilot, "/elevated on")
        await until(pilot, lambda: label() == "no prompts")
        await pilot.press("shift+tab")
        assert label() == "no prompts"
        await pilot.press("shift+tab")
        assert label() == "plan: read-only"  # which no elevation lifts
        await pilot.press("shift+tab")
        assert label() == "no prompts"
        await until(pilot, lambda: not app.conversation.busy)
        await say(pilot, "/elevated off")
        await until(pilot, lambda: label() == "ask first")
