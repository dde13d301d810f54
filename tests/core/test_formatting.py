"""Figures as people read them."""

from __future__ import annotations

import pytest

from tui.core.formatting import tokens, utc


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (999, "999"),
        (99_949, "99.9k"),
        (999_499, "999k"),
        (1_110_800, "1.1M"),
        (999_949_999, "999.9M"),
        (1_110_800_000, "1.1B"),
    ],
)
def test_a_count_of_tokens_has_no_more_than_three_digits_before_its_point(
    count: int, shown: str
) -> None:
    assert tokens(count) == shown


def test_a_time_that_nobody_can_read_is_not_shown_as_it_is() -> None:
    assert utc("2026-11-21T09:00:59.000Z") == "2026-11-21 09:00 UTC"
    assert utc("2026-11-21T09:00:00+02:00") == "2026-11-21 07:00 UTC"
    assert utc("yesterday") == "time unknown"
