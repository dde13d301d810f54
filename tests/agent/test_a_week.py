"""A week of work with damage, rewinds and moves between two machines: every figure that is told is
what the server bills, and every record can be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulated_week import Week, week
from tui.session import reader


def check(one: Week) -> None:
    """What must hold at its end; of what happened meanwhile it keeps a list."""
    assert one.wrong == [], one.log
    wrong = [(what, told, bill) for what, told, bill in one.told if abs(told - bill) > 1e-6]
    assert wrong == [], one.log
    assert one.unreached() == []
    assert one.reasons()["unexplained"] == 0, one.log
    if not one.damaged:
        assert one.is_linked()
        records = reader.read(one.path).records
        assert {record.id for record in records} >= {id_[:20] for id_ in one.kept if id_[0] == "1"}


async def test_a_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(await week(tmp_path, monkeypatch, 1, steps=30))


@pytest.mark.slow
async def test_weeks_are_billed_as_forecast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bills = list[tuple[float, float]]()
    for seed in range(100, 110):
        (tmp_path / str(seed)).mkdir()
        one = await week(tmp_path / str(seed), monkeypatch, seed, steps=40)
        check(one)
        bills += one.bills()
    off = [(said, bill) for said, bill in bills if abs(said - bill) > max(0.05 * bill, 0.0005)]
    assert len(bills) > 40
    assert len(off) <= 0.05 * len(bills), off
