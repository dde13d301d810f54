"""Screens of real programs, as another terminal showed them.

Each file in `programs/` has what a program wrote between two inputs, as it was recorded when the
model's terminal ran it, and what `terminal` showed of that (`tmux capture-pane`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tui.core.terminal_screen import TerminalScreen
from tui.keeper.emulator import Emulator

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.json"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("piece", [1 << 20, 7], ids=["whole", "in pieces"])
def test_a_program_is_seen_as_in_another_terminal(path: Path, piece: int) -> None:
    recorded: dict[str, Any] = json.loads(path.read_text())
    emulator = Emulator(recorded["rows"], recorded["cols"])
    for number, step in enumerate(recorded["steps"]):
        written = step["written"]
        for start in range(0, len(written), piece):
            emulator.feed(written[start : start + piece])
        screen = TerminalScreen.of_json(emulator.data())
        assert screen.text == step["shown"], f"step {number} of {recorded['program']}"
        assert [*screen.cursor] == step["cursor"]
    assert len(recorded["steps"]) > 5
    assert emulator.crashes == 0
