"""What checking, repairing and importing cost, beside json.loads of the same lines in one run."""

from __future__ import annotations

import gc
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.foreign import claude_code, pi
from tui.context.history import history
from tui.context.repair import repair
from tui.context.validate import check
from tui.context.view import build
from tui.session import importers
from tui.session.records import Record

MODEL = "claude-sonnet-5-5"
MESSAGES = 8000
ROUNDS = 5
WORDS = "A line of output with some text in it.\n" * 30


def run() -> list[tuple[str, float, float]]:
    """(name, ratio measured, ratio allowed) of each measurement."""
    sound, damaged = _records(damaged=False), _records(damaged=True)
    lines = [record.to_line() for record in sound]
    told = history(sound, model=MODEL).messages
    torn = history(damaged, model=MODEL).messages

    def loads() -> None:
        for line in lines:
            json.loads(line)

    return [
        ("check of 8,000 messages / json.loads", _ratio(lambda: check(told), loads), 3),
        (
            "repair of 8,000 messages, 200 damaged / json.loads",
            _ratio(lambda: repair(torn), loads),
            7,
        ),
        ("first view of them, damaged / json.loads", _ratio(lambda: _view(damaged), loads), 12),
        *_imports(),
    ]


def _view(records: list[Record]) -> None:
    build(records, model=MODEL, prompt_follows=True)


def _imports() -> list[tuple[str, float, float]]:
    rows: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("Claude Code", claude_code(800).bytes()), ("pi", pi(800).bytes())):
            path = Path(folder) / f"{name}.jsonl"
            path.write_bytes(data)
            lines = data.splitlines()

            def loads(lines: list[bytes] = lines) -> None:
                for line in lines:
                    json.loads(line)

            def load(path: Path = path) -> None:
                importers.load(path)

            rows.append((f"import of a {name} session / json.loads", _ratio(load, loads), 11))
    return rows


def _ratio(ours: Callable[[], Any], bare: Callable[[], Any]) -> float:
    """The best of each, taken in turn, so that both sides see the same machine."""
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for place, work in enumerate((ours, bare)):
            gc.collect()
            start = time.perf_counter()
            work()
            best[place] = min(best[place], time.perf_counter() - start)
    return best[0] / best[1]


def _records(*, damaged: bool) -> list[Record]:
    """Turns of eight messages; in the damaged one every fifth turn lacks a result."""
    records: list[Record] = []

    def add(type_: str, **data: Any) -> None:
        parent = records[-1].id if records else None
        records.append(Record(type_, f"r{len(records)}", parent, "2026-11-21T09:00:00.000Z", data))

    for turn in range(MESSAGES // 8):
        add("user", content=[{"type": "text", "text": "Please look at it. " * 8}], text="x")
        for step in range(3):
            id_ = f"toolu_{turn}_{step}"
            call = {"type": "tool_use", "id": id_, "name": "read_file", "input": {"path": "a.py"}}
            text = {"type": "text", "text": "I look at it now. " * 10}
            add("assistant", content=[text, call], model=MODEL)
            if not (damaged and step == 1 and turn % 5 == 0):
                content = [{"type": "text", "text": WORDS}]
                add("tool_result", call_id=id_, content=content, is_error=False)
        add("assistant", content=[{"type": "text", "text": "So it is. " * 30}], model=MODEL)
    return records


if __name__ == "__main__":
    for what, measured, allowed in run():
        print(f"{what}: {measured:.2f} (allowed {allowed:g})")
