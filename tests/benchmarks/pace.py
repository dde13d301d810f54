"""How slow the machine is now, for limits that are seconds of processor.

Such limits were set on a quiet machine. Where others use its cores too, the same work takes up to
half as long again; a fixed piece of work tells by how much.
"""

from __future__ import annotations

import json
import time
from typing import Final

QUIET_S: Final = 0.19
"""What the fixed work took on the machine for which the limits were set, when it was quiet."""
_ROUNDS, _KEYS = 3, 60_000


def slowness() -> float:
    """By what the limits are to be multiplied: 1 on the quiet machine, and on a faster one."""
    return max(1.0, min(_work() for _ in range(_ROUNDS)) / QUIET_S)


def _work() -> float:
    """Seconds of processor for much making, sorting and reading of small objects."""
    started = time.process_time()
    made = {str(n): [n, {"a": n}] for n in range(_KEYS)}
    json.loads(json.dumps(made))
    sorted(made, key=lambda key: key[::-1])
    return time.process_time() - started
