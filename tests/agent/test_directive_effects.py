"""K27, K28, K34–K42, K45, K48, K49: what the directives do on the way through a real agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.agents import MODEL, Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.calls import finish
from tui.agent.prompts import Directives, parse
from tui.context import notices
from tui.core import facts
from tui.core.config import Config, Guard
from tui.core.facts import Fact
from tui.core.messages import Block, text_of
from tui.permissions.gate import Gate, RulesOnly
from tui.permissions.policy import Policy
from tui.provider.base import ModelInfo, Request
from tui.session.session import Session
from tui.tokens import tokenizer

THINK = (
    "Think step-by-step. Show your reasoning process explicitly before taking action. Consider "
    "edge cases, alternative approaches, and potential issues. When analyzing code, read related "
    "files to understand full context."
)


def blocks(told: list[Fact]) -> list[str]:
    """K39's blocks, without the other lines of the debug view."""
    texts = [event.text for event in told if isinstance(event, facts.Debug)]
    return [text for text in texts if "[DEBUG] Tool: " in text]


def result_of(request: Request) -> str:
    """The text of the result that a request carries last."""
    (block,) = [b for b in request.messages[-1]["content"] if b["type"] == "tool_result"]
    content: list[Block] = block["content"]
    return text_of(content)


def said_of_thinking(request: Request) -> int:
    """How often the model is told to think."""
    return str(request.messages).count(THINK)


async def test_K27_directives_stay_for_the_rest_of_the_conversation(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("one"), say("two"), say("three"))
    agent = make_agent(tmp_path, provider)
    await events_of(agent, "/think first")
    await events_of(agent, "second")
    await events_of(agent, "third")
    assert agent.directives == Directives(think=True)
    assert [said_of_thinking(request) for request in provider.requests] == [1, 1, 1]


async def test_K28_several_directives_act_at_once(tmp_path: Path) -> None:
    provider = ScriptedProvider([call("write_file", path="a.txt", content="x")], say("done"))
    agent = make_agent(tmp_path, provider)
    told = await events_of(agent, "/think /verbose /elevated write it")
    assert agent.directives == Directives(think=True, verbose=True, elevated=True)
    assert (tmp_path / "a.txt").read_text() == "x"
    assert len(blocks(told)) == 1
    assert said_of_thinking(provider.requests[0]) == 1


async def test_nothing_is_elevated_where_rules_were_lost(tmp_path: Path) -> None:
    """As by --bare, of a file that can't be read: a deny rule may have been in it."""
    provider = ScriptedProvider([call("write_file", path="a.txt", content="x")], say("done"))
    gate = Gate(replace(Policy.of(ask=["*"]), lost=True))
    agent = make_agent(tmp_path, provider, gate=gate, approver=RulesOnly())
    told = await events_of(agent, "/verbose /elevated write it")
    assert agent.directives == Directives(verbose=True)
    assert any(
        isinstance(one, facts.Notice) and one.text.startswith("Not elevated:") for one in told
    )
    assert not (tmp_path / "a.txt").exists()


async def test_K34_K35_the_exact_text_is_sent_once_and_stays_where_it_was(tmp_path: Path) -> None:
    provider = ScriptedProvider([call("list_files", path=".")], say("done"))
    agent = make_agent(tmp_path, provider)
    await events_of(agent, "/think look")
    for request in provider.requests:
        assert len(request.system) == 1
        assert said_of_thinking(request) == 1
        said = request.messages[0]["content"][-1]["text"]
        assert said.splitlines()[1] == THINK  # inside of the marks, on a line of its own


async def test_K36_K37_only_the_end_of_the_messages_differs(tmp_path: Path) -> None:
    plain, deep = ScriptedProvider(say("ok")), ScriptedProvider(say("ok"))
    await events_of(make_agent(tmp_path, plain), "analyze this")
    await events_of(make_agent(tmp_path, deep), "/think analyze this")
    (without,), (with_,) = plain.requests, deep.requests
    assert [block["text"] for block in without.system] == ["You are a test."]
    assert with_.system == without.system
    (plain_said,), (deep_said,) = without.messages, with_.messages
    *before, added = deep_said["content"]
    assert len(before) == len(plain_said["content"])
    assert before[0]["text"] == plain_said["content"][0]["text"]
    assert "reasoning" in added["text"]
    assert "step-by-step" in added["text"]


