"""What compactions cost before a server that binds thinking and prices its cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.long_session import compaction_cost, play


@pytest.mark.slow
async def test_a_compaction_costs_a_quarter_of_a_cold_one(
    own_folders: Path, tmp_path: Path
) -> None:
    costs: dict[str, float] = {}
    for way in ("server", "warm", "cold"):
        (tmp_path / way).mkdir()
        costs[way] = await compaction_cost(tmp_path / way, way)
    assert costs["server"] <= 0.25 * costs["cold"]
    assert costs["warm"] <= 0.25 * costs["cold"]


@pytest.mark.slow
async def test_a_compacted_session_costs_about_what_it_must(
    own_folders: Path, tmp_path: Path
) -> None:
    session = await play(tmp_path, 24, 42_000)
    assert (session.compactions >= 2, session.refused) == (True, 0)
    assert session.dollars <= 1.10 * session.ideal
