"""A terminal that gets another size keeps what its person looks at."""

from __future__ import annotations

import pytest

from tui.core.terminal_screen import TerminalScreen
from tui.keeper.emulator import Emulator


@pytest.mark.parametrize(
    ("rows", "printed", "first", "gone"),
    [(32, 12, "line 0", 0), (20, 12, "line 0", 0), (20, 30, "line 11", 11), (5, 12, "line 8", 8)],
)
def test_a_lower_screen_keeps_the_rows_up_to_the_cursor(
    rows: int, printed: int, first: str, gone: int
) -> None:
    emulator = Emulator(33, 80)
    emulator.feed("".join(f"line {number}\r\n" for number in range(printed)) + "end")
    emulator.resize(rows, 80)
    screen = TerminalScreen.of_json(emulator.data())
    assert screen.text.splitlines()[0] == first
    assert screen.text.splitlines()[-1] == "end"
    assert (screen.gone, len(screen.lines)) == (gone, rows)
    emulator.feed("\r\n" * rows + "after")
    assert TerminalScreen.of_json(emulator.data()).text.strip() == "after"