@pytest.mark.parametrize(
    ("adaptive", "efforts"),
    [(True, ("low", "high", "xhigh")), (True, ()), (False, ())],
)
async def test_K37a_more_depth_where_the_model_has_it_and_for_later_requests_only(
    tmp_path: Path, adaptive: bool, efforts: tuple[str, ...]
) -> None:
    model = replace(
        MODEL,
        thinking_types=("adaptive",) if adaptive else (),
        efforts=efforts,
        effort="high" if efforts else "",
    )
    provider = ScriptedProvider(say("one"), say("two"), say("three"))

    async def known(_: str) -> ModelInfo:
        return model

    provider.model_info = known  # type: ignore[method-assign]
    agent = make_agent(tmp_path, provider, model=model)
    await events_of(agent, "first")
    told = await events_of(agent, "/think second")
    await events_of(agent, "/think off third")
    asked = [request.thinking is not None for request in provider.requests]
    assert asked == [False, adaptive, False]
    raised = "xhigh" if efforts else None
    assert [request.effort for request in provider.requests] == [None, raised, None]
    notices = [event.text for event in told if isinstance(event, facts.Notice)]
    only = "test-model has no adaptive thinking: /think only adds its text."
    assert (only in notices) == (not adaptive)


async def test_K39_K40_K41_a_block_follows_each_tool_and_is_the_text_that_the_model_got(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        tokenizer, "default", tokenizer.Tokenizer()
    )  # the count waits for the ranks
    (tmp_path / "a.txt").write_text("0123456789abcdef\n" * 40)
    (tmp_path / "b.txt").write_text("beta\n")
    provider = ScriptedProvider(
        [call("read_file", "1", path="a.txt")], [call("read_file", "2", path="b.txt")], say("done")
    )
    told = await events_of(make_agent(tmp_path, provider), "/verbose read both")
    assert blocks(told) == [
        f"\n\n[DEBUG] Tool: read_file\n[DEBUG] Tokens: {tokenizer.count(got)}\n"
        f"[DEBUG] Result:\n{got}\n"
        for got in map(result_of, provider.requests[1:])
    ]
    order = [
        e.type for e in told if e.type == "tool_finished" or "Tool: " in getattr(e, "text", "")
    ]
    assert order == ["tool_finished", "debug"] * 2
    decisions = [e.text for e in told if isinstance(e, facts.Debug) and "Decision" in e.text]
    assert len(decisions) == 2
    assert "[DEBUG]" not in str([request.messages for request in provider.requests])


async def test_K42_K49_a_large_output_is_cut_and_still_debugged_end_to_end(tmp_path: Path) -> None:
    (tmp_path / "large_file").write_text("".join(f"line {n}\n" for n in range(20_000)))
    provider = ScriptedProvider([call("run_command", command="cat large_file")], say("done"))
    config = Config(guard=Guard(default_bytes=4000))
    agent = make_agent(tmp_path, provider, approver=Yes(), config=config)
    told = await events_of(agent, "/think /verbose read large_file")
    got = result_of(provider.requests[1])
    assert len(got.encode()) <= 4000
    (finished,) = [e for e in told if isinstance(e, facts.ToolFinished)]
    assert finished.receipt is not None
    assert finished.receipt["bytes_total"] > 100_000
    assert blocks(told) == [
        (
            f"\n\n[DEBUG] Tool: run_command\n[DEBUG] Tokens: {tokenizer.count(got)}\n"
            f"[DEBUG] Result:\n{got}\n"
        )
    ]
    assert said_of_thinking(provider.requests[1]) == 1


async def test_K45_permissions_are_read_before_every_tool(tmp_path: Path) -> None:
    """What is typed while a tool runs holds for the next one of the same turn."""
    provider = ScriptedProvider(
        [call("write_file", "1", path="a.txt", content="x")],
        [call("write_file", "2", path="b.txt", content="x")],
        say("done"),
    )
    agent = make_agent(tmp_path, provider)
    answered: list[tuple[str, str]] = []
    async for event in agent.send(parse("/elevated write both")):
        if isinstance(event, facts.PermissionAnswered):
            answered.append((event.answer, event.by))
            if len(answered) == 1:
                agent.steer(parse("/elevated off"))
    assert answered[0] == ("allow", "elevated")
    assert answered[1][0] == "no"
    assert (tmp_path / "a.txt").exists()
    assert not (tmp_path / "b.txt").exists()


