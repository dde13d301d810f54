"""Images that come with a prompt: recorded as blocks of the API's shape, sent, queued, refused."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import pytest
from PIL import Image as Pillow

from tests.context.pictures import gif, png
from tests.support.agents import events_of, make_agent
from tests.support.clock import FakeClock
from tests.support.provider import Hang, ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.context.request_replay import RequestReplay
from tui.context.validate import check
from tui.core import facts
from tui.core.errors import LargeImages, ProviderError
from tui.core.facts import Overlay
from tui.core.images import MAX_FILE, Image, of_bytes
from tui.core.messages import Block
from tui.core.paths import folders
from tui.session.reader import read
from tui.session.records import Record
from tui.session.session import Session

WORD = "[image 1: shot.png 640×400 44 B]"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "shot.png").write_bytes(png(640, 400))
    return folder


def shot() -> Image:
    found = of_bytes(png(640, 400), "shot.png")
    assert found
    return found


def prompts(agent: Agent) -> list[Record]:
    return [record for record in agent.session.records if record.type == "user"]


def sent(provider: ScriptedProvider, index: int = -1) -> list[Block]:
    """The content of the last message of a request, less the cache marks."""
    content = provider.requests[index].messages[-1]["content"]
    return [{k: v for k, v in block.items() if k != "cache_control"} for block in content]


async def test_an_image_goes_along_in_the_shape_of_the_api(root: Path) -> None:
    provider = ScriptedProvider(say("A screen."))
    agent, image = make_agent(root, provider), shot()
    word = image.word(1)
    told = [event async for event in agent.send(parse(f"what is {word}?", images={word: image}))]
    (record,) = prompts(agent)
    assert record.data["content"] == [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": image.data},
        },
        {"type": "text", "text": f"what is {word}?"},
    ]
    assert record.data["text"] == f"what is {word}?"
    assert record.data["images"] == [word]
    assert sent(provider) == record.data["content"]
    assert check(provider.requests[-1].messages) == []
    (said,) = [event for event in told if isinstance(event, facts.UserMessage)]
    assert (said.text, said.attached) == (f"what is {word}?", "")


async def test_a_mention_attaches_the_image_and_leaves_the_text_as_it_was_typed(root: Path) -> None:
    provider = ScriptedProvider(say("A screen."))
    agent = make_agent(root, provider)
    told = await events_of(agent, "/verbose what is this @shot.png?")
    (record,) = prompts(agent)
    assert record.data["text"] == "what is this @shot.png?"
    (word,) = record.data["images"]
    assert word.startswith("[image 1: shot.png 640×400 ")
    assert [block["type"] for block in sent(provider)] == ["image", "text"]
    assert sent(provider)[1]["text"] == f"what is this @shot.png?\n{word}"
    (said,) = [event for event in told if isinstance(event, facts.UserMessage)]
    assert said.text == f"what is this @shot.png?\n{word}"


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ('look at @"a b.png"', "a b.png"),
        ("look at @'a b.png', please", "a b.png"),
        (r"look at @a\ b.png", "a b.png"),
        ("(see) @sub/odd.txt.", "sub/odd.txt"),
        ("@sub/../shot.png", "shot.png"),
    ],
)
async def test_mentions_are_read_as_they_are_written(root: Path, typed: str, name: str) -> None:
    (root / "sub").mkdir()
    (root / "a b.png").write_bytes(png(10, 10))
    (root / "sub/odd.txt").write_bytes(gif(10, 10))
    agent = make_agent(root, ScriptedProvider(say("Yes.")))
    await events_of(agent, typed)
    (word,) = prompts(agent)[0].data["images"]
    assert f": {name} " in word


async def test_what_is_no_image_stays_a_mention(root: Path) -> None:
    (root / "notes.md").write_text("# Notes")
    agent = make_agent(root, ScriptedProvider(say("Yes.")))
    told = await events_of(agent, "read @notes.md and @missing.png, mail me@shot.png")
    assert "images" not in prompts(agent)[0].data
    assert not [event for event in told if isinstance(event, facts.Notice)]


async def test_a_mention_outside_the_workspace_is_refused_as_the_tools_do(root: Path) -> None:
    (root.parent / "secret.png").write_bytes(png(10, 10))
    (root / "link.png").symlink_to(root.parent / "secret.png")
    for name in ("../secret.png", str(root.parent / "secret.png"), "link.png"):
        agent = make_agent(root, ScriptedProvider(say("Yes.")))
        told = await events_of(agent, f"look at @{name}")
        notes = [event.text for event in told if isinstance(event, facts.Notice)]
        assert len(notes) == 1
        assert "is outside the workspace" in notes[0]
        assert "--add-dir" in notes[0]
        assert [block["type"] for block in prompts(agent)[0].data["content"]] == ["text"]


async def test_a_folder_that_was_added_may_be_read(root: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    (other / "b.png").write_bytes(png(10, 10))
    agent = make_agent(root, ScriptedProvider(say("Yes.")))
    agent.permissions.add_dir(other)
    await events_of(agent, f"look at @{other}/b.png")
    assert len(prompts(agent)[0].data["images"]) == 1


async def test_an_image_that_is_too_large_is_not_sent_and_it_is_said_why(root: Path) -> None:
    (root / "big.png").write_bytes(png(10, 10) + b"\0" * MAX_FILE)
    (root / "wide.png").write_bytes(png(9000, 10))
    provider = ScriptedProvider(say("No."))
    told = await events_of(make_agent(root, provider), "see @big.png @wide.png @shot.png")
    notes = [event.text for event in told if isinstance(event, facts.Notice)]
    assert [note.split(":")[0] for note in notes] == [
        "Didn't attach big.png",
        "Didn't attach wide.png",
    ]
    assert "smaller copy" in notes[0]
    assert [block["type"] for block in sent(provider)] == ["image", "text"]


async def test_no_more_images_are_mentioned_than_a_prompt_takes(root: Path) -> None:
    for number in range(23):
        (root / f"{number}.png").write_bytes(png(10, number + 1))
    provider = ScriptedProvider(say("Many."))
    agent = make_agent(root, provider)
    told = await events_of(agent, " ".join(f"@{number}.png" for number in range(23)))
    assert [block["type"] for block in sent(provider)].count("image") == 20
    assert any("too many" in str(event) for event in told)
    assert check(provider.requests[-1].messages) == []


async def test_numbers_go_on_through_the_session(root: Path) -> None:
    (root / "b.png").write_bytes(png(10, 10))
    agent = make_agent(root, ScriptedProvider(say("1"), say("2")))
    await events_of(agent, "@shot.png")
    await events_of(agent, "@b.png @shot.png")
    first, second = (record.data["images"] for record in prompts(agent))
    assert [word[:9] for word in (*first, *second)] == ["[image 1:", "[image 2:", "[image 3:"]


async def test_an_image_in_hand_is_not_attached_a_second_time(root: Path) -> None:
    agent, image = make_agent(root, ScriptedProvider(say("1"))), shot()
    word = image.word(1)
    told = agent.send(parse(f"what is @shot.png\n{word}", images={word: image}))
    assert [event async for event in told]
    assert prompts(agent)[0].data["images"] == [word]


async def test_a_prompt_of_an_image_alone(root: Path) -> None:
    provider, image = ScriptedProvider(say("A screen.")), shot()
    agent, word = make_agent(root, provider), image.word(1)
    told = [event async for event in agent.send(parse(word, images={word: image}))]
    assert [e.outcome for e in told if isinstance(e, facts.TurnFinished)] == ["done"]
    assert [block["type"] for block in sent(provider)] == ["image", "text"]


async def test_directives_alone_still_only_switch(root: Path) -> None:
    agent = make_agent(root, ScriptedProvider())
    await events_of(agent, "/think on")
    assert prompts(agent) == []


async def test_what_is_attached_beside_the_prompt_is_not_looked_at(root: Path) -> None:
    agent = make_agent(root, ScriptedProvider(say("Yes.")))
    told = [event async for event in agent.send(parse("look", attached="see @shot.png"))]
    assert told
    assert "images" not in prompts(agent)[0].data


async def test_an_image_joins_the_turn_that_runs(root: Path) -> None:
    provider = ScriptedProvider([call("list_dir", path=".")], say("Seen."))
    agent, image = make_agent(root, provider), shot()
    word, steered = image.word(1), False
    async for event in agent.send(parse("go")):
        if isinstance(event, facts.ToolStarted) and not steered:
            steered = True
            agent.steer(parse(f"and {word}", images={word: image}))
            agent.steer(parse("and @shot.png"))
    queued = prompts(agent)[1:]
    assert [record.data["images"][0][:9] for record in queued] == ["[image 1:", "[image 2:"]
    kinds = [block["type"] for block in sent(provider)]
    assert kinds.count("image") == 2
    assert kinds[0] == "tool_result", "never between a call and its result"
    assert check(provider.requests[-1].messages) == []


async def test_what_is_taken_back_is_not_sent(root: Path) -> None:
    provider = ScriptedProvider(Hang("…"))
    agent, image = make_agent(root, provider), shot()
    word = image.word(1)

    async def run() -> None:
        async for _ in agent.send(parse("go")):
            pass

    turn = asyncio.create_task(run())
    await provider.waiting.wait()
    agent.steer(parse(word, images={word: image}))
    assert [prompt.typed for prompt in agent.unqueue()] == [word]
    agent.cancel()
    await turn
    assert len(prompts(agent)) == 1


async def test_a_session_with_images_is_gone_on_with(root: Path) -> None:
    clock = FakeClock()
    session = Session.create(root, folders=folders(), clock=clock)
    agent = make_agent(root, ScriptedProvider(say("A screen.")), session=session, clock=clock)
    await events_of(agent, "what is @shot.png")
    path, first = session.path, prompts(agent)[0].data["content"]
    assert path
    await agent.close()
    assert not read(path).findings
    provider = ScriptedProvider(say("Still."))
    again = make_agent(root, provider, session=Session.open(path, clock=clock), clock=clock)
    await events_of(again, "and now?")
    content = provider.requests[-1].messages[0]["content"]
    assert [{k: v for k, v in b.items() if k != "cache_control"} for b in content] == first
    await again.close()


async def test_the_image_is_an_item_with_its_tokens_and_can_be_masked(root: Path) -> None:
    (root / "b.png").write_bytes(png(1500, 750))
    provider = ScriptedProvider(say("1"), say("2"), say("3"))
    agent = make_agent(root, provider)
    await events_of(agent, "see @shot.png and @b.png")
    record = prompts(agent)[0]
    items = [item for item in agent.context.ledger.items(images=True) if item.kind == "image"]
    assert [(item.id, item.tokens) for item in items] == [
        (f"{record.id}#0", 342),  # 640 x 400 / 750
        (f"{record.id}#1", 1500),
    ]
    assert "b.png 1500×750" in items[1].label
    assert sum(i.tokens for i in agent.context.ledger.items()) == sum(
        i.tokens for i in agent.context.ledger.items(images=True)
    )
    before = agent.context.ledger.measure().parts["messages"]
    await agent.context.overlay([Overlay(record.id, "imageless", blocks=(1,))])
    assert agent.context.ledger.measure().parts["messages"] < before - 1400
    states = [
        i.state for i in agent.context.ledger.items(images=True) if i.kind in {"user", "image"}
    ]
    assert states == ["full", "full", "masked"]
    await events_of(agent, "continue")
    first = provider.requests[-1].messages[0]["content"]
    assert [block["type"] for block in first] == ["image", "text", "text"]
    assert first[1]["text"].startswith("[Masked by the person: image 2: b.png 1500×750 ")
    await agent.context.overlay([Overlay(record.id, "masked")])
    states = [
        i.state for i in agent.context.ledger.items(images=True) if i.id.startswith(record.id)
    ]
    assert states == ["masked", "masked", "masked"]
    await agent.context.overlay([Overlay(record.id, "full")])
    await events_of(agent, "again")
    assert [b["type"] for b in provider.requests[-1].messages[0]["content"]] == [
        "image",
        "image",
        "text",
    ]


async def test_masking_keys_in_the_record_leaves_an_image_whole(root: Path) -> None:
    """Base64 may look like a key; an image that is changed is no image."""
    head = png(10, 10)
    like_a_key = base64.b64decode("////AKIAIOSFODNN7EXAMPLE////")
    found = of_bytes(head + b"\0" * (-len(head) % 3) + like_a_key, "a.png")
    assert found
    assert "AKIAIOSFODNN7EXAMPLE" in found.data
    session = Session.in_memory(root, clock=FakeClock())
    session.redact = True
    agent = make_agent(root, ScriptedProvider(say("1")), session=session)
    word = found.word(1)
    async for _ in agent.send(parse(f"{word} sk-ant-{'b' * 40}", images={word: found})):
        pass
    content = prompts(agent)[0].data["content"]
    assert content[0]["source"]["data"] == found.data
    assert "sk-ant-b" not in json.dumps(content[1])


def _too_large(*paths: str) -> ProviderError:
    images = LargeImages(paths, 320)
    return ProviderError("invalid_request", "image too large", status=400, images=images)


async def test_images_that_the_server_names_as_too_large_are_shrunk_and_sent_again(
    root: Path,
) -> None:
    (root / "small.png").write_bytes(png(100, 50))
    Pillow.new("RGB", (640, 400), "green").save(root / "shot.png")
    provider = ScriptedProvider(_too_large("messages.0.content.0"), say("I see."), say("Yes."))
    agent = make_agent(root, provider)
    seen = await events_of(agent, "look at @shot.png and @small.png")
    first, second = sent(provider, 0), sent(provider, 1)
    assert first[0] != second[0]
    assert first[1:] == second[1:]
    data = base64.b64decode(second[0]["source"]["data"])
    shrunk = of_bytes(data, "x")
    assert shrunk is not None
    assert (shrunk.info.width, shrunk.info.height) == (320, 200)
    assert (
        facts.Notice("The server takes images of at most 320 pixels a side: 1 image shrunk.")
        in seen
    )
    await events_of(agent, "and now?")
    again = provider.requests[-1].messages[0]["content"]
    assert again[0]["source"] == second[0]["source"]
    replay = RequestReplay(agent.session.records)
    assert [one.problem for one in replay.every()] == ["", "", ""]


async def test_what_is_small_enough_and_refused_all_the_same_is_left_out(root: Path) -> None:
    (root / "small.png").write_bytes(png(100, 50))
    provider = ScriptedProvider(_too_large("messages.0.content.0"), say("I see."))
    agent = make_agent(root, provider)
    seen = await events_of(agent, "look at @small.png")
    assert sent(provider)[0] == {"type": "text", "text": "[image left out: too large to send]"}
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "done"
