"""B44: one writer at a time, and what becomes of the other. Real processes where it matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.core.errors import SessionInUseError, StorageError
from tui.core.paths import folders
from tui.session.lock import holder, lock_of
from tui.session.reader import read
from tui.session.session import Session

HOLD = """
import asyncio, sys
from pathlib import Path
from tui.core.clock import SystemClock
from tui.session.session import Session

async def main():
    session = Session.open(Path(sys.argv[1]), clock=SystemClock())
    print("open", flush=True)
    for line in sys.stdin:
        session.append("user", content=line.strip(), text=line.strip())
        print(session.read_only, session.saved, session.problem, flush=True)

asyncio.run(main())
"""


async def new(tmp_path: Path, clock: FakeClock) -> Path:
    home = folders({"HOLDFAST_HOME": str(tmp_path)})
    session = Session.create(Path("/w"), folders=home, clock=clock)
    session.append("user", content="one", text="one")
    await session.close()
    assert session.path is not None
    return session.path


@contextmanager
def another(path: Path) -> Generator[subprocess.Popen[str]]:
    """Another program that has the session open; writes a prompt for every line it is given."""
    command = [sys.executable, "-c", HOLD, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "open\n"
        try:
            yield program
        finally:
            program.kill()


def told(program: subprocess.Popen[str], prompt: str) -> str:
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(prompt + "\n")
    program.stdin.flush()
    return program.stdout.readline().strip()


def prompts(path: Path) -> list[str]:
    return [record.data["text"] for record in read(path).records if record.type == "user"]


async def test_B44_a_session_that_is_open_elsewhere_is_not_opened(tmp_path: Path) -> None:
    path = await new(tmp_path, FakeClock())
    with another(path) as program:
        with pytest.raises(SessionInUseError, match=f"process {program.pid}") as raised:
            Session.open(path, clock=FakeClock())
        assert "fork" in raised.value.hint
        who = holder(path)
        assert who is not None
        assert (who.pid, who.running) == (program.pid, True)
        seen = Session.open(path, clock=FakeClock(), read_only=True)
        assert [r.data["text"] for r in seen.records] == ["one"]
    assert Session.open(path, clock=FakeClock()).read_only is False, "the kernel let go of it"


async def test_B44_the_other_program_notices_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = await new(tmp_path, FakeClock())
    with another(path) as program:
        assert told(program, "two") == "False True"
        session = Session.open(path, clock=FakeClock(), take_over=True)
        assert [r.data["text"] for r in session.records] == ["one", "two"]
        answer = told(program, "lost")
        assert answer.startswith("True False process")
        assert str(os.getpid()) in answer
        await session.commit("user", content="three", text="three")
        assert session.saved
        await session.close()
        assert told(program, "still lost").startswith("True False"), "it never writes again"
    assert prompts(path) == ["one", "two", "three"]
    assert read(path).findings == ()


async def test_B44_what_is_read_only_is_never_written(tmp_path: Path) -> None:
    path = await new(tmp_path, FakeClock())
    before = path.read_bytes()
    session = Session.open(path, clock=FakeClock(), read_only=True)
    assert session.read_only
    assert session.saved
    session.append("user", content="two", text="two")
    assert not session.saved
    assert "read-only" in session.problem
    with pytest.raises(StorageError, match="read-only") as raised:
        await session.sync()
    assert "fork" in raised.value.hint
    await session.close()  # nothing was to be written
    assert path.read_bytes() == before
    assert not lock_of(path).exists()


async def test_within_one_program_the_last_to_open_has_it(tmp_path: Path) -> None:
    path = await new(tmp_path, FakeClock())
    first = Session.open(path, clock=FakeClock())
    second = Session.open(path, clock=FakeClock())
    first.append("user", content="x", text="x")
    assert (first.read_only, second.read_only) == (True, False)
    await second.commit("user", content="two", text="two")
    await second.close()
    assert prompts(path) == ["one", "two"]


async def test_closing_leaves_no_lock_and_a_new_session_has_one(tmp_path: Path) -> None:
    home = folders({"HOLDFAST_HOME": str(tmp_path)})
    session = Session.create(Path("/w"), folders=home, clock=FakeClock())
    assert session.path is not None
    session.append("user", content="one", text="one")
    assert lock_of(session.path).exists()
    await session.close()
    assert not lock_of(session.path).exists()


async def test_what_another_host_left_is_not_taken_for_abandoned(tmp_path: Path) -> None:
    path = await new(tmp_path, FakeClock())
    about = {"pid": 12, "host": "elsewhere", "since": "2026-11-21T09:00:00.000Z"}
    lock_of(path).write_text(json.dumps(about))
    with pytest.raises(SessionInUseError, match="can't tell from here") as raised:
        Session.open(path, clock=FakeClock())
    assert str(lock_of(path)) in raised.value.hint
    session = Session.open(path, clock=FakeClock(), take_over=True)
    assert not session.read_only
    await session.close()


@pytest.mark.parametrize("left", [b"", b"\0\0", b"[1]", b'{"pid": "x"}'])
async def test_a_lock_file_that_says_nothing_is_no_obstacle(tmp_path: Path, left: bytes) -> None:
    path = await new(tmp_path, FakeClock())
    lock_of(path).write_bytes(left)
    session = Session.open(path, clock=FakeClock())
    assert not session.read_only
    await session.close()


async def test_where_no_lock_can_be_made_the_session_is_written_without(tmp_path: Path) -> None:
    path = await new(tmp_path, FakeClock())
    lock_of(path).mkdir()
    session = Session.open(path, clock=FakeClock())
    await session.commit("user", content="two", text="two")
    assert session.saved
    await session.close()
    assert prompts(path) == ["one", "two"]
