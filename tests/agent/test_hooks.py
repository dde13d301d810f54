"""Hooks: real commands of a person, around the calls and turns of a real agent."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.settings.claude_hooks import EVENTS
from tests.support.agents import Yes, events_of, make_agent
from tests.support.clock import PATIENCE_S, ManualClock
from tests.support.provider import ScriptedProvider, call, last_user_text, say
from tui.agent.agent import Agent
from tui.app.commands.rewind import points
from tui.app.reports.hooks import hook_lines, hook_rows
from tui.context.file_changes import changes, restore
from tui.core import facts
from tui.core.fact_words import fact_lines as said
from tui.core.messages import text_of
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.permissions.types import Answer, Call, Decision
from tui.session.export import export
from tui.session.reader import LoadedSession
from tui.session.records import is_prompt
from tui.settings import agent_definitions, hook_files
from tui.ui.widgets.conversation.items import NoticeItem
from tui.ui.widgets.record_items import items_of

Make = Callable[..., Agent]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """An agent whose hooks are the given ones: event to (matcher, program) or program alone."""

    def made(
        provider: ScriptedProvider,
        hooks: Mapping[str, tuple[str, str] | str],
        *,
        timeout: float = 60,
        find: Callable[[], hook_files.Hooks] | None = None,
        **fields: Any,
    ) -> Agent:
        groups: dict[str, Any] = {}
        for event, given in hooks.items():
            matcher, program = given if isinstance(given, tuple) else ("", given)
            file = tmp_path / f"{event}.py"
            file.write_text(
                f"import json, sys, os, time\ngiven = json.load(sys.stdin)\n{program}\n"
            )
            command = f"{sys.executable} {file}"
            one = {"type": "command", "command": command, "timeout": timeout}
            groups[event] = [{"matcher": matcher, "hooks": [one]}]
        (tmp_path / "hooks.json").write_text(json.dumps({"hooks": groups}))
        root = tmp_path / "workspace"
        root.mkdir(exist_ok=True)
        find = find or partial(hook_files.load, [tmp_path / "hooks.json"])
        fields.setdefault("approver", Yes())
        return make_agent(root, provider, find_hooks=find, **fields)

    return made


TRUE: dict[str, Any] = {"type": "command", "command": "true"}
BLOCKS = "print('not this one', file=sys.stderr); sys.exit(2)"


def rewrite(tmp_path: Path, event: str, **fields: Any) -> None:
    """Change the fields of the hook for an event."""
    file = tmp_path / "hooks.json"
    written = json.loads(file.read_text())
    written["hooks"][event][0]["hooks"][0] |= fields
    file.write_text(json.dumps(written))


def results(agent: Agent) -> list[str]:
    found = (one.data for one in agent.session.records if one.type == "tool_result")
    return [text_of(one["content"]) for one in found]


def finished(shown: Sequence[facts.Fact]) -> list[tuple[str, str]]:
    return [(one.event, one.outcome) for one in shown if isinstance(one, facts.HookFinished)]


async def test_one_forbids_a_call_and_sees_it_as_claude_code_would(
    make: Make, tmp_path: Path
) -> None:
    seen = tmp_path / "seen.json"
    program = f"open({str(seen)!r}, 'w').write(json.dumps(given))\n{BLOCKS}"
    provider = ScriptedProvider(
        [call("write_file", "w", path="a.txt", content="x"), call("list_dir", "l", path=".")],
        say("ok"),
    )
    agent = make(provider, {"PreToolUse": ("Edit|Write", program)})
    shown = await events_of(agent, "go")
    assert results(agent)[0] == "Not allowed, not run: not this one"
    assert finished(shown) == [("PreToolUse", "blocked")]
    given = json.loads(seen.read_text())
    assert given["tool_name"] == "Write"
    whole = str(tmp_path / "workspace/a.txt")
    assert given["tool_input"] == {"file_path": whole, "path": "a.txt", "content": "x"}
    assert given["hook_event_name"] == "PreToolUse"
    assert given["permission_mode"] == "default"
    assert given["session_id"] == agent.session.id
    record = next(one.data for one in agent.session.records if one.type == "hook")
    assert (record["outcome"], record["exit_code"], record["call_id"]) == ("blocked", 2, "w")
    assert not (tmp_path / "workspace/a.txt").exists()
    await agent.close()


def says(**fields: Any) -> str:
    """A program that prints an answer about a call."""
    return f"print(json.dumps({{'hookSpecificOutput': {fields!r}}}))"


class Counts:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.reasons.append(decision.reason)
        return Answer("once")


@pytest.mark.parametrize(
    ("verdict", "deny", "asked", "ran"),
    [("allow", (), 0, True), ("ask", (), 1, True), ("allow", ("write_file",), 0, False)],
)
async def test_one_allows_or_asks_and_no_one_lifts_a_rule(
    make: Make, tmp_path: Path, verdict: str, deny: tuple[str, ...], asked: int, *, ran: bool
) -> None:
    provider = ScriptedProvider([call("write_file", "w", path="a.txt", content="x")], say("ok"))
    approver = Counts()
    program = says(permissionDecision=verdict, permissionDecisionReason="because")
    gate = Gate(Policy.of(deny=deny))
    agent = make(provider, {"PreToolUse": program}, approver=approver, gate=gate)
    await events_of(agent, "go")
    assert len(approver.reasons) == asked
    assert (tmp_path / "workspace/a.txt").exists() == ran
    await agent.close()


async def test_one_asks_about_what_would_run_without_a_question(make: Make) -> None:
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"))
    approver = Counts()
    program = says(permissionDecision="ask", permissionDecisionReason="Really?")
    agent = make(provider, {"PreToolUse": ("LS", program)}, approver=approver)
    await events_of(agent, "/elevated go")
    assert approver.reasons == ["Really?"]
    await agent.close()


async def test_one_tells_the_model_about_a_result(make: Make) -> None:
    provider = ScriptedProvider(
        [call("write_file", "w", path="a.txt", content="x")],
        [call("list_dir", "l", path=".")],
        say("ok"),
    )
    program = (
        "print(given['tool_response']['text'], file=sys.stderr)\n"
        "sys.exit(2 if given['tool_name'] == 'Write' else 1)"
    )
    agent = make(provider, {"PostToolUse": program})
    shown = await events_of(agent, "go")
    assert results(agent)[0].endswith("[the user's hook says: Created a.txt: 1 B.]")
    assert "hook" not in results(agent)[1]
    assert finished(shown) == [("PostToolUse", "blocked"), ("PostToolUse", "failed")]
    await agent.close()


async def test_what_was_not_allowed_has_no_hook_after_it(make: Make) -> None:
    provider = ScriptedProvider([call("write_file", "w", path="a.txt", content="x")], say("ok"))
    agent = make(
        provider, {"PostToolUse": "print('x')"}, gate=Gate(Policy.of(deny=("write_file",)))
    )
    assert finished(await events_of(agent, "go")) == []
    await agent.close()


async def test_one_stops_a_prompt_which_is_not_recorded(make: Make) -> None:
    provider = ScriptedProvider(say("never"))
    agent = make(provider, {"UserPromptSubmit": BLOCKS})
    shown = await events_of(agent, "my secret")
    notices = [one.text for one in shown if isinstance(one, facts.Notice)]
    assert notices == ["A hook stopped this prompt: not this one Up brings the prompt back."]
    assert not provider.requests
    assert not [one for one in agent.session.records if one.type == "user"]
    await agent.close()


async def test_they_add_to_the_prompt_once_for_the_session_and_each_time(make: Make) -> None:
    provider = ScriptedProvider(say("one"), say("two"))
    agent = make(
        provider,
        {
            "SessionStart": ("startup", "print('the branch is green')"),
            "UserPromptSubmit": "print(given['prompt'].upper())",
        },
    )
    await agent.start()
    await events_of(agent, "first")
    await events_of(agent, "second")
    assert text_of(provider.requests[0].messages[0]["content"]) == (
        "first\n\nMy hooks say:\nthe branch is green\n\nFIRST"
    )
    assert last_user_text(provider.requests[1]).startswith("second\n\nMy hooks say:\nSECOND")
    await agent.close()


async def test_one_makes_the_agent_go_on_but_not_for_ever(make: Make) -> None:
    program = (
        "print('tests fail' if not given['stop_hook_active'] else 'still', file=sys.stderr)\n"
        "sys.exit(2)"
    )
    says = "The Stop hook says the work isn't done yet"
    provider = ScriptedProvider(*(say(f"done {n}") for n in range(6)))
    agent = make(provider, {"Stop": program})
    shown = await events_of(agent, "go")
    assert len(provider.requests) == 6
    assert last_user_text(provider.requests[1]) == f"{says}: tests fail"
    assert last_user_text(provider.requests[2]) == f"{says}: still"
    assert "The Stop hook held the turn 5 times: it ends now." in [
        one.text for one in shown if isinstance(one, facts.Notice)
    ]
    await agent.close()


async def test_what_a_hook_says_is_no_prompt_of_the_person(make: Make) -> None:
    stop = "if not given['stop_hook_active']: print('tests fail', file=sys.stderr); sys.exit(2)"
    provider = ScriptedProvider(say("done"), say("done now"))
    agent = make(provider, {"Stop": stop})
    await events_of(agent, "fix it")
    records = agent.session.records
    assert [is_prompt(one) for one in records if one.type == "user"] == [True, False]
    assert agent.spending().prompt.usage.total == 220, "one prompt made both requests"
    assert [point.text for point in points(records)] == ["fix it"]
    assert agent.session.title == "fix it"
    loaded = LoadedSession(Path("s.jsonl"), agent.session.header, tuple(records), ())
    shown = export(loaded, "md").text
    assert shown.count("You") == 1
    assert "Hook" in shown
    items = items_of(records)
    notice = "The Stop hook says the work isn't done yet: tests fail"
    assert [item.text for item in items if isinstance(item, NoticeItem)] == [notice]
    await agent.close()


async def test_one_that_hangs_floods_or_dies_costs_only_itself(make: Make, tmp_path: Path) -> None:
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"))
    agent = make(
        provider,
        {
            "PreToolUse": "time.sleep(600)",
            "PostToolUse": "sys.stdout.write('x' * 5_000_000); os.kill(os.getpid(), 9)",
        },
    )
    rewrite(tmp_path, "PreToolUse", timeout=0.3)  # only the one that hangs: the other has its time
    shown = await events_of(agent, "go")
    assert finished(shown) == [("PreToolUse", "timeout"), ("PostToolUse", "failed")]
    assert results(agent) == [""] or "hook" not in results(agent)[0]
    assert isinstance(shown[-1], facts.TurnFinished)
    assert shown[-1].outcome == "done"
    await agent.close()


async def test_one_keeps_the_conversation_uncompacted(make: Make) -> None:
    provider = ScriptedProvider(*(say("long " * 400) for _ in range(6)))
    agent = make(provider, {"PreCompact": ("manual", BLOCKS)})
    for n in range(6):
        await events_of(agent, f"prompt {n}")
    shown = [event async for event in agent.context.compact()]
    assert "A hook keeps it uncompacted: not this one" in [
        one.text for one in shown if isinstance(one, facts.Notice)
    ]
    assert len(provider.requests) == 6
    await agent.close()


async def test_the_last_ones_run_when_the_session_closes(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "ended"
    agent = make(
        ScriptedProvider(say("ok")),
        {"SessionEnd": f"open({str(file)!r}, 'w').write(given['reason'])"},
    )
    await events_of(agent, "go")
    await agent.close()
    assert file.read_text() == "other"


async def test_calls_side_by_side_in_a_sub_agent_wait_for_the_hooks(
    make: Make, tmp_path: Path
) -> None:
    reads = [call("read_file", f"r{n}", path="secret.txt") for n in range(3)]
    given = {"description": "look", "prompt": "look"}
    provider = ScriptedProvider([call("task", "t", **given)], reads, say("no"), say("ok"))
    agent = make(
        provider,
        {"PreToolUse": ("Read", BLOCKS)},
        find_agents=lambda: agent_definitions.load([]),
    )
    (tmp_path / "workspace/secret.txt").write_text("the key")
    await events_of(agent, "go")
    asked = "\n".join(text_of(one["content"]) for one in provider.requests[2].messages)
    results_ = [block for one in provider.requests[2].messages for block in one["content"]]
    denied = [one for one in results_ if one.get("type") == "tool_result" and one.get("is_error")]
    assert len(denied) == 3
    assert "the key" not in asked
    await agent.close()


async def test_one_that_leaves_something_running_still_blocks(make: Make) -> None:
    program = (
        "import subprocess\nsubprocess.Popen(['sleep', '600'])\n"
        "print('no', file=sys.stderr); sys.stderr.flush(); os._exit(2)"
    )
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"))
    agent = make(provider, {"PreToolUse": program})
    assert finished(await events_of(agent, "go")) == [("PreToolUse", "blocked")]
    assert results(agent) == ["Not allowed, not run: no"]
    await agent.close()


async def test_a_formatter_leaves_the_change_to_be_undone(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "workspace/a.py"
    program = f"open({str(file)!r}, 'w').write('a = 1\\n')"
    provider = ScriptedProvider([call("write_file", "w", path="a.py", content="a=1")], say("ok"))
    agent = make(provider, {"PostToolUse": ("Write", program)})
    await events_of(agent, "go")
    assert results(agent)[0].endswith("[a hook changed a.py: read it again before you edit it]")
    (change,) = changes(agent.session.records)
    assert restore(change, tmp_path / "kept").outcome == "deleted"
    assert not file.exists()
    await agent.close()


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreToolUse", "Stop"])
async def test_one_that_is_interrupted_is_recorded_and_said(
    make: Make, tmp_path: Path, event: str
) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    program = f"open({str(begun)!r}, 'w').write('x'); time.sleep(600)"
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"))
    agent = make(provider, {event: program})

    async def interrupt() -> None:
        assert await asyncio.to_thread(begun.read_text) == "x"
        agent.cancel()

    interrupting = asyncio.create_task(interrupt())
    shown = await events_of(agent, "go")
    await interrupting
    assert isinstance(shown[-1], facts.TurnFinished)
    assert shown[-1].outcome == "interrupted"
    assert finished(shown) == [(event, "cancelled")]
    (ended,) = (one for one in shown if isinstance(one, facts.HookFinished))
    assert said(ended) == (f"The {event} hook {ended.command} was stopped.",)
    (record,) = (one.data for one in agent.session.records if one.type == "hook")
    assert (record["event"], record["outcome"], record["exit_code"]) == (event, "cancelled", None)
    lines = hook_lines(hook_rows(agent.find_hooks(), agent.session.records))
    assert any(ended.command in one for one in lines), lines
    assert any("Ran 1 time, last at" in one and " cancelled in " in one for one in lines), lines
    await agent.close()


async def test_an_interrupt_in_a_hook_keeps_what_the_tool_did(make: Make, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    program = f"open({str(begun)!r}, 'w').write('x'); time.sleep(600)"
    provider = ScriptedProvider([call("write_file", "w", path="a.txt", content="x")], say("ok"))
    agent = make(provider, {"PostToolUse": program})
    turn = asyncio.ensure_future(events_of(agent, "go"))
    assert await asyncio.to_thread(begun.read_text) == "x"
    agent.cancel()
    await turn
    assert results(agent) == ["Created a.txt: 1 B."]
    assert len(changes(agent.session.records)) == 1
    await agent.close()


async def test_a_script_that_changes_in_the_session_runs_no_more(
    make: Make, tmp_path: Path
) -> None:
    root = tmp_path / "workspace"
    (root / ".holdfast").mkdir(parents=True)
    (root / "hooks").mkdir()
    (root / "notes.md").write_text("one\n")
    (root / "hooks/x.sh").write_text("true\n")
    one = {"type": "command", "command": "cd hooks && sh x.sh; cat ../notes.md"}
    text = json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [one]}]}})
    file = root / ".holdfast/hooks.json"
    file.write_text(text)
    find = partial(hook_files.load, [file], workspace=root)
    agent = make(ScriptedProvider(say("a"), say("b"), say("c")), {}, find=find)
    await events_of(agent, "first")
    (root / "notes.md").write_text("two\n")
    shown = await events_of(agent, "second")
    assert finished(shown) == [("UserPromptSubmit", "ok")]
    (root / "hooks/x.sh").write_text("touch ../ran\n")
    shown = await events_of(agent, "third")
    assert finished(shown) == [("UserPromptSubmit", "failed")]
    (last,) = [event for event in shown if isinstance(event, facts.HookFinished)]
    assert "a script that it names has changed" in last.text
    assert not (root / "ran").exists()
    await agent.close()


DENY = (
    "answer = json.dumps({'hookSpecificOutput': {'hookEventName': 'PreToolUse', "
    "'permissionDecision': 'deny', 'permissionDecisionReason': 'not this one'}})\n"
)


def permissions(agent: Agent) -> list[tuple[str, str]]:
    found = (one.data for one in agent.session.records if one.type == "permission")
    return [(one["answer"], one["by"]) for one in found]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (f"{DENY}print('checking', answer, 'done')", "not this one"),
        (f"{DENY}print(answer); sys.exit(1)", "not this one"),
        (f"{DENY}print(answer, flush=True); time.sleep(600)", "not this one"),
        (f"{DENY}print(answer, flush=True); os.close(1); os._exit(0)", "not this one"),
        (f"{DENY}print(answer, flush=True); os.kill(os.getpid(), 9)", "not this one"),
        (f"{DENY}print(answer.replace('deny', 'Deny'))", 'is "Deny", none of allow, ask, deny'),
        (f"{DENY}print(answer[:50])", "it begins with { but isn't JSON"),
        (f"{DENY}print('x' * 300_000, answer)", "longer than 256 KiB and was cut"),
        ("print(json.dumps({'decision': 'allow'})); sys.exit(2)", "blocked it"),
    ],
)
async def test_a_guard_whose_answer_is_odd_blocks_and_says_why(
    make: Make, tmp_path: Path, program: str, says: str
) -> None:
    provider = ScriptedProvider([call("write_file", "w", path="a.txt", content="x")], say("ok"))
    agent = make(provider, {"PreToolUse": program}, timeout=3 if "sleep" in program else 60)
    shown = await events_of(agent, "/elevated go")
    assert finished(shown) == [("PreToolUse", "blocked")]
    assert results(agent)[0].startswith("Not allowed, not run: ")
    assert says in results(agent)[0]
    assert any(says in line for event in shown for line in said(event)), "the person hears it"
    (record,) = (one.data for one in agent.session.records if one.type == "hook")
    assert record["outcome"] == "blocked"
    assert says in record["text"]
    assert permissions(agent) == [("deny", "hook")]
    assert not (tmp_path / "workspace/a.txt").exists()
    await agent.close()


@pytest.mark.parametrize(
    ("program", "outcome"),
    [("sys.exit(1)", "failed"), ("sys.exit(127)", "failed"), ("time.sleep(600)", "timeout")],
)
@pytest.mark.parametrize("on_error", ["continue", "block", "Block"])
async def test_one_that_fails_is_said_and_blocks_where_it_is_set_so(
    make: Make, tmp_path: Path, program: str, outcome: str, on_error: str
) -> None:
    provider = ScriptedProvider([call("write_file", "w", path="a.txt", content="x")], say("ok"))
    agent = make(provider, {"PreToolUse": program}, timeout=0.5 if "sleep" in program else 60)
    file = tmp_path / "hooks.json"
    written = json.loads(file.read_text())
    written["hooks"]["PreToolUse"][0]["hooks"][0]["on_error"] = on_error
    file.write_text(json.dumps(written))
    shown = await events_of(agent, "go")
    blocks = on_error != "continue"
    assert finished(shown) == [("PreToolUse", "blocked" if blocks else outcome)]
    assert (tmp_path / "workspace/a.txt").exists() is not blocks
    assert ("what it can't judge is blocked" in results(agent)[0]) is blocks
    await agent.close()


async def test_progress_that_a_guard_prints_is_shown_and_decides_nothing(make: Make) -> None:
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"))
    agent = make(provider, {"PreToolUse": "print('checked 3 rules')"})
    shown = await events_of(agent, "go")
    (ended,) = (one for one in shown if isinstance(one, facts.HookFinished))
    assert said(ended) == (f"The PreToolUse hook {ended.command} says: checked 3 rules.",)
    assert not results(agent)[0].startswith("Not allowed")
    await agent.close()


@pytest.mark.parametrize(
    ("verdict", "mode", "asks"),
    [
        ("allow", "", False),
        ("allow", "/elevated ", False),
        ("ask", "", True),
        ("ask", "/elevated ", True),
        (None, "", True),
        (None, "/elevated ", False),
    ],
)
async def test_a_changed_input_is_judged_as_if_the_model_had_sent_it(
    make: Make, tmp_path: Path, verdict: str | None, mode: str, *, asks: bool
) -> None:
    asked: list[Call] = []

    class Sees:
        async def ask(self, call: Call, decision: Decision) -> Answer:
            assert "A hook changed what this call does" in decision.reason
            asked.append(call)
            return Answer("once")

    provider = ScriptedProvider([call("write_file", "w", path="a.txt", content="x")], say("ok"))
    changed = {"file_path": "b.txt", "content": "y\n"}
    agent = make(
        provider,
        {"PreToolUse": says(permissionDecision=verdict, updatedInput=changed)},
        approver=Sees(),
    )
    await events_of(agent, f"{mode}go")
    assert [(one.subject, "+y" in one.preview) for one in asked] == [("b.txt", True)] * asks
    assert not (tmp_path / "workspace/a.txt").exists()
    assert (tmp_path / "workspace/b.txt").read_text() == "y\n"
    assert "[the user's hook changed the input of this call to: " in results(agent)[0]
    await agent.close()


async def test_a_yes_of_one_hook_is_none_to_what_another_makes_of_the_call(
    make: Make, tmp_path: Path
) -> None:
    file = tmp_path / "two.json"
    answers = (
        {"permissionDecision": "allow"},
        {"updatedInput": {"path": "b.txt", "content": "y"}},
    )
    hooks = [
        {
            "type": "command",
            "command": shlex.join(["echo", json.dumps({"hookSpecificOutput": a})]),
        }
        for a in answers
    ]
    file.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "", "hooks": hooks}]}}))
    provider = ScriptedProvider([call("write_file", "w", path="a.txt", content="x")], say("ok"))
    approver = Counts()
    agent = make(provider, {}, find=partial(hook_files.load, [file]), approver=approver)
    await events_of(agent, "go")
    assert len(approver.reasons) == 1
    await agent.close()


async def test_a_yes_of_a_hook_lifts_no_rule_that_asks(make: Make) -> None:
    provider = ScriptedProvider([call("write_file", "w", path="a.txt", content="x")], say("ok"))
    approver = Counts()
    gate = Gate(Policy.of(ask=("write_file",)))
    agent = make(
        provider, {"PreToolUse": says(permissionDecision="allow")}, gate=gate, approver=approver
    )
    await events_of(agent, "go")
    assert len(approver.reasons) == 1
    await agent.close()


async def test_a_call_that_is_left_to_others_is_left_to_the_person(make: Make) -> None:
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"))
    approver = Counts()
    agent = make(provider, {"PreToolUse": says(permissionDecision="defer")}, approver=approver)
    await events_of(agent, "go")
    assert len(approver.reasons) == 1
    await agent.close()


STOPS = "print(json.dumps({'continue': False, 'stopReason': 'enough'}))"


@pytest.mark.parametrize(
    ("event", "program", "ran"),
    [
        ("PreToolUse", STOPS, False),
        ("PostToolUse", STOPS, True),
        (
            "PermissionRequest",
            says(decision={"behavior": "deny", "message": "enough", "interrupt": True}),
            False,
        ),
    ],
)
async def test_one_ends_the_turn(
    make: Make, tmp_path: Path, event: str, program: str, *, ran: bool
) -> None:
    provider = ScriptedProvider([call("write_file", "w", path="a.txt", content="x")], say("never"))
    agent = make(provider, {event: program})
    shown = await events_of(agent, "go")
    assert len(provider.requests) == 1
    assert (tmp_path / "workspace/a.txt").exists() is ran
    assert "A hook ended the turn: enough" in [
        one.text for one in shown if isinstance(one, facts.Notice)
    ]
    assert "enough" in results(agent)[0]
    await agent.close()


async def test_one_changes_a_result_before_it_is_stored_and_the_record_keeps_it(
    make: Make, tmp_path: Path
) -> None:
    provider = ScriptedProvider([call("read_file", "r", path="key.txt")], say("ok"))
    program = (
        "new = given['tool_response']\n"
        "new['file']['content'] = new['file']['content'].replace('hunter2', '***')\n"
        "own = {'hookEventName': 'PostToolUse', 'updatedToolOutput': new}\n"
        "print(json.dumps({'hookSpecificOutput': own}))"
    )
    agent = make(provider, {"PostToolUse": ("Read", program)})
    (tmp_path / "workspace/key.txt").write_text("password: hunter2\n")
    await events_of(agent, "go")
    sent = json.dumps(provider.requests[1].messages)
    assert "password: ***" in sent
    assert "hunter2" not in sent
    assert results(agent)[0].endswith("[the user's hook changed this result]")
    (record,) = (one.data for one in agent.session.records if one.type == "tool_result")
    original = record["details"]["before_hooks"]
    assert "hunter2" in original["text"]
    assert original["bytes"] == len(original["text"])
    await agent.close()


async def test_a_failure_has_an_event_of_its_own(make: Make) -> None:
    provider = ScriptedProvider([call("read_file", "r", path="none.txt")], say("ok"))
    program = (
        "own = {'hookEventName': 'PostToolUseFailure', 'additionalContext': given['error'][:9]}\n"
        "print(json.dumps({'hookSpecificOutput': own}))"
    )
    agent = make(provider, {"PostToolUseFailure": program, "PostToolUse": BLOCKS})
    shown = await events_of(agent, "go")
    assert finished(shown) in ([("PostToolUseFailure", "ok")], [])
    await agent.close()


async def test_one_answers_in_the_persons_place_but_not_against_a_rule(
    make: Make, tmp_path: Path
) -> None:
    program = says(
        decision={"behavior": "allow", "updatedInput": {"path": "b.txt", "content": "y"}}
    )
    calls = [call("write_file", f"w{n}", path=f"{n}.txt", content="x") for n in range(2)]
    provider = ScriptedProvider(*([one] for one in calls), say("ok"))
    approver = Counts()
    agent = make(provider, {"PermissionRequest": program}, approver=approver)
    await events_of(agent, "go")
    assert approver.reasons == []
    assert [one.name for one in (tmp_path / "workspace").iterdir()] == ["b.txt"]
    await agent.close()
    denied = make(
        ScriptedProvider([calls[0]], say("ok")),
        {"PermissionRequest": program},
        gate=Gate(Policy.of(deny=("write_file(b.txt)",), ask=("write_file",))),
    )
    await events_of(denied, "go")
    assert results(denied)[0].startswith("Not allowed, not run: Denied by the rule")
    await denied.close()


async def test_a_sub_agent_hears_a_hook_when_it_starts(make: Make) -> None:
    given = {"description": "look", "prompt": "look"}
    provider = ScriptedProvider([call("task", "t", **given)], say("no"), say("ok"))
    program = (
        "own = {'hookEventName': 'SubagentStart', 'additionalContext': given['agent_type'] + '!'}\n"
        "print(json.dumps({'hookSpecificOutput': own}))"
    )
    agent = make(
        provider, {"SubagentStart": program}, find_agents=lambda: agent_definitions.load([])
    )
    await events_of(agent, "go")
    assert "My hooks say:\ngeneral" in last_user_text(provider.requests[1])
    await agent.close()


async def test_one_that_is_not_waited_for_decides_nothing(make: Make, tmp_path: Path) -> None:
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"))
    agent = make(provider, {"PreToolUse": "print('no', file=sys.stderr); sys.exit(2)"})
    rewrite(tmp_path, "PreToolUse", **{"async": True})
    await events_of(agent, "go")
    assert not results(agent)[0].startswith("Not allowed")
    await agent.close()
    (record,) = (one.data for one in agent.session.records if one.type == "hook")
    assert (record["event"], record["outcome"]) == ("PreToolUse", "failed")


async def test_what_one_says_that_is_not_waited_for_reaches_the_model_later(
    make: Make, tmp_path: Path
) -> None:
    """As in Claude Code 2.1.332, which sends both texts after the results that it has by then."""
    go = tmp_path / "go"
    os.mkfifo(go)
    answer = {"systemMessage": "for both", "hookSpecificOutput": {"additionalContext": "later"}}
    program = f"open({str(go)!r}).read()\nprint(json.dumps({answer!r}))"
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"), say("so"), say("on"))
    agent = make(provider, {"PostToolUse": program})
    rewrite(tmp_path, "PostToolUse", **{"async": True})
    await events_of(agent, "go")
    assert "later" not in json.dumps(provider.requests[1].messages)
    await asyncio.to_thread(go.write_text, "x")
    async with asyncio.timeout(PATIENCE_S):
        while not any(one.type == "hook" for one in agent.session.records):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    await events_of(agent, "and on")
    assert last_user_text(provider.requests[2]).endswith("My hooks say:\nfor both\nlater")
    await events_of(agent, "further")
    assert json.dumps(provider.requests[3].messages).count("later") == 1
    await agent.close()


async def test_one_sets_variables_for_the_commands_of_its_session(
    make: Make, tmp_path: Path
) -> None:
    lines = "export FROM_HOOK='a b'\nPLAIN=1\nf() { :; }\nexport PATH=\"$PATH:/opt/x\"\n"
    program = f"open(os.environ['CLAUDE_ENV_FILE'], 'a').write({lines!r})"
    command = 'test -e / && printf "%s|%s|%s" "$FROM_HOOK" "$PLAIN" "${PATH##*:}" # && x'
    provider = ScriptedProvider([call("run_command", "r", command=command)], say("ok"))
    agent = make(provider, {"SessionStart": program})
    await agent.start()
    await events_of(agent, "go")
    assert "a b|1|/opt/x" in results(agent)[0]
    await agent.close()


async def test_variables_that_cannot_be_read_are_told(make: Make) -> None:
    program = "open(os.environ['CLAUDE_ENV_FILE'], 'a').write('exit 3')"
    agent = make(ScriptedProvider(say("ok")), {"SessionStart": program})
    await agent.start()
    shown = await events_of(agent, "go")
    told = [one.text for one in shown if isinstance(one, facts.Notice)]
    assert any("exit code 3" in one and "CLAUDE_ENV_FILE" in one for one in told)
    await agent.close()


async def test_a_call_whose_tool_raises_has_failed_for_hooks(make: Make) -> None:
    """As in Claude Code 2.1.332: to read a file that isn't there is PostToolUseFailure."""
    provider = ScriptedProvider([call("read_file", "r", path="none.txt")], say("ok"))
    agent = make(provider, {"PostToolUseFailure": says(additionalContext="it failed")})
    shown = await events_of(agent, "go")
    assert finished(shown) == [("PostToolUseFailure", "ok")]
    assert results(agent)[0].startswith("none.txt doesn't exist.")
    assert results(agent)[0].endswith("it failed")
    await agent.close()


