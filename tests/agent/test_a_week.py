"""A week of work with damage, rewinds and moves between two machines: every figure that is told is
what the server bills, and every record can be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulated_week import week


@pytest.mark.parametrize("seed", range(4))
async def test_a_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    one = await week(tmp_path, monkeypatch, seed, steps=40)
    assert one.wrong == [], one.log
    wrong = [(what, told, bill) for what, told, bill in one.told if abs(told - bill) > 1e-6]
    assert wrong == [], one.log
    assert one.unreached() == []
    assert one.reasons()["unexplained"] == 0, one.log
