"""What a kill leaves open is known from the record: calls, files, commands; it can be rerun."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Yes, events_of, make_agent, record_types
from tests.support.clock import FakeClock
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.interrupted_work import interrupted_work, new_findings
from tui.agent.prompts import parse
from tui.app.interruption import known
from tui.context.repair import INTERRUPTED
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.process_birth import born
from tui.session.records import Finding, Record
from tui.session.session import Session
from tui.tools.process import end_group


def of(records: list[Record], type_: str) -> list[dict[str, Any]]:
    return [record.data for record in records if record.type == type_]


async def test_R_an_intent_names_the_file_and_what_it_held(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("before", encoding="utf-8")
    provider = ScriptedProvider(
        [
            call("read_file", "0", path="old.txt"),
            call("write_file", "1", path="old.txt", content="after"),
            call("write_file", "2", path="new.txt", content="after"),
        ],
        say("ok"),
    )
    agent = make_agent(tmp_path, provider, approver=Yes())
    await events_of(agent, "go")
    read, old, new = of(agent.session.records, "intent")
    assert read["label"] == "old.txt"
    assert "path" not in read
    assert old["path"] == str(tmp_path / "old.txt")
    assert old["before_sha256"] == hashlib.sha256(b"before").hexdigest()
    assert new["before_sha256"] is None
    await agent.close()


async def test_R_the_intent_of_a_patch_names_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: b.txt\n+b\n"
    one = call("apply_patch", "1", patch=f"{patch}*** End Patch")
    agent = make_agent(tmp_path, ScriptedProvider([one], say("ok")), approver=Yes())
    await events_of(agent, "go")
    (intent,) = of(agent.session.records, "intent")
    files = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    assert [file["path"] for file in intent["files"]] == files
    assert intent["files"][0]["before_sha256"] == hashlib.sha256(b"one\n").hexdigest()
    assert intent["files"][1]["before_sha256"] is None
    assert "path" not in intent
    (result,) = of(agent.session.records, "tool_result")
    assert [file["path"] for file in result["details"]["files"]] == files
    records = [record for record in agent.session.records if record.type != "tool_result"][:-1]
    (found,) = interrupted_work(records, tmp_path).calls
    assert (found.outcome, found.file) == ("unknown", "changed")
    (tmp_path / "b.txt").unlink()
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    (found,) = interrupted_work(records, tmp_path).calls
    assert (found.label, found.file) == ("a.txt, b.txt", "unchanged")
    assert known(found).endswith("the files are unchanged")
    await agent.close()


async def test_32_a_commands_process_is_in_the_record_while_it_runs(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [call("run_command", "1", command="sleep 1000", background=True)], say("ok")
    )
    agent = make_agent(tmp_path, provider, approver=Yes())
    await events_of(agent, "go")
    (orphan,) = interrupted_work(agent.session.records, tmp_path).orphans
    assert orphan.command == "sleep 1000"
    assert born(orphan.pid) == orphan.born
    assert await end_group(orphan.pid, "another birth", FakeClock())
    assert born(orphan.pid) == orphan.born, "a process of another birth is left alone"
    assert await end_group(orphan.pid, orphan.born, SystemClock())
    await agent.close()
    assert not interrupted_work(agent.session.records, tmp_path).orphans


def test_a_process_that_is_gone_was_never_born() -> None:
    assert born(os.getpid())
    assert born(2**22 + 1) == ""


async def test_calls_without_a_result_are_run_again_and_the_model_goes_on(tmp_path: Path) -> None:
    session = Session.in_memory(tmp_path, clock=SystemClock())
    session.append("user", content=[{"type": "text", "text": "go"}], text="go")
    session.append("assistant", content=[call("list_dir", "1", path=".")], model="m")
    provider = ScriptedProvider(say("There is nothing here."))
    agent = make_agent(tmp_path, provider, session=session)
    (left,) = interrupted_work(session.records, tmp_path).calls
    told = [event async for event in agent.go_on([left.call_id])]
    assert [e.id for e in told if isinstance(e, facts.ToolFinished)] == [left.call_id]
    assert record_types(agent)[2:] == ["intent", "tool_result", "assistant"]
    assert not interrupted_work(session.records, tmp_path)
    sent = provider.requests[0].messages
    assert sent[-1]["content"][0]["tool_use_id"] == left.call_id
    await agent.close()


async def test_R2_calls_that_are_left_get_their_result_in_the_record(tmp_path: Path) -> None:
    session = Session.in_memory(tmp_path, clock=SystemClock())
    session.append("user", content=[{"type": "text", "text": "go"}], text="go")
    session.append("assistant", content=[call("list_dir", "1", path=".")], model="m")
    agent = make_agent(tmp_path, ScriptedProvider(say("ok")), session=session)
    ids = [each.call_id for each in interrupted_work(session.records, tmp_path).calls]
    await agent.close_calls(ids)
    (result,) = of(session.records, "tool_result")
    assert result["content"] == [{"type": "text", "text": INTERRUPTED}]
    assert not agent.context.view().findings
    await agent.close()


@pytest.mark.parametrize("prompt", ["and now?", None])
async def test_O18_calls_that_a_kill_left_get_their_result_before_the_next_message(
    tmp_path: Path, prompt: str | None
) -> None:
    session = Session.in_memory(tmp_path, clock=SystemClock())
    session.append("user", content=[{"type": "text", "text": "go"}], text="go")
    calls = [call("list_dir", id_, path=".") for id_ in ("1", "2")]
    session.append("assistant", content=calls, model="m")
    session.append("tool_result", call_id="1", content=[{"type": "text", "text": "a"}])
    provider = ScriptedProvider(say("ok"))
    agent = make_agent(tmp_path, provider, session=session)
    assert [event async for event in (agent.send(parse(prompt)) if prompt else agent.go_on())]
    assert record_types(agent)[3:] == ["tool_result", *(["user"] if prompt else []), "assistant"]
    assert of(session.records, "tool_result")[1] == {
        **of(session.records, "tool_result")[1],
        "call_id": "2",
        "content": [{"type": "text", "text": INTERRUPTED}],
        "is_error": True,
    }
    assert not agent.context.view().findings
    assert len(provider.requests[0].messages) == 3
    await agent.close()


@pytest.mark.parametrize("lines", [10, 3000, 20_000])
async def test_13_the_next_prompt_tells_what_an_interrupted_command_had_printed(
    tmp_path: Path, lines: int
) -> None:
    command = f"seq -f 'row %g' {lines}; sleep 600"
    provider = ScriptedProvider([call("run_command", "1", command=command)], *[say("ok")] * 2)
    agent = make_agent(tmp_path, provider, approver=Yes())
    async for event in agent.send(parse("go")):
        if isinstance(event, facts.ToolOutputChunk) and f"row {lines}\n" in event.text:
            agent.cancel()
    assert [event async for event in agent.send(parse("why so slow?"))]
    assert [event async for event in agent.send(parse("and now?"))]
    (result,) = of(agent.session.records, "tool_result")
    assert result["content"] == [{"type": "text", "text": INTERRUPTED}]
    sent = [message["content"][-1]["text"] for message in provider.requests[-1].messages[2::2]]
    assert sent[1] == "and now?"
    typed, told = sent[0].split("\n\n", 1)
    assert typed == "why so slow?"
    head, heard = told.split("\n", 1)
    assert heard.startswith('<untrusted_content source="run_command: interrupted">\n')
    assert heard.endswith(f"row {lines}\n</untrusted_content>")
    if lines == 10:
        assert head == "I interrupted `run_command`. Its output until then (all it printed):"
        return
    path = head.partition("full output saved to: ")[2].removesuffix("):")
    assert Path(path).read_text() == "".join(f"row {n}\n" for n in range(1, lines + 1))
    assert "(the last 2,000 characters it printed; " in head
    await agent.close()


async def test_R9_a_repair_is_told_once_and_noted_with_the_next_prompt(tmp_path: Path) -> None:
    session = Session.in_memory(tmp_path, clock=SystemClock())
    session.findings = (Finding("B52", "line 4", "skipped: not valid JSON"),)
    agent = make_agent(tmp_path, ScriptedProvider(say("ok")), session=session)
    first = [e for e in await agent.start() if isinstance(e, facts.RepairApplied)]
    assert len(first) == 1
    assert session.records == []
    await events_of(agent, "go")
    assert [r.type for r in session.records][:2] == ["repair", "user"]
    assert new_findings(session.records, session.findings) == []
    other = Finding("B40", "line 9", "the last line is cut short; left out, bytes kept")
    assert new_findings(session.records, (*session.findings, other)) == [other]
    await asyncio.sleep(0)
    await agent.close()


def test_a_pipe_that_a_record_names_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    session = Session.in_memory(tmp_path, clock=FakeClock())
    asked = {"type": "tool_use", "id": "w", "name": "write_file", "input": {"path": "pipe"}}
    session.append("user", content=[], text="go")
    session.append("assistant", content=[asked], model="test-model", usage={})
    place = str(tmp_path / "pipe")
    session.append(
        "intent", call_id="w", tool="write_file", effect="write", path=place, before_sha256=None
    )
    (found,) = interrupted_work(session.records, tmp_path).calls
    assert found.path == place
