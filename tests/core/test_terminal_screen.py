"""The screen of a terminal as its keeper writes it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tui.core.terminal_screen import TerminalScreen


def colors_everywhere(rows: int, cols: int) -> dict[str, Any]:
    """A screen with a color of its own in every cell."""
    line = [["x", f"{number:06x}", "", "b"] for number in range(cols)]
    return {"rows": rows, "cols": cols, "lines": [line] * rows, "cursor": [0, 0], "version": 1}


def least_seconds(do: Callable[[], object]) -> float:
    """Processor time of this thread, at the quietest of some times."""
    times: list[float] = []
    for _ in range(9):
        begun = time.thread_time()
        do()
        times.append(time.thread_time() - begun)
    return min(times)


def test_a_screen_of_many_colors_is_taken_faster_than_its_json_is_parsed() -> None:
    data = colors_everywhere(47, 160)
    line = json.dumps(data)
    parsing = least_seconds(lambda: json.loads(line))
    assert least_seconds(lambda: TerminalScreen.of_json(data)) < parsing


@pytest.mark.parametrize(
    "data",
    [{}, [], {"rows": 2}, {"rows": "2", "cols": 2}, {"rows": 2, "cols": 2, "lines": [[[1]]]}],
)
def test_what_is_no_screen_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"Expected|required"):
        TerminalScreen.of_json(data)


def test_what_a_newer_keeper_adds_is_passed_over() -> None:
    screen = TerminalScreen.of_json({"rows": 1, "cols": 2, "lines": [[["a"]]], "sixels": [1]})
    assert (screen.text, screen.cursor) == ("a", (0, 0))
