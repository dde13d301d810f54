"""A real process, killed at random points: every record it called saved is there."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from tui.session.reader import read

ROUNDS = 4


def killed(home: Path, resume: Path | None, after: int, more: int) -> tuple[Path, list[str]]:
    """Run the writer, kill it once it has acknowledged `after` records and some more bytes.

    Returns the session's file and the ids that were acknowledged.
    """
    command = [sys.executable, "-m", "tests.session.crash_writer", str(home), str(resume or "")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        told = b""
        while told.count(b"\n") < after:
            told += os.read(writer.stdout.fileno(), 4096)
        told += os.read(writer.stdout.fileno(), more)
        writer.kill()
        told += writer.stdout.read()
    whole = told[: told.rfind(b"\n") + 1].decode().splitlines()
    pairs = [line.split("\t") for line in whole if line.count("\t") == 1]
    return Path(pairs[0][0]), [pair[1] for pair in pairs]


def test_every_acknowledged_record_survives_kill_9(tmp_path: Path) -> None:
    chance = random.Random(7)
    path: Path | None = None
    promised: list[str] = []
    for _ in range(ROUNDS):
        path, saved = killed(tmp_path, path, chance.randint(1, 60), chance.randint(1, 40))
        promised += saved
        loaded = read(path)
        there = [record.id for record in loaded.branch]
        assert set(promised) <= set(there)
        assert there == sorted(there)
        torn = {finding.code for finding in loaded.findings}
        assert torn <= {"B40", "B41", "B52"}, "at most the half-written line was lost"
    assert len(promised) >= ROUNDS
