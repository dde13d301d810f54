"""A session of 50,000 messages: spawn → its end is on the screen and a typed key in the prompt.

Beside an empty session, in turn, in a pty. Ready means that the last words can be read and the
next prompt typed; the rest of the session is loaded behind that.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.support.terminal import Terminal
from tui.session.records import Header, Record, new_id

MESSAGES, RUNS = 50_000, 5
ANSWER = (
    "Here is **what I found** in `store.py`:\n\n- the index is rebuilt on *every* open\n"
    "- one bad line costs one line\n\n```python\ndef read(path):\n"
    "    for line in path.open():\n        yield parse(line)\n```\n\n"
    "The rest of the file is still read, and nothing is written back until you say so.\n"
)
_KEY = "Ω"
"""Nothing else on the screen has it."""


def run() -> list[tuple[str, float, float]]:
    """One row: the median of the long session over that of the empty one."""
    with tempfile.TemporaryDirectory() as home:
        work = Path(home) / "work"
        work.mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
        env["HOLDFAST_HOME"] = home
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env["PYTHONPYCACHEPREFIX"] = str(Path(home) / "compiled")
        session = _session(Path(home) / "data" / "sessions" / "work", work)
        ours = [sys.executable, "-m", "tui", "--practice"]
        empty: list[float] = []
        long: list[float] = []
        for round_ in range(RUNS + 1):
            pair = (
                _seconds(ours, env, work, "ask first", "Ask for anything"),
                _seconds([*ours, "-r", session], env, work, f"question {MESSAGES // 2 - 1}"),
            )
            if round_:  # the first warms the disk cache
                empty.append(pair[0])
                long.append(pair[1])
    one, other = statistics.median(long), statistics.median(empty)
    what = f"{MESSAGES:,} messages: open → ready {1e3 * one:.0f} ms ÷ empty {1e3 * other:.0f} ms"
    return [(what, one / other, 2.5)]


def _seconds(argv: list[str], env: dict[str, str], work: Path, *words: str) -> float:
    """Seconds from spawn until the words and a key that was typed are on the screen."""
    started = time.perf_counter()
    with Terminal(argv, cwd=work, env=env, columns=120, rows=40) as screen:
        screen.wait_for(*words)
        screen.forget()
        screen.type(_KEY)
        screen.wait_for(_KEY)
        return time.perf_counter() - started


def _session(folder: Path, work: Path) -> str:
    """A long session's file; returns its id."""
    folder.mkdir(parents=True)
    now, last = datetime(2026, 11, 20, 8, tzinfo=UTC), ""
    header = Header("a1b2c3d4e5f6", now.isoformat(), str(work), "holdfast 0.1.0")
    with (folder / f"20261120T080000Z-{header.id}.jsonl").open("wb") as file:
        file.write(header.to_line())
        for number in range(MESSAGES // 2):
            asked = f"question {number}: why is the index rebuilt?"
            block = {"type": "text", "text": asked}
            reply = [{"type": "text", "text": ANSWER}]
            for kind, data in (
                ("user", {"content": [block], "text": asked}),
                ("assistant", {"content": reply, "model": "practice", "stop_reason": "end_turn"}),
            ):
                id_ = new_id(now, after=last)
                record = Record(kind, id_, last or None, now.isoformat(), dict(data))
                file.write(record.to_line())
                last = id_
    return header.id
