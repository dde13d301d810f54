"""Commands under keepers, as real processes: what they leave, however the program ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import PATIENCE_S, FakeClock
from tests.support.machine import needs_proc
from tests.support.processes import gone
from tui.core.clock import SystemClock
from tui.keeper import folder as names
from tui.keeper.command import PlainStarter, SupervisedCommand, command_folders, lives, note


class Desk:
    """Starts commands in a folder, by one zygote."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.starter = PlainStarter()

    async def start(self, line: str, name: str = "one", **changes: Any) -> SupervisedCommand:
        given: dict[str, Any] = {"limit": 1 << 30, "min_free": 0} | changes
        return await SupervisedCommand.start(
            ("/bin/sh", "-c", line), cwd=self.root, env=os.environ,
            folder=self.root / "kept" / name, starter=self.starter,
            call={"call_id": name, "command": line}, **given,
        )  # fmt: skip


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    await asyncio.to_thread(made.starter.close)


async def ended(command: SupervisedCommand) -> SupervisedCommand:
    assert await command.wait(PATIENCE_S)
    return command


async def printed(command: SupervisedCommand) -> bytes:
    """The first that it prints."""
    while not (data := await asyncio.to_thread(command.read)):
        pass
    return data


async def test_the_end_says_it_in_numbers(desk: Desk) -> None:
    command = await ended(await desk.start("printf 'one\\ntwo'; exit 3"))
    assert command.end is not None
    assert (command.end.returncode, command.end.bytes, command.end.lines) == (3, 7, 2)
    assert command.read() == b"one\ntwo"
    assert command.read() == b""
    assert (command.folder.stat().st_mode & 0o777, command.output.stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )
    command.discard()
    assert not command.folder.exists()


async def test_it_is_taken_over_while_it_runs(desk: Desk) -> None:
    first = await desk.start("echo a; until test -e go; do sleep 0.01; done; echo b; exit 9")
    assert await printed(first) == b"a\n"
    first.close()
    await asyncio.to_thread(desk.starter.close)  # and the zygote is gone
    (folder,) = command_folders(desk.root / "kept")
    second = SupervisedCommand.take_over(folder)
    assert second is not None
    assert second.end is None
    assert lives(folder)
    (desk.root / "go").touch()
    await ended(second)
    assert second.end is not None
    assert (second.end.returncode, second.read()) == (9, b"a\nb\n")
    assert not lives(folder)


async def test_it_is_taken_over_after_its_end(desk: Desk) -> None:
    first = await ended(await desk.start("echo all; kill -9 $$"))
    first.close()
    second = SupervisedCommand.take_over(first.folder)
    assert second is not None
    assert second.end is not None
    assert (second.end.returncode, second.end.rest, second.read()) == (-9, False, b"all\n")
    assert second.call["call_id"] == "one"


async def test_a_keeper_that_was_killed_leaves_what_was_printed(desk: Desk) -> None:
    command = await desk.start("echo so far; exec sleep 1000")
    await printed(command)
    command.read_up_to = 0
    os.kill(note(command.folder, names.STATE)["keeper"], signal.SIGKILL)
    await ended(command)
    os.kill(command.pid, signal.SIGKILL)
    assert command.end is not None
    assert command.end.lost
    assert command.read() == b"so far\n"


async def test_where_it_is_wanted_a_command_ends_with_its_program(desk: Desk) -> None:
    """Also one that heeds no SIGTERM."""
    command = await desk.start("trap '' TERM; echo begun; while :; do sleep 0.1; done")
    assert await printed(command) == b"begun\n"
    (desk.root / names.ENDS_HERE).touch()
    folder = command.folder
    assert lives(folder)
    command.close()
    await asyncio.to_thread(desk.starter.close)
    assert await asyncio.to_thread(gone, command.pid)


async def test_a_command_that_nobody_wants_any_more_does_not_run_on(desk: Desk) -> None:
    """Cancelled at each step of its start: it never runs on unseen."""
    for steps in range(12):
        starting = asyncio.create_task(desk.start(f"echo $$ > pid{steps}; exec sleep 1000"))
        for _ in range(steps):
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not command_folders(desk.root / "kept")
    for file in desk.root.glob("pid*"):
        assert not (pid := file.read_text()) or gone(int(pid))


