"""Days of simulated work by two people and three agents: see `tests.support.blame_days`, which runs
whole weeks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.blame_days import simulated

DAYS = 3
RIGHT = 0.98


@pytest.mark.slow
def test_nearly_every_line_of_ten_files_has_its_origin_told(tmp_path: Path) -> None:
    world, told = simulated(tmp_path / "world", 4, DAYS)
    wrong = [one for one in told if not one.right]
    assert len(told) > 500, world.log
    assert len(wrong) <= (1 - RIGHT) * len(told), (world.log, wrong)
    kinds = {one.said.split("/")[-1].split()[0].split("_")[0] for one in told}
    assert {"before", "person", "commit", "toolu"} <= kinds
