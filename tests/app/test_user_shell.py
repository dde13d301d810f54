"""The person's own commands: all that they print is shown, in slices, and they wait for it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import threading
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.clock import PATIENCE_S, FakeClock
from tests.support.provider import ScriptedProvider
from tests.support.starting import HeldStarter
from tui.agent.shell_output import ShellOutput
from tui.app import user_shell
from tui.core import facts
from tui.core.facts import Fact
from tui.core.output_store import OutputStore, Retention
from tui.session.session import Session


async def _run(command: str, cwd: Path) -> list[Fact]:
    told: list[Fact] = []
    await user_shell.run(command, cwd, FakeClock(), told.append)
    return told


def _printed(told: list[Fact]) -> list[str]:
    return [event.text for event in told if isinstance(event, facts.ToolOutputChunk)]


def _finished(told: list[Fact]) -> facts.ToolFinished:
    last = told[-1]
    assert isinstance(last, facts.ToolFinished)
    return last


async def test_all_of_a_flood_is_shown_in_bounded_slices(tmp_path: Path) -> None:
    told = await _run("seq 1 300000", tmp_path)
    pieces = _printed(told)
    assert "".join(pieces) == "".join(f"{n}\n" for n in range(1, 300_001))
    assert max(map(len, pieces)) <= 2 * user_shell.SLICE  # one more read may come on top
    last = _finished(told)
    assert last.text.endswith("299999\n300000\n")
    assert len(last.text) <= user_shell.KEPT_CHARS
    assert not last.is_error


async def test_a_character_that_is_cut_by_a_slice_is_whole(tmp_path: Path) -> None:
    source = "import sys\nsys.stdout.buffer.write('a漢'.encode() * 300_000)"
    (tmp_path / "wide.py").write_text(source)
    assert "".join(_printed(await _run(f"{sys.executable} wide.py", tmp_path))) == "a漢" * 300_000


async def test_what_no_utf8_is_stands_for_itself_to_the_end(tmp_path: Path) -> None:
    told = await _run(r"printf 'a\xe6\xbc'", tmp_path)
    assert "".join(_printed(told)) == "a\N{REPLACEMENT CHARACTER}"


async def test_the_exit_code_is_told(tmp_path: Path) -> None:
    last = _finished(await _run("echo no; exit 3", tmp_path))
    assert (last.is_error, last.text) == (True, "no\n")
    assert last.summary == "exit code 3 · hidden from the model"


async def test_what_outlives_the_shell_is_not_waited_for(tmp_path: Path) -> None:
    told = await asyncio.wait_for(_run("yes & echo done", tmp_path), PATIENCE_S)
    assert "done" in "".join(_printed(told))


async def test_stopping_a_flood_ends_it_at_once(tmp_path: Path) -> None:
    told: list[Fact] = []
    going = asyncio.Event()

    def show(event: Fact) -> None:
        told.append(event)
        if isinstance(event, facts.ToolOutputChunk):
            going.set()

    running = asyncio.create_task(user_shell.run("yes", tmp_path, FakeClock(), show))
    await asyncio.wait_for(going.wait(), PATIENCE_S)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, PATIENCE_S)
    assert _finished(told).summary == "stopped"  # and not that it goes along: it does not
    assert threading.active_count() < 20


async def _told(
    command: str, cwd: Path, *, keep: bool = True, shared: bool = True
) -> tuple[str, facts.ToolFinished]:
    """What the model gets, and the last event."""
    seen: list[Fact] = []
    keeping = _keeping(cwd) if keep else None
    heard = await user_shell.run(
        command, cwd, FakeClock(), seen.append, shared=shared, keeping=keeping
    )
    return heard, _finished(seen)


def _keeping(cwd: Path) -> ShellOutput:
    return make_agent(cwd, ScriptedProvider()).jobs.output


def _kept(cwd: Path) -> Path:
    return cwd / ".holdfast" / "tool-results"


async def test_K20_what_the_model_is_told_is_whole_up_to_the_limit_of_a_tool(
    tmp_path: Path,
) -> None:
    heard, last = await _told("seq 1 1900", tmp_path)
    assert heard == "".join(f"{n}\n" for n in range(1, 1901)) + "(exit code 0)"
    assert last.receipt is None
    assert not _kept(tmp_path).exists()


@pytest.mark.parametrize("lines", [10_500, 300_000], ids=["kept in memory", "in a file from early"])
async def test_K20_a_cut_has_a_receipt_and_a_full_copy(tmp_path: Path, lines: int) -> None:
    heard, last = await _told(f"seq 1 {lines}; exit 3", tmp_path)
    printed = "".join(f"{n}\n" for n in range(1, lines + 1)).encode()
    receipt = last.receipt
    assert receipt is not None
    copy = Path(receipt["path"])
    assert copy.parent == _kept(tmp_path)
    assert copy.read_bytes() == printed
    assert copy.stat().st_mode & 0o777 == 0o600
    assert receipt["stages"] == ["spill"]
    assert receipt["sha256"] == hashlib.sha256(printed).hexdigest()
    assert (receipt["bytes_total"], receipt["lines_total"]) == (len(printed), lines)
    assert receipt["bytes_shown"] == len(heard.encode())
    assert f"Full output saved to: {copy}" in heard
    assert "Exit code: 3" in heard
    assert f" {lines}\n" in heard


async def test_one_can_be_moved_while_it_is_being_started(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider())
    jobs = agent.jobs.output.jobs.ctx.toolbox.jobs
    jobs.starter = starter = HeldStarter(jobs.starter)
    seen: list[Fact] = []
    run = user_shell.run(
        "sleep 1000", tmp_path, FakeClock(), seen.append, keeping=agent.jobs.output
    )
    task = asyncio.create_task(run)
    async with asyncio.timeout(PATIENCE_S):
        await starter.begun.wait()
        assert agent.jobs.move_to_background() == 1
        starter.go.set()
        heard = await task
    (owned,) = agent.jobs.all
    assert not owned.job.ended
    assert f"still running as {owned.job.id}" in heard
    await agent.close()


async def test_K20_what_the_model_is_not_told_is_kept_nowhere(tmp_path: Path) -> None:
    _, last = await _told("seq 1 300000", tmp_path, shared=False)
    assert last.receipt is None
    assert not _kept(tmp_path).exists()


async def test_K20_without_a_session_it_is_said_that_the_rest_is_lost(tmp_path: Path) -> None:
    heard, last = await _told("seq 1 9000", tmp_path, keep=False)
    assert last.receipt is None
    left, _, rest = heard.partition("\n")
    assert left == "… 35,893 earlier characters are left out and not kept …"
    assert rest.endswith("9000\n(exit code 0)")


async def test_what_was_stopped_leaves_no_copy(tmp_path: Path) -> None:
    grown = asyncio.Event()
    size = 0

    def show(event: Fact) -> None:
        nonlocal size
        size += len(event.text) if isinstance(event, facts.ToolOutputChunk) else 0
        if size > 200_000:
            grown.set()

    keeping = _keeping(tmp_path)
    running = asyncio.create_task(
        user_shell.run("yes", tmp_path, FakeClock(), show, shared=True, keeping=keeping)
    )
    await asyncio.wait_for(grown.wait(), PATIENCE_S)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, PATIENCE_S)
    assert not list(_kept(tmp_path).glob("*.txt"))


async def test_L26_a_full_copy_is_noted_as_the_sessions(tmp_path: Path) -> None:
    session = Session.in_memory(tmp_path, clock=FakeClock())
    path = tmp_path / "session.jsonl"
    kept = OutputStore(_kept(tmp_path), session=path, retention=Retention(tmp_path))
    agent = make_agent(tmp_path, ScriptedProvider(), session=session, outputs=kept)
    seen: list[Fact] = []
    await user_shell.run(
        "seq 1 20000", tmp_path, FakeClock(), seen.append, shared=True, keeping=agent.jobs.output
    )
    receipt = _finished(seen).receipt
    assert receipt is not None
    copy = Path(receipt["path"])
    assert copy.parent == _kept(tmp_path)
    index = (_kept(tmp_path) / "index.jsonl").read_text()
    noted = [json.loads(line) for line in index.splitlines() if line]
    assert noted == [{"name": copy.name, "session": str(path)}]
    await agent.close()
