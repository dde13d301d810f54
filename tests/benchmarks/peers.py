"""This program beside others, on the same work: `python -m tests.benchmarks.peers [NAME …]`.

Not a part of the suite, since it fetches two programs: Claude Code and Codex, pinned, are installed
with npm in a temporary folder. Each is started in turn, as a whole process and in a pty of its own,
with default settings and a home of its own, against a server on the loopback which plays the same
answers in the form that each one speaks. A figure is the median of `--runs`. `before=DIR` is this
program as it is in another checkout, with its environment in DIR/.venv.

Every process that a program starts counts, a daemon of an earlier run, too, which Codex leaves and
uses again; what a program has left is ended before the next one's turn. Linux only.

"MB" is the sum of what each process has resident, where a page that two share counts twice: 5 MB of
each Python are the interpreter itself. "PSS MB" shares such a page out.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.streamed import essay
from tests.support.terminal import Terminal

PACKAGES: Final = ("@anthropic-ai/claude-code@2.1.332", "@openai/codex@0.171.0")
ENDED: Final = "◙"
"""The end of each answer: one character, since a screen may be drawn in any pieces."""
PIECE: Final = 4
"""Characters of a token."""
MANY, PER_SECOND, SECONDS = 20_000, 100, 30
PRINTING: Final = "seq 1000000 3862499"
"""22.9 MB, in a command that only reads."""
KEYS: Final = "ΩΨΦΣΠΞΛΘΔΓЖЦЧШЩЭЮЯБД"
PATIENCE_S: Final = 120
RESTS_S: Final = 0.08
"""Processor seconds a second, above which a program is still busy with its start."""


def answer_to(prompt: str, result: str) -> dict[str, Any]:
    """The turn that answers a prompt, or the result of its command: its text and the pause after
    each token, or a command."""
    if result:
        there = "much output" not in prompt or "1000001" in result or "3862498" in result
        return {"text": f"It printed. {ENDED}" if there else f"No output: {result[-500:]}"}
    if "short command" in prompt:
        return {"command": "seq 1 3"}
    if "much output" in prompt:
        return {"command": PRINTING}
    if "all at once" in prompt:
        return {"text": f"{essay(MANY * PIECE)}\n\n{ENDED}"}
    if "steadily" in prompt:
        text = essay(SECONDS * PER_SECOND * PIECE)
        return {"text": f"{text}\n\n{ENDED}", "every_s": 1 / PER_SECOND}
    return {"text": f"Hello. {ENDED}"}


# The server, in a process of its own.


class Handler(BaseHTTPRequestHandler):
    """The Messages API and the Responses API, as far as a turn needs them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - its name

    def handle(self) -> None:
        with suppress(ConnectionError):  # a program that is ended reads no more
            super().handle()

    def do_GET(self) -> None:
        self._answer({"data": [], "has_more": False, "models": []})

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(size) or b"{}")
        path = self.path.partition("?")[0]
        if not path.endswith(("/messages", "/responses")):
            self._answer({"input_tokens": 100})
            return
        events = _responses(body) if path.endswith("/responses") else _messages(body)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        ready, due = bytearray(), time.monotonic()
        for event, pause in events:
            ready += event if isinstance(event, bytes) else _encoded(event)
            if pause:
                self._send(ready)
                due += pause  # by the clock: a late one does not delay the rest
                time.sleep(max(0.0, due - time.monotonic()))
        self._send(ready)
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, ready: bytearray) -> None:
        """Send what is ready in one piece, and empty it."""
        self.wfile.write(ready)
        ready.clear()

    def _answer(self, value: Mapping[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


Event = dict[str, Any]
Events = Generator[tuple[Event | bytes, float]]
"""Each with the pause behind it; bytes are events that were encoded before."""


def _encoded(event: Event) -> bytes:
    """A chunk of the transfer: servers send each event as one."""
    line = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(line), line)


def _last_words(items: Sequence[Mapping[str, Any]]) -> str:
    """The last prompt, without what programs add to one."""
    for item in reversed(items):
        content = item.get("content")
        blocks = [{"text": content}] if isinstance(content, str) else content or []
        for block in reversed(blocks):
            text = str(block.get("text") or "")
            if item.get("role") == "user" and text.startswith("Please "):
                return text
    return ""


def _deltas(turn: Mapping[str, Any], of: Callable[[str], Event]) -> Events:
    """The text of a turn in pieces, one for each token; what has no pauses is encoded once."""
    text, pause = str(turn["text"]), float(turn.get("every_s", 0))
    if pause:
        for piece in _pieces(text):
            yield of(piece), pause
    else:
        yield _at_once(text, of), 0


@cache
def _at_once(text: str, of: Callable[[str], Event]) -> bytes:
    return b"".join(_encoded(of(piece)) for piece in _pieces(text))


def _pieces(text: str) -> Generator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _text_delta(text: str) -> Event:
    """In the Messages API."""
    delta = {"type": "text_delta", "text": text}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


def _output_delta(text: str) -> Event:
    """In the Responses API."""
    delta = {"type": "response.output_text.delta", "item_id": "msg_1", "delta": text}
    return {**delta, "output_index": 0, "content_index": 0}


def _messages(body: Mapping[str, Any]) -> Events:
    result = json.dumps(body["messages"][-1])
    called = '"type": "tool_result"' in result
    turn = answer_to(_last_words(body["messages"]), result if called else "")
    usage = {"input_tokens": 100, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": f"msg_{time.time_ns()}", "type": "message", "role": "assistant", "content": [],
        "model": body["model"], "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield {"type": "message_start", "message": message}, 0
    if "command" in turn:
        named = {tool["name"] for tool in body.get("tools", ())}
        name = next(one for one in ("Bash", "run_command", "bash") if one in named)
        block: dict[str, Any] = {
            "type": "tool_use",
            "id": f"toolu_{time.time_ns()}",
            "name": name,
            "input": {},
        }
        given = json.dumps({"command": turn["command"], "description": "count"})
        if name != "Bash":
            given = json.dumps({"command": turn["command"]})
        delta = {"type": "input_json_delta", "partial_json": given}
        yield {"type": "content_block_start", "index": 0, "content_block": block}, 0
        yield {"type": "content_block_delta", "index": 0, "delta": delta}, 0
    else:
        block = {"type": "text", "text": ""}
        yield {"type": "content_block_start", "index": 0, "content_block": block}, 0
        yield from _deltas(turn, _text_delta)
    yield {"type": "content_block_stop", "index": 0}, 0
    reason = "tool_use" if "command" in turn else "end_turn"
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 50}}, 0
    yield {"type": "message_stop"}, 0


