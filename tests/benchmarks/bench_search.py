"""What it costs to search the texts of sessions: the index's size, a search, and what is new.

`python -m tests.benchmarks.bench_search --full` takes 1,000 sessions of 2 GB, in the folder --in.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from tui.core.paths import Folders, folders
from tui.session import catalog, search
from tui.session.passages import Query
from tui.session.records import Header, Record
from tui.session.text_index import DATABASE

SESSIONS, SIZE = 200, 100_000
FULL_SESSIONS, FULL_SIZE = 1_000, 2_000_000
ROUNDS = 5
TIME = "2026-11-21T09:00:00.000Z"
RARE, PART = "kumquat-77", "umquat-7"
_VOCABULARY = 20_000


def run() -> list[tuple[str, float, float]]:
    """(name, ratio measured, ratio allowed) of each measurement."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        return _measured(Path(folder), SESSIONS, SIZE)


def _measured(folder: Path, sessions: int, size: int) -> list[tuple[str, float, float]]:
    home = folders({"HOLDFAST_HOME": str(folder)})
    _fill(home, sessions, size)
    total = sum(size for _, _, size in catalog.scan(home))
    build = _once(lambda: _found(home, RARE))
    index = sum(
        path.stat().st_size for path in home.cache.iterdir() if path.name.startswith(DATABASE.name)
    )
    rare, part = _best(lambda: _found(home, RARE)), _best(lambda: _found(home, PART))
    common, short = _best(lambda: _found(home, "the")), _best(lambda: _found(home, "q7"))
    elsewhere = folders({"HOLDFAST_HOME": str(folder)})
    elsewhere = Folders(elsewhere.data, elsewhere.config, folder / "no folder", elsewhere.log)
    (folder / "no folder").touch()
    read = _best(lambda: _found(elsewhere, "nowhere-to-be-found"))
    path = Path(catalog.scan(home)[-1][1])
    with path.open("ab") as file:
        file.write(_record(10**9, None, "one more " + RARE).to_line())
    new = _once(lambda: _found(home, RARE))
    print(f"      {total / 1e6:,.0f} MB in {sessions:,}: first {build:.1f} s, a rare word "
          f"{rare * 1000:.0f} ms, part of one {part * 1000:.0f}, a common one {common * 1000:.0f}, "
          f"two characters {short * 1000:.0f}, without an index {read * 1000:,.0f}")  # fmt: skip
    return [
        (f"index of the texts of {sessions:,} sessions / their size", index / total, 0.5),
        ("a rare word by the index / by reading the files", rare / read, 0.5),
        ("search after one more record / the first search", new / build, 0.05),
    ]


def _found(home: Folders, text: str) -> list[search.Hit]:
    sources = search.ours(catalog.scan(home))
    return search.search(home.cache, sources, Query.of(text)).hits


def _fill(home: Folders, sessions: int, size: int) -> None:
    """Write sessions of prose, paths, numbers and code, of a vocabulary in which a few words are
    frequent and most are rare."""
    random_ = random.Random(1)
    texts = _texts(random_)
    for number in range(sessions):
        folder = home.sessions / f"w-{number % 40}"
        folder.mkdir(parents=True, exist_ok=True)
        id_ = f"{number:012x}"
        lines = [Header(id_, TIME, "/w", "holdfast 1").to_line()]
        written, parent = 0, None
        while written < size:
            said = f"kumquat-{number} {next(texts)}" if not parent else next(texts)
            record = _record(len(lines), parent, said)
            lines.append(record.to_line())
            written, parent = written + len(lines[-1]), record.id
        (folder / f"20261121T090000Z-{id_}.jsonl").write_bytes(b"".join(lines))


def _record(number: int, parent: str | None, said: str) -> Record:
    kind = ("user", "assistant", "tool_result")[number % 3]
    data = {"content": [{"type": "text", "text": said}], "usage": {"input_tokens": number}}
    return Record(kind, f"{number:020x}", parent, TIME, data)


def _texts(random_: random.Random) -> Iterator[str]:
    syllables = [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "on", "ur", "est")]
    words = ["the", "and", "self", "return", "import", "error", "file"]
    while len(words) < _VOCABULARY:
        words.append("".join(random_.choices(syllables, k=random_.randint(1, 4))))
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))
    while True:
        said = random_.choices(words, cum_weights=weights, k=random_.choice((20, 200, 1500)))
        for _ in range(len(said) // 15):
            at = random_.randrange(len(said))
            said[at] = random_.choice(
                (f"src/{said[at]}.py:{at}", f"{random_.getrandbits(48):x}", f"{said[at]}(x)\n")
            )
        yield " ".join(said)


def _once(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _best(work: Callable[[], object]) -> float:
    return min(_once(work) for _ in range(ROUNDS))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_search")
    parser.add_argument("--full", action="store_true", help="1,000 sessions of 2 GB in all")
    parser.add_argument("--in", dest="place", default=os.curdir, help="where the sessions go")
    asked = parser.parse_args()
    sessions, size = (FULL_SESSIONS, FULL_SIZE) if asked.full else (SESSIONS, SIZE)
    with tempfile.TemporaryDirectory(dir=asked.place) as folder:
        for name, measured, allowed in _measured(Path(folder), sessions, size):
            print(f"{name}: {measured:.3f} (allowed {allowed:.2f})")


if __name__ == "__main__":
    main()
