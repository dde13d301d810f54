"""Whatever is done in a session: nothing is refused, no break is unexplained, each request can be
made again from the file. `python -m tests.benchmarks generated` plays many more, and longer ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.generated_session import played, report


@pytest.mark.parametrize("seed", range(8))
async def test_a_session_made_by_chance(own_folders: Path, tmp_path: Path, seed: int) -> None:
    session = await played(tmp_path / "work", seed, turns=12)
    assert session.problems() == [], report(session)
    assert len(session.bodies) > 8
