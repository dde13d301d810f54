"""The meter: it says the same figures in every width, and promises nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.agent.events import ContextMeasured
from tui.ui.widgets.context_meter import bar, meter_line, meter_lines

PARTS = {"system": 4000, "tools": 6000, "memory": 900, "messages": 39_200, "results": 32_000}
FULL = ContextMeasured(82_100, 81_400, 700, 200_000, PARTS, "server", 8192, -0.012, 9, 482_000,
    cache_share=0.978, cost_usd=0.4213,
)  # fmt: skip


def rows(state: ContextMeasured, width: int) -> list[str]:
    return [line.rstrip() for line in meter_lines(state, width).plain.split("\n")]


def test_all_is_said_where_there_is_room() -> None:
    head, _, legend, origin = rows(FULL, 100)
    assert head.startswith("82.1k of 200k · cache 97 % · $0.42")
    assert head.endswith("80 % in ~9 turns · limits saved 482k")
    assert "▚ memory 900" in legend
    assert origin == "measured 81.4k + since 700 · estimate 1.2 % low · reserve 8.2k"


@pytest.mark.parametrize("width", [30, 40, 60, 100])
def test_the_drift_is_always_shown(width: int) -> None:
    *_, origin = rows(FULL, width)
    assert "81.4k" in origin
    assert "1.2 % low" in origin
    assert len(rows(FULL, width)) == 4


def test_figures_are_dropped_from_the_least_telling_on() -> None:
    assert rows(FULL, 52)[0].endswith("80 % in ~9 turns")
    assert rows(FULL, 40)[0] == "82.1k of 200k · cache 97 % · $0.42"
    assert rows(FULL, 30)[0] == "82.1k of 200k · cache 97 %"
    assert rows(FULL, 20)[0] == "82.1k of 200k"
    assert rows(FULL, 30)[2] == "▓ sys ▒ tool ▚ mem █ msg ▒ res"


def test_the_meter_is_one_line_of_figures() -> None:
    state = ContextMeasured(41_000, 41_000, 0, 1_000_000, PARTS, cache_share=0.97, cost_usd=0.42)
    assert rows(state, 30)[0] == "41k of 1M · cache 97 % · $0.42"
    assert meter_line(state, 80).plain.startswith("context 41k of 1M · cache 97 % · $0.42  ")


def test_only_what_is_known_of_cache_and_cost_is_said() -> None:
    fresh = ContextMeasured(41_000, 0, 41_000, 1_000_000, PARTS, "server", cost_usd=0.0)
    assert rows(fresh, 30)[0] == "41k of 1M"
    unpriced = ContextMeasured(41_000, 41_000, 0, 1_000_000, PARTS, "server", cache_share=0.0)
    assert rows(unpriced, 30)[0] == "41k of 1M · cache 0 %"


def test_what_was_taken_away_since_is_told() -> None:
    taken = ContextMeasured(61_400, 81_400, -20_000, 200_000, PARTS)
    assert rows(taken, 60)[3] == "measured 81.4k − since 20.0k"


@pytest.mark.parametrize(
    ("turns", "said"), [(None, ""), (0, ""), (1, "80 % in ~1 turn"), (1200, "80 % in ~1,200 turns")]
)
def test_the_forecast_is_said_while_it_is_known(turns: int | None, said: str) -> None:
    state = ContextMeasured(2000, 2000, 0, 200_000, PARTS, "server", forecast=turns)
    assert rows(state, 60)[0].endswith(said or "2k of 200k")
    assert "turn" in rows(state, 60)[0] or not said


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
    lines = meter_lines(state, width).split("\n", allow_blank=True)
    assert len(lines) in {2, 4}
    assert not state.window or all(line.cell_length <= width for line in lines)