async def test_hooks_get_whole_paths_and_may_give_them_back(make: Make, tmp_path: Path) -> None:
    """As in Claude Code 2.1.332: a guard of a folder is not passed by `..`."""
    root = tmp_path / "workspace"
    program = (
        "changed = given['tool_input']['file_path']\n"
        f"assert changed == {str(root / 'b.txt')!r}, changed\n"
        "own = {'updatedInput': {'file_path': changed, 'content': 'y'}}\n"
        "print(json.dumps({'hookSpecificOutput': own}))"
    )
    provider = ScriptedProvider(
        [call("write_file", "w", path="c/../b.txt", content="x")], say("ok")
    )
    seen = "open('seen', 'w').write(given['tool_response']['filePath'])"
    agent = make(provider, {"PreToolUse": program, "PostToolUse": seen})
    shown = await events_of(agent, "go")
    assert [one for _, one in finished(shown)] == ["ok", "ok"]
    assert (root / "b.txt").read_text() == "y"
    assert (root / "seen").read_text() == str(root / "b.txt")
    await agent.close()


async def test_a_question_that_stays_open_is_told_to_hooks(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "told"

    class Waits(Yes):
        async def ask(self, call: Call, decision: Decision) -> Answer:
            async with asyncio.timeout(PATIENCE_S):
                while not file.exists():  # noqa: ASYNC110 - a process makes it
                    await asyncio.sleep(0.005)
            return await super().ask(call, decision)

    provider = ScriptedProvider([call("write_file", "w", path="a.txt", content="x")], say("ok"))
    program = f"open({str(file)!r}, 'w').write(given['notification_type'] + given['message'])"
    hooks = {"Notification": ("permission_prompt", program)}
    agent = make(provider, hooks, approver=Waits())
    await events_of(agent, "go")
    assert file.read_text() == "permission_promptClaude needs your permission"
    await agent.close()


async def test_hooks_hear_that_the_conversation_rests_until_it_goes_on(
    make: Make, tmp_path: Path
) -> None:
    file, clock = tmp_path / "told", ManualClock()
    program = f"open({str(file)!r}, 'a').write(given['notification_type'])"
    provider = ScriptedProvider(say("ok"), say("so"))
    agent = make(provider, {"Notification": ("idle_prompt", program)}, clock=clock)
    await events_of(agent, "go")
    await events_of(agent, "on")
    async with asyncio.timeout(PATIENCE_S):
        while not file.exists():
            clock.advance(61.0)
            await asyncio.sleep(0.005)
    await agent.close()
    assert file.read_text() == "idle_prompt"


async def test_a_changed_input_lifts_no_rule_and_must_be_one(make: Make, tmp_path: Path) -> None:
    calls = [call("write_file", f"w{n}", path=f"{n}.txt", content="x") for n in range(3)]
    provider = ScriptedProvider(*([one] for one in calls), say("ok"))
    program = (
        "new = {'0.txt': {'path': 'no/a', 'content': ''}, '1.txt': 'text', '2.txt': {'x': 1}}\n"
        "own = {'permissionDecision': 'allow', 'updatedInput': new[given['tool_input']['path']]}\n"
        "print(json.dumps({'hookSpecificOutput': own}))"
    )
    gate = Gate(Policy.of(deny=("write_file(no/*)",)))
    agent = make(provider, {"PreToolUse": program}, gate=gate)
    await events_of(agent, "go")
    first, *others = results(agent)
    assert first.startswith("Not allowed, not run: Denied by the rule write_file(no/*).")
    assert all("A hook gave the call an invalid input." in one for one in others)
    assert list((tmp_path / "workspace").iterdir()) == []
    await agent.close()


async def test_what_a_guard_adds_reaches_the_model_and_says_that_it_is_cut(make: Make) -> None:
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"))
    agent = make(provider, {"PreToolUse": says(additionalContext="c" * 12_000)})
    await events_of(agent, "go")
    assert results(agent)[0].endswith(
        f"{'c' * 10_000}\n[cut: 10,000 of 12,000 characters of a hook]"
    )
    await agent.close()


WRONG_GUARDS = [
    ("{", "hooks.json is not valid JSON"),
    ('{"PreToolUse": []}', 'PreToolUse belongs in its "hooks"'),
    ('{"hooks": []}', "does not have the form of hooks"),
    ('{"hooks": {"PreToolUse": {}}}', "only hooks that are commands run"),
    ('{"hooks": {"PreToolUse": [{"matcher": "LS"}]}}', "only hooks that are commands run"),
    ('{"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}}', "only hooks"),
    ('{"hooks": {"PreToolUse": [{"hooks": [{"command": "\\u0000"}]}]}}', "too long to run"),
]


@pytest.mark.parametrize(("text", "why"), WRONG_GUARDS)
async def test_a_guard_that_cannot_run_leaves_it_to_the_person(
    make: Make, tmp_path: Path, text: str, why: str
) -> None:
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"))
    approver = Counts()
    agent = make(provider, {}, approver=approver)
    (tmp_path / "hooks.json").write_text(text)
    shown = [*await agent.start(), *await events_of(agent, "go")]
    (reason,) = approver.reasons
    assert reason.startswith("A hook that judges this did not run: ")
    assert why in reason
    notices = [one.text for one in shown if isinstance(one, facts.Notice)]
    assert any(why in one for one in notices), "and it is said when the session begins"
    await agent.close()


async def test_a_guard_whose_script_was_changed_leaves_it_to_the_person(
    make: Make, tmp_path: Path
) -> None:
    root = tmp_path / "workspace"
    (root / ".holdfast").mkdir(parents=True)
    (root / "guard.sh").write_text("exit 0\n")
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "sh guard.sh"}]}]}
    file = root / ".holdfast/hooks.json"
    file.write_text(json.dumps({"hooks": hooks}))
    approver = Counts()
    provider = ScriptedProvider(
        [call("list_dir", "l", path=".")], say("ok"), [call("list_dir", "m", path=".")], say("ok")
    )
    find = partial(hook_files.load, [file], workspace=root)
    agent = make(provider, {}, find=find, approver=approver)
    await events_of(agent, "go")
    assert approver.reasons == []
    (root / "guard.sh").write_text("# nothing\n")
    await events_of(agent, "go")
    (reason,) = approver.reasons
    assert "a script that it names has changed since the session began" in reason
    await agent.close()


