"""Many images in a request: what is too large for that is left out before it is sent, for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.test_binding import breaks, done, said, talking, thoughts
from tests.context.pictures import png
from tests.support.server_script import Json

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
