"""The search for the first state in which a command fails."""

from __future__ import annotations

import math
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.context.bisection import (
    SKIPS,
    FirstFailure,
    Judge,
    NoFirstFailure,
    Verdict,
    is_decided,
    is_flaky,
    next_step,
    verdict_of,
)


def verdicts(**counts: int) -> list[Verdict]:
    """So many states of each verdict, one kind after the other."""
    return [cast("Verdict", name) for name, count in counts.items() for _ in range(count)]


def search(truth: list[Verdict]) -> tuple[FirstFailure | NoFirstFailure, list[int]]:
    """The result for states of which each has a verdict, and the states that were judged."""
    known: dict[int, Verdict] = {}
    judged: list[int] = []
    while isinstance(step := next_step(len(truth), known), Judge):
        assert step.state not in known
        known[step.state] = truth[step.state]
        judged.append(step.state)
    return step, judged


@given(st.integers(1, 2000), st.data())
def test_the_first_that_fails_is_found_in_few_steps(count: int, data: st.DataObject) -> None:
    fault = data.draw(st.integers(1, count))
    truth = verdicts(passes=fault, fails=count)
    result, judged = search(truth)
    assert result == FirstFailure(fault - 1, fault)
    assert len(judged) <= 3 + math.ceil(math.log2(len(truth)))


@given(st.lists(st.sampled_from(["", "skipped"]), min_size=1, max_size=80), st.data())
def test_with_any_skips_the_answer_is_among_those_named(
    marks: list[str], data: st.DataObject
) -> None:
    fault = data.draw(st.integers(0, len(marks)))
    truth: list[Verdict] = [
        "skipped" if mark else "passes" if n < fault else "fails" for n, mark in enumerate(marks)
    ]
    result, judged = search(truth)
    good = [n for n, one in enumerate(truth) if one == "passes"]
    bad = [n for n, one in enumerate(truth) if one == "fails"]
    assert len(judged) == len(set(judged))
    few = truth.count("skipped") < SKIPS
    if isinstance(result, FirstFailure):
        between = [*result.candidates][:-1]
        assert {fault} & {*result.candidates} or {truth[n] for n in between} == {"skipped"}
        assert not any(truth[n] != "skipped" for n in between if n in judged)
        assert result.untried == len(between) - len({*between} & {*judged})
        assert not result.fails_before
        assert not few or result == FirstFailure(good[-1], bad[0])
    elif few:
        assert result.reason == ("passes" if good else "fails" if bad else "unjudged")
        assert not (good and bad)
    else:
        assert judged.count(result.state) <= 1


@given(st.lists(st.sampled_from(["passes", "fails", "skipped"]), min_size=1, max_size=60))
def test_a_command_that_passes_and_fails_in_turns_ends_at_a_real_change(
    truth: list[Verdict],
) -> None:
    result, judged = search(truth)
    if isinstance(result, FirstFailure):
        assert truth[result.passes] == "passes"
        assert truth[result.fails] == "fails"
        between = range(result.passes + 1, result.fails)
        assert all(truth[n] == "skipped" for n in between if n in judged)


@given(st.integers(0, 400), st.integers(13, 1000), st.integers(0, 400), st.booleans())
def test_a_run_that_does_not_build_is_never_tried_through(
    before: int, run: int, after: int, broken_within: bool
) -> None:
    truth = verdicts(passes=before + 1, skipped=run)
    truth += verdicts(fails=after + 1) if broken_within else verdicts(passes=after, fails=1)
    result, judged = search(truth)
    assert isinstance(result, FirstFailure)
    if broken_within:
        assert (result.passes, result.fails) == (before, before + 1 + run)
    assert len(judged) <= 2 * SKIPS + 4 * math.log2(len(truth)) + 8


@pytest.mark.parametrize("count", [1, 12, 100, 10_000])
def test_where_nothing_builds_few_are_tried(count: int) -> None:
    result, judged = search(verdicts(skipped=count))
    assert result == NoFirstFailure("unjudged", count - 1)
    assert len(judged) <= max(SKIPS, math.ceil(math.log2(count + 1)))


def test_a_command_that_fails_at_the_beginning_too_is_searched_from_where_it_passes() -> None:
    truth = verdicts(fails=20) + verdicts(passes=50, fails=100)
    result, judged = search(truth)
    assert result == FirstFailure(69, 70, fails_before=True)
    assert len(judged) < 20
    assert search(verdicts(fails=1000))[0] == NoFirstFailure("fails", 0)


def test_a_long_run_that_does_not_build_is_left_soon() -> None:
    truth = verdicts(passes=300, fails=100, skipped=300) + verdicts(fails=300)
    result, judged = search(truth)
    assert result == FirstFailure(299, 300)
    assert len(judged) < 25


def test_an_interrupted_search_goes_on_from_its_verdicts() -> None:
    truth = verdicts(passes=70, fails=30)
    _, judged = search(truth)
    known = {n: truth[n] for n in judged[:4]}
    assert next_step(len(truth), known) == Judge(judged[4], next_step(len(truth), known).left)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("codes", "verdict", "flaky"),
    [
        ([0], "passes", False),
        ([1], "fails", False),
        ([124], "fails", False),
        ([126], "fails", False),
        ([127], "fails", False),
        ([125], "skipped", False),
        ([0, 1, 0], "passes", True),
        ([1, 0, 1], "fails", True),
        ([0, 1], "fails", True),
        ([1, 125], "skipped", False),
    ],
)
def test_exit_codes_mean_what_they_mean_to_git(
    codes: list[int], verdict: Verdict, flaky: bool
) -> None:
    assert (verdict_of(codes), is_flaky(codes)) == (verdict, flaky)


@given(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=7), st.integers(1, 7))
def test_what_is_decided_stays_so(codes: list[int], runs: int) -> None:
    codes = codes[:runs]
    rest = runs - len(codes)
    possible = {verdict_of([*codes, *[0] * (rest - n), *[1] * n]) for n in range(rest + 1)}
    assert is_decided(codes, runs) == (len(possible) == 1)
