"""What it costs to tell where tokens and money went, over many sessions and in a long one.

`python -m tests.benchmarks.bench_usage --full` takes 1,000 sessions of 200 KB, in the folder --in.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.benchmarks.process_cost import own_and_children_s
from tui.context.usage.attribution import attribute
from tui.context.usage.index import bills_in, rows_in
from tui.core.clock import timestamp
from tui.core.paths import Folders, folders
from tui.session import catalog
from tui.session.chain import all_linked
from tui.session.reader import read
from tui.session.records import Header, Record

SESSIONS, FULL_SESSIONS, SIZE = 100, 1_000, 200_000
LONG = 20_000
START = datetime(2026, 11, 1, 9, tzinfo=UTC)
_MODELS = ("claude-opus-5-5", "claude-haiku-5-5")
_WORDS = ("def", "return", "self", "assert", "import", "value", "error", "path", "lines", "0", "42")


def run() -> list[tuple[str, float, float]]:
    """(name, ratio measured, ratio allowed) of each measurement."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        return _measured(Path(folder), SESSIONS)


def _measured(folder: Path, sessions: int) -> list[tuple[str, float, float]]:
    home = folders({"HOLDFAST_HOME": str(folder)})
    fill(home, sessions, SIZE)
    found = catalog.scan(home)
    size = sum(size for _, _, size in found)
    cold, warm = _once(lambda: bills_in(home)), min(_once(lambda: bills_in(home)) for _ in range(5))
    each = _once(lambda: [*rows_in(home, bills_in(home), {})])
    again = min(_once(lambda: [*rows_in(home, bills_in(home), {})]) for _ in range(5))
    decode = _once(lambda: [read(Path(path)) for _, path, _ in found])
    few = _once(lambda: attribute(session_records(random.Random(2), LONG // 4), {}))
    many = _once(lambda: attribute(session_records(random.Random(2), LONG), {}))
    print(f"      {sessions:,} sessions, {size / 1e6:,.0f} MB: by day {cold * 1000:,.0f} ms cold, "
          f"{warm * 1000:,.0f} warm; by tool {each * 1000:,.0f} cold, {again * 1000:,.0f} warm; "
          f"reading all {decode * 1000:,.0f}")  # fmt: skip
    return [
        ("usage by day, cold / reading the sessions whole", cold / decode, 0.9),
        ("usage by day, warm / cold", warm / cold, 0.25),
        ("usage by tool, cold / reading the sessions whole", each / decode, 9.0),
        ("usage by tool, warm / cold", again / each, 0.1),
        (f"sharing out {LONG:,} records / a quarter of them", many / few, 6.0),
    ]


def _once(work: Callable[[], object]) -> float:
    """The CPU time of it in seconds, that of a second process at work included: what else runs
    doesn't count."""
    start = own_and_children_s()
    work()
    return own_and_children_s() - start


def fill(home: Folders, sessions: int, size: int) -> None:
    """Write sessions as the program does, with prompts, calls, results and what they cost."""
    random_ = random.Random(1)
    for number in range(sessions):
        folder = home.sessions / f"w-{number % 40}"
        folder.mkdir(parents=True, exist_ok=True)
        id_, start = f"{number:012x}", START + timedelta(hours=number)
        header = Header(id_, timestamp(start), f"/w/{number % 40}", "holdfast 1")
        lines = [header.to_line()]
        written = 0
        for record in session_records(random_, size // 500, start):
            lines.append(record.to_line())
            written += len(lines[-1])
            if written > size:
                break
        (folder / f"{start:%Y%m%dT%H%M%SZ}-{id_}.jsonl").write_bytes(b"".join(all_linked(lines)))


def session_records(random_: random.Random, count: int, start: datetime = START) -> list[Record]:
    made: list[Record] = []
    context = 12_000

    def tell(kind: str, **data: Any) -> None:
        time_ = timestamp(start + timedelta(seconds=7 * len(made)))
        id_ = f"{int(start.timestamp() * 1000) << 12:014x}{len(made):06x}"
        made.append(Record(kind, id_, made[-1].id if made else None, time_, data))

    while len(made) < count:
        tell("user", content=_text(random_, 30), text="fix " + _prose(random_, 6))
        for step in range(random_.randint(2, 8)):
            call = f"toolu_{len(made):06d}"
            path = f"/w/src/m{random_.randint(0, 40)}.py"
            block = {"type": "tool_use", "id": call, "name": "read_file", "input": {"path": path}}
            fresh = random_.randint(200, 4000)
            use = {
                "input_tokens": 3,
                "output_tokens": random_.randint(40, 600),
                "cache_creation_input_tokens": fresh,
                "cache_read_input_tokens": context,
            }
            model = _MODELS[step % 7 == 6]
            content = [*_text(random_, 40), block]
            tell("assistant", content=content, model=model, server="s", usage=use)
            context = min(context + fresh, 180_000)
            result = _text(random_, random_.randint(50, 1500))
            tell("tool_result", call_id=call, name="read_file", content=result, seconds=0.1)
        use = {"input_tokens": 3, "output_tokens": 300, "cache_read_input_tokens": context}
        text = _text(random_, 100)
        tell("assistant", content=text, model=_MODELS[0], server="s", usage=use)
    return made


def _text(random_: random.Random, words: int) -> list[dict[str, Any]]:
    return [{"type": "text", "text": _prose(random_, words)}]


def _prose(random_: random.Random, words: int) -> str:
    return " ".join(random_.choices(_WORDS, k=words))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--in", dest="folder", type=Path, default=Path("/tmp/bench_usage"))
    asked = parser.parse_args()
    for name, measured, allowed in _measured(asked.folder, FULL_SESSIONS) if asked.full else run():
        print(f"{name:<60} {measured:8.3f}  (allowed {allowed})")


if __name__ == "__main__":
    main()
