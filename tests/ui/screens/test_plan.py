"""A plan on the screen: read, edited in $EDITOR, approved, sent back, and shown again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.content import Content
from textual.events import Paste
from textual.pilot import Pilot

from tests.support.world import World
from tests.ui.screens.driving import WIDE, answer, items, running, say, turn, until
from tui.agent.plans import last_approved
from tui.core import facts
from tui.permissions.types import Mode
from tui.ui.app import HoldfastApp
from tui.ui.screens import plan as plan_screen
from tui.ui.screens.external_programs import EditedText
from tui.ui.screens.plan import PlanModal, PlanScreen
from tui.ui.widgets.answer_field import AnswerField
from tui.ui.widgets.conversation.items import AssistantItem, ToolItem
from tui.ui.widgets.conversation.view import ConversationView

PLAN = "## Steps\n\n1. Rename `a.py`.\n2. Run the tests.\n" + "\n".join(
    f"- step {n}" for n in range(80)
)


@asynccontextmanager
async def presented(
    tmp_path: Path, size: tuple[int, int] = WIDE
) -> AsyncGenerator[tuple[World, HoldfastApp, Pilot[None]]]:
    world = World(tmp_path)
    called = facts.ToolStarted("p1", "present_plan", {"title": "Rename a module", "plan": PLAN})
    world.scripts.append(turn(called, *answer("done")))
    async with running(world, size) as (app, pilot):
        world.agent.permissions.mode = "plan"
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, PlanModal))
        yield world, app, pilot


async def ended(app: HoldfastApp, pilot: Pilot[None]) -> None:
    await until(pilot, lambda: app.screen is app.chat and not app.conversation.busy)


def title(app: HoldfastApp) -> str:
    return Content.from_markup(app.screen.query_one("#box").border_title or "").plain


@pytest.mark.parametrize(
    ("keys", "mode", "summary"),
    [
        (["1"], "ask", "approved"),
        (["enter"], "ask", "approved"),
        (["2"], "accept_edits", "approved"),
        (["right", "enter"], "accept_edits", "approved"),
        (["3", *"shorter", "enter"], "plan", "changes: shorter"),
        (["3", "x", "escape", "1"], "ask", "approved"),
        (["escape"], "plan", "not approved"),
    ],
)
async def test_it_is_answered_by_keys(
    tmp_path: Path, keys: list[str], mode: Mode, summary: str
) -> None:
    async with presented(tmp_path) as (world, app, pilot):
        assert title(app) == "Plan: Rename a module"
        world.clock.elapsed += 1
        await pilot.press(*keys)
        await ended(app, pilot)
        assert world.agent.permissions.mode == mode
        (card,) = items(app, ToolItem)
        assert (card.label, card.summary, card.pinned) == (
            "Rename a module",
            summary,
            summary == "approved",
        )


async def test_what_was_typed_for_the_prompt_approves_nothing(tmp_path: Path) -> None:
    async with presented(tmp_path) as (world, app, pilot):
        await pilot.press("1", "enter", "2", "e", "escape")
        await pilot.pause()
        assert isinstance(app.screen, PlanModal)
        assert app.chat.prompt.value == "12e"
        assert world.agent.permissions.mode == "plan"


@pytest.mark.parametrize("size", [(40, 10), (80, 24), (120, 40)])
async def test_it_scrolls_and_its_answers_stay_in_sight(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with presented(tmp_path, size) as (_, app, pilot):
        view = app.screen.query_one(ConversationView)
        await until(pilot, lambda: view.max_scroll_y > 0 and view.scroll_y == 0)
        await pilot.press("down", "down")
        assert view.scroll_y == 2
        await pilot.press("pagedown")
        await until(pilot, lambda: view.scroll_y > 2)
        assert all(one.region in app.screen.region for one in app.screen.query("#answers, #box"))


async def test_an_edited_plan_is_the_one_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def editor(_: object, text: str) -> EditedText:
        return EditedText(f"{text}\n\nAnd tell me.")

    monkeypatch.setattr(plan_screen, "edited", editor)
    async with presented(tmp_path) as (world, app, pilot):
        world.clock.elapsed += 1
        await pilot.press("e")
        await until(pilot, lambda: title(app) == "Plan: Rename a module · edited")
        (shown,) = app.screen.query_one(ConversationView).items
        assert isinstance(shown, AssistantItem)
        assert shown.text.endswith("And tell me.")
        await pilot.press("1")
        await ended(app, pilot)
        plan = last_approved(world.agent.session.records)
        assert plan is not None
        assert plan.text.endswith("And tell me.")
        assert "And tell me." in (tmp_path / plan.path).read_text()


async def test_what_a_failing_editor_saved_does_not_count_and_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    async def editor(_: object, text: str) -> EditedText:
        opened.append(text)
        return EditedText(problem="vi closed with exit code 1.", refused="Another plan.")

    monkeypatch.setattr(plan_screen, "edited", editor)
    async with presented(tmp_path) as (world, app, pilot):
        world.clock.elapsed += 1
        await pilot.press("e")
        await until(pilot, lambda: len(opened) == 1)
        assert title(app) == "Plan: Rename a module"
        world.clock.elapsed += 1
        await pilot.press("e")
        await until(pilot, lambda: opened[1:] == ["Another plan."])


async def test_what_to_change_takes_several_lines(tmp_path: Path) -> None:
    async with presented(tmp_path) as (world, app, pilot):
        world.clock.elapsed += 1
        await pilot.press("3")
        field = app.screen.query_one(AnswerField)
        await until(pilot, lambda: field.has_focus)
        app.post_message(Paste("one\ntwo"))
        await pilot.press("ctrl+j", "x")
        await until(pilot, lambda: field.text == "one\ntwo\nx")
        await until(pilot, lambda: field.size.height == 3)
        assert field.region in app.screen.region
        assert "ctrl+j new line" in foot(app)
        world.clock.elapsed += 1
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.chat)


def foot(app: HoldfastApp) -> str:
    return Content.from_markup(app.screen.query_one("#box").border_subtitle or "").plain


async def test_plan_show_shows_it_again(tmp_path: Path) -> None:
    async with presented(tmp_path) as (world, app, pilot):
        world.clock.elapsed += 1
        await pilot.press("1")
        await ended(app, pilot)
        await say(pilot, "/plan show")
        await until(pilot, lambda: isinstance(app.screen, PlanScreen))
        assert title(app) == "Plan: Rename a module"
        await pilot.press("down", "escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_without_a_plan_there_is_nothing_to_show() -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, "/plan show")
        await until(pilot, lambda: "No approved plan" in app.chat.notice.text)


async def test_ctrl_c_stops_the_turn(tmp_path: Path) -> None:
    async with presented(tmp_path) as (world, app, pilot):
        await pilot.press("ctrl+c")
        await ended(app, pilot)
        assert world.agent.permissions.mode == "plan"
