"""Many images in a request: what is too large for that is left out before it is sent, for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.test_binding import breaks, done, said, talking, thoughts
from tests.agent.test_requests_grow import program
from tests.context.pictures import image, png
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent import events
from tui.core.clock import SystemClock
from tui.core.messages import text_block
from tui.core.paths import folders
from tui.provider import catalogue
from tui.session.session import Session

SMALL = "claude-haiku-4-5"
LEFT_OUT = "[image left out: too large to send]"


def prompt(*sizes: int) -> str:
    return " ".join(f"@p{n}-{size}.png" for n, size in enumerate(sizes))


def images(body: Json) -> list[str]:
    blocks = [b for m in body["messages"] if m["role"] == "user" for b in m["content"]]
    kinds = ["gone" if b.get("text") == LEFT_OUT else b["type"] for b in blocks]
    return [kind for kind in kinds if kind in {"image", "gone"}]


@pytest.mark.parametrize("late", [True, False])
async def test_twenty_one_images(tmp_path: Path, late: bool) -> None:
    sizes = [100] * 20
    first, second = ([*sizes[:19], 100], [2400]) if late else ([2400, *sizes[:19]], [100])
    for size in (100, 2400):
        for n in range(20):
            (tmp_path / f"p{n}-{size}.png").write_bytes(png(size + n, 100 + n))
    async with talking(tmp_path, said("s0"), said("s1"), said("s2")) as (agent, server):
        await done(agent, prompt(*first))
        await done(agent, prompt(*second))
        await done(agent, "and now?")
        assert len(server.posts) == 3  # none was refused
        sent = [images(post.body) for post in server.posts]
        assert sent[1] == sent[2]
        assert sent[1].count("gone") == 1
        if late:  # it was never sent: nothing changes, all thinking stays
            assert sent[1][-1] == "gone"
            assert breaks(agent) == []
            assert thoughts(server) == ["s0", "s1"]
        else:
            assert sent[1][0] == "gone"
            assert breaks(agent) == [("mask", "program")]
            assert thoughts(server) == ["s1"]


async def test_a_session_of_150_images_goes_on_with_a_small_window(
    own_folders: Path, tmp_path: Path
) -> None:
    """A model with a window of 200,000 tokens takes 100 of them: the oldest go, once."""
    session = Session.create(tmp_path, folders=folders(), clock=SystemClock())
    path = session.path
    assert path
    for n in range(15):
        pictures = [image(png(100 + n, 100 + i)) for i in range(10)]
        session.append("user", content=[*pictures, text_block(f"look {n}")], text=f"look {n}")
        session.append("assistant", content=[text_block("Seen.")], model=SMALL)
    await session.sync()
    await session.close()
    script = {"turns": [{"text": "one"}, {"text": "two"}, {"text": "three"}], "catalogue": True}
    async with LoopbackServer(script) as server:
        for reopened in (False, True):
            async with program(tmp_path, server, path, model=SMALL, api_features="all") as agent:
                agent.use_model(catalogue.model_info(SMALL))
                seen = await done(agent, "and now?")
                said_ = [e.text for e in seen if isinstance(e, events.Notice)]
                assert any("75 images, the oldest, left out" in t for t in said_) != reopened
                assert breaks(agent) == []
        sent = [images(post.body) for post in server.posts]
        assert [one.count("image") for one in sent] == [75, 75]
        assert "[image left out: more than the model takes]" in str(server.posts[0].body)
        assert LEFT_OUT not in str(server.posts[0].body)