@pytest.mark.parametrize(
    ("matcher", "runs"),
    [
        ("LS", True),
        ("Edit|LS", True),
        ("Edit,LS", True),
        ("Edit, LS", True),
        (" LS", True),
        ("ls", True),
        ("list_dir", True),
        ("^L", True),
        ("L.", True),
        ("L*", True),
        ("*", True),
        ("", True),
        ("[", True),
        ("(?<n>x)", True),
        ("LS(src/*)", True),
        ("L", False),
        ("S", False),
        ("Edit", False),
        ("Edit(.*)", False),
    ],
)
async def test_a_matcher_means_what_it_means_in_claude_code_and_a_wrong_one_all(
    make: Make, matcher: str, *, runs: bool
) -> None:
    provider = ScriptedProvider([call("list_dir", "l", path=".")], say("ok"))
    agent = make(provider, {"PreToolUse": (matcher, BLOCKS)})
    assert bool(finished(await events_of(agent, "go"))) is runs
    await agent.close()


async def test_the_strictest_of_the_same_hook_counts_and_too_many_are_said(tmp_path: Path) -> None:
    one = {"type": "command", "command": "true"}
    groups = [{"hooks": [one, one | {"on_error": "block"}, one]}]
    file = tmp_path / "hooks.json"
    file.write_text(json.dumps({"hooks": {"PreToolUse": groups}}))
    (found,) = hook_files.load([file]).of("PreToolUse", ["LS"])
    assert found.on_error == "block"
    many = [one | {"command": f"true {n}"} for n in range(300)]
    file.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": many}]}}))
    loaded = hook_files.load([file])
    assert loaded.problems == ("Only 200 hooks run; 100 more don't.",)
    assert loaded.all[0].problem == "Only 200 hooks run; 100 more don't"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"on_error": "stop"}, "on_error is 'stop', not continue or block; block counts"),
        ({"onFailure": "Block"}, "onFailure is 'Block', not continue or block; block counts"),
        ({"if": "Bash(rm"}, "can't read the condition 'Bash(rm'; 'true' always runs"),
        ({"retries": 3}, "'true' runs without retries, not known here"),
    ],
)
def test_what_is_not_known_of_a_hook_is_said(tmp_path: Path, fields: Any, why: str) -> None:
    one = {"type": "command", "command": "true", **fields}
    file = tmp_path / "hooks.json"
    file.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [one]}]}}))
    loaded = hook_files.load([file])
    assert loaded.problems == (f"hooks.json: {why}.",)
    assert [one.command for one in loaded.all] == ["true"]


