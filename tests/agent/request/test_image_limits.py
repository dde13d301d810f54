"""How images are sent: shrunk, or left out, before the first time, and then for good."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from tests.agent.test_binding import breaks, done, said, talking, thoughts
from tests.agent.test_requests_grow import program
from tests.context.pictures import image, png
from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.agent.request import image_limits
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.clouds import BEDROCK
from tui.core.images import Image, ImageInfo, base64_image_info, of_bytes
from tui.core.messages import ToolOutput, image_block, text_block
from tui.core.paths import folders
from tui.provider import catalogue
from tui.session.session import Session
from tui.tools.base import Params, Tool, ToolContext

SMALL = "claude-haiku-4-5"
LEFT_OUT = "[image left out: too large to send]"


def picture(width: int, height: int, kind: str = "PNG") -> bytes:
    target = io.BytesIO()
    Pillow.new("RGB", (width, height), "teal").save(target, kind)
    return target.getvalue()


async def attached(agent: Agent, *found: Image) -> None:
    """A prompt with images that are as they are, as an older program recorded them."""
    named = {image.word(number): image for number, image in enumerate(found)}
    told = [event async for event in agent.send(parse(" ".join(named), images=named))]
    assert isinstance(told[-1], facts.TurnFinished)
    assert told[-1].outcome == "done"


def raw(width: int, height: int, more: int = 0) -> Image:
    found = of_bytes(png(width, height) + b"\0" * more, "a.png")
    assert found
    return found


def images(body: Json) -> list[str]:
    blocks = [b for m in body["messages"] if m["role"] == "user" for b in m["content"]]
    kinds = ["gone" if b.get("text") == LEFT_OUT else b["type"] for b in blocks]
    return [kind for kind in kinds if kind in {"image", "gone"}]


@pytest.mark.parametrize("late", [True, False])
async def test_twenty_one_images(tmp_path: Path, late: bool) -> None:
    small, large = [raw(100, n + 1) for n in range(20)], raw(2400, 100)
    first, second = (small, [large]) if late else ([large, *small[:19]], small[19:])
    async with talking(tmp_path, said("s0"), said("s1"), said("s2")) as (agent, server):
        await attached(agent, *first)
        await attached(agent, *second)
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


async def test_twenty_one_large_images_are_all_seen(tmp_path: Path) -> None:
    for n in range(21):
        (tmp_path / f"p{n}.png").write_bytes(picture(2400, 100 + 6 * n))
    async with talking(tmp_path, said("s0"), said("s1")) as (agent, server):
        told = await done(agent, " ".join(f"@p{n}.png" for n in range(20)))
        await done(agent, "@p20.png")
        assert images(server.posts[-1].body) == ["image"] * 21
        assert breaks(agent) == []
        assert thoughts(server) == ["s0"]
    notes = [event.text for event in told if isinstance(event, facts.Notice)]
    assert notes[0] == "Attached p0.png, shrunk from 2400×100 to 2000×83."
    assert len(notes) == 20


async def test_images_that_are_too_much_together_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_limits, "REQUEST_BYTES", 5000)
    async with talking(tmp_path, *(said(f"s{n}") for n in range(4))) as (agent, server):
        for n in range(3):
            await attached(agent, *(raw(100, 10 + n, 750) for _ in range(2)))
        await done(agent, "and now?")
        assert len(server.posts) == 4
        assert images(server.posts[-1].body) == ["image"] * 4 + ["gone"] * 2
        assert breaks(agent) == []
        assert thoughts(server) == ["s0", "s1", "s2"]


async def test_a_server_that_takes_less_gets_fewer_images(tmp_path: Path) -> None:
    turns = [said(f"s{n}") for n in range(4)]
    async with talking(tmp_path, *turns, request_bytes=6_666) as (agent, server):
        for n in range(3):
            await attached(agent, *(raw(100, 10 + n, 750) for _ in range(2)))
        await done(agent, "and now?")
        assert images(server.posts[-1].body) == ["image"] * 4 + ["gone"] * 2


def test_a_request_of_images_leaves_room_for_texts() -> None:
    assert image_limits.REQUEST_BYTES < 32 * 1024 * 1024 - 4 * 1024 * 1024
    assert image_limits.image_bytes(0) == image_limits.REQUEST_BYTES
    assert image_limits.image_bytes(BEDROCK.request_bytes) == 15_000_000


class Gallery(Tool[Params]):
    """A server's tool that gives an image which is in no file."""

    name = "gallery"
    effect = "none"
    params = Params
    description = "An image."  # type: ignore[assignment]

    def __init__(self, data: bytes) -> None:
        self._data = base64.b64encode(data).decode()

    async def run(self, params: Params, ctx: ToolContext) -> ToolOutput:
        block = image_block("image/png", self._data)
        return ToolOutput([text_block("here"), block, text_block("and there")])


