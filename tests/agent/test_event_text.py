"""Events in words: what they say of times is of the person's own time zone."""

from __future__ import annotations

import time
from collections.abc import Generator

import pytest

from tui.agent.event_text import event_lines
from tui.batch.events import FromAgent
from tui.batch.report import lines_of
from tui.core import facts

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
    (line,) = event_lines(parked)
    assert line == "rate_limit: Too many requests. The turn continues at Sun 22 Nov 08:30 JST."
    assert list(lines_of(FromAgent(0, parked))) == [
        "  waiting until Sun 22 Nov 08:30 JST: Too many requests."
    ]


def test_when_a_model_may_be_asked_again_is_told_in_local_time() -> None:
    (line,) = event_lines(facts.ModelSwitched("one", "two", "overloaded", UNTIL))
    assert line.endswith(" Returns to one at Sun 22 Nov 08:30 JST.")
    (line,) = event_lines(facts.ModelSwitched("one", "two", "overloaded", None))
    assert line.endswith("(overloaded).")


def test_a_time_that_cannot_be_read_is_told_as_it_is() -> None:
    (line,) = event_lines(facts.Parked("soon", "Wait."))
    assert line.endswith("The turn continues at soon.")
