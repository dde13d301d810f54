"""`rescue` on damaged sessions of some 50 MB, beside reading their lines as JSON."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

from tests.support import foreign
from tests.support.foreign import Json, lines
from tests.support.foreign_damage import damaged
from tui.session.rescue import rescue

BYTES = 100_000_000
_TURNS = 200
_TEXT = 'a line of a result that is neither long nor short, "quoted", é\n' * 40


def run() -> list[tuple[str, float, float]]:
    return [
        _row("Claude Code", lambda turns: foreign.claude_code(turns).records),
        _row("Codex", lambda turns: foreign.codex(turns).records),
        _row("pi", lambda turns: foreign.pi(turns).records),
    ]


def _row(name: str, sample: Callable[[int], list[Json]]) -> tuple[str, float, float]:
    size = len(lines(sample(_TURNS)).replace(b"out ", _TEXT.encode()))
    turns = _TURNS * BYTES // size
    data = damaged(sample(turns), random.Random(14)).replace(
        b"out ", json.dumps(_TEXT)[1:-1].encode()
    )
    begin = time.perf_counter()
    for line in data.split(b"\n"):
        try:
            json.loads(line)
        except ValueError:
            continue
    read = time.perf_counter() - begin
    begin = time.perf_counter()
    mended = rescue(data)
    took = time.perf_counter() - begin
    assert mended is not None
    assert mended.repairs
    print(f"      {name}: {len(data) / 1e6:.0f} MB in {took:.1f} s")
    return f"a session of {name} mended, beside reading it as JSON", took / read, 6.0
