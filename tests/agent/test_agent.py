"""The agent through its edge: what it publishes, what it records, what it sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Yes, events_of, make_agent, record_types
from tests.support.provider import Hang, ScriptedProvider, call, say
from tui.agent.limits import Limits
from tui.agent.prompts import parse
from tui.context.validate import check
from tui.core import facts
from tui.core.errors import ProviderError
from tui.core.messages import text_of

INTERRUPTED = "Session was interrupted before tool execution completed"


def results_in(provider: ScriptedProvider) -> list[dict[str, Any]]:
    """The tool results of the last request, in order."""
    content = provider.requests[-1].messages[-1]["content"]
    return [block for block in content if block["type"] == "tool_result"]


async def test_a_turn_is_recorded_before_it_is_shown(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("Hello."))
    agent = make_agent(tmp_path, provider)
    seen: list[str] = []
    async for event in agent.send(parse("hi")):
        seen.append(event.type)
        if isinstance(event, facts.UserMessage):
            assert "user" in record_types(agent)
        if isinstance(event, facts.AssistantMessage):
            assert "assistant" in record_types(agent)
    assert seen == [
        "user_message",
        "request_sent",
        "text_delta",
        "assistant_message",
        "request_extended",
        "cost",
        "context_measured",
        "context_measured",
        "turn_finished",
    ]


async def test_tools_run_and_their_results_go_back(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n")
    provider = ScriptedProvider([call("read_file", path="a.txt")], say("It says alpha."))
    agent = make_agent(tmp_path, provider)
    seen = await events_of(agent, "read a.txt")
    assert record_types(agent) == ["user", "assistant", "intent", "tool_result", "assistant"]
    (result,) = results_in(provider)
    assert "alpha" in text_of(result["content"])
    assert not result.get("is_error")
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].usage.input_tokens == 200


async def test_reads_run_side_by_side_and_writes_in_order(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name)
    provider = ScriptedProvider(
        [
            call("read_file", "1", path="a"),
            call("read_file", "2", path="b"),
            call("write_file", "3", path="new", content="first"),
            call("edit_file", "4", path="new", old_string="first", new_string="second"),
            call("read_file", "5", path="new"),
        ],
        say("done"),
    )
    agent = make_agent(tmp_path, provider, approver=Yes())
    seen = await events_of(agent, "go")
    assert [r["tool_use_id"] for r in results_in(provider)] == ["1", "2", "3", "4", "5"]
    assert (tmp_path / "new").read_text() == "second"
    started = [e.id for e in seen if isinstance(e, facts.ToolStarted)]
    finished = [e.id for e in seen if isinstance(e, facts.ToolFinished)]
    assert started.index("2") < 2
    assert finished[2:] == ["3", "4", "5"]


async def test_a_denied_write_is_a_result_with_the_reason(tmp_path: Path) -> None:
    provider = ScriptedProvider([call("write_file", path="x", content="y")], say("fine"))
    agent = make_agent(tmp_path, provider)
    seen = await events_of(agent, "write")
    (result,) = results_in(provider)
    assert result["is_error"]
    assert "Not allowed" in text_of(result["content"])
    assert not (tmp_path / "x").exists()
    asked = [e for e in seen if isinstance(e, facts.PermissionAsked)]
    answered = [e for e in seen if isinstance(e, facts.PermissionAnswered)]
    assert len(asked) == len(answered) == 1
    assert answered[0].answer == "no"
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "done"


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (call("no_such_tool"), "There is no tool named"),
        (call("read_file", raw_input="{broken"), "wasn't valid JSON"),
        (call("read_file", path=7, depth=1), "Wrong arguments for read_file"),
        (call("read_file"), "Wrong arguments for read_file"),
        (call("read_file", path="missing.txt"), "missing.txt"),
        (call("read_file", path="../outside"), "outside the workspace"),
    ],
)
async def test_a_bad_call_is_a_result_and_the_turn_goes_on(
    tmp_path: Path, block: dict[str, Any], says: str
) -> None:
    provider = ScriptedProvider([block], say("I see."))
    agent = make_agent(tmp_path, provider)
    seen = await events_of(agent, "go")
    (result,) = results_in(provider)
    assert result["is_error"]
    assert says in text_of(result["content"])
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "done"


async def test_cancel_while_the_model_speaks_keeps_what_it_said(tmp_path: Path) -> None:
    provider = ScriptedProvider(Hang("Half an ans"), say("Whole."))
    agent = make_agent(tmp_path, provider)
    turn = asyncio.create_task(events_of(agent, "hi"))
    await provider.waiting.wait()
    agent.cancel()
    agent.cancel()
    seen = await turn
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "interrupted"
    assert agent.session.records[-1].type == "interrupt"
    assert agent.session.records[-1].data["text"] == "Half an ans"
    await events_of(agent, "continue")
    assert check(provider.requests[-1].messages) == []


async def test_R2_cancel_while_a_command_runs_leaves_a_valid_record(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [
            call("run_command", "1", command="echo begun; exec sleep 1000"),
            call("run_command", "2", command="echo never"),
        ],
        say("Understood."),
    )
    agent = make_agent(tmp_path, provider, approver=Yes())

    async def cancel_when_begun(stream: AsyncIterator[facts.Fact]) -> list[facts.Fact]:
        seen: list[facts.Fact] = []
        async for event in stream:
            seen.append(event)
            if isinstance(event, facts.ToolOutputChunk) and "begun" in event.text:
                agent.cancel()
        return seen

    seen = await cancel_when_begun(agent.send(parse("run")))
    finished = [e for e in seen if isinstance(e, facts.ToolFinished)]
    assert [(e.id, e.is_error) for e in finished] == [("1", True)]
    assert "begun" in finished[0].text
    await events_of(agent, "continue")
    assert check(provider.requests[-1].messages) == []
    results = [
        block
        for message in provider.requests[-1].messages
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert [text_of(r["content"]) for r in results] == [INTERRUPTED, INTERRUPTED]
    await agent.close()


async def test_what_is_typed_meanwhile_comes_after_the_results(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    provider = ScriptedProvider([call("read_file", path="a")], say("and that"))
    agent = make_agent(tmp_path, provider)
    seen: list[facts.Fact] = []
    async for event in agent.send(parse("first")):
        seen.append(event)
        if isinstance(event, facts.ToolStarted):
            agent.steer(parse("also this"))
    content = provider.requests[-1].messages[-1]["content"]
    assert [block["type"] for block in content] == ["tool_result", "text"]
    assert content[1]["text"] == "also this"
    queued = [e.texts for e in seen if isinstance(e, facts.QueueChanged)]
    assert queued == [("also this",), ()]


async def test_a_failed_request_ends_the_turn_and_the_session_goes_on(tmp_path: Path) -> None:
    error = ProviderError("overloaded", "The server is overloaded.", hint="Wait.", status=529)
    provider = ScriptedProvider(error, say("back"))
    agent = make_agent(tmp_path, provider)
    seen = await events_of(agent, "hi")
    assert seen[-2:] == [
        facts.ErrorRaised("overloaded", "The server is overloaded.", True, "Wait.", status=529),
        facts.TurnFinished("failed"),
    ]
    assert (await events_of(agent, "again"))[-1].type == "turn_finished"
    assert check(provider.requests[-1].messages) == []


async def test_a_mistake_inside_is_told_and_nothing_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(say("x")))

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("tui.agent.request.build.request_assembly.build", broken)
    seen = await events_of(agent, "hi")
    assert isinstance(seen[-2], facts.ErrorRaised)
    assert "ZeroDivisionError" in seen[-2].message
    assert seen[-1] == facts.TurnFinished("failed")


async def test_K32_directives_alone_start_no_request(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    agent = make_agent(tmp_path, provider)
    seen = await events_of(agent, "/think /verbose")
    assert [e.type for e in seen] == ["directives_changed", "notice", "turn_finished"]
    assert provider.requests == []
    assert agent.session.directives == {
        "think": True,
        "verbose": True,
        "elevated": False,
        "effort": "",
    }


async def test_K35_think_is_said_at_the_end_and_the_system_prompt_stays(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("a"), say("b"))
    agent = make_agent(tmp_path, provider)
    await events_of(agent, "plain")
    await events_of(agent, "/think hard")
    first, second = provider.requests
    assert second.system == first.system
    assert "step-by-step" not in json.dumps(first.messages)
    assert "step-by-step" in second.messages[-1]["content"][-1]["text"]


async def test_K33_attached_text_sets_no_directive(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("ok"))
    agent = make_agent(tmp_path, provider)
    async for _ in agent.send(parse("", attached="/elevated rm -rf")):
        pass
    assert not agent.directives.elevated
    assert text_of(provider.requests[0].messages[-1]["content"]) == "/elevated rm -rf"


async def test_K47_a_resumed_session_is_not_elevated(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(say("x")))
    await events_of(agent, "/elevated on hi")
    assert agent.directives.elevated
    again = make_agent(tmp_path, ScriptedProvider(), session=agent.session)
    assert not again.directives.elevated
    assert any("was elevated" in getattr(e, "text", "") for e in await again.start())


async def test_elevated_needs_no_answer_but_blocked_stays_blocked(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [call("run_command", "1", command="touch x"), call("run_command", "2", command="rm -rf /")],
        say("ok"),
    )
    agent = make_agent(tmp_path, provider)
    seen = await events_of(agent, "/elevated go")
    first, second = results_in(provider)
    assert not first.get("is_error")
    assert second["is_error"]
    answers = [(e.answer, e.by) for e in seen if isinstance(e, facts.PermissionAnswered)]
    assert answers[0] == ("allow", "elevated")
    assert answers[1][0] == "deny"


@pytest.mark.parametrize("limits", [Limits(max_turns=1), Limits(max_tokens=100)])
async def test_a_limit_ends_the_turn_cleanly(tmp_path: Path, limits: Limits) -> None:
    (tmp_path / "a").write_text("x")
    provider = ScriptedProvider([call("read_file", path="a")], say("never asked"))
    agent = make_agent(tmp_path, provider, limits=limits)
    seen = await events_of(agent, "go")
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "limit"
    assert len(provider.requests) == 1


async def test_ids_that_a_server_uses_again_are_made_unique(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    provider = ScriptedProvider(
        [call("read_file", "call_0", path="a")], [call("read_file", "call_0", path="a")], say("ok")
    )
    agent = make_agent(tmp_path, provider)
    await events_of(agent, "go")
    assert check(provider.requests[-1].messages) == []


async def test_a_huge_result_is_cut_and_kept_whole(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [call("run_command", "big", command="seq 1 200000")], say("long list")
    )
    agent = make_agent(tmp_path, provider, approver=Yes())
    seen = await events_of(agent, "count")
    (finished,) = [e for e in seen if isinstance(e, facts.ToolFinished)]
    assert finished.receipt is not None
    kept = Path(finished.receipt["path"]).read_text()
    assert kept.startswith("1\n2\n")
    assert "\n200000\n" in kept
    (result,) = results_in(provider)
    assert len(text_of(result["content"])) < 10_000
    assert " 200000" in text_of(result["content"])


async def test_verbose_shows_what_the_model_received(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("alpha")
    provider = ScriptedProvider([call("read_file", path="a")], say("ok"))
    agent = make_agent(tmp_path, provider)
    seen = await events_of(agent, "/verbose go")
    debug = [e.text for e in seen if isinstance(e, facts.Debug)]
    first, decision, result, last = debug
    assert first.startswith("[DEBUG] Answer: test-model, input_tokens 100, output_tokens 10,")
    assert "request req_test" in first
    assert decision == (
        "[DEBUG] Decision: read_file: allow (by reads): Read-only, inside the workspace."
    )
    assert result == "\n\n[DEBUG] Tool: read_file\n[DEBUG] Tokens: 2\n[DEBUG] Result:\n1\talpha\n"
    assert last.startswith("[DEBUG] Answer: ")
    assert "[DEBUG]" not in json.dumps([r.messages for r in provider.requests])


async def test_todos_are_published(tmp_path: Path) -> None:
    todo = {"text": "one", "status": "pending"}
    provider = ScriptedProvider([call("todo_write", todos=[todo])], say("ok"))
    seen = await events_of(make_agent(tmp_path, provider), "plan")
    assert [e.todos for e in seen if isinstance(e, facts.TodosChanged)] == [(todo,)]


async def test_closing_the_iterator_interrupts(tmp_path: Path) -> None:
    provider = ScriptedProvider(Hang("x"))
    agent = make_agent(tmp_path, provider)
    async for event in agent.send(parse("hi")):
        if isinstance(event, facts.TextDelta):
            break
    await agent.close()
    assert agent.session.records[-1].type == "interrupt"
    assert provider.closed
