"""What a rule keeps from being read is shown by no tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.core.facts import Notice
from tui.core.messages import blocks_of, text_of
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (".env", "a.py", "keys/one", "keys/two"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("TOKEN\n")
    (tmp_path / "same").hardlink_to(tmp_path / ".env")
    return tmp_path


async def answer_to(root: Path, tool: str, *, ask: str = "", **arguments: Any) -> str:
    provider = ScriptedProvider([call(tool, **arguments)], say("done"))
    agent = make_agent(root, provider)
    asks = [ask] if ask else []
    deny = [] if ask else ["read_file(.env)", "read_file(keys/*)"]
    agent.permissions.gate.policy = Gate(Policy.of(deny=deny, ask=asks)).policy
    await events_of(agent, "go")
    return text_of(blocks_of(provider.requests[1].messages[-1]["content"][0]["content"]))


async def test_a_search_leaves_it_out_and_says_so(root: Path) -> None:
    assert await answer_to(root, "grep_search", pattern="TOKEN") == (
        "a.py:1:TOKEN\n[4 paths left out: a rule denies reading it]"
    )
    found = await answer_to(root, "find_by_name", pattern="*")
    assert found.splitlines()[0] == "a.py"
    assert not {".env", "same", "keys/one"} & set(found.splitlines())
    assert "left out: a rule denies reading it" in found


async def test_a_folder_is_listed_without_it(root: Path) -> None:
    listed = await answer_to(root, "list_dir", path="keys")
    assert listed == "[2 paths left out: a rule denies reading it]"


async def test_what_is_asked_about_is_found_by_name_and_not_shown(root: Path) -> None:
    text = await answer_to(root, "grep_search", pattern="TOKEN", ask="read_file(a.py)")
    assert "a.py:1" not in text
    assert "[1 file left out: the user is asked before it is read]" in text
    assert "a.py" in await answer_to(root, "find_by_name", pattern="*", ask="read_file(a.py)")


async def test_a_named_image_is_not_attached(root: Path) -> None:
    picture = root / "keys/p.gif"
    picture.write_bytes(
        b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\0\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;"
    )
    provider = ScriptedProvider(say("done"))
    agent = make_agent(root, provider)
    agent.permissions.gate.policy = Policy.of(deny=["read_file(keys/*)"])
    events = await events_of(agent, "see @keys/p.gif")
    content = str(provider.requests[0].messages)
    assert "Denied by the rule" in content
    assert "'image'" not in content
    assert not any(isinstance(one, Notice) and "Attached" in one.text for one in events)
