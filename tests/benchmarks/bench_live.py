"""The whole program in a pty with the real SDK: CPU from its start to its first answer, CPU and
bytes while one streams, CPU, wake-ups and memory idle.

The figures are CPU seconds and MB of the one process. Beside them stands a bare app of Textual that
does the same through the SDK: gets one answer in the first four seconds (the median of some runs),
shows 3,000 tokens at 100 a second in Textual's own Markdown (all of the process, its start
included), and then rests. The other rows are figures over their limits: the same tokens without the
start on a quiet machine, ten idle seconds, the wake-ups of an idle minute, and the memory before
anything was asked, and with the SDK loaded. The bytes are those sent while the answer streams, over
those of the parts of rows that change: their text, a move to each and the codes of its styles.
"""

from __future__ import annotations

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby, zip_longest
from pathlib import Path

from tests.benchmarks.pace import slowness
from tests.benchmarks.process_cost import cpu_s, rss_mb
from tests.benchmarks.streamed import streaming
from tests.support.shown import Cell
from tests.support.terminal import HOLDFAST, Terminal

TOKENS, PER_SECOND, PIECE = 3000, 100, 4
IDLE_S = 10.0
STARTS, START_S = 5, 4.0
STREAMED_S = 1.8
"""CPU seconds for all tokens, on a quiet machine."""
WAKE_UPS = 45
_DIALOGS = (
    ("the panel of them", "/mcp", ("MCP servers", "time ready", "git ready")),
    ("the sessions", "/sessions", ("now open here",)),
    ("the context", "/context", ("largest first",)),
)
"""A dialog, the command that opens it, and what it shows once it is there."""
_BARE = """
import sys
from textual.app import App
from textual.widgets import Markdown, Static, TextArea
from anthropic import AsyncAnthropic

class Bare(App[None]):
    def compose(self):
        yield Static("bare")
        yield Markdown()
        yield TextArea()

    async def on_mount(self):
        asked = [{"role": "user", "content": "hello"}]
        client, rests = AsyncAnthropic(), "rest" in sys.argv
        for _ in range(1 + rests):
            shown = Markdown.get_stream(self.query_one(Markdown))
            async with client.messages.stream(
                model="claude-sonnet-5-5", max_tokens=100, messages=asked
            ) as stream:
                async for event in stream:
                    if event.type == "text":
                        await shown.write(event.text)
            await shown.stop()
        if rests:
            self.query_one(Static).update("resting")
        else:
            self.exit()

Bare().run()
"""
_MOVE, _STYLE = 8, 42


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
    starts = [(_start(home, work, env), _bare_start(home, work, env)) for _ in range(STARTS + 1)]
    start, bare = map(statistics.median, zip(*starts[1:], strict=True))
    with Terminal(HOLDFAST, cwd=work, env=env, columns=120, rows=40) as screen:
        pid = screen.process.pid
        screen.wait_for("Ask for anything")
        screen.listen(3.0)
        at_rest = rss_mb(pid)
        _greet(screen)
        screen.listen(3.0)
        woken = _wake_ups(pid)
        idle = _idle(screen)
        woken = (_wake_ups(pid) - woken) * 60 / IDLE_S
        memory = rss_mb(pid)
        before = cpu_s(pid)
        screen.forget()
        screen.type("go\r")
        sent, changed = _stream(screen)
        whole = cpu_s(pid)
        streaming = whole - before
    bare_whole, bare_memory = _bare_stream(home, work, env)
    allowed = STREAMED_S * slowness()
    asking, dialogs = _with_servers(home, work, env)
    return [
        (
            f"spawn and an answer in {START_S:g} s, {start:.2f} CPU s ÷ bare libraries {bare:.2f}",
            start / bare,
            0.6,
        ),
        (
            f"{TOKENS:,} tokens at {PER_SECOND}/s, {streaming:.2f} of {allowed:.2f} CPU s",
            streaming / allowed,
            1,
        ),
        (
            f"spawn and {TOKENS:,} tokens, {whole:.2f} CPU s ÷ bare libraries {bare_whole:.2f}",
            whole / bare_whole,
            0.4,
        ),
        (f"idle, {idle:.2f} % CPU of 0.3", idle / 0.3, 1),
        (f"idle for a minute, {woken:.0f} wake-ups of {WAKE_UPS}", woken / WAKE_UPS, 1),
        (f"idle with MCP servers and a question open, {asking:.2f} % CPU of 0.3", asking / 0.3, 1),
        *(
            (f"idle with MCP servers and {what} open, {share:.2f} % CPU of 0.3", share / 0.3, 1)
            for what, share in dialogs.items()
        ),
        (f"{sent / TOKENS:,.0f} bytes a token, of {changed / TOKENS:,.0f}", sent / changed, 2),
        (f"memory while nothing was asked, {at_rest:.0f} MB of 70", at_rest / 70, 1),
        (f"memory with the SDK loaded, {memory:.0f} MB of 100", memory / 100, 1),
        (
            f"memory with the SDK loaded, {memory:.0f} MB ÷ bare libraries {bare_memory:.0f}",
            memory / bare_memory,
            0.65,
        ),
    ]


