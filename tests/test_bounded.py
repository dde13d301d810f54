"""The best of a few unknowns within bounds: no point within them is better."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tui.bounded import bounded

NUMBERS = st.floats(-100, 100)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8)
BOUNDS = ((0.0, 4.0), (-4.0, 4.0), (-1.0, 0.0))
START = (1.0, 0.0, 0.0)


def system(
    rows: list[tuple[float, float, float]], goals: list[float], firm: float
) -> tuple[list[list[float]], list[float]]:
    """The normal equations of rows·x = goals, held to the start by `firm`."""
    matrix = [
        [sum(row[i] * row[j] for row in rows) + (firm if i == j else 0.0) for j in range(3)]
        for i in range(3)
    ]
    right = [
        sum(row[i] * goal for row, goal in zip(rows, goals, strict=True)) + firm * START[i]
        for i in range(3)
    ]
    return matrix, right


def value(matrix: list[list[float]], right: list[float], x: list[float]) -> float:
    bent = sum(x[i] * matrix[i][j] * x[j] for i in range(3) for j in range(3)) / 2
    return bent - sum(a * b for a, b in zip(right, x, strict=True))


@given(ROWS, st.lists(NUMBERS, min_size=8, max_size=8), st.sampled_from([0.1, 3.0]))
def test_no_point_within_the_bounds_is_better(
    rows: list[tuple[float, float, float]], goals: list[float], firm: float
) -> None:
    matrix, right = system(rows, goals[: len(rows)], firm)
    found = bounded(matrix, right, BOUNDS, START)
    assert all(low <= x <= high for x, (low, high) in zip(found, BOUNDS, strict=True))
    best = value(matrix, right, found)
    slack = 1e-6 * (1 + abs(best))
    for parts in product((0.0, 0.25, 0.5, 0.75, 1.0), repeat=3):
        other = [low + p * (high - low) for p, (low, high) in zip(parts, BOUNDS, strict=True)]
        assert best <= value(matrix, right, other) + slack
        for step in (1e-3, 0.1):  # and none that is near
            near = [a + step * (b - a) for a, b in zip(found, other, strict=True)]
            assert best <= value(matrix, right, near) + slack


def test_two_that_measure_nearly_the_same_are_not_held_at_opposite_bounds() -> None:
    rows = [(n, 1.02 * n, 0.0) for n in (1.0, 30.0, 40.0, 70.0)]
    matrix, right = system(rows, [n * 0.9 for n, _, _ in rows], 1e-6)
    found = bounded(matrix, right, BOUNDS, START)
    assert all(abs(found[0] * a + found[1] * b - 0.9 * a) < 0.01 * a for a, b, _ in rows)
