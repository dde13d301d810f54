"""What the practice model keeps of a conversation, and what it does not take for a request."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.provider.practice_world import World, parts_of
from tui.context import memory, summarise
from tui.context.digest import digest
from tui.live.shell import attachment
from tui.messages import Message, text_block, text_of
from tui.provider.base import Completed
from tui.provider.practice.steps import Read
from tui.provider.practice.understand import understand


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def notes_on(world: World) -> list[str]:
    """What the practice model answers to the real question for notes on what was said."""
    talk = "\n\n".join(summarise.transcript(world.messages))
    asked = Message(role="user", content=[text_block(memory.question(talk))])
    answer = (await parts_of(world.model, world.request(messages=[asked], tools=[])))[-1]
    assert isinstance(answer, Completed)
    return memory.notes_in(text_of(answer.content))


async def test_R26_of_a_look_around_nothing_is_kept(world: World) -> None:
    world.write("README.md", "# Demo\n- a list\n")
    world.type("read README.md")
    await world.go_on()
    world.type("dance")
    await world.go_on()
    assert await notes_on(world) == []


async def test_R26_what_was_changed_and_what_shall_be_remembered_is_kept(world: World) -> None:
    world.type("create notes.txt with hello")
    await world.go_on()
    world.type("Remember that tabs are never used here")
    await world.go_on()
    assert await notes_on(world) == ["tabs are never used here", "Created notes.txt: 6 B."]


async def test_a_digest_and_a_command_of_ones_own_are_no_request(world: World) -> None:
    world.type("dance")
    before = digest(world.messages, 500)
    heard = attachment("echo `date`; ls", "read b.txt\nlist tests\n(exit code 0)")
    said = [text_block(before), text_block(f"list\n\n{heard}")]
    world.messages = [Message(role="user", content=said)]
    await world.go_on()
    assert world.calls == [("list_dir", {"path": "."})]


def test_a_name_is_taken_as_its_completion_writes_it() -> None:
    said = 'read @src/x.py and @"with space.txt"'
    assert understand(said) == (Read(("src/x.py", "with space.txt")),)
