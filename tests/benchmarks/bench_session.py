"""What it costs to read sessions, to list ten thousand of them, and to find words in them."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tui.core.paths import Folders, folders
from tui.session import catalog, index, search
from tui.session.reader import read, read_ends
from tui.session.records import Header, Record

SESSIONS = 10_000
LONG = 20_000_000
ROUNDS = 5
TIME = "2026-11-21T09:00:00.000Z"
WORDS = "the quick brown fox jumps over the lazy dog and runs to the river "


def run() -> list[tuple[str, float, float]]:
    """(name, ratio measured, ratio allowed) of each measurement."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        home = folders({"HOLDFAST_HOME": folder})
        long = Path(folder) / "long.jsonl"
        _write(long, "feedfeedfeed", LONG)
        lines = long.read_bytes().splitlines()
        whole, loads = _best_of_each(
            lambda: read(long), lambda: [json.loads(line) for line in lines]
        )
        ends = _best(lambda: read_ends(long))
        _many(home)
        build = _once(lambda: index.list_sessions(home))
        bare = _best(lambda: catalog.scan(home))
        listed = _best(lambda: index.list_sessions(home))
        texts = _once(lambda: _search(home))
        found = _best(lambda: _search(home))
    print(f"      read {LONG / 1e6 / whole:.0f} MB/s; index of {SESSIONS:,}: {build:.1f} s, "
          f"their texts {texts:.1f} s, list {listed * 1000:.0f} ms")  # fmt: skip
    return [
        ("read a 20 MB session / json.loads of its lines", whole / loads, 2.5),
        ("the ends of a 20 MB session / all of it", ends / whole, 0.1),
        (f"list of {SESSIONS:,} sessions / a stat of each", listed / bare, 4.0),
        (f"search in {SESSIONS:,} sessions / a stat of each", found / bare, 3.0),
    ]


def _search(home: Folders) -> search.SearchResult:
    return search.search(
        home.cache, search.ours(catalog.scan(home)), search.Query.of("rare-word-77")
    )


def _write(path: Path, id_: str, size: int, word: str = "") -> None:
    lines = [Header(id_, TIME, "/w", "holdfast 1").to_line()]
    written, number, parent = 0, 0, None
    while written < size:
        kind = "assistant" if number % 2 else "user"
        said = f"{word} {WORDS * (1 + number % 12)}"
        data = {"content": [{"type": "text", "text": said}]}
        record = Record(kind, f"{number:020x}", parent, TIME, data)
        lines.append(record.to_line())
        written, number, parent = written + len(lines[-1]), number + 1, record.id
    path.write_bytes(b"".join(lines))


def _many(home: Folders) -> None:
    for number in range(SESSIONS):
        folder = home.sessions / f"w-{number % 50}"
        folder.mkdir(parents=True, exist_ok=True)
        id_ = f"{number:012x}"
        _write(folder / f"20261121T090000Z-{id_}.jsonl", id_, 2000, f"rare-word-{number}")


def _once(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _best_of_each(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """In turn: other load on the machine then slows both."""
    rounds = [(_once(one), _once(other)) for _ in range(ROUNDS)]
    return min(a for a, _ in rounds), min(b for _, b in rounds)


def _best(work: Callable[[], object]) -> float:
    return min(_once(work) for _ in range(ROUNDS))


if __name__ == "__main__":
    for name, measured, allowed in run():
        print(f"{name}: {measured:.2f} (allowed {allowed:.2f})")
