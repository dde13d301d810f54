"""Waits and failover between attempts: A21 to A23, A25 to A30."""

from __future__ import annotations

import random

import pytest

from tui.batch.run_policy import ModelPair, switch_line, wait_line, wait_s


def waits(attempt: int, error_class: str = "network") -> set[int]:
    return {wait_s(attempt, error_class, random.Random(seed)) for seed in range(200)}


@pytest.mark.parametrize(
    ("attempt", "least", "most"), [(1, 2, 5), (2, 4, 7), (3, 8, 11), (4, 16, 19)]
)
def test_A21_the_wait_doubles_with_a_spread(attempt: int, least: int, most: int):
    assert waits(attempt) == set(range(least, most + 1))


def test_A21_the_wait_is_capped():
    assert waits(6) == {60}
    assert waits(10_000) == {60}


@pytest.mark.parametrize("error_class", ["rate_limit", "overloaded"])
def test_A22_a_rate_limit_doubles_the_base(error_class: str):
    assert waits(1, error_class) == {4, 5, 6, 7}
    assert waits(5, error_class) == {60}


def test_A23_what_is_printed():
    assert wait_line(7) == "  waiting 7s before retry..."


def test_A25_without_a_fallback_nothing_changes():
    models = ModelPair("a")
    assert models.after("rate_limit", last=False) == models
    assert models.current == "a"


@pytest.mark.parametrize(
    ("error_class", "switches"),
    [
        ("rate_limit", True),
        ("overloaded", True),
        ("timeout", True),
        ("auth", False),
        ("billing", False),
        ("context_overflow", False),
        ("payload_too_large", False),
        ("network", False),
        ("server", False),
        ("unknown", False),
    ],
)
def test_A26_only_some_failures_switch(error_class: str, switches: bool):
    models = ModelPair("a", "b").after(error_class, last=False)
    assert models.current == ("b" if switches else "a")


def test_A27_what_is_logged():
    assert switch_line("a", "b") == "  failover: switching from a to b"


def test_A28_a_failing_fallback_swaps_back():
    models = ModelPair("a", "b").after("rate_limit", last=False).after("timeout", last=False)
    assert models.current == "a"


def test_A29_the_original_model_is_restored():
    assert ModelPair("a", "b").after("timeout", last=False).restored().current == "a"


def test_A30_no_swap_behind_the_last_attempt():
    assert ModelPair("a", "b").after("rate_limit", last=True).current == "a"
