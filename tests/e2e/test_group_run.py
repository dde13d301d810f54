"""What groups of tasks cost that are worked on at the same time."""

from __future__ import annotations

from pathlib import Path

from tests.support.group_run import play


def test_groups_that_start_together_write_what_they_share_once(tmp_path: Path) -> None:
    run = play(tmp_path, groups=4, at_once=4)
    assert run.refused == 0
    assert run.cold == 1
