"""What `sessions view` and F2 show of the next request is what is then sent, byte for byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.server import LoopbackServer
from tui.agent.agent import Agent
from tui.agent.composition import make_agent
from tui.agent.prompts import parse
from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.cli import main
from tui.context import request_assembly
from tui.core.clock import SystemClock
from tui.core.facts import Fact, Overlay
from tui.core.paths import folders
from tui.permissions.gate import RulesOnly
from tui.session.session import Session

SETTINGS = """
context_window = 60000
[retry]
max_attempts = 0
[prune]
after_turns = 1
min_chars = 100
when = "{when}"
[compaction]
memory_flush = false
keep_messages = 2
"""
READ = {
    "thinking": "I read.",
    "tools": [{"name": "read_file", "input": {"path": "a.txt"}}],
    "usage": {"input_tokens": 4000, "output_tokens": 40},
}
FAILED = {"tools": [{"name": "read_file", "input": {"path": "no.txt"}}]}
SAID = {"thinking": "Done.", "text": "That is it. " * 30}


async def drain(told: AsyncGenerator[Fact]) -> list[Fact]:
    return [event async for event in told]


@pytest.mark.parametrize("when", ["turns", "pays"])
async def test_what_is_shown_is_what_is_sent(
    when: str,
    own_folders: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a.txt").write_text("alpha beta gamma\n" * 30)
    (tmp_path / "AGENTS.md").write_text("Say it in one sentence.\n")
    config = own_folders / "config" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(SETTINGS.format(when=when))
    turns = [SAID, *[t for _ in range(4) for t in (READ, SAID)], FAILED, SAID]  # then a summary
    turns += [{"text": "They read a file."}, READ, SAID, SAID]
    turns += [READ, {"faults": [{"rejected": "B10"}], **SAID}, SAID]
    turns += [SAID, SAID, {"text": "cut", "faults": [{"status": 500}]}, SAID, SAID]
    async with LoopbackServer({"turns": turns, "signatures": False}) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
        monkeypatch.chdir(tmp_path)
        made = launch_config.prepare(Options()).with_key("sk-ant-test")
        session = Session.create(tmp_path, folders=folders(), clock=SystemClock())
        agent = make_agent(made, session, RulesOnly())
        await agent.start()
        seen = Seen(agent, server, capsys.readouterr)

        await drain(agent.send(parse("hello")))  # there is a file from here on
        for turn in range(4):
            await seen.same(f"read it, number {turn}")
        await seen.same("read what is not there")
        results = [r.id for r in session.records if r.type == "tool_result"]
        await agent.context.overlay([Overlay(results[-2], "masked"), Overlay(results[0], "full")])
        await agent.context.pin({results[1]: True})
        states = {item["state"] for item in (await seen.next())["ledger"]}
        assert states >= ({"masked", "pruned"} if when == "turns" else {"masked"})
        finished = (await drain(agent.context.compact()))[-2:]
        assert any(getattr(event, "messages_removed", 0) for event in finished), finished
        states = {item["state"] for item in (await seen.next())["ledger"]}
        assert "summarised" in states
        await seen.same("after the compaction")
        await seen.same("/think and with deep thought")
        assert (await seen.next())["thinking"] == {"type": "adaptive", "display": "summarized"}
        await seen.same("one that is refused")  # its second request is
        assert agent.context.repair_levels()[:1] == ("strict",)
        await agent.context.repair("strict")
        await seen.same("/think off after the repair")
        await agent.context.repair("drop_thinking")
        await seen.same("without earlier thoughts")
        await agent.context.repair("text_only")
        await seen.same("only texts")
        await seen.same("the server fails")
        await seen.same("and joins what stands behind it")
        await agent.context.repair("summary_only")
        await seen.same("and at last as a digest")
        assert seen.compared == 14
        await agent.close()


class Seen:
    """Compares what is shown before a prompt with what the server got then."""

    def __init__(self, agent: Agent, server: LoopbackServer, printed: Callable[[], Any]) -> None:
        self.agent, self.server, self.printed = agent, server, printed
        self.compared = 0

    async def next(self) -> dict[str, Any]:
        """What `sessions view` prints."""
        self.printed()
        words = ["sessions", "view", str(self.agent.session.path), "--json"]
        assert await asyncio.to_thread(main.main, words) == 0
        return json.loads(self.printed().out)

    async def same(self, prompt: str) -> None:
        think = prompt.startswith("/think ")
        if think:  # a directive belongs to the prompt: it is in force from there on
            word = "/think off" if "off" in prompt else "/think"
            await drain(self.agent.send(parse(word)))
            prompt = prompt.removeprefix(word).strip()
        shown = await self.next()
        here = request_assembly.to_json(self.agent.context.next_request(prompt_follows=True))
        shown.pop("ledger")
        number = len(self.server.posts) + 1
        async with asyncio.timeout(PATIENCE_S):
            await drain(self.agent.send(parse(prompt)))
        sent = (await self.server.post(number)).body
        *before, last = sent["messages"]
        given = last["content"]
        if given[-1].get("text", "").startswith("<notice>"):  # what changed is said behind it
            mark = given.pop()["cache_control"]
            given[-1]["cache_control"] = mark
        *rest, said = given
        assert said["text"] == prompt
        assert "cache_control" in said, "the prompt is cached too"
        if rest:
            before.append({**last, "content": rest})
        whole = {name: sent.get(name) for name in shown} | {"messages": before}
        assert shown.keys() == here.keys()
        for name in shown:
            assert here[name] == whole[name], (prompt, name)
            assert shown[name] == whole[name], (prompt, name)
        assert json.dumps(shown, sort_keys=True) == json.dumps(whole, sort_keys=True)
        self.compared += 1
