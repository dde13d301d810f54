"""The meter: it says the same figures in every width, and promises nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.facts import ContextMeasured
from tui.ui.widgets.context_meter import bar, details, forecast, meter_line

PARTS = {"system": 4000, "tools": 6000, "memory": 900, "messages": 39_200, "results": 32_000}
FULL = ContextMeasured(82_100, 81_400, 700, 200_000, PARTS, "server", 8192, -0.012, 9, 482_000,
    cache_share=0.978, cost_usd=0.4213,
)  # fmt: skip


def line(state: ContextMeasured, width: int) -> str:
    return meter_line(state, width).plain


def test_all_is_said_where_there_is_room() -> None:
    assert line(FULL, 100).startswith("82.1k of 200k · cache 97 % · $0.42  ━━")
    assert details(FULL, 100).plain == (
        "81.4k measured, 700 more since · last estimate 1.2 % low · 8.2k kept for the answer"
    )
    assert details(FULL, 140).plain.endswith("80 % in ~9 prompts · limits saved 482k")
    settled = ContextMeasured(81_400, 81_400, 0, 200_000, PARTS, "server", drift=0.0)
    assert details(settled, 60).plain == "81.4k measured · last estimate exact"


@pytest.mark.parametrize("width", [30, 40, 60, 100])
def test_the_drift_is_always_shown(width: int) -> None:
    origin = details(FULL, width).plain
    assert "81.4k" in origin
    assert "1.2 % low" in origin


def test_figures_are_dropped_from_the_least_telling_on() -> None:
    assert line(FULL, 40) == "82.1k of 200k · cache 97 % · $0.42"
    assert line(FULL, 30) == "82.1k of 200k · cache 97 %"
    assert line(FULL, 20) == "82.1k of 200k"


def test_the_bar_is_thin_and_told_by_its_weight() -> None:
    state = ContextMeasured(100_000, 0, 0, 200_000, PARTS)
    drawn = line(state, 70).partition("  ")[2]
    assert drawn == "━" * 20 + "─" * 12 + "┃" + "─" * 7


def test_only_what_is_known_of_cache_and_cost_is_said() -> None:
    fresh = ContextMeasured(41_000, 0, 41_000, 1_000_000, PARTS, "server", cost_usd=0.0)
    assert line(fresh, 18) == "41k of 1M"
    unpriced = ContextMeasured(41_000, 41_000, 0, 1_000_000, PARTS, "server", cache_share=0.0)
    assert line(unpriced, 30) == "41k of 1M · cache 0 %"


def test_what_was_taken_away_since_is_told() -> None:
    taken = ContextMeasured(61_400, 81_400, -20_000, 200_000, PARTS, "server")
    assert details(taken, 60).plain == "81.4k measured, 20.0k less since"


@pytest.mark.parametrize(
    ("turns", "said"),
    [(None, ""), (0, ""), (1, "80 % in ~1 prompt"), (20, "80 % in ~20 prompts"), (1200, "")],
)
def test_the_forecast_is_said_where_it_matters(turns: int | None, said: str) -> None:
    state = ContextMeasured(2000, 2000, 0, 200_000, PARTS, "server", forecast=turns)
    assert forecast(state) == said
    assert details(state, 80).plain.endswith(said)


def test_the_mark_stands_where_the_configuration_says() -> None:
    half = ContextMeasured(0, 0, 0, 200_000, {}, threshold=0.5)
    assert bar(half, 40).plain.index("│") == 20


@given(
    st.builds(
        ContextMeasured,
        st.integers(0, 10**7),
        st.integers(0, 10**7),
        st.integers(-(10**6), 10**6),
        st.integers(0, 10**7),
        st.dictionaries(st.sampled_from(sorted(PARTS)), st.integers(0, 10**6)),
        st.sampled_from(["assumed", "server"]),
        st.integers(0, 10**6),
        st.none() | st.floats(-1, 50),
        st.none() | st.integers(0, 10**6),
        st.integers(0, 10**9),
        st.floats(0.01, 1),
        st.none() | st.floats(0, 1),
        st.none() | st.floats(0, 10**6),
    ),
    st.integers(8, 160),
)
def test_it_fits_whatever_it_has_to_say(state: ContextMeasured, width: int) -> None:
    assert meter_line(state, width).cell_length <= width
    assert "\n" not in details(state, width).plain
