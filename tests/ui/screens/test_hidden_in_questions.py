"""Nothing in somebody else's text hides what a person is asked about, or makes it look other."""

from __future__ import annotations

import pytest

from tests.support.world import World
from tests.ui.screens.driving import running, until
from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.settings.trust import TrustItem
from tui.ui.app import HoldfastApp
from tui.ui.widgets.questions import Choice, ChoiceDialog

HIDING = "safe\u202egpj.sh\u202c\u200b\x1b[8mrm -rf ~\x1b[0m\x9b8m"
SPELT = "safe\\u202egpj.sh\\u202c\\u200b\\x1b[8mrm -rf ~\\x1b[0m\\x9b8m"


def asked(app: HoldfastApp) -> str:
    """The dialog's texts, as they stand in its widgets."""
    screen = app.screen
    assert isinstance(screen, ChoiceDialog)
    parts = [str(static.render()) for static in screen.query("#asked Static")]
    return "\n".join([screen.title_text, *parts, *(c.label for c in screen.query(Choice))])


async def test_each_thing_that_is_trusted_one_by_one_is_spelt_out() -> None:
    world = World()
    world.undecided = (TrustItem("hooks", f"Runs {HIDING}", "1"),)
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        assert f"Runs {SPELT}" in asked(app)
        world.clock.elapsed += 1
        await pilot.press("c")
        await until(pilot, lambda: "1 of 1" in asked(app))
        assert f"Runs {SPELT}" in asked(app)


@pytest.mark.parametrize("where", ["title", "text", "answer"])
async def test_every_part_of_a_question_is_spelt_out(where: str) -> None:
    texts = {"title": "Which?", "text": "One of these.", "answer": "Do it", where: HIDING}
    options = (AnswerOption("a", texts["answer"], "do"),)
    async with running(World()) as (app, pilot):
        app.push_screen(ChoiceDialog(ChoiceQuestion(texts["title"], texts["text"], options)))
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog) and app.screen.is_mounted)
        assert SPELT in asked(app)
        assert HIDING not in asked(app)


async def test_two_long_answers_can_be_told_apart_on_a_narrow_screen() -> None:
    rule = "run_command(make --directory=packages/core "
    options = tuple(AnswerOption(str(n), f"{rule}target-{n}:*)", f"r{n}") for n in (1, 2))
    async with running(World(), (40, 10)) as (app, pilot):
        app.push_screen(ChoiceDialog(ChoiceQuestion("Revoke what?", "It asks again.", options)))
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog) and app.screen.is_mounted)
        await pilot.pause()
        for choice in app.screen.query(Choice):
            assert choice.region.height == 3
            assert choice.region.bottom <= 10


async def test_on_the_smallest_screen_what_is_trusted_comes_first_and_the_rest_is_counted() -> None:
    world = World()
    world.undecided = tuple(TrustItem(f"hook {n}", f"Runs thing {n}", "1") for n in range(9))
    async with running(world, (40, 10)) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        foot = app.screen.query_one("#box")
        await until(pilot, lambda: "more lines" in str(foot.border_subtitle))
        details = app.screen.query_one("#details")
        assert details.region.y < app.screen.query_one("#asked .text").region.y
        assert details.region.y >= app.screen.query_one("#asked").region.y
        await pilot.press("pagedown", "pagedown", "pagedown", "pagedown")
        await until(pilot, lambda: "more line" not in str(foot.border_subtitle))