def _responses(body: Mapping[str, Any]) -> Events:
    items = body["input"]
    called = str(items[-1].get("type", "")).endswith("_call_output")
    turn = answer_to(_last_words(items), json.dumps(items[-1]) if called else "")
    response = {"id": f"resp_{time.time_ns()}", "object": "response", "status": "in_progress"}
    yield {"type": "response.created", "response": response}, 0
    item: dict[str, Any]
    if "command" in turn:
        item = {
            "type": "function_call", "id": "fc_1", "call_id": f"call_{time.time_ns()}",
            "name": "exec_command", "arguments": json.dumps({"cmd": turn["command"]}),
        }  # fmt: skip
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}, 0
    else:
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}, 0
        yield from _deltas(turn, _output_delta)
        item = {**item, "content": [{"type": "output_text", "text": turn["text"]}]}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}, 0
    usage = {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}
    yield {"type": "response.completed", "response": {**response, "usage": usage}}, 0


@contextmanager
def serving() -> Generator[tuple[str, int]]:
    """The address of a server in a process of its own, and its id."""
    argv = [sys.executable, "-m", __spec__.name if __spec__ else "tests.benchmarks.peers", "serve"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def serve() -> None:
    """Play the answers until the process is ended; its address is the first line printed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    for of in (_text_delta, _output_delta):  # so that a program is measured, not this server
        _at_once(str(answer_to("all at once", "")["text"]), of)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


# The programs.


@dataclass(frozen=True, slots=True)
class Program:
    """How a program is started, on its screen (`ready` is there when it takes a prompt) or for one
    prompt without a screen, and the process that answers it."""

    name: str
    screen: Sequence[str]
    once: Sequence[str]
    environment: Mapping[str, str]
    ready: str
    server: int


def _holdfast(name: str, program: str, home: Path, url: str, server: int) -> Program:
    environment = {"HOLDFAST_HOME": str(home), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"}
    return Program(name, [program], [program, "-p"], environment, "Ask for anything", server)


def _claude(home: Path, url: str, server: int, modules: Path) -> Program:
    folder = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True, "theme": "dark", "autoUpdates": False,
        "lastOnboardingVersion": PACKAGES[0].rpartition("@")[2],
        "customApiKeyResponses": {"approved": ["k" * 20], "rejected": []},
        "projects": {str(home / "work"): folder},
    }  # fmt: skip
    (home / ".claude.json").write_text(json.dumps(state))
    environment = {
        "HOME": str(home), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k" * 20,
        "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }  # fmt: skip
    binary = str(modules / ".bin/claude")
    allowed = "--allowedTools=Bash(seq:*)"
    once = [binary, allowed, "-p"]
    return Program("claude", [binary, allowed], once, environment, "for agents", server)


def _codex(home: Path, url: str, server: int, modules: Path) -> Program:
    (home / "config.toml").write_text(
        f'model = "gpt-5"\nmodel_provider = "here"\n'
        f'[model_providers.here]\nname = "here"\nbase_url = "{url}/v1"\nenv_key = "K"\n'
        f'wire_api = "responses"\n[projects."{home / "work"}"]\ntrust_level = "trusted"\n'
    )
    environment = {"CODEX_HOME": str(home), "HOME": str(home), "K": "k"}
    binary = str(modules / ".bin/codex")
    once = [binary, "exec", "--skip-git-repo-check"]
    return Program("codex", [binary], once, environment, "Ask Codex to do anything", server)


@contextmanager
def installed(folder: str) -> Generator[Path]:
    """The `node_modules` with the other programs: of a folder given, or of a new one."""
    if folder:
        yield Path(folder) / "node_modules"
        return
    with tempfile.TemporaryDirectory() as new:
        modules = Path(new) / "node_modules"
        subprocess.run(["npm", "install", "--silent", *PACKAGES], cwd=new, check=True)
        # npm no longer runs what a package asks for; this puts the program in its place
        subprocess.run(["node", modules / "@anthropic-ai/claude-code/install.cjs"], check=True)
        yield modules


# What is measured.


_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


_RISEN_MB, _KCMP_VM = 1, 1


_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


@dataclass(slots=True)
class Family:
    """The processor time and the memory of all that this process has started, but for the server:
    processes of processes, and those whose parents have ended."""

    server: int
    peak_mb: float = 0
    pss_mb: float = 0
    """At the peak, or nearly: it is only looked at where that rises, since it takes a while."""
    _before: float = field(init=False)

    def __post_init__(self) -> None:
        self._before = 0
        self._before, self.peak_mb, self.pss_mb = self.look(), 0, 0

    def look(self) -> float:
        """Return the processor seconds since this was made, of those that ended, too."""
        own = os.times()
        ticks = pages = 0
        whole = list[int]()
        for pid in descendants(self.server):
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
                if not _is_beginning(pid, int(fields[1])):
                    whole.append(pid)
                    pages += int(fields[21])
        if (megabytes := pages * _PAGE / 1e6) > self.peak_mb + _RISEN_MB:
            self.pss_mb = max(self.pss_mb, sum(map(_pss_mb, whole)))
        self.peak_mb = max(self.peak_mb, megabytes)
        return ticks / _TICKS + own.children_user + own.children_system - self._before

    def end(self) -> None:
        """Kill what a program has left, and take leave of it."""
        while left := descendants(self.server):
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in left:
                with suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def _is_beginning(pid: int, parent: int) -> bool:
    """True for a process that is in its parent's memory until it has started another program."""
    number = {"x86_64": 312, "aarch64": 272}.get(os.uname().machine)  # of kcmp
    return number is not None and not ctypes.CDLL(None).syscall(number, pid, parent, _KCMP_VM, 0, 0)


def _pss_mb(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0  # it has ended


def descendants(server: int) -> list[int]:
    """The processes below this one, without the server."""
    found, left = list[int](), [os.getpid()]
    while left:
        with suppress(OSError):
            for thread in Path(f"/proc/{left.pop()}/task").iterdir():
                started = map(int, (thread / "children").read_text().split())
                left += (new := [pid for pid in started if pid != server])
                found += new
    return found


Figures = dict[str, float]


def once(program: Program, prompt: str, work: Path) -> Figures:
    """Seconds and processor seconds of the whole process that answers one prompt."""
    family, began = Family(program.server), time.perf_counter()
    done = subprocess.run(
        [*program.once, prompt], cwd=work, env=_environment(program), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    took = time.perf_counter() - began
    assert ENDED in done.stdout, done.stdout[-500:] + done.stderr[-500:]
    return {"s": took, "cpu s": family.look()}


def _environment(program: Program) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ}
    return kept | dict(program.environment)


@contextmanager
def started(program: Program, work: Path) -> Generator[Terminal]:
    """The program in a pty, which takes prompts."""
    with Terminal(
        program.screen, cwd=work, env=_environment(program), columns=120, rows=40
    ) as screen:
        _until(screen, lambda: program.ready in screen.text, program.ready)
        family, before = Family(program.server), -1.0
        screen.listen(4)  # some show their prompt before they take one
        while family.look() - before > RESTS_S:
            before = family.look()
            screen.listen(1)
        yield screen


def _until(
    screen: Terminal, over: Callable[[], bool], what: str, family: Family | None = None
) -> None:
    until = time.monotonic() + PATIENCE_S
    while not over():
        assert time.monotonic() < until, f"no {what} in {PATIENCE_S} s: …{screen.text[-200:]}"
        assert screen.process.poll() is None, f"it ended: …{screen.text[-200:]}"
        screen.read(0.02)
        if family is not None:
            family.look()


def _type(screen: Terminal, prompt: str) -> None:
    """Type a prompt that Enter will send."""
    for letter in prompt:  # one by one: many at once are taken for a paste
        screen.type(letter)
        screen.listen(0.02)
    screen.listen(0.5)
    screen.forget()


def first_seconds(program: Program, work: Path) -> Figures:
    """Processor seconds of the first four seconds of a screen where nothing is done."""
    family = Family(program.server)
    with Terminal(
        program.screen, cwd=work, env=_environment(program), columns=120, rows=40
    ) as screen:
        screen.listen(4)
        return {"cpu s": family.look()}


def answered(program: Program, work: Path, prompt: str) -> Figures:
    """Seconds, processor seconds and peak megabytes from Enter to the end of the answer."""
    with started(program, work) as screen:
        _type(screen, prompt)
        family, at = Family(program.server), time.perf_counter()
        screen.type("\r")
        _until(screen, lambda: ENDED.encode() in screen.raw, "end", family)
        took = time.perf_counter() - at
        screen.listen(0.5)
        figures = {"s": took, "cpu s": family.look(), "peak MB": family.peak_mb}
        return {**figures, "PSS MB": family.pss_mb}


def keys(program: Program, work: Path, prompt: str = "") -> Figures:
    """Milliseconds from a key to its echo, at rest or while an answer comes; memory at rest."""
    with started(program, work) as screen:
        resident = Family(program.server)
        resident.look()
        if prompt:
            _type(screen, prompt)
            screen.type("\r")
            screen.listen(1)
        waits = list[float]()
        for n in range(100):
            waits.append(1e3 * screen.echo(KEYS[n % len(KEYS)]))
            screen.listen(0.1)
            if n % len(KEYS) == len(KEYS) - 1:
                screen.type("\x15")
                screen.listen(0.3)
    figures = {"median ms": statistics.median(waits), "p95": statistics.quantiles(waits, n=20)[-1]}
    memory = {"idle MB": resident.peak_mb, "PSS MB": resident.pss_mb}
    return {**figures, "max": max(waits), **memory}


def first_key(program: Program, work: Path) -> Figures:
    """Seconds from the start until a key, pressed again and again, is on the screen."""
    begun = time.perf_counter()
    with Terminal(
        program.screen, cwd=work, env=_environment(program), columns=120, rows=40
    ) as screen:
        mode = termios.tcgetattr(screen.slave)
        mode[3] &= ~termios.ECHO  # what the terminal shows by itself doesn't count
        termios.tcsetattr(screen.slave, termios.TCSANOW, mode)
        while KEYS[0] not in screen.text:
            screen.type(KEYS[0])
            screen.listen(0.005)
            assert time.perf_counter() - begun < PATIENCE_S
        return {"s": time.perf_counter() - begun}


ROWS: Final[Mapping[str, Callable[[Program, Path], Figures]]] = {
    "-p hello": lambda program, work: once(program, "Please say hello", work),
    "-p with a command": lambda program, work: once(program, "Please run a short command", work),
    "the first four seconds": first_seconds,
    "the first key": first_key,
    "a key at rest": keys,
    "a key while streaming": lambda program, work: keys(program, work, "Please write steadily"),
    "30 s at 100 tokens/s": lambda program, work: answered(program, work, "Please write steadily"),
    "20,000 tokens at once": lambda program, work: answered(
        program, work, "Please write all at once"
    ),
    "22.9 MB of a command": lambda program, work: answered(
        program, work, "Please print much output"
    ),
}


KNOWN: Final = ("holdfast", "claude", "codex")
_BEFORE: Final = "before="


def _programs(
    names: Sequence[str], base: Path, url: str, server: int, modules: Path
) -> list[Program]:
    made = list[Program]()
    for asked in names:
        name, _, checkout = asked.partition("=")
        home = base / name
        (home / "work").mkdir(parents=True)
        (home / "work" / "README.md").write_text("# A project\n")
        match name:
            case "holdfast" | "before":
                python = Path(checkout, ".venv/bin/python") if checkout else Path(sys.executable)
                program = str(python.absolute().with_name("holdfast"))
                made.append(_holdfast(name, program, home, url, server))
            case "claude":
                made.append(_claude(home, url, server, modules))
            case _:
                made.append(_codex(home, url, server, modules))
    return made


def _shown(row: str, program: Program, work: Path, runs: int) -> str:
    """The medians of a row, or why there are none."""
    try:
        taken = [ROWS[row](program, work) for _ in range(runs)]
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return f"– {' '.join(str(error).split())[:300]}"
    finally:
        Family(program.server).end()
    return " · ".join(
        f"{key} {statistics.median(run[key] for run in taken):.2f}" for key in taken[0]
    )


def main() -> int:
    """Print a table of each row and program. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"{', '.join(KNOWN)}; before=DIR is holdfast of another checkout, DIR/.venv",
    )
    parser.add_argument("--row", action="append", choices=list(ROWS), help="this row (repeatable)")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--modules", default="", help="a folder where npm has installed them")
    asked = parser.parse_args()
    names = list(dict.fromkeys(asked.names or KNOWN))
    others = [name for name in names if not name.startswith((*KNOWN[:1], _BEFORE))]
    if unknown := set(others) - set(KNOWN):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    adopt_orphans()
    with (
        tempfile.TemporaryDirectory(dir=Path.home(), ignore_cleanup_errors=True) as folder,
        installed("" if others and not asked.modules else asked.modules or folder) as modules,
        serving() as (url, server),
    ):
        programs = _programs(names, Path(folder), url, server, modules)
        for row in asked.row or ROWS:
            for program in programs:
                work = Path(folder) / program.name / "work"
                shown = _shown(row, program, work, asked.runs)
                print(f"{row:24} {program.name:9} {shown}", flush=True)
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        raise SystemExit(main())
