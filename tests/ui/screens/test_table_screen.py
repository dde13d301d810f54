"""What all screens that list rows share."""

from __future__ import annotations

import re
from pathlib import Path

import tui.ui
from tui.ui.screens.table_screen import SWAPPED, TableScreen


def test_all_that_an_empty_list_shows_or_hides_gets_its_styles() -> None:
    sheets = [file.read_text() for file in Path(tui.ui.__path__[0]).rglob("*.tcss")]
    rules = "\n".join([TableScreen.DEFAULT_CSS, *sheets])
    ruled = set(re.findall(r"(\w+)\.-empty (#[\w-]+)", rules))
    assert len(ruled) > 6
    assert {name for screen, name in ruled if screen != "DebugLogScreen"} == set(
        SWAPPED.split(", ")
    )