@pytest.mark.parametrize(
    ("hooks", "problem"),
    [
        ({"PostToolBatch": [{"hooks": [TRUE]}]}, "hooks for PostToolBatch don't run here"),
        ({"BeforeTool": [{"hooks": [TRUE]}]}, "there is no event 'BeforeTool'"),
        (
            {"Stop": [{"hooks": [{**TRUE, "if": "Bash"}]}]},
            "a hook for Stop that has the condition `if` never runs",
        ),
        (
            {"Stop": [{"hooks": [{"type": "http", "url": "x"}]}]},
            "only hooks that are commands run, not http (Stop)",
        ),
        (
            {"Stop": [{"hooks": [{**TRUE, "shell": "powershell"}]}]},
            "only bash runs hooks, not powershell (Stop)",
        ),
    ],
)
def test_what_never_runs_is_named(tmp_path: Path, hooks: Any, problem: str) -> None:
    file = tmp_path / "hooks.json"
    file.write_text(json.dumps({"hooks": hooks}))
    loaded = hook_files.load([file])
    assert (loaded.all, loaded.problems) == ((), (f"hooks.json: {problem}.",))


def test_every_event_of_claude_code_runs_or_is_named() -> None:
    assert set(EVENTS) == {*hook_files.EVENTS, *hook_files.LEFT_OUT}
