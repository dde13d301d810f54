"""`sessions verify` on a session of 100 MB, and what the links cost when a line is appended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tui.session import chain, chain_check, copies
from tui.session.reader import read
from tui.session.records import Header, Record

BYTES = 100_000_000
_TEXT = 'a line of a result that is neither long nor short, "quoted", é\n' * 60


def run() -> list[tuple[str, float, float]]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        records = [_record(number) for number in range(BYTES // 4_200)]
        copies.write_session(path, Header("0a0b0c0d0e0f", "", folder, "holdfast 1"), records)
        size = path.stat().st_size
        verified = _seconds(lambda: _verified(path))
        loaded = _seconds(lambda: read(path))
        append = _seconds(lambda: _appended(path, records[:2_000], chained=True))
        plain = _seconds(lambda: _appended(path, records[:2_000], chained=False))
    print(f"      {size / 1e6:.0f} MB, {len(records):,} lines; reading it takes {loaded:.2f} s")
    return [
        ("seconds to check the lines of a session of 100 MB", verified, 2.0),
        ("a line made and written with a link, beside one without", append / plain, 2.0),
    ]


def _record(number: int) -> Record:
    content = [{"type": "text", "text": _TEXT}]
    data = {"call_id": f"c{number}", "name": "read_file", "content": content, "is_error": False}
    before = f"r{number - 1}" if number else None
    return Record("tool_result", f"r{number}", before, "2026-01-01T00:00:00.000Z", data)


def _verified(path: Path) -> None:
    report = chain_check.verify(path)
    assert report.linked == report.lines
    assert not report.changed


def _appended(path: Path, records: list[Record], *, chained: bool) -> None:
    link, line = "", b""
    with path.with_name("other").open("wb", buffering=0) as file:
        for record in records:
            line = record.to_line()
            if chained:
                line, link = chain.linked(line, link)
            file.write(line)
    assert json.loads(line)["id"]


def _seconds(work: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return median(times)
