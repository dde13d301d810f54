"""A directive counts only where each of its characters was typed: a paste switches nothing."""

from __future__ import annotations

import pytest
from textual import events as textual_events
from textual.pilot import Pilot

from tests.support.world import World
from tests.ui.screens.driving import answer, running, turn, until
from tui.agent.prompts import parse
from tui.core.messages import blocks_of, text_of
from tui.core.partly_typed import PartlyTyped
from tui.ui.app import HoldfastApp


async def paste(app: HoldfastApp, pilot: Pilot[None], text: str) -> None:
    app.chat.prompt.post_message(textual_events.Paste(text))
    await pilot.pause()


async def sent(world: World, app: HoldfastApp, pilot: Pilot[None]) -> tuple[str, dict[str, object]]:
    """What the model is told of the prompt that is sent now, and which directives are on."""
    count = len(world.agent.sent)
    await pilot.press("enter")
    await until(pilot, lambda: len(world.agent.sent) > count)
    last = [one for one in world.agent.session.records if one.type == "user"][-1]
    on = {name: value for name, value in world.agent.directives.to_json().items() if value}
    return text_of(blocks_of(last.data["content"])), on


@pytest.mark.parametrize(
    ("typed", "pasted", "text", "changes"),
    [
        ("", "/elevated run it", "/elevated run it", {}),
        ("", "/elevated\nrun it", "/elevated\nrun it", {}),
        ("/verbose ", "/elevated go", "/elevated go", {"verbose": True}),
        ("/verb", "ose go", "/verbose go", {}),
        ("/think ", "off on", "off on", {"think": True}),
        ("/think ", "hello", "hello", {"think": True}),
    ],
)
async def test_a_paste_switches_nothing(
    typed: str, pasted: str, text: str, changes: dict[str, object]
) -> None:
    world = World()
    world.scripts.append(turn(*answer("done")))
    async with running(world) as (app, pilot):
        await pilot.press(*("space" if c == " " else "slash" if c == "/" else c for c in typed))
        await paste(app, pilot, pasted)
        assert await sent(world, app, pilot) == (text, changes)
        assert not app.chat.header.state.elevated


async def test_what_was_typed_still_switches_and_an_edited_paste_does_not() -> None:
    world = World()
    world.scripts.extend([turn(*answer("done")), turn(*answer("done"))])
    async with running(world) as (app, pilot):
        await paste(app, pilot, "elevated go")
        await pilot.press("home", "slash", "escape")
        assert await sent(world, app, pilot) == ("/elevated go", {})
        await until(pilot, lambda: not app.conversation.busy)
        await paste(app, pilot, "continue")
        await pilot.press("home", *"xx", "backspace", "backspace", "slash", *"think", "space")
        assert await sent(world, app, pilot) == ("continue", {"think": True})


async def test_a_pasted_directive_from_the_history_or_a_cut_switches_nothing() -> None:
    world = World()
    world.scripts.extend([turn(*answer("done")), turn(*answer("done")), turn(*answer("done"))])
    async with running(world) as (app, pilot):
        await paste(app, pilot, "/elevated go")
        await sent(world, app, pilot)
        await until(pilot, lambda: not app.conversation.busy)
        await pilot.press("up")
        assert app.chat.prompt.text == "/elevated go"
        assert await sent(world, app, pilot) == ("/elevated go", {})
        await until(pilot, lambda: not app.conversation.busy)
        await paste(app, pilot, "/elevated go")
        await pilot.press("ctrl+u", "ctrl+y")
        assert app.chat.prompt.text == "/elevated go"
        assert await sent(world, app, pilot) == ("/elevated go", {})


async def test_a_folded_paste_is_never_a_command() -> None:
    world = World()
    world.scripts.append(turn(*answer("done")))
    async with running(world) as (app, pilot):
        text = "!touch pasted\n" * 40
        await paste(app, pilot, text)
        assert app.chat.prompt.text.startswith("[paste ")
        assert await sent(world, app, pilot) == (text, {})


def test_parse_says_which_directive_was_not_typed() -> None:
    prompt = parse(PartlyTyped("/think /elevated go", 7))
    assert (prompt.text, prompt.changes, prompt.pasted) == (
        "/elevated go",
        {"think": True},
        "/elevated",
    )


@pytest.mark.parametrize(
    ("text", "typed"),
    [("/verbosex go", 8), ("/effort max go", 9), ("/elevated", 0), (" /think", 6)],
)
def test_parse_takes_no_directive_that_was_typed_in_part(text: str, typed: int) -> None:
    prompt = parse(PartlyTyped(text, typed))
    assert (prompt.text, prompt.changes) == (text, {})