async def result_of(agent: Agent, prompt: str = "go") -> dict[str, Any]:
    await events_of(agent, prompt)
    (record,) = (r for r in agent.session.records if r.type == "tool_result")
    return record.data


async def test_a_tools_image_is_shrunk_and_its_original_kept(tmp_path: Path) -> None:
    whole = picture(4032, 3024)
    provider = ScriptedProvider([call("gallery")], say("Seen."))
    agent = make_agent(tmp_path, provider, tools={"gallery": Gallery(whole)})
    found = await result_of(agent)
    first, block, words, last = found["content"]
    assert (first["text"], last["text"]) == ("here", "and there")
    info = base64_image_info(block["source"]["data"])
    assert info == ImageInfo(block["source"]["media_type"], 2000, 1500)
    lead = "[The image was shrunk from 4032×3024 to 2000×1500. The original is in "
    assert words["text"].startswith(lead)
    path = Path(words["text"].removeprefix(lead).removesuffix(".]"))
    assert path.read_bytes() == whole
    assert path.stat().st_mode & 0o777 == 0o600
    assert found["summary"] == "shrunk from 4032×3024 to 2000×1500"
    sent = provider.requests[-1].messages[-1]["content"][0]["content"]
    assert sent == found["content"]


async def test_an_image_that_was_read_from_a_file_stays_there_alone(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(picture(4032, 3024, "JPEG"))
    provider = ScriptedProvider([call("read_file", path="photo.jpg")], say("Seen."))
    found = await result_of(make_agent(tmp_path, provider))
    assert found["content"][1]["text"] == "[The image was shrunk from 4032×3024 to 2000×1500.]"
    assert found["summary"].endswith("shrunk from 4032×3024 to 2000×1500")
    assert not (tmp_path / ".holdfast").exists()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (picture(2400, 2400)[:-300], "damaged or incomplete"),
        (png(9400, 9900), "too many pixels"),
    ],
)
async def test_a_tools_image_that_cannot_be_shrunk_is_said(
    tmp_path: Path, data: bytes, said: str
) -> None:
    provider = ScriptedProvider([call("gallery")], say("Well."))
    agent = make_agent(tmp_path, provider, tools={"gallery": Gallery(data)})
    found = await result_of(agent)
    assert [block["type"] for block in found["content"]] == ["text"] * 3
    assert said in found["content"][1]["text"]
    assert found["summary"] == "left out"


async def test_small_images_and_strange_ones_stay_to_the_byte(tmp_path: Path) -> None:
    for data in (png(2000, 2000), b"no image at all"):
        provider = ScriptedProvider([call("gallery")], say("Well."))
        agent = make_agent(tmp_path, provider, tools={"gallery": Gallery(data)})
        found = await result_of(agent)
        assert base64.b64decode(found["content"][1]["source"]["data"]) == data
        assert found["summary"] == ""


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
                agent.models.use(catalogue.model_info(SMALL))
                seen = await done(agent, "and now?")
                said_ = [e.text for e in seen if isinstance(e, facts.Notice)]
                assert any("75 images, the oldest, left out" in t for t in said_) != reopened
                assert breaks(agent) == []
        sent = [images(post.body) for post in server.posts]
        assert [one.count("image") for one in sent] == [75, 75]
        assert "[image left out: more than the model takes]" in str(server.posts[0].body)
        assert LEFT_OUT not in str(server.posts[0].body)


async def test_failover_leaves_out_what_the_small_window_does_not_take(
    own_folders: Path, tmp_path: Path
) -> None:
    turns = [said("s0"), said("s1"), said("h0", faults=[{"status": 529}])]
    async with (
        LoopbackServer({"turns": turns, "catalogue": True}) as server,
        program(tmp_path, server, fallback_models=(SMALL,), api_features="all") as agent,
    ):
        await attached(agent, *[raw(100, n + 1) for n in range(60)])
        await attached(agent, *[raw(101, n + 1) for n in range(60)])
        await done(agent, "and now?")
        assert server.posts[-1].body["model"] == SMALL
        sent = [images(post.body).count("image") for post in server.posts]
        assert sent == [60, 120, 120, 75]
