"""Facts in words: what they say of times is of the person's own time zone."""

from __future__ import annotations

import time
from collections.abc import Generator

import pytest

from tui.batch.events import FromAgent
from tui.batch.report import lines_of
from tui.core import facts
from tui.core.fact_words import fact_lines

UNTIL = "2026-11-21T23:30:00.000Z"


@pytest.fixture(autouse=True)
def _far_east(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_when_a_parked_turn_goes_on_is_told_in_local_time_with_the_zone() -> None:
    parked = facts.Parked(UNTIL, "Too many requests.")
    (line,) = fact_lines(parked)
    when = "Parked until Sun 22 Nov 08:30 JST (rate limited)"
    assert line == f"{when}: Too many requests. It continues by itself."
    assert list(lines_of(FromAgent(0, parked))) == [f"  {line}"]


def test_when_a_model_may_be_asked_again_is_told_in_local_time() -> None:
    switched = facts.ModelSwitched("one", "two", "It is busy.", UNTIL, "overloaded")
    (line,) = fact_lines(switched)
    back = "Back to one at Sun 22 Nov 08:30 JST, or with /model one."
    assert line == f"It is busy. Switched to two. {back}"
    (line,) = fact_lines(facts.ModelSwitched("one", "two", "It is busy.", None, "overloaded"))
    assert line.endswith("Back to one by itself, or with /model one.")


def test_a_time_that_cannot_be_read_is_left_out() -> None:
    (line,) = fact_lines(facts.Parked("soon", "Wait."))
    assert line == "Parked (rate limited): Wait. It continues by itself."
