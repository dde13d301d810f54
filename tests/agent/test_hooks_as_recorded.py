"""Hooks of the same text do the same here as in Claude Code 2.1.332, or less is allowed: its own
runs (`tests/settings/claude_hooks/`) are done again with real commands around a real agent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.settings.claude_hooks import LOG, cases
from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.core.messages import text_of
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.settings import hook_files
from tui.settings.allowed_tools import allowed_tools, restricted_tools

BEGINNINGS: Final = (
    "pre.", "matcher.", "if", "same_twice", "exit", "badjson", "onfailure", "args", "timeout.odd",
    "post.", "fail.", "prompt.", "start.plain", "stop.", "request.", "updated", "type.unknown",
    "type.http.down", "type.prompt", "async", "once", "flat", "unknown_event",
)  # fmt: skip
NOT_HERE: Final = frozenset(
    {
        "async_rewake",  # in -p it is waited for; nothing of it but the wait is known
        "async.answer",  # an answer that comes later is not read here
        "type.prompt.stop",  # the model is asked: not built
        "matcher.agent",  # no command
        "post.updated.read",  # likewise
        "stop.always",  # five times here, eight times there
        "fail.context",  # a command that isn't plain asks: tests of their own, for those below, too
        "fail.exit2",
        "post.continue_false",
        "pre.continue_false",
        "pre.defer",
        "pre.two.defer+allow",
        "request.deny.interrupt",
    }
)
"""Cases that can't be compared."""
STRICTER: Final[Mapping[str, str]] = {
    "pre.wrong_event": "refused", "pre.unknown_decision": "refused",
    "badjson": "refused", "badjson.block": "refused",
    "onfailure.odd": "refused", "pre.updated_two": "refused", "flat": "refused",
    "type.unknown": "refused", "type.http.down": "refused", "type.prompt": "refused",
    "request.two": "refused", "request.exit2": "refused", "timeout.odd": "ran",
    "matcher.'bash'": "ran", "matcher.'['": "ran", "matcher.'Bash(echo *)'": "ran",
    "post.updated.text": "changed", "post.updated.mcp_name": "changed",
    "post.updated.two": "changed", "if": "ran", "if.compound": "refused",
}  # fmt: skip
"""Where Claude Code drops what it can't read, and the call runs."""
OTHERS_RUN: Final = frozenset(
    {
        "matcher.'bash'",
        "matcher.'['",
        "matcher.'Bash(echo *)'",
        "timeout.odd",
        "onfailure.odd",
        "if",
        "if.compound",
        "type.unknown",
    }
)
"""Cases whose hooks run here although they don't there; an `if` is compared with the command."""

CASES: Final = {
    name: one
    for name, one in cases().items()
    if name.startswith(BEGINNINGS) and name not in NOT_HERE
}


def policy(settings: Mapping[str, Any]) -> Policy:
    rules = settings["permissions"]
    return Policy.of(
        allow=allowed_tools(rules.get("allow", [])).rules,
        ask=restricted_tools(rules.get("ask", [])).rules,
        deny=restricted_tools(rules.get("deny", [])).rules,
    )


async def replayed(
    case: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, dict[str, int], list[str]]:
    """How the last call ended, how often each hook ran, and the files that were made."""
    root, log = tmp_path / "work", tmp_path / "log"
    root.mkdir()
    log.mkdir()
    monkeypatch.setenv("HOOK_LOG", str(log))
    file = tmp_path / "hooks.json"
    file.write_text(json.dumps({"hooks": case["settings"]["hooks"]}))
    answers: list[Any] = []
    for n, turn in enumerate(case["turns"]):
        made = [
            call("run_command", f"c{n}{i}", command=one["input"]["command"])
            for i, one in enumerate(turn)
            if one.get("tool") == "Bash"
        ]
        answers.append(made or say(turn[0].get("text", "done")))
    answers += [say("done") for _ in range(12)]
    agent = make_agent(
        root,
        ScriptedProvider(*answers),
        find_hooks=partial(hook_files.load, [file]),
        gate=Gate(policy(case["settings"])),
    )
    await agent.start()
    await events_of(agent, case["prompt"])
    await agent.close()
    results = [one.data for one in agent.session.records if one.type == "tool_result"]
    ended = "nothing"
    if results:
        text = text_of(results[-1]["content"])
        ended = "changed" if "[the user's hook changed this result]" in text else "ran"
        ended = "failed" if re.search("xit code [1-9]", text) else ended
        ended = "refused" if text.startswith(("Not allowed", "Declined", "A hook gave")) else ended
    runs = {one.name: len(one.read_text().split('"hook_event_name"')) - 1 for one in log.iterdir()}
    made = sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file())
    return ended, {k: n for k, n in runs.items() if n}, made


def seen(case: Mapping[str, Any]) -> str:
    """How the last call ended there."""
    if not case["results"]:
        return "nothing"
    text = list(case["results"].values())[-1]
    words = ("hook error", "denied", "needs approval", "haven't granted", "never", "why", "failed")
    if any(word in text for word in words):
        return "refused"
    if "Exit code" in text:
        return "failed"
    return "changed" if "new" in text else "ran"


@pytest.mark.parametrize("name", CASES)
async def test_a_hook_does_what_it_does_there_or_less_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = CASES[name]
    ended, runs, made = await replayed(case, tmp_path, monkeypatch)
    assert ended == STRICTER.get(name, seen(case))
    if name not in OTHERS_RUN:
        there = {key: n for key, n in case["given"].items() if isinstance(n, int)}
        assert runs == there
    if name not in STRICTER:
        assert made == [one for one in case["made"] if one != "x" or "touch" in str(case["turns"])]


def test_the_beginning_of_a_hook_is_as_it_was() -> None:
    assert "HOOK_LOG" in LOG
