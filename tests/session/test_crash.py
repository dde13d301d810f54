"""Real processes, killed hundreds of times: every record they called saved is there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.core.paths import folders
from tui.session.drafts import UnsentWork
from tui.session.reader import read
from tui.session.session import Session

KILLS = 200
OF_ONE_SESSION = 12


@pytest.fixture
def nursery() -> Generator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.session.crash_writer"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as program:
        yield program
        assert program.stdin is not None
        program.stdin.close()


def killed(
    nursery: subprocess.Popen[bytes], home: Path, resume: Path | None, after: int
) -> tuple[Path, list[str]]:
    """Have a writer killed once it has called `after` records saved, or some more.

    Returns the session's file and the ids that were called saved.
    """
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    nursery.stdin.write(f"{home}\t{resume or ''}\n".encode())
    told, writer = b"", 0
    while not told.endswith(b"over\n"):
        chunk = os.read(nursery.stdout.fileno(), 65536)
        assert chunk, "the nursery has ended"
        told += chunk
        if not writer and b"\n" in told:
            writer = int(told.split(b"\t", 2)[1])
        if writer > 0 and told.count(b"saved\t") >= after:
            os.kill(writer, signal.SIGKILL)
            writer = -1
    lines = [line.split("\t") for line in told.decode().splitlines()]
    return Path(lines[0][2]), [line[1] for line in lines if line[0] == "saved"]


@pytest.mark.slow
def test_every_acknowledged_record_survives_kill_9(
    nursery: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    chance = random.Random(7)
    path: Path | None = None
    promised: list[str] = []
    for number in range(KILLS):
        if number % OF_ONE_SESSION == 0:
            path, promised = None, []
        path, saved = killed(nursery, tmp_path, path, chance.randint(0, 8))
        promised += saved
        loaded = read(path)
        there = [record.id for record in loaded.branch]
        assert set(promised) <= set(there)
        assert there == sorted(there)
        torn = {finding.code for finding in loaded.findings}
        assert torn <= {"B40", "B45", "B52"}, "at most the half-written line was lost"
        if saved:
            assert loaded.unsent.queue == ("queued",)


async def test_power_loss_at_any_byte_costs_at_most_the_line_it_hits(tmp_path: Path) -> None:
    clock = FakeClock()
    session = Session.create(
        Path("/w"), folders=folders({"HOLDFAST_HOME": str(tmp_path)}), clock=clock
    )
    for number in range(4):
        session.append("user", content=f"ünd {number}", text=f"ünd {number}")
        session.draft(UnsentWork(f"typing {number}", answer="so far " * number))
        clock.elapsed += 9
    await session.close()
    assert session.path is not None
    data = session.path.read_bytes()
    ends = [end + 1 for end, byte in enumerate(data) if byte == 10]
    for cut in range(1, len(data)):
        session.path.write_bytes(data[:cut])
        loaded = read(session.path)
        whole = [line for line in data[:cut].split(b"\n") if b'"type":"user"' in line]
        kept = [record.id for record in loaded.records]
        written = [record.id for record in session.records]
        assert kept == written[: len(kept)]
        assert len(kept) in {len(whole), len(whole) - 1}
        if cut in ends or cut + 1 in ends:
            assert loaded.findings == ()
        else:
            assert [finding.code for finding in loaded.findings][:1] in (["B40"], ["B54"])
