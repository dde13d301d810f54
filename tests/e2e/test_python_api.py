"""A program's own conversation before the strict server: requests grow, results are checked."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.support.serving import serving
from tui.app import Conversation

SCHEMA = {
    "type": "object",
    "properties": {"risk": {"enum": ["low", "high"]}},
    "required": ["risk"],
    "additionalProperties": False,
}


def result(risk: str) -> dict[str, object]:
    call = {"name": "submit_result", "input": {"risk": risk}}
    return {"thinking": "I know it now.", "tools": [call]}


async def test_results_of_several_prompts_are_never_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def owners(path: str) -> list[str]:
        """Who must approve a change."""
        return ["core"] if path == "a.py" else []

    turns = [
        {"thinking": "Who?", "tools": [{"name": "owners", "input": {"path": "a.py"}}]},
        result("medium"),
        result("high"),
        {"thinking": "No result.", "text": "It is fine."},
        result("low"),
    ]
    with serving({"turns": turns, "catalogue": True, "priced": True}) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("HOLDFAST_SMALL_MODEL", "")
        async with Conversation.at(tmp_path, tools=[owners], schema=SCHEMA) as conversation:
            first = await conversation.ask("Review this.", attached="+print(1)")
            second = await conversation.ask("And this?", attached="+print(2)")
        prompts = [post for post in server.api.priced if "tools" in post.body]
    assert (first.value, second.value) == ({"risk": "high"}, {"risk": "low"})
    assert first.cost_usd is not None
    assert len(prompts) == len(turns)
    names = [tool["name"] for tool in prompts[0].body["tools"]]
    assert {"owners", "submit_result"} <= set(names)
    for before, after in itertools.pairwise(prompts):
        assert after.body["tools"] == before.body["tools"]
        assert len(after.body["messages"]) > len(before.body["messages"])
