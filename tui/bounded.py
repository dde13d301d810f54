"""The least squares of a few unknowns, each within bounds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_ROUNDS: Final = 60
"""Each brings the result nearer and leaves it within the bounds; six unknowns take a few."""


def bounded(
    matrix: Sequence[Sequence[float]],
    right: Sequence[float],
    bounds: Sequence[tuple[float, float]],
    start: Sequence[float],
) -> list[float]:
    """The x within `bounds` for which x·matrix·x / 2 - right·x is least.

    `matrix` is symmetric and positive definite; `start` lies within the bounds. An unknown that
    would leave its bounds is held there, one at a time, and let go again where that pays: to hold
    all at once that stray would end far from the best where two of them measure nearly the same.
    """
    found, held = list(start), set[int]()
    for _ in range(_ROUNDS):
        free = [i for i in range(len(found)) if i not in held]
        rest = [right[i] - sum(matrix[i][j] * found[j] for j in held) for i in free]
        goals = _solved([[matrix[i][j] for j in free] for i in free], rest)
        step, first = 1.0, -1
        for i, goal in zip(free, goals, strict=True):
            low, high = bounds[i]
            if low <= goal <= high:
                continue
            share = ((low if goal < low else high) - found[i]) / (goal - found[i])
            if share < step or first < 0:
                step, first = share, i
        for i, goal in zip(free, goals, strict=True):
            low, high = bounds[i]
            found[i] = min(max(found[i] + step * (goal - found[i]), low), high)
        if first >= 0:
            low, high = bounds[first]
            found[first] = low if goals[free.index(first)] < low else high
            held.add(first)
            continue
        loose = _to_let_go(matrix, right, bounds, found, held)
        if loose < 0:
            break
        held.remove(loose)
    return found


def _to_let_go(
    matrix: Sequence[Sequence[float]],
    right: Sequence[float],
    bounds: Sequence[tuple[float, float]],
    found: Sequence[float],
    held: set[int],
) -> int:
    """Of those that are held, the one that most wants back from its bound; -1 for none."""
    best, most = -1, 0.0
    for i in held:
        terms = [row * value for row, value in zip(matrix[i], found, strict=True)]
        slope = sum(terms) - right[i]
        wants = -slope if found[i] == bounds[i][0] else slope
        scale = abs(right[i]) + sum(map(abs, terms))
        if wants > 1e-9 * scale and wants > most:
            best, most = i, wants
    return best


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """The solution of a small positive definite system, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i, row in enumerate(rows):
        for other in rows[i + 1 :]:
            factor = other[i] / row[i]
            for j in range(i, len(row)):
                other[j] -= factor * row[j]
    found = [0.0] * len(rows)
    for i in range(len(rows) - 1, -1, -1):
        rest = sum(rows[i][j] * found[j] for j in range(i + 1, len(rows)))
        found[i] = (rows[i][-1] - rest) / rows[i][i]
    return found
