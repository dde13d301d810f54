"""Fuzzy ranking: what holds the letters of a query in their order, the likeliest first. Pure."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Sequence
from typing import Final

LIMIT: Final = 50


def rank(
    query: str,
    candidates: Sequence[str],
    *,
    limit: int = LIMIT,
    stop: Callable[[], bool] = lambda: False,
) -> list[str]:
    """The candidates that fit, best first; without a query the first ones as they come.

    A candidate is a name or a path: its last part that is the query goes first, then one that
    begins with it, holds it, holds its letters; then paths that hold it, or its letters. Among
    equals the one whose letters end first, then the shortest. Small letters fit both
    cases. `stop` ends a search that nobody waits for any more.
    """
    if not query:
        return list(candidates[:limit])
    exact = any(map(str.isupper, query))
    fits = re.compile(
        "".join(f"[^{re.escape(c)}]*{re.escape(c)}" for c in query),
        0 if exact else re.IGNORECASE,
    ).match
    found: list[tuple[int, int, int, str]] = []
    for number, candidate in enumerate(candidates):
        if number % 5000 == 0 and stop():
            return []
        if whole := fits(candidate):
            last = candidate.rstrip("/").rpartition("/")[2]
            own = fits(last)
            tight = (own or whole).end()
            found.append(
                (
                    _place(query, candidate, last, exact=exact, own=own is not None),
                    tight,
                    len(candidate),
                    candidate,
                )
            )
    return [candidate for *_, candidate in heapq.nsmallest(limit, found)]


def _place(query: str, candidate: str, last: str, *, exact: bool, own: bool) -> int:
    """How well a candidate fits, 0 best."""
    name, path = (last, candidate) if exact else (last.lower(), candidate.lower())
    if name == query:
        return 0
    if name.startswith(query):
        return 1
    if query in name:
        return 2
    if own:
        return 3
    return 4 if query in path else 5
