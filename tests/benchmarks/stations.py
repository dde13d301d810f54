"""Where the processor time of a benchmark goes, by station: `python -m tests.benchmarks --profile`.

py-spy looks at the processes many times a second; each look is a line of calls, the outermost
first. A sample counts for the station of its innermost call that belongs to one, so what a library
does is charged to the part of the program that asked for it. Only the program's own processes
count; where a benchmark measures within its own process, that one does. Threads that wait are left
out.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tui.core.errors import HoldfastError

RATE = 250
"""Looks a second: more slow down what is measured."""

STATIONS: tuple[tuple[str, str], ...] = (
    ("tui/provider/anthropic/sse.py", "server-sent events"),
    ("tui/provider/", "provider stream"),
    ("anthropic/", "SDK"),
    ("httpx2/", "HTTP"),
    ("httpcore2/", "HTTP"),
    ("h11/", "HTTP"),
    ("tui/agent/", "agent"),
    ("tui/context/", "context"),
    ("tui/session/", "record"),
    ("tui/tokens/", "tokens"),
    ("tui/tools/mcp/", "MCP"),
    ("mcp/", "MCP"),
    ("tui/tools/", "tools"),
    ("tui/permissions/", "permissions"),
    ("tui/settings/", "settings"),
    ("tui/core/", "core"),
    ("tui/app/", "conversation"),
    ("tui/ui/toolkit/screen_diff.py", "screen difference"),
    ("tui/ui/toolkit/frame_pacing.py", "frame pacing"),
    ("tui/ui/toolkit/key_", "keys"),
    ("tui/ui/start/", "start"),
    ("tui/ui/widgets/markdown/", "markdown"),
    ("markdown_it/", "markdown"),
    ("tui/ui/widgets/line_view/", "line view"),
    ("tui/ui/widgets/conversation/", "conversation view"),
    ("tui/ui/fact_renderer.py", "fact renderer"),
    ("tui/ui/", "screens and widgets"),
    ("tui/", "other rooms"),
    ("textual/css/", "style sheets"),
    ("textual/_compositor.py", "compositor"),
    ("textual/drivers/", "terminal"),
    ("textual/", "Textual"),
    ("pygments/", "highlighting"),
    ("rich/", "Rich"),
    ("asyncio/", "event loop"),
    ("tests/", "the benchmark"),
)
"""Beginnings of a path, and the station of what is there; the first that fits counts."""

_IMPORTS, _REST = "imports", "the interpreter"
_PROGRAM, _BENCHMARK = re.compile(r" -m tui\b"), re.compile(r" -m tests\.benchmarks\b")
_WAITING = re.compile(
    r"(?:^|\.)(?:select|poll|wait|_worker|get|_wait_for_tstate_lock|accept) "
    r"\((?:selectors|threading|queue|socket|concurrent/futures/thread)\.py\b"
)
"""Innermost calls that wait. py-spy leaves out most of them, not those that began to wait just
then."""
_CALL = re.compile(r".+ \(.+:\d+\)")
_HEAVIEST = 3
_LEAST = 0.005
"""The share below which a station is not worth a line."""


@dataclass(slots=True)
class Station:
    """Samples of one station: how many there are, and how many of each function."""

    name: str
    count: int = 0
    functions: Counter[str] = field(default_factory=Counter[str])


class ProfileError(HoldfastError):
    """No profile could be taken; the message says why."""


def profile(name: str) -> list[str]:
    """Run one benchmark under py-spy, and give the table of its stations.

    Raises:
        ProfileError: py-spy is not installed, or may not look into other processes.
    """
    spy = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if spy is None:
        raise ProfileError("py-spy is not installed.", hint="Install it: pip install -e '.[dev]'")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "samples"
        # Processes that are stopped for each look lose so much time that they are others.
        looks = ["--nonblocking", "--subprocesses", "--rate", str(RATE), "--format", "raw"]
        benchmark = [sys.executable, "-m", "tests.benchmarks", name]
        command = [spy, "record", *looks, "--output", str(output), "--", *benchmark]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip() and not line.startswith("py-spy>"):
                    print(line, end="", flush=True)
        if not output.exists():
            raise ProfileError(
                "py-spy took no profile.",
                hint="It must be allowed to look into other processes (ptrace). On Linux, run it "
                "as root or set kernel.yama.ptrace_scope to 0; in a container, add SYS_PTRACE; "
                "on macOS, run it as root.",
            )
        return table(stations(output.read_text(encoding="utf-8").splitlines()))


def stations(raw: Iterable[str]) -> list[Station]:
    """Sum up samples as py-spy writes them, "outermost;…;innermost count", the heaviest first."""
    samples = list(_samples(raw))
    programs = [sample for sample in samples if _PROGRAM.search(sample.command)]
    own = programs or [sample for sample in samples if _BENCHMARK.search(sample.command)]
    found: dict[str, Station] = {}
    for sample in own:
        name, function = _station(sample.calls)
        station = found.setdefault(name, Station(name))
        station.count += sample.count
        station.functions[function] += sample.count
    return sorted(found.values(), key=lambda station: -station.count)


def table(found: Sequence[Station]) -> list[str]:
    """Lines of per cent, station, and its heaviest functions."""
    total = sum(station.count for station in found)
    if not total:
        return ["      no samples: nothing in it took time"]
    lines = [f"      {total:,} samples, {RATE} a second"]
    for station in (one for one in found if one.count >= _LEAST * total):
        heaviest = ", ".join(
            f"{function} {count / total:.1%}"
            for function, count in station.functions.most_common(_HEAVIEST)
        )
        lines.append(f"{station.count / total:6.1%}  {station.name:<21} {heaviest}")
    return lines


@dataclass(frozen=True, slots=True)
class _Sample:
    """One stack, as often as it was seen: the command of its process, and its calls."""

    command: str
    calls: list[str]
    count: int


def _samples(raw: Iterable[str]) -> Iterator[_Sample]:
    """The samples of threads that do not wait. The innermost process is the one that works."""
    for stack, count in _stacks(raw):
        command, calls = "", list[str]()
        for call in stack.split(";"):
            if call.startswith("process "):
                command, calls = call, []
            elif _CALL.fullmatch(call):  # else a piece of a command line that has semicolons
                calls.append(call)
        if calls and not _WAITING.search(calls[-1]):
            yield _Sample(command, calls, count)


def _stacks(raw: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Stacks and how often each was seen. A command line in one may go over several lines."""
    begun = ""
    for line in raw:
        begun += line
        stack, _, count = begun.rpartition(" ")
        if count.isdecimal():
            yield stack, int(count)
            begun = ""


def _station(calls: Sequence[str]) -> tuple[str, str]:
    """The station of a stack, and the function in it."""
    for call in reversed(calls):
        function, _, place = call.rpartition(" (")
        path = place.rpartition(":")[0]
        if function == "<module>" or path.startswith("<frozen importlib"):
            return _IMPORTS, _loaded(calls)
        for start, name in STATIONS:
            if path.startswith(start):
                return name, f"{function} ({path.rpartition('/')[2]})"
    return _REST, calls[-1].rpartition(":")[0] + ")"


def _loaded(calls: Sequence[str]) -> str:
    """Who asked for an import: the innermost call before it that is no module's own code."""
    asked = ""
    for call in calls:
        function, _, place = call.rpartition(" (")
        path = place.rpartition(":")[0]
        if function != "<module>" and path.startswith(("tui/", "textual/", "anthropic/")):
            asked = f"for {function} ({path.rpartition('/')[2]})"
    return asked or "for the start"
