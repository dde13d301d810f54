"""What the next prompt costs with another model, beside the one that is asked."""

from __future__ import annotations

from pathlib import Path

from tests.agent.test_binding import done
from tests.agent.test_requests_grow import program
from tests.support.long_session import script
from tests.support.server import LoopbackServer
from tests.support.world import World
from tui.app.dialog_data import ModelRow
from tui.app.models import rows
from tui.provider import catalogue

SONNET, OPUS = "claude-sonnet-5-5", "claude-opus-5-5"


async def test_another_model_reads_nothing_from_the_cache(tmp_path: Path) -> None:
    async with (
        LoopbackServer(script(9)) as server,
        program(tmp_path, server, model=SONNET) as agent,
    ):
        sonnet, opus = map(catalogue.model_info, (SONNET, OPUS))
        assert agent.models.next_prompt(opus).tokens == 0, "nothing was sent"
        await done(agent, "word " * 9_000)
        await done(agent, "Go on.")
        here, there = agent.models.next_prompt(sonnet), agent.models.next_prompt(opus)
        assert 0.9 * here.tokens < here.cached <= here.tokens
        assert not there.cached
        assert here.usd is not None
        assert there.usd is not None
        assert there.usd > 5 * here.usd
        assert agent.models.next_prompt(catalogue.model_info("unheard-of")).usd is None


async def test_to_stay_with_the_model_in_use_is_not_said_to_cost(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.models = (ModelRow(SONNET, 200_000), ModelRow(OPUS, 200_000))
    async with (
        LoopbackServer({"turns": [{"text": "ok"}]}) as server,
        program(tmp_path, server, model=SONNET) as agent,
    ):
        await done(agent, "Hi.")
        here, there = await rows(world.services(), agent)
    assert here.sends == "In use. Staying with it costs nothing extra."
    assert there.sends.startswith("The next prompt sends all ")