async def test_its_time_ends_only_where_no_program_is_there(desk: Desk) -> None:
    command = await desk.start("echo x; sleep 1000", timeout=0.05)
    assert not await command.wait(0.3)
    command.close()
    left = SupervisedCommand.take_over(command.folder)
    assert left is not None
    await ended(left)
    assert left.end is not None
    assert left.end.timed_out
    assert left.end.returncode == -signal.SIGTERM


async def test_without_a_limit_it_takes_its_time(desk: Desk) -> None:
    command = await desk.start("sleep 1000", timeout=0.05)
    command.without_limit()
    command.close()
    left = SupervisedCommand.take_over(command.folder)
    assert left is not None
    assert not await left.wait(0.3)
    await left.stop(SystemClock())
    assert left.end is not None
    assert not left.end.timed_out


async def test_stop_ends_all_that_the_group_left(desk: Desk) -> None:
    command = await desk.start("trap '' TERM; sleep 1000 & echo $!; while :; do sleep 0.01; done")
    child = int(await printed(command))
    await command.stop(FakeClock())
    assert command.end is not None
    assert command.end.returncode == -9
    assert gone(child)


async def test_L29_no_more_is_written_than_the_limit_and_the_end_is_there(desk: Desk) -> None:
    command = await ended(await desk.start("seq 1 100000; echo the end", limit=1000))
    assert command.end is not None
    assert command.size == command.end.written == 1000
    assert command.end.stopped == names.LIMIT
    assert command.end.bytes == 588_895 + 8
    assert command.end.tail.endswith(b"100000\nthe end\n")
    assert len(command.end.tail) == names.TAIL_BYTES


async def test_L29_a_little_is_written_where_the_disk_is_nearly_full(desk: Desk) -> None:
    command = await ended(await desk.start("seq 1 1000000", min_free=1 << 62))
    assert command.end is not None
    assert 0 < command.end.written < 2 << 20
    assert command.end.stopped == "the disk is nearly full"


async def test_a_folder_that_cannot_be_made_is_a_temporary_one(desk: Desk) -> None:
    (desk.root / "kept").write_text("a file")
    command = await ended(await desk.start("echo x"))
    assert command.folder.parent != desk.root / "kept"
    assert command.read() == b"x\n"
    command.discard()


async def test_wild_files_are_no_end_and_no_crash(desk: Desk) -> None:
    command = await ended(await desk.start("echo x"))
    command.close()
    for wild in (b"", b"[1]", b'{"status": "x"}', b'{"status": 1e999}', b"\xff", b"[" * 100_000):
        (command.folder / names.STATE).write_bytes(wild)
        found = SupervisedCommand.take_over(command.folder)
        assert found is not None
        await ended(found)  # its keeper may take a moment to go
        assert found.end is not None
        assert found.end.lost
        found.close()
    (command.folder / names.CALL).write_bytes(b"{")
    assert SupervisedCommand.take_over(command.folder) is not None
    (command.folder / names.OUTPUT).unlink()
    assert SupervisedCommand.take_over(command.folder) is None


@needs_proc
async def test_a_keeper_is_small(desk: Desk) -> None:
    command = await desk.start("exec sleep 1000")
    keeper = note(command.folder, names.STATE)["keeper"]
    rollup = Path(f"/proc/{keeper}/smaps_rollup").read_text()
    private = sum(int(line.split()[1]) for line in rollup.splitlines() if "Private" in line)
    command.kill()
    await ended(command)
    assert private < 8 * 1024, json.dumps(rollup)


async def test_many_at_once_are_all_recovered(desk: Desk) -> None:
    commands = [await desk.start(f"sleep 0.1; seq 1 {n}; exit {n}", f"c{n}") for n in range(20)]
    for command in commands:
        command.close()
    await asyncio.to_thread(desk.starter.close)
    for n, command in enumerate(commands):
        found = SupervisedCommand.take_over(command.folder)
        assert found is not None
        await ended(found)
        assert found.end is not None
        assert found.end.returncode == n
        assert found.read() == "".join(f"{i}\n" for i in range(1, n + 1)).encode()
