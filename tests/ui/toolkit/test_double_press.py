"""What is asked for twice."""

from __future__ import annotations

from tests.support.clock import FakeClock
from tui.ui.toolkit.key_sequencer import DoublePress


def test_only_the_second_time_soon_enough_counts() -> None:
    clock = FakeClock()
    twice = DoublePress(clock, 2.0)
    assert not twice.asked()
    clock.elapsed += 2.1
    assert not twice.asked()
    clock.elapsed += 2.0
    assert twice.asked()
    assert twice.asked()
    twice.forget()
    assert not twice.asked()
