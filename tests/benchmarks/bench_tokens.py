"""Counting and keeping count: beside one direct encode, and whatever the length of the session."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from tui.context.token_ledger import Ledger
from tui.core.messages import text_block
from tui.session.records import Record
from tui.tokens.cl100k import build_cl100k
from tui.tokens.tokenizer import Tokenizer

ROUNDS = 15
SHORT, LONG = 50, 5000
_LINE = "    for index, value in enumerate(values):\n        total += value\n"


def run() -> list[tuple[str, float, float]]:
    """(what, ratio measured, ratio allowed) of each measurement."""
    return [
        ("count of a 50 KB result / one encode_ordinary", _counting(), 1.5),
        (f"ledger update at {LONG:,} messages / at {SHORT}", _adding(), 1.5),
        (f"ledger measure at {LONG:,} messages / at {SHORT}", _measuring(), 1.5),
    ]


def _counting() -> float:
    encoding = build_cl100k()
    tokenizer = Tokenizer(lambda: encoding)
    text = (_LINE * 1000)[:50_000]
    tokenizer.count(text)
    return _ratio(lambda: tokenizer.count(text), lambda: encoding.encode_ordinary(text))


def _adding() -> float:
    """Fresh records of one size, added to a short and to a long session by turns."""
    short, long = _session(SHORT), _session(LONG)
    made = iter(range(10**9))

    def add(ledger: Ledger) -> Callable[[], object]:
        fresh = [_record(f"x{next(made)}") for _ in range(20 * ROUNDS)]
        left = iter(fresh)

        def some() -> None:
            for _ in range(20):
                ledger.add(next(left))

        return some

    return _ratio(add(long), add(short))


def _measuring() -> float:
    short, long = _session(SHORT), _session(LONG)
    return _ratio(lambda: _often(long.measure), lambda: _often(short.measure))


def _often(measure: Callable[[], object]) -> None:
    for _ in range(50):
        measure()


def _session(messages: int) -> Ledger:
    ledger = Ledger("m")
    ledger.resume([_record(f"r{n}", n % 2 == 0) for n in range(messages)])
    return ledger


def _record(id_: str, prompt: bool = False) -> Record:
    content = [text_block(f"{id_} {_LINE * 20}")]
    return Record("user" if prompt else "tool_result", id_, None, "", {"content": content})


def _ratio(one: Callable[[], object], other: Callable[[], object]) -> float:
    """How much longer the first takes, in the quietest of rounds that take turns."""
    times: tuple[list[float], list[float]] = ([], [])
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for spent, work in zip(times, (one, other), strict=True):
                begin = time.perf_counter()
                work()
                spent.append(time.perf_counter() - begin)
    finally:
        gc.enable()
    return min(times[0]) / min(times[1])
