"""Checkpoints around what an agent does: what is recorded, shown, and known to be its own."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.context.workspace_changes import WorkspaceChanges, changed_since, files_of
from tui.core.clock import SystemClock
from tui.core.facts import CheckpointTaken, Fact, Notice, ToolFinished
from tui.core.messages import Block
from tui.provider.base import Request, StreamPart
from tui.session.checkpoints import scan
from tui.session.checkpoints.entries import Change, Checkpoint, CheckpointError
from tui.session.checkpoints.restore import restore
from tui.session.checkpoints.store import CheckpointStore
from tui.session.records import Record
from tui.session.session import Session


class Bench:
    """A workspace, its checkpoints, and agents in it."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "work"
        self.root.mkdir()
        self.file = tmp_path / "checkpoints.sqlite3"
        self.store = self.open()

    def open(self) -> CheckpointStore:
        return CheckpointStore(self.file, self.root)

    def agent(self, *answers: Any, records: list[Record] | None = None, **fields: Any) -> Agent:
        session = Session.in_memory(self.root, clock=SystemClock())
        session.records.extend(records or [])
        return make_agent(
            self.root,
            ScriptedProvider(*answers),
            session=session,
            approver=Yes(),
            open_checkpoints=self.open,
            **fields,
        )

    def since(self, agent: Agent, prompt: str = "") -> WorkspaceChanges:
        """What differs since the first prompt, or one with a text."""
        records = agent.session.records
        place = next(
            place
            for place, record in enumerate(records)
            if record.type == "user" and prompt in record.data["text"]
        )
        return changed_since(records, place, self.store.take().id, self.store.difference)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.store.close()


def taken(agent: Agent) -> list[tuple[str, int]]:
    """The checkpoints of a session: by whom files were changed before, and how many."""
    return [
        (record.data["by"], record.data["files"])
        for record in agent.session.records
        if record.type == "checkpoint"
    ]


def names(found: tuple[Change, ...]) -> list[str]:
    return [path.name for path in files_of(found)]


def finished(events: list[Fact]) -> list[str]:
    return [event.summary for event in events if isinstance(event, ToolFinished)]


def run(command: str) -> list[Any]:
    return [call("run_command", command=command)]


async def test_a_command_that_changes_files_leaves_a_checkpoint(bench: Bench) -> None:
    (bench.root / "a").write_text("1")
    agent = bench.agent(run("echo 2 > a; echo b > b"), run("ls; sleep 0"), say("Done."))
    events = await events_of(agent, "go")
    assert taken(agent) == [("", 0), ("call", 2)]
    (event,) = [event for event in events if isinstance(event, CheckpointTaken)]
    assert event.files == 2
    assert finished(events) == ["exit 0 · 2 files changed", "exit 0"]
    (result, _) = [r for r in agent.session.records if r.type == "tool_result"]
    assert result.data["details"]["changed_files"] == ["a", "b"]
    assert "changed" not in str(result.data["content"]), "the model is told nothing new"
    assert names(bench.since(agent).own) == ["a", "b"]
    await agent.close()


async def test_what_others_change_is_told_apart(bench: Bench) -> None:
    (bench.root / "mine").write_text("1")
    (bench.root / "both").write_text("1")

    def after_an_edit(_: Request) -> list[Block]:
        (bench.root / "mine").write_text("by me")
        (bench.root / "both").write_text("by me, before the command")
        return run("echo 2 > both")

    agent = bench.agent(
        run("echo 1 > agents; echo x > late"),
        after_an_edit,
        [call("write_file", path="tool", content="t"), *run("rm late; echo y > later")],
        say("Done."),
    )
    await events_of(agent, "go")
    (bench.root / "later").write_text("by me, after the command")
    found = bench.since(agent)
    assert names(found.own) == ["agents", "both", "tool"]
    assert names(found.others) == ["later", "mine"]
    assert not found.beside
    await agent.close()


async def test_a_prompt_can_be_gone_back_to(bench: Bench) -> None:
    (bench.root / "a").write_text("1")
    agent = bench.agent(
        run("echo 2 > a"), say("First."), run("rm a; mkdir d; echo 3 > d/f"), say("Second.")
    )
    await events_of(agent, "first")
    await events_of(agent, "second")
    restore(bench.since(agent, "second").own, bench.store)
    assert [path.name for path in bench.root.iterdir()] == ["a"]
    assert (bench.root / "a").read_text() == "2\n"
    place = next(n for n, r in enumerate(agent.session.records) if r.data.get("text") == "second")
    del agent.session.records[place:]  # as /rewind does
    restore(bench.since(agent).own, bench.store)
    assert (bench.root / "a").read_text() == "1"
    await agent.close()


async def test_what_only_reads_takes_none(bench: Bench) -> None:
    (bench.root / "a").write_text("1")
    agent = bench.agent([call("read_file", path="a"), *run("cat a")], say("Done."))
    await events_of(agent, "go")
    assert taken(agent) == [("", 0)]
    await agent.close()


async def test_in_a_run_of_one_turn_the_first_is_taken_before_the_first_change(
    bench: Bench,
) -> None:
    (bench.root / "a").write_text("1")
    reads, writes = [call("read_file", path="a")], run("echo 2 > a")
    agent = bench.agent(reads, say("Read."), writes, say("Done."), ahead=False)
    await events_of(agent, "look")
    assert taken(agent) == []
    await events_of(agent, "change")
    assert taken(agent) == [("", 0), ("call", 1)]
    for prompt in ("look", "change"):
        assert names(bench.since(agent, prompt).own) == ["a"], "as if it had been taken at each"
    await agent.close()