async def test_K38_K48_what_does_not_apply_is_told_and_logged_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(name: str, result: str) -> str:
        raise OSError(f"no ranks for {name}, {len(result)}")

    monkeypatch.setattr(finish, "_debug_block", broken)
    provider = ScriptedProvider([call("list_files", path=".")], say("done"))
    told = await events_of(make_agent(tmp_path, provider), "/verbose look")
    notices = [e.text for e in told if isinstance(e, facts.Notice)]
    assert any(text.startswith("Verbose had no effect on list_files: OSError") for text in notices)
    assert isinstance(told[-1], facts.TurnFinished)
    assert told[-1].outcome == "done"
    assert any("debug block" in record.message for record in caplog.records)


async def test_K38_where_the_text_of_think_fails_the_original_messages_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*, on: bool) -> dict[str, object]:
        raise ValueError(f"no words for {on}")

    monkeypatch.setattr(notices, "think", broken)
    provider = ScriptedProvider(say("done"))
    told = await events_of(make_agent(tmp_path, provider), "/think look")
    (request,) = provider.requests
    assert said_of_thinking(request) == 0
    assert text_of(request.messages[-1]["content"]) == "look"
    warned = [e.text for e in told if isinstance(e, facts.Notice)]
    assert "Couldn't add the /think text: ValueError: no words for True" in warned
    assert isinstance(told[-1], facts.TurnFinished)
    assert told[-1].outcome == "done"
    errors = [r.message for r in caplog.records if r.levelname == "ERROR"]
    assert errors == ["couldn't add the /think text"]


async def test_K48_damaged_directives_are_logged_and_never_raised(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = make_agent(tmp_path, ScriptedProvider())
    session: Session = first.session
    session.metadata["directives"] = "all of them"
    agent = make_agent(tmp_path, ScriptedProvider(say("ok")), session=session)
    assert agent.directives == Directives()
    assert any("damaged" in record.message for record in caplog.records)
    assert (await events_of(agent, "/verbose on hello"))[-1].type == "turn_finished"


async def test_K47_a_read_that_only_elevation_allowed_is_marked_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("near")
    provider = ScriptedProvider([call("read_file", path="a.txt")], say("done"))
    agent = make_agent(tmp_path, provider, gate=Gate(Policy.of(ask=["read_file"])))
    told = await events_of(agent, "/elevated read it")
    answered = [(e.answer, e.by) for e in told if isinstance(e, facts.PermissionAnswered)]
    kinds = [
        record.data.get("by") for record in agent.session.records if record.type == "permission"
    ]
    assert answered == [("allow", "elevated")]
    assert kinds == ["elevated"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "../outside/a.txt"}),
        ("grep_search", {"pattern": "far", "path": "../outside"}),
        ("list_dir", {"path": "../outside"}),
        ("find_by_name", {"pattern": "*.txt", "path": "../outside"}),
    ],
)
@pytest.mark.parametrize("policy", [Policy(), Policy.of(allow=["read_file", "list_dir"])])
async def test_K47_what_elevation_lets_out_of_the_workspace_is_recorded(
    tmp_path: Path, tool: str, arguments: dict[str, str], policy: Policy
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.mkdir()
    (outside / "a.txt").write_text("far")
    provider = ScriptedProvider([call(tool, **arguments)], say("done"))
    agent = make_agent(work, provider, gate=Gate(policy))
    told = await events_of(agent, "/elevated look")
    answered = [(e.answer, e.by) for e in told if isinstance(e, facts.PermissionAnswered)]
    (record,) = [one.data for one in agent.session.records if one.type == "permission"]
    assert answered == [("allow", "elevated")]
    assert record["by"] == "elevated"
    assert record["reason"].endswith("is outside the workspace.")
    assert str(outside) in record["reason"]
