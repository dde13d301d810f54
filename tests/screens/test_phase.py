"""What is going on, over the prompt: the seconds are never what has no room."""

from __future__ import annotations

import pytest

from tests.screens.driving import running, say, turn, until
from tests.support.fake_agent import Hold, World


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
async def test_a_long_phase_gives_way_to_the_seconds_and_the_mode(size: tuple[int, int]) -> None:
    world = World()
    world.scripts.append(turn(Hold()))
    async with running(world, size) as (app, pilot):
        await say(pilot, "go")
        rule = app.chat.prompt_rule
        await until(pilot, lambda: "waiting for" in rule.title.plain)
        world.clock.elapsed += 4
        await until(pilot, lambda: " 4 s" in rule.render().plain)
        world.clock.elapsed += 8
        await until(pilot, lambda: " 12 s" in rule.render().plain)
        assert "waiting for" in rule.render().plain
        assert "asks before changes" in rule.render().plain
        assert ("nothing heard for 12 s" in rule.render().plain) == (size[0] > 60)
