"""Fuzzy ranking: what holds the letters of a query in their order, the likeliest first. Pure."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Sequence
from typing import Final

from textual.fuzzy import FuzzySearch

LIMIT: Final = 50
SCORED_MAX: Final = 300
"""Candidates that are scored letter by letter; of more, those that hold the query in their name,
then the shortest."""


def rank(
    query: str,
    candidates: Sequence[str],
    *,
    limit: int = LIMIT,
    stop: Callable[[], bool] = lambda: False,
) -> list[str]:
    """The candidates that fit, best first; without a query the first ones as they come.

    A candidate is a name or a path: what fits its last part goes before what fits its folders.
    Small letters fit both cases. `stop` ends a search that nobody waits for any more.
    """
    if not query:
        return list(candidates[:limit])
    flags = re.IGNORECASE if query.islower() or not any(map(str.isupper, query)) else 0
    fits = re.compile(".*?".join(map(re.escape, query)), flags | re.DOTALL).search
    found: list[str] = []
    for number, candidate in enumerate(candidates):
        if number % 5000 == 0 and stop():
            return []
        if fits(candidate):
            found.append(candidate)
    search = FuzzySearch(case_sensitive=not flags)
    folded = query if not flags else query.lower()
    if len(found) > SCORED_MAX:
        found = heapq.nsmallest(
            SCORED_MAX, found, key=lambda path: (folded not in path[-40:].lower(), len(path))
        )

    def key(candidate: str) -> tuple[float, int, str]:
        last = candidate.rstrip("/").rpartition("/")[2]
        folder_last = last if not flags else last.lower()
        score = search.match(query, candidate)[0]
        if folded in folder_last:
            score += 100 + 50 * folder_last.startswith(folded) + 50 * (folder_last == folded)
        elif own := search.match(query, last)[0]:
            score += 20 + own
        return (-score, len(candidate), candidate)

    return heapq.nsmallest(limit, found, key=key)
