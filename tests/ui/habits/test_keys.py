"""No key that a person presses out of habit in the first hour is dead: the table, key by key."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support.script import Ask
from tests.support.world import World
from tests.ui.habits import rows
from tests.ui.screens.driving import answer, running, say, turn, until
from tests.ui.screens.test_approval import ASKED, WRITE
from tui.app.dialog_data import ModelRow
from tui.ui.app import HoldfastApp
from tui.ui.screens.picker import ModelsScreen, PickScreen
from tui.ui.screens.reports import DiffScreen

KEYS = rows("keys")
TEXT = "one two"
DIFF = "--- a/x\n+++ b/x\n@@ -1,100 +1,100 @@\n" + "+line\n" * 100
SKIPPING = re.compile(r"scroll_|page_|(screen\.)?copy")
"""Actions that a widget may leave to the next one, so that only trying tells."""
SURE_S = 10.0
"""Longer than a key has to be away until the next one may answer."""

OVER = {
    "list": lambda: PickScreen("list", [[(name, "text")] for name in ("first", "second")]),
    "picker": lambda: ModelsScreen([ModelRow("first", 1000), ModelRow("second", 1000)]),
    "diff": lambda: DiffScreen("diff", DIFF),
}
"""What covers the chat at a place, where no command opens it."""
WRITING = {"prompt", "text", "send"}
"""Places in the prompt: empty, and with a text."""
COMMANDS = {"context": "/context", "settings": "/config"}


@asynccontextmanager
async def at(place: str) -> AsyncGenerator[tuple[World, HoldfastApp, Pilot[None]]]:
    """The app at a place of the table."""
    world = World()
    world.scripts.append(turn(Ask(WRITE, ASKED), *answer("done")))
    async with running(world) as (app, pilot):
        if place in OVER:
            app.push_screen(OVER[place]())
        elif place in COMMANDS:
            await say(pilot, COMMANDS[place])
        elif place == "approval":
            await say(pilot, "go")
        if place not in WRITING:
            await until(pilot, lambda: app.screen is not app.chat)
        await pilot.pause()
        yield world, app, pilot


async def effect(
    row: dict[str, str], world: World, app: HoldfastApp, pilot: Pilot[None], ran: list[str]
) -> str:
    """What the keys of a row have done: the action that ran, or what was typed, sent or said."""
    prompt = app.chat.prompt
    if row["place"] in WRITING:
        prompt.put("" if row["place"] == "prompt" else TEXT)
    app.chat.notice.clear()
    ran.clear()
    world.clock.elapsed += SURE_S
    noted: list[str] = []
    app.say_useless = noted.append  # type: ignore[method-assign]
    before = prompt.text
    await pilot.press(*row["key"].split())
    await pilot.pause()
    if noted:
        return "says"
    if ran:
        return "acts" if row["does"] == "acts" else ran[-1]
    if row["does"].startswith("sends"):
        await until(pilot, lambda: bool(world.agent.sent))
        return f"sends {world.agent.sent.pop()}"
    if row["place"] in WRITING and prompt.text != before:
        return f"types {prompt.text}"
    return "nothing"


@pytest.mark.parametrize("place", list(dict.fromkeys(row["place"] for row in KEYS)))
async def test_no_key_of_the_table_is_dead(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with at(place) as (world, app, pilot):
        ran: list[str] = []

        carry_out = app.run_action

        async def run_action(action: str, *where: Any) -> bool:
            done = not SKIPPING.match(action) or await carry_out(action, *where)
            ran.extend([action] if done else ())
            return done

        monkeypatch.setattr(app, "run_action", run_action)
        wrong = [
            f"{row['program']}, {row['key']}: {found} instead of {row['does']}"
            for row in KEYS
            if row["place"] == place
            and (found := await effect(row, world, app, pilot, ran)) != row["does"]
        ]
    assert "\n".join(wrong) == ""


def test_a_key_that_does_something_else_here_is_explained_with_ours() -> None:
    assert [row for row in KEYS if ("here" in row) != ("instead" in row)] == []
    assert [row for row in KEYS if row["does"] == "says" and "here" not in row] == []
