"""The sub-agents of another program's session, once it is taken over: listed, read, and no trouble
for the next prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.test_binding import SONNET, done
from tests.support.agents import make_agent
from tests.support.foreign import ClaudeCode, text, tool_use
from tests.support.server import LoopbackServer
from tui.app.session_repository import SessionRepository
from tui.core.clock import SystemClock
from tui.core.errors import SessionError
from tui.core.messages import blocks_of, text_of
from tui.core.paths import folders
from tui.provider.anthropic import AnthropicProvider
from tui.session.session import Session


def theirs(root: Path) -> Path:
    made = ClaudeCode()
    made.user("go")
    given = {"prompt": "look", "subagent_type": "Explore", "description": "look around"}
    made.piece("m", {**tool_use("call_1", "Task"), "input": given})
    last = made.last
    made.user("look", parent=None, isSidechain=True, agentId="a1")
    made.piece("n", text("found it"), isSidechain=True, agentId="a1")
    made.last = last
    made.result("call_1", "found it")
    made.piece("o", text("done"))
    path = root / "theirs.jsonl"
    path.write_bytes(made.bytes())
    return path


async def test_they_are_listed_and_read_and_the_session_goes_on(
    own_folders: Path, tmp_path: Path
) -> None:
    repository = SessionRepository(folders(), tmp_path, SystemClock(), tmp_path)
    path = repository.take_over(theirs(tmp_path))
    rows = repository.ours(everywhere=True, sub_agents=True)
    assert [row.parent for row in rows] == ["", str(path)]
    async with LoopbackServer({"turns": [{"text": "on"}]}) as server:
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        session = Session.open(path, clock=SystemClock())
        agent = make_agent(tmp_path, provider, model=SONNET, session=session)
        await agent.start()
        (one,) = agent.sub_agents.all
        assert (one.agent, one.description, one.state) == ("Explore", "look around", "done")
        records = agent.sub_agents.records_of(one)
        said = [text_of(blocks_of(r.data["content"])) for r in records if r.type == "assistant"]
        assert said == ["found it"]
        await done(agent, "and on")
        assert len(agent.sub_agents.all) == 1
        await agent.close()


def test_a_file_without_a_message_is_not_taken_over(own_folders: Path, tmp_path: Path) -> None:
    path = tmp_path / "theirs.jsonl"
    path.write_text('{"type": "queue-operation", "sessionId": "s"}\n')
    repository = SessionRepository(folders(), tmp_path, SystemClock(), tmp_path)
    with pytest.raises(SessionError, match="no message"):
        repository.take_over(path)
    assert repository.ours(everywhere=True) == []
