"""A session of 50,000 messages: spawn → its end is on the screen and a typed key in the prompt.

Beside an empty session, in turn, in a pty. Ready means that the last words can be read and the
next prompt typed; the rest of the session is loaded behind that, while keys are typed, and after.
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
OPENING = 1.35
"""Of an empty session. Of the 64 ms that it takes longer, 18 are the import of markdown-it-py, 20
the drawing and layout of a screen full of text."""
WORST_MS = 20
"""A frame in which the layout changes takes Textual 9 to 11 ms, more while a thread loads. A key
that comes with it is painted in the next one, 3 to 4 ms later: 11 to 13 ms is usual."""
ANSWER = (
    "Here is **what I found** in `store.py`:\n\n- the index is rebuilt on *every* open\n"
    "- one bad line costs one line\n\n```python\ndef read(path):\n"
    "    for line in path.open():\n        yield parse(line)\n```\n\n"
    "The rest of the file is still read, and nothing is written back until you say so.\n"
)
_KEY = "Ω"
_KEYS = "ΩΨΦΣΠΞΛΘΔΓЖЦЧШЩЭЮЯБД"
"""Nothing else on the screen has them."""


def run() -> list[tuple[str, float, float]]:
    """The median of the long session over that of the empty one; keys while it loads, and then."""
    with tempfile.TemporaryDirectory() as home:
        work = Path(home) / "work"
        work.mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
        env["HOLDFAST_HOME"] = home
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env["PYTHONPYCACHEPREFIX"] = str(Path(home) / "compiled")
        session = long_session(Path(home) / "data" / "sessions" / "work", work)
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
        loading, after = _keys([*ours, "-r", session], env, work)
    one, other = statistics.median(long), statistics.median(empty)
    what = f"{MESSAGES:,} messages: open → ready {1e3 * one:.0f} ms ÷ empty {1e3 * other:.0f} ms"
    worst, middle = 1e3 * max(loading), 1e3 * statistics.median(after)
    seen = f"{len(loading)} keys, median {1e3 * statistics.median(loading):.1f} ms"
    return [
        (what, one / other, OPENING),
        (
            f"a key while the rest loads, at worst {worst:.0f} of {WORST_MS} ms ({seen})",
            worst / WORST_MS,
            1,
        ),
        (f"a key after that, median {middle:.1f} of 4 ms", middle / 4, 1),
    ]


def _seconds(argv: list[str], env: dict[str, str], work: Path, *words: str) -> float:
    """Seconds from spawn until the words and a key that was typed are on the screen."""
    started = time.perf_counter()
    with Terminal(argv, cwd=work, env=env, columns=120, rows=40) as screen:
        screen.wait_for(*words)
        screen.forget()
        screen.type(_KEY)
        screen.wait_for(_KEY)
        return time.perf_counter() - started


def _keys(argv: list[str], env: dict[str, str], work: Path) -> tuple[list[float], list[float]]:
    """Seconds from key to echo, from the last words on until all is there, and of the next 100."""
    waits: list[float] = []
    loaded = 0
    with Terminal(argv, cwd=work, env=env, columns=120, rows=40) as screen:
        screen.wait_for(f"question {MESSAGES // 2 - 1}")
        while not loaded or len(waits) < loaded + 100:
            assert len(waits) < 5_000, f"it never loaded: …{screen.text[-2000:]}"
            number = len(waits)  # never the same key in the same place as before
            waits.append(screen.echo(_KEYS[(number + number // len(_KEYS)) % len(_KEYS)]))
            _rest(screen, 0.02)
            if len(waits) % len(_KEYS) == 0:
                screen.type("\x15")  # else the prompt grows
                _rest(screen, 0.2)
            if not loaded and f"{MESSAGES // 2:,} prompts" in screen.text:
                loaded = len(waits)
    return waits[:loaded], waits[loaded:]


def _rest(screen: Terminal, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        screen.read(0.005)


def long_session(folder: Path, work: Path) -> str:
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
