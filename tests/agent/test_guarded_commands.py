"""Commands on their way to the model: a receipt on every way out, the full copy exact."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_guards import give, results, sent
from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.calls.finish import SHOWN_CHARS
from tui.agent.calls.tool_context import chunks_of
from tui.agent.prompts import parse
from tui.core import facts
from tui.core.config import Config, Guard
from tui.core.messages import Block, ToolOutput, text_of
from tui.provider.base import Request
from tui.session.records import Record
from tui.tokens import estimate
from tui.tools.limits.clamp import byte_length, line_count
from tui.tools.output_capture import Capture


async def test_L27_a_flood_is_read_off_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, where = Capture.feed, set[bool]()

    def feed(self: Capture, data: bytes) -> str:
        where.add(threading.current_thread() is threading.main_thread())
        return real(self, data)

    monkeypatch.setattr(Capture, "feed", feed)
    size = 50_000_000
    command = f"head -c {size} /dev/zero | tr '\\0' y"
    provider = ScriptedProvider([call("run_command", "big", command=command)], say("ok"))
    agent = make_agent(tmp_path, provider, approver=Yes())
    await events_of(agent, "go")
    (record,) = results(agent)
    receipt = record.data["receipt"]
    assert where == {False}
    assert receipt["bytes_total"] == receipt["bytes_kept"] == size
    assert receipt["sha256"] == hashlib.sha256(b"y" * size).hexdigest()
    assert byte_length(text_of(record.data["content"])) < 5000


async def run(
    root: Path, command: str, *, guard: Guard | None = None, cancel: bool = False, **more: Any
) -> tuple[Record, ScriptedProvider]:
    """One command through the agent; with `cancel`, interrupted once it has printed."""
    provider = ScriptedProvider([call("run_command", "cmd", command=command, **more)], say("ok"))
    config = Config(guard=guard or Guard())
    agent = make_agent(root, provider, approver=Yes(), config=config)
    async for event in agent.send(parse("go")):
        if cancel and isinstance(event, facts.ToolOutputChunk) and "20000" in event.text:
            agent.cancel()
    (record,) = results(agent)
    return record, provider


SEQ = "".join(f"{n}\n" for n in range(1, 20_001)).encode()


@pytest.mark.parametrize(
    ("then", "more", "code"),
    [
        ("true", {}, "Exit code: 0."),
        ("exit 3", {}, "Exit code: 3."),
        ("kill -9 $$", {}, "Exit code: 137."),
        ("sleep 1000", {"timeout": 0.4}, "Exit code: 143."),
    ],
    ids=["success", "failure", "kill", "timeout"],
)
async def test_25_one_receipt_on_every_way_out(
    tmp_path: Path, then: str, more: dict[str, Any], code: str
) -> None:
    record, provider = await run(tmp_path, f"seq 1 20000; {then}", **more)
    text = text_of(sent(provider.requests[-1]))
    assert text == text_of(record.data["content"])
    assert code in text
    assert text.count("Output too large") == 1
    assert_adds_up(record.data["receipt"], SEQ, text)
    assert " 20000\n" in text
    if more:
        assert " [timed out after 0.4 s" in text


async def test_colours_are_for_the_person_and_for_nobody_else(tmp_path: Path) -> None:
    command = r"printf '\033[31mred\033[0m 20000\n'; printf '\033[32m%20000d' 5; sleep "
    chunks = list[facts.ToolOutputChunk]()
    for seconds, cancel in (("0", False), ("1000", True)):
        given = {"command": command + seconds}
        provider = ScriptedProvider([call("run_command", "cmd", **given)], say("ok"))
        agent = make_agent(tmp_path, provider, approver=Yes())
        async for event in agent.send(parse("go")):
            if isinstance(event, facts.ToolOutputChunk):
                chunks.append(event)
                if cancel:
                    agent.cancel()
        (record,) = results(agent)
        assert "\\u001b" not in json.dumps(record.data)
        assert "\x1b" not in text_of(record.data["content"])
    assert chunks[0].text.startswith("\x1b[31mred\x1b[0m 20000\n\x1b[32m ")
    assert "\x1b" not in "".join(chunk.to_json()["text"] for chunk in chunks)


def test_no_part_of_a_long_output_ends_within_a_colour() -> None:
    text = "x" * (SHOWN_CHARS - 3) + "\x1b[31m" + "y" * SHOWN_CHARS + "\x1b[0m"
    parts = list(chunks_of(text))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= SHOWN_CHARS
    assert parts[1].startswith("\x1b[31m")
    assert list(chunks_of("\x1b" * 20_000))


async def test_25_an_interrupt_leaves_a_receipt_too(tmp_path: Path) -> None:
    record, _ = await run(tmp_path, "seq 1 20000; sleep 1000", cancel=True)
    text = text_of(record.data["content"])
    assert text == "Session was interrupted before tool execution completed"
    assert record.data["details"]["partial"].endswith("\n20000\n")
    assert_adds_up(record.data["receipt"], SEQ, text)


async def test_25_an_interrupt_of_little_output_keeps_it_in_the_record(tmp_path: Path) -> None:
    record, _ = await run(tmp_path, "echo 20000; sleep 1000", cancel=True)
    assert record.data["details"]["partial"] == "20000\n"
    assert record.data["receipt"] is None
    assert not (tmp_path / ".holdfast").exists()


def assert_adds_up(receipt: dict[str, Any], raw: bytes, shown: str) -> None:
    kept = Path(receipt["path"]).read_bytes()
    assert kept == raw
    assert receipt["sha256"] == hashlib.sha256(raw).hexdigest()
    assert receipt["bytes_kept"] == receipt["bytes_total"] == len(raw)
    assert receipt["lines_total"] == raw.count(b"\n") + (not raw.endswith(b"\n"))
    assert receipt["tokens_total"] == estimate.tokens(raw.decode(errors="replace"))
    assert receipt["bytes_shown"] == byte_length(shown)
    assert receipt["lines_shown"] == line_count(shown)
    assert receipt["tokens_shown"] == estimate.tokens(shown)


HOSTILE = rb"\033[31mred\033[0m \0 \377\376 \033]0;title\007 \r\nnext\n"
HOSTILE_BYTES = b"\x1b[31mred\x1b[0m \0 \xff\xfe \x1b]0;title\x07 \r\nnext\n"


@pytest.mark.parametrize("times", [3000, 8000], ids=["clamped", "spilled"])
async def test_25_colours_and_control_bytes_are_kept_and_not_sent(
    tmp_path: Path, times: int
) -> None:
    """Small outputs are in no file until something is cut; the copy is exact all the same."""
    line = HOSTILE.decode() if times > 3000 else r"\033[1mb\033[0m\n"
    raw = HOSTILE_BYTES * times if times > 3000 else b"\x1b[1mb\x1b[0m\n" * times
    command = f"for i in $(seq {times}); do printf '{line}'; done"
    record, provider = await run(tmp_path, command)
    text = text_of(sent(provider.requests[-1]))
    assert not any(c < " " and c != "\n" for c in text)
    assert "\x7f" not in text
    assert_adds_up(record.data["receipt"], raw, text)
    assert record.data["receipt"]["stages"] == (["spill"] if times > 3000 else ["clamp"])


async def test_L29_a_full_copy_has_a_limit_and_the_command_goes_on(tmp_path: Path) -> None:
    guard = Guard(spill_max_bytes=60_000)
    record, _ = await run(tmp_path, "seq 1 200000; touch done", guard=guard)
    assert (tmp_path / "done").exists()
    receipt = record.data["receipt"]
    assert receipt["bytes_total"] == 1_288_895
    assert receipt["bytes_kept"] == 60_000
    assert Path(receipt["path"]).stat().st_size == 60_000
    text = text_of(record.data["content"])
    assert "Failed to save full output: only the first 58.6 KB are in " in text
    assert " 200000\n" in text


@pytest.mark.parametrize("source", ["command", "tool"])
async def test_L29_a_disk_that_is_nearly_full_is_left_alone(tmp_path: Path, source: str) -> None:
    guard = Guard(spill_min_free_bytes=1 << 62)
    if source == "command":
        record, _ = await run(tmp_path, "seq 1 400000", guard=guard)
    else:
        agent, _, _ = await give(tmp_path, ToolOutput.text("x" * 90_000), guard=guard)
        (record,) = results(agent)
    text = text_of(record.data["content"])
    assert "the disk is nearly full\n" in text
    kept = record.data["receipt"]["bytes_kept"]
    if source == "tool":
        assert "Preview (first 2048 bytes):\n" in text
        assert (record.data["receipt"]["path"], kept) == (None, 0)
    else:  # a little is always written
        assert 0 < kept <= 2 << 20
        assert "400000\n" in text


async def test_O21_what_is_held_in_memory_is_configured(tmp_path: Path) -> None:
    guard = Guard(memory_chars=2000, default_bytes=10**8, bytes={"run_command": 10**8})
    record, _ = await run(tmp_path, "seq 1 20000", guard=guard)
    receipt = record.data["receipt"]
    assert receipt["stages"] == ["spill"]  # what is held is not all of it
    assert Path(receipt["path"]).read_bytes() == SEQ


async def test_25_a_look_at_a_background_command_has_its_own_full_copy(tmp_path: Path) -> None:
    command = "seq 1 20000; while [ ! -e go ]; do sleep 0.01; done; seq 1 20000"
    start = [call("run_command", "start", command=command, background=True)]

    def until_printed(request: Request) -> list[Block]:
        return [call("command_status", "look_0", job="job-1", action="wait", timeout=0.5)]

    def go(request: Request) -> list[Block]:
        (tmp_path / "go").touch()
        return [call("command_status", "look_1", job="job-1", action="wait")]

    provider = ScriptedProvider(start, until_printed, go, say("ok"))
    agent = make_agent(tmp_path, provider, approver=Yes())
    await events_of(agent, "go")
    _, first, second = results(agent)
    for record in (first, second):
        assert_adds_up(record.data["receipt"], SEQ, text_of(record.data["content"]))
    assert first.data["receipt"]["path"] != second.data["receipt"]["path"]
    folder = tmp_path / ".holdfast" / "tool-results"
    assert (folder / "job-start.txt").read_bytes() == SEQ * 2
    await agent.close()


async def test_25_a_job_that_ended_is_not_copied_but_named_twice(tmp_path: Path) -> None:
    start = [call("run_command", "start", command="seq 1 200000; exit 4", background=True)]
    wait = [call("command_status", "look", job="job-1", action="wait")]
    provider = ScriptedProvider(start, wait, say("ok"))
    agent = make_agent(tmp_path, provider, approver=Yes())
    await events_of(agent, "go")
    _, record = results(agent)
    raw = "".join(f"{n}\n" for n in range(1, 200_001)).encode()
    text = text_of(record.data["content"])
    assert_adds_up(record.data["receipt"], raw, text)
    assert "Exit code: 4." in text
    folder = tmp_path / ".holdfast" / "tool-results"
    assert (folder / "look.txt").samefile(folder / "job-start.txt")
