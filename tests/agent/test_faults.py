"""The matrix: every fault, wherever it strikes, through the whole agent, in no time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agents import Yes, make_agent
from tests.support.clock import FakeClock
from tests.support.faults import PROMPT, Cell, WithSummaries, cases, check_cell, earlier, script_of
from tui.agent.prompts import parse
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Retry
from tui.core.facts import Fact
from tui.core.paths import folders
from tui.provider.practice.provider import PracticeModel
from tui.provider.retry import RetryControl, RetryProvider
from tui.session.session import Session


@pytest.mark.parametrize("cell", cases(), ids=str)
async def test_R18_every_fault_ends_well_or_with_its_class(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    root = tmp_path / "work"
    root.mkdir()
    clock, control = FakeClock(), RetryControl()
    session = Session.create(root, folders=folders(), clock=SystemClock())
    earlier(session)
    scripted = PracticeModel(clock, script=script_of(cell))
    model = WithSummaries(scripted)
    provider = RetryProvider(model, retry=Retry(), clock=clock, control=control)
    agent = make_agent(
        root, provider, session=session, approver=Yes(), clock=clock, control=control
    )
    seen: list[Fact] = [event async for event in agent.send(parse(PROMPT))]
    await agent.close()

    assert session.path is not None
    check_cell(cell, session.path, root, seen)
    if cell.ends == "done":
        assert not scripted.unplayed
    if cell.name == "429 for hours":
        (parked,) = [event for event in seen if isinstance(event, facts.Parked)]
        assert parked.error_class == "rate_limit"
        assert clock.elapsed >= 7200
    if cell.name in {"overflow", "413"}:
        steps = [event.step for event in seen if isinstance(event, facts.RecoveryStep)]
        assert steps == ["compaction"]
        assert [r.type for r in session.records].count("compaction") == 1
