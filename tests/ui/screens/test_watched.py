"""A session on the screen, watched from another process: who answers there, and who types."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from tests.app.door.owned import Watcher, watcher
from tests.support.script import Ask
from tests.support.world import World
from tests.ui.screens.driving import items, running, say, turn, until
from tests.ui.screens.test_approval import ASKED, WRITE
from tui.app.door.lines import GiveAnswer, Hello, OwnerNotice, SendPrompt, Settled
from tui.core import facts
from tui.core.paths import folders
from tui.ui.app import HoldfastApp
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.conversation.items import UserItem


@asynccontextmanager
async def watched(world: World) -> AsyncGenerator[tuple[HoldfastApp, Pilot[None], Watcher]]:
    """A screen, and somebody who watches its session."""
    async with running(world) as (app, pilot):
        one = await watcher(folders(), world.agent.session.id)
        assert (await one.until(Hello)).kind == "screen"
        await one.watch()
        try:
            yield app, pilot, one
        finally:
            one.close()


async def test_an_answer_from_elsewhere_closes_the_dialog() -> None:
    world = World()
    world.scripts.append(turn(Ask(WRITE, ASKED), facts.TextDelta("on it")))
    async with watched(world) as (app, pilot, one):
        await say(pilot, "go")
        question = await one.question()
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        done = await one.ask(GiveAnswer, to=question.number, answer={"answer": "once"})
        assert done.outcome == "done"
        await until(pilot, lambda: not isinstance(app.screen, ApprovalModal))
        assert world.agent.answers[-1].answer == "once"


async def test_the_persons_answer_here_settles_it_elsewhere() -> None:
    world = World()
    world.scripts.append(turn(Ask(WRITE, ASKED)))
    async with watched(world) as (app, pilot, one):
        await say(pilot, "go")
        question = await one.question()
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        world.clock.elapsed += 1.1
        await pilot.press("n")
        assert (await one.until(Settled)).number == question.number


async def test_a_prompt_from_elsewhere_is_drawn_and_leaves_what_is_typed() -> None:
    world = World()
    world.scripts.append(turn())
    async with watched(world) as (app, pilot, one):
        await pilot.press(*"mine")
        assert (await one.ask(SendPrompt, text="from afar")).outcome == "sent"
        await until(pilot, lambda: bool(items(app, UserItem)))
        assert app.chat.prompt.value == "mine"


async def test_a_command_from_elsewhere_opens_nothing_here() -> None:
    world = World()
    async with watched(world) as (app, pilot, one):
        before = app.screen
        refused = await one.ask(SendPrompt, text="/model")
        assert refused.outcome == "refused"
        await pilot.pause()
        assert app.screen is before
        app.frontend.say("Saved.")
        assert (await one.until(OwnerNotice)).text == "Saved."
