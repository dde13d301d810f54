"""Sessions made by chance, before a server that enforces what the API does: none may go wrong.

Each has 60 turns with every kind of change between and within them. `SESSIONS=1000` in the
environment plays so many, on all cores; the usual number takes about a minute.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.generated_session import played

TURNS = 60
FIRST = 1000
"""The first seed: those of the tests come before."""


def run() -> list[tuple[str, float, float]]:
    """Rows of (what, number, number allowed)."""
    sessions = int(os.environ.get("SESSIONS", "30"))
    began, requests, problems = time.monotonic(), 0, list[str]()
    reasons: Counter[str] = Counter()
    with ProcessPoolExecutor() as pool:
        for seed, sent, why, found in pool.map(_play, range(FIRST, FIRST + sessions)):
            requests += sent
            reasons += why
            problems += [f"seed {seed}: {problem}" for problem in found[:3]]
    for problem in problems:
        print(f"      {problem}")
    took = time.monotonic() - began
    print(
        f"      {sessions} sessions, {requests:,} requests, {took:.0f} s; breaks: {dict(reasons)}"
    )
    return [(f"{sessions} sessions of {TURNS} turns: those that went wrong", len(problems), 0)]


def _play(seed: int) -> tuple[int, int, Counter[str], list[str]]:
    logging.disable(logging.CRITICAL)
    shared = Path("/dev/shm")
    with TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        os.environ["HOLDFAST_HOME"] = str(Path(folder) / "home")
        session = asyncio.run(played(Path(folder) / "work" / "project", seed, TURNS))
        return seed, len(session.bodies), session.reasons, session.problems()
