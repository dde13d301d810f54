"""The app on a scripted agent, driven by keys; waits for facts, never for time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import pytest
from textual.events import Key
from textual.keys import _character_to_key  # pyright: ignore[reportPrivateUsage]
from textual.pilot import Pilot

from tests.support.clock import PATIENCE_S
from tests.support.script import MODEL, Step
from tests.support.world import World
from tui.app.services import Opening
from tui.core import facts
from tui.core.messages import Usage
from tui.ui.app import HoldfastApp
from tui.ui.widgets.conversation.items import AssistantItem, Item

ROOMY, WIDE, NARROW = (160, 40), (120, 40), (80, 24)
"""With the output beside the conversation, with room for it, and without."""


def app_of(world: World, **options: Any) -> HoldfastApp:
    """The app in a world; `options` are those of `Opening`."""
    return HoldfastApp(
        lambda: Opening(services=world.services(), **options), clock=world.clock, version="1.2.3"
    )


def session_open(app: HoldfastApp) -> bool:
    return app.ready and app.conversation.agent is not None


@asynccontextmanager
async def running(
    world: World, size: tuple[int, int] = WIDE, **options: Any
) -> AsyncGenerator[tuple[HoldfastApp, Pilot[None]]]:
    """The app, ready: a session is open, or another screen covers the chat."""
    app = app_of(world, **options)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: session_open(app) or len(app.screen_stack) > 1)
        yield app, pilot


async def until(pilot: Pilot[None], done: Callable[[], bool]) -> None:
    """Let the app work until something holds. Fails when it never does, and at once where the app
    has failed, whose error the test then ends with."""
    deadline = monotonic() + PATIENCE_S
    while monotonic() < deadline:
        if done():
            await pilot.pause()
            return
        if getattr(pilot.app, "failure", None) and not pilot.app.is_running:
            break
        await pilot.pause()
        await asyncio.sleep(0.001)
    pytest.fail("it never came to that")


async def say(pilot: Pilot[None], text: str) -> None:
    """Type a text into the prompt and send it. The keys come at once, as a fast hand's do: to
    suggest something after each is half of what a test of a command would cost."""
    pilot.app.query_one("#prompt").focus()
    app: Any = pilot.app
    for character in text:
        key = character if character.isalnum() else _character_to_key(character)
        app._driver.send_message(Key(key, character))
    await pilot.pause()
    await pilot.press("enter")


async def begun(app: HoldfastApp, pilot: Pilot[None]) -> None:
    """Bring the app to where something was said: the panes are shown."""
    app.chat.add(AssistantItem("Hello."))
    await pilot.pause()


def turn(*steps: Step) -> list[Step]:
    """A script that begins as every turn does."""
    return [facts.UserMessage("go"), facts.RequestSent(1, 100, MODEL, 1), *steps]


def answer(text: str) -> list[Step]:
    """An answer, streamed in one piece."""
    return [facts.TextDelta(text), facts.AssistantMessage(text, "end_turn", Usage(1000, 50))]


def items(app: HoldfastApp, kind: type[Item]) -> list[Any]:
    """The items of one kind that the conversation holds, in order."""
    return [item for item in app.chat.conversation.items if isinstance(item, kind)]