def _with_servers(home: Path, work: Path, env: dict[str, str]) -> tuple[float, dict[str, float]]:
    """What is idle with two MCP servers, in CPU per cent: a question, and each dialog."""
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    names = ("time", "git")
    tables = (
        f"[mcp.{name}]\ncommand = {json.dumps([sys.executable, '-m', f'mcp_server_{name}'])}\n"
        for name in names
    )
    (home / "config").mkdir(exist_ok=True)
    (home / "config" / "config.toml").write_text("".join(tables))
    dialogs: dict[str, float] = {}
    with Terminal((*HOLDFAST, "--practice"), cwd=work, env=env, columns=120, rows=40) as screen:
        _greet(screen)
        for what, command, words in _DIALOGS:
            screen.type(f"{command}\r")
            screen.wait_for(*words)
            screen.listen(3.0)
            dialogs[what] = _idle(screen)
            screen.type("\x1b")
            screen.listen(0.5)
        screen.forget()
        screen.type("create file x.txt with hello\r")
        screen.wait_for("1 Yes")
        screen.listen(3.0)
        return _idle(screen), dialogs


def _idle(screen: Terminal) -> float:
    """CPU per cent of a while in which nothing happens."""
    before = _threads_s(screen.process.pid)
    screen.listen(IDLE_S)
    return (_threads_s(screen.process.pid) - before) / IDLE_S * 100


def _greet(screen: Terminal) -> None:
    screen.wait_for("Ask for anything")
    screen.type("hello\r")
    screen.wait_for("1 prompt")


def _start(home: Path, work: Path, env: dict[str, str]) -> float:
    """CPU seconds of the first seconds of a run, with a short answer in them."""
    with streaming(home, tokens=1, piece=1, every_s=0) as url:
        until = time.monotonic() + START_S
        env = env | {"ANTHROPIC_BASE_URL": url}
        with Terminal(HOLDFAST, cwd=work, env=env, columns=120, rows=40) as screen:
            _greet(screen)
            screen.listen(until - time.monotonic())
            return cpu_s(screen.process.pid)


def _bare_start(home: Path, work: Path, env: dict[str, str]) -> float:
    """CPU seconds of a bare app that gets the same answer."""
    with streaming(home, tokens=1, piece=1, every_s=0) as url:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        argv, env = (sys.executable, "-c", _BARE), env | {"ANTHROPIC_BASE_URL": url}
        with Terminal(argv, cwd=work, env=env, columns=120, rows=40) as screen:
            assert screen.exit_code() == 0, screen.text[-2000:]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _bare_stream(home: Path, work: Path, env: dict[str, str]) -> tuple[float, float]:
    """CPU seconds and memory of a bare app that has shown the same answers."""
    with streaming(home, tokens=TOKENS, piece=PIECE, every_s=1 / PER_SECOND) as url:
        argv, env = (sys.executable, "-c", _BARE, "rest"), env | {"ANTHROPIC_BASE_URL": url}
        with Terminal(argv, cwd=work, env=env, columns=120, rows=40) as screen:
            screen.wait_for("resting")
            return cpu_s(screen.process.pid), rss_mb(screen.process.pid)


def _stream(screen: Terminal) -> tuple[int, int]:
    """Read until the turn is over: the bytes that came, and those of what changed."""
    sent = changed = 0
    rows = screen.shown.by_row
    while "2 prompts" not in screen.text:
        screen.forget()
        if screen.read(0.5):
            sent += len(screen.raw)
            before, rows = rows, screen.shown.by_row
            changed += sum(_changed(before.get(y, []), row) for y, row in rows.items())
    return sent, changed


def _changed(before: Sequence[Cell], after: Sequence[Cell]) -> int:
    """The bytes of the part of a row that changed, with a move to it and its styles."""
    pairs = enumerate(zip_longest(before, after))
    changed = [at for at, (old, new) in pairs if old != new]
    if not changed:
        return 0
    part = after[changed[0] : changed[-1] + 1]
    styles = len(list(groupby(part, key=lambda cell: cell[1])))
    return len("".join(char for char, _ in part).encode()) + _MOVE + styles * _STYLE


def _threads_s(pid: int) -> float:
    """CPU seconds of the threads that there are, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _wake_ups(pid: int) -> int:
    """How often its threads have waited for something so far."""
    threads = Path(f"/proc/{pid}/task").glob("*/status")
    found = (
        re.search(r"^voluntary_ctxt_switches:\s*(\d+)", one.read_text(), re.MULTILINE)
        for one in threads
    )
    return sum(int(one[1]) for one in found if one)
