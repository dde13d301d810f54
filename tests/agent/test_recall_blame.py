"""recall with lines of a file: what the model is told of them, and what it isn't."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tui.session.checkpoints.store as store_module
from tests.agent.test_recall import QUIET, result
from tests.support.agents import make_agent
from tests.support.blame_world import World
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.core.clock import SystemClock
from tui.core.facts import Overlay
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.session.session import Session


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(store_module, "time", store_module.time)
    world = World(tmp_path / "world", 1)
    session = world.session()
    session.edit("edit_file", [*world.lines(), ("last", "")])
    session.save()
    yield world
    world.close()


async def told(world: World, asked: str, *, root: Path | None = None, deny: str = "") -> str:
    """What the model gets for `recall` with these lines."""
    root = root or world.root
    provider = ScriptedProvider([call("recall", "a", blame=asked)], say("done"))
    session = Session.create(root, folders=world.folders, clock=SystemClock())
    gate = Gate(Policy.of(deny=[deny] if deny else []))
    agent = make_agent(
        root, provider, session=session, folders=world.folders, config=QUIET, gate=gate
    )
    try:
        return await result(agent, "why?")
    finally:
        await agent.close()


async def test_the_model_asks_which_prompt_wrote_a_line_and_where_to_read_it(world: World) -> None:
    last, session = len(world.lines()), world.sessions[0]
    text = await told(world, f"src/module.py:{last}")
    assert text.splitlines() == [
        f"--- line {last} ---",
        f"edit_file for “Please do part 1 of {session.id}”",
        "claude-sonnet-5-5 · $0.0030 · allowed by a rule",
        f"prompt: message {session.id}:1",
    ]


async def test_what_the_person_hid_is_not_quoted(world: World) -> None:
    session = world.sessions[0]
    prompt = session.prompts[0][0]
    session.write("overlay", **Overlay(prompt, "masked", by="person").to_record())
    session.save()
    text = await told(world, f"src/module.py:{len(world.lines())}")
    assert "Please do" not in text
    assert f"in session {session.id}" in text


async def test_keys_are_masked(world: World) -> None:
    key = "sk-ant-api03-" + "a" * 60
    session = world.sessions[0]
    lines = [*world.lines(), ("made", "")]
    session.command(f"echo {key}", lambda label: world.put(world.root, lines))
    session.save()
    text = await told(world, f"src/module.py:{len(lines)}")
    assert "`echo " in text
    assert "sk-ant-api03-aaaa" not in text


async def test_a_session_of_another_folder_is_not_quoted(world: World) -> None:
    inner = world.root / "src"
    text = await told(world, f"module.py:{len(world.lines())}", root=inner)
    assert "Please do" not in text
    assert "in a session that can't be read from here" in text


async def test_a_session_that_says_it_is_another_is_not_quoted(world: World) -> None:
    """The folder above has one that names itself like one that may be read."""
    inner, session = world.root / "src", world.sessions[0]
    own = Session.create(inner, folders=world.folders, clock=SystemClock())
    own.append("user", content=[{"type": "text", "text": "hello"}], text="hello")
    claimed = session.file.read_text().replace(f'"id":"{session.id}"', f'"id":"{own.id}"', 1)
    session.file.write_text(claimed)
    text = await told(world, f"module.py:{len(world.lines())}", root=inner)
    assert "Please do" not in text
    assert "in a session that can't be read from here" in text


@pytest.mark.parametrize(
    ("asked", "deny", "words"),
    [
        ("../secret.txt:1", "", "outside the workspace"),
        ("src/module.py:1", "read_file(src/*)", "Denied by the rule read_file(src/*)"),
        ("src/module.py:99999", "", "there is no line 99999"),
        ("gone.py", "", "There is no file"),
    ],
)
async def test_a_file_that_may_not_be_read_is_not_told_of(
    world: World, asked: str, deny: str, words: str
) -> None:
    (world.root.parent / "secret.txt").write_text("x\n")
    assert words in await told(world, asked, deny=deny)


async def test_a_rule_on_reading_files_leaves_the_search_alone(world: World) -> None:
    provider = ScriptedProvider([call("recall", "a", query="src/module.py")], say("done"))
    gate = Gate(Policy.of(deny=["read_file(src/*)"]))
    agent: Agent = make_agent(world.root, provider, config=QUIET, gate=gate)
    assert "Nothing outside the window" in await result(agent, "why?")
    await agent.close()