async def test_a_run_of_one_turn_that_changes_nothing_opens_no_store(bench: Bench) -> None:
    agent = bench.agent(say("Hi."), ahead=False)
    await events_of(agent, "hello")
    await agent.close()
    assert not bench.file.exists()


class LoadingProvider(ScriptedProvider):
    """Tells what is at work while it is not yet sending the request."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(*answers)
        self.at_work: list[set[str]] = []

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        await asyncio.to_thread(int)
        self.at_work.append({task.get_name() for task in asyncio.all_tasks()})
        async for part in super().stream(request):
            yield part


async def test_the_checkpoint_of_a_prompt_begins_once_the_request_is_on_its_way(
    bench: Bench,
) -> None:
    provider = LoadingProvider(say("Done."))
    agent = make_agent(bench.root, provider, approver=Yes(), open_checkpoints=bench.open)
    await events_of(agent, "go")
    (at_work,) = provider.at_work
    assert "checkpoint" not in at_work, "it would take the processor from what is waited for"
    assert agent.checkpoints
    await agent.checkpoints.ready()
    assert taken(agent) == [("", 0)]
    await agent.close()


async def test_a_background_command_is_the_sessions_own(bench: Bench) -> None:
    agent = bench.agent(
        [call("run_command", command="until [ -e go ]; do :; done; echo 1 > made; rm go; sleep 60",
              background=True)],
        run("touch go; while [ -e go ]; do :; done"),
        say("Done."),
    )  # fmt: skip
    await events_of(agent, "go")
    (bench.root / "made").write_text("again, while it runs")
    assert names(bench.since(agent).others) == ["made"]
    assert agent.checkpoints
    await agent.checkpoints.now()
    assert names(bench.since(agent).own) == ["made"]
    await agent.close()


async def test_a_command_that_was_killed_with_the_program_is_the_sessions_own(
    bench: Bench,
) -> None:
    agent = bench.agent(run("echo 1 > before"), say("Done."))
    await events_of(agent, "go")
    records = list(agent.session.records)
    await agent.close()
    # As a kill leaves it: a call has begun, and its command wrote a file.
    place = next(n for n, record in enumerate(records) if record.type == "tool_result")
    result, checkpoint = records[place], records[place - 1]
    assert checkpoint.type == "checkpoint"
    records = [one for one in records[:place] if one is not checkpoint]
    (bench.root / "after").write_text("written when nobody looked")
    again = bench.agent(say("Again."), records=records)
    await events_of(again, "what now?")
    assert result.data["call_id"] in str(again.session.records)
    assert names(bench.since(again).own) == ["after", "before"]
    await again.close()


@pytest.mark.parametrize("broken", ["files", "disk"])
async def test_where_none_can_be_taken_it_is_said_once_and_nothing_stops(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    breaks: dict[str, Callable[[], object]] = {
        "files": lambda: monkeypatch.setattr(scan, "ENTRIES_MAX", 0),
        "disk": lambda: (bench.file.unlink(), bench.file.mkdir()),
    }
    (bench.root / "a").write_text("1")
    bench.store.take()
    bench.store.close()
    shutil.rmtree(bench.root / "none", ignore_errors=True)
    breaks[broken]()
    agent = bench.agent(run("echo 2 > a"), run("echo 3 > a"), say("Done."))
    events = await events_of(agent, "go")
    said = [one.text for one in events if isinstance(one, Notice) and "checkpoint" in one.text]
    assert len(said) == 1
    until = {"files": "in this session", "disk": "until the next prompt"}[broken]
    assert f"No checkpoints {until}" in said[0]
    assert (bench.root / "a").read_text() == "3\n"
    assert finished(events) == ["exit 0", "exit 0"]
    await agent.close()


async def test_a_prompt_tries_again_what_a_full_disk_prevented(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.root / "a").write_text("1")
    take, full = CheckpointStore.take, [True]

    def take_if_there_is_room(store: CheckpointStore) -> Checkpoint:
        if full[0]:
            raise CheckpointError("The disk is full.")
        return take(store)

    monkeypatch.setattr(CheckpointStore, "take", take_if_there_is_room)
    agent = bench.agent(
        run("echo 2 > a"), say("Done."), say("Still."), run("echo 3 > a"), say("Done.")
    )
    said: list[list[str]] = []
    for prompt in ("go", "on", "again"):
        full[0] = prompt != "again"
        events = await events_of(agent, prompt)
        said.append([one.text for one in events if isinstance(one, Notice)])
    assert said[0][0].startswith("No checkpoints until the next prompt: The disk is full.")
    assert said[1:] == [[], ["Checkpoints of the files are taken again."]]
    assert names(bench.since(agent, "again").own) == ["a"]
    await agent.close()


async def test_a_damaged_store_is_put_aside_and_the_session_has_checkpoints(bench: Bench) -> None:
    bench.file.parent.mkdir(parents=True, exist_ok=True)
    bench.file.write_bytes(b"no database at all" * 1000)
    agent = bench.agent([call("run_command", command="echo x > made")], say("Done."))
    shown = await events_of(agent, "go")
    said = [event.text for event in shown if isinstance(event, Notice)]
    assert len(said) == 1
    assert "are damaged" in said[0]
    assert names(bench.since(agent).own) == ["made"]
    assert bench.file.with_name(f"{bench.file.name}.damaged").exists()
    await agent.close()


async def test_a_write_of_the_file_tools_waits_for_the_prompts_checkpoint(bench: Bench) -> None:
    agent = bench.agent([call("write_file", path="new", content="x")], say("Done."))
    await events_of(agent, "go")
    with sqlite3.connect(bench.file) as db:
        assert db.execute("SELECT count(*) FROM entry").fetchone() == (0,)
    found = bench.since(agent)
    assert names(found.own) == ["new"]
    await agent.close()
