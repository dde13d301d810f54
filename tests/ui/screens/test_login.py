"""/login on the screen and in plain lines: what is in use, what can be chosen, what goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, OptionList, Static

from tests.plain.face import talking
from tests.plain.face import until as it_is_so
from tests.support.clock import ManualClock
from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import answer, running, say, turn, until
from tui.app.dialog_data import Account, KeySetup, SignInSetup
from tui.core.errors import CredentialsError
from tui.ui.app import HoldfastApp
from tui.ui.screens.welcome import WelcomeScreen


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.connection = "In use: claude-sonnet-5-5, with the key in the keyring."
    world.account = Account(sign_in="work")
    return world


def text_of(app: HoldfastApp, selector: str) -> str:
    return str(app.screen.query_one(selector, Static).render())


async def test_it_says_what_is_in_use_and_the_session_goes_on_with_the_profile(
    world: World,
) -> None:
    world.scripts.append(turn(*answer("first")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: bool(world.agent.sent) and not app.conversation.busy)
        await say(pilot, "/login")
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        assert world.connection in text_of(app, "#name")
        assert "cancel" in text_of(app, "#keys")
        chosen = app.screen.query_one(OptionList).get_option_at_index(0)
        assert "Sign-in work" in str(chosen.prompt)
        world.clock.elapsed += 1
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.reconnected == 1)
        assert world.set_up_with == [SignInSetup("work")]
        assert len(world.agents) == 1
        assert app.chat.notice.text.endswith("Kept in the keyring.")
        assert not app.chat.has_class("-fresh")


async def test_escape_changes_nothing(world: World) -> None:
    async with running(world) as (app, pilot):
        await say(pilot, "/login")
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.press("down", "enter", "s", "escape", "escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert world.set_up_with == []
        assert world.agent.reconnected == 0
        assert app.is_running


async def test_a_key_that_is_refused_is_said_and_asked_for_again(world: World) -> None:
    refusal = CredentialsError("https://api.anthropic.com rejects this key.", hint="Check it.")
    world.set_up_refusals.append(refusal)
    async with running(world) as (app, pilot):
        await say(pilot, "/login")
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.press("down", "enter", *"bad", "enter")
        await until(
            pilot,
            lambda: (
                isinstance(app.screen, WelcomeScreen)
                and "rejects this key" in text_of(app, "#problem")
            ),
        )
        assert world.agent.reconnected == 0
        key = app.screen.query_one("#key", Input)
        assert (key.has_focus, key.value) == (True, "bad")
        key.value = "good"
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.reconnected == 1)
        assert world.set_up_with[-1] == KeySetup("good")


async def test_while_the_agent_works_it_waits_for_another_time(world: World) -> None:
    hold = Hold()
    world.scripts.append(turn(hold, *answer("done")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.conversation.busy)
        await say(pilot, "/login")
        await until(pilot, lambda: "working" in app.chat.notice.text)
        assert app.screen is app.chat
        hold.release()
        await until(pilot, lambda: not app.conversation.busy)


async def test_plain_lines_ask_the_same(world: World) -> None:
    world.clock = ManualClock()
    async with talking(world, answers=["1", None]) as (_, face):
        face.prompts.append("/login")
        await it_is_so(lambda: world.agent.reconnected == 1)
        assert world.connection in face.said
        assert any("sign-in work, made with" in line for line in face.said)
        assert world.set_up_with == [SignInSetup("work")]
        face.prompts.append("/login")
        await it_is_so(lambda: face.said.count(world.connection) == 2)
        assert world.agent.reconnected == 1
