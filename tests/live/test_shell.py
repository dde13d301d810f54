"""The person's own commands: all that they print is shown, in slices, and they wait for it."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.agent import events
from tui.agent.events import Event
from tui.live import shell


async def _run(command: str, cwd: Path) -> list[Event]:
    told: list[Event] = []
    await shell.run(command, cwd, FakeClock(), told.append)
    return told


def _printed(told: list[Event]) -> list[str]:
    return [event.text for event in told if isinstance(event, events.ToolOutputChunk)]


def _finished(told: list[Event]) -> events.ToolFinished:
    last = told[-1]
    assert isinstance(last, events.ToolFinished)
    return last


async def test_all_of_a_flood_is_shown_in_bounded_slices(tmp_path: Path) -> None:
    told = await _run("seq 1 300000", tmp_path)
    pieces = _printed(told)
    assert "".join(pieces) == "".join(f"{n}\n" for n in range(1, 300_001))
    assert max(map(len, pieces)) <= shell.SLICE + 65_536
    last = _finished(told)
    assert last.text.endswith("299999\n300000\n")
    assert len(last.text) <= shell.KEPT_CHARS
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
    assert last.summary == "exit code 3 · not shown to the model"


async def test_what_outlives_the_shell_is_not_waited_for(tmp_path: Path) -> None:
    told = await asyncio.wait_for(_run("yes & echo done", tmp_path), 20)
    assert "done" in "".join(_printed(told))


async def test_stopping_a_flood_ends_it_at_once(tmp_path: Path) -> None:
    told: list[Event] = []
    going = asyncio.Event()

    def show(event: Event) -> None:
        told.append(event)
        if isinstance(event, events.ToolOutputChunk):
            going.set()

    running = asyncio.create_task(shell.run("yes", tmp_path, FakeClock(), show))
    await asyncio.wait_for(going.wait(), 20)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 20)
    assert _finished(told).summary.startswith("stopped")
    assert threading.active_count() < 20


async def test_the_thread_may_end_it_while_the_loop_waits() -> None:
    asyncio.get_running_loop().set_debug(True)  # who wakes the loop in the wrong way is told so
    slices = shell.Slices()
    taking = asyncio.create_task(slices.take())
    await asyncio.sleep(0)
    await asyncio.to_thread(slices.end)
    assert await asyncio.wait_for(taking, 20) == b""


async def test_the_thread_waits_until_a_slice_is_taken() -> None:
    slices = shell.Slices()
    put: list[int] = []

    def fill() -> None:
        for number in range(8):
            slices.put(b"x" * (shell.SLICE // 2))
            put.append(number)
        slices.end()

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    sizes: list[int] = []
    while data := await slices.take():
        sizes.append(len(data))
        assert len(put) * (shell.SLICE // 2) <= sum(sizes) + 2 * shell.SLICE
    thread.join(20)
    assert sum(sizes) == 4 * shell.SLICE
    assert max(sizes) <= shell.SLICE + shell.SLICE // 2
