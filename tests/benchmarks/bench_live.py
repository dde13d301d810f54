"""The whole program in a pty with the real SDK: CPU while an answer streams, CPU and memory idle.

The figures are CPU seconds and MB of the one process, so each row is a figure over its limit:
3,000 tokens at 100 a second may cost 4 CPU seconds, ten idle seconds 0.5 %, and with the SDK
loaded the program holds at most 100 MB.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from tests.benchmarks.streamed import streaming
from tests.support.terminal import HOLDFAST, Terminal

TOKENS, PER_SECOND, PIECE = 3000, 100, 4
IDLE_S = 10.0
_TICK = os.sysconf("SC_CLK_TCK")


def run() -> list[tuple[str, float, float]]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with streaming(home, tokens=TOKENS, piece=PIECE, every_s=1 / PER_SECOND) as url:
            return _measure(url, home)


def _measure(url: str, home: Path) -> list[tuple[str, float, float]]:
    work = home / "work"
    work.mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
    env |= {"HOLDFAST_HOME": str(home), "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
    with Terminal(HOLDFAST, cwd=work, env=env, columns=120, rows=40) as screen:
        screen.wait_for("Ask for anything")
        screen.type("hello\r")
        screen.wait_for("1 turn")
        pid = screen.process.pid
        _drain(screen, 3.0)
        before = _cpu(pid)
        _drain(screen, IDLE_S)
        idle = (_cpu(pid) - before) / IDLE_S * 100
        memory = _rss_mb(pid)
        before = _cpu(pid)
        screen.forget()
        screen.type("go\r")
        screen.wait_for("2 turns")
        streaming = _cpu(pid) - before
    return [
        (f"{TOKENS:,} tokens at {PER_SECOND}/s, {streaming:.2f} CPU s of 4", streaming / 4, 1),
        (f"idle, {idle:.2f} % CPU of 0.5", idle / 0.5, 1),
        (f"memory with the SDK loaded, {memory:.0f} MB of 100", memory / 100, 1),
    ]


def _drain(screen: Terminal, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        screen.read(left)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _rss_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
