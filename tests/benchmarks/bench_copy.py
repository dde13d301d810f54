"""A full copy of 1 GB in the output pane: the first page, the keys, the memory it takes."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LARGE, SMALL = 1 << 30, 1 << 20
_KEYS = ("page(1)", "rows(1)", "edge(1)", "page(-1)", "rows(-1)", "edge(-1)") * 12


def run() -> Iterator[tuple[str, float, float]]:
    with tempfile.TemporaryDirectory() as folder:
        large, small = (_measured(folder, size) for size in (LARGE, SMALL))
    yield "1 GB copy: first page (of 100 ms)", large["first_ms"] / 100, 1
    yield "1 GB copy: memory while it is counted and searched (of 64 MB)", large["grown_mb"] / 64, 1
    yield "1 GB copy: a key, median (of one in 1 MB)", large["key_ms"] / small["key_ms"], 3
    yield "1 GB copy: a key while lines are counted, slowest (of 100 ms)", large["busy_ms"] / 100, 1
    yield "1 GB copy: lines counted (of 10 s)", large["counted_s"] / 10, 1
    yield "1 GB copy: last line found by search (of 10 s)", large["found_s"] / 10, 1


def _measured(folder: str, size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks.bench_copy", folder, str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout)


async def _look(path: Path) -> dict[str, float]:
    from tests.ui.widgets.stage import Stage  # noqa: PLC0415
    from tui.ui.widgets.file_viewer.line_file import LineFile, MatchCounts  # noqa: PLC0415
    from tui.ui.widgets.file_viewer.pane import FilePane  # noqa: PLC0415

    pane = FilePane()
    app = Stage(pane)
    async with app.run_test(size=(120, 40)) as pilot:
        view = app.widget = pane.view
        view.focus()
        await pilot.pause()
        before = _rss()

        def frame() -> None:
            view.render_lines(view.size.region)

        async def press(action: str) -> float:
            name, _, step = action.partition("(")
            started = time.perf_counter()
            getattr(view, f"action_{name}")(int(step.rstrip(")")))
            frame()
            spent = time.perf_counter() - started
            await asyncio.sleep(0)
            return spent * 1000

        started = time.perf_counter()
        pane.show(LineFile(path))
        frame()
        first = time.perf_counter() - started
        assert "line of output 0 " in app.rows()[0]
        busy = [0.0]
        while view.file.lines.unfinished:
            busy += [await press(key) for key in ("edge(1)", "page(-1)", "edge(-1)", "page(1)")]
            await asyncio.sleep(0.005)
        counted = time.perf_counter() - started
        keys = [await press(key) for key in _KEYS]
        hits = MatchCounts(view.file, f"line of output {view.file.count - 1} ".encode())
        started = time.perf_counter()
        assert await asyncio.to_thread(hits.after, 0) is not None
        found = time.perf_counter() - started
        grown = _rss() - before
    return {
        "first_ms": first * 1000,
        "busy_ms": max(busy),
        "counted_s": counted,
        "key_ms": statistics.median(keys),
        "found_s": found,
        "grown_mb": grown / (1 << 20),
    }


def _rss() -> int:
    """Bytes that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def _write(path: Path, size: int) -> None:
    number = written = 0
    with path.open("w") as file:
        while written < size:
            lines = range(number, number + 20_000)
            text = "".join(f"line of output {n} that says nothing at all\n" for n in lines)
            number, written = number + 20_000, written + file.write(text)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        copy = Path(sys.argv[1], "copy.txt")
        _write(copy, int(sys.argv[2]))
        print(json.dumps(asyncio.run(_look(copy))))
        copy.unlink()
    else:
        for what, measured, allowed in run():
            print(f"{what}: {measured:.2f} (allowed {allowed:.2f})")
