"""The model's questions on the screen: answered by keys, clicks and words, never by accident."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.world import World
from tests.ui.screens.driving import WIDE, answer, items, running, say, turn, until
from tui.core import facts
from tui.core.questions import Alternative, AnswerChoice, UserAnswer, UserQuestion
from tui.ui.app import HoldfastApp
from tui.ui.toolkit.answer_guard import TYPING_S
from tui.ui.widgets.conversation.items import ToolItem
from tui.ui.widgets.questionnaire import AnswerRow, QuestionnaireModal

DATABASE = {
    "header": "Database",
    "question": "Which database should the service use?",
    "choices": [
        {"label": "SQLite", "description": "One file, nothing to run"},
        {"label": "PostgreSQL", "description": "A server, many writers"},
    ],
}
EXTRAS = {
    "header": "Extras",
    "question": "Which extras?",
    "several": True,
    "choices": [{"label": "Lint"}, {"label": "Types"}, {"label": "Docs"}],
}


@asynccontextmanager
async def asked(
    *questions: dict[str, Any], size: tuple[int, int] = WIDE
) -> AsyncGenerator[tuple[World, HoldfastApp, Pilot[None]]]:
    world = World()
    called = facts.ToolStarted("q1", "ask_user", {"questions": list(questions)})
    world.scripts.append(turn(called, *answer("done")))
    async with running(world, size) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, QuestionnaireModal))
        yield world, app, pilot


def title(app: HoldfastApp) -> str:
    return Content.from_markup(app.screen.query_one("#box").border_title or "").plain


async def press(world: World, pilot: Pilot[None], *keys: str) -> None:
    """Keys that count: nothing was typed for a while before them."""
    world.clock.elapsed += 1
    await pilot.press(*keys)


def given(world: World) -> list[tuple[list[str], str]]:
    """What the record says of the answers."""
    details = [
        one.data["details"] for one in world.agent.session.records if one.type == "tool_result"
    ]
    return [(one["chosen"], one["text"]) for one in details[0]["answers"]]


async def ended(app: HoldfastApp, pilot: Pilot[None]) -> None:
    await until(pilot, lambda: app.screen is app.chat and not app.conversation.busy)


NONE: list[str] = []


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["1"], (["SQLite"], "")),
        (["enter"], (["SQLite"], "")),
        (["2"], (["PostgreSQL"], "")),
        (["down", "enter"], (["PostgreSQL"], "")),
        (["down", "space"], (["PostgreSQL"], "")),
        (["3", *"mysql", "enter"], (NONE, "mysql")),
        (["up", "enter", *"mysql", "enter"], (NONE, "mysql")),
        (["3", *"my", "escape", "2"], (["PostgreSQL"], "")),
        (["escape"], (NONE, "")),
    ],
)
async def test_one_question(keys: list[str], expected: tuple[list[str], str]) -> None:
    async with asked(DATABASE) as (world, app, pilot):
        assert title(app) == "Database"
        await press(world, pilot, *keys)
        await ended(app, pilot)
        assert given(world) == [expected]
        (card,) = items(app, ToolItem)
        assert (card.state, card.label) == ("ok", "Which database should the service use?")
        assert card.summary == (
            ", ".join(filter(None, (*expected[0], expected[1]))) or "not answered"
        )


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["1", "3", "enter"], (["Lint", "Docs"], "")),
        (["space", "down", "space", "enter"], (["Lint", "Types"], "")),
        (["1", "1", "2", "enter"], (["Types"], "")),
        (["down", "enter"], (["Types"], "")),
        (["2", "4", *"mypy", "enter"], (["Types"], "mypy")),
    ],
)
async def test_several_may_be_chosen(keys: list[str], expected: tuple[list[str], str]) -> None:
    async with asked(EXTRAS) as (world, app, pilot):
        await press(world, pilot, *keys)
        await ended(app, pilot)
        assert given(world) == [expected]


async def test_questions_follow_each_other_and_one_can_return() -> None:
    async with asked(DATABASE, EXTRAS) as (world, app, pilot):
        assert title(app) == "Database · 1 of 2"
        await press(world, pilot, "1")
        await until(pilot, lambda: title(app) == "Extras · 2 of 2")
        await until(pilot, lambda: len(app.screen.query(AnswerRow)) == 4)
        await press(world, pilot, "left")
        await until(pilot, lambda: title(app) == "Database · 1 of 2")
        await press(world, pilot, "2")
        await until(pilot, lambda: title(app) == "Extras · 2 of 2")
        await press(world, pilot, "1", "enter")
        await ended(app, pilot)
        assert given(world) == [(["PostgreSQL"], ""), (["Lint"], "")]


async def test_esc_keeps_what_was_answered_before() -> None:
    async with asked(DATABASE, EXTRAS) as (world, app, pilot):
        await press(world, pilot, "1")
        await until(pilot, lambda: title(app) == "Extras · 2 of 2")
        await press(world, pilot, "escape")
        await ended(app, pilot)
        assert given(world) == [(["SQLite"], ""), ([], "")]


async def test_what_was_typed_for_the_prompt_goes_there_and_answers_nothing() -> None:
    async with asked(DATABASE) as (world, app, pilot):
        await pilot.press("1", "2", "enter", "escape", "x")
        await pilot.pause()
        assert isinstance(app.screen, QuestionnaireModal)
        assert app.chat.prompt.value == "12x"
        world.clock.elapsed += TYPING_S
        await press(world, pilot, "2")
        assert isinstance(app.screen, QuestionnaireModal)
        await press(world, pilot, "2")
        await ended(app, pilot)
        assert given(world) == [(["PostgreSQL"], "")]


async def test_a_key_that_is_held_does_not_answer_the_next_question() -> None:
    async with asked(DATABASE, DATABASE) as (world, app, pilot):
        await press(world, pilot, "1")
        await until(pilot, lambda: title(app) == "Database · 2 of 2")
        await pilot.press("1", "1")
        await pilot.pause()
        assert isinstance(app.screen, QuestionnaireModal)
        assert app.chat.prompt.value == ""
        await press(world, pilot, "2")
        await press(world, pilot, "2")
        await ended(app, pilot)
        assert given(world) == [(["SQLite"], ""), (["PostgreSQL"], "")]


async def test_a_click_answers() -> None:
    async with asked(DATABASE) as (world, app, pilot):
        world.clock.elapsed += 1
        await pilot.click("#choice-2")
        await ended(app, pilot)
        assert given(world) == [(["PostgreSQL"], "")]


async def test_ctrl_c_stops_the_turn_and_takes_the_question_away() -> None:
    async with asked(DATABASE) as (world, app, pilot):
        await press(world, pilot, "ctrl+c")
        await ended(app, pilot)
        (card,) = items(app, ToolItem)
        assert card.state == "interrupted"
        await until(pilot, lambda: app.chat.query_one("#body").styles.margin.bottom == 0)


@pytest.mark.parametrize("size", [(40, 10), (80, 24), (300, 100)])
async def test_all_of_it_can_be_reached_on_any_screen(size: tuple[int, int]) -> None:
    choices = [{"label": f"Choice {n}", "description": f"{n} word" * 12} for n in range(6)]
    long = {"header": "Long", "question": "Why? " * 60, "choices": choices}
    async with asked(long, size=size) as (world, app, pilot):
        await pilot.pause()
        assert app.screen.query_one("#box").region in app.screen.region
        assert "Why?" in str(app.screen.query_one("#text", Static).content)
        await press(world, pilot, "up")  # to the last row
        row = app.screen.query_one("#own")
        await until(pilot, lambda: row.has_focus and row.region in app.screen.region)
        await pilot.press("down", "enter")
        await ended(app, pilot)
        assert given(world) == [(["Choice 0"], "")]


def of_a_server() -> tuple[UserQuestion, ...]:
    decline = Alternative("Decline", "Send nothing to docs.", ends=True)
    out = Alternative("Leave it out")
    return (
        UserQuestion("Name", "Who?", (), own="first", ways=(decline,), server="docs"),
        UserQuestion(
            "Pets",
            "Which?",
            (AnswerChoice("Cat"), AnswerChoice("Dog")),
            several=True,
            own="none",
            ways=(out, decline),
            server="docs",
        ),
    )


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([["enter", *"Ann", "enter"], ["1", "2", "enter"]], ["Ann", "Cat, Dog"]),
        ([["1", *"Ann", "enter"], ["1", "3"]], ["Ann", "Leave it out"]),
        ([["1", *"Ann", "enter"], ["1", "down", "down", "enter"]], ["Ann", "Leave it out"]),
        ([["1", *"Ann", "enter"], ["4"]], ["Ann", "Decline"]),
        ([["1", *"A", "escape", "2"]], ["Decline"]),
        ([["2"]], ["Decline"]),
        ([["escape"]], []),
    ],
)
async def test_a_server_is_named_and_can_be_refused_on_every_page(
    keys: list[list[str]], expected: list[str]
) -> None:
    world, given = World(), list[tuple[UserAnswer, ...] | None]()
    async with running(world, WIDE) as (app, pilot):
        modal = QuestionnaireModal(of_a_server(), "")
        app.push_screen(modal, given.append)  # pyright: ignore[reportUnknownMemberType]
        await until(pilot, lambda: app.screen is modal and bool(app.screen.query(AnswerRow)))
        assert title(app) == "Name · 1 of 2 · MCP server docs"
        for number, page in enumerate(keys):
            if number:
                await until(pilot, lambda: title(app).startswith("Pets"))
                await until(pilot, lambda: len(app.screen.query(AnswerRow)) == 4)
            await press(world, pilot, *page)
        await until(pilot, lambda: bool(given))
        assert [one.summary for one in given[0] or ()] == expected
