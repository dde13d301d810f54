"""What `-p` does on the way to its answer, in counts that do not vary: a start, not a house-moving.

The time is measured by `tests/benchmarks/bench_process.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import LoopbackServer

_COUNTED = """
import atexit, collections, json, os, sys
events = collections.Counter()
opened = []

def hear(event, given):
    events[event] += 1
    if event == "open" and isinstance(given[0], str) and given[0].startswith(sys.argv[1]):
        opened.append(given[0])

sys.addaudithook(hear)
for name in ("fsync", "fdatasync"):
    def counted(file, real=getattr(os, name)):
        events["sync"] += 1
        return real(file)
    setattr(os, name, counted)
from tui.cli.main import main
code = main(["--yolo", "-p", sys.argv[2]])
print("COUNTS" + json.dumps([events, len(opened), code]))
"""


async def counts(tmp_path: Path, *turns: dict[str, Any]) -> tuple[Counter[str], int]:
    """The events of one run that is answered by these turns, and the files of its own it opened."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    async with LoopbackServer({"turns": list(turns)}) as server:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC", "HOLDFAST"))}
        env |= {"HOLDFAST_HOME": str(home), "ANTHROPIC_API_KEY": "k"}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _COUNTED, str(home), "go"),
            env=env | {"ANTHROPIC_BASE_URL": server.url, "PYTHONPATH": str(Path.cwd())},
            cwd=work,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
    answer, _, told = output.decode().partition("COUNTS")
    events, opened, code = json.loads(told)
    assert (answer, code) == ("Done.\n", 0)
    return Counter(events), opened


async def test_an_answer_without_a_call_starts_nothing_and_syncs_three_times(
    tmp_path: Path,
) -> None:
    events, opened = await counts(tmp_path, {"text": "Done."})
    started = {"subprocess.Popen", "os.fork", "os.posix_spawn", "sqlite3.connect", "pty.spawn"}
    assert not started & events.keys(), "no sandbox, no checkpoint, no git"
    assert events["sync"] <= 3, "the file's folder, the prompt, the answer"
    assert events["socket.connect"] <= 3, "the answer, the model, the list of models"
    assert opened <= 40


async def test_a_command_is_started_by_one_process_of_ours(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the sandbox of Linux")
    call = {"tools": [{"name": "run_command", "input": {"command": "echo hi"}}]}
    events, _ = await counts(tmp_path, call, {"text": "Done."})
    assert events["subprocess.Popen"] <= 1, "what starts commands: no git where there is no .git"
    assert events["sync"] <= 6
