"""Masking and pinning through the agent: recorded, told, obeyed by the next request."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agents import events_of, make_agent, record_types
from tests.support.provider import ScriptedProvider, call, say
from tui.context.validate import check
from tui.core import facts
from tui.core.errors import HoldfastError
from tui.core.facts import Overlay
from tui.core.messages import text_of


async def test_a_masked_result_is_not_sent_again_and_comes_back_unmasked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n" * 500)
    provider = ScriptedProvider(
        [call("read_file", path="a.txt")], say("read"), say("masked"), say("back")
    )
    agent = make_agent(tmp_path, provider)
    await events_of(agent, "read a.txt")
    result = next(r for r in agent.session.records if r.type == "tool_result")
    assert result.data["details"]["path"] == str(tmp_path / "a.txt")

    told = await agent.context.overlay([Overlay(result.id, "masked", reason="read again later")])
    changed, *_, measured = told
    assert isinstance(changed, facts.ContextChanged)
    assert changed.changes[0]["call_id"] == "toolu_read_file"
    assert changed.to_json()["type"] == "context_changed"
    assert isinstance(measured, facts.ContextMeasured)
    states = {item.id: item.state for item in agent.context.ledger.items()}
    assert states[result.id] == "masked"
    assert record_types(agent)[-1] == "overlay"

    def sent() -> str:
        request = provider.requests[-1].messages
        assert check(request) == []
        return text_of(request[2]["content"][0]["content"])

    await events_of(agent, "and now?")
    assert sent().startswith("[Masked by the person: read_file result, ")
    await agent.context.overlay([Overlay(result.id, "full")])
    await events_of(agent, "and now?")
    assert sent().startswith("1\talpha\n")


async def test_a_pin_is_recorded_and_stands_in_the_ledger(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(say("hello")))
    await events_of(agent, "hi")
    prompt = agent.session.records[0]
    await agent.context.pin({prompt.id: True})
    assert [item.id for item in agent.context.ledger.items() if item.pinned] == [prompt.id]
    await agent.context.pin({prompt.id: False})
    assert not any(item.pinned for item in agent.context.ledger.items())


async def test_what_is_no_record_that_the_model_sees_is_refused(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider())
    with pytest.raises(HoldfastError, match="No item"):
        await agent.context.overlay([Overlay("nobody", "masked")])
    assert record_types(agent) == []
